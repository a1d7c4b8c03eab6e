/*
 * The index between objects and the data plane, shared by the files of routing.
 *
 *   Route object -- route -- host: all routes of one host are admitted together, then handed over.
 *   Backend, Endpoint objects -- pool: one per backend name that an object or a route mentions. A
 * pool without a Backend object is a missing backend: it exists in the data plane without
 * endpoints.
 *
 * A pool lives while it has an object, an endpoint or a route that mentions it (users > 0).
 */
#ifndef SKEIN_NODE_APP_ROUTING_INT_H
#define SKEIN_NODE_APP_ROUTING_INT_H

#include "node/app/routing.h"
#include "node/base/hashtable.h"

#include <utlist.h>

struct endpoint_node {
    const struct object *object;
    struct pool *pool;
    struct endpoint_node *prev, *next; /* in pool->endpoints */
    UT_hash_handle hh;                 /* by object id */
};

struct pool {
    char *name;                  /* namespace/backend */
    struct backend *backend;     /* NULL before a proxy is attached */
    const struct object *object; /* NULL: a missing backend */
    char *refusal;               /* why this version cannot carry the object out */
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
    char *refusal;       /* why this version cannot carry it out; NULL: it can */
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

static inline const Skein__RouteSpec *route_spec(const struct object *object)
{
    return (const Skein__RouteSpec *)object->message->spec;
}

static inline const Skein__EndpointSpec *endpoint_spec(const struct object *object)
{
    return (const Skein__EndpointSpec *)object->message->spec;
}

/* ---- routing.c: the index ---- */

/* Drop what has no user (pool) or no route (host) any more; both are off the lists of marks. */
void pool_free(struct routing *routing, struct pool *pool);
void host_free(struct routing *routing, struct host *host);
void mark_pool(struct routing *routing, struct pool *pool);
void mark_host(struct routing *routing, struct host *host);

/* ---- routing_compile.c: from the index to the data plane ---- */

/* False: it takes no requests here (disabled, or not an address). */
bool endpoint_usable(const struct object *object, struct proxy_endpoint *ret_endpoint);

/* Does the route serve plain HTTP requests? */
bool route_serves_plain(const struct route *route);

#endif
