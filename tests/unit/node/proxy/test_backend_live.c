/*
 * Who is available: ejection with its limits and back-off, and what the panic flag follows.
 */
#include "node/base/mem.h"
#include "node/proxy/catalog.h"
#include "tests/support/unit.h"

enum { NOW_MS = 1000000, EJECT_MS = 1000 };

static struct catalog catalog;
static struct backend *backend;
static struct proxy_backend policy;

static int setup(void **state)
{
    (void)state;
    catalog_init(&catalog, 1);
    backend = backend_make(&catalog, "b");
    policy = (struct proxy_backend){
        .passive = {.failures = 3,
                    .window_ms = 500,
                    .eject_ms = EJECT_MS,
                    .max_ejected_percent = 50},
        .panic_percent = 50,
    };
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    backend_put(backend);
    catalog_deinit(&catalog);
    return 0;
}

static void configure(uint16_t count)
{
    struct proxy_endpoint from[16];
    for (uint16_t i = 0; i < count; i++) {
        from[i] = (struct proxy_endpoint){.weight = 1};
        assert_int_equal(addr_parse("[2001:db8::1]:1", &from[i].addr, NULL), RC_OK);
        addr_set_port(&from[i].addr, (uint16_t)(i + 1));
    }
    struct err_info err;
    assert_int_equal(backend_replace(backend, &policy, from, count, &err), RC_OK);
    (void)qsbr_reclaim(&catalog.qsbr);
}

static struct endpoint *entry(size_t idx)
{
    return backend_endpoints(backend)->entries[idx].endpoint;
}

static bool is_ejected(size_t idx, uint64_t now_ms)
{
    return (backend_check_flags(backend, entry(idx), now_ms) & ENDPOINT_EJECTED) != 0;
}

/* Fail until it is out, at most as often as configured; how often. */
static int fail_out(size_t idx, uint64_t now_ms)
{
    for (int i = 1; i <= 3; i++) {
        backend_failed(backend, entry(idx), now_ms);
        if (is_ejected(idx, now_ms)) {
            return i;
        }
    }
    return 0;
}

static void test_failures_within_the_window_eject(void **state)
{
    (void)state;
    configure(4);
    assert_int_equal(fail_out(0, NOW_MS), 3);
    assert_true(is_ejected(0, NOW_MS + EJECT_MS - 1));
    assert_false(is_ejected(0, NOW_MS + EJECT_MS));
    assert_int_equal(endpoint_flags(entry(0)), ENDPOINT_RAMPING); /* it starts slowly */
    /* Two in each window are not three. */
    for (uint64_t ms = 0; ms < 20000; ms += 500) {
        backend_failed(backend, entry(1), NOW_MS + ms);
        assert_false(is_ejected(1, NOW_MS + ms));
    }
    assert_int_equal(counter_read(&backend->ejections), 1);
}

static void test_each_time_takes_longer(void **state)
{
    (void)state;
    configure(4);
    uint64_t now_ms = NOW_MS;
    const uint64_t factors[] = {1, 2, 4, 8, 10, 10};
    for (size_t i = 0; i < ARRAY_LEN(factors); i++) {
        assert_int_equal(fail_out(0, now_ms), 3);
        now_ms += factors[i] * EJECT_MS;
        assert_true(is_ejected(0, now_ms - 1));
        assert_false(is_ejected(0, now_ms));
    }
    now_ms += 60 * EJECT_MS; /* it behaved for long: forgotten */
    assert_int_equal(fail_out(0, now_ms), 3);
    assert_false(is_ejected(0, now_ms + EJECT_MS));
}

static void test_some_always_stay(void **state)
{
    (void)state;
    configure(4);
    assert_int_equal(fail_out(0, NOW_MS), 3);
    assert_int_equal(fail_out(1, NOW_MS), 3);
    assert_int_equal(fail_out(2, NOW_MS), 0); /* 75 percent is above 50 */
    configure(0);
    configure(1);
    assert_int_equal(fail_out(0, NOW_MS), 0); /* the only one */
    policy.passive.max_ejected_percent = 100;
    configure(3);
    assert_int_equal(fail_out(1, NOW_MS), 3);
    backend_set_health(backend, &entry(2)->addr, PROXY_HEALTH_DOWN, NOW_MS);
    assert_int_equal(fail_out(0, NOW_MS), 0); /* the last one that is up */
    policy.passive.failures = 0;
    configure(2);
    assert_int_equal(fail_out(0, NOW_MS + 100 * EJECT_MS), 0); /* off */
}

static void test_panic_follows_events(void **state)
{
    (void)state;
    configure(4);
    uint32_t usable = 0;
    uint32_t available = 0;
    assert_int_equal(fail_out(0, NOW_MS), 3);
    backend_set_health(backend, &entry(1)->addr, PROXY_HEALTH_DOWN, NOW_MS);
    assert_false(backend_panics(backend));
    backend_set_health(backend, &entry(2)->addr, PROXY_HEALTH_DOWN, NOW_MS);
    assert_true(backend_panics(backend));
    backend_availability(backend, &usable, &available);
    assert_int_equal(usable, 4);
    assert_int_equal(available, 1);
    assert_false(is_ejected(0, NOW_MS + EJECT_MS)); /* back by itself */
    assert_false(backend_panics(backend));
    /* State stays with what stays; a set without those that are down does not panic. */
    backend_set_health(backend, &entry(0)->addr, PROXY_HEALTH_DOWN, NOW_MS);
    assert_true(backend_panics(backend));
    configure(5);
    assert_int_equal(endpoint_flags(entry(1)) & ENDPOINT_DOWN, ENDPOINT_DOWN);
    assert_true(backend_panics(backend));
    configure(0);
    assert_false(backend_panics(backend));
    configure(5);
    assert_false(backend_panics(backend)); /* they are new */
}

static void test_tokens_find_their_endpoints(void **state)
{
    (void)state;
    struct proxy_endpoint from[3] = {{.weight = 1}, {.weight = 0}, {.weight = 1, .draining = true}};
    uint8_t token[PROXY_TOKEN_BYTES];
    for (int i = 0; i < 3; i++) {
        assert_int_equal(addr_parse("10.0.0.1:1", &from[i].addr, NULL), RC_OK);
        addr_set_port(&from[i].addr, (uint16_t)(i + 1));
        memset(from[i].token, 'a' + i, PROXY_TOKEN_BYTES);
        memset(from[i].old_token, 'x' + i, PROXY_TOKEN_BYTES);
    }
    memset(from[2].old_token, 0, PROXY_TOKEN_BYTES);
    struct err_info err;
    assert_int_equal(backend_replace(backend, &policy, from, 3, &err), RC_OK);
    const struct endpoint_set *set = backend_endpoints(backend);
    for (int i = 0; i < 3; i++) {
        const struct endpoint *found = set_find_token(set, from[i].token);
        assert_non_null(found);
        assert_int_equal(addr_compare(&found->addr, &from[i].addr), 0);
        endpoint_token(found, token);
        assert_memory_equal(token, from[i].token, sizeof(token));
    }
    assert_ptr_equal(set_find_token(set, from[0].old_token), set_find_token(set, from[0].token));
    memset(token, 0, sizeof(token));
    assert_null(set_find_token(set, token));
    memset(token, 'q', sizeof(token));
    assert_null(set_find_token(set, token));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_failures_within_the_window_eject, setup, teardown),
        cmocka_unit_test_setup_teardown(test_each_time_takes_longer, setup, teardown),
        cmocka_unit_test_setup_teardown(test_some_always_stay, setup, teardown),
        cmocka_unit_test_setup_teardown(test_panic_follows_events, setup, teardown),
        cmocka_unit_test_setup_teardown(test_tokens_find_their_endpoints, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
