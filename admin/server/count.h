/*
 * The API's own counters. Labels are bounded: known methods, and status codes that we answer.
 * Thread: the control thread.
 */
#ifndef SKEIN_ADMIN_SERVER_COUNT_H
#define SKEIN_ADMIN_SERVER_COUNT_H

#include "node/base/buf.h"

enum { COUNT_ROWS_MAX = 128, COUNT_BUCKETS = 8, COUNT_AUTH_MAX = 4 };

struct count {
    struct count_row {
        const char *method; /* static */
        int status;
        uint64_t requests;
    } rows[COUNT_ROWS_MAX];
    size_t row_count;
    uint64_t buckets[COUNT_BUCKETS + 1]; /* not cumulative; the last is "+Inf" */
    uint64_t total;
    uint64_t total_ns;
    uint64_t connections; /* accepted so far */
    uint64_t watchers_dropped;
    uint64_t handshakes_failed;
    uint64_t displaced;                     /* closed to make room before a credential was shown */
    uint64_t auth_failures[COUNT_AUTH_MAX]; /* by enum auth_result; the first is not used */
    uint64_t auth_throttled;
    uint64_t forbidden;
};

/* One answer. method may be any text: unknown ones are counted together. */
void count_answer(struct count *count, const char *method, int status, uint64_t duration_ns);

/* Prometheus text, appended. */
void count_format(const struct count *count, struct buf *out);

#endif
