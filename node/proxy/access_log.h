/*
 * Access log: one JSON line per exchange, written by a thread of its own.
 *
 * Workers never format, lock or write: each puts binary records into its own ring and, at the end
 * of a loop iteration, wakes the writer if that sleeps. A full ring drops the record and counts it;
 * the next line that is written says how many were lost. A log file that was renamed or removed is
 * opened anew within a second.
 */
#ifndef SKEIN_NODE_PROXY_ACCESS_LOG_H
#define SKEIN_NODE_PROXY_ACCESS_LOG_H

#include "node/base/errors.h"
#include "node/proxy/exchange.h"

struct access_log;
struct access_ring;

/* where: "off" (*ret_log is NULL), "stdout" or a path. RC_IO with a text. */
MUST_CHECK int access_log_open(const char *where, const char *node, size_t workers,
                               struct access_log **ret_log, struct err_info *err);

/* The ring of worker idx; NULL when log is NULL. */
struct access_ring *access_log_ring(struct access_log *log, size_t idx);

/* Write what is left, end the thread. The workers are gone. NULL is accepted. */
void access_log_close(struct access_log *log);

/* ---- the rest: thread of the ring's worker ---- */

/* Are records wanted now? */
static inline bool access_log_wants(const struct worker *worker)
{
    return worker->access != NULL;
}

/* One TCP connection that is over. NULL and 0: there was none. Borrowed for the call. */
struct tcp_record {
    const struct addr *client; /* the peer, or what its PROXY header says */
    const char *listener;      /* "0.0.0.0:5432" */
    const char *route;
    const char *backend;
    const char *endpoint;
    uint64_t start_ns;     /* accepted; uv_hrtime */
    uint64_t sent_ns;      /* connect to the endpoint that took it begun, after the queue */
    uint64_t connected_ns; /* to it */
    uint64_t first_ns;     /* its first byte; 0: not looked at */
    uint64_t end_ns;       /* 0: now */
    uint64_t bytes_in;     /* from the client */
    uint64_t bytes_out;    /* to the client */
    uint32_t retries;      /* endpoints tried before it */
    enum reason reason;    /* why it was refused or could not be connected */
    enum exchange_end end; /* EXCHANGE_END_NONE: both sides finished */
};

/* Nothing when the log is off; a route that wants none is the caller's to leave out. */
void access_log_tcp(struct worker *worker, const struct tcp_record *record);

void access_log_exchange(struct worker *worker, const struct exchange *exchange,
                         uint64_t duration_us);
void access_log_refused(struct worker *worker, const struct fwd_peer *peer, enum reason reason);
void access_log_wake(struct access_ring *ring);

/* Records lost because the ring was full. Any thread. */
uint64_t access_log_dropped(const struct access_log *log);

#endif
