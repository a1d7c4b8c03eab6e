/*
 * Live state of one endpoint, shared by all workers and kept across configuration changes.
 *
 * References: each endpoint set that lists it and each upstream connection to it hold one; the last
 * one gone, the memory goes. `gone` is set when it stops being offered (removed or draining):
 * workers then pool no connection to it and close the idle ones.
 * Thread: any; slot i belongs to worker i.
 */
#ifndef SKEIN_NODE_PROXY_ENDPOINT_H
#define SKEIN_NODE_PROXY_ENDPOINT_H

#include "node/base/addr.h"
#include "node/proxy/qsbr.h"
#include "node/proxy/stats.h"

struct upstream;

/* What one worker has with the endpoint. */
struct endpoint_slot {
    _Alignas(CACHE_LINE) struct upstream *idle; /* utlist, most recently used first */
    uint32_t idle_count;
    uint32_t idle_ms; /* how long an idle connection is trusted, as learned */
    struct traffic traffic;
};

enum {
    ENDPOINT_IDLE_MS = 4000,    /* before anything is known: many servers close at 5 s */
    ENDPOINT_IDLE_MS_MIN = 500, /* below it pooling is given up for one connection at a time */
    ENDPOINT_IDLE_MS_MAX = 55000,
    ENDPOINT_SKIP_MS = 1000, /* after a failed connect */
};

struct endpoint {
    struct qsbr_node retired;
    struct addr addr;
    char text[ADDR_TEXT_MAX];
    struct refcnt refs;
    size_t slot_count;
    _Atomic bool gone;
    _Alignas(CACHE_LINE) _Atomic uint32_t in_flight; /* exchanges, of all workers */
    _Atomic uint64_t skip_until_ms;                  /* failed a connect a moment ago */
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

static inline bool endpoint_is_skipped(const struct endpoint *endpoint, uint64_t now_ms)
{
    return atomic_load_explicit(&endpoint->skip_until_ms, memory_order_relaxed) > now_ms;
}

static inline bool endpoint_is_gone(const struct endpoint *endpoint)
{
    return atomic_load_explicit(&endpoint->gone, memory_order_acquire);
}

void endpoint_begin(struct endpoint *endpoint);
void endpoint_end(struct endpoint *endpoint);
void endpoint_connect_failed(struct endpoint *endpoint, uint64_t now_ms);
void endpoint_connected(struct endpoint *endpoint);

#endif
