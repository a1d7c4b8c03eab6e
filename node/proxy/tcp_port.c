/*
 * Ports of TCP routes; see tcp_port.h.
 */
#include "node/proxy/tcp_port.h"

#include "node/base/mem.h"
#include "node/proxy/catalog.h"
#include "node/proxy/greet.h"
#include "node/proxy/proxy_int.h"
#include "node/proxy/tcp.h"

#include <unistd.h>
#include <utlist.h>

/* ---- rules ---- */

void tcp_rule_ref(struct tcp_rule *rule)
{
    refcnt_get(&rule->refs);
}

static void rule_release(struct qsbr_node *node)
{
    struct tcp_rule *rule = CONTAINER_OF(node, struct tcp_rule, retired);
    rules_deinit(&rule->rules, rule->catalog);
    catalog_route_put(rule->catalog, rule->route);
    mem_free(rule);
}

void tcp_rule_unref(struct tcp_rule *rule)
{
    if (rule != NULL && refcnt_put(&rule->refs)) {
        qsbr_post_mt(&rule->catalog->qsbr, &rule->retired, rule_release);
    }
}

/* The port's own reference goes once no worker can be about to take another. */
static void rule_retire(struct qsbr_node *node)
{
    tcp_rule_unref(CONTAINER_OF(node, struct tcp_rule, retired));
}

int tcp_rule_new(struct catalog *catalog, const struct proxy_tcp *tcp, struct tcp_rule **ret_rule,
                 struct err_info *err)
{
    /* Limits go by the name, and an HTTP route may have the same one. */
    char *name = mem_printf("tcp %s", tcp->route);
    const struct proxy_rule from = {
        .route = name,
        .path = "",
        .path_type = PATH_PREFIX,
        .targets = tcp->targets,
        .target_count = tcp->target_count,
        .timeouts = tcp->timeouts,
        .policy = tcp->policy,
    };
    struct tcp_rule *rule = mem_new(sizeof(*rule));
    int rc = rules_init(&rule->rules, catalog, &from, 1, err);
    mem_free(name);
    if (rc != RC_OK) {
        mem_free(rule);
        return rc;
    }
    rule->catalog = catalog;
    rule->route = catalog_route(catalog, tcp->route);
    if (tcp->policy != NULL) {
        rule->log_off = tcp->policy->access_log_off;
        rule->retries_set = tcp->policy->retries.set;
        rule->retries = tcp->policy->retries.attempts;
    }
    refcnt_init(&rule->refs);
    *ret_rule = rule;
    return RC_OK;
}

/* ---- ports ---- */

void tcp_port_ref(struct tcp_port *port)
{
    refcnt_get(&port->refs);
}

static void port_free(struct tcp_port *port)
{
    mem_free(port->addrs);
    mem_free(port->acceptors);
    mem_free(port->fds);
    mem_free(port);
}

static void port_release(struct qsbr_node *node)
{
    struct tcp_port *port = CONTAINER_OF(node, struct tcp_port, retired);
    DL_DELETE(port->proxy->tcp_closing, port);
    tcp_rule_unref(atomic_load_explicit(&port->rule, memory_order_relaxed));
    port_free(port);
}

void tcp_port_unref(struct tcp_port *port)
{
    if (port != NULL && refcnt_put(&port->refs)) {
        qsbr_post_mt(&port->proxy->catalog.qsbr, &port->retired, port_release);
    }
}

static void post(struct proxy *proxy, enum worker_mail_kind kind, struct tcp_port *port)
{
    for (size_t i = 0; i < proxy->worker_count; i++) {
        struct tcp_mail *message = mem_new(sizeof(*message));
        message->mail.kind = kind;
        message->port = port;
        tcp_port_ref(port);
        worker_post_tcp_mt(proxy->workers[i], message);
    }
}

/* Its sockets may be open still, in the hands of the workers. */
static bool was_ours_just_now(const struct proxy *proxy, uint16_t number)
{
    const struct tcp_port *port;
    DL_FOREACH (proxy->tcp_closing, port) {
        if (port->port == number) {
            return true;
        }
    }
    return false;
}

/* One listening socket per worker and address; all or none. */
static int port_listen(struct proxy *proxy, struct tcp_port *port, struct err_info *err)
{
    int rc = RC_OK;
    bool probe = !was_ours_just_now(proxy, port->port);
    for (size_t i = 0; rc == RC_OK && i < port->addr_count; i++) {
        struct addr addr = proxy->tcp_addrs[i];
        addr_set_port(&addr, port->port);
        rc = probe ? acceptor_probe(&addr, err) : RC_OK;
        for (size_t j = 0; rc == RC_OK && j < proxy->worker_count; j++) {
            struct acceptor *acceptor = &port->acceptors[j * port->addr_count + i];
            rc = acceptor_listen(&addr, &acceptor->fd, &addr, err);
            port->fds[j * port->addr_count + i] = acceptor->fd;
        }
        port->addrs[i] = addr;
    }
    for (size_t i = 0; rc != RC_OK && i < port->addr_count * proxy->worker_count; i++) {
        if (port->acceptors[i].fd >= 0) {
            (void)close(port->acceptors[i].fd); /* listened for nobody yet */
        }
    }
    return rc;
}

static int port_open(struct proxy *proxy, uint16_t number, struct tcp_rule *rule,
                     struct err_info *err)
{
    size_t count = proxy->tcp_count;
    struct tcp_port *port = mem_new(sizeof(*port));
    port->proxy = proxy;
    port->port = number;
    port->addr_count = count;
    port->addrs = mem_array(count, sizeof(*port->addrs));
    port->acceptors = mem_array(count * proxy->worker_count, sizeof(*port->acceptors));
    port->fds = mem_array(count * proxy->worker_count, sizeof(*port->fds));
    for (size_t i = 0; i < count * proxy->worker_count; i++) {
        port->acceptors[i].fd = -1;
        port->acceptors[i].tcp = port;
        port->acceptors[i].port = number;
    }
    int rc = port_listen(proxy, port, err);
    if (rc != RC_OK) {
        port_free(port);
        return rc;
    }
    for (size_t i = 0; i < count * proxy->worker_count; i++) {
        (void)addr_format(&port->addrs[i % count], port->acceptors[i].text);
    }
    refcnt_init(&port->refs);
    atomic_init(&port->rule, rule);
    HASH_ADD(hh, proxy->tcp_ports, port, sizeof(port->port), port);
    post(proxy, WORKER_MAIL_TCP_OPEN, port);
    return RC_OK;
}

static void port_swap(struct proxy *proxy, struct tcp_port *port, struct tcp_rule *rule)
{
    struct tcp_rule *old = atomic_exchange_explicit(&port->rule, rule, memory_order_seq_cst);
    bool other = old->route != rule->route;
    qsbr_defer(&proxy->catalog.qsbr, &old->retired, rule_retire);
    if (other) {
        post(proxy, WORKER_MAIL_TCP_CUT, port);
    }
}

static struct tcp_port *port_find(struct proxy *proxy, uint16_t number)
{
    struct tcp_port *port = NULL;
    HASH_FIND(hh, proxy->tcp_ports, &number, sizeof(number), port);
    return port;
}

int tcp_port_set(struct proxy *proxy, uint16_t port, const struct proxy_tcp *tcp,
                 struct err_info *err)
{
    if (proxy->tcp_count == 0) {
        return err_set(err, RC_UNSUPPORTED, "this node serves no TCP routes (listen.tcp is empty)");
    }
    if (proxy->draining) {
        return err_set(err, RC_BUSY, "this node is draining");
    }
    struct tcp_rule *rule = NULL;
    int rc = tcp_rule_new(&proxy->catalog, tcp, &rule, err);
    if (rc != RC_OK) {
        return rc;
    }
    struct tcp_port *found = port_find(proxy, port);
    if (found != NULL) {
        port_swap(proxy, found, rule);
        return RC_OK;
    }
    rc = port_open(proxy, port, rule, err);
    if (rc != RC_OK) {
        tcp_rule_unref(rule);
    }
    return rc;
}

static void port_forget(struct proxy *proxy, struct tcp_port *port)
{
    HASH_DEL(proxy->tcp_ports, port);
    DL_APPEND(proxy->tcp_closing, port);
    tcp_port_unref(port);
}

void tcp_port_remove(struct proxy *proxy, uint16_t port)
{
    struct tcp_port *found = port_find(proxy, port);
    if (found != NULL) {
        /* Only this thread has them closed, so they are open; when draining they are not. */
        for (size_t i = 0; !proxy->draining && i < found->addr_count * proxy->worker_count; i++) {
            (void)shutdown(found->fds[i], SHUT_RDWR); /* of a listener: what waits is reset */
        }
        post(proxy, WORKER_MAIL_TCP_CLOSE, found);
        port_forget(proxy, found);
    }
}

void tcp_ports_deinit(struct proxy *proxy)
{
    struct tcp_port *port, *next;
    HASH_ITER (hh, proxy->tcp_ports, port, next) {
        port_forget(proxy, port);
    }
}

/* ---- on the worker ---- */

static struct acceptor *acceptors_of(struct worker *worker, struct tcp_port *port)
{
    return &port->acceptors[worker->idx * port->addr_count];
}

static void worker_open_port(struct worker *worker, struct tcp_port *port)
{
    struct acceptor *acceptors = acceptors_of(worker, port);
    for (size_t i = 0; i < port->addr_count; i++) {
        tcp_port_ref(port); /* until the acceptor is closed */
        acceptor_start(&acceptors[i], worker);
        if (worker->draining) {
            acceptor_abandon(&acceptors[i]);
        }
    }
}

static void worker_close_port(struct worker *worker, struct tcp_port *port)
{
    struct acceptor *acceptors = acceptors_of(worker, port);
    for (size_t i = 0; i < port->addr_count; i++) {
        acceptor_abandon(&acceptors[i]);
    }
    greet_cut(worker, port);
    tcp_cut(worker, port, NULL);
}

void tcp_port_mail(struct worker *worker, struct tcp_mail *message)
{
    struct tcp_port *port = message->port;
    if (message->mail.kind == WORKER_MAIL_TCP_OPEN) {
        worker_open_port(worker, port);
    } else if (message->mail.kind == WORKER_MAIL_TCP_CLOSE) {
        worker_close_port(worker, port);
    } else {
        worker_online(worker);
        tcp_cut(worker, port, atomic_load_explicit(&port->rule, memory_order_seq_cst)->route);
    }
    tcp_port_unref(port);
    mem_free(message);
}
