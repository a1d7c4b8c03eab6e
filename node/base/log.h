/*
 * Structured log lines to stderr, JSON or text, whole lines, from any thread.
 *
 * An event is a fixed message plus key/value pairs; secrets never go into either. The calls take
 * one leaf lock and do one write(2); workers log only rare things (the access log is another path).
 */
#ifndef SKEIN_NODE_BASE_LOG_H
#define SKEIN_NODE_BASE_LOG_H

#include "node/base/defs.h"

enum log_level {
    LOG_LEVEL_DEBUG = 0,
    LOG_LEVEL_INFO,
    LOG_LEVEL_WARN,
    LOG_LEVEL_ERROR,
};

/* Before threads start. `node` is copied and put on every line. */
void log_setup(enum log_level level, bool json, const char *node);
bool log_enabled(enum log_level level);

/*
 * Write one line. `event` is a short constant message ("member is dead"); the format makes one
 * string of space-separated key=value details for people, e.g. log_info("joined", "peer=%s", name).
 * Detail text is escaped, so a peer's bytes cannot forge lines.
 */
void log_write(enum log_level level, const char *event, const char *fmt, ...) PRINTF_LIKE(3, 4);

#define log_debug(...)                                                                             \
    do {                                                                                           \
        if (log_enabled(LOG_LEVEL_DEBUG)) {                                                        \
            log_write(LOG_LEVEL_DEBUG, __VA_ARGS__);                                               \
        }                                                                                          \
    } while (0)
#define log_info(...)  log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_warn(...)  log_write(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_error(...) log_write(LOG_LEVEL_ERROR, __VA_ARGS__)

/*
 * At most `burst` lines per second and limiter; what was left out is counted and told by the next
 * line that passes. Use one static limiter per call site that a peer can trigger.
 */
struct log_limit {
    uint64_t window_s;
    uint32_t count;
    uint32_t suppressed;
};
/* True: log now, and *ret_suppressed lines were left out before. Thread: one per limiter. */
bool log_limit_pass(struct log_limit *limit, uint32_t burst, uint32_t *ret_suppressed);

#endif
