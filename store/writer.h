/*
 * The store thread: takes batches from one submitting thread, commits all that wait in one
 * transaction (group commit: many concurrent writes share one fsync) and reports each in order.
 *
 * Every submitted token gets exactly one call of `done`, in the order of submission, whatever
 * happens to it. The queue is bounded in bytes; a batch above the bound is reported with RC_FULL
 * like any other failure, in its turn.
 */
#ifndef SKEIN_STORE_WRITER_H
#define SKEIN_STORE_WRITER_H

#include "store/store.h"

struct store_writer;

/*
 * On the store thread: post it to a loop and return. rc 0: durable. Otherwise nothing of the batch
 * is on the disk: RC_NO_SPACE, RC_IO, RC_FULL (too much is waiting), RC_INVALID (this batch only),
 * RC_NO_MEMORY, RC_BUSY or RC_CORRUPT. The next batches are tried again.
 */
typedef void (*store_done_fn)(void *ctx, uint64_t token, int rc);

/*
 * Start the thread; the store is its own until store_writer_stop. cap_bytes bounds what may wait
 * (0: 64 MiB). Aborts when the system has no thread to give.
 */
struct store_writer *store_writer_start(struct store *store, size_t cap_bytes, store_done_fn done,
                                        void *ctx);

/* Copy the batch and queue it. Never blocks on the disk. Any thread, but order is per thread. */
void store_writer_submit(struct store_writer *writer, const struct gossip_batch *batch,
                         uint64_t token);

/* Write what is queued, report it, end the thread, free the writer. The store is the caller's
 * again. */
void store_writer_stop(struct store_writer *writer);

/* Counters since the start. Any thread. */
struct store_stats {
    uint64_t commits;       /* transactions made durable */
    uint64_t jobs;          /* batches reported, failed ones included */
    uint64_t failed;        /* batches reported with an error */
    uint64_t batch_max;     /* most batches in one transaction */
    uint64_t commit_us;     /* the last transaction, begin to durable */
    uint64_t queue_jobs;    /* waiting or being written now */
    uint64_t queue_bytes;   /* the same in bytes */
    uint64_t frontier_held; /* 1: see store_note_failed */
};
void store_writer_stats(const struct store_writer *writer, struct store_stats *ret_stats);

#endif
