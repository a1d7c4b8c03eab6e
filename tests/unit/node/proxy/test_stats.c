/*
 * Counters as text: sums over workers, labels, histogram.
 */
#include "node/base/mem.h"
#include "node/proxy/stats.h"
#include "tests/support/unit.h"

static void test_sums_and_histogram(void **state)
{
    (void)state;
    struct stats *blocks[2] = {mem_lines(sizeof(struct stats)), mem_lines(sizeof(struct stats))};
    stat_add(blocks[0], STAT_REQUESTS, 2);
    stat_add(blocks[1], STAT_REQUESTS, 3);
    counter_add(&blocks[1]->answered[REASON_NO_ROUTE], 1);
    counter_add(&blocks[0]->responses[2], 1);
    counter_add(&blocks[0]->responses[5], 1);
    counter_add(&blocks[1]->responses[5], 1);
    counter_add(&blocks[1]->responses[0], 1);
    static const uint64_t us[] = {900, 1000, 40000000, 3000};
    for (size_t i = 0; i < ARRAY_LEN(us); i++) {
        uint64_t ns = us[i] * 1000;
        histogram_add(&blocks[i / 2]->duration, histogram_bucket(ns), ns);
    }
    struct buf out;
    buf_init(&out, 1 << 20);
    stats_format(blocks, 2, &out);
    static const char *const lines[] = {
        "skein_requests_total 5\n",
        "skein_answers_total{code=\"404\",reason=\"no_route\"} 1\n",
        "skein_responses_total{code=\"2xx\"} 1\n",
        "skein_responses_total{code=\"5xx\"} 2\n",
        "skein_responses_total{code=\"none\"} 1\n",
        "skein_request_duration_seconds_bucket{le=\"0.001\"} 2\n",
        "skein_request_duration_seconds_bucket{le=\"0.005\"} 3\n",
        "skein_request_duration_seconds_bucket{le=\"10\"} 3\n",
        "skein_request_duration_seconds_bucket{le=\"+Inf\"} 4\n",
        "skein_request_duration_seconds_sum 40.004900000\n",
        "skein_upstream_connect_failures_total{reason=\"timeout\"} 0\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        assert_non_null(strstr(out.data, lines[i]));
    }
    /* A metric is introduced once, however many labels it has. */
    const char *first = strstr(out.data, "# TYPE skein_upstream_connect_failures_total counter");
    assert_non_null(first);
    assert_null(strstr(first + 1, "# TYPE skein_upstream_connect_failures_total counter"));
    buf_deinit(&out);
    mem_free(blocks[0]);
    mem_free(blocks[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sums_and_histogram)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
