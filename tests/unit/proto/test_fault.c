/*
 * The list of faults: paths, bounds, and what follows from another fault.
 */
#include "tests/unit/proto/objects.h"

static void paths_are_walked(void **state)
{
    (void)state;
    struct faults faults;
    faults_init(&faults);
    size_t spec = faults_enter(&faults, "spec");
    size_t item = faults_enter_item(&faults, "to", 1);
    fault_field(&faults, "weight", "%d is above %d", 300, 256);
    faults_leave(&faults, item);
    fault_add(&faults, "here");
    faults_leave(&faults, spec);
    size_t metadata = faults_enter(&faults, "metadata");
    size_t labels = faults_enter(&faults, "labels");
    size_t key = faults_enter_key(&faults, "example.com/tier");
    fault_add(&faults, "a");
    faults_leave(&faults, key);
    key = faults_enter_key(&faults, "tier");
    fault_field(&faults, NULL, "b");
    faults_leave(&faults, key);
    faults_leave(&faults, labels);
    faults_leave(&faults, metadata);
    fault_add(&faults, "whole");

    struct buf out;
    buf_init(&out, 4096);
    faults_format(&faults, &out);
    assert_string_equal(out.data, "spec.to[1].weight: 300 is above 256\n"
                                  "spec: here\n"
                                  "metadata.labels[\"example.com/tier\"]: a\n"
                                  "metadata.labels.tier: b\n"
                                  "whole\n");
    struct err_info err;
    assert_int_equal(faults_err(&faults, RC_INVALID, &err), RC_INVALID);
    assert_string_equal(err.text, "spec.to[1].weight: 300 is above 256 (and 4 more)");
    buf_deinit(&out);
    faults_deinit(&faults);
}

static void the_list_is_bounded(void **state)
{
    (void)state;
    struct faults faults;
    faults_init(&faults);
    for (int i = 0; i < FAULTS_MAX + 23; i++) {
        fault_add(&faults, "%d", i);
    }
    assert_int_equal(faults.count, FAULTS_MAX);
    assert_int_equal(faults.total, FAULTS_MAX + 23);
    struct buf out;
    buf_init(&out, 4096);
    faults_format(&faults, &out);
    assert_non_null(strstr(out.data, "\n99\nand 23 more\n"));
    buf_deinit(&out);
    faults_deinit(&faults);
}

static void long_paths_and_texts_are_cut(void **state)
{
    (void)state;
    struct faults faults;
    faults_init(&faults);
    char name[400];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    size_t first = faults_enter(&faults, name);
    size_t second = faults_enter(&faults, name);
    size_t third = faults_enter(&faults, name);
    fault_add(&faults, "%s%s", name, name);
    assert_int_equal(strlen(faults.items[0].path), FAULT_PATH_MAX - 1);
    assert_int_equal(strlen(faults.items[0].text), FAULT_TEXT_MAX - 1);
    faults_leave(&faults, third);
    faults_leave(&faults, second);
    faults_leave(&faults, first);
    assert_string_equal(faults.path, "");
    faults_deinit(&faults);
}

static void texts_are_one_clean_line(void **state)
{
    (void)state;
    struct faults faults;
    faults_init(&faults);
    size_t mark = faults_enter_key(&faults, "k\x1b\n\xff");
    fault_add(&faults, "\"%s\"", "a\nb\x7f\xc3");
    faults_leave(&faults, mark);
    assert_string_equal(faults.items[0].path, "[\"k???\"]");
    assert_string_equal(faults.items[0].text, "\"a?b??\"");
    faults_deinit(&faults);
}

static void what_follows_from_a_fault_is_left_out(void **state)
{
    (void)state;
    struct faults faults;
    faults_init(&faults);
    fault_field(&faults, "spec.to", "wants a list");
    faults_shadow(&faults);
    fault_field(&faults, "spec.to", "is missing");
    fault_field(&faults, "spec.to[0].weight", "is missing");
    fault_field(&faults, "spec.to.x", "is missing");
    assert_int_equal(faults.total, 1);
    fault_field(&faults, "spec.tor", "is another field");
    fault_field(&faults, "spec", "is above it");
    assert_int_equal(faults.total, 3);
    faults_deinit(&faults);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_are_walked),
        cmocka_unit_test(the_list_is_bounded),
        cmocka_unit_test(long_paths_and_texts_are_cut),
        cmocka_unit_test(texts_are_one_clean_line),
        cmocka_unit_test(what_follows_from_a_fault_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
