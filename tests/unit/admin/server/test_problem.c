/*
 * Problem documents: all faults, bounded, and always JSON.
 */
#include "tests/support/unit.h"

#include "admin/server/problem.h"

static const char *text_at(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

static void test_shape(void **state)
{
    (void)state;
    struct problem problem = {0};
    problem_add(&problem, "spec.host", json_pack("{s:i}", "index", 3), "%s is bad", "x");
    problem_add(&problem, "spec.to", NULL, "is missing");
    json_t *json = problem_to_json(&problem, 422, NULL);
    assert_string_equal(text_at(json, "type"), "about:blank");
    assert_int_equal(json_integer_value(json_object_get(json, "status")), 422);
    assert_true(strlen(text_at(json, "title")) > 0);
    assert_string_equal(text_at(json, "detail"), "2 faults");
    const json_t *first = json_array_get(json_object_get(json, "errors"), 0);
    assert_string_equal(text_at(first, "path"), "spec.host");
    assert_string_equal(text_at(first, "message"), "x is bad");
    assert_int_equal(json_integer_value(json_object_get(first, "index")), 3);
    json_decref(json);
    json = problem_to_json(&problem, 404, "nothing here");
    assert_string_equal(text_at(json, "detail"), "nothing here");
    assert_null(json_object_get(json, "errors"));
    json_decref(json);
    problem_deinit(&problem);
}

static void test_faults_are_counted_beyond_the_cap(void **state)
{
    (void)state;
    struct problem problem = {0};
    struct faults faults;
    faults_init(&faults);
    for (int i = 0; i < 2 * FAULTS_MAX; i++) {
        fault_field(&faults, "a", "fault %d", i);
    }
    problem_add_faults(&problem, "[0] Route x", NULL, &faults);
    problem_add_faults(&problem, "[1] Route y", NULL, &faults);
    assert_int_equal(problem.total, 4 * FAULTS_MAX);
    json_t *json = problem_to_json(&problem, 422, NULL);
    assert_int_equal(json_array_size(json_object_get(json, "errors")), PROBLEM_ERRORS_MAX);
    assert_int_equal(json_integer_value(json_object_get(json, "errorsTotal")), 4 * FAULTS_MAX);
    assert_string_equal(text_at(json_array_get(json_object_get(json, "errors"), 0), "path"),
                        "[0] Route x: a");
    json_decref(json);
    faults_deinit(&faults);
    problem_deinit(&problem);
}

/* A text that was cut inside a character must not lose the whole entry. */
static void test_bytes_that_are_no_text(void **state)
{
    (void)state;
    json_t *string = problem_string("a\xc3");
    assert_string_equal(json_string_value(string), "a?");
    json_decref(string);
    string = problem_string("a\xc3\xa4");
    assert_string_equal(json_string_value(string), "a\xc3\xa4");
    json_decref(string);
    struct problem problem = {0};
    json_t *json = problem_to_json(&problem, 400, "\xff");
    assert_string_equal(text_at(json, "detail"), "?");
    json_decref(json);
}

static void test_statuses(void **state)
{
    (void)state;
    static const struct {
        int rc;
        int status;
    } cases[] = {{RC_INVALID, 422},  {RC_NOT_FOUND, 404}, {RC_CONFLICT, 412}, {RC_TOO_BIG, 413},
                 {RC_NO_SPACE, 507}, {RC_BUSY, 503},      {RC_CLOCK, 503},    {RC_CLOSED, 503},
                 {RC_IO, 500},       {RC_CORRUPT, 500},   {-1000, 500}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(problem_status(cases[i].rc), cases[i].status);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shape),
        cmocka_unit_test(test_faults_are_counted_beyond_the_cap),
        cmocka_unit_test(test_bytes_that_are_no_text),
        cmocka_unit_test(test_statuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
