/*
 * Counters: bounded labels, cumulative buckets.
 */
#include "tests/support/unit.h"

#include "admin/server/count.h"

static bool has(const struct count *count, const char *line)
{
    struct buf out;
    buf_init(&out, 1 << 20);
    count_format(count, &out);
    bool found = strstr(out.data, line) != NULL;
    buf_deinit(&out);
    return found;
}

static void test_requests_by_method_and_code(void **state)
{
    (void)state;
    struct count count = {0};
    count_answer(&count, "GET", 200, 1000);
    count_answer(&count, "GET", 200, 1000);
    count_answer(&count, "GET", 404, 1000);
    assert_true(has(&count, "skein_admin_requests_total{method=\"GET\",code=\"200\"} 2\n"));
    assert_true(has(&count, "skein_admin_requests_total{method=\"GET\",code=\"404\"} 1\n"));
}

/* A client chooses the method: its text is no label, and rows are bounded. */
static void test_labels_are_bounded(void **state)
{
    (void)state;
    struct count count = {0};
    count_answer(&count, "EVIL\"}", 405, 1000);
    count_answer(&count, "OTHER", 405, 1000);
    assert_true(has(&count, "{method=\"other\",code=\"405\"} 2\n"));
    assert_false(has(&count, "EVIL"));
    for (int status = 0; status < 1000; status++) {
        count_answer(&count, "GET", status, 1000);
    }
    assert_int_equal(count.row_count, COUNT_ROWS_MAX);
    assert_int_equal(count.total, 1002);
}

static void test_buckets_are_cumulative(void **state)
{
    (void)state;
    struct count count = {0};
    count_answer(&count, "GET", 200, 1000000);
    count_answer(&count, "GET", 200, 1000001);
    count_answer(&count, "GET", 200, UINT64_C(60000000000));
    assert_true(has(&count, "_bucket{le=\"0.001\"} 1\n"));
    assert_true(has(&count, "_bucket{le=\"0.005\"} 2\n"));
    assert_true(has(&count, "_bucket{le=\"30\"} 2\n"));
    assert_true(has(&count, "_bucket{le=\"+Inf\"} 3\n"));
    assert_true(has(&count, "skein_admin_request_duration_seconds_count 3\n"));
    assert_true(has(&count, "skein_admin_request_duration_seconds_sum 60.002000\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests_by_method_and_code),
        cmocka_unit_test(test_labels_are_bounded),
        cmocka_unit_test(test_buckets_are_cumulative),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
