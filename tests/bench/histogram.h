/*
 * Counts of times in buckets whose width grows with the value: 128 to each doubling, so a quantile
 * is at most 0.8 % too high, from nanoseconds to centuries, in 60 kB. A quantile is the upper edge
 * of its bucket: never too good.
 */
#ifndef SKEIN_TESTS_BENCH_HISTOGRAM_H
#define SKEIN_TESTS_BENCH_HISTOGRAM_H

#include <stdint.h>
#include <string.h>

enum { HISTOGRAM_STEPS = 128, HISTOGRAM_SIZE = 60 * HISTOGRAM_STEPS };

struct histogram {
    uint64_t counts[HISTOGRAM_SIZE];
    uint64_t total;
    uint64_t max;
};

static inline unsigned histogram_index(uint64_t value)
{
    unsigned bits = value == 0 ? 0 : 64U - (unsigned)__builtin_clzll(value);
    unsigned shift = bits > 8 ? bits - 8 : 0;
    return shift * HISTOGRAM_STEPS + (unsigned)(value >> shift);
}

static inline uint64_t histogram_edge(unsigned index)
{
    if (index < 2 * HISTOGRAM_STEPS) {
        return index;
    }
    unsigned shift = index / HISTOGRAM_STEPS - 1;
    return ((uint64_t)(index % HISTOGRAM_STEPS + HISTOGRAM_STEPS + 1) << shift) - 1;
}

static inline void histogram_add(struct histogram *histogram, uint64_t value)
{
    unsigned index = histogram_index(value);
    histogram->counts[index < HISTOGRAM_SIZE ? index : HISTOGRAM_SIZE - 1]++;
    histogram->total++;
    histogram->max = value > histogram->max ? value : histogram->max;
}

/* part: 0 to 1. 0 when nothing was counted. */
static inline uint64_t histogram_quantile(const struct histogram *histogram, double part)
{
    double wanted = part * (double)histogram->total;
    uint64_t seen = 0;
    for (unsigned i = 0; i < HISTOGRAM_SIZE; i++) {
        seen += histogram->counts[i];
        if (histogram->counts[i] > 0 && (double)seen >= wanted) {
            uint64_t edge = histogram_edge(i);
            return edge < histogram->max ? edge : histogram->max;
        }
    }
    return histogram->max;
}

#endif
