/*
 * Everything that the control thread configures and workers read: hosts, backends, route counters,
 * and the reclamation that makes reading without locks safe.
 *
 * Slot i of every object in it belongs to worker i.
 */
#ifndef SKEIN_NODE_PROXY_CATALOG_H
#define SKEIN_NODE_PROXY_CATALOG_H

#include "node/base/hashtable.h"
#include "node/proxy/hosts.h"

/* What one worker counts of a route. Made with its first request: 256 bytes, and most of a large
 * number of routes are idle. Routes for which there are no series share one. */
struct route_slot {
    struct traffic traffic;
    struct histogram duration;
    struct counter connections; /* of a TCP route, that are over */
    struct counter failures;    /* those that no endpoint took */
};

/* How much of a thing is shown by series of its own; see catalog_metrics.c. */
enum series_share {
    SERIES_UNDECIDED = 0, /* nothing happened yet: it has none */
    SERIES_ALL,
    SERIES_COUNTERS, /* its times are part of "(other)" */
    SERIES_NONE,     /* all of it is */
    SERIES_LEFT_OUT, /* it is not even looked at */
};

/* Counters of a route, by its name, across all changes of its rules. */
struct route {
    UT_hash_handle hh;
    char *name;
    uint32_t users; /* rules that carry it; control thread */
    struct catalog *catalog;
    _Atomic unsigned share; /* enum series_share; decided by whoever has the first request */
    _Atomic(struct route_slot *) slots[]; /* NULL: that worker has seen no request for it */
};

enum { CATALOG_COUNTERS_MAX = 16, CATALOG_TIMES_MAX = 2 };

/* Sums over workers, and over things that are gone or not shown. */
struct catalog_sum {
    struct traffic traffic;
    struct counter counters[CATALOG_COUNTERS_MAX]; /* both as catalog_metrics.c orders them */
    struct histogram times[CATALOG_TIMES_MAX];
};

/* How many series there may be of one kind of thing. */
struct series_budget {
    size_t max;
    _Atomic size_t used;         /* by things that are SERIES_ALL or SERIES_COUNTERS */
    _Atomic size_t folded;       /* things that are SERIES_NONE, */
    _Atomic size_t folded_times; /* SERIES_COUNTERS, */
    _Atomic size_t left_out;     /* and SERIES_LEFT_OUT */
    _Atomic bool overflowed;     /* there is an "(other)" */
    /* What folded things that are gone had counted, so that "(other)" never falls. */
    struct catalog_sum gone;
};

enum {
    SERIES_ROUTES_MAX = 50000,
    SERIES_BACKENDS_MAX = 50000,
    SERIES_ENDPOINTS_MAX = 25000,
    SERIES_FOLDED_MAX = 5000, /* backends that are summed up at each look */
};

struct catalog {
    struct qsbr qsbr;
    size_t slot_count; /* workers */
    struct hosts hosts;
    struct backend *backends; /* utlist, in order of making */
    struct route *routes;     /* uthash by name */
    struct limiter *limiter;  /* NULL until a policy asks for limits */
    struct series_budget route_series;
    struct route_slot **other_slots; /* of the workers, for routes that are SERIES_NONE */
    struct series_budget backend_series;
    size_t endpoint_series_max;
    /* Tell workers that the endpoint gets nothing more; it may keep a reference. */
    void (*on_gone)(void *ctx, struct endpoint *endpoint);
    void *ctx;
};

void catalog_init(struct catalog *catalog, size_t slot_count);

/* No worker is left. Backends that were not unreferenced go as well. */
void catalog_deinit(struct catalog *catalog);

/* Find or make; one use more. Control thread. */
struct route *catalog_route(struct catalog *catalog, const char *name);
void catalog_route_put(struct catalog *catalog, struct route *route);

/* Mark it, and have idle connections to it closed; nothing when it is marked. Control thread. */
void catalog_endpoint_gone(struct catalog *catalog, struct endpoint *endpoint);

/* The worker's counters of a route. Thread: worker idx. */
struct route_slot *route_slot_make(struct route *route, size_t idx);
static inline struct route_slot *route_slot(struct route *route, size_t idx)
{
    struct route_slot *slot = atomic_load_explicit(&route->slots[idx], memory_order_relaxed);
    return LIKELY(slot != NULL) ? slot : route_slot_make(route, idx);
}

/* Series of routes, backends and endpoints as Prometheus text. Control thread. */
void catalog_metrics(struct catalog *catalog, struct buf *out);
/* For it: queues and availability of backends. */
void catalog_metrics_state(const struct catalog *catalog, struct buf *out);

/* Does it get series as soon as it is there, and if not, once it has a request (any thread)? */
enum series_share catalog_metrics_claim(struct series_budget *budget);
enum series_share catalog_metrics_decide(struct route *route);
/* It goes away: what it had counted stays where it was shown. Control thread. */
void catalog_metrics_forget_route(struct catalog *catalog, const struct route *route);
void catalog_metrics_forget_backend(struct catalog *catalog, const struct backend *backend);

#endif
