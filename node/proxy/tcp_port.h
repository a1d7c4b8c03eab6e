/*
 * Ports of TCP routes: listeners that open and close while everything runs, and what they do.
 *
 * The control thread binds and listens; each worker is handed its own sockets by mail and accepts
 * on them. What a port does is a counted, immutable rule behind an atomic pointer, so a change of
 * it costs one store and touches no connection.
 *
 *   set, port not open     bind on every address, mail OPEN to each worker
 *   set, same route        swap the rule
 *   set, other route       swap the rule, mail CUT: connections of another route are closed
 *   remove                 listeners stop at once, so that a port that is opened anew gets every
 *                          new connection; mail CLOSE: they and the connections are closed
 *
 * References of a port: the registry's, and one for each acceptor and mail of a worker. Connections
 * need none: they are closed before the last one goes.
 * Thread: the control thread, unless a function says otherwise.
 */
#ifndef SKEIN_NODE_PROXY_TCP_PORT_H
#define SKEIN_NODE_PROXY_TCP_PORT_H

#include "node/base/hashtable.h"
#include "node/proxy/acceptor.h"
#include "node/proxy/rules.h"
#include "node/proxy/worker_mail.h"

/* What a port does: one rule whose path covers everything. */
struct tcp_rule {
    struct qsbr_node retired;
    struct refcnt refs; /* the port's, and one for each connection */
    struct catalog *catalog;
    struct rules rules;
    struct route *route; /* a use; whose counters these are */
    bool log_off;
    bool retries_set; /* else the default's */
    uint32_t retries; /* further endpoints tried when a connect fails */
};

static inline const struct rule *tcp_rule_of(const struct tcp_rule *rule)
{
    return &rule->rules.rules[0];
}

/* One reference. On failure nothing is held. Control thread. */
MUST_CHECK int tcp_rule_new(struct catalog *catalog, const struct proxy_tcp *tcp,
                            struct tcp_rule **ret_rule, struct err_info *err);
/* Any thread. */
void tcp_rule_ref(struct tcp_rule *rule);
void tcp_rule_unref(struct tcp_rule *rule);

struct tcp_port;

/* Mail of the kinds TCP_OPEN, TCP_CUT, TCP_CLOSE; the worker frees it. */
struct tcp_mail {
    struct worker_mail mail;
    struct tcp_port *port; /* a reference */
};

struct tcp_port {
    struct qsbr_node retired;
    UT_hash_handle hh;     /* by port, in proxy->tcp_ports */
    struct tcp_port *prev; /* utlist: proxy->tcp_closing */
    struct tcp_port *next;
    struct refcnt refs;
    struct proxy *proxy;
    uint16_t port;
    _Atomic(struct tcp_rule *) rule; /* never NULL */
    size_t addr_count;
    struct addr *addrs;         /* where it listens */
    struct acceptor *acceptors; /* addr_count of each worker, in order of workers */
    int *fds;                   /* theirs, as the control thread knows them */
};

struct proxy;

/* As proxy_tcp_set and proxy_tcp_remove. */
MUST_CHECK int tcp_port_set(struct proxy *proxy, uint16_t port, const struct proxy_tcp *tcp,
                            struct err_info *err);
void tcp_port_remove(struct proxy *proxy, uint16_t port);

/* The workers are gone: drop the registry's references. */
void tcp_ports_deinit(struct proxy *proxy);

/* Any thread. */
void tcp_port_ref(struct tcp_port *port);
void tcp_port_unref(struct tcp_port *port);

/* ---- on the worker ---- */

/* Takes over the message. */
void tcp_port_mail(struct worker *worker, struct tcp_mail *message);

#endif
