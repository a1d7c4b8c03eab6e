/*
 * TcpRoutes: admission by port, and their way into the data plane; see routing_tcp.h.
 */
#include "node/app/routing_tcp.h"

#include "node/app/admission.h"
#include "node/app/compile.h"
#include "node/app/compile_route.h"
#include "node/app/routing_int.h"
#include "node/base/check.h"
#include "node/base/mem.h"

#include <string.h>

static const Skein__TcpRouteSpec *tcp_spec(const struct object *object)
{
    return (const Skein__TcpRouteSpec *)object->message->spec;
}

static void mark(struct routing *routing, struct tcp_claims *claims)
{
    if (!claims->marked) {
        claims->marked = true;
        claims->marked_next = routing->tcp.marked;
        routing->tcp.marked = claims;
    }
}

/* ---- the index ---- */

static struct tcp_claims *claims_use(struct routing *routing, uint32_t port)
{
    struct tcp_claims *claims = NULL;
    HASH_FIND(hh, routing->tcp.claims, &port, sizeof(port), claims);
    if (claims == NULL) {
        claims = mem_new(sizeof(*claims));
        claims->port = port;
        HASH_ADD(hh, routing->tcp.claims, port, sizeof(claims->port), claims);
    }
    return claims;
}

static void claims_free(struct routing *routing, struct tcp_claims *claims)
{
    HASH_DEL(routing->tcp.claims, claims);
    mem_free(claims->trouble);
    mem_free(claims);
}

static void tcp_route_remove(struct routing *routing, const struct object *object)
{
    struct tcp_route *route = NULL;
    HASH_FIND_STR(routing->tcp.routes, object->id, route);
    if (route == NULL) {
        return;
    }
    HASH_DEL(routing->tcp.routes, route);
    DL_DELETE(route->claims->routes, route);
    route->claims->route_count--;
    mark(routing, route->claims);
    pools_release(routing, route->pools, route->pool_count);
    mem_free(route->refusal);
    mem_free(route->claimed_by);
    mem_free(route);
}

static void tcp_route_add(struct routing *routing, const struct object *object)
{
    const Skein__TcpRouteSpec *spec = tcp_spec(object);
    if (spec == NULL || !spec->has_port || spec->port == 0 || spec->port > UINT16_MAX) {
        return; /* written by a node with other rules; its status says so */
    }
    struct tcp_route *route = mem_new(sizeof(*route));
    route->object = object;
    route->refusal = routing_refusal(object);
    route->pool_count = MIN(spec->n_to, (size_t)PROXY_TARGETS_MAX);
    route->pools = pools_use(routing, object, spec->to, route->pool_count);
    route->claims = claims_use(routing, spec->port);
    DL_APPEND(route->claims->routes, route);
    route->claims->route_count++;
    mark(routing, route->claims);
    HASH_ADD_KEYPTR(hh, routing->tcp.routes, object->id, strlen(object->id), route);
}

void routing_tcp_change(struct routing *routing, const struct object *now,
                        const struct object *before)
{
    if (before != NULL) {
        tcp_route_remove(routing, before);
    }
    if (now != NULL) {
        tcp_route_add(routing, now);
    }
}

/* ---- into the data plane ---- */

/* Settle who has the port; NULL: nobody wants it. */
static struct tcp_route *admit(struct tcp_claims *claims)
{
    struct claim *list = mem_array(claims->route_count, sizeof(*list));
    struct tcp_route *route;
    struct tcp_route *owner = NULL;
    size_t count = 0;
    DL_FOREACH (claims->routes, route) {
        list[count++] = (struct claim){
            .path = "/",
            .created_hlc = route->object->created_hlc,
            .id = route->object->id,
            .owner = route,
        };
    }
    admission_decide(list, count);
    for (size_t i = 0; i < count; i++) {
        route = list[i].owner;
        route->admitted = list[i].loses_to == NULL;
        MEM_FREE(route->claimed_by);
        if (route->admitted) {
            owner = route;
        } else {
            route->claimed_by = mem_strdup(list[i].loses_to->id);
        }
    }
    mem_free(list);
    return owner;
}

static struct proxy_policy compile_tcp_policy(const Skein__TcpRouteSpec *spec)
{
    struct proxy_policy policy = {
        .allow_from = compile_texts(spec->allow_from, spec->n_allow_from),
        .deny_from = compile_texts(spec->deny_from, spec->n_deny_from),
        .rate = compile_rate(spec->rate_limit),
        .access_log_off = spec->has_access_log && !spec->access_log,
    };
    if (spec->limits != NULL && spec->limits->has_connections) {
        policy.connections_max = spec->limits->connections;
    }
    if (spec->retries != NULL && spec->retries->has_attempts) {
        policy.retries = (struct proxy_retries){
            .set = true, .attempts = spec->retries->attempts, .on = PROXY_RETRY_CONNECT};
    }
    return policy;
}

static int open_port(struct routing *routing, const struct tcp_route *route, struct err_info *err)
{
    const Skein__TcpRouteSpec *spec = tcp_spec(route->object);
    struct proxy_target targets[PROXY_TARGETS_MAX];
    size_t count = MIN(spec->n_to, route->pool_count);
    for (size_t i = 0; i < count; i++) {
        targets[i] = (struct proxy_target){
            .backend = route->pools[i]->backend,
            .weight = compile_weight(spec->to[i]->has_weight, spec->to[i]->weight),
        };
    }
    const struct proxy_policy policy = compile_tcp_policy(spec);
    const struct proxy_tcp tcp = {
        .route = route->object->id,
        .targets = targets,
        .target_count = count,
        .timeouts = compile_timeouts(spec->timeouts),
        .policy = &policy,
    };
    return proxy_tcp_set(routing->proxy, (uint16_t)route->claims->port, &tcp, err);
}

/* NULL: the port is none of the node's own. */
static const char *own_setting(const struct routing_tcp *tcp, uint32_t port)
{
    for (size_t i = 0; i < tcp->own_count; i++) {
        if (tcp->own[i].port == port) {
            return tcp->own[i].setting;
        }
    }
    return NULL;
}

/* Keep the reason; a new one is told once. */
static void note_trouble(struct routing *routing, struct tcp_claims *claims,
                         const struct tcp_route *route, int rc, const struct err_info *err)
{
    const char *own = own_setting(&routing->tcp, claims->port);
    char *text = own != NULL ? mem_printf("%s (a port of this node itself: %s)", err->text, own)
                             : mem_strdup(err->text);
    if (claims->trouble == NULL || strcmp(claims->trouble, text) != 0) {
        log_warn("a TCP port is not open", "port=%u route=%s reason=\"%s\"", claims->port,
                 route->object->id, text);
    }
    mem_free(claims->trouble);
    claims->trouble = text;
    claims->retry = rc == RC_BUSY || rc == RC_IO;
}

static void claims_compile(struct routing *routing, struct tcp_claims *claims)
{
    struct tcp_route *route = admit(claims);
    if (routing->proxy == NULL) {
        return;
    }
    if (route == NULL || route->refusal != NULL) {
        if (claims->open) {
            proxy_tcp_remove(routing->proxy, (uint16_t)claims->port);
            log_info("a TCP port is closed", "port=%u", claims->port);
        }
        claims->open = claims->retry = false;
        MEM_FREE(claims->trouble);
        return;
    }
    struct err_info err = {0};
    int rc = open_port(routing, route, &err);
    if (rc != RC_OK) {
        /* An open port keeps what it did before. */
        note_trouble(routing, claims, route, rc, &err);
        return;
    }
    if (!claims->open) {
        log_info("listening", "protocol=tcp port=%u route=%s", claims->port, route->object->id);
    }
    claims->open = true;
    claims->retry = false;
    MEM_FREE(claims->trouble);
}

void routing_tcp_flush(struct routing *routing)
{
    struct tcp_claims *claims = routing->tcp.marked;
    routing->tcp.marked = NULL;
    while (claims != NULL) {
        struct tcp_claims *next = claims->marked_next;
        claims->marked = false;
        claims_compile(routing, claims);
        if (claims->route_count == 0) {
            claims_free(routing, claims);
        }
        claims = next;
    }
}

void routing_tcp_attach(struct routing *routing)
{
    struct tcp_claims *claims, *next;
    HASH_ITER (hh, routing->tcp.claims, claims, next) {
        mark(routing, claims);
    }
}

void routing_tcp_tick(struct routing *routing)
{
    if (++routing->tcp.ticks % TCP_RETRY_TICKS != 0) {
        return;
    }
    struct tcp_claims *claims, *next;
    HASH_ITER (hh, routing->tcp.claims, claims, next) {
        if (claims->retry) {
            mark(routing, claims);
        }
    }
}

void routing_tcp_own_port(struct routing *routing, uint16_t port, const char *setting)
{
    struct routing_tcp *tcp = &routing->tcp;
    if (port != 0 && tcp->own_count < ARRAY_LEN(tcp->own)) {
        tcp->own[tcp->own_count++] = (struct tcp_own_port){.port = port, .setting = setting};
    }
}

/* ---- looking, end ---- */

bool routing_tcp_view(const struct routing *routing, const char *id,
                      struct routing_tcp_view *ret_view)
{
    struct tcp_route *route = NULL;
    HASH_FIND_STR(routing->tcp.routes, id, route);
    if (route == NULL) {
        return false;
    }
    *ret_view = (struct routing_tcp_view){
        .admitted = route->admitted,
        .claimed_by = route->claimed_by,
        .refusal = route->refusal,
        .trouble = route->admitted ? route->claims->trouble : NULL,
        .open = route->admitted && route->claims->open,
        .target_count = route->pool_count,
    };
    for (size_t i = 0; i < route->pool_count; i++) {
        ret_view->missing[i] = route->pools[i]->object == NULL;
    }
    return true;
}

void routing_tcp_deinit(struct routing *routing)
{
    struct tcp_route *route, *next_route;
    HASH_ITER (hh, routing->tcp.routes, route, next_route) {
        tcp_route_remove(routing, route->object);
    }
    struct tcp_claims *claims, *next;
    HASH_ITER (hh, routing->tcp.claims, claims, next) {
        claims_free(routing, claims);
    }
}
