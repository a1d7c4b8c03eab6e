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
#include "node/app/routing_certs.h"
#include "node/app/routing_tcp.h"
#include "node/app/token.h"
#include "node/base/hashtable.h"
#include "node/base/log.h"
#include "node/health/prober.h"

#include <utlist.h>

struct endpoint_node {
    const struct object *object;
    struct pool *pool;
    struct addr addr;             /* unset: it is a name */
    char *host;                   /* of a name, else NULL */
    uint16_t port;                /* of a name */
    struct resolver_watch *watch; /* of a name that is in use */
    bool name_failing;            /* its last look-up failed, and the log says so */
    bool has_tokens;              /* those of addr are known */
    uint8_t token[PROXY_TOKEN_BYTES];
    uint8_t old_token[PROXY_TOKEN_BYTES];
    struct endpoint_node *prev, *next; /* in pool->endpoints */
    UT_hash_handle hh;                 /* by object id */
};

/* One address of a pool under active checks. */
struct watched {
    struct pool *pool;
    struct addr addr; /* the key; all its bytes are defined */
    struct prober_target *target;
    enum proxy_health told; /* the verdict that the data plane has */
    bool wanted;            /* scratch of checks_sync */
    UT_hash_handle hh;
};

/* What a pool offers: its endpoints with names replaced by their addresses. */
struct pool_expansion {
    struct proxy_endpoint *endpoints;
    struct endpoint_node **nodes; /* whom each address stands for */
    size_t count;
};

struct pool {
    struct routing *routing;
    char *name;                  /* namespace/backend */
    struct backend *backend;     /* NULL before a proxy is attached */
    const struct object *object; /* NULL: a missing backend */
    char *refusal;               /* why this version cannot carry the object out */
    struct endpoint_node *endpoints;
    size_t endpoint_count;
    size_t name_count; /* of them: DNS names */
    size_t route_count;

    struct tls_target *target; /* what spec.tls describes, enabled or not; NULL: nothing */
    char *target_fault;        /* why there is none although it does; NULL: there is */
    bool target_stale;         /* the object, or its certificate, has changed */
    struct cert *own;          /* what endpoints are shown; NULL: none */
    struct pool *own_prev, *own_next;

    struct check_spec *check; /* NULL: no active checks */
    uint8_t *check_key;       /* the packed HealthCheck that `check` is of, and its target */
    size_t check_key_len;
    struct watched *watched;
    size_t verdicts[PROXY_HEALTH_DOWN + 1]; /* of `watched`, by told */
    struct pool *checked_prev, *checked_next;

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

    struct cert *cert; /* that it names; NULL: none */
    struct route *cert_prev, *cert_next;
    struct tls_target *target; /* Reencrypt */
    bool tls_lost;             /* its policy is not the host's */
    bool tls_left_out;         /* its kind of termination is not the host's */
    char *tls_warning;         /* for people, or NULL */
    struct route *prev, *next;
    UT_hash_handle hh; /* by object id */
};

struct host {
    char *name;
    struct route *routes;
    size_t route_count;
    struct host *marked_next;
    bool marked;
    bool served;               /* the data plane has rules of it */
    uint64_t wait_deadline_ms; /* 0: it waits for no names */
    bool has_policy;           /* TLS is terminated: Settings matter */
    struct cert *cert;         /* that it shows; NULL: the default one */
    struct host *cert_prev, *cert_next;
    UT_hash_handle hh;
};

struct routing {
    struct proxy *proxy;
    struct route *routes;
    struct host *hosts;
    struct pool *pools;
    struct endpoint_node *endpoints;
    struct routing_tcp tcp;
    struct host *marked_hosts;
    struct pool *marked_pools;
    const struct object *settings;
    bool settings_marked;
    struct certs certs;
    struct tls_policy *tls_policy; /* of Settings; NULL before a proxy is attached */
    bool tickets_off;
    bool tls_marked; /* the standard certificate has changed */
    struct token_keys tokens;
    uint8_t *defaults_key; /* the packed part of Settings that pools depend on */
    size_t defaults_key_len;

    struct prober *prober;     /* NULL: routing_observe was not called */
    struct resolver *resolver; /* the same */
    struct pool *checked_pools;
    bool hosts_wait; /* some marked hosts wait for names */
    struct log_limit health_log;
    struct log_limit name_log;
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
/* Find or make; one user more, or less. */
struct pool *pool_use(struct routing *routing, const char *name);
void pool_release(struct routing *routing, struct pool *pool);

/* Have the pool show this certificate (namespace/name) to endpoints; NULL: none. */
void pool_show(struct routing *routing, struct pool *pool, const char *id);

/* The pools of a route's spec.to, in order, and what they are given back with. */
struct pool **pools_use(struct routing *routing, const struct object *object,
                        Skein__Target *const *to, size_t count);
void pools_release(struct routing *routing, struct pool **pools, size_t count);

/* Why this version does not carry the object out; NULL: it does. To be freed with mem_free. */
char *routing_refusal(const struct object *object);
void mark_host(struct routing *routing, struct host *host);

/* ---- routing_compile.c: from the index to the data plane ---- */

static inline const Skein__BackendSpec *pool_spec(const struct pool *pool)
{
    return pool->object != NULL ? (const Skein__BackendSpec *)pool->object->message->spec : NULL;
}

/* Does the pool have anything to offer? Else it is a missing backend, or one that is refused. */
static inline bool pool_serves(const struct pool *pool)
{
    return pool->object != NULL && pool->refusal == NULL && pool->target_fault == NULL;
}

/* ---- routing_names.c: endpoints and their addresses ---- */

/* Take the address or the name from the object; the node is new. */
void node_address(struct endpoint_node *node);
/* The opposite, before the node goes. */
void node_forget(struct endpoint_node *node);

/* Weight and state; false: it takes no requests (disabled, or malformed). addr is left unset. */
bool node_offers(const struct endpoint_node *node, struct proxy_endpoint *ret_endpoint);

/* Open, change and close the watches of the pool's names. */
void names_sync(struct routing *routing, struct pool *pool);

/* Are names that are looked up for the first time all that it has? */
bool pool_is_resolving(const struct pool *pool);

/* mem_free both arrays. */
void pool_expand(const struct pool *pool, struct pool_expansion *ret_expansion);

/* The addresses of a name as it stands, with its port; at most cap. */
size_t node_name_addresses(const struct endpoint_node *node, struct addr *ret_addrs, size_t cap);

/* ---- routing_checks.c: active checks ---- */

/* Begin, change and end the checks of the pool's addresses; after backend_set. O(addresses). */
void checks_sync(struct routing *routing, struct pool *pool,
                 const struct pool_expansion *expansion);
/* End them all. The data plane is not told. */
void checks_drop(struct routing *routing, struct pool *pool);

/* NULL: it is not checked. */
struct watched *pool_find_watched(const struct pool *pool, const struct addr *addr);

#endif
