/*
 * How the hosts of routes are served over TLS: whose words count when routes of a host differ.
 *
 * The oldest route of a host that terminates TLS decides its policy; a passthrough route and
 * terminating ones cannot share a host, the older kind has it. Of a host's certificate the oldest
 * route decides that names one. Thread: the control thread.
 */
#ifndef SKEIN_NODE_APP_ROUTING_TLS_H
#define SKEIN_NODE_APP_ROUTING_TLS_H

#include "node/app/compile_route.h"
#include "node/app/routing_int.h"

/* A route comes, or goes: its certificate, and how its endpoints are asked. */
void route_tls_add(struct routing *routing, struct route *route);
void route_tls_remove(struct routing *routing, struct route *route);

/* What a host's TLS came to; host_tls_deinit. */
struct host_tls_plan {
    struct proxy_host_tls tls;
    bool is_set; /* some route is for TLS clients that are ended here */
};

/* Decide among the admitted routes; each route's tls_lost, tls_left_out and tls_warning are set. */
void host_tls_plan(struct routing *routing, struct host *host, struct host_tls_plan *ret_plan);
void host_tls_deinit(struct host_tls_plan *plan);

/* Settings, or the standard certificate, have changed: tell the data plane, mark what inherits. */
void routing_tls_flush(struct routing *routing);

#endif
