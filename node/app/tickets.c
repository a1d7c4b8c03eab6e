/*
 * Ticket keys between rows, data plane and administrators; see the header.
 *
 * Invariants: a secret leaves this file sealed or as a ring, and is wiped where it was; the core is
 * stepped at most ten times a second; nothing is written before this node serves, so that one that
 * joins makes no key of its own.
 */
#include "node/app/tickets.h"

#include "node/app/node.h"
#include "node/app/row_seal.h"
#include "node/app/tickets_row.h"
#include "node/base/log.h"
#include "node/base/mem.h"
#include "node/base/rng.h"
#include "node/base/timesrc.h"
#include "node/tls/crypto.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    TURN_MS = 100,
    SEALED_BYTES = TICKETS_FORM_BYTES + SEAL_OVERHEAD,
    NAME_SHOWN = 8, /* hex digits that tell keys apart for people */
};

struct tickets {
    struct node *node;
    struct tickets_core *core;
    struct row_seal *seal;
    struct tickets_member *members; /* scratch */
    size_t member_size;
    uint64_t turned_ms; /* monotonic; 0: a row came since */
    uint64_t damaged;
};

int tickets_new(struct node *node, uint64_t self, const struct key_ring *keys,
                struct tickets **ret_tickets, struct err_info *err)
{
    struct row_seal *seal;
    int rc = row_seal_new(keys, &seal, err);
    if (rc != RC_OK) {
        return rc;
    }
    struct tickets *tickets = mem_new(sizeof(*tickets));
    tickets->node = node;
    tickets->core = tickets_core_new(self);
    tickets->seal = seal;
    *ret_tickets = tickets;
    return RC_OK;
}

void tickets_free(struct tickets *tickets)
{
    if (tickets == NULL) {
        return;
    }
    tickets_core_free(tickets->core);
    row_seal_free(tickets->seal);
    mem_free(tickets->members);
    mem_free(tickets);
}

/* ---- rows in ---- */

static int open_row(struct tickets *tickets, const struct row *row, struct tickets_key *ret_key,
                    struct err_info *err)
{
    uint8_t name[TICKET_NAME_BYTES];
    uint8_t form[TICKETS_FORM_BYTES];
    if (tickets_row_name(row->id, row->id_len, name) != RC_OK) {
        return err_set(err, RC_CORRUPT, "its id is no name of a key");
    }
    if (row->value_len != SEALED_BYTES) {
        return err_set(err, RC_CORRUPT, "it has %u bytes; wants %d", row->value_len, SEALED_BYTES);
    }
    const struct seal_row of = {TICKETS_ROW_KIND, row->id, row->id_len};
    int rc = row_seal_open(tickets->seal, &of, row->value, row->value_len, form, err);
    rc = rc == RC_OK ? tickets_row_decode(form, sizeof(form), ret_key, err) : rc;
    if (rc == RC_OK && memcmp(ret_key->name, name, sizeof(name)) != 0) {
        rc = err_set(err, RC_CORRUPT, "it holds the key of another name");
    }
    crypto_wipe(form, sizeof(form));
    return rc;
}

void tickets_apply(struct tickets *tickets, const struct row *row)
{
    struct tickets_key key = {0};
    struct err_info err = {0};
    tickets->turned_ms = 0;
    if (!row_is_live(row)) {
        if (tickets_row_name(row->id, row->id_len, key.name) == RC_OK) {
            tickets_core_remove(tickets->core, key.name);
        }
        return;
    }
    if (open_row(tickets, row, &key, &err) != RC_OK) {
        tickets->damaged++;
        log_error("a session ticket key cannot be read and is ignored",
                  "id=%.*s written_by=%016" PRIx64 " reason=\"%s\"", (int)MIN(row->id_len, 40),
                  row->id, row->dot.origin.node, err.text);
    } else {
        key.hlc = row->hlc;
        if (!tickets_core_put(tickets->core, &key)) {
            log_warn("too many session ticket keys", "ignored=%.*s", NAME_SHOWN, row->id);
        }
    }
    crypto_wipe(&key, sizeof(key));
}

/* ---- the world ---- */

static struct tickets_settings read_settings(const struct node *node)
{
    const struct object *object = objects_find(node->objects, kind_by_name("Settings"), "default");
    const Skein__SettingsSpec *spec =
        object != NULL ? (const Skein__SettingsSpec *)(const void *)object->message->spec : NULL;
    const Skein__SettingsTickets *own =
        spec != NULL && spec->tls != NULL ? spec->tls->tickets : NULL;
    if (own == NULL) {
        return tickets_settings_of(true, 0, 0);
    }
    return tickets_settings_of(!own->has_enabled || own->enabled,
                               own->rotation != NULL ? own->rotation->ms : 0,
                               own->life != NULL ? own->life->ms : 0);
}

static void read_world(struct tickets *tickets, struct tickets_world *ret_world)
{
    const struct gossip *core = gossip_net_core(tickets->node->net);
    size_t count = gossip_member_count(core);
    if (count > tickets->member_size) {
        tickets->member_size = count;
        tickets->members = mem_grow(tickets->members, count, sizeof(*tickets->members));
    }
    for (size_t i = 0; i < count; i++) {
        const struct gossip_member *member = gossip_member_at(core, i);
        tickets->members[i] = (struct tickets_member){
            .id = member->id,
            .is_self = member->is_self,
            .is_up = member->state <= MEMBER_SUSPECT,
            .is_ready = member->ready,
            .in_step = member->is_self || (member->heard_ms != 0 &&
                                           member->frontier_hash == gossip_frontier_hash(core)),
        };
    }
    *ret_world = (struct tickets_world){
        .wall_ms = time_wall_ms(),
        .members = tickets->members,
        .member_count = count,
        .may_write = tickets->node->phase == NODE_SERVING && gossip_writable(core),
    };
}

/* ---- keys out ---- */

static void publish(struct tickets *tickets)
{
    struct proxy *proxy = tickets->node->proxy;
    struct tickets_settings settings = read_settings(tickets->node);
    if (proxy == NULL) {
        return;
    }
    struct ticket_key keys[TICKET_KEYS_MAX];
    size_t count = settings.enabled ? tickets_core_ring(tickets->core, keys) : 0;
    struct ticket_ring *ring = NULL;
    if (count > 0) {
        ring = ticket_ring_new(keys, count, settings.life_s);
        crypto_wipe(keys, sizeof(keys));
    }
    proxy_set_tickets(proxy, ring);
    ticket_ring_unref(ring);
}

void tickets_attach(struct tickets *tickets)
{
    tickets->turned_ms = 0;
    tickets_turn(tickets);
    publish(tickets);
}

/* ---- rows out ---- */

/* One change-set: a key (NULL: none) and deletions, whose ids are given as names. */
struct batch {
    struct gossip_change changes[TICKETS_HELD_MAX + 1];
    char ids[TICKETS_HELD_MAX + 1][TICKETS_ID_LEN + 1];
    uint8_t value[SEALED_BYTES];
    size_t count;
};

static void batch_drop(struct batch *batch, const uint8_t name[TICKET_NAME_BYTES])
{
    char *id = batch->ids[batch->count];
    tickets_row_id(name, id);
    batch->changes[batch->count++] = (struct gossip_change){
        .kind = TICKETS_ROW_KIND, .flags = ROW_TOMBSTONE, .id = id, .id_len = TICKETS_ID_LEN};
}

static void batch_make(struct tickets *tickets, struct batch *batch, const struct tickets_key *form)
{
    struct tickets_key key = *form;
    uint8_t bytes[TICKETS_FORM_BYTES];
    char *id = batch->ids[batch->count];
    rng_secret(key.name, sizeof(key.name));
    rng_secret(key.secret, sizeof(key.secret));
    tickets_row_id(key.name, id);
    tickets_row_encode(&key, bytes);
    const struct seal_row of = {TICKETS_ROW_KIND, id, TICKETS_ID_LEN};
    row_seal_close(tickets->seal, &of, bytes, sizeof(bytes), batch->value);
    crypto_wipe(&key, sizeof(key));
    crypto_wipe(bytes, sizeof(bytes));
    batch->changes[batch->count++] = (struct gossip_change){.kind = TICKETS_ROW_KIND,
                                                            .flags = ROW_SECRET,
                                                            .id = id,
                                                            .id_len = TICKETS_ID_LEN,
                                                            .value = batch->value,
                                                            .value_len = sizeof(batch->value)};
}

static int batch_write(struct tickets *tickets, const struct batch *batch, uint64_t *ret_write,
                       struct err_info *err)
{
    return gossip_write(gossip_net_core(tickets->node->net), batch->changes, batch->count,
                        gossip_net_now(), ret_write, err);
}

static void write_todo(struct tickets *tickets, const struct tickets_todo *todo)
{
    static struct log_limit limit;
    uint32_t suppressed = 0;
    struct batch *batch = mem_new(sizeof(*batch));
    struct err_info err = {0};
    uint64_t write;
    if (todo->make) {
        batch_make(tickets, batch, &todo->key);
    }
    for (size_t i = 0; i < todo->drop_count; i++) {
        batch_drop(batch, todo->drop[i]);
    }
    int rc = batch_write(tickets, batch, &write, &err);
    if (rc == RC_OK && todo->make) {
        log_info("session ticket key made", "epoch=%" PRIu64 " name=%.*s", todo->key.epoch,
                 NAME_SHOWN, batch->ids[0]);
    } else if (rc != RC_OK && rc != RC_BUSY && log_limit_pass(&limit, 1, &suppressed)) {
        log_warn("session ticket keys cannot be written", "reason=\"%s\" left_out=%u",
                 err.text[0] != '\0' ? err.text : rc_text(rc), suppressed);
    }
    mem_free(batch);
}

void tickets_turn(struct tickets *tickets)
{
    uint64_t now_ms = time_mono_ms();
    if (tickets->turned_ms != 0 && now_ms - tickets->turned_ms < TURN_MS) {
        return;
    }
    tickets->turned_ms = MAX(now_ms, (uint64_t)1);
    struct tickets_settings settings = read_settings(tickets->node);
    struct tickets_world world;
    struct tickets_todo todo;
    read_world(tickets, &world);
    tickets_core_step(tickets->core, &settings, &world, &todo);
    if (todo.ring_changed) {
        publish(tickets);
    }
    if (todo.make || todo.drop_count > 0) {
        write_todo(tickets, &todo);
    }
}

/* ---- administrators ---- */

static const char *state_text(enum ticket_state state)
{
    switch (state) {
    case TICKET_PENDING:
        return "Pending";
    case TICKET_ACTIVE:
        return "Active";
    case TICKET_RETIRING:
        break;
    }
    return "Retiring";
}

/* Its name while it is a member, else its id. */
static void creator_text(const struct tickets *tickets, uint64_t id, char *out, size_t size)
{
    const struct gossip *core = gossip_net_core(tickets->node->net);
    (void)snprintf(out, size, "%016" PRIx64, id);
    for (size_t i = 0; i < gossip_member_count(core); i++) {
        const struct gossip_member *member = gossip_member_at(core, i);
        if (member->id == id) {
            (void)snprintf(out, size, "%s", member->name);
        }
    }
}

size_t tickets_list(struct tickets *tickets, struct admin_ticket_key *ret_keys, size_t cap)
{
    size_t count = tickets_core_count(tickets->core);
    for (size_t i = 0; i < MIN(count, cap); i++) {
        struct tickets_shown shown;
        char id[TICKETS_ID_LEN + 1];
        tickets_core_at(tickets->core, i, &shown);
        tickets_row_id(shown.key->name, id);
        ret_keys[i] = (struct admin_ticket_key){
            .state = state_text(shown.state),
            .epoch = shown.key->epoch,
            .created_ms = hlc_wall_ms(shown.key->hlc),
            .not_before_ms = shown.key->not_before_ms,
            .expires_ms = shown.expires_ms,
        };
        (void)snprintf(ret_keys[i].name, sizeof(ret_keys[i].name), "%.*s", NAME_SHOWN, id);
        creator_text(tickets, shown.key->creator, ret_keys[i].creator, sizeof(ret_keys[i].creator));
    }
    return count;
}

int tickets_rotate(struct tickets *tickets, bool revoke, uint64_t *ret_write, struct err_info *err)
{
    struct tickets_settings settings = read_settings(tickets->node);
    struct tickets_key form;
    if (!settings.enabled) {
        return err_set(err, RC_CONFLICT, "session tickets are off (Settings tls.tickets.enabled)");
    }
    if (!gossip_writable(gossip_net_core(tickets->node->net))) {
        return err_set(err, RC_AGAIN, "this node takes no writes yet; try again");
    }
    if (!tickets_core_rotate(tickets->core, &settings, time_wall_ms(), revoke, &form)) {
        return err_set(err, RC_CONFLICT,
                       "there are %zu keys that tickets may be sealed with, and no more may be; "
                       "wait until one expires, or revoke them all",
                       tickets_core_count(tickets->core));
    }
    struct batch *batch = mem_new(sizeof(*batch));
    batch_make(tickets, batch, &form);
    for (size_t i = 0; revoke && i < tickets_core_count(tickets->core); i++) {
        struct tickets_shown shown;
        tickets_core_at(tickets->core, i, &shown);
        batch_drop(batch, shown.key->name);
    }
    int rc = batch_write(tickets, batch, ret_write, err);
    if (rc == RC_OK) {
        log_info("session ticket key made", "epoch=%" PRIu64 " name=%.*s asked=yes revoked=%zu",
                 form.epoch, NAME_SHOWN, batch->ids[0], batch->count - 1);
    }
    mem_free(batch);
    return rc;
}

void tickets_metrics(const struct tickets *tickets, struct buf *out)
{
    size_t counts[TICKET_RETIRING + 1] = {0};
    uint64_t active_ms = 0;
    for (size_t i = 0; i < tickets_core_count(tickets->core); i++) {
        struct tickets_shown shown;
        tickets_core_at(tickets->core, i, &shown);
        counts[shown.state]++;
        active_ms = shown.state == TICKET_ACTIVE ? shown.key->not_before_ms : active_ms;
    }
    (void)buf_puts(out, "# HELP skein_ticket_keys Keys of session tickets by state.\n"
                        "# TYPE skein_ticket_keys gauge\n");
    for (int i = TICKET_PENDING; i <= TICKET_RETIRING; i++) {
        (void)buf_printf(out, "skein_ticket_keys{state=\"%s\"} %zu\n",
                         state_text((enum ticket_state)i), counts[i]);
    }
    uint64_t now_ms = time_wall_ms();
    uint64_t age_ms = active_ms != 0 && now_ms > active_ms ? now_ms - active_ms : 0;
    (void)buf_printf(out,
                     "# HELP skein_ticket_key_age_seconds Age of the key that seals tickets.\n"
                     "# TYPE skein_ticket_key_age_seconds gauge\n"
                     "skein_ticket_key_age_seconds %.3f\n"
                     "# HELP skein_ticket_keys_damaged_total Keys that could not be read.\n"
                     "# TYPE skein_ticket_keys_damaged_total counter\n"
                     "skein_ticket_keys_damaged_total %" PRIu64 "\n",
                     (double)age_ms / 1000.0, tickets->damaged);
}
