/*
 * Byte chunks in four sizes, recycled per worker, and queues of them.
 *
 * Nothing is held while nothing waits: a chunk is taken when bytes cannot go on at once and
 * returned when they have. Under AddressSanitizer chunks are never recycled, so stale use is seen.
 * Thread: the owner's.
 */
#ifndef SKEIN_NODE_PROXY_CHUNK_H
#define SKEIN_NODE_PROXY_CHUNK_H

#include "node/base/defs.h"

#include <string.h>

enum chunk_class {
    CHUNK_1K = 0,
    CHUNK_4K,
    CHUNK_16K,
    CHUNK_64K,
    CHUNK_CLASSES,
};

struct chunk {
    struct chunk *next;
    uint32_t size;  /* of bytes[] */
    uint32_t start; /* first byte in use */
    uint32_t end;   /* behind the last */
    uint16_t klass;
    uint16_t shares; /* how many besides one have to return it */
    char bytes[];
};

struct chunk_pool {
    struct chunk *free[CHUNK_CLASSES];
    uint32_t free_count[CHUNK_CLASSES];
    size_t held_bytes; /* taken and not returned */
};

void chunk_pool_deinit(struct chunk_pool *pool);

/* A chunk with room for at least len bytes (at most 64 KiB minus the header). */
struct chunk *chunk_take(struct chunk_pool *pool, size_t len);
void chunk_put(struct chunk_pool *pool, struct chunk *chunk);

/* For one more to return. In a queue it can be only once, where bytes may be put behind what is in
 * it; what is in it stays. */
static inline struct chunk *chunk_share(struct chunk *chunk)
{
    chunk->shares++;
    return chunk;
}

/* A first-in first-out run of bytes. Zeroed is empty. */
struct chunkq {
    struct chunk *head;
    struct chunk *tail;
    size_t len; /* bytes */
};

/* Before the first put into an empty queue: have the first chunk hold at least len bytes, so that
 * what is put piece by piece lies in one run. */
void chunkq_begin(struct chunk_pool *pool, struct chunkq *queue, size_t len);
void chunkq_put(struct chunk_pool *pool, struct chunkq *queue, const void *bytes, size_t len);

/* Put a whole chunk into an empty queue, which takes it. */
static inline void chunkq_take(struct chunkq *queue, struct chunk *chunk)
{
    queue->head = queue->tail = chunk;
    queue->len = chunk->end - chunk->start;
}

/* Put when the last chunk has room; false: nothing was done. */
static inline bool chunkq_put_fast(struct chunkq *queue, const void *bytes, size_t len)
{
    struct chunk *tail = queue->tail;
    if (tail == NULL || len > tail->size - tail->end) {
        return false;
    }
    memcpy(tail->bytes + tail->end, bytes, len);
    tail->end += (uint32_t)len;
    queue->len += len;
    return true;
}

/* Take the first chunk out, to be returned by chunk_put; NULL when empty. */
struct chunk *chunkq_shift(struct chunkq *queue);
void chunkq_clear(struct chunk_pool *pool, struct chunkq *queue);

/* Make at least the first len bytes (<= queue->len, at most 64 KiB) one run in the first chunk, and
 * return it. The queue keeps them. */
char *chunkq_pull(struct chunk_pool *pool, struct chunkq *queue, size_t len);
void chunkq_drop(struct chunk_pool *pool, struct chunkq *queue, size_t len);

#endif
