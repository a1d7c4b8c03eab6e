/*
 * Chunks and queues of chunks; see chunk.h.
 */
#include "node/proxy/chunk.h"

#include "node/base/check.h"
#include "node/base/mem.h"

#include <string.h>

/* Allocated sizes, headers included; how many of each are kept is what a busy worker needs. */
static const uint32_t class_size[CHUNK_CLASSES] = {1024, 4096, 16384, 65536 + 1024};
static const uint32_t class_keep[CHUNK_CLASSES] = {1024, 256, 128, 32};

#if defined(__SANITIZE_ADDRESS__)
enum { RECYCLE = 0 };
#else
enum { RECYCLE = 1 };
#endif

void chunk_pool_deinit(struct chunk_pool *pool)
{
    ASSERT(pool->held_bytes == 0);
    for (size_t i = 0; i < CHUNK_CLASSES; i++) {
        while (pool->free[i] != NULL) {
            struct chunk *chunk = pool->free[i];
            pool->free[i] = chunk->next;
            mem_free(chunk);
        }
        pool->free_count[i] = 0;
    }
}

static struct chunk *chunk_begin(struct chunk_pool *pool, struct chunk *chunk, uint32_t klass)
{
    chunk->next = NULL;
    chunk->size = class_size[klass] - (uint32_t)sizeof(struct chunk);
    chunk->start = chunk->end = 0;
    chunk->klass = (uint16_t)klass;
    chunk->shares = 0;
    pool->held_bytes += class_size[klass];
    return chunk;
}

static __attribute__((noinline)) struct chunk *chunk_new(struct chunk_pool *pool, uint32_t klass)
{
    return chunk_begin(pool, mem_grow(NULL, class_size[klass], 1), klass); /* need not be zero */
}

struct chunk *chunk_take(struct chunk_pool *pool, size_t len)
{
    uint32_t klass = 0;
    while (class_size[klass] - sizeof(struct chunk) < len) {
        klass++;
        ASSERT(klass < CHUNK_CLASSES);
    }
    struct chunk *chunk = pool->free[klass];
    if (UNLIKELY(chunk == NULL)) {
        return chunk_new(pool, klass);
    }
    pool->free[klass] = chunk->next;
    pool->free_count[klass]--;
    return chunk_begin(pool, chunk, klass);
}

void chunk_put(struct chunk_pool *pool, struct chunk *chunk)
{
    if (chunk->shares != 0) {
        chunk->shares--;
        return;
    }
    uint32_t klass = chunk->klass;
    pool->held_bytes -= class_size[klass];
    if (!RECYCLE || pool->free_count[klass] >= class_keep[klass]) {
        mem_free(chunk);
        return;
    }
    chunk->next = pool->free[klass];
    pool->free[klass] = chunk;
    pool->free_count[klass]++;
}

static void queue_add(struct chunkq *queue, struct chunk *chunk)
{
    if (queue->tail != NULL) {
        queue->tail->next = chunk;
    } else {
        queue->head = chunk;
    }
    queue->tail = chunk;
}

void chunkq_begin(struct chunk_pool *pool, struct chunkq *queue, size_t len)
{
    if (queue->head == NULL) {
        queue_add(queue, chunk_take(pool, len));
    }
}

void chunkq_put(struct chunk_pool *pool, struct chunkq *queue, const void *bytes, size_t len)
{
    const char *from = bytes;
    while (len != 0) {
        struct chunk *tail = queue->tail;
        if (tail == NULL || tail->end == tail->size) {
            /* Much waiting calls for large chunks: fewer of them in one write. */
            size_t want = queue->len == 0 ? len : MAX(len, (size_t)16000);
            tail = chunk_take(pool, MIN(want, (size_t)65536));
            queue_add(queue, tail);
        }
        size_t n = MIN(len, (size_t)(tail->size - tail->end));
        memcpy(tail->bytes + tail->end, from, n);
        tail->end += (uint32_t)n;
        queue->len += n;
        from += n;
        len -= n;
    }
}

struct chunk *chunkq_shift(struct chunkq *queue)
{
    struct chunk *chunk = queue->head;
    if (chunk == NULL) {
        return NULL;
    }
    queue->head = chunk->next;
    if (queue->head == NULL) {
        queue->tail = NULL;
    }
    queue->len -= chunk->end - chunk->start;
    chunk->next = NULL;
    return chunk;
}

void chunkq_clear(struct chunk_pool *pool, struct chunkq *queue)
{
    struct chunk *chunk;
    while ((chunk = chunkq_shift(queue)) != NULL) {
        chunk_put(pool, chunk);
    }
}

char *chunkq_pull(struct chunk_pool *pool, struct chunkq *queue, size_t len)
{
    ASSERT(queue->head != NULL && len <= queue->len);
    if (queue->head->end - queue->head->start >= len) {
        return queue->head->bytes + queue->head->start;
    }
    struct chunk *flat = chunk_take(pool, len);
    while (flat->end < len) {
        const struct chunk *head = queue->head;
        size_t n = MIN(len - flat->end, (size_t)(head->end - head->start));
        memcpy(flat->bytes + flat->end, head->bytes + head->start, n);
        flat->end += (uint32_t)n;
        chunkq_drop(pool, queue, n);
    }
    flat->next = queue->head;
    queue->head = flat;
    if (queue->tail == NULL) {
        queue->tail = flat;
    }
    queue->len += flat->end;
    return flat->bytes;
}

static __attribute__((noinline)) void drop_part(struct chunk_pool *pool, struct chunkq *queue,
                                                size_t len)
{
    while (len != 0) {
        struct chunk *head = queue->head;
        size_t n = MIN(len, (size_t)(head->end - head->start));
        head->start += (uint32_t)n;
        queue->len -= n;
        len -= n;
        if (head->start == head->end) {
            chunk_put(pool, chunkq_shift(queue));
        }
    }
}

void chunkq_drop(struct chunk_pool *pool, struct chunkq *queue, size_t len)
{
    ASSERT(len <= queue->len);
    struct chunk *head = queue->head;
    if (UNLIKELY(len != queue->len || head != queue->tail)) {
        drop_part(pool, queue, len);
    } else if (len != 0) { /* all of it, in one chunk */
        *queue = (struct chunkq){0};
        chunk_put(pool, head);
    }
}
