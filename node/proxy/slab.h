/*
 * Objects of one size side by side, for tables that are searched more than they are changed: what a
 * search touches lies on few pages, and on huge ones where the kernel has them.
 *
 * Memory is given back at the end only; what is put back is taken again first. The first slabs are
 * small, so that a small table stays small. Under AddressSanitizer every object is fresh memory.
 * Thread: the owner's.
 */
#ifndef SKEIN_NODE_PROXY_SLAB_H
#define SKEIN_NODE_PROXY_SLAB_H

#include "node/base/mem.h"
#include "node/proxy/shared.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    SLAB_SMALL_BYTES = 64 << 10,
    SLAB_LARGE_BYTES = 2 << 20, /* a huge page */
    SLAB_SMALL_COUNT = 16,      /* as many small ones first */
};

struct slab_item {
    struct slab_item *next;
};

struct slab {
    size_t size; /* of an object: whole cache lines */
    size_t count;
    struct slab_item *free;
    struct slab_item *slabs; /* their first lines are the links */
};

static inline void slab_init(struct slab *slab, size_t size)
{
    *slab = (struct slab){.size = (size + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE};
}

static inline void slab_grow(struct slab *slab)
{
    size_t bytes = slab->count++ < SLAB_SMALL_COUNT ? SLAB_SMALL_BYTES : SLAB_LARGE_BYTES;
    char *base = aligned_alloc(bytes, bytes);
    ASSERT(base != NULL);
    if (bytes == SLAB_LARGE_BYTES) {
        (void)madvise(base, bytes, MADV_HUGEPAGE); /* as it likes */
    }
    struct slab_item *link = (struct slab_item *)(void *)base;
    link->next = slab->slabs;
    slab->slabs = link;
    for (size_t at = CACHE_LINE; at + slab->size <= bytes; at += slab->size) {
        struct slab_item *item = (struct slab_item *)(void *)(base + at);
        item->next = slab->free;
        slab->free = item;
    }
}

/* Zeroed, on a cache line. */
static inline void *slab_take(struct slab *slab)
{
#if defined(__SANITIZE_ADDRESS__)
    return mem_lines(slab->size);
#else
    if (slab->free == NULL) {
        slab_grow(slab);
    }
    struct slab_item *item = slab->free;
    slab->free = item->next;
    memset(item, 0, slab->size);
    return item;
#endif
}

static inline void slab_put(struct slab *slab, void *ptr)
{
#if defined(__SANITIZE_ADDRESS__)
    (void)slab; /* it has no memory of its own then */
    mem_free(ptr);
#else
    struct slab_item *item = ptr;
    item->next = slab->free;
    slab->free = item;
#endif
}

/* Everything at once, taken or not. */
static inline void slab_deinit(struct slab *slab)
{
    while (slab->slabs != NULL) {
        struct slab_item *link = slab->slabs;
        slab->slabs = link->next;
        mem_free(link);
    }
    slab->free = NULL;
}

#endif
