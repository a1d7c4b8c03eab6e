/*
 * TcpRoutes: who has which port, and whether it is open here.
 *
 * Of several routes with one port the oldest has it, on every node alike (admission.h). A port that
 * cannot be opened is told in log and status, and tried again every few seconds; nothing else is
 * disturbed. Part of the routing index (routing_int.h): pools are its own. Thread: the control
 * thread.
 */
#ifndef SKEIN_NODE_APP_ROUTING_TCP_H
#define SKEIN_NODE_APP_ROUTING_TCP_H

#include "node/app/routing.h"
#include "node/base/hashtable.h"

struct pool;

enum {
    TCP_RETRY_TICKS = 3, /* of routing_tcp_tick, between two tries to open a port */
    TCP_OWN_PORTS_MAX = 64,
};

/* One TcpRoute object. */
struct tcp_route {
    const struct object *object;
    struct tcp_claims *claims;
    char *refusal;       /* why this version cannot carry it out; NULL: it can */
    struct pool **pools; /* of spec.to, in order */
    size_t pool_count;
    bool admitted;
    char *claimed_by; /* id of the route that has the port, or NULL */
    struct tcp_route *prev, *next;
    UT_hash_handle hh; /* by object id */
};

/* One port and all that want it. */
struct tcp_claims {
    uint32_t port;
    struct tcp_route *routes;
    size_t route_count;
    bool open;     /* the data plane has it */
    char *trouble; /* why it is not, though a route is admitted; NULL: none */
    bool retry;    /* the trouble may pass */
    struct tcp_claims *marked_next;
    bool marked;
    UT_hash_handle hh; /* by port */
};

/* A port that the node itself listens on, for the text of a conflict. */
struct tcp_own_port {
    uint16_t port;
    const char *setting; /* static */
};

struct routing_tcp {
    struct tcp_route *routes;
    struct tcp_claims *claims;
    struct tcp_claims *marked;
    struct tcp_own_port own[TCP_OWN_PORTS_MAX];
    size_t own_count;
    unsigned ticks;
};

/* As routing_change, of this kind. */
void routing_tcp_change(struct routing *routing, const struct object *now,
                        const struct object *before);

/* Hand over what is marked; between the pools that gain and those that lose. */
void routing_tcp_flush(struct routing *routing);

/* A proxy was attached: everything is marked. */
void routing_tcp_attach(struct routing *routing);

/* Everything; nothing is handed over. */
void routing_tcp_deinit(struct routing *routing);

#endif
