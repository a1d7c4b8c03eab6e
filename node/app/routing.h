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

#include "node/net/resolver.h"
#include "node/proxy/proxy.h"
#include "proto/object.h"

struct key_ring;
struct routing;

struct routing *routing_new(void);

/* Release what the data plane lent (before proxy_free), then everything; the loop of
 * routing_observe runs on until what is under way there has ended. NULL is accepted. */
void routing_free(struct routing *routing);

/*
 * Check endpoints and keep names resolved on this loop from now on. Without this call no check runs
 * and an endpoint that is a name has no addresses. Before routing_attach; ops and ctx as in
 * resolver_new.
 */
void routing_observe(struct routing *routing, uv_loop_t *loop, const struct resolver_ops *ops,
                     void *ctx);

/* Make tokens for sticky cookies with the cluster's keys from now on; without this call there are
 * no sticky cookies. Before routing_attach. RC_UNSUPPORTED. */
MUST_CHECK int routing_use_keys(struct routing *routing, const struct key_ring *ring,
                                struct err_info *err);

/* Is there an endpoint whose name was not looked up to an end yet? O(backends). */
bool routing_is_resolving(const struct routing *routing);

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
    const char *warning;    /* what is wrong with its TLS; NULL: nothing; borrowed */
    size_t target_count;
    bool missing[PROXY_TARGETS_MAX]; /* per target: there is no such Backend */
};
/* False: not served at all, since its host is not valid here. Flush first. */
bool routing_route_view(const struct routing *routing, const char *id,
                        struct routing_route_view *ret_view);

/* The same of one TcpRoute. */
struct routing_tcp_view {
    bool admitted;
    bool open;              /* this node listens on its port */
    const char *claimed_by; /* the route that has the port, when not admitted; borrowed */
    const char *refusal;    /* why this version does not serve it; NULL: it does; borrowed */
    const char *trouble;    /* why the port is not open, or the route not in force; borrowed */
    size_t target_count;
    bool missing[PROXY_TARGETS_MAX];
};
/* False: it has no valid port. Flush first. */
bool routing_tcp_view(const struct routing *routing, const char *id,
                      struct routing_tcp_view *ret_view);

/* About once a second: ports that could not be opened are tried again. */
void routing_tcp_tick(struct routing *routing);

/* About once a second: certificates that have become valid, or have expired, are chosen anew. */
void routing_certs_tick(struct routing *routing);

/* The node itself listens here; setting is static. For the text of a conflict. */
void routing_tcp_own_port(struct routing *routing, uint16_t port, const char *setting);

/* Of one backend (by "namespace/name"), O(its endpoints). */
struct routing_pool_view {
    bool exists;
    const char *refusal; /* why this version does not use it; NULL: it does; borrowed */
    size_t routes;       /* mentions in routes */
    size_t endpoints;    /* Endpoint objects */
    size_t ready;        /* of them: take new requests, as far as checks know */
    size_t draining;
    size_t down;       /* found down by checks, or names without an address */
    size_t unresolved; /* names whose last look-up failed */
    size_t offering;   /* neither disabled nor malformed */
};
bool routing_pool_view(const struct routing *routing, const char *id,
                       struct routing_pool_view *ret_view);

/* Of one certificate (by object id). Flush first. */
struct routing_cert_view {
    const struct tls_cert_info *info; /* NULL: it cannot be used */
    const char *fault;                /* why; borrowed */
    size_t routes;                    /* that are served with it */
};
bool routing_cert_view(const struct routing *routing, const char *id,
                       struct routing_cert_view *ret_view);

/* The id of the default certificate that Settings name and that is not there; NULL: all is well. */
const char *routing_missing_standard(const struct routing *routing);

/* Whether there is a Backend object of this id. */
bool routing_has_backend(const struct routing *routing, const char *id);

enum { ROUTING_TEXT_MAX = 320 };

struct routing_health {
    enum proxy_health health;
    uint64_t since_wall_ms;         /* 0: not known */
    char message[ROUTING_TEXT_MAX]; /* why, or ""; for people */
};

/* Of one endpoint (by object id). */
struct routing_endpoint_view {
    struct routing_health health; /* of a name: of all its addresses together */
    bool is_name;
    size_t address_count; /* of a name */
};
bool routing_endpoint_view(const struct routing *routing, const char *id,
                           struct routing_endpoint_view *ret_view);

/* One address of an endpoint that is a name; idx < address_count, and nothing has changed since. */
void routing_endpoint_address(const struct routing *routing, const char *id, size_t idx,
                              struct addr *ret_addr, struct routing_health *ret_health);

/* Prometheus text of Certificates, appended. */
void routing_certs_metrics(const struct routing *routing, struct buf *out);

/* Prometheus text of checks, verdicts and names, appended. */
void routing_metrics(const struct routing *routing, struct buf *out);

#endif
