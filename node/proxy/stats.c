/*
 * Counters into Prometheus text; see stats.h.
 */
#include "node/proxy/stats.h"

#include "node/proxy/stats_text.h"

#include <stdio.h>

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

const char *const traffic_classes[6] = {
    "code=\"none\"", "code=\"1xx\"", "code=\"2xx\"", "code=\"3xx\"", "code=\"4xx\"", "code=\"5xx\"",
};

static const struct buf no_labels;

/* Of one counter of every block. */
static void put_sum(struct stats *const *blocks, size_t count, size_t offset, const char *metric,
                    const char *labels, struct buf *out)
{
    text_series(out, metric, &no_labels, labels, sum_at(blocks, count, offset));
}

static void format_rows(struct stats *const *blocks, size_t count, struct buf *out)
{
    for (size_t i = 0; i < STAT_COUNT; i++) {
        if (rows[i].help[0] != '\0') {
            text_family(out, rows[i].metric, "counter", rows[i].help);
        }
        put_sum(blocks, count, offsetof(struct stats, values) + i * sizeof(struct counter),
                rows[i].metric, rows[i].labels, out);
    }
}

static void format_answers(struct stats *const *blocks, size_t count, struct buf *out)
{
    text_family(out, "skein_responses_total", "counter", "Responses by class; none: not completed");
    for (size_t i = 0; i < ARRAY_LEN(traffic_classes); i++) {
        put_sum(blocks, count, offsetof(struct stats, responses) + i * sizeof(struct counter),
                "skein_responses_total", traffic_classes[i], out);
    }
    text_family(out, "skein_answers_total", "counter", "Responses made by Skein itself, by reason");
    for (size_t i = 1; i < REASON_COUNT; i++) {
        char labels[96];
        (void)snprintf(labels, sizeof(labels), "code=\"%u\",reason=\"%s\"", reasons[i].status,
                       reasons[i].label);
        put_sum(blocks, count, offsetof(struct stats, answered) + i * sizeof(struct counter),
                "skein_answers_total", labels, out);
    }
}

static void format_durations(struct stats *const *blocks, size_t count, struct buf *out)
{
    static const char metric[] = "skein_request_duration_seconds";
    struct histogram sum = {0};
    for (size_t i = 0; i < count; i++) {
        histogram_merge(&sum, &blocks[i]->duration);
    }
    text_family(out, metric, "histogram",
                "From the first byte of a request to the end of its response");
    text_histogram(out, metric, &no_labels, &sum);
}

void stats_format(struct stats *const *blocks, size_t count, struct buf *out)
{
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
        {"skein_tunnels", "gauge", "Upgraded connections open now",
         offsetof(struct stats, tunnels)},
    };
    format_rows(blocks, count, out);
    format_answers(blocks, count, out);
    for (size_t i = 0; i < ARRAY_LEN(plain); i++) {
        text_family(out, plain[i].metric, plain[i].type, plain[i].help);
        put_sum(blocks, count, plain[i].offset, plain[i].metric, "", out);
    }
    format_durations(blocks, count, out);
}

void traffic_merge(struct traffic *sum, const struct traffic *part)
{
    for (size_t i = 0; i < ARRAY_LEN(sum->responses); i++) {
        counter_add(&sum->responses[i], counter_read(&part->responses[i]));
    }
    counter_add(&sum->bytes_in, counter_read(&part->bytes_in));
    counter_add(&sum->bytes_out, counter_read(&part->bytes_out));
}
