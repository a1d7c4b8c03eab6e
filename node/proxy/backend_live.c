/*
 * Which endpoints of a backend are available: ejection by what traffic meets, verdicts of active
 * checks, and the panic threshold.
 *
 * Everything here happens at events. What a pick reads are the flags of an endpoint and `panic` of
 * the backend; both are found anew, under the backend's lock, whenever something changed. An
 * ejection ends by itself: the pick that meets it first clears it.
 */
#include "node/proxy/backend.h"

#include "node/proxy/queue.h"

static bool is_out(const struct endpoint *endpoint)
{
    return (endpoint_flags(endpoint) & ENDPOINT_OUT) != 0;
}

static uint32_t count_available(const struct endpoint_set *set)
{
    uint32_t available = 0;
    for (uint32_t i = 0; i < set->usable_count; i++) {
        available += !is_out(set->entries[i].endpoint);
    }
    return available;
}

static void recount_locked(struct backend *backend)
{
    const struct endpoint_set *set = backend_endpoints(backend);
    bool panic = (uint64_t)count_available(set) * 100 <
                 (uint64_t)set->usable_count * set->policy.panic_percent;
    atomic_store_explicit(&backend->panic, panic, memory_order_relaxed);
}

void backend_recount(struct backend *backend)
{
    (void)pthread_mutex_lock(&backend->lock);
    recount_locked(backend);
    (void)pthread_mutex_unlock(&backend->lock);
}

void backend_availability(const struct backend *backend, uint32_t *ret_usable,
                          uint32_t *ret_available)
{
    const struct endpoint_set *set = backend_endpoints(backend);
    *ret_usable = set->usable_count;
    *ret_available = count_available(set);
}

/* ---- ejection ---- */

/* Failures of the sliding window, estimated from two fixed ones, with one more. */
static uint64_t count_fault(struct endpoint_faults *faults, uint32_t window_ms, uint64_t now_ms)
{
    uint64_t window = now_ms / window_ms;
    if (window != faults->window) {
        faults->before = window == faults->window + 1 ? faults->now : 0;
        faults->now = 0;
        faults->window = window;
    }
    faults->now++;
    uint64_t left_ms = window_ms - now_ms % window_ms;
    return faults->now + faults->before * left_ms / window_ms;
}

/* Twice as long each time, up to ten times; forgotten step by step while it behaves. */
static uint64_t eject_time(struct endpoint_faults *faults, uint32_t eject_ms, uint64_t now_ms)
{
    if (faults->last_ms != 0 && now_ms > faults->last_end_ms) {
        uint64_t steps = (now_ms - faults->last_end_ms) / faults->last_ms;
        faults->ejections -= (uint32_t)MIN((uint64_t)faults->ejections, steps);
    }
    uint64_t factor = MIN(UINT64_C(1) << MIN(faults->ejections, 4U), UINT64_C(10));
    faults->ejections = MIN(faults->ejections + 1, 5U);
    faults->last_ms = (uint32_t)MIN(eject_ms * factor, (uint64_t)UINT32_MAX);
    faults->last_end_ms = now_ms + faults->last_ms;
    return faults->last_end_ms;
}

/* One more out of the set: within the share that may be, and never the last one. */
static bool may_eject(const struct endpoint_set *set, const struct endpoint *endpoint)
{
    uint32_t ejected = 0;
    bool listed = false;
    for (uint32_t i = 0; i < set->usable_count; i++) {
        const struct endpoint *other = set->entries[i].endpoint;
        ejected += (endpoint_flags(other) & ENDPOINT_EJECTED) != 0;
        listed = listed || other == endpoint;
    }
    return listed && count_available(set) > 1 &&
           (uint64_t)(ejected + 1) * 100 <=
               (uint64_t)set->usable_count * set->policy.passive.max_ejected_percent;
}

void backend_failed(struct backend *backend, struct endpoint *endpoint, uint64_t now_ms)
{
    const struct proxy_passive *passive = &backend_endpoints(backend)->policy.passive;
    if (passive->failures == 0) {
        return;
    }
    (void)pthread_mutex_lock(&backend->lock);
    const struct endpoint_set *set = backend_endpoints(backend);
    passive = &set->policy.passive;
    if (passive->failures != 0 && !is_out(endpoint) &&
        count_fault(&endpoint->faults, passive->window_ms, now_ms) >= passive->failures &&
        may_eject(set, endpoint)) {
        endpoint->faults.now = endpoint->faults.before = 0;
        atomic_store_explicit(&endpoint->ejected_until_ms,
                              eject_time(&endpoint->faults, passive->eject_ms, now_ms),
                              memory_order_relaxed);
        (void)atomic_fetch_or_explicit(&endpoint->flags, ENDPOINT_EJECTED, memory_order_release);
        counter_add(&backend->ejections, 1);
        recount_locked(backend);
    }
    (void)pthread_mutex_unlock(&backend->lock);
}

/* The first who finds its time over lets it in again. */
static void end_ejection(struct backend *backend, struct endpoint *endpoint, uint64_t now_ms)
{
    (void)pthread_mutex_lock(&backend->lock);
    bool over = atomic_load_explicit(&endpoint->ejected_until_ms, memory_order_relaxed) <= now_ms &&
                (endpoint_flags(endpoint) & ENDPOINT_EJECTED) != 0;
    if (over) {
        endpoint_ramp(endpoint, now_ms);
        (void)atomic_fetch_and_explicit(&endpoint->flags, ~(uint32_t)ENDPOINT_EJECTED,
                                        memory_order_relaxed);
        recount_locked(backend);
    }
    (void)pthread_mutex_unlock(&backend->lock);
    if (over) {
        place_call_all_mt(backend);
    }
}

uint32_t backend_check_flags(struct backend *backend, struct endpoint *endpoint, uint64_t now_ms)
{
    uint32_t flags = atomic_load_explicit(&endpoint->flags, memory_order_acquire);
    if ((flags & ENDPOINT_SKIPPED) != 0 && !endpoint_is_skipped(endpoint, now_ms)) {
        endpoint_connected(endpoint);
    }
    if ((flags & ENDPOINT_EJECTED) != 0 &&
        atomic_load_explicit(&endpoint->ejected_until_ms, memory_order_relaxed) <= now_ms) {
        end_ejection(backend, endpoint, now_ms);
    }
    return endpoint_flags(endpoint);
}

/* ---- active checks ---- */

void backend_set_health(struct backend *backend, const struct addr *addr, enum proxy_health health,
                        uint64_t now_ms)
{
    const struct endpoint_set *set = backend_endpoints(backend);
    bool changed = false;
    for (uint32_t i = 0; i < set->count; i++) {
        struct endpoint *endpoint = set->entries[i].endpoint;
        bool down = (endpoint_flags(endpoint) & ENDPOINT_DOWN) != 0;
        if (down == (health == PROXY_HEALTH_DOWN) || addr_compare(&endpoint->addr, addr) != 0) {
            continue;
        }
        if (down) {
            endpoint_ramp(endpoint, now_ms);
            (void)atomic_fetch_and_explicit(&endpoint->flags, ~(uint32_t)ENDPOINT_DOWN,
                                            memory_order_relaxed);
        } else {
            (void)atomic_fetch_or_explicit(&endpoint->flags, ENDPOINT_DOWN, memory_order_relaxed);
        }
        changed = true;
        break; /* an address is there once */
    }
    if (changed) {
        backend_recount(backend);
        place_call_all_mt(backend);
    }
}
