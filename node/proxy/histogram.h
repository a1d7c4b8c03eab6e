/*
 * Durations in fixed buckets, the same for everything, so that all can be added up.
 *
 * 128 bytes: a pair of cache lines. Written by one thread, read by any (shared.h). The bounds are
 * those of Prometheus clients, with three finer ones below them, since most answers take less than
 * five milliseconds; what takes more than ten seconds is counted above all bounds.
 */
#ifndef SKEIN_NODE_PROXY_HISTOGRAM_H
#define SKEIN_NODE_PROXY_HISTOGRAM_H

#include "node/proxy/shared.h"

enum { HISTOGRAM_BOUNDS = 14 };

extern const uint64_t histogram_bounds_ns[HISTOGRAM_BOUNDS];
/* The same in seconds, as they are written. */
extern const char *const histogram_bounds_text[HISTOGRAM_BOUNDS];

struct histogram {
    struct counter buckets[HISTOGRAM_BOUNDS + 1]; /* not cumulative; last: above all bounds */
    struct counter sum_ns;
};

static inline size_t histogram_bucket(uint64_t ns)
{
    size_t i = 0;
    while (i < HISTOGRAM_BOUNDS && ns > histogram_bounds_ns[i]) {
        i++;
    }
    return i;
}

/* Thread: the one that writes. bucket: histogram_bucket(ns). */
static inline void histogram_add(struct histogram *histogram, size_t bucket, uint64_t ns)
{
    counter_add(&histogram->buckets[bucket], 1);
    counter_add(&histogram->sum_ns, ns);
}

/* sum += part; the caller owns sum. */
void histogram_merge(struct histogram *sum, const struct histogram *part);

/* How many there are. */
uint64_t histogram_count(const struct histogram *histogram);

#endif
