/*
 * Buckets at their bounds, and sums.
 */
#include "node/proxy/histogram.h"
#include "tests/support/unit.h"

static void test_bounds(void **state)
{
    (void)state;
    for (size_t i = 0; i < HISTOGRAM_BOUNDS; i++) {
        assert_int_equal(histogram_bucket(histogram_bounds_ns[i]), i);
        assert_int_equal(histogram_bucket(histogram_bounds_ns[i] + 1), i + 1);
        double seconds = (double)histogram_bounds_ns[i] / 1e9;
        char text[32];
        (void)snprintf(text, sizeof(text), "%g", seconds);
        assert_string_equal(text, histogram_bounds_text[i]);
        assert_true(i == 0 || histogram_bounds_ns[i] > histogram_bounds_ns[i - 1]);
    }
    assert_int_equal(histogram_bucket(0), 0);
    assert_int_equal(histogram_bucket(UINT64_MAX), HISTOGRAM_BOUNDS);
    assert_int_equal(sizeof(struct histogram), 2 * CACHE_LINE);
}

static void test_merge(void **state)
{
    (void)state;
    struct histogram a = {0};
    struct histogram b = {0};
    histogram_add(&a, 0, 7);
    histogram_add(&a, HISTOGRAM_BOUNDS, 11000000000);
    histogram_add(&b, 0, 5);
    histogram_merge(&a, &b);
    assert_int_equal(histogram_count(&a), 3);
    assert_int_equal(counter_read(&a.buckets[0]), 2);
    assert_int_equal(counter_read(&a.sum_ns), 11000000012);
    assert_int_equal(histogram_count(&b), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bounds), cmocka_unit_test(test_merge)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
