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

/* The rest: thread of the ring's worker. */
void access_log_exchange(struct worker *worker, const struct exchange *exchange,
                         uint64_t duration_us);
void access_log_refused(struct worker *worker, const struct fwd_peer *peer, enum reason reason);
void access_log_wake(struct access_ring *ring);

/* Records lost because the ring was full. Any thread. */
uint64_t access_log_dropped(const struct access_log *log);

#endif
