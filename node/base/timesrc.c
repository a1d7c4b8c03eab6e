/*
 * Clocks of the machine.
 */
#include "node/base/timesrc.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int64_t test_offset_ms;
static pthread_once_t test_offset_once = PTHREAD_ONCE_INIT;

static void read_test_offset(void)
{
    const char *text = getenv("SKEIN_TEST_CLOCK_OFFSET_MS");
    test_offset_ms = text != NULL ? strtoll(text, NULL, 10) : 0;
}

uint64_t time_mono_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail with this clock */
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

uint64_t time_mono_ms(void)
{
    return time_mono_ns() / 1000000U;
}

uint64_t time_wall_ms(void)
{
    struct timespec now;
    (void)pthread_once(&test_offset_once, read_test_offset); /* fails only on bad arguments */
    (void)clock_gettime(CLOCK_REALTIME, &now);               /* cannot fail with this clock */
    int64_t wall_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 + test_offset_ms;
    return wall_ms > 0 ? (uint64_t)wall_ms : 0;
}

const char *time_format_wall(uint64_t wall_ms, char out[TIME_TEXT_MAX])
{
    time_t seconds = (time_t)(wall_ms / 1000);
    struct tm tm;
    char stamp[24];
    if (gmtime_r(&seconds, &tm) == NULL ||
        strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &tm) == 0) {
        memcpy(stamp, "-", 2);
    }
    (void)snprintf(out, TIME_TEXT_MAX, "%s.%03uZ", stamp, (unsigned)(wall_ms % 1000));
    return out;
}
