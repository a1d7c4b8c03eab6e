/*
 * The bucket of a source: burst, refill, and that the table stays what it is under a flood.
 */
#include "tests/support/unit.h"

#include "admin/server/throttle.h"

static struct throttle throttle;

static struct addr source(const char *text)
{
    struct addr addr;
    struct err_info err = {0};
    assert_int_equal(addr_parse(text, &addr, &err), RC_OK);
    return addr;
}

static void test_burst_and_refill(void **state)
{
    (void)state;
    struct addr one = source("10.0.0.1:1"), other = source("10.0.0.2:1");
    uint64_t now = 1000000;
    throttle_init(&throttle);
    for (int i = 0; i < THROTTLE_BURST; i++) {
        assert_int_equal(throttle_fail(&throttle, &one, now), 0);
    }
    uint32_t wait = throttle_fail(&throttle, &one, now);
    assert_int_equal(wait, THROTTLE_REFILL_MS / 1000);
    assert_int_equal(throttle_fail(&throttle, &one, now), wait); /* being told costs nothing */
    assert_int_equal(throttle_fail(&throttle, &other, now), 0);
    now += (uint64_t)wait * 1000;
    assert_int_equal(throttle_fail(&throttle, &one, now), 0);
    assert_int_not_equal(throttle_fail(&throttle, &one, now), 0);
    now += (uint64_t)THROTTLE_BURST * THROTTLE_REFILL_MS;
    for (int i = 0; i < THROTTLE_BURST; i++) {
        assert_int_equal(throttle_fail(&throttle, &one, now), 0);
    }
}

static void test_ipv6_counts_by_network(void **state)
{
    (void)state;
    throttle_init(&throttle);
    for (int i = 0; i < THROTTLE_BURST; i++) {
        char text[64];
        snprintf(text, sizeof(text), "[2001:db8::%x]:1", i + 1);
        struct addr addr = source(text);
        assert_int_equal(throttle_fail(&throttle, &addr, 1000), 0);
    }
    struct addr same = source("[2001:db8::ffff]:1"), next = source("[2001:db8:0:1::1]:1");
    assert_int_not_equal(throttle_fail(&throttle, &same, 1000), 0);
    assert_int_equal(throttle_fail(&throttle, &next, 1000), 0);
    struct addr mapped = source("[::ffff:10.0.0.1]:1"), plain = source("10.0.0.1:1");
    for (int i = 0; i < THROTTLE_BURST; i++) {
        assert_int_equal(throttle_fail(&throttle, &mapped, 1000), 0);
    }
    assert_int_not_equal(throttle_fail(&throttle, &plain, 1000), 0);
}

static void test_a_flood_of_sources(void **state)
{
    (void)state;
    struct addr bad = source("10.0.0.1:1");
    throttle_init(&throttle);
    for (int i = 0; i < THROTTLE_BURST; i++) {
        assert_int_equal(throttle_fail(&throttle, &bad, 5000), 0);
    }
    for (uint32_t i = 0; i < 100000; i++) {
        struct addr addr = source("11.0.0.0:1");
        addr.in4.sin_addr.s_addr += htonl(i);
        (void)throttle_fail(&throttle, &addr, 5000);
    }
    /* Who is deepest in debt is remembered longest. */
    assert_int_not_equal(throttle_fail(&throttle, &bad, 5000), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_burst_and_refill),
        cmocka_unit_test(test_ipv6_counts_by_network),
        cmocka_unit_test(test_a_flood_of_sources),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
