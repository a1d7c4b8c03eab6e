/*
 * Endpoints and their addresses: those that are written as one, and those that a DNS name stands
 * for at the moment.
 *
 * A name is kept resolved while its endpoint is not disabled and its Backend exists, whether routes
 * use it or not, so that a route that begins to use it finds its addresses. Each address serves
 * with the weight and the state of the Endpoint object.
 */
#include "node/app/routing_int.h"

#include "node/app/compile.h"
#include "node/base/mem.h"
#include "node/net/resolver.h"
#include "proto/validate.h"

#include <stdlib.h>
#include <string.h>

enum {
    RESOLVE_INTERVAL_MS = 30000,
    LOG_BURST = 20, /* lines a second about names */
};

/* ---- one endpoint ---- */

void node_address(struct endpoint_node *node)
{
    const Skein__EndpointSpec *spec = endpoint_spec(node->object);
    char canonical[ENDPOINT_ADDRESS_MAX];
    if (spec->address == NULL ||
        endpoint_address_canonical(spec->address, canonical, NULL) != RC_OK) {
        return; /* written by a node with other rules: it has no address here */
    }
    if (endpoint_address_is_ip(canonical)) {
        struct addr addr;
        if (addr_parse(canonical, &addr, NULL) == RC_OK) {
            node->addr = addr;
        }
        return;
    }
    const char *colon = strrchr(canonical, ':');
    node->host = mem_strndup(canonical, (size_t)(colon - canonical));
    node->port = (uint16_t)strtoul(colon + 1, NULL, 10);
    node->pool->name_count++;
}

void node_forget(struct endpoint_node *node)
{
    if (node->host != NULL) {
        resolver_unwatch(node->watch);
        node->watch = NULL;
        node->pool->name_count--;
        MEM_FREE(node->host);
    }
}

bool node_offers(const struct endpoint_node *node, struct proxy_endpoint *ret_endpoint)
{
    const Skein__EndpointSpec *spec = endpoint_spec(node->object);
    if (spec->has_state && spec->state == SKEIN__ENDPOINT_SPEC__STATE__Disabled) {
        return false;
    }
    *ret_endpoint = (struct proxy_endpoint){
        .weight = compile_weight(spec->has_weight, spec->weight),
        .draining = spec->has_state && spec->state == SKEIN__ENDPOINT_SPEC__STATE__Drain,
    };
    return node->host != NULL || node->addr.sa.sa_family != AF_UNSPEC;
}

size_t node_name_addresses(const struct endpoint_node *node, struct addr *ret_addrs, size_t cap)
{
    if (node->watch == NULL) {
        return 0;
    }
    struct resolver_view view;
    resolver_view(node->watch, &view);
    size_t count = MIN(view.count, cap);
    for (size_t i = 0; i < count; i++) {
        ret_addrs[i] = view.addrs[i];
        addr_set_port(&ret_addrs[i], node->port);
    }
    return count;
}

/* ---- watching ---- */

struct name_owner {
    struct routing *routing;
    struct endpoint_node *node;
};

static void log_name(struct routing *routing, struct endpoint_node *node)
{
    struct resolver_view view;
    resolver_view(node->watch, &view);
    bool failing = view.error != NULL;
    uint32_t left_out = 0;
    if (failing == node->name_failing ||
        !log_limit_pass(&routing->name_log, LOG_BURST, &left_out)) {
        node->name_failing = failing;
        return;
    }
    node->name_failing = failing;
    if (failing) {
        log_info("a name does not resolve", "endpoint=%s reason=\"%s\" addresses_kept=%zu more=%u",
                 node->object->id, view.error, view.count, left_out);
    } else {
        log_info("a name resolves again", "endpoint=%s addresses=%zu more=%u", node->object->id,
                 view.count, left_out);
    }
}

static void on_name_changed(void *arg)
{
    struct endpoint_node *node = arg;
    log_name(node->pool->routing, node);
    mark_pool(node->pool->routing, node->pool);
}

static void name_sync(struct routing *routing, struct endpoint_node *node, uint64_t interval_ms,
                      uint64_t hold_ms)
{
    struct proxy_endpoint unused;
    bool wanted = pool_serves(node->pool) && node_offers(node, &unused);
    if (!wanted) {
        resolver_unwatch(node->watch);
        node->watch = NULL;
    } else if (node->watch == NULL) {
        node->watch = resolver_watch(routing->resolver, node->host, interval_ms, hold_ms,
                                     on_name_changed, node);
    } else {
        resolver_watch_times(node->watch, interval_ms, hold_ms);
    }
}

void names_sync(struct routing *routing, struct pool *pool)
{
    if (pool->name_count == 0 || routing->resolver == NULL) {
        return;
    }
    const Skein__BackendSpec *spec = pool_spec(pool);
    uint64_t interval_ms =
        duration_ms(spec != NULL ? spec->resolve_interval : NULL, RESOLVE_INTERVAL_MS);
    uint64_t hold_ms = duration_ms(spec != NULL ? spec->resolve_hold : NULL, UINT64_MAX);
    struct endpoint_node *node;
    DL_FOREACH (pool->endpoints, node) {
        if (node->host != NULL) {
            name_sync(routing, node, MAX(interval_ms, (uint64_t)1), hold_ms);
        }
    }
}

/* ---- a pool ---- */

/* Addresses before names, names by id: of two endpoints with one address every node takes the same.
 */
static int compare_nodes(const void *a, const void *b)
{
    const struct endpoint_node *left = *(struct endpoint_node *const *)a;
    const struct endpoint_node *right = *(struct endpoint_node *const *)b;
    if ((left->host == NULL) != (right->host == NULL)) {
        return left->host == NULL ? -1 : 1;
    }
    return strcmp(left->object->id, right->object->id);
}

static void expand_name(struct endpoint_node *node, const struct proxy_endpoint *offer,
                        struct pool_expansion *expansion)
{
    struct addr addrs[RESOLVER_ADDRS_MAX];
    size_t count = node_name_addresses(node, addrs, RESOLVER_ADDRS_MAX);
    for (size_t i = 0; i < count && expansion->count < PROXY_ENDPOINTS_MAX; i++) {
        expansion->endpoints[expansion->count] = *offer;
        expansion->endpoints[expansion->count].addr = addrs[i];
        expansion->nodes[expansion->count++] = node;
    }
}

void pool_expand(const struct pool *pool, struct pool_expansion *ret_expansion)
{
    struct pool_expansion *expansion = ret_expansion;
    size_t room = pool->endpoint_count + pool->name_count * RESOLVER_ADDRS_MAX + 1;
    *expansion = (struct pool_expansion){
        .endpoints = mem_array(room, sizeof(*expansion->endpoints)),
        .nodes = mem_array(room, sizeof(struct endpoint_node *)),
    };
    struct endpoint_node **nodes = mem_array(pool->endpoint_count + 1, sizeof(*nodes));
    size_t count = 0;
    struct endpoint_node *node;
    if (pool_serves(pool)) {
        DL_FOREACH (pool->endpoints, node) {
            nodes[count++] = node;
        }
    }
    if (pool->name_count > 0) {
        qsort(nodes, count, sizeof(*nodes), compare_nodes);
    }
    for (size_t i = 0; i < count; i++) {
        struct proxy_endpoint offer;
        if (!node_offers(nodes[i], &offer)) {
            continue;
        }
        if (nodes[i]->host != NULL) {
            expand_name(nodes[i], &offer, expansion);
        } else {
            offer.addr = nodes[i]->addr;
            expansion->nodes[expansion->count] = nodes[i];
            expansion->endpoints[expansion->count++] = offer;
        }
    }
    mem_free(nodes);
}

bool pool_is_resolving(const struct pool *pool)
{
    bool any = false;
    const struct endpoint_node *node;
    for (node = pool->name_count > 0 && pool_serves(pool) ? pool->endpoints : NULL; node != NULL;
         node = node->next) {
        struct proxy_endpoint offer;
        struct resolver_view view;
        if (!node_offers(node, &offer)) {
            continue;
        }
        if (node->watch == NULL) {
            return false; /* an address, which serves at once */
        }
        resolver_view(node->watch, &view);
        if (view.count > 0) {
            return false;
        }
        any = any || view.pending;
    }
    return any;
}

bool routing_is_resolving(const struct routing *routing)
{
    const struct pool *pool, *next;
    HASH_ITER (hh, routing->pools, pool, next) {
        const struct endpoint_node *node;
        for (node = pool->name_count > 0 ? pool->endpoints : NULL; node != NULL;
             node = node->next) {
            struct resolver_view view;
            if (node->watch != NULL) {
                resolver_view(node->watch, &view);
                if (view.pending) {
                    return true;
                }
            }
        }
    }
    return false;
}
