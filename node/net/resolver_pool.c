/*
 * Detached threads, made when there is work for them, at most RESOLVER_THREADS_MAX.
 *
 * The lock protects everything but `async`, `done` and `arg`, which belong to the loop's thread;
 * it is a leaf, and nobody calls back under it. refs counts the threads and, until the handle is
 * closed, the loop: the last one frees the pool.
 */
#include "node/net/resolver_pool.h"

#include "node/base/check.h"
#include "node/base/mem.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum {
    STACK_BYTES = 512 * 1024, /* name services are modules with ways of their own */
    FOUND_MAX = 1024,         /* addresses of one answer, before duplicates go */
};

struct queue {
    struct resolver_job *head;
    struct resolver_job **tail;
};

struct resolver_pool {
    uv_async_t async;
    void (*done)(void *arg, struct resolver_job *job);
    void *arg;
    void (*closed)(void *arg);
    void *closed_arg;
    const struct resolver_ops *ops;
    void *ctx;

    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct queue steady;
    struct queue failing;
    struct queue ended;
    unsigned refs;
    unsigned threads;
    unsigned idle;
    size_t queued; /* jobs in steady and failing */
    unsigned running_failing;
    bool stopped;
};

static void queue_init(struct queue *queue)
{
    queue->head = NULL;
    queue->tail = &queue->head;
}

static void queue_put(struct queue *queue, struct resolver_job *job)
{
    job->next = NULL;
    *queue->tail = job;
    queue->tail = &job->next;
}

static struct resolver_job *queue_take(struct queue *queue)
{
    struct resolver_job *job = queue->head;
    if (job != NULL) {
        queue->head = job->next;
        if (queue->head == NULL) {
            queue->tail = &queue->head;
        }
    }
    return job;
}

static void queue_drop(struct queue *queue)
{
    struct resolver_job *job;
    while ((job = queue_take(queue)) != NULL) {
        resolver_job_free(job);
    }
}

void resolver_job_free(struct resolver_job *job)
{
    if (job != NULL) {
        mem_free(job->host);
        mem_free(job);
    }
}

/* ---- threads ---- */

/* Gives the lock back. */
static void pool_unref_locked(struct resolver_pool *pool)
{
    bool last = --pool->refs == 0;
    ASSERT(pthread_mutex_unlock(&pool->lock) == 0);
    if (last) {
        (void)pthread_cond_destroy(&pool->wake);  /* nobody waits */
        (void)pthread_mutex_destroy(&pool->lock); /* nobody holds it */
        mem_free(pool);
    }
}

static int compare(const void *a, const void *b)
{
    return addr_compare(a, b);
}

/* Sort, drop duplicates and ports, keep what fits. */
static void settle(struct resolver_job *job, struct addr *found, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        addr_set_port(&found[i], 0);
    }
    qsort(found, count, sizeof(*found), compare);
    for (size_t i = 0; i < count && job->count < RESOLVER_ADDRS_MAX; i++) {
        if (job->count == 0 || addr_compare(&job->addrs[job->count - 1], &found[i]) != 0) {
            job->addrs[job->count++] = found[i];
        }
    }
}

static void run(const struct resolver_pool *pool, struct resolver_job *job)
{
    struct addr *found = mem_array(FOUND_MAX, sizeof(*found));
    size_t count = 0;
    job->rc = pool->ops->lookup(pool->ctx, job->host, found, FOUND_MAX, &count, &job->err);
    if (job->rc == RC_OK && count == 0) {
        job->rc = err_set(&job->err, RC_NOT_FOUND, "the name has no addresses");
    }
    if (job->rc == RC_OK) {
        settle(job, found, count);
    }
    mem_free(found);
}

static struct resolver_job *next_locked(struct resolver_pool *pool)
{
    struct resolver_job *job = queue_take(&pool->steady);
    if (job == NULL && pool->running_failing < RESOLVER_THREADS_MAX / 2) {
        job = queue_take(&pool->failing);
    }
    pool->queued -= job != NULL;
    return job;
}

static void *thread_main(void *arg)
{
    struct resolver_pool *pool = arg;
    ASSERT(pthread_mutex_lock(&pool->lock) == 0);
    while (!pool->stopped) {
        struct resolver_job *job = next_locked(pool);
        if (job == NULL) {
            pool->idle++;
            ASSERT(pthread_cond_wait(&pool->wake, &pool->lock) == 0);
            pool->idle--;
            continue;
        }
        pool->running_failing += job->failing;
        ASSERT(pthread_mutex_unlock(&pool->lock) == 0);
        run(pool, job);
        ASSERT(pthread_mutex_lock(&pool->lock) == 0);
        pool->running_failing -= job->failing;
        if (pool->stopped) {
            resolver_job_free(job);
        } else {
            queue_put(&pool->ended, job);
            (void)uv_async_send(&pool->async); /* the handle is open: stopped says so */
        }
    }
    pool_unref_locked(pool);
    return NULL;
}

/* All signals go to other threads. False: the machine gives no more threads. */
static bool add_thread_locked(struct resolver_pool *pool)
{
    pthread_attr_t attr;
    sigset_t all;
    sigset_t before;
    pthread_t thread;
    ASSERT(pthread_attr_init(&attr) == 0);
    (void)pthread_attr_setstacksize(&attr, STACK_BYTES); /* else the default */
    ASSERT(pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED) == 0);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    bool made = pthread_create(&thread, &attr, thread_main, pool) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attr);
    if (made) {
        pool->threads++;
        pool->refs++;
    }
    return made;
}

/* ---- the loop's side ---- */

static void on_async(uv_async_t *async)
{
    struct resolver_pool *pool = async->data;
    ASSERT(pthread_mutex_lock(&pool->lock) == 0);
    struct resolver_job *job = pool->ended.head;
    queue_init(&pool->ended);
    ASSERT(pthread_mutex_unlock(&pool->lock) == 0);
    while (job != NULL) {
        struct resolver_job *next = job->next;
        pool->done(pool->arg, job);
        job = next;
    }
}

struct resolver_pool *resolver_pool_new(uv_loop_t *loop, const struct resolver_ops *ops, void *ctx,
                                        void (*done)(void *arg, struct resolver_job *job),
                                        void *arg)
{
    struct resolver_pool *pool = mem_new(sizeof(*pool));
    pool->ops = ops;
    pool->ctx = ctx;
    pool->done = done;
    pool->arg = arg;
    pool->refs = 1;
    queue_init(&pool->steady);
    queue_init(&pool->failing);
    queue_init(&pool->ended);
    ASSERT(pthread_mutex_init(&pool->lock, NULL) == 0);
    ASSERT(pthread_cond_init(&pool->wake, NULL) == 0);
    ASSERT(uv_async_init(loop, &pool->async, on_async) == 0);
    pool->async.data = pool;
    return pool;
}

/* There is no thread at all: what is queued fails. */
static void refuse_locked(struct resolver_pool *pool)
{
    struct resolver_job *job;
    while ((job = next_locked(pool)) != NULL) {
        job->rc = err_set(&job->err, RC_NO_MEMORY, "this machine gives no thread for look-ups");
        queue_put(&pool->ended, job);
    }
    (void)uv_async_send(&pool->async); /* the handle is open */
}

void resolver_pool_start(struct resolver_pool *pool, struct resolver_job *job)
{
    ASSERT(pthread_mutex_lock(&pool->lock) == 0);
    queue_put(job->failing ? &pool->failing : &pool->steady, job);
    pool->queued++;
    if (pool->queued > pool->idle && pool->threads < RESOLVER_THREADS_MAX &&
        !add_thread_locked(pool) && pool->threads == 0) {
        refuse_locked(pool);
    }
    ASSERT(pthread_cond_signal(&pool->wake) == 0);
    ASSERT(pthread_mutex_unlock(&pool->lock) == 0);
}

static void on_async_closed(uv_handle_t *handle)
{
    struct resolver_pool *pool = handle->data;
    void (*closed)(void *arg) = pool->closed;
    void *arg = pool->closed_arg;
    ASSERT(pthread_mutex_lock(&pool->lock) == 0);
    pool_unref_locked(pool);
    closed(arg);
}

void resolver_pool_stop(struct resolver_pool *pool, void (*closed)(void *arg), void *arg)
{
    pool->closed = closed;
    pool->closed_arg = arg;
    ASSERT(pthread_mutex_lock(&pool->lock) == 0);
    pool->stopped = true;
    queue_drop(&pool->steady);
    queue_drop(&pool->failing);
    queue_drop(&pool->ended);
    ASSERT(pthread_cond_broadcast(&pool->wake) == 0);
    ASSERT(pthread_mutex_unlock(&pool->lock) == 0);
    uv_close((uv_handle_t *)&pool->async, on_async_closed);
}
