/*
 * Reclamation: what may go when, and that readers never see what went.
 */
#include "node/base/mem.h"
#include "node/proxy/qsbr.h"
#include "tests/support/unit.h"

#include <pthread.h>

struct thing {
    struct qsbr_node node;
    _Atomic int value;
};

static int released;

static void release(struct qsbr_node *node)
{
    released++;
    mem_free(CONTAINER_OF(node, struct thing, node));
}

static struct thing *thing_new(int value)
{
    struct thing *thing = mem_new(sizeof(*thing));
    atomic_store(&thing->value, value);
    return thing;
}

static void test_waits_for_readers_that_were_online(void **state)
{
    (void)state;
    struct qsbr qsbr;
    qsbr_init(&qsbr, 3);
    released = 0;
    qsbr_online(&qsbr, &qsbr.readers[0]);
    qsbr_defer(&qsbr, &thing_new(1)->node, release);
    qsbr_online(&qsbr, &qsbr.readers[1]); /* after it: cannot have found it */
    assert_int_equal(qsbr_reclaim(&qsbr), 0);
    qsbr_offline(&qsbr.readers[0]);
    assert_int_equal(qsbr_reclaim(&qsbr), 1);
    assert_int_equal(released, 1);
    qsbr_offline(&qsbr.readers[1]);
    qsbr_deinit(&qsbr);
}

static void test_order_and_partial(void **state)
{
    (void)state;
    struct qsbr qsbr;
    qsbr_init(&qsbr, 2);
    released = 0;
    qsbr_defer(&qsbr, &thing_new(1)->node, release);
    qsbr_defer(&qsbr, &thing_new(2)->node, release);
    qsbr_online(&qsbr, &qsbr.readers[0]);
    qsbr_defer(&qsbr, &thing_new(3)->node, release);
    assert_int_equal(qsbr_reclaim(&qsbr), 2);
    /* A second call of online in one iteration does not move the reader on. */
    qsbr_online(&qsbr, &qsbr.readers[0]);
    assert_int_equal(qsbr_reclaim(&qsbr), 0);
    qsbr_offline(&qsbr.readers[0]);
    assert_int_equal(qsbr_reclaim(&qsbr), 1);
    qsbr_deinit(&qsbr);
}

static struct qsbr *nested_qsbr;

static void release_and_defer(struct qsbr_node *node)
{
    release(node);
    qsbr_defer(nested_qsbr, &thing_new(9)->node, release);
}

static void test_what_a_release_defers_waits_for_its_own_turn(void **state)
{
    (void)state;
    struct qsbr qsbr;
    nested_qsbr = &qsbr;
    qsbr_init(&qsbr, 1);
    released = 0;
    qsbr_defer(&qsbr, &thing_new(1)->node, release_and_defer);
    assert_int_equal(qsbr_reclaim(&qsbr), 1);
    assert_int_equal(qsbr_reclaim(&qsbr), 1);
    qsbr_defer(&qsbr, &thing_new(1)->node, release_and_defer);
    qsbr_post_mt(&qsbr, &thing_new(2)->node, release_and_defer);
    qsbr_deinit(&qsbr); /* everything goes */
    assert_int_equal(released, 6);
}

enum { ROUNDS = 20000, READERS = 2 };

struct arena {
    struct qsbr qsbr;
    _Atomic(struct thing *) published;
    _Atomic bool stop;
    _Atomic int bad;
};

struct reader_arg {
    struct arena *arena;
    size_t idx;
};

static void *read_loop(void *arg)
{
    struct reader_arg *self = arg;
    struct arena *arena = self->arena;
    struct qsbr_reader *reader = &arena->qsbr.readers[self->idx];
    while (!atomic_load(&arena->stop)) {
        qsbr_online(&arena->qsbr, reader);
        struct thing *thing = atomic_load_explicit(&arena->published, memory_order_seq_cst);
        for (int i = 0; i < 3; i++) {
            if (atomic_load(&thing->value) != 42) {
                atomic_fetch_add(&arena->bad, 1);
            }
        }
        qsbr_offline(reader);
    }
    return NULL;
}

static void poison(struct qsbr_node *node)
{
    struct thing *thing = CONTAINER_OF(node, struct thing, node);
    atomic_store(&thing->value, -1);
    mem_free(thing);
}

static void test_concurrent_readers(void **state)
{
    (void)state;
    struct arena arena = {0};
    qsbr_init(&arena.qsbr, READERS);
    atomic_store(&arena.published, thing_new(42));
    pthread_t threads[READERS];
    struct reader_arg args[READERS];
    for (size_t i = 0; i < READERS; i++) {
        args[i] = (struct reader_arg){.arena = &arena, .idx = i};
        assert_int_equal(pthread_create(&threads[i], NULL, read_loop, &args[i]), 0);
    }
    for (int i = 0; i < ROUNDS; i++) {
        struct thing *old =
            atomic_exchange_explicit(&arena.published, thing_new(42), memory_order_seq_cst);
        qsbr_defer(&arena.qsbr, &old->node, poison);
        if (i % 3 == 0) {
            (void)qsbr_reclaim(&arena.qsbr);
        }
    }
    atomic_store(&arena.stop, true);
    for (size_t i = 0; i < READERS; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(atomic_load(&arena.bad), 0);
    mem_free(atomic_load(&arena.published));
    qsbr_deinit(&arena.qsbr);
}

static void *post_loop(void *arg)
{
    struct qsbr *qsbr = arg;
    for (int i = 0; i < 1000; i++) {
        qsbr_post_mt(qsbr, &thing_new(i)->node, release);
    }
    return NULL;
}

static void test_posts_from_threads_all_arrive(void **state)
{
    (void)state;
    struct qsbr qsbr;
    qsbr_init(&qsbr, 1);
    released = 0;
    pthread_t threads[3];
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, post_loop, &qsbr), 0);
    }
    size_t count = 0;
    for (int i = 0; i < 100; i++) {
        count += qsbr_reclaim(&qsbr);
    }
    for (size_t i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }
    count += qsbr_reclaim(&qsbr);
    assert_int_equal(count, 3000);
    assert_int_equal(released, 3000);
    qsbr_deinit(&qsbr);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waits_for_readers_that_were_online),
        cmocka_unit_test(test_order_and_partial),
        cmocka_unit_test(test_what_a_release_defers_waits_for_its_own_turn),
        cmocka_unit_test(test_concurrent_readers),
        cmocka_unit_test(test_posts_from_threads_all_arrive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
