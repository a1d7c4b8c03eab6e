/*
 * The index between objects and the data plane: what changes, and what it marks. See routing_int.h
 * for its shape and routing_compile.c for what a mark leads to.
 */
#include "node/app/routing_int.h"
#include "node/app/routing_tls.h"

#include "node/base/check.h"
#include "node/base/mem.h"
#include "node/net/resolver.h"
#include "proto/fault.h"
#include "proto/offered.h"
#include "proto/validate.h"

#include <stdio.h>
#include <string.h>

struct routing *routing_new(void)
{
    return mem_new(sizeof(struct routing));
}

int routing_use_keys(struct routing *routing, const struct key_ring *ring, struct err_info *err)
{
    return token_keys_init(&routing->tokens, ring, err);
}

/* ---- marks ---- */

void mark_host(struct routing *routing, struct host *host)
{
    if (!host->marked) {
        host->marked = true;
        host->marked_next = routing->marked_hosts;
        routing->marked_hosts = host;
    }
}

void mark_pool(struct routing *routing, struct pool *pool)
{
    if (!pool->marked) {
        pool->marked = true;
        pool->marked_next = routing->marked_pools;
        routing->marked_pools = pool;
    }
}

/* ---- pools ---- */

struct pool *pool_use(struct routing *routing, const char *name)
{
    struct pool *pool = NULL;
    HASH_FIND_STR(routing->pools, name, pool);
    if (pool == NULL) {
        pool = mem_new(sizeof(*pool));
        pool->routing = routing;
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
void pool_release(struct routing *routing, struct pool *pool)
{
    ASSERT(pool->users > 0);
    pool->users--;
    mark_pool(routing, pool);
}

void pool_show(struct routing *routing, struct pool *pool, const char *id)
{
    struct cert *before = pool->own;
    struct cert *now = id != NULL ? certs_use(routing, id) : NULL;
    if (before != NULL) {
        DL_DELETE2(before->pools, pool, own_prev, own_next);
    }
    pool->own = now;
    if (now != NULL) {
        DL_APPEND2(now->pools, pool, own_prev, own_next);
    }
    certs_release(routing, before);
}

struct pool **pools_use(struct routing *routing, const struct object *object,
                        Skein__Target *const *to, size_t count)
{
    struct pool **pools = mem_array(count, sizeof(*pools));
    for (size_t i = 0; i < count; i++) {
        char id[OBJECT_ID_MAX + 1];
        const char *backend = to[i]->backend != NULL ? to[i]->backend : "";
        (void)snprintf(id, sizeof(id), "%s/%s", object->message->metadata->namespace_, backend);
        pools[i] = pool_use(routing, id);
        pools[i]->route_count++;
    }
    return pools;
}

void pools_release(struct routing *routing, struct pool **pools, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        pools[i]->route_count--;
        pool_release(routing, pools[i]);
    }
    mem_free(pools);
}

void pool_free(struct routing *routing, struct pool *pool)
{
    HASH_DEL(routing->pools, pool);
    checks_drop(routing, pool);
    if (pool->backend != NULL) {
        backend_unref(routing->proxy, pool->backend);
        pool->backend = NULL;
    }
    tls_target_unref(pool->target);
    pool_show(routing, pool, NULL);
    mem_free(pool->target_fault);
    mem_free(pool->refusal);
    mem_free(pool->name);
    mem_free(pool);
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

void host_free(struct routing *routing, struct host *host)
{
    HASH_DEL(routing->hosts, host);
    certs_show(host, NULL);
    mem_free(host->name);
    mem_free(host);
}

/* ---- changes ---- */

/*
 * Rows come from peers of other versions too: what this one does not understand or does not do is
 * not served, rather than served without its policy. NULL, or the reason (mem_free).
 */
char *routing_refusal(const struct object *object)
{
    struct faults faults;
    faults_init(&faults);
    object_validate(object->kind, &object->message->base, &faults);
    object_check_offered(object->kind, &object->message->base, &faults);
    struct err_info err = {0};
    char *refusal = NULL;
    if (faults_any(&faults)) {
        (void)faults_err(&faults, RC_INVALID, &err); /* for its text */
        refusal = mem_strdup(err.text);
    }
    faults_deinit(&faults);
    return refusal;
}

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
    pools_release(routing, route->pools, route->pool_count);
    route_tls_remove(routing, route);
    mem_free(route->refusal);
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
    route->refusal = routing_refusal(object);
    route->pool_count = MIN(spec->n_to, (size_t)PROXY_TARGETS_MAX);
    route->pools = pools_use(routing, object, spec->to, route->pool_count);
    route->host = host_use(routing, name);
    DL_APPEND(route->host->routes, route);
    route->host->route_count++;
    mark_host(routing, route->host);
    route_tls_add(routing, route);
    HASH_ADD_KEYPTR(hh, routing->routes, object->id, strlen(object->id), route);
}

static void endpoint_remove(struct routing *routing, const struct object *object)
{
    struct endpoint_node *node = NULL;
    HASH_FIND_STR(routing->endpoints, object->id, node);
    if (node != NULL) {
        HASH_DEL(routing->endpoints, node);
        node_forget(node);
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
    node_address(node);
    DL_APPEND(node->pool->endpoints, node);
    node->pool->endpoint_count++;
    HASH_ADD_KEYPTR(hh, routing->endpoints, object->id, strlen(object->id), node);
}

/* The same place with another weight or state: what a name has resolved to stays. */
static bool endpoint_update(struct routing *routing, const struct object *now,
                            const struct object *before)
{
    struct endpoint_node *node = NULL;
    HASH_FIND_STR(routing->endpoints, before->id, node);
    const Skein__EndpointSpec *new = endpoint_spec(now);
    if (node == NULL || new == NULL || strcmp(now->id, before->id) != 0) {
        return false;
    }
    const Skein__EndpointSpec *old = endpoint_spec(before);
    if (new->backend == NULL || strcmp(new->backend, old->backend) != 0 || new->address == NULL ||
        old->address == NULL || strcmp(new->address, old->address) != 0) {
        return false;
    }
    HASH_DEL(routing->endpoints, node); /* its key is a text of the object */
    node->object = now;
    HASH_ADD_KEYPTR(hh, routing->endpoints, now->id, strlen(now->id), node);
    mark_pool(routing, node->pool);
    return true;
}

static void endpoint_change(struct routing *routing, const struct object *now,
                            const struct object *before)
{
    if (now != NULL && before != NULL && endpoint_update(routing, now, before)) {
        return;
    }
    if (before != NULL) {
        endpoint_remove(routing, before);
    }
    if (now != NULL) {
        endpoint_add(routing, now);
    }
}

static void backend_change(struct routing *routing, const struct object *now,
                           const struct object *before)
{
    if (now != NULL) {
        struct pool *pool = pool_use(routing, now->id);
        pool->object = now;
        mem_free(pool->refusal);
        pool->refusal = routing_refusal(now);
        pool->target_stale = true;
    }
    if (before != NULL) {
        struct pool *pool = NULL;
        HASH_FIND_STR(routing->pools, before->id, pool);
        ASSERT(pool != NULL);
        if (now == NULL) {
            pool->object = NULL;
            pool->target_stale = true;
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
        endpoint_change(routing, now, before);
    } else if (kind->descriptor == &skein__backend__descriptor) {
        backend_change(routing, now, before);
    } else if (kind->descriptor == &skein__tcp_route__descriptor) {
        routing_tcp_change(routing, now, before);
    } else if (kind->descriptor == &skein__certificate__descriptor) {
        certs_change(routing, now, before);
    } else if (kind->descriptor == &skein__settings__descriptor) {
        routing->settings = now;
        routing->settings_marked = true;
    }
}

/* ---- end ---- */

void routing_free(struct routing *routing)
{
    if (routing == NULL) {
        return;
    }
    struct route *route, *next_route;
    HASH_ITER (hh, routing->routes, route, next_route) {
        route_remove(routing, route->object);
    }
    routing_tcp_deinit(routing);
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
    certs_deinit(routing);
    tls_policy_unref(routing->tls_policy);
    prober_free(routing->prober);
    resolver_free(routing->resolver);
    token_keys_deinit(&routing->tokens);
    mem_free(routing->defaults_key);
    mem_free(routing);
}
