/*
 * Chunk queues: content survives whatever the sizes, and memory comes back.
 */
#include "node/base/rng.h"
#include "node/proxy/chunk.h"
#include "tests/support/unit.h"

static void test_classes(void **state)
{
    (void)state;
    struct chunk_pool pool = {0};
    static const size_t sizes[] = {1, 900, 1000, 4000, 16000, 65536};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        struct chunk *chunk = chunk_take(&pool, sizes[i]);
        assert_true(chunk->size >= sizes[i]);
        memset(chunk->bytes, 1, chunk->size);
        chunk_put(&pool, chunk);
    }
    assert_int_equal(pool.held_bytes, 0);
    chunk_pool_deinit(&pool);
}

static void test_random_queue_against_a_plain_buffer(void **state)
{
    (void)state;
    enum { MODEL = 1 << 20 };
    static char model[MODEL];
    static char piece[70000];
    struct chunk_pool pool = {0};
    struct chunkq queue = {0};
    struct rng rng;
    rng_init(&rng, 9);
    size_t len = 0;
    for (int step = 0; step < 5000; step++) {
        uint64_t kind = rng_below(&rng, 4);
        if (kind <= 1) {
            size_t n = rng_below(&rng, kind == 0 ? 100 : sizeof(piece));
            if (len + n > MODEL) {
                continue;
            }
            for (size_t i = 0; i < n; i++) {
                piece[i] = (char)(step + (int)i);
            }
            if (rng_chance(&rng, 0.3)) {
                chunkq_begin(&pool, &queue, 4000);
            }
            chunkq_put(&pool, &queue, piece, n);
            memcpy(model + len, piece, n);
            len += n;
        } else if (kind == 2 && len != 0) {
            size_t n = 1 + rng_below(&rng, len < 65536 ? len : 65536);
            const char *run = chunkq_pull(&pool, &queue, n);
            assert_memory_equal(run, model, n);
        } else {
            size_t n = len == 0 ? 0 : rng_below(&rng, len + 1);
            chunkq_drop(&pool, &queue, n);
            memmove(model, model + n, len - n);
            len -= n;
        }
        assert_int_equal(queue.len, len);
        assert_true(len != 0 || queue.head == NULL || queue.head->start == queue.head->end);
    }
    chunkq_clear(&pool, &queue);
    assert_int_equal(pool.held_bytes, 0);
    chunk_pool_deinit(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_random_queue_against_a_plain_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
