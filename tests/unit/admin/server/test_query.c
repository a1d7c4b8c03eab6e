/*
 * Query parameters, percent-decoding, entity tags.
 */
#include "tests/support/unit.h"

#include "admin/server/query.h"
#include "node/base/mem.h"

static int parse(const char *text, struct query *query, struct err_info *err)
{
    return query_parse(text, strlen(text), query, err);
}

static void test_values_are_decoded(void **state)
{
    (void)state;
    struct query query = {0};
    struct err_info err;
    assert_int_equal(parse("selector=tier%3Dgold%2cx+y&pretty&a=&&b=%20", &query, &err), 0);
    assert_int_equal(query.count, 4);
    assert_string_equal(query_find(&query, "selector"), "tier=gold,x y");
    assert_string_equal(query_find(&query, "pretty"), "");
    assert_string_equal(query_find(&query, "a"), "");
    assert_string_equal(query_find(&query, "b"), " ");
    assert_null(query_find(&query, "c"));
    query_deinit(&query);
}

static void test_malformed_queries_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"a=%", "a=%4", "a=%zz", "a=%00", "a=%0a", "a=1&a=2", "%=1"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct query query = {0};
        struct err_info err = {0};
        assert_int_equal(parse(bad[i], &query, &err), RC_INVALID);
        assert_int_equal(query.count, 0);
        assert_true(strlen(err.text) > 0);
    }
    char many[1024] = "";
    for (int i = 0; i < QUERY_PARAMS_MAX + 1; i++) {
        size_t used = strlen(many);
        snprintf(many + used, sizeof(many) - used, "&p%d=1", i);
    }
    struct query query = {0};
    struct err_info err;
    assert_int_equal(parse(many, &query, &err), RC_INVALID);
}

static void test_typed_values(void **state)
{
    (void)state;
    struct query query = {0};
    struct err_info err;
    bool value = false;
    uint64_t number = 7;
    assert_int_equal(
        parse("a=true&b&c=0&d=maybe&n=12&m=x&big=99999999999999999999&neg=-1", &query, &err), 0);
    assert_int_equal(query_bool(&query, "a", &value, &err), 0);
    assert_true(value);
    assert_int_equal(query_bool(&query, "b", &value, &err), 0);
    assert_true(value);
    assert_int_equal(query_bool(&query, "c", &value, &err), 0);
    assert_false(value);
    assert_int_equal(query_bool(&query, "none", &value, &err), 0);
    assert_false(value);
    assert_int_equal(query_bool(&query, "d", &value, &err), RC_INVALID);
    assert_int_equal(query_number(&query, "none", 1, 9, &number, &err), 0);
    assert_int_equal(number, 7);
    assert_int_equal(query_number(&query, "n", 1, 12, &number, &err), 0);
    assert_int_equal(number, 12);
    assert_int_equal(query_number(&query, "n", 1, 11, &number, &err), RC_INVALID);
    assert_int_equal(query_number(&query, "m", 0, 9, &number, &err), RC_INVALID);
    assert_int_equal(query_number(&query, "big", 0, UINT64_MAX, &number, &err), RC_INVALID);
    assert_int_equal(query_number(&query, "neg", 0, 9, &number, &err), RC_INVALID);
    query_deinit(&query);
}

static void test_unknown_parameters_are_named(void **state)
{
    (void)state;
    struct query query = {0};
    struct err_info err;
    assert_int_equal(parse("limit=1&limi=2", &query, &err), 0);
    assert_int_equal(query_check(&query, "limit limi", &err), 0);
    assert_int_equal(query_check(&query, "selector limit continue", &err), RC_INVALID);
    assert_non_null(strstr(err.text, "\"limi\""));
    assert_non_null(strstr(err.text, "selector limit continue"));
    query_deinit(&query);
}

static void test_entity_tags(void **state)
{
    (void)state;
    assert_true(etag_matches("\"abc\"", "abc"));
    assert_true(etag_matches("*", "abc"));
    assert_true(etag_matches(" * ", "abc"));
    assert_true(etag_matches("\"x\", \"abc\"", "abc"));
    assert_true(etag_matches("\"a,b\",\"abc\"", "abc"));
    assert_false(etag_matches("*", NULL));
    assert_false(etag_matches("\"abc\"", NULL));
    assert_false(etag_matches("W/\"abc\"", "abc")); /* RFC 9110 13.1.1: strong comparison */
    assert_true(etag_matches("W/\"abc\", \"abc\"", "abc"));
    assert_false(etag_matches("abc", "abc"));
    assert_false(etag_matches("\"ab\"", "abc"));
    assert_false(etag_matches("\"abcd\"", "abc"));
    assert_false(etag_matches("\"abc", "abc"));
    assert_false(etag_matches("", "abc"));
    assert_false(etag_matches("*x", "abc"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_are_decoded),
        cmocka_unit_test(test_malformed_queries_are_refused),
        cmocka_unit_test(test_typed_values),
        cmocka_unit_test(test_unknown_parameters_are_named),
        cmocka_unit_test(test_entity_tags),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
