/*
 * Access log: one line per exchange or TCP connection, written by a thread of its own.
 *
 * Workers never format, lock or write: each puts binary records of bounded size into its own ring
 * and, at the end of a loop iteration, wakes the writer if that sleeps. A full ring drops the
 * record and counts it; the next line that is written says how many were lost. A log file that was
 * renamed or removed is opened anew within a second. Whether records are made can be changed at any
 * time (access_log_set); nothing is made, kept or copied while it is off.
 */
#ifndef SKEIN_NODE_PROXY_ACCESS_LOG_H
#define SKEIN_NODE_PROXY_ACCESS_LOG_H

#include "node/base/errors.h"
#include "node/proxy/access_capture.h"
#include "node/proxy/access_record.h"
#include "node/proxy/exchange.h"

struct access_log;

/* What the control thread may change. All zero: as the node's settings say, JSON. */
struct access_options {
    bool on;
    bool combined;       /* instead of JSON */
    bool empty_requests; /* also connections that ended without a byte */
};

/* The part of a ring that workers look at before they make a record. */
struct access_ring {
    _Atomic bool on;
    _Atomic bool empty_requests;
};

/* where: a path; "stdout" and "off" are stdout, once it is switched on. RC_IO with a text. */
MUST_CHECK int access_log_open(const char *where, const char *node, size_t workers,
                               struct access_log **ret_log, struct err_info *err);

/* The ring of worker idx. */
struct access_ring *access_log_ring(struct access_log *log, size_t idx);

/* From now on. Control thread. */
void access_log_set(struct access_log *log, const struct access_options *options);

/* Write what is left, end the thread. The workers are gone. NULL is accepted. */
void access_log_close(struct access_log *log);

/* Lines written and lost as Prometheus text, appended. Any thread. */
void access_log_metrics(const struct access_log *log, struct buf *out);

/* ---- the rest: thread of the ring's worker ---- */

/* Are records wanted now? */
static inline bool access_log_wants(const struct worker *worker)
{
    return worker->access != NULL &&
           atomic_load_explicit(&worker->access->on, memory_order_relaxed);
}

/* Put the record and its items into the ring, or count it as dropped; size and wall_ms are set. */
void access_log_put(struct worker *worker, struct access_record *record,
                    const struct access_items *items);

/* ---- access_draft.c: records of exchanges; all but the first want exchange->log ---- */

/* While the head of the request is there: take from it what the record needs. After exchange->log
 * is set, every end of the exchange makes a record. */
void access_begin(struct exchange *exchange, const struct exchange_request *request);
/* What its rule's policy says, now that there is one: more captures, or no record at all. */
void access_follow(struct exchange *exchange, const struct exchange_request *request);
void access_response(struct exchange *exchange, const struct h1_head *head, const char *bytes);
/* A text found on the way, such as the request id; replaces an earlier one. */
void access_note(struct exchange *exchange, enum access_item_id id, const char *text, size_t len);
/* The exchange is over. */
void access_end(struct exchange *exchange, uint64_t end_ns);
/* A request whose head could not be read, or never came; when the log wants that. */
void access_refused(struct worker *worker, const struct exchange_refusal *refusal);

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

void access_log_wake(struct access_ring *ring);

#endif
