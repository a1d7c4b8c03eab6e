/*
 * Quiescent-state reclamation: when may an unpublished object go?
 *
 * Workers read published pointers without a reference, but only within one iteration of their loop.
 * A worker goes online when it first looks something up in an iteration and offline before it
 * polls. The control thread unpublishes an object, then defers it; it is released when every worker
 * has been offline or has come online after that moment.
 *
 * libuv runs socket callbacks inside its poll phase, so "online" cannot be set by a check handle:
 * the look-ups do it (qsbr_online is a test of a local flag but for the first call).
 *
 * Order: the reader's store of its epoch and its load of a published pointer, and the writer's
 * store of the pointer and its load of the epochs, are sequentially consistent; so either the
 * reader sees the new pointer, or the writer sees the reader.
 */
#ifndef SKEIN_NODE_PROXY_QSBR_H
#define SKEIN_NODE_PROXY_QSBR_H

#include "node/proxy/shared.h"

/* Embedded in what is released later. */
struct qsbr_node {
    struct qsbr_node *next;
    uint64_t epoch;
    void (*release)(struct qsbr_node *node); /* on the control thread */
};

/* One worker's state, on its own cache line. */
struct qsbr_reader {
    _Alignas(CACHE_LINE) _Atomic uint64_t epoch; /* 0: offline */
    bool online;                                 /* the worker's own copy */
};

struct qsbr {
    _Atomic uint64_t epoch; /* starts at 1, grows with each deferral */
    struct qsbr_reader *readers;
    size_t reader_count;
    struct qsbr_node *head; /* deferred, oldest first */
    struct qsbr_node *tail;
    size_t deferred;
    _Atomic(struct qsbr_node *) posted; /* by any thread, newest first */
};

void qsbr_init(struct qsbr *qsbr, size_t reader_count);

/* Release everything at once. No reader may be running. */
void qsbr_flush(struct qsbr *qsbr);
void qsbr_deinit(struct qsbr *qsbr);

/* Thread: the reader's. */
static inline void qsbr_online(struct qsbr *qsbr, struct qsbr_reader *reader)
{
    if (LIKELY(reader->online)) {
        return;
    }
    reader->online = true;
    uint64_t now = atomic_load_explicit(&qsbr->epoch, memory_order_seq_cst);
    (void)atomic_exchange_explicit(&reader->epoch, now, memory_order_seq_cst);
}

static inline void qsbr_offline(struct qsbr_reader *reader)
{
    if (reader->online) {
        reader->online = false;
        atomic_store_explicit(&reader->epoch, 0, memory_order_release);
    }
}

/* Call release(node) once no reader can hold what it could find before this call. Control thread.
 */
void qsbr_defer(struct qsbr *qsbr, struct qsbr_node *node, void (*release)(struct qsbr_node *));

/* Call release(node) on the control thread at its next qsbr_reclaim: for the last reference, which
 * nobody can find any more. Any thread. */
void qsbr_post_mt(struct qsbr *qsbr, struct qsbr_node *node, void (*release)(struct qsbr_node *));

/* Release what may go; returns how many. Control thread. */
size_t qsbr_reclaim(struct qsbr *qsbr);

#endif
