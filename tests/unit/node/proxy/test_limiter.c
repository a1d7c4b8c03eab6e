/*
 * limiter: how many pass and when the next one may, for one key, for many, and from many threads.
 */
#include "tests/support/unit.h"

#include "node/base/rng.h"
#include "node/proxy/limiter.h"

#include <pthread.h>
#include <stdatomic.h>

#define SECOND UINT64_C(1000000000)

static struct limiter *limiter;

static uint64_t key_of(const struct limit *limit, const char *text)
{
    return limiter_key_bytes(limiter, limit, text, strlen(text));
}

static bool take(const struct limit *limit, uint64_t key, uint64_t now_ns)
{
    uint64_t wait_ns;
    return limiter_take(limiter, limit, key, now_ns, &wait_ns);
}

static void rates(void **state)
{
    (void)state;
    struct limit limit;
    uint64_t now = 1000 * SECOND;
    uint64_t wait_ns = 0;
    limit_init(&limit, limit_id(limiter, "a", 1), 10, 1000, 0, 0); /* ten per second */
    uint64_t key = key_of(&limit, "client");
    for (int i = 0; i < 10; i++) {
        assert_true(take(&limit, key, now));
    }
    assert_false(limiter_take(limiter, &limit, key, now, &wait_ns));
    assert_int_equal(wait_ns, SECOND / 10);
    assert_false(take(&limit, key, now + wait_ns - 1));
    assert_true(take(&limit, key, now + wait_ns));
    assert_false(take(&limit, key, now + wait_ns));
    assert_true(take(&limit, key_of(&limit, "other"), now));
    for (int i = 0; i < 10; i++) { /* full again after a window */
        assert_true(take(&limit, key, now + 3 * SECOND));
    }
    assert_false(take(&limit, key, now + 3 * SECOND));
}

static void bursts_and_steady_rates(void **state)
{
    (void)state;
    struct limit limit;
    uint64_t now = 5000 * SECOND;
    limit_init(&limit, limit_id(limiter, "b", 1), 100, 1000, 1, 0);
    uint64_t key = key_of(&limit, "x");
    unsigned passed = 0;
    for (uint64_t ms = 0; ms < 1000; ms++) {
        passed += take(&limit, key, now + ms * 1000000);
    }
    assert_int_equal(passed, 100); /* one each 10 ms */
    limit_init(&limit, limit_id(limiter, "c", 1), 1, 86400000, 1000000000, 0);
    assert_true(limit.slack_ns >= UINT64_C(1) << 61); /* and no overflow */
    assert_true(take(&limit, key_of(&limit, "x"), now));
    limit_init(&limit, limit_id(limiter, "d", 1), 1000000000, 100, 0, 0);
    assert_int_equal(limit.interval_ns, 1);
    /* A limit that became tighter believes no more debt than it can make. */
    struct limit slow, fast;
    limit_init(&slow, 42, 1, 86400000, 0, 0);
    limit_init(&fast, 42, 10, 1000, 0, 0);
    assert_true(take(&slow, key_of(&slow, "y"), now));
    uint64_t wait_ns = 0;
    assert_false(limiter_take(limiter, &fast, key_of(&fast, "y"), now, &wait_ns));
    assert_true(wait_ns <= SECOND);
}

static void keys(void **state)
{
    (void)state;
    struct limit limit, other;
    limit_init(&limit, 1, 1, 1000, 0, 0);
    limit_init(&other, 2, 1, 1000, 0, 0);
    struct addr a, b, c, d, e;
    assert_int_equal(addr_parse("10.0.0.1:80", &a, NULL), RC_OK);
    assert_int_equal(addr_parse("[::ffff:10.0.0.1]:81", &b, NULL), RC_OK);
    assert_int_equal(addr_parse("[2001:db8::1]:80", &c, NULL), RC_OK);
    assert_int_equal(addr_parse("[2001:db8::ffff:1]:81", &d, NULL), RC_OK);
    assert_int_equal(addr_parse("[2001:db8:0:1::1]:80", &e, NULL), RC_OK);
    assert_true(limiter_key_addr(limiter, &limit, &a) == limiter_key_addr(limiter, &limit, &b));
    assert_true(limiter_key_addr(limiter, &limit, &c) == limiter_key_addr(limiter, &limit, &d));
    assert_true(limiter_key_addr(limiter, &limit, &c) != limiter_key_addr(limiter, &limit, &e));
    assert_true(limiter_key_addr(limiter, &limit, &a) != limiter_key_addr(limiter, &other, &a));
    assert_true(limiter_key_all(limiter, &limit) == limiter_key_all(limiter, &limit));
    assert_true(limiter_key_all(limiter, &limit) != limiter_key_all(limiter, &other));
}

static void many_keys(void **state)
{
    (void)state;
    enum { KEYS = 200000 };
    struct limit limit;
    uint64_t now = 9000 * SECOND;
    limit_init(&limit, limit_id(limiter, "many", 4), 1, 3600000, 0, 0);
    for (uint32_t i = 0; i < KEYS; i++) {
        assert_true(take(&limit, limiter_key_bytes(limiter, &limit, (const char *)&i, 4), now + i));
    }
    unsigned remembered = 0;
    for (uint32_t i = 0; i < KEYS; i++) {
        remembered +=
            !take(&limit, limiter_key_bytes(limiter, &limit, (const char *)&i, 4), now + SECOND);
    }
    assert_true(remembered > KEYS * 98 / 100); /* full sets forget the stalest, few of them */
}

static void places(void **state)
{
    (void)state;
    struct limit limit;
    limit_init(&limit, limit_id(limiter, "p", 1), 0, 0, 0, 3);
    uint64_t key = key_of(&limit, "x");
    struct limiter_place *held[3];
    for (size_t round = 0; round < 3; round++) {
        for (size_t i = 0; i < 3; i++) {
            held[i] = limiter_enter(limiter, &limit, key);
            assert_non_null(held[i]);
        }
        assert_null(limiter_enter(limiter, &limit, key));
        struct limiter_place *other = limiter_enter(limiter, &limit, key_of(&limit, "y"));
        assert_non_null(other);
        limiter_leave(other);
        limiter_leave(held[0]);
        held[0] = limiter_enter(limiter, &limit, key);
        assert_non_null(held[0]);
        assert_null(limiter_enter(limiter, &limit, key));
        for (size_t i = 0; i < 3; i++) {
            limiter_leave(held[i]);
        }
    }
    limiter_leave(NULL);
}

/* ---- threads ---- */

enum { THREADS = 4, ROUNDS = 100000 };

static struct limit shared;
static _Atomic unsigned passed_all;
static _Atomic int inside[8];
static _Atomic bool too_many;

static void *take_all(void *arg)
{
    (void)arg;
    unsigned passed = 0;
    for (int i = 0; i < ROUNDS; i++) {
        passed += take(&shared, key_of(&shared, "hot"), 20000 * SECOND);
    }
    atomic_fetch_add(&passed_all, passed);
    return NULL;
}

static void *enter_and_leave(void *arg)
{
    struct rng rng;
    rng_init(&rng, (uint64_t)(uintptr_t)arg);
    for (int i = 0; i < ROUNDS; i++) {
        size_t who = rng_below(&rng, ARRAY_LEN(inside));
        char name = (char)('a' + who);
        uint64_t key = limiter_key_bytes(limiter, &shared, &name, 1);
        struct limiter_place *place = limiter_enter(limiter, &shared, key);
        if (place != NULL) {
            if (atomic_fetch_add(&inside[who], 1) >= 2 * (int)shared.at_once) {
                atomic_store(&too_many, true);
            }
            atomic_fetch_sub(&inside[who], 1);
            limiter_leave(place);
        }
    }
    return NULL;
}

static void run(void *(*body)(void *))
{
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, body, (void *)(uintptr_t)(i + 1)), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
}

static void threads_share_one_limit(void **state)
{
    (void)state;
    limit_init(&shared, limit_id(limiter, "t", 1), 1000, 1000, 0, 0);
    uint64_t key = key_of(&shared, "hot");
    assert_true(take(&shared, key, 20000 * SECOND)); /* its slot is there */
    run(take_all);
    assert_int_equal(atomic_load(&passed_all), 999);
    limit_init(&shared, limit_id(limiter, "u", 1), 0, 0, 0, 2);
    run(enter_and_leave);
    assert_false(atomic_load(&too_many));
    struct limiter_place *held[2];
    for (char name = 'a'; name < 'a' + (char)ARRAY_LEN(inside); name++) { /* all came back */
        uint64_t one = limiter_key_bytes(limiter, &shared, &name, 1);
        held[0] = limiter_enter(limiter, &shared, one);
        held[1] = limiter_enter(limiter, &shared, one);
        assert_true(held[0] != NULL && held[1] != NULL);
        limiter_leave(held[0]);
        limiter_leave(held[1]);
    }
}

static int set_up(void **state)
{
    (void)state;
    limiter = limiter_new();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    limiter_free(limiter);
    limiter_free(NULL);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates),  cmocka_unit_test(bursts_and_steady_rates),
        cmocka_unit_test(keys),   cmocka_unit_test(many_keys),
        cmocka_unit_test(places), cmocka_unit_test(threads_share_one_limit),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
