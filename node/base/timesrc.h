/*
 * Time in milliseconds. Pure cores never call these: time is passed in to them.
 */
#ifndef SKEIN_NODE_BASE_TIMESRC_H
#define SKEIN_NODE_BASE_TIMESRC_H

#include "node/base/defs.h"

/* Monotonic; starts anywhere, never goes back. Any thread. */
uint64_t time_mono_ms(void);
uint64_t time_mono_ns(void);

/*
 * Since 1970, as the machine believes. SKEIN_TEST_CLOCK_OFFSET_MS (a signed number, read once) is
 * added, so that tests can run one node with a wrong clock. Any thread.
 */
uint64_t time_wall_ms(void);

enum { TIME_TEXT_MAX = 32 };

/* RFC 3339 with milliseconds, UTC ("2026-01-31T10:00:00.000Z"), into out; returns out. */
const char *time_format_wall(uint64_t wall_ms, char out[TIME_TEXT_MAX]);

#endif
