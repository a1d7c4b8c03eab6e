/*
 * Keeps the data plane in step with the table of objects.
 *
 * An object that changes marks its host or its backend; routing_flush compiles what is marked, so
 * that a burst of changes costs each host once. Costs are those of the marked: the routes of a
 * host, the endpoints of a backend. Before a data plane is attached marks only gather. Thread: the
 * control thread.
 */
#ifndef SKEIN_NODE_APP_ROUTING_H
#define SKEIN_NODE_APP_ROUTING_H

#include "node/proxy/proxy.h"
#include "proto/object.h"

struct routing;

struct routing *routing_new(void);

/* Release what the data plane lent (before proxy_free), then everything. NULL is accepted. */
void routing_free(struct routing *routing);

/* Compile everything into this proxy and follow it from now on. Borrowed until routing_free. */
void routing_attach(struct routing *routing, struct proxy *proxy);

/* `before` is what the table held (NULL: nothing), `now` what it holds; borrowed until they change.
 */
void routing_change(struct routing *routing, const struct object *now, const struct object *before);

/* Compile what is marked. Cheap when nothing is. */
void routing_flush(struct routing *routing);

/* What the index knows of one route (by object id). */
struct routing_route_view {
    bool admitted;
    const char *claimed_by; /* the route that has its place, when not admitted; borrowed */
    const char *refusal;    /* why this version answers 503 for it; NULL: it does not; borrowed */
    bool plain;             /* plain HTTP requests are served */
    size_t target_count;
    bool missing[PROXY_TARGETS_MAX]; /* per target: there is no such Backend */
};
/* False: not served at all, since its host is not valid here. Flush first. */
bool routing_route_view(const struct routing *routing, const char *id,
                        struct routing_route_view *ret_view);

/* Of one backend (by "namespace/name"), O(its endpoints). */
struct routing_pool_view {
    bool exists;
    const char *refusal; /* why this version does not use it; NULL: it does; borrowed */
    size_t routes;       /* mentions in routes */
    size_t endpoints;    /* Endpoint objects */
    size_t ready;        /* of them: take new requests */
    size_t draining;
};
bool routing_pool_view(const struct routing *routing, const char *id,
                       struct routing_pool_view *ret_view);

#endif
