/*
 * Counters and their exposition; see the header.
 */
#include "admin/server/count.h"

#include <inttypes.h>
#include <string.h>

static const struct {
    uint64_t below_ns;
    const char *label;
} buckets[COUNT_BUCKETS] = {
    {UINT64_C(1000000), "0.001"}, {UINT64_C(5000000), "0.005"},  {UINT64_C(25000000), "0.025"},
    {UINT64_C(100000000), "0.1"}, {UINT64_C(250000000), "0.25"}, {UINT64_C(1000000000), "1"},
    {UINT64_C(5000000000), "5"},  {UINT64_C(30000000000), "30"},
};

static const char *known_method(const char *method)
{
    static const char *const known[] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"};
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (strcmp(known[i], method) == 0) {
            return known[i];
        }
    }
    return "other";
}

void count_answer(struct count *count, const char *method, int status, uint64_t duration_ns)
{
    method = known_method(method);
    size_t idx = 0;
    while (idx < count->row_count &&
           (count->rows[idx].status != status || strcmp(count->rows[idx].method, method) != 0)) {
        idx++;
    }
    if (idx == count->row_count && count->row_count < COUNT_ROWS_MAX) {
        count->rows[count->row_count++] = (struct count_row){.method = method, .status = status};
    }
    if (idx < count->row_count) {
        count->rows[idx].requests++;
    }
    size_t bucket = 0;
    while (bucket < COUNT_BUCKETS && duration_ns > buckets[bucket].below_ns) {
        bucket++;
    }
    count->buckets[bucket]++;
    count->total++;
    count->total_ns += duration_ns;
}

void count_format(const struct count *count, struct buf *out)
{
    (void)buf_puts(out, "# HELP skein_admin_requests_total Requests to the admin API.\n"
                        "# TYPE skein_admin_requests_total counter\n");
    for (size_t i = 0; i < count->row_count; i++) {
        const struct count_row *row = &count->rows[i];
        (void)buf_printf(out, "skein_admin_requests_total{method=\"%s\",code=\"%d\"} %" PRIu64 "\n",
                         row->method, row->status, row->requests);
    }
    (void)buf_puts(out, "# HELP skein_admin_request_duration_seconds From the whole head to the "
                        "answer.\n# TYPE skein_admin_request_duration_seconds histogram\n");
    uint64_t sum = 0;
    for (size_t i = 0; i < COUNT_BUCKETS; i++) {
        sum += count->buckets[i];
        (void)buf_printf(out,
                         "skein_admin_request_duration_seconds_bucket{le=\"%s\"} %" PRIu64 "\n",
                         buckets[i].label, sum);
    }
    (void)buf_printf(out,
                     "skein_admin_request_duration_seconds_bucket{le=\"+Inf\"} %" PRIu64 "\n"
                     "skein_admin_request_duration_seconds_sum %.6f\n"
                     "skein_admin_request_duration_seconds_count %" PRIu64 "\n",
                     count->total, (double)count->total_ns / 1e9, count->total);
    (void)buf_printf(out,
                     "# HELP skein_admin_connections_total Connections accepted by the admin API.\n"
                     "# TYPE skein_admin_connections_total counter\n"
                     "skein_admin_connections_total %" PRIu64 "\n",
                     count->connections);
    (void)buf_printf(out,
                     "# HELP skein_admin_watchers_dropped_total Watches ended because the watcher "
                     "was too slow.\n# TYPE skein_admin_watchers_dropped_total counter\n"
                     "skein_admin_watchers_dropped_total %" PRIu64 "\n",
                     count->watchers_dropped);
    (void)buf_puts(out, "# HELP skein_admin_auth_failures_total Requests without a credential that "
                        "will do.\n# TYPE skein_admin_auth_failures_total counter\n");
    static const char *const reasons[COUNT_AUTH_MAX] = {NULL, "missing", "unknown", "expired"};
    for (size_t i = 1; i < COUNT_AUTH_MAX; i++) {
        (void)buf_printf(out, "skein_admin_auth_failures_total{reason=\"%s\"} %" PRIu64 "\n",
                         reasons[i], count->auth_failures[i]);
    }
    (void)buf_printf(
        out,
        "skein_admin_auth_failures_total{reason=\"throttled\"} %" PRIu64 "\n"
        "# HELP skein_admin_forbidden_total Requests above the role or namespace of their user.\n"
        "# TYPE skein_admin_forbidden_total counter\n"
        "skein_admin_forbidden_total %" PRIu64 "\n"
        "# HELP skein_admin_handshakes_failed_total TLS handshakes that failed or took too long.\n"
        "# TYPE skein_admin_handshakes_failed_total counter\n"
        "skein_admin_handshakes_failed_total %" PRIu64 "\n"
        "# HELP skein_admin_displaced_total Connections closed before they showed a credential, to "
        "make room.\n"
        "# TYPE skein_admin_displaced_total counter\n"
        "skein_admin_displaced_total %" PRIu64 "\n",
        count->auth_throttled, count->forbidden, count->handshakes_failed, count->displaced);
}
