/*
 * Tables and the cells that are read from objects.
 */
#include "tests/support/unit.h"

#include "admin/cli/table.h"

static void test_columns_are_aligned(void **state)
{
    (void)state;
    struct table table;
    struct buf out;
    table_init(&table, 3);
    static const char *const cells[] = {"NAME", "HOST", "AGE", "a-long-name", "x", "1d",
                                        "b",    NULL,   "",    "\xc3\xa4",    "y", "2d"};
    for (size_t i = 0; i < ARRAY_LEN(cells); i++) {
        table_add(&table, cells[i]);
    }
    buf_init(&out, 4096);
    table_print(&table, &out);
    assert_string_equal(out.data, "NAME         HOST  AGE\n"
                                  "a-long-name  x     1d\n"
                                  "b            -     -\n"
                                  "\xc3\xa4            y     2d\n");
    buf_deinit(&out);
    table_deinit(&table);
}

static void test_many_rows(void **state)
{
    (void)state;
    struct table table;
    table_init(&table, 1);
    for (int i = 0; i < 1000; i++) {
        table_add(&table, "x");
    }
    assert_int_equal(table.cell_count, 1000);
    table_deinit(&table);
}

/* An object's text must not be able to move the cursor of whoever looks at it. */
static void test_control_characters_are_not_printed(void **state)
{
    (void)state;
    struct table table;
    struct buf out;
    table_init(&table, 1);
    table_add(&table, "a\x1b[2Jb\nc\x7f");
    buf_init(&out, 4096);
    table_print(&table, &out);
    assert_string_equal(out.data, "a?[2Jb?c?\n");
    buf_deinit(&out);
    table_deinit(&table);
}

static void check_cell(const char *json, const char *path, const char *wanted)
{
    json_error_t error;
    json_t *object = json_loads(json, JSON_DECODE_ANY, &error);
    struct buf out;
    buf_init(&out, 4096);
    cell_from_path(object, path, &out);
    assert_string_equal(out.data != NULL ? out.data : "", wanted);
    buf_deinit(&out);
    json_decref(object);
}

static void test_cells(void **state)
{
    (void)state;
    check_cell("{\"spec\":{\"host\":\"h\"}}", "spec.host", "h");
    check_cell("{\"spec\":{\"host\":\"h\"}}", "spec.path", "");
    check_cell("{\"spec\":{\"host\":\"h\"}}", "spec.host.deeper", "");
    check_cell("{\"spec\":{\"to\":[{\"backend\":\"a\"},{\"backend\":\"b\"}]}}", "spec.to[].backend",
               "a,b");
    check_cell("{\"spec\":{\"to\":[{\"backend\":\"a\"},{\"backend\":\"b\"}]}}", "spec.to.backend",
               "a,b");
    check_cell("{\"a\":12,\"b\":true,\"c\":1.5}", "a", "12");
    check_cell("{\"a\":12,\"b\":true,\"c\":1.5}", "b", "true");
    check_cell("{\"a\":12,\"b\":true,\"c\":1.5}", "c", "1.5");
    check_cell("{\"labels\":{\"x\":\"1\",\"y\":\"2\"}}", "labels", "x=1,y=2");
    check_cell("{\"a\":[\"x\",\"y\"]}", "a", "x,y");
    check_cell("{\"a\":null}", "a", "");
    check_cell("[]", "a", "");
}

static void check_age(const char *time, uint64_t now_s, const char *wanted)
{
    struct buf out;
    buf_init(&out, 64);
    cell_age(time, now_s * 1000, &out);
    assert_string_equal(out.data != NULL ? out.data : "", wanted);
    buf_deinit(&out);
}

static void test_ages(void **state)
{
    (void)state;
    static const char time[] = "2026-01-01T00:00:00.000Z";
    const uint64_t then = 1767225600;
    check_age(time, then, "0s");
    check_age(time, then + 119, "119s");
    check_age(time, then + 120, "2m");
    check_age(time, then + 7200, "2h");
    check_age(time, then + 3 * 86400, "3d");
    check_age(time, then - 100, "0s"); /* another node's clock */
    check_age("yesterday", then, "");
    check_age(NULL, then, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_columns_are_aligned),
        cmocka_unit_test(test_many_rows),
        cmocka_unit_test(test_control_characters_are_not_printed),
        cmocka_unit_test(test_cells),
        cmocka_unit_test(test_ages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
