/*
 * The replicated table's three homes: the gossip core has the truth in memory, the store has it on
 * disk, the table of objects has it unpacked.
 *
 * persist goes to the store thread with a copy; its answer comes back as mail and is handed to the
 * core in order. What the core applies is unpacked at once and marked for the data plane.
 */
#include "node/app/default_cert.h"
#include "node/app/node.h"
#include "node/app/status.h"
#include "node/app/tickets_row.h"
#include "node/base/check.h"
#include "node/base/log.h"
#include "node/base/mem.h"
#include "node/base/timesrc.h"

#include <stdio.h>
#include <string.h>

struct persisted_mail {
    struct mail mail;
    uint64_t token;
    int rc;
};

/* ---- ops of the core ---- */

static void on_persist(void *ctx, const struct gossip_batch *batch, uint64_t token)
{
    struct node *node = ctx;
    store_writer_submit(node->writer, batch, token);
}

static void on_written(void *ctx, uint64_t write, int rc, uint64_t seq)
{
    node_write_ended(ctx, write, rc, seq);
}

static void on_applied(void *ctx, const struct row *row, const struct row *old)
{
    (void)old; /* the table of objects knows what it held */
    struct node *node = ctx;
    if (row->kind == TICKETS_ROW_KIND) {
        tickets_apply(node->tickets, row);
        return;
    }
    struct objects_change change;
    default_cert_applied(node, row);
    objects_apply(node->objects, row, &change);
    if (change.now != NULL || change.before != NULL) {
        routing_change(node->routing, change.now, change.before);
        node->change_count++;
        if (node->admin != NULL) {
            admin_notify(node->admin, change.now != NULL ? change.now : change.before,
                         change.now == NULL, node->change_count);
        }
    }
    objects_change_done(&change);
}

static void on_event(void *ctx, enum gossip_event event, const struct gossip_member *member,
                     const char *text)
{
    struct node *node = ctx;
    char address[ADDR_TEXT_MAX] = "-";
    if (member != NULL) {
        addr_format(&member->addr, address);
    }
    switch (event) {
    case GOSSIP_EVENT_MEMBER:
        if (member != NULL) {
            log_info("member changed", "member=%s id=%016llx address=%s state=%s %s", member->name,
                     (unsigned long long)member->id, address, status_member_state(member->state),
                     text);
        }
        break;
    case GOSSIP_EVENT_IN_STEP:
        log_info("in step with the cluster", "%s", text);
        break;
    case GOSSIP_EVENT_NAME_TAKEN:
        log_error("the name of this node is taken", "name=%s by=%016llx at=%s %s",
                  node->settings->node_name, member != NULL ? (unsigned long long)member->id : 0ULL,
                  address, text);
        if (node->phase == NODE_JOINING) {
            node_stop(node, NODE_EXIT_NAME_TAKEN);
        }
        break;
    case GOSSIP_EVENT_GENERATION:
        log_info("new generation of this node", "%s", text);
        break;
    case GOSSIP_EVENT_CLOCK:
        log_warn("clock", "%s", text);
        break;
    case GOSSIP_EVENT_WARNING:
        log_warn("gossip", "%s", text);
        break;
    }
}

const struct gossip_ops node_gossip_ops = {
    .persist = on_persist,
    .written = on_written,
    .applied = on_applied,
    .event = on_event,
};

/* ---- answers of the store thread ---- */

static void on_persisted_mt(void *ctx, uint64_t token, int rc)
{
    struct node *node = ctx;
    struct persisted_mail *mail = mem_new(sizeof(*mail));
    mail->token = token;
    mail->rc = rc;
    int posted = mailbox_post_mt(&node->persisted, &mail->mail);
    ASSERT(posted == RC_OK); /* unbounded, and closed only after this thread ended */
}

static void on_persisted(void *owner, struct mail *mail)
{
    static struct log_limit limit;
    struct node *node = owner;
    struct persisted_mail *answer = CONTAINER_OF(mail, struct persisted_mail, mail);
    uint32_t suppressed = 0;
    if (answer->rc != RC_OK && log_limit_pass(&limit, 1, &suppressed)) {
        log_error("the store did not take a batch", "reason=\"%s\" left_out=%u",
                  rc_text(answer->rc), suppressed);
    }
    if (node->phase != NODE_STOPPING) {
        gossip_persisted(gossip_net_core(node->net), answer->token, answer->rc, gossip_net_now());
    }
    mem_free(answer);
}

/* ---- loading ---- */

static int load_row(void *ctx, const struct row *row, struct err_info *err)
{
    struct node *node = ctx;
    return gossip_load_row(gossip_net_core(node->net), row, err);
}

static int load_frontier(void *ctx, const struct dot *dot, struct err_info *err)
{
    struct node *node = ctx;
    return gossip_load_frontier(gossip_net_core(node->net), dot, err);
}

static int load_member(void *ctx, const struct gossip_member *member, struct err_info *err)
{
    struct node *node = ctx;
    return gossip_load_member(gossip_net_core(node->net), member, err);
}

static void tell_opened(const struct node *node, const struct store_opened *opened)
{
    if (*opened->note != '\0') {
        log_warn("data folder", "folder=%s note=\"%s\"", node->settings->data_dir, opened->note);
    }
    log_info("store opened", "folder=%s id=%016llx generation=%u%s", node->settings->data_dir,
             (unsigned long long)opened->identity.node, opened->identity.generation,
             opened->created ? " (new)" : "");
}

static void fill_self(const struct node *node, const struct store_opened *opened,
                      struct gossip_self *ret_self)
{
    *ret_self = (struct gossip_self){
        .id = opened->identity.node,
        .generation = opened->identity.generation,
        .incarnation = opened->identity.incarnation_limit,
        .addr = node->resolved->cluster_advertise,
    };
    (void)snprintf(ret_self->name, sizeof(ret_self->name), "%s", node->settings->node_name);
    (void)snprintf(ret_self->version, sizeof(ret_self->version), "%s", SKEIN_VERSION);
}

int replica_open(struct node *node, struct gossip_self *ret_self, struct err_info *err)
{
    struct store_opened opened;
    int rc = store_open(node->settings->data_dir, &node->store, &opened, err);
    if (rc == RC_OK) {
        tell_opened(node, &opened);
        fill_self(node, &opened, ret_self);
    }
    return rc;
}

int replica_reopen_empty(struct node *node, const char *reason, struct gossip_self *ret_self,
                         struct err_info *err)
{
    struct store_opened opened;
    int rc = store_restart_empty(node->store, reason, &opened, err);
    if (rc == RC_OK) {
        tell_opened(node, &opened);
        fill_self(node, &opened, ret_self);
    }
    return rc;
}

int replica_load(struct node *node, struct err_info *err)
{
    static const struct store_visitor visitor = {load_row, load_frontier, load_member};
    return store_load(node->store, &visitor, node, err);
}

void replica_start(struct node *node)
{
    mailbox_open(&node->persisted, &node->loop, SIZE_MAX, on_persisted, node);
    node->mailbox_open = true;
    node->writer = store_writer_start(node->store, 0, on_persisted_mt, node);
}

void replica_stop(struct node *node)
{
    if (node->writer != NULL) {
        store_writer_stop(node->writer);
        node->writer = NULL;
    }
    store_close(node->store);
    node->store = NULL;
}
