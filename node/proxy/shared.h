/*
 * What objects seen by several threads are made of: atomic reference counts, counters written by
 * one thread and summed by another, and memory on cache-line borders.
 *
 * A count may be raised only by somebody who holds a reference, or by a worker that found the
 * object through a published pointer in this iteration (qsbr.h keeps the publisher's reference
 * until every worker has passed).
 * Thread: any.
 */
#ifndef SKEIN_NODE_PROXY_SHARED_H
#define SKEIN_NODE_PROXY_SHARED_H

#include "node/base/check.h"
#include "node/base/defs.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { CACHE_LINE = 64 };

struct refcnt {
    _Atomic uint32_t count;
};

static inline void refcnt_init(struct refcnt *refs)
{
    atomic_init(&refs->count, 1);
}

static inline void refcnt_get(struct refcnt *refs)
{
    uint32_t old = atomic_fetch_add_explicit(&refs->count, 1, memory_order_relaxed);
    ASSERT(old != 0 && old < UINT32_MAX / 2);
}

/* True: that was the last one, and everything done under the others is visible here. */
static inline bool refcnt_put(struct refcnt *refs)
{
    uint32_t old = atomic_fetch_sub_explicit(&refs->count, 1, memory_order_acq_rel);
    ASSERT(old != 0);
    return old == 1;
}

/* A number that one thread writes and any thread reads. */
struct counter {
    _Atomic uint64_t value;
};

static inline uint64_t counter_read(const struct counter *counter)
{
    return atomic_load_explicit(&counter->value, memory_order_relaxed);
}

/* Thread: the one that writes. */
static inline void counter_set(struct counter *counter, uint64_t value)
{
    atomic_store_explicit(&counter->value, value, memory_order_relaxed);
}

static inline void counter_add(struct counter *counter, uint64_t n)
{
    counter_set(counter, counter_read(counter) + n);
}

/* Zeroed memory that starts on a cache line; mem_free releases it. Aborts when there is none. */
static inline void *mem_lines(size_t size)
{
    size = (size + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    void *ptr = aligned_alloc(CACHE_LINE, size);
    ASSERT(ptr != NULL);
    memset(ptr, 0, size);
    return ptr;
}

#endif
