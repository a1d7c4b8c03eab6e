/*
 * Differences of objects, as a dry run shows them.
 */
#include "tests/support/unit.h"

#include "node/base/defs.h"
#include "node/base/mem.h"
#include "proto/diff.h"

static char *diff_of(const char *old_text, const char *new_text)
{
    json_t *old_value = old_text != NULL ? json_loads(old_text, 0, NULL) : NULL;
    json_t *new_value = new_text != NULL ? json_loads(new_text, 0, NULL) : NULL;
    json_t *diff = object_diff(old_value, new_value);
    char *text = json_dumps(diff, JSON_COMPACT);
    json_decref(diff);
    json_decref(old_value);
    json_decref(new_value);
    return text;
}

#define assert_diff(old_text, new_text, expected)                                                  \
    do {                                                                                           \
        char *found_ = diff_of(old_text, new_text);                                                \
        assert_string_equal(found_, expected);                                                     \
        mem_free(found_);                                                                          \
    } while (0)

static void fields_are_compared(void **state)
{
    (void)state;
    assert_diff("{\"spec\":{\"a\":1}}", "{\"spec\":{\"a\":1}}", "[]");
    assert_diff("{\"spec\":{\"a\":1,\"b\":2}}", "{\"spec\":{\"b\":2,\"a\":1}}", "[]");
    assert_diff("{\"spec\":{\"a\":1,\"b\":2}}", "{\"spec\":{\"a\":5,\"c\":3}}",
                "[{\"path\":\"spec.a\",\"old\":1,\"new\":5},{\"path\":\"spec.b\",\"old\":2},"
                "{\"path\":\"spec.c\",\"new\":3}]");
    assert_diff("{\"spec\":{\"a\":{\"b\":1}}}", "{\"spec\":{\"a\":[1]}}",
                "[{\"path\":\"spec.a\",\"old\":{\"b\":1},\"new\":[1]}]");
    assert_diff("{\"metadata\":{\"labels\":{\"a.b/c\":\"x\"}}}", "{\"metadata\":{\"labels\":{}}}",
                "[{\"path\":\"metadata.labels[\\\"a.b/c\\\"]\",\"old\":\"x\"}]");
}

static void whole_objects_come_and_go(void **state)
{
    (void)state;
    assert_diff(NULL, "{\"kind\":\"Route\",\"status\":{}}",
                "[{\"path\":\"\",\"new\":{\"kind\":\"Route\"}}]");
    assert_diff("{\"kind\":\"Route\"}", NULL, "[{\"path\":\"\",\"old\":{\"kind\":\"Route\"}}]");
    assert_diff(NULL, NULL, "[]");
}

static void what_the_server_computes_is_left_out(void **state)
{
    (void)state;
    assert_diff("{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"1\",\"created\":\"x\","
                "\"modified\":\"x\",\"origin\":\"r1\"},\"status\":{\"admitted\":true}}",
                "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"2\"},\"status\":{}}", "[]");
}

static void lists_are_compared_by_name_or_by_position(void **state)
{
    (void)state;
    assert_diff("{\"spec\":{\"to\":[{\"backend\":\"a\",\"weight\":1},{\"backend\":\"b\"}]}}",
                "{\"spec\":{\"to\":[{\"backend\":\"c\"},{\"backend\":\"a\",\"weight\":2}]}}",
                "[{\"path\":\"spec.to[1]\",\"old\":{\"backend\":\"b\"}},"
                "{\"path\":\"spec.to[0]\",\"new\":{\"backend\":\"c\"}},"
                "{\"path\":\"spec.to[1].weight\",\"old\":1,\"new\":2}]");
    assert_diff(
        "{\"spec\":{\"x\":[1,2,3]}}", "{\"spec\":{\"x\":[1,5]}}",
        "[{\"path\":\"spec.x[1]\",\"old\":2,\"new\":5},{\"path\":\"spec.x[2]\",\"old\":3}]");
    /* Two elements of one name: by position. */
    assert_diff("{\"l\":[{\"name\":\"a\"},{\"name\":\"a\"}]}", "{\"l\":[{\"name\":\"a\"}]}",
                "[{\"path\":\"l[1]\",\"old\":{\"name\":\"a\"}}]");
    assert_diff("{\"l\":[{\"name\":\"a\"},{\"name\":\"b\"}]}",
                "{\"l\":[{\"name\":\"b\"},{\"name\":\"a\"}]}",
                "[{\"path\":\"l\",\"old\":[{\"name\":\"a\"},{\"name\":\"b\"}],\"new\":"
                "[{\"name\":\"b\"},{\"name\":\"a\"}]}]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_are_compared),
        cmocka_unit_test(whole_objects_come_and_go),
        cmocka_unit_test(what_the_server_computes_is_left_out),
        cmocka_unit_test(lists_are_compared_by_name_or_by_position),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
