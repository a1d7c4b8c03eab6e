/*
 * Fixed-size objects of one worker, recycled. Under AddressSanitizer every object is fresh memory.
 * Thread: the owner's.
 */
#ifndef SKEIN_NODE_PROXY_POOL_H
#define SKEIN_NODE_PROXY_POOL_H

#include "node/base/mem.h"
#include "node/proxy/shared.h"

struct pool_item {
    struct pool_item *next;
};

struct pool {
    size_t size;
    size_t keep; /* free ones kept at most */
    size_t free_count;
    size_t taken_count;
    struct pool_item *free;
};

static inline void pool_init(struct pool *pool, size_t size, size_t keep)
{
    *pool = (struct pool){.size = size, .keep = keep};
}

/* Content is whatever the last user left. */
static inline void *pool_take(struct pool *pool)
{
    pool->taken_count++;
    struct pool_item *item = pool->free;
    if (item == NULL) {
        return mem_grow(NULL, pool->size, 1);
    }
    pool->free = item->next;
    pool->free_count--;
    return item;
}

static inline void pool_put(struct pool *pool, void *ptr)
{
    ASSERT(pool->taken_count != 0);
    pool->taken_count--;
#if defined(__SANITIZE_ADDRESS__)
    mem_free(ptr);
#else
    if (pool->free_count >= pool->keep) {
        mem_free(ptr);
        return;
    }
    struct pool_item *item = ptr;
    item->next = pool->free;
    pool->free = item;
    pool->free_count++;
#endif
}

static inline void pool_deinit(struct pool *pool)
{
    ASSERT(pool->taken_count == 0);
    while (pool->free != NULL) {
        struct pool_item *item = pool->free;
        pool->free = item->next;
        mem_free(item);
    }
}

#endif
