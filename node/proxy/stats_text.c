/*
 * Metrics as text; see stats_text.h.
 */
#include "node/proxy/stats_text.h"

#include <string.h>

enum { NUMBER_MAX = 32 };

void text_family(struct buf *out, const char *metric, const char *type, const char *help)
{
    (void)buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", metric, help, metric, type);
}

static char *put(char *at, const char *text, size_t len)
{
    if (len != 0) {
        memcpy(at, text, len);
    }
    return at + len;
}

void text_label(struct buf *labels, const char *key, const char *value)
{
    size_t key_len = strlen(key);
    char *at = buf_reserve(labels, key_len + 2 * strlen(value) + 4);
    if (at == NULL) {
        return; /* labels->full tells */
    }
    if (labels->len != 0) {
        *at++ = ',';
    }
    at = put(at, key, key_len);
    *at++ = '=';
    *at++ = '"';
    for (const char *from = value; *from != '\0'; from++) {
        unsigned char c = (unsigned char)*from;
        if (c == '"' || c == '\\' || c == '\n') {
            *at++ = '\\';
            *at++ = c == '\n' ? 'n' : *from;
        } else {
            *at++ = c < 0x20 || c >= 0x7f ? '?' : *from;
        }
    }
    *at++ = '"';
    buf_grow(labels, (size_t)(at - (labels->data + labels->len)));
}

static char *put_number(char *at, uint64_t value)
{
    char digits[NUMBER_MAX];
    size_t i = sizeof(digits);
    do {
        digits[--i] = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    return put(at, digits + i, sizeof(digits) - i);
}

/* The name with its labels, and room behind it for a number and a line break. */
static char *begin(struct buf *out, const char *metric, const char *suffix,
                   const struct buf *labels, const char *more)
{
    size_t metric_len = strlen(metric);
    size_t suffix_len = strlen(suffix);
    size_t more_len = strlen(more);
    char *at = buf_reserve(out, metric_len + suffix_len + labels->len + more_len + NUMBER_MAX + 8);
    if (at == NULL) {
        return NULL; /* out->full tells */
    }
    at = put(at, metric, metric_len);
    at = put(at, suffix, suffix_len);
    if (labels->len != 0 || more_len != 0) {
        *at++ = '{';
        at = put(at, labels->data, labels->len);
        if (labels->len != 0 && more_len != 0) {
            *at++ = ',';
        }
        at = put(at, more, more_len);
        *at++ = '}';
    }
    *at++ = ' ';
    return at;
}

static void end(struct buf *out, char *at)
{
    *at++ = '\n';
    buf_grow(out, (size_t)(at - (out->data + out->len)));
}

static void put_series(struct buf *out, const char *metric, const char *suffix,
                       const struct buf *labels, const char *more, uint64_t value)
{
    char *at = begin(out, metric, suffix, labels, more);
    if (at != NULL) {
        end(out, put_number(at, value));
    }
}

void text_series(struct buf *out, const char *metric, const struct buf *labels, const char *more,
                 uint64_t value)
{
    put_series(out, metric, "", labels, more, value);
}

/* Nanoseconds as seconds. */
static void put_seconds(struct buf *out, const char *metric, const char *suffix,
                        const struct buf *labels, uint64_t ns)
{
    char *at = begin(out, metric, suffix, labels, "");
    if (at == NULL) {
        return;
    }
    at = put_number(at, ns / 1000000000U);
    *at++ = '.';
    uint64_t rest = ns % 1000000000U;
    for (uint64_t unit = 100000000U; unit != 0; unit /= 10) {
        *at++ = (char)('0' + rest / unit % 10);
    }
    end(out, at);
}

void text_histogram(struct buf *out, const char *metric, const struct buf *labels,
                    const struct histogram *histogram)
{
    uint64_t total = 0;
    for (size_t i = 0; i <= HISTOGRAM_BOUNDS; i++) {
        char more[32] = "le=\"+Inf\"";
        if (i < HISTOGRAM_BOUNDS) {
            char *at = put(more, "le=\"", 4);
            at = put(at, histogram_bounds_text[i], strlen(histogram_bounds_text[i]));
            (void)put(at, "\"", 2);
        }
        total += counter_read(&histogram->buckets[i]);
        put_series(out, metric, "_bucket", labels, more, total);
    }
    put_seconds(out, metric, "_sum", labels, counter_read(&histogram->sum_ns));
    put_series(out, metric, "_count", labels, "", total);
}
