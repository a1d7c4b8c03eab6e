/*
 * The budget for repetitions; see retry.h. The sliding window is estimated from two fixed ones: of
 * the one before counts the part that the sliding one still covers.
 */
#include "node/proxy/retry.h"

static void move_to(struct retry_budget *budget, uint64_t now_ms)
{
    uint64_t window = now_ms / RETRY_WINDOW_MS;
    if (LIKELY(window == budget->window)) {
        return;
    }
    bool next = window == budget->window + 1;
    budget->requests_before = next ? budget->requests_now : 0;
    budget->retries_before = next ? budget->retries_now : 0;
    budget->requests_now = budget->retries_now = 0;
    budget->window = window;
}

void retry_count_request(struct retry_budget *budget, uint64_t now_ms)
{
    move_to(budget, now_ms);
    budget->requests_now++;
}

bool retry_take(struct retry_budget *budget, uint64_t now_ms)
{
    move_to(budget, now_ms);
    uint64_t left_ms = RETRY_WINDOW_MS - now_ms % RETRY_WINDOW_MS;
    /* All in thousandths of a request. */
    uint64_t requests = UINT64_C(1000) * budget->requests_now +
                        UINT64_C(1000) * budget->requests_before * left_ms / RETRY_WINDOW_MS;
    uint64_t retries = UINT64_C(1000) * budget->retries_now +
                       UINT64_C(1000) * budget->retries_before * left_ms / RETRY_WINDOW_MS;
    uint64_t allowed = requests * RETRY_PERCENT / 100 +
                       UINT64_C(1000) * RETRY_FLOOR_PER_SECOND * RETRY_WINDOW_MS / 1000;
    if (retries + 1000 > allowed) {
        return false;
    }
    budget->retries_now++;
    return true;
}
