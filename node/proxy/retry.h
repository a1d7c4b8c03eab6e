/*
 * The budget for repetitions: at most a fifth of the requests and a few more, over a sliding
 * window.
 *
 * Retries help when one endpoint fails and hurt when all do; a bound on the share keeps a failing
 * backend from being asked several times as much. One budget per worker and backend. Pure.
 */
#ifndef SKEIN_NODE_PROXY_RETRY_H
#define SKEIN_NODE_PROXY_RETRY_H

#include "node/base/defs.h"

enum {
    RETRY_WINDOW_MS = 10000,
    RETRY_PERCENT = 20,
    RETRY_FLOOR_PER_SECOND = 3,
};

/* All zero is an empty one. */
struct retry_budget {
    uint64_t window; /* number of the window in which `now` counts */
    uint32_t requests_now;
    uint32_t requests_before; /* in the window before it */
    uint32_t retries_now;
    uint32_t retries_before;
};

/* A request for the first time. */
void retry_count_request(struct retry_budget *budget, uint64_t now_ms);

/* May one more be sent again? It is counted. */
bool retry_take(struct retry_budget *budget, uint64_t now_ms);

#endif
