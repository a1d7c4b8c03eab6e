/*
 * HealthChecks as the checker runs them: defaults, Settings, statuses.
 */
#include "tests/support/unit.h"

#include "node/app/compile.h"

static Skein__Duration span(uint64_t ms)
{
    Skein__Duration duration = SKEIN__DURATION__INIT;
    duration.has_ms = true;
    duration.ms = ms;
    return duration;
}

static Skein__HealthCheck check_of(Skein__HealthCheck__Type type)
{
    Skein__HealthCheck check = SKEIN__HEALTH_CHECK__INIT;
    check.has_type = true;
    check.type = type;
    return check;
}

static struct check_config compiled(const Skein__HealthCheck *own,
                                    const Skein__HealthCheck *defaults)
{
    Skein__HealthCheck merged;
    struct check_config config;
    assert_true(compile_check_merge(own, defaults, &merged));
    compile_check(&merged, &config);
    return config;
}

static void test_defaults(void **state)
{
    (void)state;
    Skein__HealthCheck own = check_of(SKEIN__HEALTH_CHECK__TYPE__Http);
    struct check_config config = compiled(&own, NULL);
    assert_int_equal(config.type, CHECK_HTTP);
    assert_int_equal(config.pace.interval_ms, 5000);
    assert_int_equal(config.pace.interval_down_ms, 1000);
    assert_int_equal(config.pace.timeout_ms, 5000);
    assert_int_equal(config.pace.rise, 2);
    assert_int_equal(config.pace.fall, 3);
    assert_int_equal(config.port, 0);
    assert_int_equal(config.status_count, 0);
    assert_null(config.path);
}

static void test_interval_while_down(void **state)
{
    (void)state;
    Skein__HealthCheck own = check_of(SKEIN__HEALTH_CHECK__TYPE__Tcp);
    Skein__Duration interval = span(1000);
    Skein__Duration down = span(7000);
    own.interval = &interval;
    assert_int_equal(compiled(&own, NULL).pace.interval_down_ms, 500); /* not less */
    interval.ms = 200;
    assert_int_equal(compiled(&own, NULL).pace.interval_down_ms, 200); /* not more than calm */
    interval.ms = 60000;
    assert_int_equal(compiled(&own, NULL).pace.interval_down_ms, 12000);
    own.interval_down = &down;
    assert_int_equal(compiled(&own, NULL).pace.interval_down_ms, 7000);
}

static void test_none(void **state)
{
    (void)state;
    Skein__HealthCheck merged;
    Skein__HealthCheck off = check_of(SKEIN__HEALTH_CHECK__TYPE__None);
    Skein__HealthCheck grpc = check_of(SKEIN__HEALTH_CHECK__TYPE__Grpc);
    Skein__HealthCheck tcp = check_of(SKEIN__HEALTH_CHECK__TYPE__Tcp);
    assert_false(compile_check_merge(NULL, NULL, &merged));
    assert_false(compile_check_merge(&off, NULL, &merged));
    assert_false(compile_check_merge(&off, &tcp, &merged));
    assert_false(compile_check_merge(NULL, &off, &merged));
    assert_false(compile_check_merge(&grpc, NULL, &merged));
    assert_true(compile_check_merge(NULL, &tcp, &merged));
}

static void test_settings(void **state)
{
    (void)state;
    Skein__Duration interval = span(9000);
    Skein__Duration down = span(3000);
    Skein__Duration timeout = span(2000);
    Skein__HealthCheck defaults = check_of(SKEIN__HEALTH_CHECK__TYPE__Http);
    defaults.path = unconst("/all");
    defaults.interval = &interval;
    defaults.interval_down = &down;
    defaults.timeout = &timeout;
    defaults.has_rise = defaults.has_fall = true;
    defaults.rise = 7;
    defaults.fall = 8;
    struct check_config config = compiled(NULL, &defaults); /* whole */
    assert_string_equal(config.path, "/all");

    Skein__HealthCheck own = check_of(SKEIN__HEALTH_CHECK__TYPE__Http);
    own.has_fall = true;
    own.fall = 1;
    config = compiled(&own, &defaults); /* times and counts alone */
    assert_null(config.path);
    assert_int_equal(config.pace.interval_ms, 9000);
    assert_int_equal(config.pace.interval_down_ms, 3000);
    assert_int_equal(config.pace.timeout_ms, 2000);
    assert_int_equal(config.pace.rise, 7);
    assert_int_equal(config.pace.fall, 1);

    Skein__Duration quick = span(1000);
    own.interval = &quick; /* its pace while down follows its own interval */
    assert_int_equal(compiled(&own, &defaults).pace.interval_down_ms, 500);
}

static void test_texts(void **state)
{
    (void)state;
    Skein__HealthCheck own = check_of(SKEIN__HEALTH_CHECK__TYPE__Http);
    char *statuses[] = {unconst("204"), unconst("300-399"), unconst("x")};
    Skein__Pair pair = SKEIN__PAIR__INIT;
    pair.key = unconst("X-A");
    Skein__Pair *pairs[] = {&pair};
    own.statuses = statuses;
    own.n_statuses = 3;
    own.headers = pairs;
    own.n_headers = 1;
    own.has_port = true;
    own.port = 9000;
    struct check_config config = compiled(&own, NULL);
    assert_int_equal(config.status_count, 3);
    assert_int_equal(config.statuses[0].low, 204);
    assert_int_equal(config.statuses[0].high, 204);
    assert_int_equal(config.statuses[1].low, 300);
    assert_int_equal(config.statuses[1].high, 399);
    assert_int_equal(config.statuses[2].high, 0); /* matches nothing */
    assert_int_equal(config.header_count, 1);
    assert_string_equal(config.headers[0].name, "X-A");
    assert_int_equal(config.port, 9000);
}

static void test_tls_is_as_the_backends(void **state)
{
    (void)state;
    Skein__HealthCheck check = check_of(SKEIN__HEALTH_CHECK__TYPE__Tcp);
    Skein__BackendTls tls = SKEIN__BACKEND_TLS__INIT;
    assert_false(compile_check_tls(&check, NULL));
    assert_true(compile_check_tls(&check, &tls));
    tls.has_enabled = true; /* described for checks and routes, but not in use by itself */
    assert_false(compile_check_tls(&check, &tls));
    check.has_tls = true;
    assert_false(compile_check_tls(&check, &tls));
    check.tls = true;
    assert_true(compile_check_tls(&check, &tls));
    assert_false(compile_check_tls(&check, NULL)); /* nobody says how to verify */
    tls.enabled = true;
    check.tls = false;
    assert_false(compile_check_tls(&check, &tls));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults), cmocka_unit_test(test_interval_while_down),
        cmocka_unit_test(test_none),     cmocka_unit_test(test_settings),
        cmocka_unit_test(test_texts),    cmocka_unit_test(test_tls_is_as_the_backends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
