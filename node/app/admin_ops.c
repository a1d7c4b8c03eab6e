/*
 * What the admin API may ask of a node.
 *
 * A write goes through three lists: writing (until the store answered), confirming (?wait=all:
 * until every live member acknowledged it), finished (its answer is due at the end of the loop
 * turn, since the core must not be entered from within its own ops).
 */
#include "node/app/check_tls.h"
#include "node/app/node.h"
#include "node/app/status.h"
#include "node/base/check.h"
#include "node/base/log.h"
#include "node/base/mem.h"
#include "node/base/timesrc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum {
    CONFIRM_TICK_MS = 5,
    CONFIRM_WAIT_MS = 10000,
    CLOCK_FLAG_MS = 500,     /* as the core's limit for writes */
    WRITABLE_WAIT_MS = 6000, /* the core asks its peers for up to 3 s after a start */
};

/* ---- reading ---- */

static const struct object *op_find(void *ctx, const struct kind *kind, const char *id)
{
    struct node *node = ctx;
    routing_flush(node->routing);
    const struct object *object = objects_find(node->objects, kind, id);
    if (object != NULL) {
        status_fill(node->routing, gossip_net_core(node->net), object);
    }
    return object;
}

struct each_visit {
    struct node *node;
    bool (*visit)(void *arg, const struct object *object);
    void *arg;
};

static bool visit_with_status(void *arg, const struct object *object)
{
    struct each_visit *each = arg;
    status_fill(each->node->routing, gossip_net_core(each->node->net), object);
    return each->visit(each->arg, object);
}

static void op_each_from(void *ctx, const struct kind *kind, const char *from,
                         bool (*visit)(void *arg, const struct object *object), void *arg)
{
    struct node *node = ctx;
    routing_flush(node->routing);
    struct each_visit each = {node, visit, arg};
    objects_each(node->objects, kind, from, visit_with_status, &each);
}

static void op_each(void *ctx, const struct kind *kind,
                    bool (*visit)(void *arg, const struct object *object), void *arg)
{
    op_each_from(ctx, kind, NULL, visit, arg);
}

static uint64_t op_revision(void *ctx)
{
    const struct node *node = ctx;
    return node->change_count;
}

static const char *op_node_name(void *ctx)
{
    const struct node *node = ctx;
    return node->settings->node_name;
}

static bool op_ready(void *ctx, char *reason, size_t size)
{
    return node_is_ready(ctx, reason, size);
}

static void op_metrics(void *ctx, struct buf *out)
{
    node_metrics(ctx, out);
}

/* ---- members ---- */

static uint64_t revision_max(const struct gossip *core)
{
    uint64_t highest = gossip_revision(core);
    for (size_t i = 0; i < gossip_member_count(core); i++) {
        const struct gossip_member *member = gossip_member_at(core, i);
        if (member->state == MEMBER_ALIVE) {
            highest = MAX(highest, member->revision);
        }
    }
    return highest;
}

static void fill_member(const struct gossip *core, const struct gossip_member *member,
                        struct admin_member *ret_member)
{
    *ret_member = (struct admin_member){
        .state = status_member_state(member->state),
        .is_self = member->is_self,
        .ready = member->ready,
        .revision = member->is_self ? gossip_revision(core) : member->revision,
        .clock_offset_ms = member->clock_offset_ms,
        .clock_flagged = !member->is_self && llabs(member->clock_offset_ms) > CLOCK_FLAG_MS,
        .rtt_us = member->rtt_us,
        .heard_ms_ago = UINT64_MAX,
    };
    (void)snprintf(ret_member->id, sizeof(ret_member->id), "%016" PRIx64, member->id);
    (void)snprintf(ret_member->name, sizeof(ret_member->name), "%s", member->name);
    (void)snprintf(ret_member->version, sizeof(ret_member->version), "%s", member->version);
    addr_format(&member->addr, ret_member->address);
    if (member->is_self) {
        ret_member->heard_ms_ago = 0;
        ret_member->in_step = true;
        ret_member->clock_flagged = llabs(gossip_clock_offset_ms(core)) > CLOCK_FLAG_MS;
    } else if (member->heard_ms != 0) {
        ret_member->heard_ms_ago = time_mono_ms() - member->heard_ms;
        ret_member->in_step = member->frontier_hash == gossip_frontier_hash(core);
    }
}

static size_t op_members(void *ctx, struct admin_member *ret_members, size_t cap)
{
    const struct node *node = ctx;
    const struct gossip *core = gossip_net_core(node->net);
    uint64_t highest = revision_max(core);
    size_t count = gossip_member_count(core);
    for (size_t i = 0; i < MIN(count, cap); i++) {
        fill_member(core, gossip_member_at(core, i), &ret_members[i]);
        ret_members[i].lag =
            highest > ret_members[i].revision ? highest - ret_members[i].revision : 0;
    }
    return count;
}

static bool is_member(const struct gossip_member *member, const char *text)
{
    char id[20];
    (void)snprintf(id, sizeof(id), "%016" PRIx64, member->id);
    return strcmp(member->name, text) == 0 || strcmp(id, text) == 0;
}

/* Of several with one name only those count that can be forgotten: a node that came back without
 * its disk stands beside its former self. */
static int op_forget(void *ctx, const char *text, struct err_info *err)
{
    struct node *node = ctx;
    struct gossip *core = gossip_net_core(node->net);
    uint64_t found = 0;
    size_t gone = 0;
    size_t there = 0;
    for (size_t i = 0; i < gossip_member_count(core); i++) {
        const struct gossip_member *member = gossip_member_at(core, i);
        if (!is_member(member, text)) {
            continue;
        }
        if (member->state == MEMBER_DEAD || member->state == MEMBER_LEFT) {
            found = member->id;
            gone++;
        } else {
            there++;
        }
    }
    if (gone > 1) {
        return err_set(err, RC_INVALID, "%zu dead members are named %.64s: give an id", gone, text);
    }
    if (gone == 0 && there > 0) {
        return err_set(err, RC_BUSY, "%.64s is not dead; stop it first", text);
    }
    if (gone == 0) {
        return err_set(err, RC_NOT_FOUND, "no member is named %.64s", text);
    }
    int rc = gossip_forget(core, found, gossip_net_now());
    if (rc != RC_OK) {
        return err_set(err, rc, "%.64s cannot be forgotten now: %s", text, rc_text(rc));
    }
    log_info("member forgotten", "member=%s", text);
    return RC_OK;
}

/* ---- writing ---- */

/* Replace the packed form by the sealed one. */
static int seal_change(struct row_seal *seal, struct gossip_change *change, uint8_t **bytes,
                       struct err_info *err)
{
    size_t len = change->value_len + SEAL_OVERHEAD;
    if (len > ROW_VALUE_MAX) {
        return err_set(err, RC_TOO_BIG, "%s is %zu bytes; at most %d are accepted", change->id, len,
                       ROW_VALUE_MAX);
    }
    uint8_t *sealed = mem_new(len);
    const struct seal_row row = {.kind = change->kind, .id = change->id, .id_len = change->id_len};
    row_seal_close(seal, &row, *bytes, change->value_len, sealed);
    crypto_wipe(*bytes, change->value_len);
    mem_free(*bytes);
    *bytes = sealed;
    change->value = sealed;
    change->value_len = len;
    change->flags = ROW_SECRET;
    return RC_OK;
}

static int pack_change(const struct node *node, const struct admin_change *change,
                       struct gossip_change *ret_change, uint8_t **ret_bytes, struct err_info *err)
{
    *ret_change = (struct gossip_change){
        .kind = change->kind->number,
        .id = change->id,
        .id_len = strlen(change->id),
    };
    if (change->message == NULL) {
        ret_change->flags = ROW_TOMBSTONE;
        return RC_OK;
    }
    int rc = object_pack(change->kind, change->message, ret_bytes, &ret_change->value_len, err);
    ret_change->value = *ret_bytes;
    if (rc == RC_OK && change->kind->secrets != NULL) {
        rc = seal_change(node->seal, ret_change, ret_bytes, err);
    }
    return rc;
}

/* After a start the core takes no writes until its peers said which of its writes they know. True:
 * wait a moment; false: it takes them, or has not for so long that a person should know. */
static bool is_write_due_later(struct node *node)
{
    if (gossip_writable(gossip_net_core(node->net))) {
        node->unwritable_since_ms = 0;
        return false;
    }
    if (node->unwritable_since_ms == 0) {
        node->unwritable_since_ms = time_mono_ms();
    }
    return time_mono_ms() - node->unwritable_since_ms < WRITABLE_WAIT_MS;
}

void node_write_track(struct node *node, uint64_t token, bool wait_all, admin_done done, void *arg)
{
    struct node_write *write = mem_new(sizeof(*write));
    write->token = token;
    write->wait_all = wait_all;
    write->done = done;
    write->arg = arg;
    DL_APPEND(node->writing, write);
}

static size_t op_ticket_keys(void *ctx, struct admin_ticket_key *ret_keys, size_t cap)
{
    struct node *node = ctx;
    return tickets_list(node->tickets, ret_keys, cap);
}

static int op_rotate_tickets(void *ctx, bool revoke, bool wait_all, admin_done done, void *arg,
                             struct err_info *err)
{
    struct node *node = ctx;
    uint64_t token = 0;
    int rc = tickets_rotate(node->tickets, revoke, &token, err);
    if (rc == RC_OK) {
        node_write_track(node, token, wait_all, done, arg);
    }
    return rc;
}

static int op_commit(void *ctx, const struct admin_change *changes, size_t count, bool wait_all,
                     admin_done done, void *arg, struct err_info *err)
{
    struct node *node = ctx;
    if (count > CHANGE_SET_ROWS_MAX) {
        return err_set(err, RC_TOO_BIG,
                       "%zu objects change at once; at most %d are accepted: split "
                       "the manifest",
                       count, CHANGE_SET_ROWS_MAX);
    }
    if (is_write_due_later(node)) {
        return RC_BUSY;
    }
    if (node->unwritable_since_ms != 0) {
        return err_set(err, RC_AGAIN,
                       "this node takes no writes yet: it cannot settle with its peers, or "
                       "on its disk, which writes of its own were lost");
    }
    struct gossip_change *packed = mem_array(count, sizeof(*packed));
    uint8_t **bytes = mem_array(count, sizeof(*bytes));
    int rc = RC_OK;
    for (size_t i = 0; rc == RC_OK && i < count; i++) {
        rc = pack_change(node, &changes[i], &packed[i], &bytes[i], err);
    }
    uint64_t token = 0;
    if (rc == RC_OK) {
        rc = gossip_write(gossip_net_core(node->net), packed, count, gossip_net_now(), &token, err);
    }
    if (rc == RC_OK) {
        node_write_track(node, token, wait_all, done, arg);
    }
    for (size_t i = 0; i < count; i++) {
        mem_free(bytes[i]);
    }
    mem_free(bytes);
    mem_free(packed);
    return rc;
}

static void op_check(void *ctx, const struct kind *kind, const ProtobufCMessage *message,
                     struct faults *faults)
{
    (void)ctx;
    check_tls(kind, message, faults);
}

static void op_settled(void *ctx, void (*callback)(void *arg), void *arg)
{
    struct node *node = ctx;
    struct node_settled *settled = mem_new(sizeof(*settled));
    settled->callback = callback;
    settled->arg = arg;
    LL_APPEND(node->settled, settled);
    if (node->writing == NULL) {
        /* Nothing will end: let the loop turn once without sleeping. */
        (void)uv_timer_start(&node->confirm, node->confirm.timer_cb, 0, CONFIRM_TICK_MS);
    }
}

void node_write_ended(struct node *node, uint64_t token, int rc, uint64_t seq)
{
    struct node_write *write = NULL;
    DL_SEARCH_SCALAR(node->writing, write, token, token);
    if (write == NULL) {
        return;
    }
    DL_DELETE(node->writing, write);
    write->rc = rc;
    write->seq = seq;
    if (rc == RC_OK && write->wait_all) {
        write->deadline_ms = time_mono_ms() + CONFIRM_WAIT_MS;
        DL_APPEND(node->confirming, write);
    } else {
        DL_APPEND(node->finished, write);
    }
}

/* The first live member that has not acknowledged seq, or NULL. */
static const struct gossip_member *unconfirmed_by(const struct gossip *core, uint64_t seq)
{
    for (size_t i = 0; i < gossip_member_count(core); i++) {
        const struct gossip_member *member = gossip_member_at(core, i);
        if (!member->is_self && member->state == MEMBER_ALIVE && member->acked_seq < seq) {
            return member;
        }
    }
    return NULL;
}

static void check_confirming(struct node *node)
{
    const struct gossip *core = gossip_net_core(node->net);
    struct node_write *write, *next;
    DL_FOREACH_SAFE (node->confirming, write, next) {
        bool late = time_mono_ms() >= write->deadline_ms;
        if (unconfirmed_by(core, write->seq) == NULL || late) {
            DL_DELETE(node->confirming, write);
            write->rc = unconfirmed_by(core, write->seq) == NULL ? RC_OK : RC_TIMEOUT;
            DL_APPEND(node->finished, write);
        }
    }
}

static void answer(struct node *node, struct node_write *write)
{
    const struct gossip *core = gossip_net_core(node->net);
    char text[256] = "";
    if (write->rc == RC_TIMEOUT) {
        const struct gossip_member *member = unconfirmed_by(core, write->seq);
        (void)snprintf(text, sizeof(text),
                       "durable on this node; %s did not confirm it within %d s",
                       member != NULL ? member->name : "a member", CONFIRM_WAIT_MS / 1000);
    } else if (write->rc != RC_OK) {
        (void)snprintf(text, sizeof(text), "nothing was changed: %s", rc_text(write->rc));
    }
    write->done(write->arg, write->rc, gossip_revision(core), text);
    mem_free(write);
}

static void call_settled(struct node *node)
{
    struct node_settled *settled = node->settled;
    node->settled = NULL;
    while (settled != NULL) {
        struct node_settled *next = settled->next;
        settled->callback(settled->arg);
        mem_free(settled);
        settled = next;
    }
}

void node_deliver(struct node *node)
{
    check_confirming(node);
    bool ended = node->finished != NULL || node->writing == NULL;
    bool later = node->settled != NULL && is_write_due_later(node);
    while (node->finished != NULL) {
        struct node_write *write = node->finished;
        DL_DELETE(node->finished, write);
        answer(node, write);
    }
    if (ended && !later) {
        call_settled(node);
    }
    if (node->confirming == NULL && (node->settled == NULL || node->writing != NULL)) {
        (void)uv_timer_stop(&node->confirm);
    } else if (!uv_is_active((const uv_handle_t *)&node->confirm)) {
        (void)uv_timer_start(&node->confirm, node->confirm.timer_cb, CONFIRM_TICK_MS,
                             CONFIRM_TICK_MS);
    }
}

void node_writes_abort(struct node *node)
{
    DL_CONCAT(node->finished, node->confirming);
    node->confirming = NULL;
    DL_CONCAT(node->finished, node->writing);
    node->writing = NULL;
    while (node->finished != NULL) {
        struct node_write *write = node->finished;
        DL_DELETE(node->finished, write);
        write->done(write->arg, RC_CLOSED, 0,
                    "the node is stopping; whether this write is durable "
                    "is not known");
        mem_free(write);
    }
    call_settled(node);
}

const struct admin_ops node_admin_ops = {
    .find = op_find,
    .each = op_each,
    .each_from = op_each_from,
    .commit = op_commit,
    .check = op_check,
    .settled = op_settled,
    .members = op_members,
    .forget = op_forget,
    .ticket_keys = op_ticket_keys,
    .rotate_tickets = op_rotate_tickets,
    .ready = op_ready,
    .revision = op_revision,
    .node_name = op_node_name,
    .metrics = op_metrics,
};
