/*
 * What a Backend asks for, and the defaults of what it leaves out.
 */
#include "node/app/compile.h"
#include "tests/support/unit.h"

static void test_defaults(void **state)
{
    (void)state;
    const struct proxy_backend backend = compile_backend(NULL, NULL);
    assert_int_equal(backend.balance, BALANCE_RANDOM);
    assert_int_equal(backend.panic_percent, 50);
    assert_int_equal(backend.passive.failures, 0);
    assert_int_equal(backend.connections_per_endpoint_max, 0);
    assert_int_equal(backend.queue_max, 128);
    assert_int_equal(backend.queue_ms, 0);
    assert_int_equal(backend.slow_start_ms, 0);
    assert_true(backend.idle_per_endpoint_max == PROXY_POOL_DEFAULT);
    assert_int_equal(backend.idle_ms, 0);
    assert_int_equal(backend.requests_per_connection_max, 0);
    assert_int_equal(backend.proxy_protocol, PROXY_PROTOCOL_OFF);
}

static void test_balance_of_settings(void **state)
{
    (void)state;
    Skein__SettingsSpec settings = SKEIN__SETTINGS_SPEC__INIT;
    Skein__BackendSpec spec = SKEIN__BACKEND_SPEC__INIT;
    settings.has_balance = true;
    settings.balance = SKEIN__BACKEND_SPEC__BALANCE__Source;
    assert_int_equal(compile_backend(&spec, &settings).balance, BALANCE_HASH);
    assert_int_equal(compile_backend(&spec, &settings).hash_on, PROXY_HASH_CLIENT);
    spec.has_balance = true;
    spec.balance = SKEIN__BACKEND_SPEC__BALANCE__LeastConn;
    assert_int_equal(compile_backend(&spec, &settings).balance, BALANCE_LEAST_CONN);
    spec.balance = (Skein__BackendSpec__Balance)77; /* of a newer node */
    assert_int_equal(compile_backend(&spec, NULL).balance, BALANCE_RANDOM);
}

static void test_everything_is_carried_over(void **state)
{
    (void)state;
    char name[] = "X-Key";
    Skein__Duration second = SKEIN__DURATION__INIT;
    second.has_ms = true;
    second.ms = 1000;
    Skein__Hash hash = SKEIN__HASH__INIT;
    hash.has_on = true;
    hash.on = SKEIN__HASH__ON__Header;
    hash.name = name;
    Skein__PassiveCheck passive = SKEIN__PASSIVE_CHECK__INIT;
    passive.has_failures = true;
    passive.failures = 7;
    Skein__BackendLimits limits = SKEIN__BACKEND_LIMITS__INIT;
    limits.has_connections_per_endpoint = true;
    limits.connections_per_endpoint = 8;
    limits.has_queue = true;
    limits.queue = 0;
    limits.queue_timeout = &second;
    Skein__BackendPool pool = SKEIN__BACKEND_POOL__INIT;
    pool.has_idle_per_endpoint = true;
    pool.idle_per_endpoint = 0;
    pool.idle_timeout = &second;
    pool.has_requests_per_connection = true;
    pool.requests_per_connection = 9;
    Skein__BackendSpec spec = SKEIN__BACKEND_SPEC__INIT;
    spec.has_balance = true;
    spec.balance = SKEIN__BACKEND_SPEC__BALANCE__Hash;
    spec.hash = &hash;
    spec.passive_check = &passive;
    spec.limits = &limits;
    spec.pool = &pool;
    spec.slow_start = &second;
    spec.has_panic_percent = true;
    spec.panic_percent = 0;
    spec.has_proxy_protocol = true;
    spec.proxy_protocol = SKEIN__BACKEND_SPEC__PROXY_PROTOCOL__V2;
    const struct proxy_backend backend = compile_backend(&spec, NULL);
    assert_int_equal(backend.balance, BALANCE_HASH);
    assert_int_equal(backend.hash_on, PROXY_HASH_HEADER);
    assert_string_equal(backend.hash_name, "X-Key");
    assert_int_equal(backend.passive.failures, 7);
    assert_int_equal(backend.passive.window_ms, 10000);
    assert_int_equal(backend.passive.eject_ms, 30000);
    assert_int_equal(backend.passive.max_ejected_percent, 50);
    assert_int_equal(backend.connections_per_endpoint_max, 8);
    assert_int_equal(backend.queue_max, 0);
    assert_int_equal(backend.queue_ms, 1000);
    assert_int_equal(backend.idle_per_endpoint_max, 0);
    assert_int_equal(backend.idle_ms, 1000);
    assert_int_equal(backend.requests_per_connection_max, 9);
    assert_int_equal(backend.slow_start_ms, 1000);
    assert_int_equal(backend.panic_percent, 0);
    assert_int_equal(backend.proxy_protocol, PROXY_PROTOCOL_V2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_balance_of_settings),
        cmocka_unit_test(test_everything_is_carried_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
