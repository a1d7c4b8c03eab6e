/*
 * The examples of RFC 7396, appendix A, and what is shared.
 */
#include "tests/support/unit.h"

#include "node/base/defs.h"
#include "proto/merge.h"

static json_t *of(const char *text)
{
    json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);
    assert_non_null(value);
    return value;
}

static void the_examples_of_the_rfc(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        {"{\"a\":\"b\"}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
        {"{\"a\":\"b\"}", "{\"b\":\"c\"}", "{\"a\":\"b\",\"b\":\"c\"}"},
        {"{\"a\":\"b\"}", "{\"a\":null}", "{}"},
        {"{\"a\":\"b\",\"b\":\"c\"}", "{\"a\":null}", "{\"b\":\"c\"}"},
        {"{\"a\":[\"b\"]}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
        {"{\"a\":\"c\"}", "{\"a\":[\"b\"]}", "{\"a\":[\"b\"]}"},
        {"{\"a\":{\"b\":\"c\"}}", "{\"a\":{\"b\":\"d\",\"c\":null}}", "{\"a\":{\"b\":\"d\"}}"},
        {"{\"a\":[{\"b\":\"c\"}]}", "{\"a\":[1]}", "{\"a\":[1]}"},
        {"[\"a\",\"b\"]", "[\"c\",\"d\"]", "[\"c\",\"d\"]"},
        {"{\"a\":\"b\"}", "[\"c\"]", "[\"c\"]"},
        {"{\"a\":\"foo\"}", "null", "null"},
        {"{\"a\":\"foo\"}", "\"bar\"", "\"bar\""},
        {"{\"e\":null}", "{\"a\":1}", "{\"e\":null,\"a\":1}"},
        {"[1,2]", "{\"a\":\"b\",\"c\":null}", "{\"a\":\"b\"}"},
        {"{}", "{\"a\":{\"bb\":{\"ccc\":null}}}", "{\"a\":{\"bb\":{}}}"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        json_t *target = of(cases[i][0]);
        json_t *before = json_deep_copy(target);
        json_t *patch = of(cases[i][1]);
        json_t *expected = of(cases[i][2]);
        json_t *result = json_merge_patch(target, patch);
        assert_true(json_equal(result, expected));
        assert_true(json_equal(target, before));
        json_decref(result);
        json_decref(target);
        json_decref(before);
        json_decref(patch);
        json_decref(expected);
    }
}

static void nothing_is_a_target_too(void **state)
{
    (void)state;
    json_t *patch = of("{\"a\":{\"b\":1,\"c\":null}}");
    json_t *result = json_merge_patch(NULL, patch);
    json_t *expected = of("{\"a\":{\"b\":1}}");
    assert_true(json_equal(result, expected));
    /* Changing the result changes nothing of the patch. */
    (void)json_object_clear(json_object_get(result, "a"));
    assert_int_equal(json_object_size(json_object_get(patch, "a")), 2);
    json_decref(patch);
    json_decref(result);
    json_decref(expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_examples_of_the_rfc),
        cmocka_unit_test(nothing_is_a_target_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
