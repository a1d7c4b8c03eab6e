/*
 * addr: what is accepted, what is refused and how it is told, and that formatting gives back the
 * text.
 */
#include "tests/support/unit.h"

#include "node/base/addr.h"

static void test_round_trip(void **state)
{
    (void)state;
    static const char *const texts[] = {"10.0.0.1:80", "[::1]:8080", "0.0.0.0:0",
                                        "[fe80::1:2]:65535"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct addr addr;
        char out[ADDR_TEXT_MAX];
        assert_int_equal(addr_parse(texts[i], &addr, NULL), RC_OK);
        assert_string_equal(addr_format(&addr, out), texts[i]);
    }
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",        "10.0.0.1", "10.0.0.1:", "10.0.0.1:65536", "a:80",
        "[::1:80", "::1:80x",  "1.2.3:80",  "10.0.0.1:+8",    "[]:1"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct addr addr;
        struct err_info err = {0};
        assert_int_equal(addr_parse(texts[i], &addr, &err), RC_INVALID);
        assert_non_null(strstr(err.text, "accepted are"));
    }
}

static void test_any_and_order(void **state)
{
    (void)state;
    struct addr a, b;
    assert_int_equal(addr_parse(":80", &a, NULL), RC_OK);
    assert_true(addr_is_any(&a));
    assert_int_equal(addr_parse("127.0.0.1:80", &b, NULL), RC_OK);
    assert_true(addr_is_loopback(&b));
    assert_true(addr_compare(&a, &b) < 0);
    assert_true(addr_compare(&b, &b) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_any_and_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
