/*
 * One node: everything that the control thread owns, and how it is wired.
 *
 *   store thread --mail--> control loop: gossip core <-> objects -> routing -> proxy (workers)
 *                                           ^               |
 *                                        admin API <--------+
 *
 * Phases: JOINING -> SERVING -> DRAINING -> STOPPING. The data plane opens when SERVING begins, so
 * a node that lags behind its cluster refuses connections instead of answering from an old
 * configuration. Thread: the control thread, but for node_on_persisted (store thread).
 */
#ifndef SKEIN_NODE_APP_NODE_H
#define SKEIN_NODE_APP_NODE_H

#include "admin/server/admin.h"
#include "gossip/net/gossip_net.h"
#include "node/app/admin_tls.h"
#include "node/app/objects.h"
#include "node/app/routing.h"
#include "node/app/row_seal.h"
#include "node/app/settings.h"
#include "node/app/tickets.h"
#include "node/net/mailbox.h"
#include "node/proxy/proxy.h"
#include "store/store.h"
#include "store/writer.h"

#include <uv.h>

/* Exit codes of skeind, as sysexits.h has them. */
enum node_exit {
    NODE_EXIT_OK = 0,
    NODE_EXIT_USAGE = 64,      /* a setting is wrong */
    NODE_EXIT_SOFTWARE = 70,   /* anything unexpected */
    NODE_EXIT_BUSY = 69,       /* a port, socket or data folder is in use */
    NODE_EXIT_DISK = 74,       /* the data folder cannot be used */
    NODE_EXIT_NAME_TAKEN = 75, /* another node has this name */
    NODE_EXIT_KEY = 78,        /* the key file or the settings file cannot be used */
};

enum node_phase {
    NODE_JOINING = 0,
    NODE_SERVING,
    NODE_DRAINING, /* not ready; after the delay refuses connections; waits for what is in flight */
    NODE_STOPPING, /* handles are being closed */
};

/* A commit of the admin API on its way. */
struct node_write {
    uint64_t token; /* gossip_write's */
    bool wait_all;
    admin_done done;
    void *arg;
    int rc;
    uint64_t seq;
    uint64_t deadline_ms;
    struct node_write *prev, *next; /* in exactly one of the three lists of struct node */
};

struct node_settled {
    void (*callback)(void *arg);
    void *arg;
    struct node_settled *next;
};

struct node {
    const struct settings *settings;
    const struct settings_resolved *resolved;
    enum node_phase phase;
    int exit_code;
    uv_loop_t loop;

    struct store *store;
    struct store_writer *writer;
    struct mailbox persisted; /* struct persisted_mail from the store thread */
    bool mailbox_open;

    struct gossip_net *net;
    bool net_started;
    struct row_seal *seal; /* of secret rows; outlives objects */
    struct objects *objects;
    struct routing *routing;
    struct tickets *tickets; /* with net */
    struct proxy *proxy;     /* NULL until SERVING */
    struct admin *admin;
    struct admin_tls_watch admin_tls; /* with resolved->admin_tls */
    bool default_cert_writing;        /* default_cert.h */
    uint64_t default_cert_tried_ms;
    bool default_cert_seen; /* its row came, readable or not */
    uint64_t change_count;  /* counts applied changes; starts at a value no earlier run had */

    struct node_write *writing;    /* not durable yet */
    struct node_write *confirming; /* durable here; waiting for every live node */
    struct node_write *finished;   /* done is due */
    struct node_settled *settled;
    uint64_t unwritable_since_ms; /* the core does not take writes; 0: it does */

    uv_prepare_t before_poll; /* flushes routing and answers finished writes once per loop turn */
    uv_timer_t second;        /* reclaims, watches the join deadline */
    uv_timer_t confirm;       /* runs while `confirming` has elements */
    uv_timer_t drain;         /* steps of a stop */
    uv_signal_t signals[3];
    unsigned handles_open;
    uint64_t join_deadline_ms;
    uint64_t names_deadline_ms; /* 0: no need to wait for names has shown yet */
    uint64_t drain_started_ms;
    bool drain_refusing; /* proxy_drain was called */
    bool leaving;
};

/* ---- node.c: life ---- */

/* Run a node until it is told to stop. Returns its exit code. */
int node_run(const struct settings *settings, const struct settings_resolved *resolved);

/* Begin a stop with this exit code; the first call wins. */
void node_stop(struct node *node, int exit_code);

/* ---- replica.c: between gossip core, store and the table of objects ---- */

extern const struct gossip_ops node_gossip_ops; /* the application's half */

/* Open the store and load the core from it. The text names what is wrong. */
MUST_CHECK int replica_open(struct node *node, struct gossip_self *ret_self, struct err_info *err);
/* Move aside a database whose entries do not load, and go on empty under the identity given. */
MUST_CHECK int replica_reopen_empty(struct node *node, const char *reason,
                                    struct gossip_self *ret_self, struct err_info *err);
MUST_CHECK int replica_load(struct node *node, struct err_info *err);
void replica_start(struct node *node);
void replica_stop(struct node *node); /* joins the store thread and closes the store */

/* ---- admin_ops.c ---- */

extern const struct admin_ops node_admin_ops;

/* A write that gossip_write took: done is called when it ended. */
void node_write_track(struct node *node, uint64_t token, bool wait_all, admin_done done, void *arg);
/* A write ended (from within the core): move it on. */
void node_write_ended(struct node *node, uint64_t token, int rc, uint64_t seq);
/* Answer what is finished and call who waits for a settled table. Not from within the core. */
void node_deliver(struct node *node);
/* Stop answering: all that wait are told RC_CLOSED. */
void node_writes_abort(struct node *node);

/* False: reason says what a balancer's operator should know. */
bool node_is_ready(const struct node *node, char *reason, size_t size);

/* ---- metrics.c ---- */

void node_metrics(struct node *node, struct buf *out);

#endif
