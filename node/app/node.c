/*
 * Life of a node: start order, readiness, draining, and an end that leaves nothing on the loop.
 *
 *   phase     event                                   next      what happens
 *   JOINING   in step, or first node, or joinWait     SERVING   the data plane opens its listeners
 *   JOINING   another node has our name               STOPPING  exit code 75
 *   SERVING   SIGTERM, SIGINT                         DRAINING  not ready at once; refuse after
 * drainDelay DRAINING  nothing in flight, or drainTimeout      STOPPING  everything is closed any
 * second signal                           STOPPING
 */
#include "node/app/node.h"

#include "node/app/compile.h"
#include "node/app/default_cert.h"
#include "node/base/check.h"
#include "node/base/log.h"
#include "node/base/mem.h"
#include "node/base/rng.h"
#include "node/base/timesrc.h"
#include "node/net/loop.h"
#include "node/tls/key_file.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

enum {
    SECOND_MS = 1000,
    DRAIN_TICK_MS = 20,
    NAMES_WAIT_MS = 2000,
    LEAVE_LINGER_MS = 1500, /* time to answer probes after having announced that we leave */
};

/* ---- readiness ---- */

/* A live member with our name and another identity at another address: who of us may have it is not
 * settled before it answers a probe or is declared dead. */
static const struct gossip_member *namesake(const struct node *node)
{
    const struct gossip *core = gossip_net_core(node->net);
    for (size_t i = 0; i < gossip_member_count(core); i++) {
        const struct gossip_member *member = gossip_member_at(core, i);
        if (!member->is_self && member->state <= MEMBER_SUSPECT &&
            strcmp(member->name, node->settings->node_name) == 0 &&
            addr_compare(&member->addr, &node->resolved->cluster_advertise) != 0) {
            return member;
        }
    }
    return NULL;
}

static bool has_peers(const struct node *node)
{
    return node->settings->cluster_join.count > 0 ||
           gossip_member_count(gossip_net_core(node->net)) > 1;
}

bool node_is_ready(const struct node *node, char *reason, size_t size)
{
    switch (node->phase) {
    case NODE_SERVING:
        (void)snprintf(reason, size, "serving");
        return true;
    case NODE_JOINING:
        (void)snprintf(reason, size, "joining: not yet in step with a peer");
        return false;
    case NODE_DRAINING:
        (void)snprintf(reason, size, "draining: this node is stopping");
        return false;
    case NODE_STOPPING:
        break;
    }
    (void)snprintf(reason, size, "stopping");
    return false;
}

/* For who wants one of them for a TcpRoute. */
static void own_ports(struct node *node)
{
    size_t plain = node->settings->listen_http.count;
    for (size_t i = 0; i < plain + node->settings->listen_https.count; i++) {
        struct addr addr;
        proxy_listen_addr(node->proxy, i, &addr);
        routing_tcp_own_port(node->routing, addr_port(&addr),
                             i < plain ? "listen.http" : "listen.https");
    }
    routing_tcp_own_port(node->routing, addr_port(&node->resolved->cluster_bind), "cluster.bind");
    if (node->resolved->admin_listen.sa.sa_family != AF_UNSPEC) {
        routing_tcp_own_port(node->routing, addr_port(&node->resolved->admin_listen),
                             "admin.listen");
    }
}

static int open_data_plane(struct node *node, struct err_info *err)
{
    struct proxy_config config = {
        .http = node->resolved->http,
        .http_count = node->settings->listen_http.count,
        .https = node->resolved->https,
        .https_count = node->settings->listen_https.count,
        .tls_key_log = *node->settings->tls_key_log != '\0' ? node->settings->tls_key_log : NULL,
        .tcp = node->resolved->tcp,
        .tcp_count = node->settings->listen_tcp.count,
        .proxy_trusted = {.items = (const char *const *)node->settings->proxy_trusted.items,
                          .count = node->settings->proxy_trusted.count},
        .workers = node->settings->workers,
        .connections_max = node->settings->connections_max,
        .node_name = node->settings->node_name,
        .access_log = node->settings->log_access,
        .access_combined = node->resolved->access_combined,
        .defaults = compile_defaults(NULL),
    };
    int rc = proxy_start(&config, &node->proxy, err);
    if (rc != RC_OK) {
        node->proxy = NULL;
        return rc;
    }
    own_ports(node);
    routing_attach(node->routing, node->proxy);
    tickets_attach(node->tickets);
    return proxy_serve(node->proxy, err);
}

static void serve(struct node *node, const char *why)
{
    struct err_info err = {0};
    int rc = open_data_plane(node, &err);
    if (rc != RC_OK) {
        log_error("cannot serve", "reason=\"%s\"", err.text);
        node_stop(node, rc == RC_BUSY ? NODE_EXIT_BUSY : NODE_EXIT_SOFTWARE);
        return;
    }
    node->phase = NODE_SERVING;
    gossip_set_ready(gossip_net_core(node->net), true, gossip_net_now());
    size_t plain = node->settings->listen_http.count;
    for (size_t i = 0; i < plain + node->settings->listen_https.count; i++) {
        struct addr addr;
        char text[ADDR_TEXT_MAX];
        proxy_listen_addr(node->proxy, i, &addr);
        log_info("listening", "protocol=%s address=%s", i < plain ? "http" : "https",
                 addr_format(&addr, text));
    }
    if (*node->settings->tls_key_log != '\0') {
        log_warn("tls.keyLog: secrets of TLS sessions are written to a file", "file=%s",
                 node->settings->tls_key_log);
    }
    log_info("ready", "why=\"%s\" revision=%llu", why,
             (unsigned long long)gossip_revision(gossip_net_core(node->net)));
}

/* Endpoints that are names get a moment to find their addresses, so that the first requests do. */
static bool waits_for_names(struct node *node)
{
    routing_flush(node->routing); /* begins the look-ups */
    if (!routing_is_resolving(node->routing)) {
        return false;
    }
    if (node->names_deadline_ms == 0) {
        node->names_deadline_ms = time_mono_ms() + NAMES_WAIT_MS;
    }
    return time_mono_ms() < node->names_deadline_ms;
}

static void consider_serving(struct node *node)
{
    if (node->phase != NODE_JOINING) {
        return;
    }
    const char *why = NULL;
    bool is_alone = false;
    const struct gossip *core = gossip_net_core(node->net);
    if (!has_peers(node)) {
        why = "first node of its cluster";
    } else if (namesake(node) != NULL) {
        return;
    } else if (gossip_in_step(core)) {
        why = "in step with the cluster";
    } else if (time_mono_ms() >= node->join_deadline_ms) {
        why = "no peer answered in time; serving what is on disk";
        is_alone = true;
    }
    if (why != NULL && !waits_for_names(node)) {
        if (is_alone) {
            log_warn("no peer answered", "waited_ms=%u", node->settings->join_wait_ms);
        }
        serve(node, why);
    }
}

/* ---- loop callbacks ---- */

static void on_before_poll(uv_prepare_t *handle)
{
    struct node *node = handle->data;
    if (node->phase == NODE_STOPPING) {
        return;
    }
    bool served = node->proxy != NULL;
    consider_serving(node);
    if (!served && node->proxy != NULL) {
        default_cert_turn(node); /* not only by the next second */
    }
    routing_flush(node->routing);
    tickets_turn(node->tickets);
    default_cert_turn(node);
    node_deliver(node);
}

static void on_second(uv_timer_t *timer)
{
    struct node *node = timer->data;
    if (node->admin != NULL && node->resolved->admin_tls &&
        admin_tls_is_due(node->settings, &node->admin_tls)) {
        admin_tls_reload(node->settings, &node->admin_tls, node->admin);
    }
    if (node->proxy != NULL) {
        proxy_reclaim(node->proxy);
        routing_tcp_tick(node->routing);
        routing_certs_tick(node->routing);
    }
}

/* Only makes the loop turn: the work is done in on_before_poll. */
static void on_confirm(uv_timer_t *timer)
{
    (void)timer;
}

static bool drained(const struct node *node, uint64_t waited_ms)
{
    uint64_t refusing_ms = waited_ms - MIN(waited_ms, (uint64_t)node->settings->drain_delay_ms);
    if (refusing_ms < LEAVE_LINGER_MS) {
        return false;
    }
    return node->proxy == NULL || proxy_connections(node->proxy) == 0 ||
           refusing_ms >= node->settings->drain_timeout_ms;
}

static void on_drain(uv_timer_t *timer)
{
    struct node *node = timer->data;
    uint64_t waited_ms = time_mono_ms() - node->drain_started_ms;
    if (!node->drain_refusing && waited_ms >= node->settings->drain_delay_ms) {
        node->drain_refusing = true;
        if (node->proxy != NULL) {
            proxy_drain(node->proxy);
        }
        gossip_leave(gossip_net_core(node->net), gossip_net_now());
    }
    if (drained(node, waited_ms)) {
        uint64_t left = node->proxy != NULL ? proxy_connections(node->proxy) : 0;
        log_info("drained", "connections_cut=%llu", (unsigned long long)left);
        node_stop(node, NODE_EXIT_OK);
    }
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct node *node = handle->data;
    if (number == SIGHUP) {
        if (node->admin != NULL && node->resolved->admin_tls) {
            admin_tls_reload(node->settings, &node->admin_tls, node->admin);
        }
        return;
    }
    const char *name = number == SIGTERM ? "SIGTERM" : "SIGINT";
    if (node->phase == NODE_DRAINING || node->phase == NODE_JOINING) {
        log_info("stopping at once", "signal=%s", name);
        node_stop(node, NODE_EXIT_OK);
        return;
    }
    if (node->phase == NODE_SERVING) {
        log_info("draining", "signal=%s", name);
        node->phase = NODE_DRAINING;
        node->drain_started_ms = time_mono_ms();
        gossip_set_ready(gossip_net_core(node->net), false, gossip_net_now());
        (void)uv_timer_start(&node->drain, on_drain, 0, DRAIN_TICK_MS);
    }
}

/* ---- stopping ---- */

/* The mailbox is embedded in node, which outlives the loop. */
static void on_mailbox_closed(void *owner)
{
    struct node *node = owner;
    node->mailbox_open = false;
}

/* What is left on the loop after the parts that have a stop of their own; ends the loop. */
static void close_handles(struct node *node)
{
    uv_handle_t *handles[] = {
        (uv_handle_t *)&node->before_poll, (uv_handle_t *)&node->second,
        (uv_handle_t *)&node->confirm,     (uv_handle_t *)&node->drain,
        (uv_handle_t *)&node->signals[0],  (uv_handle_t *)&node->signals[1],
        (uv_handle_t *)&node->signals[2],
    };
    for (size_t i = 0; i < ARRAY_LEN(handles); i++) {
        uv_close(handles[i], NULL); /* embedded in node, which outlives the loop */
    }
    replica_stop(node); /* before the mailbox: its thread posts there */
    if (node->mailbox_open) {
        mailbox_close(&node->persisted, on_mailbox_closed);
    }
}

static void on_part_stopped(void *arg)
{
    struct node *node = arg;
    ASSERT(node->handles_open > 0);
    if (--node->handles_open == 0) {
        close_handles(node);
    }
}

void node_stop(struct node *node, int exit_code)
{
    if (node->phase == NODE_STOPPING) {
        return;
    }
    node->phase = NODE_STOPPING;
    node->exit_code = exit_code;
}

/* Called once, from the loop's own level, so that no part is stopped from within its own callback.
 */
static void begin_stop(struct node *node)
{
    node->handles_open = 1;
    node_writes_abort(node);
    routing_free(node->routing);
    node->routing = NULL;
    proxy_free(node->proxy);
    node->proxy = NULL;
    if (node->admin != NULL) {
        node->handles_open++;
        admin_stop(node->admin, on_part_stopped, node);
        node->admin = NULL;
    }
    if (node->net_started) {
        node->handles_open++;
        gossip_net_stop(node->net, on_part_stopped, node);
    }
    on_part_stopped(node);
}

/* ---- starting ---- */

static int exit_code_of(int rc)
{
    switch ((enum rc)rc) {
    case RC_OK:
        return NODE_EXIT_OK;
    case RC_BUSY:
        return NODE_EXIT_BUSY;
    case RC_INVALID:
        return NODE_EXIT_USAGE;
    case RC_NOT_FOUND:
    case RC_EXISTS:
    case RC_CONFLICT:
    case RC_FULL:
    case RC_TOO_BIG:
    case RC_NO_MEMORY:
    case RC_NO_SPACE:
    case RC_IO:
    case RC_PEER:
    case RC_AUTH:
    case RC_TIMEOUT:
    case RC_CLOSED:
    case RC_AGAIN:
    case RC_UNSUPPORTED:
    case RC_CORRUPT:
    case RC_CLOCK:
        break;
    }
    return NODE_EXIT_SOFTWARE;
}

static void init_handles(struct node *node)
{
    loop_init(&node->loop);
    uv_timer_t *timers[] = {&node->second, &node->confirm, &node->drain};
    for (size_t i = 0; i < ARRAY_LEN(timers); i++) {
        (void)uv_timer_init(&node->loop, timers[i]); /* cannot fail */
        timers[i]->data = node;
    }
    (void)uv_prepare_init(&node->loop, &node->before_poll); /* cannot fail */
    node->before_poll.data = node;
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};
    for (size_t i = 0; i < ARRAY_LEN(node->signals); i++) {
        int status = uv_signal_init(&node->loop, &node->signals[i]);
        ASSERT(status == 0);
        node->signals[i].data = node;
        (void)uv_signal_start(&node->signals[i], on_signal, numbers[i]); /* valid numbers */
    }
    node->confirm.timer_cb = on_confirm;
}

static int start_store(struct node *node, struct gossip_self *ret_self, struct err_info *err)
{
    int rc = replica_open(node, ret_self, err);
    if (rc == RC_OK || rc == RC_BUSY) {
        node->exit_code = rc == RC_BUSY ? NODE_EXIT_BUSY : NODE_EXIT_OK;
        return rc;
    }
    node->exit_code = NODE_EXIT_DISK;
    return rc;
}

static int start_gossip(struct node *node, const struct key_ring *keys,
                        const struct gossip_self *self, struct err_info *err)
{
    struct gossip_net_config config = {
        .bind = node->resolved->cluster_bind,
        .keys = keys,
        .self = *self,
        .join = node->resolved->cluster_join,
        .join_count = node->resolved->cluster_join_count,
        .seed = rng_secret_u64(),
    };
    tickets_free(node->tickets);
    node->tickets = NULL;
    int rc = tickets_new(node, self->id, keys, &node->tickets, err);
    if (rc != RC_OK) {
        return rc;
    }
    return gossip_net_new(&node->loop, &config, &node_gossip_ops, node, &node->net, err);
}

static int start_admin(struct node *node, struct err_info *err)
{
    const struct addr *listen = &node->resolved->admin_listen;
    struct admin_tls tls = {0};
    int rc = node->resolved->admin_tls ? admin_tls_load(node->settings, &node->admin_tls, &tls, err)
                                       : RC_OK;
    if (rc != RC_OK) {
        node->exit_code = NODE_EXIT_KEY;
        return rc;
    }
    char *audit = mem_printf("%s/audit.log", node->settings->data_dir);
    struct admin_config config = {
        .unix_path = node->settings->admin_unix,
        .listen = listen->sa.sa_family != AF_UNSPEC ? listen : NULL,
        .tls = node->resolved->admin_tls ? &tls : NULL,
        .audit_path = audit,
    };
    rc = admin_start(&node->loop, &config, &node_admin_ops, node, &node->admin, err);
    admin_tls_deinit(&tls);
    mem_free(audit);
    if (rc != RC_OK) {
        node->admin = NULL;
        return rc;
    }
    char text[ADDR_TEXT_MAX];
    struct addr bound;
    admin_listen_addr(node->admin, &bound);
    log_info("admin API", "unix=%s address=%s tls=%s", node->settings->admin_unix,
             addr_format(&bound, text), node->resolved->admin_tls ? "yes" : "no");
    return RC_OK;
}

/* The core, filled from the disk; from nothing when what is there does not load (peers have it). */
static int start_replica(struct node *node, const struct key_ring *keys, struct err_info *err)
{
    struct gossip_self self;
    int rc = start_store(node, &self, err);
    rc = rc != RC_OK ? rc : start_gossip(node, keys, &self, err);
    rc = rc != RC_OK ? rc : replica_load(node, err);
    if (rc == RC_OK || node->net == NULL || (rc != RC_CORRUPT && rc != RC_INVALID)) {
        return rc;
    }
    struct err_info reason = *err;
    gossip_net_free(node->net);
    node->net = NULL;
    routing_free(node->routing);
    node->routing = routing_new();
    routing_observe(node->routing, &node->loop, &resolver_system, NULL);
    objects_free(node->objects);
    node->objects = objects_new();
    objects_use_seal(node->objects, node->seal);
    rc = replica_reopen_empty(node, reason.text, &self, err);
    return rc != RC_OK ? rc : start_gossip(node, keys, &self, err);
}

static int start_all(struct node *node, struct err_info *err)
{
    struct key_ring keys;
    int rc = key_file_load(node->settings->cluster_key_file, &keys, err);
    if (rc != RC_OK) {
        node->exit_code = NODE_EXIT_KEY;
        return rc;
    }
    rc = row_seal_new(&keys, &node->seal, err);
    if (rc == RC_OK) {
        objects_use_seal(node->objects, node->seal);
        rc = start_replica(node, &keys, err);
    } else {
        node->seal = NULL;
    }
    rc = rc != RC_OK ? rc : routing_use_keys(node->routing, &keys, err);
    key_ring_wipe(&keys);
    if (rc != RC_OK) {
        return rc;
    }
    replica_start(node);
    rc = gossip_net_start(node->net, err);
    node->net_started = rc == RC_OK;
    rc = rc != RC_OK ? rc : start_admin(node, err);
    if (rc != RC_OK) {
        return rc;
    }
    node->join_deadline_ms = time_mono_ms() + node->settings->join_wait_ms;
    (void)uv_prepare_start(&node->before_poll, on_before_poll);           /* cannot fail */
    (void)uv_timer_start(&node->second, on_second, SECOND_MS, SECOND_MS); /* cannot fail */
    return RC_OK;
}

static void cleanup(struct node *node)
{
    loop_close_clean(&node->loop);
    gossip_net_free(node->net);
    node->net = NULL;
    tickets_free(node->tickets);
    node->tickets = NULL;
    objects_free(node->objects);
    node->objects = NULL;
    row_seal_free(node->seal);
    node->seal = NULL;
}

int node_run(const struct settings *settings, const struct settings_resolved *resolved)
{
    struct node node = {
        .settings = settings,
        .resolved = resolved,
        .objects = objects_new(),
        .routing = routing_new(),
        .change_count = time_wall_ms(),
    };
    init_handles(&node);
    routing_observe(node.routing, &node.loop, &resolver_system, NULL);
    (void)signal(SIGPIPE, SIG_IGN); /* a write to a closed peer is an error code, not an end */
    log_info("starting", "version=%s folder=%s", SKEIN_VERSION, settings->data_dir);
    struct err_info err = {0};
    int rc = start_all(&node, &err);
    if (rc != RC_OK) {
        log_error("cannot start", "reason=\"%s\"", err.text);
        node_stop(&node, node.exit_code != NODE_EXIT_OK ? node.exit_code : exit_code_of(rc));
    }
    while (node.phase != NODE_STOPPING) {
        (void)uv_run(&node.loop,
                     UV_RUN_ONCE); /* the return value tells of handles, not of errors */
    }
    begin_stop(&node);
    loop_run(&node.loop);
    cleanup(&node);
    log_info("stopped", "exit=%d", node.exit_code);
    return node.exit_code;
}
