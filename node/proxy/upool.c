/*
 * The pool of idle upstream connections; see upool.h.
 */
#include "node/proxy/upool.h"

#include "node/proxy/utls.h"

#include <utlist.h>

enum { PROBE_AFTER_MS = 1000 };

static struct endpoint_slot *slot_of(const struct upstream *up)
{
    return &up->endpoint->slots[up->sock.worker->idx];
}

static void unlink_idle(struct upstream *up)
{
    struct endpoint_slot *slot = slot_of(up);
    DL_DELETE2(slot->idle, up, idle_prev, idle_next);
    slot->idle_count--;
    up->sock.worker->idle_count--;
}

struct upstream *upool_take(struct worker *worker, struct endpoint *endpoint,
                            struct tls_target *target, bool repeatable)
{
    const struct utls *tls = NULL;
    if (target != NULL) {
        tls = utls_find(worker, endpoint, target);
        if (tls == NULL) {
            return NULL;
        }
    }
    struct upstream *next;
    for (struct upstream *up = endpoint->slots[worker->idx].idle; up != NULL; up = next) {
        next = up->idle_next;
        if (UNLIKELY(up->tls != tls)) {
            continue;
        }
        uint64_t idle_ms = worker_now(worker) - up->idle_since_ms;
        if (!repeatable && idle_ms > PROBE_AFTER_MS) {
            return NULL; /* all others are older */
        }
        bool probe = !repeatable || idle_ms > PROBE_AFTER_MS;
        if (probe && !sock_is_quiet(&up->sock)) {
            stat_add(&worker->stats, STAT_UPSTREAM_STALE, 1);
            upstream_close(up);
            continue;
        }
        unlink_idle(up);
        return up;
    }
    return NULL;
}

/* What the endpoint says, what is configured, or what was learned; the first two bound each other.
 */
static uint32_t idle_time(const struct upstream *up, const struct endpoint_slot *slot)
{
    uint32_t set_ms = atomic_load_explicit(&up->endpoint->idle_ms, memory_order_relaxed);
    if (set_ms != 0 && up->idle_ms != 0) {
        return MIN(set_ms, up->idle_ms);
    }
    if (set_ms != 0 || up->idle_ms != 0) {
        return set_ms != 0 ? set_ms : up->idle_ms;
    }
    return slot->idle_ms;
}

void upool_put(struct upstream *up)
{
    struct worker *worker = up->sock.worker;
    struct endpoint_slot *slot = slot_of(up);
    uint32_t slot_max = atomic_load_explicit(&up->endpoint->idle_max, memory_order_relaxed);
    if (slot_max == PROXY_POOL_DEFAULT) {
        slot_max = worker_defaults(worker)->idle_per_endpoint_max;
    }
    if (slot_max == 0 || (worker->idle_count >= worker->idle_max && slot->idle == NULL)) {
        up->state = UPSTREAM_BUSY; /* it was never pooled */
        upstream_close(up);
        return;
    }
    if (worker->idle_count >= worker->idle_max || slot->idle_count >= slot_max) {
        upstream_close(slot->idle->idle_prev); /* the tail */
    }
    DL_PREPEND2(slot->idle, up, idle_prev, idle_next);
    slot->idle_count++;
    worker->idle_count++;
    up->idle_since_ms = worker_now(worker);
    worker_deadline(worker, &up->timer, idle_time(up, slot));
}

void upool_remove(struct upstream *up)
{
    unlink_idle(up);
}

void upool_learn_closed(struct upstream *up)
{
    struct endpoint_slot *slot = slot_of(up);
    uint64_t idle_ms = worker_now(up->sock.worker) - up->idle_since_ms;
    uint64_t trust_ms = MAX(idle_ms * 8 / 10, (uint64_t)ENDPOINT_IDLE_MS_MIN);
    if (trust_ms < slot->idle_ms) {
        slot->idle_ms = (uint32_t)trust_ms;
    }
}

void upool_learn_unused(struct upstream *up)
{
    struct endpoint_slot *slot = slot_of(up);
    slot->idle_ms = MIN(slot->idle_ms + slot->idle_ms / 8, (uint32_t)ENDPOINT_IDLE_MS);
}

void upstream_flush(struct worker *worker, struct endpoint *endpoint)
{
    struct endpoint_slot *slot = &endpoint->slots[worker->idx];
    while (slot->idle != NULL) {
        upstream_close(slot->idle);
    }
    utls_flush(worker, endpoint);
}
