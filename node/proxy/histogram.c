/*
 * Bounds and sums of histograms; see histogram.h.
 */
#include "node/proxy/histogram.h"

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)

const uint64_t histogram_bounds_ns[HISTOGRAM_BOUNDS] = {
    500 * US, 1 * MS,   2500 * US, 5 * MS,    10 * MS,   25 * MS,   50 * MS,
    100 * MS, 250 * MS, 500 * MS,  1000 * MS, 2500 * MS, 5000 * MS, 10000 * MS,
};

const char *const histogram_bounds_text[HISTOGRAM_BOUNDS] = {
    "0.0005", "0.001", "0.0025", "0.005", "0.01", "0.025", "0.05",
    "0.1",    "0.25",  "0.5",    "1",     "2.5",  "5",     "10",
};

void histogram_merge(struct histogram *sum, const struct histogram *part)
{
    for (size_t i = 0; i <= HISTOGRAM_BOUNDS; i++) {
        counter_add(&sum->buckets[i], counter_read(&part->buckets[i]));
    }
    counter_add(&sum->sum_ns, counter_read(&part->sum_ns));
}

uint64_t histogram_count(const struct histogram *histogram)
{
    uint64_t count = 0;
    for (size_t i = 0; i <= HISTOGRAM_BOUNDS; i++) {
        count += counter_read(&histogram->buckets[i]);
    }
    return count;
}
