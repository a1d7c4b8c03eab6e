/*
 * Counters into Prometheus text; see stats.h.
 */
#include "node/proxy/stats.h"

const uint32_t duration_bounds_ms[DURATION_BUCKETS] = {1,   2,   5,    10,   25,   50,    100,
                                                       250, 500, 1000, 2500, 5000, 10000, 30000};

static const struct reason_row reasons[REASON_COUNT] = {
#define X(name, status, label, text) [name] = {status, label, text},
    REASON_TABLE(X)
#undef X
};

static const struct {
    const char *metric;
    const char *labels;
    const char *help;
} rows[STAT_COUNT] = {
#define X(name, metric, labels, help) [name] = {metric, labels, help},
    STAT_TABLE(X)
#undef X
};

const struct reason_row *reason_row(enum reason reason)
{
    ASSERT(reason < REASON_COUNT);
    return &reasons[reason];
}

void stats_exchange(struct stats *stats, uint16_t status, uint64_t duration_us)
{
    counter_add(&stats->responses[MIN(status / 100U, 5U)], 1);
    size_t i = 0;
    while (i < DURATION_BUCKETS && duration_us > duration_bounds_ms[i] * UINT64_C(1000)) {
        i++;
    }
    counter_add(&stats->duration[i], 1);
    counter_add(&stats->duration_sum_us, duration_us);
}

static void put_head(struct buf *out, const char *metric, const char *type, const char *help)
{
    (void)buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", metric, help, metric, type);
}

/* Sum of the counter at this offset of every block. */
static uint64_t sum_at(struct stats *const *blocks, size_t count, size_t offset)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum +=
            counter_read((const struct counter *)(const void *)((const char *)blocks[i] + offset));
    }
    return sum;
}

static void format_durations(struct stats *const *blocks, size_t count, struct buf *out)
{
    const char *metric = "skein_request_duration_seconds";
    put_head(out, metric, "histogram",
             "From the first byte of a request to the end of its response");
    uint64_t total = 0;
    for (size_t i = 0; i <= DURATION_BUCKETS; i++) {
        total +=
            sum_at(blocks, count, offsetof(struct stats, duration) + i * sizeof(struct counter));
        if (i < DURATION_BUCKETS) {
            (void)buf_printf(out, "%s_bucket{le=\"%g\"} %llu\n", metric,
                             duration_bounds_ms[i] / 1000.0, (unsigned long long)total);
        }
    }
    uint64_t sum_us = sum_at(blocks, count, offsetof(struct stats, duration_sum_us));
    (void)buf_printf(out, "%s_bucket{le=\"+Inf\"} %llu\n%s_sum %.6f\n%s_count %llu\n", metric,
                     (unsigned long long)total, metric, (double)sum_us / 1e6, metric,
                     (unsigned long long)total);
}

static const char *class_label(size_t i)
{
    static const char *const labels[6] = {"none", "1xx", "2xx", "3xx", "4xx", "5xx"};
    return labels[i];
}

void stats_format(struct stats *const *blocks, size_t count, struct buf *out)
{
    for (size_t i = 0; i < STAT_COUNT; i++) {
        if (rows[i].help[0] != '\0') {
            put_head(out, rows[i].metric, "counter", rows[i].help);
        }
        bool labelled = rows[i].labels[0] != '\0';
        (void)buf_printf(out, "%s%s%s%s %llu\n", rows[i].metric, labelled ? "{" : "",
                         rows[i].labels, labelled ? "}" : "",
                         (unsigned long long)sum_at(blocks, count,
                                                    offsetof(struct stats, values) +
                                                        i * sizeof(struct counter)));
    }
    put_head(out, "skein_responses_total", "counter", "Responses by class; none: not completed");
    for (size_t i = 0; i < 6; i++) {
        (void)buf_printf(out, "skein_responses_total{code=\"%s\"} %llu\n", class_label(i),
                         (unsigned long long)sum_at(blocks, count,
                                                    offsetof(struct stats, responses) +
                                                        i * sizeof(struct counter)));
    }
    put_head(out, "skein_answers_total", "counter", "Responses made by Skein itself, by reason");
    for (size_t i = 1; i < REASON_COUNT; i++) {
        (void)buf_printf(out, "skein_answers_total{code=\"%u\",reason=\"%s\"} %llu\n",
                         reasons[i].status, reasons[i].label,
                         (unsigned long long)sum_at(blocks, count,
                                                    offsetof(struct stats, answered) +
                                                        i * sizeof(struct counter)));
    }
    static const struct {
        const char *metric;
        const char *type;
        const char *help;
        size_t offset;
    } plain[] = {
        {"skein_request_bytes_total", "counter", "Request bodies read from clients",
         offsetof(struct stats, bytes_in)},
        {"skein_response_bytes_total", "counter", "Response bodies read from endpoints",
         offsetof(struct stats, bytes_out)},
        {"skein_client_connections", "gauge", "Client connections open now",
         offsetof(struct stats, clients)},
        {"skein_upstream_connections", "gauge", "Connections to endpoints open now, idle included",
         offsetof(struct stats, upstreams)},
    };
    for (size_t i = 0; i < ARRAY_LEN(plain); i++) {
        put_head(out, plain[i].metric, plain[i].type, plain[i].help);
        (void)buf_printf(out, "%s %llu\n", plain[i].metric,
                         (unsigned long long)sum_at(blocks, count, plain[i].offset));
    }
    format_durations(blocks, count, out);
}

void traffic_add(struct traffic *sum, const struct traffic *part)
{
    for (size_t i = 0; i < ARRAY_LEN(sum->responses); i++) {
        counter_add(&sum->responses[i], counter_read(&part->responses[i]));
    }
    counter_add(&sum->bytes_in, counter_read(&part->bytes_in));
    counter_add(&sum->bytes_out, counter_read(&part->bytes_out));
}

void traffic_format_responses(const struct traffic *sum, const char *metric, const char *label,
                              struct buf *out)
{
    for (size_t i = 0; i < ARRAY_LEN(sum->responses); i++) {
        uint64_t value = counter_read(&sum->responses[i]);
        if (value != 0 || i == 2) {
            (void)buf_printf(out, "%s{%s,code=\"%s\"} %llu\n", metric, label, class_label(i),
                             (unsigned long long)value);
        }
    }
}
