/*
 * The data plane as the control thread sees it.
 *
 * node/app compiles objects into the plain structures below; workers see a change at their next
 * request. An endpoint change costs O(endpoints of that backend), a host change O(rules of that
 * host), never more, and no connection is touched whose route still exists.
 *
 * Life: proxy_start, the first configuration, proxy_serve, changes, proxy_drain, proxy_free.
 * Thread: every function is for the control thread, between proxy_start and proxy_free, unless it
 * says otherwise. Workers are threads of this unit. All strings are copied.
 */
#ifndef SKEIN_NODE_PROXY_PROXY_H
#define SKEIN_NODE_PROXY_PROXY_H

#include "node/base/addr.h"
#include "node/base/buf.h"
#include "node/base/errors.h"
#include "node/proxy/proxy_policy.h"
#include "node/proxy/proxy_tls.h"

enum {
    PROXY_WORKERS_MAX = 64,
    PROXY_RULES_MAX = 4096,     /* per host */
    PROXY_TARGETS_MAX = 32,     /* backends of one rule */
    PROXY_ENDPOINTS_MAX = 4096, /* per backend */
    PROXY_WEIGHT_MAX = 256,
};

struct proxy;
struct backend;

/* Milliseconds; 0 means "the default of proxy_defaults". */
struct proxy_timeouts {
    uint32_t connect_ms;       /* one connect attempt */
    uint32_t client_ms;        /* no progress on the client's side */
    uint32_t server_ms;        /* no progress on the endpoint's side */
    uint32_t tunnel_ms;        /* no traffic either way after an upgrade */
    uint32_t client_header_ms; /* whole request head, from its first byte or the accept */
    uint32_t keepalive_ms;     /* idle client connection between requests */
    uint32_t request_ms;       /* whole exchange; 0 here and in the defaults: no limit */
    uint32_t queue_ms;         /* waiting for a free endpoint */
    uint32_t client_fin_ms;    /* half-closed by the client */
    uint32_t server_fin_ms;    /* half-closed by the endpoint */
};

enum forwarded_policy {
    FORWARDED_APPEND = 0,
    FORWARDED_REPLACE,
    FORWARDED_IF_NONE,
    FORWARDED_NEVER,
};

enum dot_segments {
    DOT_SEGMENTS_REFUSE = 0, /* 400 */
    DOT_SEGMENTS_REMOVE,
    DOT_SEGMENTS_KEEP,
};

/* Cluster-wide defaults, as Settings gives them. All fields set. */
struct proxy_defaults {
    /* The access log; unset: as proxy_config says. */
    enum proxy_access { PROXY_ACCESS_UNSET = 0, PROXY_ACCESS_OFF, PROXY_ACCESS_ON } access;
    enum proxy_access_format {
        PROXY_ACCESS_FORMAT_UNSET = 0,
        PROXY_ACCESS_JSON,
        PROXY_ACCESS_COMBINED,
    } access_format;
    bool access_empty_requests; /* also connections that asked for nothing */
    /* 5 s, 30 s, 30 s, 1 h, 10 s, 300 s, none, 5 s, 1 s, 1 s unless configured */
    struct proxy_timeouts timeouts;
    enum forwarded_policy forwarded;
    enum dot_segments dot_segments;
    uint32_t header_bytes_max;      /* 32768 */
    uint32_t header_count_max;      /* 128 */
    uint32_t uri_bytes_max;         /* 8192: above it 414 */
    uint64_t body_bytes_max;        /* 0: unlimited; above it 413 */
    uint32_t retries_max;           /* further endpoints tried after a failed connect: 2 */
    uint32_t idle_per_endpoint_max; /* pooled upstream connections per worker and endpoint: 64 */
    struct proxy_retries retries;   /* set: instead of retries_max */
    bool continue_closed; /* go on with an exchange whose client sends no more (closedClient) */
    bool ignore_empty;    /* close silently when a connection ends without a request */
    uint32_t connections_per_client_max; /* 0: no limit */
    struct proxy_texts trusted_proxies;  /* CIDRs whose forwarded fields are believed */
    const char *unique_id_header;        /* NULL: none; set unless a trusted proxy did */
    const char *unique_id_format;        /* template; NULL: random 128 bits in hex */
    struct proxy_edits request;          /* before the rule's */
    struct proxy_edits response;         /* after the rule's */
    const char *hsts;
    struct proxy_error_pages error_pages;
    struct proxy_captures captures;
};

struct proxy_config {
    const struct addr *http; /* listening addresses */
    size_t http_count;
    const struct addr *https; /* where clients speak TLS; behind http in proxy_listen_addr */
    size_t https_count;
    const char *tls_key_log; /* NSS key log file for debugging; NULL: none */
    const struct addr *tcp;  /* where ports of TCP routes open; their own ports are not looked at */
    size_t tcp_count;        /* 0: nowhere */
    struct proxy_texts proxy_trusted; /* CIDRs whose connections begin with a PROXY header */
    uint32_t workers;                 /* 0: one per CPU */
    uint64_t connections_max;         /* of the node; 0: from the file limit */
    const char *node_name;            /* for Via-like and log fields */
    const char *access_log;           /* "off" (stdout, once it is on), "stdout" or a path */
    bool access_combined;             /* else JSON */
    struct proxy_defaults defaults;
};

enum path_type {
    PATH_PREFIX = 0, /* by whole segments: /a covers /a and /a/x, not /ab; "" and "/" cover all */
    PATH_EXACT,
};

struct proxy_target {
    struct backend *backend; /* the rule takes a reference of its own */
    uint32_t weight;         /* 0..PROXY_WEIGHT_MAX */
};

/* One route as its host serves it. Precedence: exact, then longest prefix, then position. */
struct proxy_rule {
    const char *route; /* "namespace/name", for metrics and logs */
    const char *path;  /* canonical: unreserved escapes decoded, no dot segments */
    enum path_type path_type;
    const struct proxy_target *targets;
    size_t target_count;
    struct proxy_timeouts timeouts;
    bool forwarded_set; /* else the default policy */
    enum forwarded_policy forwarded;
    const struct proxy_policy *policy; /* NULL: asks for nothing */
    struct proxy_rule_tls tls;
};

/* What a TCP port does. */
struct proxy_tcp {
    const char *route; /* "namespace/name", for metrics and logs */
    const struct proxy_target *targets;
    size_t target_count;
    struct proxy_timeouts timeouts;    /* connect, queue, tunnel, client_fin, server_fin */
    const struct proxy_policy *policy; /* NULL: asks for nothing; what is of HTTP is ignored */
};

enum { PROXY_TOKEN_BYTES = 12 };

struct proxy_endpoint {
    struct addr addr;
    uint32_t weight; /* 0: only holders of its sticky cookie */
    bool draining;   /* the same; what it has completes */
    /* What stands for it in sticky cookies: the same on every node, not to be guessed. */
    uint8_t token[PROXY_TOKEN_BYTES];
    /* Taken as well, while a key is being changed; all zero: none. */
    uint8_t old_token[PROXY_TOKEN_BYTES];
};

/* What checks found. */
enum proxy_health {
    PROXY_HEALTH_UNKNOWN = 0, /* taken as up */
    PROXY_HEALTH_UP,
    PROXY_HEALTH_DOWN,
};

/* Open listeners. Every failure leaves nothing behind; a port in use is RC_BUSY and
 * the text names the address. */
MUST_CHECK int proxy_start(const struct proxy_config *config, struct proxy **ret_proxy,
                           struct err_info *err);

/* Start the workers, once the first configuration is in: until then connections wait in the kernel,
 * so that none meets an empty table. RC_IO: no threads; only proxy_free is legal. */
MUST_CHECK int proxy_serve(struct proxy *proxy, struct err_info *err);

/* The address that listener idx got (for port 0). */
void proxy_listen_addr(const struct proxy *proxy, size_t idx, struct addr *ret_addr);

/* New defaults for requests that start after it. */
void proxy_set_defaults(struct proxy *proxy, const struct proxy_defaults *defaults);

/* The same for connections that come after it. Before proxy_serve where there are TLS listeners. */
void proxy_set_tls(struct proxy *proxy, const struct proxy_tls *tls);

/* Keys of session tickets from now on; a reference is taken. NULL: no tickets. */
void proxy_set_tickets(struct proxy *proxy, struct ticket_ring *ring);

/* A backend with no endpoints (every request to it is answered 503 until it has some). The caller
 * owns one reference. */
struct backend *backend_new(struct proxy *proxy, const char *name);
void backend_unref(struct proxy *proxy, struct backend *backend); /* NULL is accepted */

/* Replace policy and endpoints. Live state of an endpoint whose address stays is kept. RC_TOO_BIG.
 */
MUST_CHECK int backend_set(struct proxy *proxy, struct backend *backend,
                           const struct proxy_backend *policy,
                           const struct proxy_endpoint *endpoints, size_t count,
                           struct err_info *err);

/* What active checks found of an endpoint; kept over changes of the backend while the address
 * stays. An address that the backend does not have is ignored. */
void backend_health(struct proxy *proxy, struct backend *backend, const struct addr *addr,
                    enum proxy_health health);

/* Replace all rules of a host; count 0 removes the host. host is canonical: lower-case, no port, no
 * trailing dot, "*.example.com" for one label. A passthrough rule is the only one of its host that
 * TLS clients see. RC_INVALID, RC_TOO_BIG: nothing changed. */
MUST_CHECK int proxy_host_set(struct proxy *proxy, const char *host, const struct proxy_rule *rules,
                              size_t count, const struct proxy_host_tls *tls, struct err_info *err);

/* Open the port on all TCP addresses, or change what an open one does: backends and limits for
 * connections to come; with another route's name the connections of the former one are closed.
 * RC_BUSY: in use, by whom ever; RC_IO: refused by the system; RC_INVALID, RC_TOO_BIG: unsound;
 * RC_UNSUPPORTED: there are no TCP addresses. The text says why, and nothing changed. */
MUST_CHECK int proxy_tcp_set(struct proxy *proxy, uint16_t port, const struct proxy_tcp *tcp,
                             struct err_info *err);

/* Close the port and the connections that came by it. Nothing when it is not open. */
void proxy_tcp_remove(struct proxy *proxy, uint16_t port);

/* Stop accepting, answer what is in flight with "Connection: close", close idle connections. Watch
 * proxy_connections fall to 0, then proxy_free. */
void proxy_drain(struct proxy *proxy);

/* Client connections still open on all workers. Any thread. */
uint64_t proxy_connections(const struct proxy *proxy);

/* Stop workers (what is still open is closed) and free everything. NULL is accepted. */
void proxy_free(struct proxy *proxy);

/* Reclaim what no worker can see any more; call about once a second, and it is called by the
 * setters. */
void proxy_reclaim(struct proxy *proxy);

/* Prometheus text of all counters, appended. Labels come from configured objects only. */
void proxy_metrics(struct proxy *proxy, struct buf *out);

#endif
