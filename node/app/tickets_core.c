/*
 * The life of ticket keys; see the header.
 *
 * Keys are held in the order in which they are preferred: newest epoch first, within an epoch by
 * (hlc, name). A key that was once seen to be had by all (`settled`) stays so; which one seals is
 * decided anew at each step: the first that is due and settled, or due for so long that we stop
 * waiting for members that do not have it. When none is, the oldest, which most members know.
 */
#include "node/app/tickets_core.h"

#include "node/base/check.h"
#include "node/base/hash.h"
#include "node/base/mem.h"
#include "node/tls/crypto.h"

#include <stdlib.h>
#include <string.h>

enum {
    WAIT_MAX_MS = 5 * 60 * 1000, /* for members, and between making and use */
    WAIT_MIN_MS = 250,
    WAIT_ASKED_MS = 10 * 1000, /* the same when a person waits */
    RANK_MAX_MS = 30 * 1000,   /* a rank of the rendezvous order waits so much longer */
    RANK_MIN_MS = 200,
    MAKE_AGAIN_MS = 2000, /* a write that we asked for may take so long to show */
    LISTED_MAX = 1024,    /* members whose having a key is remembered */
};

struct held {
    struct tickets_key key;
    bool settled; /* all live members had it at one time */
    bool seals;
    bool is_void; /* wiped: expired, revoked or one too many */
    uint64_t expires_ms;
    uint64_t has[LISTED_MAX]; /* ids of members that have it */
    size_t has_count;
};

struct tickets_core {
    uint64_t self;
    struct held *held[TICKETS_HELD_MAX];
    size_t count;
    uint64_t ring_hash; /* of what was last told */
    uint64_t bare_ms;   /* since when we could have made a first key; 0: we have keys */
    uint64_t made_ms;   /* when we last asked for one */
};

/* ---- settings ---- */

struct tickets_settings tickets_settings_of(bool enabled, uint64_t rotation_ms, uint64_t life_ms)
{
    uint64_t rotation = rotation_ms == 0 ? TICKETS_ROTATION_DEFAULT_S : rotation_ms / 1000;
    rotation = MIN(MAX(rotation, (uint64_t)TICKETS_ROTATION_MIN_S), (uint64_t)UINT32_MAX);
    uint64_t life = life_ms == 0 ? TICKETS_ROTATION_DEFAULT_S : life_ms / 1000;
    life = MIN(MIN(MAX(life, (uint64_t)1), rotation), (uint64_t)TICKET_LIFE_MAX_S);
    return (struct tickets_settings){
        .enabled = enabled, .rotation_s = (uint32_t)rotation, .life_s = (uint32_t)life};
}

/* How long members are waited for: a fraction of short epochs. */
static uint64_t wait_ms(const struct tickets_settings *settings)
{
    uint64_t quarter = (uint64_t)settings->rotation_s * 1000 / 4;
    return MIN(MAX(quarter, (uint64_t)WAIT_MIN_MS), (uint64_t)WAIT_MAX_MS);
}

static uint64_t rank_ms(const struct tickets_settings *settings)
{
    uint64_t part = (uint64_t)settings->rotation_s * 1000 / 16;
    return MIN(MAX(part, (uint64_t)RANK_MIN_MS), (uint64_t)RANK_MAX_MS);
}

/* ---- the set ---- */

struct tickets_core *tickets_core_new(uint64_t self)
{
    struct tickets_core *core = mem_new(sizeof(*core));
    core->self = self;
    return core;
}

static void held_free(struct held *held)
{
    crypto_wipe(&held->key, sizeof(held->key));
    mem_free(held);
}

void tickets_core_free(struct tickets_core *core)
{
    if (core == NULL) {
        return;
    }
    for (size_t i = 0; i < core->count; i++) {
        held_free(core->held[i]);
    }
    mem_free(core);
}

static int compare_held(const void *a, const void *b)
{
    const struct tickets_key *x = &(*(struct held *const *)a)->key;
    const struct tickets_key *y = &(*(struct held *const *)b)->key;
    if (x->epoch != y->epoch) {
        return x->epoch > y->epoch ? -1 : 1;
    }
    if (x->hlc != y->hlc) {
        return x->hlc < y->hlc ? -1 : 1;
    }
    return memcmp(x->name, y->name, TICKET_NAME_BYTES);
}

static void sort(struct tickets_core *core)
{
    if (core->count > 1) {
        qsort(core->held, core->count, sizeof(core->held[0]), compare_held);
    }
}

static void remove_at(struct tickets_core *core, size_t idx)
{
    held_free(core->held[idx]);
    core->count--;
    memmove(&core->held[idx], &core->held[idx + 1],
            (core->count - idx) * sizeof(core->held[0])); /* the order stays */
}

void tickets_core_remove(struct tickets_core *core, const uint8_t name[TICKET_NAME_BYTES])
{
    for (size_t i = 0; i < core->count; i++) {
        if (memcmp(core->held[i]->key.name, name, TICKET_NAME_BYTES) == 0) {
            remove_at(core, i);
            return;
        }
    }
}

bool tickets_core_put(struct tickets_core *core, const struct tickets_key *key)
{
    tickets_core_remove(core, key->name);
    if (core->count == TICKETS_HELD_MAX) {
        if (core->held[core->count - 1]->key.epoch >= key->epoch) {
            return false;
        }
        remove_at(core, core->count - 1);
    }
    struct held *held = mem_new(sizeof(*held));
    held->key = *key;
    core->held[core->count++] = held;
    sort(core);
    return true;
}

/* ---- who has a key ---- */

static bool has_it(const struct held *held, uint64_t member)
{
    for (size_t i = 0; i < held->has_count; i++) {
        if (held->has[i] == member) {
            return true;
        }
    }
    return false;
}

/* Whoever has all writes that we have, has all keys that we have. */
static void learn(struct held *held, const struct tickets_world *world)
{
    bool all = true;
    for (size_t i = 0; i < world->member_count && !held->settled; i++) {
        const struct tickets_member *member = &world->members[i];
        if (member->is_self || !member->is_up || has_it(held, member->id)) {
            continue;
        }
        if (member->in_step && held->has_count < LISTED_MAX) {
            held->has[held->has_count++] = member->id;
        } else {
            all = false;
        }
    }
    held->settled = held->settled || all;
}

/* ---- which one seals ---- */

static uint64_t give_up_ms(const struct tickets_key *key, const struct tickets_settings *settings)
{
    uint64_t wait = wait_ms(settings);
    if ((key->flags & (TICKETS_FIRST | TICKETS_REVOKE)) != 0) {
        return 0;
    }
    if ((key->flags & TICKETS_ASKED) != 0) {
        wait = MIN(wait, (uint64_t)WAIT_ASKED_MS);
    }
    return key->not_before_ms + wait;
}

static void choose(struct tickets_core *core, const struct tickets_settings *settings,
                   const struct tickets_world *world)
{
    struct held *chosen = NULL;
    struct held *oldest = NULL;
    for (size_t i = 0; i < core->count; i++) {
        struct held *held = core->held[i];
        held->seals = false;
        if (held->is_void) {
            continue;
        }
        learn(held, world);
        bool is_due = world->wall_ms >= held->key.not_before_ms ||
                      (held->key.flags & (TICKETS_FIRST | TICKETS_REVOKE)) != 0;
        bool is_had = held->settled || world->wall_ms >= give_up_ms(&held->key, settings);
        if (chosen == NULL && is_due && is_had) {
            chosen = held;
        }
        /* The lowest epoch; within it the preferred one, which stands first. */
        if (oldest == NULL || held->key.epoch < oldest->key.epoch) {
            oldest = held;
        }
    }
    chosen = chosen != NULL ? chosen : oldest;
    if (chosen != NULL) {
        chosen->seals = true;
        chosen->settled = true;
    }
}

static const struct held *sealing(const struct tickets_core *core)
{
    for (size_t i = 0; i < core->count; i++) {
        if (core->held[i]->seals) {
            return core->held[i];
        }
    }
    return NULL;
}

/* ---- what has had its time ---- */

static void void_key(struct held *held, uint64_t wall_ms)
{
    held->is_void = true;
    held->seals = false;
    held->expires_ms = held->expires_ms == 0 ? wall_ms : MIN(held->expires_ms, wall_ms);
    crypto_wipe(held->key.secret, sizeof(held->key.secret));
}

static void void_revoked(struct tickets_core *core, uint64_t wall_ms)
{
    uint64_t floor = 0;
    for (size_t i = 0; i < core->count; i++) {
        const struct tickets_key *key = &core->held[i]->key;
        floor = (key->flags & TICKETS_REVOKE) != 0 ? MAX(floor, key->hlc) : floor;
    }
    size_t kept = 0;
    for (size_t i = 0; i < core->count; i++) {
        struct held *held = core->held[i];
        kept += held->is_void ? 0 : 1;
        if (!held->is_void && (held->key.hlc < floor || kept > TICKET_KEYS_MAX)) {
            void_key(held, wall_ms);
        }
    }
}

/* No ticket is sealed with a key once a later epoch is in use: from then on one ticket life. */
static void set_expiry(struct tickets_core *core, const struct tickets_settings *settings,
                       uint64_t wall_ms)
{
    const struct held *active = sealing(core);
    for (size_t i = 0; active != NULL && i < core->count; i++) {
        struct held *held = core->held[i];
        if (held->is_void) {
            continue;
        }
        uint64_t successor_ms = UINT64_MAX;
        for (size_t j = 0; j < core->count; j++) {
            const struct tickets_key *other = &core->held[j]->key;
            if (!core->held[j]->is_void && other->epoch > held->key.epoch &&
                other->epoch <= active->key.epoch) {
                successor_ms = MIN(successor_ms, other->not_before_ms);
            }
        }
        held->expires_ms = 0;
        if (successor_ms == UINT64_MAX) {
            continue;
        }
        uint64_t life_ms = (uint64_t)MAX(settings->life_s, held->key.life_s) * 1000;
        held->expires_ms = successor_ms + life_ms + 2 * wait_ms(settings);
        if (wall_ms >= held->expires_ms) {
            void_key(held, wall_ms);
        }
    }
}

/* ---- the next one ---- */

static uint64_t score(uint64_t node, uint64_t epoch)
{
    uint64_t input[2] = {node, epoch};
    static const uint64_t keys[2] = {0x7469636b65740001, 0x7469636b65740002}; /* "ticket" */
    return hash_sip64(keys[0], keys[1], input, sizeof(input));
}

/* How many live members come before us for this epoch. */
static uint64_t rank_of_self(const struct tickets_core *core, const struct tickets_world *world,
                             uint64_t epoch)
{
    uint64_t own = score(core->self, epoch);
    uint64_t rank = 0;
    for (size_t i = 0; i < world->member_count; i++) {
        const struct tickets_member *member = &world->members[i];
        bool counts = !member->is_self && member->is_up && member->is_ready;
        rank += counts && score(member->id, epoch) > own ? 1 : 0;
    }
    return rank;
}

static uint64_t newest_epoch(const struct tickets_core *core)
{
    return core->count > 0 ? core->held[0]->key.epoch : 0;
}

static bool has_pending(const struct tickets_core *core, const struct held *active)
{
    for (size_t i = 0; i < core->count; i++) {
        if (!core->held[i]->is_void && core->held[i]->key.epoch > active->key.epoch) {
            return true;
        }
    }
    return false;
}

static void consider_making(struct tickets_core *core, const struct tickets_settings *settings,
                            const struct tickets_world *world, struct tickets_todo *todo)
{
    const struct held *active = sealing(core);
    uint64_t now = world->wall_ms;
    core->bare_ms = active != NULL ? 0 : core->bare_ms;
    if (!settings->enabled || !world->may_write) {
        return;
    }
    if (active == NULL && core->bare_ms == 0) {
        core->bare_ms = MAX(now, (uint64_t)1);
    }
    if (active != NULL && has_pending(core, active)) {
        return; /* it is there already */
    }
    uint64_t half_ms = (uint64_t)settings->rotation_s * 500;
    uint64_t begin = active != NULL ? active->key.not_before_ms + half_ms : core->bare_ms;
    uint64_t epoch = newest_epoch(core) + 1;
    bool is_turn = now >= begin + rank_of_self(core, world, epoch) * rank_ms(settings);
    bool is_busy = core->made_ms != 0 && now >= core->made_ms &&
                   now - core->made_ms < MIN((uint64_t)MAKE_AGAIN_MS, half_ms);
    if (!is_turn || is_busy) {
        return;
    }
    core->made_ms = now;
    todo->make = true;
    todo->key = (struct tickets_key){
        .epoch = epoch,
        .not_before_ms = now,
        .creator = core->self,
        .life_s = settings->life_s,
        .flags = TICKETS_FIRST,
    };
    if (active != NULL) {
        todo->key.flags = 0;
        todo->key.not_before_ms =
            MAX(active->key.not_before_ms + 2 * half_ms, now + wait_ms(settings));
    }
}

bool tickets_core_rotate(const struct tickets_core *core, const struct tickets_settings *settings,
                         uint64_t wall_ms, bool revoke, struct tickets_key *ret_key)
{
    if (!revoke && tickets_core_count(core) >= TICKET_KEYS_MAX - 1) {
        return false;
    }
    *ret_key = (struct tickets_key){
        .epoch = newest_epoch(core) + 1,
        .not_before_ms = wall_ms,
        .creator = core->self,
        .life_s = settings->life_s,
        .flags = TICKETS_ASKED | (revoke ? TICKETS_REVOKE : 0u),
    };
    return true;
}

/* ---- step ---- */

/* The first in the order for the row's epoch deletes it, the others if it does not. */
static void consider_dropping(const struct tickets_core *core,
                              const struct tickets_settings *settings,
                              const struct tickets_world *world, struct tickets_todo *todo)
{
    for (size_t i = 0; world->may_write && i < core->count; i++) {
        const struct held *held = core->held[i];
        if (!held->is_void) {
            continue;
        }
        uint64_t rank = rank_of_self(core, world, held->key.epoch);
        if (world->wall_ms >= held->expires_ms + rank * rank_ms(settings)) {
            memcpy(todo->drop[todo->drop_count++], held->key.name, TICKET_NAME_BYTES);
        }
    }
}

static enum ticket_state state_of(const struct held *held, const struct held *active)
{
    if (held->seals) {
        return TICKET_ACTIVE;
    }
    return active != NULL && held->key.epoch > active->key.epoch ? TICKET_PENDING : TICKET_RETIRING;
}

static uint64_t ring_hash(const struct tickets_core *core, const struct tickets_settings *settings)
{
    const struct held *active = sealing(core);
    uint64_t hash = hash_mix64(((uint64_t)settings->life_s << 1) | (settings->enabled ? 1 : 0));
    for (size_t i = 0; i < core->count; i++) {
        const struct held *held = core->held[i];
        if (!held->is_void) {
            uint64_t state = (uint64_t)state_of(held, active);
            hash = hash_sip64(hash, state, held->key.name, TICKET_NAME_BYTES);
        }
    }
    return hash;
}

void tickets_core_step(struct tickets_core *core, const struct tickets_settings *settings,
                       const struct tickets_world *world, struct tickets_todo *ret_todo)
{
    *ret_todo = (struct tickets_todo){0};
    void_revoked(core, world->wall_ms);
    choose(core, settings, world);
    set_expiry(core, settings, world->wall_ms);
    consider_making(core, settings, world, ret_todo);
    consider_dropping(core, settings, world, ret_todo);
    uint64_t hash = ring_hash(core, settings);
    ret_todo->ring_changed = hash != core->ring_hash;
    core->ring_hash = hash;
}

/* ---- reading ---- */

size_t tickets_core_count(const struct tickets_core *core)
{
    size_t count = 0;
    for (size_t i = 0; i < core->count; i++) {
        count += core->held[i]->is_void ? 0 : 1;
    }
    return count;
}

void tickets_core_at(const struct tickets_core *core, size_t idx, struct tickets_shown *ret_shown)
{
    for (size_t i = 0; i < core->count; i++) {
        const struct held *held = core->held[i];
        if (!held->is_void && idx-- == 0) {
            *ret_shown = (struct tickets_shown){
                .key = &held->key,
                .state = state_of(held, sealing(core)),
                .expires_ms = held->expires_ms,
            };
            return;
        }
    }
    ASSERT(!"an index below tickets_core_count");
}

size_t tickets_core_ring(const struct tickets_core *core,
                         struct ticket_key ret_keys[TICKET_KEYS_MAX])
{
    size_t count = MIN(tickets_core_count(core), (size_t)TICKET_KEYS_MAX);
    for (size_t i = 0; i < count; i++) {
        struct tickets_shown shown;
        tickets_core_at(core, i, &shown);
        memcpy(ret_keys[i].name, shown.key->name, TICKET_NAME_BYTES);
        memcpy(ret_keys[i].secret, shown.key->secret, TICKET_SECRET_BYTES);
        ret_keys[i].state = shown.state;
    }
    return count;
}
