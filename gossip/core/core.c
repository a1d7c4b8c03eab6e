/*
 * The facade: takes events, hands them to the file that knows, and ends each one by bringing what
 * changed to the disk and telling the driver when to call again.
 */
#include "gossip/core/core.h"
#include "node/base/check.h"
#include "node/base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- small things that all files use ---- */

void core_wake(struct gossip *core, uint64_t at_ms)
{
    core->deadline_ms = MIN(core->deadline_ms, MAX(at_ms, core->now.mono_ms));
}

void core_event(struct gossip *core, enum gossip_event event, const struct member *member,
                const char *fmt, ...)
{
    char text[256];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args); /* cut text is still text */
    va_end(args);
    core->ops->event(core->ctx, event, member != NULL ? &member->pub : NULL, text);
}

double core_seconds(int64_t ms)
{
    return (double)(ms < 0 ? -ms : ms) / 1000.0;
}

void core_finish(struct gossip *core)
{
    if (!core->started) {
        return;
    }
    struct gossip_member *self = &core->self->pub;
    self->revision = core->kv.revision;
    self->frontier_hash = core->kv.frontier_hash;
    self->acked_seq = kv_frontier(&core->kv, core_origin(core));
    self->heard_ms = core->now.mono_ms;
    persist_flush(core);
    sync_grant(core);
    if (core->acks_due) {
        rumour_send_acks(core);
    }
    if (core->deadline_ms != core->told_deadline_ms) {
        core->told_deadline_ms = core->deadline_ms;
        core->ops->schedule(core->ctx, core->deadline_ms);
    }
}

/* ---- life ---- */

static void set_default(uint32_t *value, uint32_t fallback)
{
    *value = *value != 0 ? *value : fallback;
}

struct gossip *gossip_new(const struct gossip_self *self, const struct gossip_settings *settings,
                          const struct gossip_ops *ops, void *ctx, uint64_t seed)
{
    static const char *const names[] = {
#define X(name) #name,
        CORE_COUNTERS(X)
#undef X
    };
    ASSERT(self->id != 0 && self->generation != 0);
    struct gossip *core = mem_new(sizeof(*core));
    core->ops = ops;
    core->ctx = ctx;
    core->settings = *settings;
    struct gossip_settings *set = &core->settings;
    set_default(&set->probe_interval_ms, 500);
    set_default(&set->probe_timeout_ms, 200);
    set_default(&set->gossip_interval_ms, 200);
    set_default(&set->sync_interval_ms, 1000);
    set_default(&set->suspicion_mult, 4);
    set_default(&set->suspicion_max_mult, 6);
    set_default(&set->fanout, 3);
    set_default(&set->clock_limit_ms, 500);
    set->fanout = MIN(set->fanout, (uint32_t)GOSSIP_MEMBERS_MAX);
    for (size_t i = 0; i < COUNTERS_COUNT; i++) {
        core->counters[i].name = names[i];
    }
    core->deadline_ms = NEVER;
    core->told_deadline_ms = NEVER;
    rng_init(&core->rng, seed);
    kv_init(&core->kv, rng_next(&core->rng));

    struct gossip_member pub = {
        .id = self->id,
        .generation = self->generation,
        .incarnation = self->incarnation,
        .state = MEMBER_ALIVE,
        .addr = self->addr,
        .is_self = true,
    };
    memcpy(pub.name, self->name, sizeof(pub.name) - 1);
    memcpy(pub.version, self->version, sizeof(pub.version) - 1);
    core->self = member_add(core, &pub);
    core->fresh = self->incarnation == 0; /* else it ran before, whatever else is known */
    return core;
}

void gossip_free(struct gossip *core)
{
    if (core == NULL) {
        return;
    }
    stream_deinit(core);
    write_deinit(core);
    rumour_deinit(core);
    persist_deinit(core);
    kv_deinit(&core->kv);
    struct member *member = NULL;
    struct member *next = NULL;
    HASH_ITER (hh, core->by_id, member, next) {
        HASH_DEL(core->by_id, member);
        mem_free(member);
    }
    MEM_FREE(core->members);
    MEM_FREE(core->probe_order);
    mem_free(core);
}

int gossip_load_row(struct gossip *core, const struct row *row, struct err_info *err)
{
    ASSERT(!core->started);
    int rc = row_check(row, err);
    if (rc != RC_OK) {
        return rc;
    }
    bool changed = false;
    core->fresh = false;
    return apply_row(core, row, false, &changed)
               ? RC_OK
               : err_set(err, RC_INVALID, "more keys than a table may have");
}

int gossip_load_frontier(struct gossip *core, const struct dot *dot, struct err_info *err)
{
    ASSERT(!core->started);
    if (dot->origin.node == 0 || dot->origin.generation == 0) {
        return err_set(err, RC_INVALID, "a frontier entry names no origin");
    }
    core->fresh = false;
    (void)kv_advance(&core->kv, dot->origin, dot->seq, false); /* an entry of 0 says nothing */
    return RC_OK;
}

int gossip_load_member(struct gossip *core, const struct gossip_member *member,
                       struct err_info *err)
{
    ASSERT(!core->started);
    if (member->id == 0 || member->generation == 0 || member->state > MEMBER_LEFT ||
        member->addr.sa.sa_family == AF_UNSPEC ||
        memchr(member->name, '\0', sizeof(member->name)) == NULL) {
        return err_set(err, RC_INVALID, "a stored member is damaged");
    }
    core->fresh = false;
    if (member->id == core->self->pub.id || member_find(core, member->id) != NULL) {
        return RC_OK;
    }
    struct gossip_member pub = {
        .id = member->id,
        .generation = member->generation,
        .incarnation = member->incarnation,
        .state = member->state == MEMBER_SUSPECT ? MEMBER_ALIVE : member->state,
        .addr = member->addr,
    };
    memcpy(pub.name, member->name, sizeof(pub.name));
    memcpy(pub.version, member->version, sizeof(pub.version) - 1);
    struct member *loaded = member_add(core, &pub);
    if (loaded == NULL) {
        return err_set(err, RC_INVALID, "more members than %d", GOSSIP_MEMBERS_MAX);
    }
    loaded->loaded = pub.state == MEMBER_ALIVE;
    loaded->loaded_dead = pub.state == MEMBER_DEAD;
    return RC_OK;
}

void gossip_start(struct gossip *core, const struct addr *join, size_t join_count,
                  struct gossip_now now)
{
    ASSERT(!core->started);
    core->now = now;
    clock_event(core);
    const struct kv_entry *entry = NULL;
    for (entry = core->kv.entries; entry != NULL; entry = entry->hh.next) {
        hlc_observe(core, entry->row->hlc, &entry->row->dot.origin);
    }
    core->started = true;
    for (size_t i = 0; i < join_count && core->join_count < JOIN_MAX; i++) {
        if (addr_compare(&join[i], &core->self->pub.addr) != 0) {
            core->join[core->join_count++] = join[i];
        }
    }
    core->incarnation_limit = core->self->pub.incarnation + INCARNATION_STEP;
    core->limit_dirty = true;
    core->last_seq = kv_frontier(&core->kv, core_origin(core));
    core->self->pub.state_since_ms = now.mono_ms;
    for (size_t i = 1; i < core->member_count; i++) {
        core->members[i]->pub.state_since_ms = now.mono_ms;
        core->members[i]->retry_ms = now.mono_ms + rng_below(&core->rng, 1000);
        core->members[i]->retry_wait_ms = 1000;
    }
    core->gossip_next_ms = now.mono_ms;
    core->sync_next_ms = now.mono_ms + rng_below(&core->rng, core->settings.sync_interval_ms);
    rumour_fact(core, core->self);
    generation_start(core);
    probe_start(core);
    gossip_tick(core, now);
}

void gossip_leave(struct gossip *core, struct gossip_now now)
{
    core->now = now;
    if (core->leaving) {
        return;
    }
    core->leaving = true;
    member_set_state(core, core->self, MEMBER_LEFT, "said by itself");
    rumour_fact(core, core->self);
    struct member *peers[GOSSIP_MEMBERS_MAX];
    size_t count = member_pick(core, 0, peers, 4 * (size_t)core->settings.fanout);
    for (size_t i = 0; i < count; i++) {
        send_part(core, peers[i], NULL, NULL); /* the head of any datagram says it */
    }
    core_finish(core);
}

void gossip_set_ready(struct gossip *core, bool ready, struct gossip_now now)
{
    core->now = now;
    if (core->self->pub.ready != ready) {
        core->self->pub.ready = ready;
        struct member *peers[GOSSIP_MEMBERS_MAX];
        size_t count = member_pick(core, 0, peers, core->settings.fanout);
        for (size_t i = 0; i < count; i++) {
            send_summary(core, peers[i], false);
        }
    }
    core_finish(core);
}

/* ---- events ---- */

void gossip_tick(struct gossip *core, struct gossip_now now)
{
    if (!core->started) {
        return;
    }
    core->now = now;
    clock_event(core);
    core->deadline_ms = NEVER;      /* each of these names its own again */
    core->told_deadline_ms = NEVER; /* used up: one that is now again has to be told again */
    member_tick(core);
    probe_tick(core);
    relay_tick(core);
    join_tick(core);
    generation_tick(core);
    stream_tick(core);
    sync_tick(core);
    persist_tick(core);
    rumour_tick(core);
    core_finish(core);
}

void core_summary(struct gossip *core, struct member *member, const struct gossip_summary *summary)
{
    member->pub.ready = summary->ready;
    member->pub.revision = summary->revision;
    member->pub.frontier_hash = summary->frontier_hash;
    if (summary->acked_generation != 0) {
        member->pub.acked_seq = summary->acked_generation == core->self->pub.generation
                                    ? summary->acked_seq
                                    : member->pub.acked_seq;
        generation_told(core, member, summary->acked_generation,
                        MAX(summary->acked_seq, summary->known_seq));
    }
    member_check_name(core, member);
    sync_consider(core, member, summary);
}

static void on_part(struct gossip *core, struct member *from, const struct addr *addr,
                    const struct gossip_part *part, uint64_t peer_wall_ms)
{
    switch (part->kind) {
    case PART_PROBE:
        if (part->id == core->self->pub.id) {
            struct bundle bundle;
            bundle_init(core, &bundle);
            (void)bundle_add(
                &bundle,
                &(struct gossip_part){.kind = PART_REPLY, .nonce = part->nonce}); /* empty: fits */
            core->round_no++;
            rumour_fill(core, &bundle, from->pub.id);
            bundle_send(core, &bundle, addr, from);
        }
        break;
    case PART_REPLY:
        probe_on_reply(core, from, part->nonce, peer_wall_ms);
        break;
    case PART_RELAY:
        relay_start(core, part, from, addr);
        break;
    case PART_MISS:
        probe_on_miss(core, part->nonce);
        break;
    case PART_JOIN:
        join_on_ask(core, from, addr, part->nonce);
        break;
    case PART_GRANT:
        join_on_grant(core, from, addr, part, peer_wall_ms);
        break;
    case PART_FACT:
        member_hear(core, part->fact, HEARD_DATAGRAM, from, addr);
        break;
    case PART_CHANGE_SET:
        apply_change_set(core, part, from);
        break;
    case PART_UNSET:
    case PART_SYNC_OPEN:
    case PART_ROWS:
    case PART_MARK:
    case PART_CREDIT:
    case PART_END:
    case PART_DONE:
    case PART_AUDIT:
    case PART_BUCKETS:
    case PART_KIND_COUNT:
        break; /* not in datagrams */
    }
}

void gossip_datagram(struct gossip *core, const struct addr *from, uint64_t from_id,
                     const struct gossip_msg *msg, struct gossip_now now)
{
    if (!core->started) {
        return;
    }
    core->now = now;
    clock_event(core);
    core_count(core, COUNT_datagrams_received);
    if (msg->sender == NULL || msg->summary == NULL || msg->sender->id != from_id ||
        msg->sender->forget || from_id == core->self->pub.id) {
        core_count(core, COUNT_datagrams_refused);
        return;
    }
    member_hear(core, msg->sender, HEARD_DIRECT, NULL, from);
    for (size_t i = 0; i < msg->part_count; i++) {
        /* A part may make us forget the sender. */
        struct member *member = member_find(core, from_id);
        if (member == NULL) {
            break;
        }
        on_part(core, member, from, &msg->parts[i], msg->summary->wall_ms);
    }
    struct member *member = member_find(core, from_id);
    if (member != NULL) {
        /* After the parts: they may be what the summary speaks of. */
        core_summary(core, member, msg->summary);
    }
    core_finish(core);
}

void gossip_persisted(struct gossip *core, uint64_t token, int rc, struct gossip_now now)
{
    core->now = now;
    clock_event(core);
    bool known = write_persisted(core, token, rc) || persist_done(core, token, rc) ||
                 generation_persisted(core, token, rc);
    ASSERT(known);
    core_finish(core);
}

/* ---- reading ---- */

const struct row *gossip_find(const struct gossip *core, uint16_t kind, const char *id,
                              size_t id_len)
{
    const struct kv_entry *entry = kv_find(&core->kv, kind, id, id_len);
    return entry != NULL ? entry->row : NULL;
}

void gossip_each_row(const struct gossip *core, bool (*visit)(void *arg, const struct row *row),
                     void *arg)
{
    const struct kv_entry *entry = NULL;
    for (entry = core->kv.entries; entry != NULL; entry = entry->hh.next) {
        if (!visit(arg, entry->row)) {
            break;
        }
    }
}

uint64_t gossip_revision(const struct gossip *core)
{
    return core->kv.revision;
}

uint64_t gossip_frontier_hash(const struct gossip *core)
{
    return core->kv.frontier_hash;
}

uint64_t gossip_frontier_of(const struct gossip *core, struct origin origin)
{
    return kv_frontier(&core->kv, origin);
}

uint64_t gossip_row_count(const struct gossip *core)
{
    return core->kv.live_rows;
}

bool gossip_in_step(const struct gossip *core)
{
    return core->in_step;
}

struct origin gossip_origin(const struct gossip *core)
{
    return core_origin(core);
}

size_t gossip_counters(const struct gossip *core, const struct gossip_counter **ret_counters)
{
    *ret_counters = core->counters;
    return COUNTERS_COUNT;
}
