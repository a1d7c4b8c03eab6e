/*
 * The store thread.
 *
 *   submit: copy -> queue            (submitter, lock held for the push only)
 *   thread: take the whole queue -> one transaction -> report each in order
 *
 * lock protects head, tail, queued_bytes, queued_jobs and stopping; it is a leaf and never held
 * over SQLite or over `done`. A job's batch is one block of memory together with the job.
 */
#include "store/writer.h"

#include "node/base/check.h"
#include "node/base/log.h"
#include "node/base/mem.h"
#include "node/base/timesrc.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

enum { WRITER_CAP_BYTES = 64 << 20 };

struct job {
    struct job *next;
    uint64_t token;
    size_t bytes; /* of this block */
    int rc;       /* set from the start: refused, the batch is only its keys */
    struct gossip_batch batch;
};

struct store_writer {
    struct store *store; /* the thread's */
    store_done_fn done;
    void *ctx;
    size_t cap_bytes;
    struct log_limit failure_lines; /* the thread's */
    pthread_t thread;

    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct job *head;
    struct job *tail;
    size_t queued_bytes; /* waiting and in work */
    size_t queued_jobs;
    bool stopping;

    /* Written by the thread, read by anybody. */
    _Atomic uint64_t commits;
    _Atomic uint64_t jobs;
    _Atomic uint64_t failed;
    _Atomic uint64_t batch_max;
    _Atomic uint64_t commit_us;
    _Atomic uint64_t frontier_held;
};

/* ---- copying a batch ---- */

/* Hands out pieces of one block; with base NULL it only measures. */
struct carver {
    uint8_t *base;
    size_t used;
    bool keys_only; /* leave out values and vectors */
};

static void *carve(struct carver *carver, const void *from, size_t count, size_t size)
{
    void *piece = carver->base != NULL ? carver->base + carver->used : NULL;
    size_t len = count * size;
    if (piece != NULL && from != NULL && len > 0) {
        memcpy(piece, from, len);
    }
    carver->used += (len + 7) & ~(size_t)7; /* the next piece may be anything */
    return len > 0 ? piece : NULL;
}

static void carve_rows(struct carver *carver, const struct gossip_batch *from,
                       struct gossip_batch *to)
{
    const struct row **list = carve(carver, NULL, from->row_count, sizeof(*list));
    struct row *rows = carve(carver, NULL, from->row_count, sizeof(*rows));
    for (size_t i = 0; i < from->row_count; i++) {
        struct row copy = *from->rows[i];
        copy.value_len = carver->keys_only ? 0 : copy.value_len;
        copy.vector_len = carver->keys_only ? 0 : copy.vector_len;
        copy.id = carve(carver, copy.id, copy.id_len, 1);
        copy.value = carve(carver, copy.value, copy.value_len, 1);
        copy.vector = carve(carver, copy.vector, copy.vector_len, sizeof(*copy.vector));
        if (rows != NULL) {
            rows[i] = copy;
            list[i] = &rows[i];
        }
    }
    to->rows = list;
}

/* Run twice over the same batch: to measure, then to copy. */
static void carve_batch(struct carver *carver, const struct gossip_batch *from,
                        struct gossip_batch *to)
{
    *to = *from;
    carve_rows(carver, from, to);
    to->frontier = carve(carver, from->frontier, from->frontier_count, sizeof(*from->frontier));
    to->members = carve(carver, from->members, from->member_count, sizeof(*from->members));
    to->forgotten = carve(carver, from->forgotten, from->forgotten_count, sizeof(*from->forgotten));
}

/* NULL when there is no memory. */
static struct job *job_copy(const struct gossip_batch *batch, size_t payload, bool keys_only)
{
    struct job *job = try_mem(sizeof(*job) + payload);
    if (job != NULL) {
        struct carver carver = {.base = (uint8_t *)(job + 1), .keys_only = keys_only};
        carve_batch(&carver, batch, &job->batch);
        ASSERT(carver.used == payload);
        job->bytes = sizeof(*job) + payload;
    }
    return job;
}

/* A job that only reports a failure: of the batch it has the keys and dots for store_note_failed.
 */
static struct job *job_refused(const struct gossip_batch *batch, int rc)
{
    struct gossip_batch keys = {.rows = batch->rows, .row_count = batch->row_count};
    struct carver carver = {.keys_only = true};
    struct gossip_batch unused;
    carve_batch(&carver, &keys, &unused);
    struct job *job = job_copy(&keys, carver.used, true);
    if (job == NULL) {
        check_failed("memory for the keys of a refused write", __FILE__, __LINE__);
    }
    job->rc = rc;
    return job;
}

/* ---- the thread ---- */

static void log_failure(struct store_writer *writer, int rc, const struct err_info *err)
{
    uint32_t suppressed = 0;
    if (log_limit_pass(&writer->failure_lines, 1, &suppressed)) {
        log_error("write to the database failed", "code=%s reason=%s suppressed=%u", rc_name(rc),
                  err->text, suppressed);
    }
}

/* One transaction for all jobs; sets each job's rc. */
static int write_jobs(struct store_writer *writer, struct job *jobs, struct err_info *err)
{
    struct store *store = writer->store;
    int rc = store_begin(store, err);
    for (struct job *job = jobs; job != NULL && rc == RC_OK; job = job->next) {
        if (job->rc != RC_OK) {
            continue;
        }
        job->rc = store_apply(store, &job->batch, err);
        if (!store_is_open_transaction(store)) {
            rc = job->rc;
        } else if (job->rc != RC_OK) {
            log_failure(writer, job->rc, err);
        }
    }
    return rc == RC_OK ? store_commit(store, err) : rc;
}

static void process_jobs(struct store_writer *writer, struct job *jobs)
{
    uint64_t count = 0;
    for (struct job *job = jobs; job != NULL; job = job->next) {
        count += job->rc == RC_OK ? 1 : 0;
    }
    if (count > 0) {
        struct err_info err = {0};
        uint64_t begin_ns = time_mono_ns();
        int rc = write_jobs(writer, jobs, &err);
        if (rc == RC_OK) {
            atomic_fetch_add_explicit(&writer->commits, 1, memory_order_relaxed);
        } else {
            log_failure(writer, rc, &err);
        }
        for (struct job *job = jobs; rc != RC_OK && job != NULL; job = job->next) {
            job->rc = job->rc == RC_OK ? rc : job->rc;
        }
        atomic_store_explicit(&writer->commit_us, (time_mono_ns() - begin_ns) / 1000,
                              memory_order_relaxed);
        if (count > atomic_load_explicit(&writer->batch_max, memory_order_relaxed)) {
            atomic_store_explicit(&writer->batch_max, count, memory_order_relaxed);
        }
    }
    for (struct job *job = jobs; job != NULL; job = job->next) {
        if (job->rc != RC_OK) {
            store_note_failed(writer->store, &job->batch);
        }
    }
    atomic_store_explicit(&writer->frontier_held, store_is_frontier_held(writer->store) ? 1 : 0,
                          memory_order_relaxed);
}

static void report_jobs(struct store_writer *writer, struct job *jobs)
{
    while (jobs != NULL) {
        struct job *job = jobs;
        jobs = job->next;
        pthread_mutex_lock(&writer->lock);
        writer->queued_bytes -= job->bytes;
        writer->queued_jobs--;
        pthread_mutex_unlock(&writer->lock);
        atomic_fetch_add_explicit(&writer->jobs, 1, memory_order_relaxed);
        if (job->rc != RC_OK) {
            atomic_fetch_add_explicit(&writer->failed, 1, memory_order_relaxed);
        }
        writer->done(writer->ctx, job->token, job->rc);
        mem_free(job);
    }
}

static void *writer_main(void *arg)
{
    struct store_writer *writer = arg;
    pthread_mutex_lock(&writer->lock);
    for (;;) {
        while (writer->head == NULL && !writer->stopping) {
            pthread_cond_wait(&writer->wake, &writer->lock);
        }
        struct job *jobs = writer->head;
        writer->head = NULL;
        writer->tail = NULL;
        if (jobs == NULL) {
            break;
        }
        pthread_mutex_unlock(&writer->lock);
        process_jobs(writer, jobs);
        report_jobs(writer, jobs);
        pthread_mutex_lock(&writer->lock);
    }
    pthread_mutex_unlock(&writer->lock);
    return NULL;
}

/* ---- public ---- */

struct store_writer *store_writer_start(struct store *store, size_t cap_bytes, store_done_fn done,
                                        void *ctx)
{
    struct store_writer *writer = mem_new(sizeof(*writer));
    writer->store = store;
    writer->done = done;
    writer->ctx = ctx;
    writer->cap_bytes = cap_bytes > 0 ? cap_bytes : WRITER_CAP_BYTES;
    ASSERT(pthread_mutex_init(&writer->lock, NULL) == 0);
    ASSERT(pthread_cond_init(&writer->wake, NULL) == 0);

    /* Signals belong to the threads that wait for them. */
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    ASSERT(pthread_create(&writer->thread, NULL, writer_main, writer) == 0);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_setname_np(writer->thread, "store");
    return writer;
}

void store_writer_submit(struct store_writer *writer, const struct gossip_batch *batch,
                         uint64_t token)
{
    struct gossip_batch unused;
    struct carver measure = {0};
    carve_batch(&measure, batch, &unused);
    size_t bytes = sizeof(struct job) + measure.used;

    pthread_mutex_lock(&writer->lock);
    bool fits = bytes <= writer->cap_bytes && writer->queued_bytes <= writer->cap_bytes - bytes;
    pthread_mutex_unlock(&writer->lock);

    struct job *job = fits ? job_copy(batch, measure.used, false) : job_refused(batch, RC_FULL);
    if (job == NULL) {
        job = job_refused(batch, RC_NO_MEMORY);
    }
    job->token = token;
    job->next = NULL;

    pthread_mutex_lock(&writer->lock);
    ASSERT(!writer->stopping);
    if (writer->tail != NULL) {
        writer->tail->next = job;
    } else {
        writer->head = job;
    }
    writer->tail = job;
    writer->queued_bytes += job->bytes;
    writer->queued_jobs++;
    pthread_cond_signal(&writer->wake);
    pthread_mutex_unlock(&writer->lock);
}

void store_writer_stop(struct store_writer *writer)
{
    pthread_mutex_lock(&writer->lock);
    writer->stopping = true;
    pthread_cond_signal(&writer->wake);
    pthread_mutex_unlock(&writer->lock);
    ASSERT(pthread_join(writer->thread, NULL) == 0);
    ASSERT(writer->head == NULL && writer->queued_jobs == 0);
    (void)pthread_cond_destroy(&writer->wake);  /* nobody waits */
    (void)pthread_mutex_destroy(&writer->lock); /* nobody holds it */
    mem_free(writer);
}

void store_writer_stats(const struct store_writer *writer, struct store_stats *ret_stats)
{
    struct store_writer *mutable = unconst(writer);
    *ret_stats = (struct store_stats){
        .commits = atomic_load_explicit(&mutable->commits, memory_order_relaxed),
        .jobs = atomic_load_explicit(&mutable->jobs, memory_order_relaxed),
        .failed = atomic_load_explicit(&mutable->failed, memory_order_relaxed),
        .batch_max = atomic_load_explicit(&mutable->batch_max, memory_order_relaxed),
        .commit_us = atomic_load_explicit(&mutable->commit_us, memory_order_relaxed),
        .frontier_held = atomic_load_explicit(&mutable->frontier_held, memory_order_relaxed),
    };
    pthread_mutex_lock(&mutable->lock);
    ret_stats->queue_jobs = writer->queued_jobs;
    ret_stats->queue_bytes = writer->queued_bytes;
    pthread_mutex_unlock(&mutable->lock);
}
