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

/* Counters of a route, by its name, across all changes of its rules. */
struct route {
    UT_hash_handle hh;
    char *name;
    uint32_t users; /* rules that carry it; control thread */
    struct traffic *slots;
};

struct catalog {
    struct qsbr qsbr;
    size_t slot_count; /* workers */
    struct hosts hosts;
    struct backend *backends; /* utlist, in order of making */
    struct route *routes;     /* uthash by name */
    struct limiter *limiter;  /* NULL until a policy asks for limits */
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

/* Series of routes, backends and endpoints as Prometheus text. Control thread. */
void catalog_metrics(const struct catalog *catalog, struct buf *out);

#endif
