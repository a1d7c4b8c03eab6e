/*
 * The catalog: registries of routes and backends; see catalog.h. Metrics are in catalog_metrics.c.
 */
#include "node/proxy/catalog.h"

#include "node/base/mem.h"
#include "node/proxy/limiter.h"

#include <utlist.h>

void catalog_init(struct catalog *catalog, size_t slot_count)
{
    *catalog = (struct catalog){
        .slot_count = slot_count,
        .route_series.max = SERIES_ROUTES_MAX,
        .backend_series.max = SERIES_BACKENDS_MAX,
        .endpoint_series_max = SERIES_ENDPOINTS_MAX,
    };
    catalog->other_slots = mem_array(slot_count, sizeof(struct route_slot *));
    for (size_t i = 0; i < slot_count; i++) {
        catalog->other_slots[i] = mem_lines(sizeof(struct route_slot));
    }
    qsbr_init(&catalog->qsbr, slot_count);
    hosts_init(&catalog->hosts, catalog);
}

void catalog_deinit(struct catalog *catalog)
{
    hosts_deinit(&catalog->hosts);
    qsbr_flush(&catalog->qsbr);
    /* Those that their owner still refers to: nobody can do that any more. */
    while (catalog->backends != NULL) {
        backend_destroy(catalog->backends);
    }
    qsbr_deinit(&catalog->qsbr);
    slab_deinit(&catalog->hosts.slab); /* the last hosts went with the flush */
    ASSERT(catalog->routes == NULL);
    for (size_t i = 0; i < catalog->slot_count; i++) {
        mem_free(catalog->other_slots[i]);
    }
    mem_free(catalog->other_slots);
    limiter_free(catalog->limiter);
    catalog->limiter = NULL;
}

struct route *catalog_route(struct catalog *catalog, const char *name)
{
    struct route *route = NULL;
    HASH_FIND_STR(catalog->routes, name, route);
    if (route == NULL) {
        route = mem_new(sizeof(*route) + catalog->slot_count * sizeof(route->slots[0]));
        route->name = mem_strdup(name);
        route->catalog = catalog;
        atomic_init(&route->share, catalog_metrics_claim(&catalog->route_series));
        HASH_ADD_KEYPTR(hh, catalog->routes, route->name, strlen(route->name), route);
    }
    route->users++;
    return route;
}

void catalog_route_put(struct catalog *catalog, struct route *route)
{
    ASSERT(route->users != 0);
    if (--route->users != 0) {
        return;
    }
    HASH_DEL(catalog->routes, route);
    catalog_metrics_forget_route(catalog, route);
    for (size_t i = 0; i < catalog->slot_count; i++) {
        struct route_slot *slot = atomic_load_explicit(&route->slots[i], memory_order_relaxed);
        if (slot != catalog->other_slots[i]) {
            mem_free(slot);
        }
    }
    mem_free(route->name);
    mem_free(route);
}

void catalog_endpoint_gone(struct catalog *catalog, struct endpoint *endpoint)
{
    if (atomic_exchange_explicit(&endpoint->gone, true, memory_order_acq_rel)) {
        return;
    }
    if (catalog->on_gone != NULL) {
        catalog->on_gone(catalog->ctx, endpoint);
    }
}

struct route_slot *route_slot_make(struct route *route, size_t idx)
{
    bool shares = catalog_metrics_decide(route) == SERIES_NONE;
    struct route_slot *slot =
        shares ? route->catalog->other_slots[idx] : mem_lines(sizeof(struct route_slot));
    atomic_store_explicit(&route->slots[idx], slot, memory_order_release);
    return slot;
}
