/*
 * Balancing: distributions with a seeded generator, and what is never picked.
 */
#include "node/base/mem.h"
#include "node/proxy/balance.h"
#include "node/proxy/catalog.h"
#include "tests/support/unit.h"

enum { NOW_MS = 100000 };

static struct catalog catalog;
static struct backend *backend;
static struct rng rng;
static uint64_t turn;

static int setup(void **state)
{
    (void)state;
    catalog_init(&catalog, 1);
    backend = backend_make(&catalog, "b");
    rng_init(&rng, 42);
    turn = 0;
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
    assert_int_equal(backend_replace(backend, &(const struct proxy_backend){.balance = balance},
                                     from, count, &err),
                     RC_OK);
    mem_free(from);
    (void)qsbr_reclaim(&catalog.qsbr);
}

static struct endpoint *pick(struct endpoint *const *tried, size_t tried_count)
{
    const struct balance_ask ask = {
        .rng = &rng, .turn = &turn, .now_ms = NOW_MS, .tried = tried, .tried_count = tried_count};
    return balance_pick(backend_endpoints(backend), &ask);
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

static const enum balance policies[] = {BALANCE_RANDOM, BALANCE_LEAST_CONN, BALANCE_ROUND_ROBIN};

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
            struct endpoint *endpoint = pick(NULL, 0);
            endpoint_begin(endpoint);
            counts[index_of(endpoint)]++;
        }
        for (size_t i = 0; i < 4; i++) {
            assert_in_range(counts[i], weights[i] * 950, weights[i] * 1050);
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
