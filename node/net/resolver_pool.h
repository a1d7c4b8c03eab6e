/*
 * The threads that look names up. Private to this folder.
 *
 * Jobs are started by the loop's thread and come back to it through an async handle, in the order
 * in which they end. The pool outlives its resolver until its last thread has ended; a job that
 * ends after resolver_pool_stop is freed by its thread.
 */
#ifndef SKEIN_NODE_NET_RESOLVER_POOL_H
#define SKEIN_NODE_NET_RESOLVER_POOL_H

#include "node/net/resolver.h"

struct resolver_name;

struct resolver_job {
    struct resolver_job *next;
    struct resolver_name *name; /* the loop's thread alone; NULL: nobody waits for it any more */
    bool failing;               /* counts against the half for failing names */
    char *host;
    int rc;
    struct addr addrs[RESOLVER_ADDRS_MAX]; /* sorted, without duplicates, port 0 */
    size_t count;
    struct err_info err;
};

struct resolver_pool;

/* done is called on the loop's thread and takes the job (resolver_job_free). Aborts when the kernel
 * gives no descriptor. */
struct resolver_pool *resolver_pool_new(uv_loop_t *loop, const struct resolver_ops *ops, void *ctx,
                                        void (*done)(void *arg, struct resolver_job *job),
                                        void *arg);

/* Takes the job. */
void resolver_pool_start(struct resolver_pool *pool, struct resolver_job *job);

/* No job comes back any more; closed is called when the loop has closed the handle. */
void resolver_pool_stop(struct resolver_pool *pool, void (*closed)(void *arg), void *arg);

void resolver_job_free(struct resolver_job *job); /* NULL is accepted */

#endif
