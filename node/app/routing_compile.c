/*
 * From the index to the data plane: admission and rules of a host, endpoints of a pool, and the
 * order in which marks are worked off.
 */
#include "node/app/routing_int.h"

#include "node/app/admission.h"
#include "node/app/compile.h"
#include "node/app/compile_route.h"
#include "node/app/compile_tls.h"
#include "node/app/routing_tls.h"
#include "node/base/log.h"
#include "node/base/mem.h"
#include "node/base/timesrc.h"

#include <stdio.h>
#include <string.h>

/* ---- pools ---- */

/* Those of addresses are kept; those of names follow what they resolve to. */
static void set_tokens(const struct routing *routing, const struct pool *pool,
                       struct pool_expansion *expansion)
{
    for (size_t i = 0; i < expansion->count; i++) {
        struct endpoint_node *node = expansion->nodes[i];
        struct proxy_endpoint *endpoint = &expansion->endpoints[i];
        if (!node->has_tokens) {
            token_make(&routing->tokens, pool->name, endpoint);
            node->has_tokens = node->host == NULL;
            memcpy(node->token, endpoint->token, sizeof(node->token));
            memcpy(node->old_token, endpoint->old_token, sizeof(node->old_token));
            continue;
        }
        memcpy(endpoint->token, node->token, sizeof(node->token));
        memcpy(endpoint->old_token, node->old_token, sizeof(node->old_token));
    }
}

/* What cannot be demanded is not left out: the backend has no endpoints then. */
static void pool_make_target(struct routing *routing, struct pool *pool)
{
    const Skein__BackendSpec *spec = pool_spec(pool);
    if (!pool->target_stale) {
        return; /* endpoints came or went */
    }
    pool->target_stale = false;
    tls_target_unref(pool->target);
    pool->target = NULL;
    MEM_FREE(pool->target_fault);
    struct err_info err = {0};
    const char *own = spec != NULL && spec->tls != NULL ? spec->tls->client_certificate : NULL;
    char id[OBJECT_ID_MAX + 1];
    if (own != NULL) {
        (void)snprintf(id, sizeof(id), "%s/%s", pool->object->message->metadata->namespace_, own);
    }
    pool_show(routing, pool, own != NULL ? id : NULL);
    int rc = own != NULL && pool->own->tls == NULL
                 ? err_set(&err, RC_NOT_FOUND, "Certificate %s %s", id,
                           pool->own->fault != NULL ? pool->own->fault : "does not exist")
                 : RC_OK;
    if (rc == RC_OK && spec != NULL && spec->tls != NULL) {
        rc = compile_target(spec->tls, own != NULL ? pool->own->tls : NULL, &pool->target, &err);
    }
    if (rc != RC_OK) {
        pool->target = NULL;
        pool->target_fault = mem_strdup(err.text);
        log_error("a backend cannot be asked by TLS", "backend=%s reason=\"%s\"", pool->name,
                  err.text);
    }
}

static void pool_compile(struct routing *routing, struct pool *pool)
{
    pool_make_target(routing, pool);
    struct pool_expansion expansion;
    pool_expand(pool, &expansion);
    set_tokens(routing, pool, &expansion);
    const struct object *settings = routing->settings;
    struct proxy_backend policy = compile_backend(
        pool_spec(pool),
        settings != NULL ? (const Skein__SettingsSpec *)settings->message->spec : NULL);
    const Skein__BackendSpec *spec = pool_spec(pool);
    if (spec != NULL && compile_target_enabled(spec->tls)) {
        policy.tls = pool->target;
    }
    struct err_info err = {0};
    int rc = backend_set(routing->proxy, pool->backend, &policy, expansion.endpoints,
                         expansion.count, &err);
    if (rc == RC_OK) {
        checks_sync(routing, pool, &expansion);
    } else {
        log_error("a backend keeps its old endpoints", "backend=%s reason=\"%s\"", pool->name,
                  err.text);
    }
    mem_free(expansion.endpoints);
    mem_free(expansion.nodes);
}

/* ---- hosts ---- */

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

static const Skein__SettingsTls *settings_tls(const struct routing *routing)
{
    const Skein__SettingsSpec *spec =
        routing->settings != NULL ? (const Skein__SettingsSpec *)routing->settings->message->spec
                                  : NULL;
    return spec != NULL ? spec->tls : NULL;
}

/* What is refused is handed over without targets rather than left out: it shadows shorter paths. */
static void compile_rule(const struct routing *routing, const struct claim *claim,
                         struct proxy_rule *ret_rule, struct proxy_target *targets,
                         struct compile_store *store)
{
    const struct route *route = claim->owner;
    const Skein__RouteSpec *spec = route_spec(route->object);
    bool serves = route->refusal == NULL;
    size_t count = serves ? MIN(spec->n_to, route->pool_count) : 0;
    for (size_t i = 0; i < count; i++) {
        targets[i] = (struct proxy_target){
            .backend = route->pools[i]->backend,
            .weight = compile_weight(spec->to[i]->has_weight, spec->to[i]->weight),
        };
    }
    *ret_rule = (struct proxy_rule){
        .route = route->object->id,
        .path = claim->path,
        .path_type = spec->has_path_type && spec->path_type == SKEIN__ROUTE_SPEC__PATH_TYPE__Exact
                         ? PATH_EXACT
                         : PATH_PREFIX,
        .targets = targets,
        .target_count = count,
        .timeouts = compile_timeouts(spec->timeouts),
        .forwarded_set = spec->has_forwarded,
        .forwarded = compile_forwarded(spec->forwarded),
        .policy = serves ? compile_policy(route->object->id, spec, store) : NULL,
        .tls = compile_rule_tls(spec->tls, settings_tls(routing), route->target, store),
    };
    ret_rule->tls.misdirected = route->tls_lost || route->tls_left_out;
}

/* A passthrough rule takes the whole host from TLS clients: it is there when it has won it. */
static bool is_served(const struct route *route)
{
    const Skein__RouteTls *tls = route_spec(route->object)->tls;
    bool passed = tls != NULL && tls->has_termination &&
                  tls->termination == SKEIN__ROUTE_TLS__TERMINATION__Passthrough;
    return route->admitted && !(passed && (route->tls_left_out || route->refusal != NULL));
}

static void host_compile(struct routing *routing, struct host *host)
{
    struct claim *claims = mem_array(host->route_count, sizeof(*claims));
    struct proxy_rule *rules = mem_array(host->route_count, sizeof(*rules));
    struct proxy_target *targets =
        mem_array(host->route_count * PROXY_TARGETS_MAX, sizeof(*targets));
    struct compile_store store = {0};
    struct host_tls_plan plan;
    host_admit(host, claims);
    host_tls_plan(routing, host, &plan);
    size_t count = 0;
    for (size_t i = 0; i < host->route_count; i++) {
        if (is_served(claims[i].owner)) {
            compile_rule(routing, &claims[i], &rules[count], targets + count * PROXY_TARGETS_MAX,
                         &store);
            count++;
        }
    }
    struct err_info err = {0};
    if (routing->proxy != NULL) {
        int rc = proxy_host_set(routing->proxy, host->name, rules, count,
                                plan.is_set ? &plan.tls : NULL, &err);
        if (rc != RC_OK) {
            log_error("a host keeps its old routes", "host=%s reason=\"%s\"", host->name, err.text);
        }
    }
    host_tls_deinit(&plan);
    compile_store_free(&store);
    mem_free(targets);
    mem_free(rules);
    mem_free(claims);
}

/* ---- flushing ---- */

enum { HOST_WAIT_MS = 2000 };

/*
 * A host that serves keeps its rules for a moment when new ones lead to a backend whose names are
 * still being looked up: its requests would find no endpoint.
 */
static bool host_waits(const struct routing *routing, struct host *host)
{
    bool resolving = false;
    const struct route *route;
    for (route = host->served && routing->resolver != NULL ? host->routes : NULL; route != NULL;
         route = route->next) {
        for (size_t i = 0; i < route->pool_count; i++) {
            resolving = resolving || pool_is_resolving(route->pools[i]);
        }
    }
    if (!resolving) {
        host->wait_deadline_ms = 0;
        return false;
    }
    uint64_t now_ms = time_mono_ms();
    if (host->wait_deadline_ms == 0) {
        host->wait_deadline_ms = now_ms + HOST_WAIT_MS;
    }
    return now_ms < host->wait_deadline_ms;
}

static void flush_hosts(struct routing *routing)
{
    struct host *host = routing->marked_hosts;
    routing->marked_hosts = NULL;
    routing->hosts_wait = false;
    while (host != NULL) {
        struct host *next = host->marked_next;
        host->marked = false;
        if (host_waits(routing, host)) {
            struct claim *claims = mem_array(host->route_count, sizeof(*claims));
            host_admit(host, claims); /* for those who ask meanwhile */
            mem_free(claims);
            mark_host(routing, host);
            routing->hosts_wait = true;
            host = next;
            continue;
        }
        host_compile(routing, host);
        host->served = routing->proxy != NULL;
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
        } else {
            names_sync(routing, pool);
            if (routing->proxy != NULL) {
                pool_compile(routing, pool);
            }
        }
        pool = next;
    }
}

/* Settings that backends are compiled with have changed: all of them are marked. */
static void flush_pool_defaults(struct routing *routing, const Skein__SettingsSpec *settings)
{
    Skein__SettingsSpec part = SKEIN__SETTINGS_SPEC__INIT;
    if (settings != NULL) {
        part.health_check = settings->health_check;
        part.has_balance = settings->has_balance;
        part.balance = settings->balance;
    }
    size_t len = skein__settings_spec__get_packed_size(&part);
    uint8_t *key = mem_new(len + 1);
    (void)skein__settings_spec__pack(&part, key); /* fills len bytes */
    bool same = len == routing->defaults_key_len &&
                (len == 0 || memcmp(key, routing->defaults_key, len) == 0);
    mem_free(routing->defaults_key);
    routing->defaults_key = key;
    routing->defaults_key_len = len;
    struct pool *pool, *next;
    HASH_ITER (hh, routing->pools, pool, next) {
        if (same) {
            break;
        }
        mark_pool(routing, pool);
    }
}

void routing_flush(struct routing *routing)
{
    if (routing->settings_marked && routing->proxy != NULL) {
        const struct object *settings = routing->settings;
        const Skein__SettingsSpec *spec =
            settings != NULL ? (const Skein__SettingsSpec *)settings->message->spec : NULL;
        struct proxy_defaults defaults = compile_defaults(spec);
        struct compile_store store = {0};
        compile_settings(spec, &store, &defaults);
        proxy_set_defaults(routing->proxy, &defaults);
        compile_store_free(&store);
        flush_pool_defaults(routing, spec);
        routing->settings_marked = false;
        routing->tls_marked = true;
    }
    if (routing->tls_marked && routing->proxy != NULL) {
        routing_tls_flush(routing);
    }
    /* What gains comes before the hosts that will use it, what loses after the hosts that used it,
     * so that a change of both at once leaves no moment without endpoints. */
    flush_pools(routing, true);
    flush_hosts(routing);
    routing_tcp_flush(routing);
    if (!routing->hosts_wait) { /* else they still use what loses */
        flush_pools(routing, false);
    }
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
    routing_tcp_attach(routing);
    routing_flush(routing);
}
