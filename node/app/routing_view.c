/*
 * What people are told of routes, backends and endpoints: read from the index when somebody looks.
 */
#include "node/app/routing_int.h"

#include "node/net/resolver.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool routing_route_view(const struct routing *routing, const char *id,
                        struct routing_route_view *ret_view)
{
    struct route *route = NULL;
    HASH_FIND_STR(routing->routes, id, route);
    if (route == NULL) {
        return false;
    }
    *ret_view = (struct routing_route_view){
        .admitted = route->admitted,
        .claimed_by = route->claimed_by,
        .refusal = route->refusal,
        .target_count = route->pool_count,
        .warning = route->tls_warning,
    };
    for (size_t i = 0; i < route->pool_count; i++) {
        ret_view->missing[i] = route->pools[i]->object == NULL;
    }
    return true;
}

/* ---- endpoints ---- */

static void say(struct routing_health *health, enum proxy_health verdict, const char *text)
{
    health->health = verdict;
    (void)snprintf(health->message, sizeof(health->message), "%s", text);
}

static void address_health(const struct pool *pool, const struct addr *addr,
                           struct routing_health *ret_health)
{
    *ret_health = (struct routing_health){0};
    struct watched *watched = pool_find_watched(pool, addr);
    if (watched == NULL) {
        return;
    }
    struct prober_view view;
    prober_view(watched->target, &view);
    struct routing_health health = {.health = watched->told, .since_wall_ms = view.since_wall_ms};
    if (watched->told == PROXY_HEALTH_UNKNOWN) {
        (void)snprintf(health.message, sizeof(health.message), "not checked yet");
    } else if (watched->told == PROXY_HEALTH_UP && view.streak > 0) {
        (void)snprintf(health.message, sizeof(health.message),
                       "%" PRIu32 " of %" PRIu32 " checks failed: %s", view.streak, view.needed,
                       view.why);
    } else if (watched->told == PROXY_HEALTH_DOWN && view.streak > 0) {
        (void)snprintf(health.message, sizeof(health.message),
                       "%s; %" PRIu32 " of %" PRIu32 " checks succeeded since", view.why,
                       view.streak, view.needed);
    } else {
        (void)snprintf(health.message, sizeof(health.message), "%s", view.why);
    }
    *ret_health = health;
}

/* The verdicts of a name's addresses as one: up if one is, down if all are. */
static void name_health(const struct endpoint_node *node, size_t *ret_count,
                        struct routing_health *ret_health)
{
    struct routing_health health = {0};
    struct addr addrs[RESOLVER_ADDRS_MAX];
    size_t count = node_name_addresses(node, addrs, RESOLVER_ADDRS_MAX);
    size_t counts[PROXY_HEALTH_DOWN + 1] = {0};
    uint64_t since[PROXY_HEALTH_DOWN + 1] = {0};
    struct routing_health last = {0};
    for (size_t i = 0; i < count; i++) {
        struct routing_health one;
        address_health(node->pool, &addrs[i], &one);
        counts[one.health]++;
        since[one.health] = MAX(since[one.health], one.since_wall_ms);
        last = one;
    }
    if (counts[PROXY_HEALTH_UP] > 0) {
        health.health = PROXY_HEALTH_UP;
    } else if (counts[PROXY_HEALTH_DOWN] > 0 && counts[PROXY_HEALTH_DOWN] == count) {
        health.health = PROXY_HEALTH_DOWN;
    }
    health.since_wall_ms = since[health.health];
    if (count == 1) {
        (void)snprintf(health.message, sizeof(health.message), "%s", last.message);
    } else if (counts[PROXY_HEALTH_DOWN] > 0) {
        (void)snprintf(health.message, sizeof(health.message), "%zu of %zu addresses are down",
                       counts[PROXY_HEALTH_DOWN], count);
    }
    *ret_count = count;
    *ret_health = health;
}

/* What the look-up has to say goes before what checks say. */
static void resolve_health(const struct endpoint_node *node, struct routing_health *health)
{
    struct resolver_view view;
    if (node->watch == NULL) {
        return;
    }
    resolver_view(node->watch, &view);
    if (view.pending) {
        say(health, PROXY_HEALTH_UNKNOWN, "being resolved");
    } else if (view.error != NULL && view.count == 0) {
        health->health = PROXY_HEALTH_DOWN;
        (void)snprintf(health->message, sizeof(health->message), "%s does not resolve: %s",
                       node->host, view.error);
    } else if (view.error != NULL) {
        (void)snprintf(health->message, sizeof(health->message),
                       "%s does not resolve any more, its last addresses serve: %s", node->host,
                       view.error);
    }
}

static void node_health(const struct endpoint_node *node, size_t *ret_count,
                        struct routing_health *ret_health)
{
    struct proxy_endpoint offer;
    *ret_count = 0;
    *ret_health = (struct routing_health){0};
    if (!node_offers(node, &offer)) {
        const Skein__EndpointSpec *spec = endpoint_spec(node->object);
        bool disabled = spec->has_state && spec->state == SKEIN__ENDPOINT_SPEC__STATE__Disabled;
        say(ret_health, PROXY_HEALTH_UNKNOWN,
            disabled ? "disabled" : "spec.address is not valid on this node's version");
    } else if (node->host != NULL) {
        name_health(node, ret_count, ret_health);
        resolve_health(node, ret_health);
    } else {
        address_health(node->pool, &node->addr, ret_health);
    }
}

bool routing_endpoint_view(const struct routing *routing, const char *id,
                           struct routing_endpoint_view *ret_view)
{
    struct endpoint_node *node = NULL;
    HASH_FIND_STR(routing->endpoints, id, node);
    if (node == NULL) {
        return false;
    }
    *ret_view = (struct routing_endpoint_view){.is_name = node->host != NULL};
    node_health(node, &ret_view->address_count, &ret_view->health);
    return true;
}

void routing_endpoint_address(const struct routing *routing, const char *id, size_t idx,
                              struct addr *ret_addr, struct routing_health *ret_health)
{
    struct endpoint_node *node = NULL;
    struct addr addrs[RESOLVER_ADDRS_MAX];
    HASH_FIND_STR(routing->endpoints, id, node);
    size_t count = node != NULL ? node_name_addresses(node, addrs, RESOLVER_ADDRS_MAX) : 0;
    *ret_addr = idx < count ? addrs[idx] : (struct addr){0};
    *ret_health = (struct routing_health){0};
    if (idx < count) {
        address_health(node->pool, ret_addr, ret_health);
    }
}

/* ---- backends ---- */

bool routing_has_backend(const struct routing *routing, const char *id)
{
    struct pool *pool = NULL;
    HASH_FIND_STR(routing->pools, id, pool);
    return pool != NULL && pool->object != NULL;
}

static void count_node(const struct endpoint_node *node, struct routing_pool_view *view)
{
    struct proxy_endpoint offer;
    if (!node_offers(node, &offer)) {
        return;
    }
    size_t addresses;
    struct routing_health health;
    node_health(node, &addresses, &health);
    bool down = health.health == PROXY_HEALTH_DOWN;
    bool absent = node->host != NULL && addresses == 0;
    view->offering++;
    view->draining += offer.draining;
    view->down += down;
    view->ready += !offer.draining && offer.weight > 0 && !down && !absent;
    struct resolver_view name = {0};
    if (node->watch != NULL) {
        resolver_view(node->watch, &name);
    }
    view->unresolved += name.error != NULL;
}

bool routing_pool_view(const struct routing *routing, const char *id,
                       struct routing_pool_view *ret_view)
{
    struct pool *pool = NULL;
    HASH_FIND_STR(routing->pools, id, pool);
    if (pool == NULL) {
        return false;
    }
    *ret_view = (struct routing_pool_view){
        .exists = pool->object != NULL,
        .refusal = pool->refusal != NULL ? pool->refusal : pool->target_fault,
        .routes = pool->route_count,
        .endpoints = pool->endpoint_count,
    };
    struct endpoint_node *node = NULL;
    DL_FOREACH (pool->endpoints, node) {
        count_node(node, ret_view);
    }
    return true;
}
