/*
 * The index between objects and the data plane.
 *
 *   Route object -- route -- host: all routes of one host are admitted together, then handed over.
 *   Backend, Endpoint objects -- pool: one per backend name that an object or a route mentions. A
 * pool without a Backend object is a missing backend: it exists in the data plane without
 * endpoints.
 *
 * A pool lives while it has an object, an endpoint or a route that mentions it (users > 0).
 */
#include "node/app/routing.h"

#include "node/app/admission.h"
#include "node/app/compile.h"
#include "node/base/check.h"
#include "node/base/log.h"
#include "node/base/mem.h"
#include "proto/validate.h"

#include <stdio.h>
#include <string.h>
#include "node/base/hashtable.h"
#include <utlist.h>

struct endpoint_node {
    const struct object *object;
    struct pool *pool;
    struct endpoint_node *prev, *next; /* in pool->endpoints */
    UT_hash_handle hh;                 /* by object id */
};

struct pool {
    char *name;              /* namespace/backend */
    struct backend *backend; /* NULL before a proxy is attached */
    const struct object *object;
    struct endpoint_node *endpoints;
    size_t endpoint_count;
    size_t route_count;
    uint32_t users; /* the object, the endpoints and the mentions in routes */
    struct pool *marked_next;
    bool marked;
    UT_hash_handle hh;
};

struct route {
    const struct object *object;
    struct host *host;
    struct pool **pools; /* of spec.to, in order */
    size_t pool_count;
    bool admitted;
    char *claimed_by; /* id of the route that has the claim, or NULL */
    struct route *prev, *next;
    UT_hash_handle hh; /* by object id */
};

struct host {
    char *name;
    struct route *routes;
    size_t route_count;
    struct host *marked_next;
    bool marked;
    UT_hash_handle hh;
};

struct routing {
    struct proxy *proxy;
    struct route *routes;
    struct host *hosts;
    struct pool *pools;
    struct endpoint_node *endpoints;
    struct host *marked_hosts;
    struct pool *marked_pools;
    const struct object *settings;
    bool settings_marked;
};

static const Skein__RouteSpec *route_spec(const struct object *object)
{
    return (const Skein__RouteSpec *)object->message->spec;
}

static const Skein__EndpointSpec *endpoint_spec(const struct object *object)
{
    return (const Skein__EndpointSpec *)object->message->spec;
}

struct routing *routing_new(void)
{
    return mem_new(sizeof(struct routing));
}

/* ---- marks ---- */

static void mark_host(struct routing *routing, struct host *host)
{
    if (!host->marked) {
        host->marked = true;
        host->marked_next = routing->marked_hosts;
        routing->marked_hosts = host;
    }
}

static void mark_pool(struct routing *routing, struct pool *pool)
{
    if (!pool->marked) {
        pool->marked = true;
        pool->marked_next = routing->marked_pools;
        routing->marked_pools = pool;
    }
}

/* ---- pools ---- */

static struct pool *pool_use(struct routing *routing, const char *name)
{
    struct pool *pool = NULL;
    HASH_FIND_STR(routing->pools, name, pool);
    if (pool == NULL) {
        pool = mem_new(sizeof(*pool));
        pool->name = mem_strdup(name);
        HASH_ADD_KEYPTR(hh, routing->pools, pool->name, strlen(pool->name), pool);
        if (routing->proxy != NULL) {
            pool->backend = backend_new(routing->proxy, pool->name);
        }
    }
    pool->users++;
    mark_pool(routing, pool);
    return pool;
}

/* What has no user any more goes at the next flush, when it is off the list of marks. */
static void pool_release(struct routing *routing, struct pool *pool)
{
    ASSERT(pool->users > 0);
    pool->users--;
    mark_pool(routing, pool);
}

static void pool_free(struct routing *routing, struct pool *pool)
{
    HASH_DEL(routing->pools, pool);
    if (pool->backend != NULL) {
        backend_unref(routing->proxy, pool->backend);
        pool->backend = NULL;
    }
    mem_free(pool->name);
    mem_free(pool);
}

static bool endpoint_usable(const struct object *object, struct proxy_endpoint *ret_endpoint)
{
    const Skein__EndpointSpec *spec = endpoint_spec(object);
    if (spec == NULL || spec->address == NULL ||
        (spec->has_state && spec->state == SKEIN__ENDPOINT_SPEC__STATE__Disabled)) {
        return false;
    }
    struct proxy_endpoint endpoint = {
        .weight = compile_weight(spec->has_weight, spec->weight),
        .draining = spec->has_state && spec->state == SKEIN__ENDPOINT_SPEC__STATE__Drain,
    };
    if (addr_parse(spec->address, &endpoint.addr, NULL) != RC_OK) {
        return false; /* a name: refused at the API until names are resolved */
    }
    *ret_endpoint = endpoint;
    return true;
}

static void pool_compile(struct routing *routing, struct pool *pool)
{
    struct proxy_endpoint *endpoints =
        mem_array(pool->endpoint_count + 1, sizeof(struct proxy_endpoint));
    size_t count = 0;
    struct endpoint_node *node = NULL;
    if (pool->object != NULL) {
        DL_FOREACH (pool->endpoints, node) {
            count += endpoint_usable(node->object, &endpoints[count]);
        }
    }
    const Skein__BackendSpec *spec =
        pool->object != NULL ? (const Skein__BackendSpec *)pool->object->message->spec : NULL;
    struct err_info err = {0};
    int rc =
        backend_set(routing->proxy, pool->backend, compile_balance(spec), endpoints, count, &err);
    if (rc != RC_OK) {
        log_error("a backend keeps its old endpoints", "backend=%s reason=\"%s\"", pool->name,
                  err.text);
    }
    mem_free(endpoints);
}

/* ---- hosts ---- */

static struct host *host_use(struct routing *routing, const char *name)
{
    struct host *host = NULL;
    HASH_FIND_STR(routing->hosts, name, host);
    if (host == NULL) {
        host = mem_new(sizeof(*host));
        host->name = mem_strdup(name);
        HASH_ADD_KEYPTR(hh, routing->hosts, host->name, strlen(host->name), host);
    }
    return host;
}

static void host_free(struct routing *routing, struct host *host)
{
    HASH_DEL(routing->hosts, host);
    mem_free(host->name);
    mem_free(host);
}

static void host_admit(struct host *host, struct claim *claims)
{
    size_t count = 0;
    struct route *route = NULL;
    DL_FOREACH (host->routes, route) {
        const Skein__RouteSpec *spec = route_spec(route->object);
        claims[count++] = (struct claim){
            .path = spec->path != NULL ? spec->path : "/",
            .path_type = spec->has_path_type ? (int)spec->path_type : 0,
            .created_hlc = route->object->created_hlc,
            .id = route->object->id,
            .owner = route,
        };
    }
    admission_decide(claims, count);
    for (size_t i = 0; i < count; i++) {
        route = claims[i].owner;
        route->admitted = claims[i].loses_to == NULL;
        MEM_FREE(route->claimed_by);
        if (!route->admitted) {
            route->claimed_by = mem_strdup(claims[i].loses_to->id);
        }
    }
}

/*
 * A route that asks for TLS and does not allow plain HTTP must shadow shorter ones (the scheme is
 * looked at after the match), so it is handed over without targets rather than left out.
 */
static bool serves_plain(const Skein__RouteSpec *spec)
{
    const Skein__RouteTls *tls = spec->tls;
    return tls == NULL || !tls->has_termination ||
           tls->termination == SKEIN__ROUTE_TLS__TERMINATION__None ||
           (tls->has_insecure && tls->insecure == SKEIN__ROUTE_TLS__INSECURE__Allow &&
            tls->termination != SKEIN__ROUTE_TLS__TERMINATION__Passthrough);
}

static void compile_rule(const struct route *route, const char *path, struct proxy_rule *ret_rule,
                         struct proxy_target *targets)
{
    const Skein__RouteSpec *spec = route_spec(route->object);
    size_t count = serves_plain(spec) ? MIN(spec->n_to, route->pool_count) : 0;
    for (size_t i = 0; i < count; i++) {
        targets[i] = (struct proxy_target){
            .backend = route->pools[i]->backend,
            .weight = compile_weight(spec->to[i]->has_weight, spec->to[i]->weight),
        };
    }
    *ret_rule = (struct proxy_rule){
        .route = route->object->id,
        .path = path,
        .path_type = spec->has_path_type && spec->path_type == SKEIN__ROUTE_SPEC__PATH_TYPE__Exact
                         ? PATH_EXACT
                         : PATH_PREFIX,
        .targets = targets,
        .target_count = count,
        .timeouts = compile_timeouts(spec->timeouts),
        .forwarded_set = spec->has_forwarded,
        .forwarded = compile_forwarded(spec->forwarded),
    };
}

static void host_compile(struct routing *routing, struct host *host)
{
    struct claim *claims = mem_array(host->route_count, sizeof(*claims));
    struct proxy_rule *rules = mem_array(host->route_count, sizeof(*rules));
    struct proxy_target *targets =
        mem_array(host->route_count * PROXY_TARGETS_MAX, sizeof(*targets));
    host_admit(host, claims);
    size_t count = 0;
    for (size_t i = 0; i < host->route_count; i++) {
        if (claims[i].loses_to == NULL) {
            compile_rule(claims[i].owner, claims[i].path, &rules[count],
                         targets + count * PROXY_TARGETS_MAX);
            count++;
        }
    }
    struct err_info err = {0};
    if (routing->proxy != NULL) {
        int rc = proxy_host_set(routing->proxy, host->name, rules, count, &err);
        if (rc != RC_OK) {
            log_error("a host keeps its old routes", "host=%s reason=\"%s\"", host->name, err.text);
        }
    }
    mem_free(targets);
    mem_free(rules);
    mem_free(claims);
}

/* ---- changes ---- */

static void route_remove(struct routing *routing, const struct object *object)
{
    struct route *route = NULL;
    HASH_FIND_STR(routing->routes, object->id, route);
    if (route == NULL) {
        return;
    }
    HASH_DEL(routing->routes, route);
    DL_DELETE(route->host->routes, route);
    route->host->route_count--;
    mark_host(routing, route->host);
    for (size_t i = 0; i < route->pool_count; i++) {
        route->pools[i]->route_count--;
        pool_release(routing, route->pools[i]);
    }
    mem_free(route->pools);
    mem_free(route->claimed_by);
    mem_free(route);
}

static void route_add(struct routing *routing, const struct object *object)
{
    const Skein__RouteSpec *spec = route_spec(object);
    char name[NAME_LONG_MAX_BYTES + 1];
    if (spec == NULL || spec->host == NULL || host_canonical(spec->host, name, NULL) != RC_OK) {
        return; /* written by a node with other rules; routing_status says so */
    }
    struct route *route = mem_new(sizeof(*route));
    route->object = object;
    route->pool_count = MIN(spec->n_to, (size_t)PROXY_TARGETS_MAX);
    route->pools = mem_array(route->pool_count, sizeof(struct pool *));
    for (size_t i = 0; i < route->pool_count; i++) {
        char id[OBJECT_ID_MAX + 1];
        const char *backend = spec->to[i]->backend != NULL ? spec->to[i]->backend : "";
        (void)snprintf(id, sizeof(id), "%s/%s", object->message->metadata->namespace_, backend);
        route->pools[i] = pool_use(routing, id);
        route->pools[i]->route_count++;
    }
    route->host = host_use(routing, name);
    DL_APPEND(route->host->routes, route);
    route->host->route_count++;
    mark_host(routing, route->host);
    HASH_ADD_KEYPTR(hh, routing->routes, object->id, strlen(object->id), route);
}

static void endpoint_remove(struct routing *routing, const struct object *object)
{
    struct endpoint_node *node = NULL;
    HASH_FIND_STR(routing->endpoints, object->id, node);
    if (node != NULL) {
        HASH_DEL(routing->endpoints, node);
        DL_DELETE(node->pool->endpoints, node);
        node->pool->endpoint_count--;
        pool_release(routing, node->pool);
        mem_free(node);
    }
}

static void endpoint_add(struct routing *routing, const struct object *object)
{
    const Skein__EndpointSpec *spec = endpoint_spec(object);
    if (spec == NULL || spec->backend == NULL) {
        return;
    }
    char id[OBJECT_ID_MAX + 1];
    (void)snprintf(id, sizeof(id), "%s/%s", object->message->metadata->namespace_, spec->backend);
    struct endpoint_node *node = mem_new(sizeof(*node));
    node->object = object;
    node->pool = pool_use(routing, id);
    DL_APPEND(node->pool->endpoints, node);
    node->pool->endpoint_count++;
    HASH_ADD_KEYPTR(hh, routing->endpoints, object->id, strlen(object->id), node);
}

static void backend_change(struct routing *routing, const struct object *now,
                           const struct object *before)
{
    if (now != NULL) {
        pool_use(routing, now->id)->object = now;
    }
    if (before != NULL) {
        struct pool *pool = NULL;
        HASH_FIND_STR(routing->pools, before->id, pool);
        if (now == NULL) {
            pool->object = NULL;
        }
        pool_release(routing, pool);
    }
}

void routing_change(struct routing *routing, const struct object *now, const struct object *before)
{
    const struct kind *kind = now != NULL ? now->kind : before->kind;
    if (kind->descriptor == &skein__route__descriptor) {
        if (before != NULL) {
            route_remove(routing, before);
        }
        if (now != NULL) {
            route_add(routing, now);
        }
    } else if (kind->descriptor == &skein__endpoint__descriptor) {
        if (before != NULL) {
            endpoint_remove(routing, before);
        }
        if (now != NULL) {
            endpoint_add(routing, now);
        }
    } else if (kind->descriptor == &skein__backend__descriptor) {
        backend_change(routing, now, before);
    } else if (kind->descriptor == &skein__settings__descriptor) {
        routing->settings = now;
        routing->settings_marked = true;
    }
}

/* ---- flushing ---- */

static void flush_hosts(struct routing *routing)
{
    struct host *host = routing->marked_hosts;
    routing->marked_hosts = NULL;
    while (host != NULL) {
        struct host *next = host->marked_next;
        host->marked = false;
        host_compile(routing, host);
        if (host->route_count == 0) {
            host_free(routing, host);
        }
        host = next;
    }
}

/* The marked pools that have endpoints to serve, or those that have none. The others stay marked.
 */
static void flush_pools(struct routing *routing, bool serving)
{
    struct pool *pool = routing->marked_pools;
    routing->marked_pools = NULL;
    while (pool != NULL) {
        struct pool *next = pool->marked_next;
        pool->marked = false;
        bool serves = pool->users > 0 && pool->object != NULL && pool->endpoint_count > 0;
        if (serves != serving) {
            mark_pool(routing, pool);
        } else if (pool->users == 0) {
            pool_free(routing, pool);
        } else if (routing->proxy != NULL) {
            pool_compile(routing, pool);
        }
        pool = next;
    }
}

void routing_flush(struct routing *routing)
{
    if (routing->settings_marked && routing->proxy != NULL) {
        const struct object *settings = routing->settings;
        struct proxy_defaults defaults = compile_defaults(
            settings != NULL ? (const Skein__SettingsSpec *)settings->message->spec : NULL);
        proxy_set_defaults(routing->proxy, &defaults);
        routing->settings_marked = false;
    }
    /* What gains comes before the hosts that will use it, what loses after the hosts that used it,
     * so that a change of both at once leaves no moment without endpoints. */
    flush_pools(routing, true);
    flush_hosts(routing);
    flush_pools(routing, false);
}

void routing_attach(struct routing *routing, struct proxy *proxy)
{
    routing->proxy = proxy;
    routing->settings_marked = true;
    struct pool *pool, *next_pool;
    HASH_ITER (hh, routing->pools, pool, next_pool) {
        pool->backend = backend_new(proxy, pool->name);
        mark_pool(routing, pool);
    }
    struct host *host, *next_host;
    HASH_ITER (hh, routing->hosts, host, next_host) {
        mark_host(routing, host);
    }
    routing_flush(routing);
}

void routing_free(struct routing *routing)
{
    if (routing == NULL) {
        return;
    }
    struct route *route, *next_route;
    HASH_ITER (hh, routing->routes, route, next_route) {
        route_remove(routing, route->object);
    }
    struct endpoint_node *node, *next_node;
    HASH_ITER (hh, routing->endpoints, node, next_node) {
        endpoint_remove(routing, node->object);
    }
    struct host *host, *next_host;
    HASH_ITER (hh, routing->hosts, host, next_host) {
        host_free(routing, host);
    }
    struct pool *pool, *next_pool;
    HASH_ITER (hh, routing->pools, pool, next_pool) {
        pool_free(routing, pool);
    }
    mem_free(routing);
}

/* ---- looking ---- */

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
        .target_count = route->pool_count,
        .plain = serves_plain(route_spec(route->object)),
    };
    for (size_t i = 0; i < route->pool_count; i++) {
        ret_view->missing[i] = route->pools[i]->object == NULL;
    }
    return true;
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
        .routes = pool->route_count,
        .endpoints = pool->endpoint_count,
    };
    struct endpoint_node *node = NULL;
    DL_FOREACH (pool->endpoints, node) {
        struct proxy_endpoint endpoint;
        if (endpoint_usable(node->object, &endpoint)) {
            ret_view->draining += endpoint.draining;
            ret_view->ready += !endpoint.draining && endpoint.weight > 0;
        }
    }
    return true;
}
