/*
 * Log lines: formatted on the stack, escaped, one write(2) under one leaf lock.
 */
#include "node/base/log.h"

#include "node/base/timesrc.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { DETAIL_MAX = 1024, LOG_LINE_MAX = 4096 };

/* The only mutable globals of the process besides allocator hooks; written before threads start. */
static struct {
    enum log_level level;
    bool json;
    char node[64];
    pthread_mutex_t lock;
} sink = {.level = LOG_LEVEL_INFO, .lock = PTHREAD_MUTEX_INITIALIZER};

static const char *const level_names[] = {"debug", "info", "warn", "error"};

void log_setup(enum log_level level, bool json, const char *node)
{
    sink.level = level;
    sink.json = json;
    (void)snprintf(sink.node, sizeof(sink.node), "%s", node); /* a cut name is still a name */
}

bool log_enabled(enum log_level level)
{
    return level >= sink.level;
}

/* Control bytes and bytes above 0x7e become \u00XX; what ends a JSON string is escaped in JSON. */
static size_t escape(char *out, size_t size, const char *text, bool json)
{
    size_t len = 0;
    for (const unsigned char *p = (const unsigned char *)text; *p != '\0' && len + 7 < size; p++) {
        if (json && (*p == '"' || *p == '\\')) {
            out[len++] = '\\';
            out[len++] = (char)*p;
        } else if (*p < 0x20 || *p > 0x7e) {
            len += (size_t)snprintf(out + len, size - len, "\\u%04x", *p);
        } else {
            out[len++] = (char)*p;
        }
    }
    out[len] = '\0';
    return len;
}

void log_write(enum log_level level, const char *event, const char *fmt, ...)
{
    if (!log_enabled(level)) {
        return;
    }
    char detail[DETAIL_MAX];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(detail, sizeof(detail), fmt, args); /* a cut detail is still a detail */
    va_end(args);

    char escaped[DETAIL_MAX * 2];
    escape(escaped, sizeof(escaped), detail, sink.json);
    char stamp[TIME_TEXT_MAX];
    time_format_wall(time_wall_ms(), stamp);

    char line[LOG_LINE_MAX];
    const char *form = sink.json
                           ? "{\"time\":\"%s\",\"level\":\"%s\",\"node\":\"%s\",\"event\":\"%s\","
                             "\"detail\":\"%s\"}\n"
                           : "%s %-5s %s %s: %s\n";
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    int len =
        snprintf(line, sizeof(line), form, stamp, level_names[level], sink.node, event, escaped);
#pragma GCC diagnostic pop
    if (len < 0) {
        return;
    }
    size_t size = MIN((size_t)len, sizeof(line) - 1);
    line[size - 1] = '\n';
    (void)pthread_mutex_lock(&sink.lock);
    ssize_t done = write(STDERR_FILENO, line, size); /* a lost log line must not stop a node */
    (void)done;
    (void)pthread_mutex_unlock(&sink.lock);
}

bool log_limit_pass(struct log_limit *limit, uint32_t burst, uint32_t *ret_suppressed)
{
    uint64_t now_s = time_mono_ms() / 1000;
    if (now_s != limit->window_s) {
        limit->window_s = now_s;
        limit->count = 0;
    }
    if (limit->count >= burst) {
        limit->suppressed++;
        return false;
    }
    limit->count++;
    *ret_suppressed = limit->suppressed;
    limit->suppressed = 0;
    return true;
}
