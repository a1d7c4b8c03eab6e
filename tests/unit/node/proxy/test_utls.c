/*
 * Kinds of TLS connections to an endpoint: who is the same, what is kept, and for how long.
 */
#include "node/proxy/utls.h"

#include "node/base/mem.h"
#include "node/proxy/worker.h"
#include "tests/support/unit.h"

struct world {
    struct worker *worker;
    struct endpoint *endpoint;
};

static struct endpoint *make_endpoint(void)
{
    struct addr addr;
    assert_int_equal(addr_parse("127.0.0.1:1", &addr, NULL), RC_OK);
    return endpoint_new(&addr, 1);
}

static struct tls_target *make_target(const char *name)
{
    struct err_info err;
    struct tls_target *target = NULL;
    const struct tls_target_spec spec = {.server_name = name};
    assert_int_equal(tls_target_new(&spec, &target, &err), RC_OK);
    return target;
}

static int set_up(void **state)
{
    struct world *world = mem_new(sizeof(*world));
    world->worker = mem_lines(sizeof(*world->worker));
    world->endpoint = make_endpoint();
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    utls_stop(world->worker);
    assert_int_equal(world->worker->utls_kept_count, 0);
    endpoint_unref(world->endpoint);
    mem_free(world->worker);
    mem_free(world);
    return 0;
}

static void test_targets_are_told_apart(void **state)
{
    struct world *world = *state;
    struct tls_target *a = make_target("a.test");
    struct tls_target *b = make_target("b.test");
    assert_null(utls_find(world->worker, world->endpoint, a));
    struct utls *of_a = utls_take(world->worker, world->endpoint, a);
    assert_null(utls_find(world->worker, world->endpoint, b));
    struct utls *of_b = utls_take(world->worker, world->endpoint, b);
    assert_ptr_not_equal(of_a, of_b);
    assert_ptr_equal(utls_find(world->worker, world->endpoint, a), of_a);
    assert_ptr_equal(utls_find(world->worker, world->endpoint, b), of_b);
    utls_put(world->worker, of_a);
    utls_put(world->worker, of_b);
    tls_target_unref(a);
    tls_target_unref(b);
}

static void test_equal_targets_are_one(void **state)
{
    struct world *world = *state;
    struct tls_target *before = make_target("a.test");
    struct utls *utls = utls_take(world->worker, world->endpoint, before);
    tls_target_unref(before); /* it has a reference of its own */
    struct tls_target *after = make_target("a.test");
    assert_ptr_equal(utls_take(world->worker, world->endpoint, after), utls);
    assert_int_equal(utls->users, 2);
    assert_ptr_equal(utls->target, after);
    utls_put(world->worker, utls);
    assert_int_equal(world->worker->utls_kept_count, 0);
    utls_put(world->worker, utls);
    assert_int_equal(world->worker->utls_kept_count, 1); /* for its session */
    assert_ptr_equal(utls_take(world->worker, world->endpoint, after), utls);
    assert_int_equal(world->worker->utls_kept_count, 0);
    utls_put(world->worker, utls);
    tls_target_unref(after);
}

static void test_what_is_kept_is_bounded(void **state)
{
    struct world *world = *state;
    struct tls_target *target = make_target("a.test");
    struct endpoint *first = make_endpoint();
    struct endpoint *endpoints[UTLS_KEPT_MAX];
    utls_put(world->worker, utls_take(world->worker, first, target));
    for (size_t i = 0; i < UTLS_KEPT_MAX; i++) {
        endpoints[i] = make_endpoint();
        utls_put(world->worker, utls_take(world->worker, endpoints[i], target));
    }
    assert_int_equal(world->worker->utls_kept_count, UTLS_KEPT_MAX);
    assert_null(utls_find(world->worker, first, target)); /* the one that was used first */
    assert_non_null(utls_find(world->worker, endpoints[0], target));
    utls_stop(world->worker);
    for (size_t i = 0; i < UTLS_KEPT_MAX; i++) {
        endpoint_unref(endpoints[i]);
    }
    endpoint_unref(first);
    tls_target_unref(target);
}

static void test_gone_endpoints_keep_nothing(void **state)
{
    struct world *world = *state;
    struct tls_target *a = make_target("a.test");
    struct tls_target *b = make_target("b.test");
    utls_put(world->worker, utls_take(world->worker, world->endpoint, a));
    struct utls *used = utls_take(world->worker, world->endpoint, b);
    atomic_store(&world->endpoint->gone, true);
    utls_flush(world->worker, world->endpoint);
    assert_null(utls_find(world->worker, world->endpoint, a));
    assert_ptr_equal(utls_find(world->worker, world->endpoint, b), used);
    utls_put(world->worker, used);
    assert_null(world->endpoint->slots[0].tls);
    tls_target_unref(a);
    tls_target_unref(b);
}

static void test_certificates_are_looked_at_again(void **state)
{
    struct world *world = *state;
    struct tls_target *a = make_target("a.test");
    world->worker->loop.time = 5;
    struct utls *utls = utls_take(world->worker, world->endpoint, a);
    assert_false(utls_is_stale(utls, 5));
    assert_false(utls_is_stale(utls, 5 + UTLS_VERIFY_MS));
    assert_true(utls_is_stale(utls, 6 + UTLS_VERIFY_MS));
    utls_put(world->worker, utls);
    tls_target_unref(a);
}

static void test_nothing_is_kept_by_who_stops(void **state)
{
    struct world *world = *state;
    struct tls_target *a = make_target("a.test");
    struct utls *used = utls_take(world->worker, world->endpoint, a);
    world->worker->stopping = true;
    utls_stop(world->worker);
    assert_ptr_equal(utls_find(world->worker, world->endpoint, a), used);
    utls_put(world->worker, used);
    assert_null(world->endpoint->slots[0].tls);
    tls_target_unref(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_targets_are_told_apart, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_equal_targets_are_one, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_is_kept_is_bounded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_gone_endpoints_keep_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_certificates_are_looked_at_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_nothing_is_kept_by_who_stops, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
