/*
 * The data plane as its own parts see it.
 */
#ifndef SKEIN_NODE_PROXY_PROXY_INT_H
#define SKEIN_NODE_PROXY_PROXY_INT_H

#include "node/proxy/policy.h"
#include "node/proxy/proxy.h"
#include "node/proxy/worker.h"

struct access_log;
struct tcp_port;

struct captures;

struct settings {
    struct qsbr_node retired;
    struct proxy_defaults defaults; /* lists and texts that are compiled below are left out */
    struct policy_base *base;       /* NULL: asks for nothing */
    struct captures *captures;      /* NULL: none */
};

/* Of all TLS listeners; immutable once published. */
struct tls_settings {
    struct qsbr_node retired;
    struct proxy_tls how; /* with references */
};

/* A ring that qsbr can retire. */
struct tls_ring {
    struct qsbr_node retired;
    struct ticket_ring *ring; /* a reference */
};

struct proxy {
    struct catalog catalog;
    _Atomic(struct tls_settings *) tls;  /* NULL: nobody has said yet; TLS clients are refused */
    _Atomic(struct tls_ring *) tickets;  /* NULL: none */
    _Atomic uint32_t handshakes;         /* with clients, under way, of all workers */
    uint16_t https_port;                 /* of the first TLS listener; 0: none */
    int key_log;                         /* descriptor; -1: none */
    _Atomic(struct settings *) settings; /* immutable once published */
    struct worker **workers;
    size_t worker_count;
    struct addr *listen_addrs;
    size_t listen_count;    /* of HTTP, then of HTTPS */
    size_t http_count;      /* of them: in clear */
    struct addr *tcp_addrs; /* where TCP ports open; their own port is 0 */
    size_t tcp_count;
    struct tcp_port *tcp_ports;   /* uthash by port */
    struct tcp_port *tcp_closing; /* utlist: removed, and not gone yet */
    struct cidr_set
        *proxy_trusted; /* whose connections begin with a PROXY header; NULL: nobody's */
    struct access_log *access_log;
    bool access_on; /* as proxy_config says */
    bool access_combined;
    char *node_name;
    bool draining;
    bool running; /* workers have their threads */
};

/* The caller is an online worker; valid for this iteration. */
const struct proxy_defaults *proxy_defaults_now(struct proxy *proxy);

/* The same with what was compiled; the worker is made online. */
static inline const struct settings *worker_settings(struct worker *worker)
{
    worker_online(worker);
    return atomic_load_explicit(&worker->proxy->settings, memory_order_seq_cst);
}

/* How TLS clients are met now; valid for this iteration. NULL: they cannot be. */
static inline const struct proxy_tls *worker_tls(struct worker *worker)
{
    worker_online(worker);
    const struct tls_settings *tls =
        atomic_load_explicit(&worker->proxy->tls, memory_order_seq_cst);
    return tls != NULL ? &tls->how : NULL;
}

#endif
