/*
 * Live state of one endpoint, shared by all workers and kept across configuration changes.
 *
 * References: each endpoint set that lists it and each upstream connection to it hold one; the last
 * one gone, the memory goes. `gone` is set when it stops being offered (removed or draining):
 * workers then pool no connection to it and close the idle ones.
 *
 * `flags` says whether there is anything at all to know before it is used; 0, the ordinary case,
 * is one relaxed load. What ends by itself (skip, ejection, ramp) is cleared by whoever finds that
 * its time is over.
 *
 *   flag      set by                             cleared by
 *   SKIPPED   a connect that failed              a connect that worked, or time
 *   EJECTED   passive checks (backend_live.c)    time
 *   DOWN      active checks (backend_health)     the same
 *   RAMPING   being new, or back from the above  time
 *   REMOVED   leaving the configuration          nobody: an address that returns is a new endpoint
 *
 * Thread: any; slot i belongs to worker i.
 */
#ifndef SKEIN_NODE_PROXY_ENDPOINT_H
#define SKEIN_NODE_PROXY_ENDPOINT_H

#include "node/base/addr.h"
#include "node/proxy/proxy.h"
#include "node/proxy/qsbr.h"
#include "node/proxy/stats.h"

struct upstream;
struct utls;

/* What one worker has with the endpoint. */
struct endpoint_slot {
    _Alignas(CACHE_LINE) struct upstream *idle; /* utlist, most recently used first */
    uint32_t idle_count;
    uint32_t idle_ms; /* how long an idle connection is trusted, as learned */
    struct utls *tls; /* utlist: by what targets it was asked over TLS (utls.h) */
    struct traffic traffic;
};

enum {
    ENDPOINT_IDLE_MS = 4000,    /* before anything is known: many servers close at 5 s */
    ENDPOINT_IDLE_MS_MIN = 500, /* below it pooling is given up for one connection at a time */
    ENDPOINT_IDLE_MS_MAX = 55000,
    ENDPOINT_SKIP_MS = 1000,   /* after a failed connect */
    ENDPOINT_SHARE_FULL = 256, /* all of its weight; see endpoint_share */
};

enum endpoint_flag {
    ENDPOINT_SKIPPED = 1,
    ENDPOINT_EJECTED = 2,
    ENDPOINT_DOWN = 4,
    ENDPOINT_RAMPING = 8,
    ENDPOINT_REMOVED = 16,
    ENDPOINT_OUT = ENDPOINT_EJECTED | ENDPOINT_DOWN,
};

/* Failures that count for ejection; guarded by the backend's lock. */
struct endpoint_faults {
    uint64_t window; /* number of the window in which `now` counts */
    uint32_t now;
    uint32_t before;    /* in the window before it */
    uint32_t ejections; /* that count for the back-off */
    uint64_t last_end_ms;
    uint32_t last_ms; /* how long the last ejection was */
};

struct endpoint {
    struct qsbr_node retired;
    struct addr addr;
    char text[ADDR_TEXT_MAX];
    uint64_t identity; /* of its address: the same on every node */
    struct refcnt refs;
    size_t slot_count;
    struct endpoint_faults faults;
    _Atomic bool gone;
    /* As the backend says; written by the control thread. */
    _Atomic uint32_t idle_max;     /* PROXY_POOL_DEFAULT: the default's */
    _Atomic uint32_t idle_ms;      /* 0: learned */
    _Atomic uint32_t requests_max; /* of one connection; 0: no limit */
    _Atomic uint64_t token_head;   /* first 8 bytes of its token; a torn read is a wrong cookie, */
    _Atomic uint32_t token_tail;   /* which is issued again */

    _Alignas(CACHE_LINE) _Atomic uint32_t in_flight; /* exchanges, of all workers */
    _Atomic uint32_t flags;                          /* enum endpoint_flag */
    _Atomic uint32_t waiting;                        /* who want this one only (queue.h) */
    _Atomic uint32_t connect_us;                     /* smoothed; 0: not known */
    _Atomic uint64_t connect_failures;
    _Atomic uint64_t skip_until_ms;
    _Atomic uint64_t ejected_until_ms;
    _Atomic uint64_t ramp_from_ms;
    struct endpoint_slot slots[];
};

/* One reference, the caller's. */
struct endpoint *endpoint_new(const struct addr *addr, size_t slot_count);
void endpoint_ref(struct endpoint *endpoint);
/* Any thread: what it owns besides memory is gone by then. */
void endpoint_unref(struct endpoint *endpoint);

static inline uint32_t endpoint_load(const struct endpoint *endpoint)
{
    return atomic_load_explicit(&endpoint->in_flight, memory_order_relaxed);
}

static inline uint32_t endpoint_flags(const struct endpoint *endpoint)
{
    return atomic_load_explicit(&endpoint->flags, memory_order_relaxed);
}

static inline bool endpoint_is_skipped(const struct endpoint *endpoint, uint64_t now_ms)
{
    return (endpoint_flags(endpoint) & ENDPOINT_SKIPPED) != 0 &&
           atomic_load_explicit(&endpoint->skip_until_ms, memory_order_relaxed) > now_ms;
}

static inline bool endpoint_is_gone(const struct endpoint *endpoint)
{
    return atomic_load_explicit(&endpoint->gone, memory_order_acquire);
}

/* Ordered with what the queue counts: either who frees a place sees the waiter, or the waiter sees
 * the place. limit 0: never. */
static inline bool endpoint_is_full(const struct endpoint *endpoint, uint32_t limit)
{
    return limit != 0 && atomic_load_explicit(&endpoint->in_flight, memory_order_seq_cst) >= limit;
}

/* One exchange more; false: limit (0: none) are in flight, and nothing changed. */
bool endpoint_begin_within(struct endpoint *endpoint, uint32_t limit);
void endpoint_begin(struct endpoint *endpoint);
void endpoint_end(struct endpoint *endpoint);

void endpoint_connect_failed(struct endpoint *endpoint, uint64_t now_ms);
void endpoint_connected(struct endpoint *endpoint);
/* How long a connect took, into the smoothed time. */
void endpoint_connect_took(struct endpoint *endpoint, uint64_t took_us);

/* Begin a slow start; harmless when the backend has none. */
void endpoint_ramp(struct endpoint *endpoint, uint64_t now_ms);
/* How much of its weight counts now, out of ENDPOINT_SHARE_FULL: from a tenth up, linear over
 * slow_start_ms. Clears RAMPING when that is over. */
uint32_t endpoint_share(struct endpoint *endpoint, uint32_t slow_start_ms, uint64_t now_ms);

void endpoint_set_token(struct endpoint *endpoint, const uint8_t token[PROXY_TOKEN_BYTES]);
/* All zero: it has none. */
void endpoint_token(const struct endpoint *endpoint, uint8_t ret_token[PROXY_TOKEN_BYTES]);

#endif
