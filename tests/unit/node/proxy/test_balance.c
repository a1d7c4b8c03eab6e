/*
 * Balancing: distributions with a seeded generator, what keys move to when endpoints come and go,
 * and what is never picked.
 *
 * covers: balance_hash.c
 */
#include "node/base/hash.h"
#include "node/base/mem.h"
#include "node/proxy/balance.h"
#include "node/proxy/catalog.h"
#include "tests/support/unit.h"

enum { NOW_MS = 100000 };

static struct catalog catalog;
static struct backend *backend;
static struct rng rng;
static uint64_t turn;
static struct proxy_backend policy;
static uint64_t now_ms;
static uint64_t key;
static bool full;

static int setup(void **state)
{
    (void)state;
    catalog_init(&catalog, 1);
    backend = backend_make(&catalog, "b");
    rng_init(&rng, 42);
    turn = 0;
    policy = (struct proxy_backend){.balance = BALANCE_RANDOM};
    now_ms = NOW_MS;
    key = 0;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    backend_put(backend);
    catalog_deinit(&catalog);
    return 0;
}

static void configure(enum balance balance, const uint32_t *weights, size_t count)
{
    struct proxy_endpoint *from = mem_array(count, sizeof(*from));
    for (size_t i = 0; i < count; i++) {
        char text[32];
        (void)snprintf(text, sizeof(text), "10.0.%zu.%zu:80", i / 250, i % 250 + 1);
        assert_int_equal(addr_parse(text, &from[i].addr, NULL), RC_OK);
        from[i].weight = weights[i];
    }
    struct err_info err;
    policy.balance = balance;
    assert_int_equal(backend_replace(backend, &policy, from, count, &err), RC_OK);
    mem_free(from);
    (void)qsbr_reclaim(&catalog.qsbr);
}

static struct endpoint *pick(struct endpoint *const *tried, size_t tried_count)
{
    const struct balance_ask ask = {.rng = &rng,
                                    .turn = &turn,
                                    .now_ms = now_ms,
                                    .hash = key,
                                    .tried = tried,
                                    .tried_count = tried_count};
    return balance_pick(backend_endpoints(backend), &ask, &full);
}

static size_t index_of(const struct endpoint *endpoint)
{
    const struct endpoint_set *set = backend_endpoints(backend);
    for (uint32_t i = 0; i < set->count; i++) {
        if (set->entries[i].endpoint == endpoint) {
            return i;
        }
    }
    fail();
    return 0;
}

static const enum balance policies[] = {BALANCE_RANDOM, BALANCE_LEAST_CONN, BALANCE_ROUND_ROBIN,
                                        BALANCE_HASH};

static struct endpoint *entry(size_t idx)
{
    return backend_endpoints(backend)->entries[idx].endpoint;
}

/* Requests that never end: the loads themselves must follow the weights. */
static void test_load_follows_weights(void **state)
{
    (void)state;
    const uint32_t weights[] = {1, 2, 5, 8};
    for (size_t p = 0; p < ARRAY_LEN(policies); p++) {
        configure(BALANCE_RANDOM, weights, 0);
        configure(policies[p], weights, 4);
        uint32_t counts[4] = {0};
        for (int i = 0; i < 16000; i++) {
            key = hash_mix64((uint64_t)i + 1);
            struct endpoint *endpoint = pick(NULL, 0);
            endpoint_begin(endpoint);
            counts[index_of(endpoint)]++;
        }
        for (size_t i = 0; i < 4; i++) {
            assert_in_range(counts[i], weights[i] * 940, weights[i] * 1060);
        }
        /* The endpoints go with the set: back to zero, as exchanges would. */
        const struct endpoint_set *set = backend_endpoints(backend);
        for (uint32_t i = 0; i < set->count; i++) {
            while (endpoint_load(set->entries[i].endpoint) != 0) {
                endpoint_end(set->entries[i].endpoint);
            }
        }
    }
}

static void test_two_choices_avoid_the_loaded(void **state)
{
    (void)state;
    const uint32_t weights[] = {1, 1, 1, 1, 1, 1, 1, 1};
    configure(BALANCE_RANDOM, weights, 8);
    struct endpoint *busy = backend_endpoints(backend)->entries[3].endpoint;
    for (int i = 0; i < 100; i++) {
        endpoint_begin(busy);
    }
    int count = 0;
    for (int i = 0; i < 6400; i++) {
        count += pick(NULL, 0) == busy;
    }
    /* Only when both draws hit it: 1 in 64, not 1 in 8. */
    assert_in_range(count, 60, 140);
    configure(BALANCE_LEAST_CONN, weights, 8);
    busy = backend_endpoints(backend)->entries[3].endpoint; /* the same object */
    for (int i = 0; i < 1000; i++) {
        assert_ptr_not_equal(pick(NULL, 0), busy);
    }
    while (endpoint_load(busy) != 0) {
        endpoint_end(busy);
    }
}

static void test_round_robin_takes_turns(void **state)
{
    (void)state;
    const uint32_t equal[] = {7, 7, 7};
    configure(BALANCE_ROUND_ROBIN, equal, 3);
    for (size_t i = 0; i < 9; i++) {
        assert_int_equal(index_of(pick(NULL, 0)), i % 3);
    }
    /* 4:2 in lowest terms is 2:1, and the two are not one after the other. */
    const uint32_t uneven[] = {4, 2};
    configure(BALANCE_ROUND_ROBIN, uneven, 2);
    turn = 0;
    size_t seen[6];
    for (size_t i = 0; i < 6; i++) {
        seen[i] = index_of(pick(NULL, 0));
    }
    assert_int_equal(seen[0] + seen[1] + seen[2], 1);
    assert_int_equal(seen[1], 1);
    assert_memory_equal(seen, seen + 3, 3 * sizeof(seen[0]));
}

static void test_large_sets(void **state)
{
    (void)state;
    static uint32_t weights[PROXY_ENDPOINTS_MAX];
    for (size_t i = 0; i < PROXY_ENDPOINTS_MAX; i++) {
        weights[i] = 1 + i % PROXY_WEIGHT_MAX;
    }
    for (size_t p = 0; p < ARRAY_LEN(policies); p++) {
        configure(policies[p], weights, PROXY_ENDPOINTS_MAX);
        const struct endpoint_set *set = backend_endpoints(backend);
        assert_int_equal(set->usable_count, PROXY_ENDPOINTS_MAX);
        for (int i = 0; i < 1000; i++) {
            assert_non_null(pick(NULL, 0));
        }
        assert_true(set->schedule_len <= 16384 + PROXY_ENDPOINTS_MAX);
    }
}

static void test_tried_ones_are_never_given_again(void **state)
{
    (void)state;
    const uint32_t weights[] = {1, 100, 1};
    for (size_t p = 0; p < ARRAY_LEN(policies); p++) {
        configure(policies[p], weights, 3);
        for (int i = 0; i < 200; i++) {
            struct endpoint *tried[3];
            for (size_t n = 0; n < 3; n++) {
                tried[n] = pick(tried, n);
                assert_non_null(tried[n]);
                for (size_t j = 0; j < n; j++) {
                    assert_ptr_not_equal(tried[n], tried[j]);
                }
            }
            assert_null(pick(tried, 3));
        }
    }
}

static void test_failed_ones_wait_unless_they_are_all(void **state)
{
    (void)state;
    const uint32_t weights[] = {1, 1, 1};
    for (size_t p = 0; p < ARRAY_LEN(policies); p++) {
        configure(policies[p], weights, 0);
        configure(policies[p], weights, 3);
        const struct endpoint_set *set = backend_endpoints(backend);
        struct endpoint *good = set->entries[2].endpoint;
        endpoint_connect_failed(set->entries[0].endpoint, NOW_MS - 10);
        endpoint_connect_failed(set->entries[1].endpoint, NOW_MS - 10);
        for (int i = 0; i < 100; i++) {
            assert_ptr_equal(pick(NULL, 0), good);
        }
        endpoint_connect_failed(good, NOW_MS - 10);
        assert_non_null(pick(NULL, 0)); /* never the last one */
        endpoint_connect_failed(good, NOW_MS - ENDPOINT_SKIP_MS);
        assert_ptr_equal(pick(NULL, 0), good); /* its time is over */
        endpoint_connected(set->entries[0].endpoint);
        bool seen = false;
        for (int i = 0; i < 100; i++) {
            key = hash_mix64((uint64_t)i + 1);
            seen = seen || pick(NULL, 0) == set->entries[0].endpoint;
        }
        assert_true(seen);
    }
}

static void test_nothing_usable(void **state)
{
    (void)state;
    const uint32_t weights[] = {0, 0};
    for (size_t p = 0; p < ARRAY_LEN(policies); p++) {
        configure(policies[p], weights, 2);
        assert_null(pick(NULL, 0));
        configure(policies[p], weights, 0);
        assert_null(pick(NULL, 0));
    }
}

/* ---- hashing ---- */

enum { KEYS = 20000 };

static void find_all(struct endpoint **owners)
{
    for (uint64_t i = 0; i < KEYS; i++) {
        key = hash_mix64(i + 1);
        owners[i] = pick(NULL, 0);
    }
}

static bool is_listed(const struct endpoint *endpoint)
{
    const struct endpoint_set *set = backend_endpoints(backend);
    for (uint32_t i = 0; i < set->count; i++) {
        if (set->entries[i].endpoint == endpoint) {
            return true;
        }
    }
    return false;
}

static void test_one_that_leaves_moves_its_own_keys_only(void **state)
{
    (void)state;
    static struct endpoint *before[KEYS];
    static struct endpoint *after[KEYS];
    const uint32_t even[10] = {5, 5, 5, 5, 5, 5, 5, 5, 5, 5};
    const uint32_t uneven[10] = {5, 9, 20, 1, 7, 3, 2, 8, 4, 6};
    for (int round = 0; round < 2; round++) {
        const uint32_t *weights = round == 0 ? even : uneven;
        uint32_t total = 0;
        for (int i = 0; i < 10; i++) {
            total += weights[i];
        }
        configure(BALANCE_HASH, weights, 0);
        configure(BALANCE_HASH, weights, 10);
        find_all(before);
        configure(BALANCE_HASH, weights, 9); /* the last one leaves */
        find_all(after);
        int moved = 0;
        for (int i = 0; i < KEYS; i++) {
            moved += before[i] != after[i];
            assert_true(before[i] == after[i] || !is_listed(before[i]));
        }
        int expected = (int)(KEYS * weights[9] / total);
        assert_in_range(moved, expected * 9 / 10, expected * 11 / 10);
        /* And those come back with it, though it is a new object. */
        configure(BALANCE_HASH, weights, 10);
        find_all(after);
        for (int i = 0; i < KEYS; i++) {
            assert_true(before[i] == after[i] || after[i] == entry(9));
        }
    }
}

/* A contract between nodes; the owners were computed by another implementation. */
static void test_keys_are_the_same_on_every_node(void **state)
{
    (void)state;
    const uint32_t weights[] = {1, 2, 3};
    configure(BALANCE_HASH, weights, 3);
    static const size_t expected[8] = {0, 2, 2, 1, 1, 2, 2, 2};
    for (uint64_t i = 0; i < 8; i++) {
        key = hash_mix64(i + 1);
        assert_int_equal(index_of(pick(NULL, 0)), expected[i]);
    }
}

/* ---- limits, slow start, availability ---- */

static void test_full_ones_are_passed_over(void **state)
{
    (void)state;
    const uint32_t weights[] = {1, 1, 1};
    policy.connections_per_endpoint_max = 2;
    for (size_t p = 0; p < ARRAY_LEN(policies); p++) {
        configure(policies[p], weights, 0);
        configure(policies[p], weights, 3);
        for (int i = 0; i < 6; i++) {
            struct endpoint *endpoint = pick(NULL, 0);
            assert_non_null(endpoint);
            assert_true(endpoint_begin_within(endpoint, 2));
        }
        assert_false(endpoint_begin_within(entry(0), 2));
        assert_null(pick(NULL, 0));
        assert_true(full);
        endpoint_end(entry(1));
        assert_ptr_equal(pick(NULL, 0), entry(1));
        struct endpoint *tried[] = {entry(1)};
        assert_null(pick(tried, 1));
        assert_true(full);
        for (int i = 0; i < 5; i++) {
            endpoint_end(entry(i < 1 ? 1 : i % 2 == 0 ? 0 : 2));
        }
    }
}

static void test_slow_start_grows_with_time(void **state)
{
    (void)state;
    const uint32_t weights[] = {10, 10, 10, 10};
    policy.slow_start_ms = 10000;
    for (size_t p = 0; p < ARRAY_LEN(policies); p++) {
        configure(policies[p], weights, 0);
        configure(policies[p], weights, 4);
        assert_int_equal(endpoint_flags(entry(2)), 0); /* the first fill does not ramp */
        uint32_t last = 0;
        for (uint64_t past_ms = 0; past_ms <= 10000; past_ms += 2500) {
            endpoint_ramp(entry(2), NOW_MS);
            now_ms = NOW_MS + past_ms;
            uint32_t count = 0;
            for (uint64_t i = 0; i < 4000; i++) {
                key = hash_mix64(i + 1);
                /* Loads at rest would tie: let them follow. */
                struct endpoint *endpoint = pick(NULL, 0);
                endpoint_begin(endpoint);
                count += endpoint == entry(2);
            }
            for (size_t i = 0; i < 4; i++) {
                while (endpoint_load(entry(i)) != 0) {
                    endpoint_end(entry(i));
                }
            }
            /* From a tenth of its part, which is a quarter. */
            double share = 0.1 + 0.9 * (double)past_ms / 10000;
            double expected = 4000 * share / (3 + share);
            assert_in_range(count, (uint32_t)(expected * 0.8), (uint32_t)(expected * 1.2));
            assert_true(count > last);
            last = count;
        }
        assert_int_equal(endpoint_flags(entry(2)), 0);
    }
}

static void test_newcomers_ramp(void **state)
{
    (void)state;
    const uint32_t weights[] = {1, 1, 1};
    policy.slow_start_ms = 1000;
    configure(BALANCE_RANDOM, weights, 2);
    configure(BALANCE_RANDOM, weights, 3);
    assert_int_equal(endpoint_flags(entry(0)), 0);
    assert_int_equal(endpoint_flags(entry(2)), ENDPOINT_RAMPING);
}

static void test_down_ones_get_nothing_until_panic(void **state)
{
    (void)state;
    const uint32_t weights[] = {1, 1, 1, 1};
    policy.panic_percent = 50;
    for (size_t p = 0; p < ARRAY_LEN(policies); p++) {
        configure(policies[p], weights, 0);
        configure(policies[p], weights, 4);
        for (size_t down = 1; down <= 4; down++) {
            backend_set_health(backend, &entry(down - 1)->addr, PROXY_HEALTH_DOWN, NOW_MS);
            bool seen[4] = {false};
            for (uint64_t i = 0; i < 400; i++) {
                key = hash_mix64(i + 1);
                seen[index_of(pick(NULL, 0))] = true;
            }
            for (size_t i = 0; i < 4; i++) {
                /* Two of four are enough, one is not. */
                assert_int_equal(seen[i], i >= down || down > 2);
            }
        }
        backend_set_health(backend, &entry(0)->addr, PROXY_HEALTH_UP, NOW_MS);
        backend_set_health(backend, &entry(1)->addr, PROXY_HEALTH_UNKNOWN, NOW_MS);
        assert_false(backend_panics(backend));
    }
    policy.panic_percent = 0;
    configure(BALANCE_RANDOM, weights, 2);
    backend_set_health(backend, &entry(0)->addr, PROXY_HEALTH_DOWN, NOW_MS);
    backend_set_health(backend, &entry(1)->addr, PROXY_HEALTH_DOWN, NOW_MS);
    assert_null(pick(NULL, 0)); /* all are down, and nobody asked for guesses */
    assert_false(full);
}

static void test_holders_reach_what_gets_nothing_new(void **state)
{
    (void)state;
    const uint32_t weights[] = {1, 0};
    policy.panic_percent = 50;
    configure(BALANCE_RANDOM, weights, 2);
    struct endpoint *held = entry(1);
    struct balance_ask ask = {.rng = &rng, .turn = &turn, .now_ms = NOW_MS};
    assert_true(balance_can_hold(backend_endpoints(backend), held, &ask));
    backend_set_health(backend, &held->addr, PROXY_HEALTH_DOWN, NOW_MS);
    assert_false(balance_can_hold(backend_endpoints(backend), held, &ask));
    backend_set_health(backend, &held->addr, PROXY_HEALTH_UP, NOW_MS);
    assert_true(balance_can_hold(backend_endpoints(backend), held, &ask));
    ask.tried = &held;
    ask.tried_count = 1;
    assert_false(balance_can_hold(backend_endpoints(backend), held, &ask));
    ask.tried_count = 0;
    endpoint_ref(held);
    configure(BALANCE_RANDOM, weights, 1);
    assert_false(balance_can_hold(backend_endpoints(backend), held, &ask)); /* it left */
    endpoint_unref(held);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_load_follows_weights, setup, teardown),
        cmocka_unit_test_setup_teardown(test_two_choices_avoid_the_loaded, setup, teardown),
        cmocka_unit_test_setup_teardown(test_round_robin_takes_turns, setup, teardown),
        cmocka_unit_test_setup_teardown(test_large_sets, setup, teardown),
        cmocka_unit_test_setup_teardown(test_tried_ones_are_never_given_again, setup, teardown),
        cmocka_unit_test_setup_teardown(test_failed_ones_wait_unless_they_are_all, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nothing_usable, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_that_leaves_moves_its_own_keys_only, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_keys_are_the_same_on_every_node, setup, teardown),
        cmocka_unit_test_setup_teardown(test_full_ones_are_passed_over, setup, teardown),
        cmocka_unit_test_setup_teardown(test_slow_start_grows_with_time, setup, teardown),
        cmocka_unit_test_setup_teardown(test_newcomers_ramp, setup, teardown),
        cmocka_unit_test_setup_teardown(test_down_ones_get_nothing_until_panic, setup, teardown),
        cmocka_unit_test_setup_teardown(test_holders_reach_what_gets_nothing_new, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
