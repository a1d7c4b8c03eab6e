/*
 * The table of members and what is believed of each.
 *
 * Facts about one member are ordered by (generation, incarnation, state); the larger one holds,
 * whoever says it. Only the member itself raises its incarnation, so a false accusation is answered
 * by an alive fact that beats it:
 *
 *   state    suspect fact   dead fact   left fact   larger incarnation or generation
 *   alive    suspect        dead        left        what it says
 *   suspect  confirmed      dead        left        what it says
 *   dead     (stale)        -           left        what it says
 *   left     (stale)        (stale)     -           what it says
 *
 * Who repeats something stale is told what we know (it may be what keeps a member dead there), at
 * most once a second per member. Dead members stay in the table and are tried for ever.
 * Source: SWIM 4.2, clustering notes 1.5 and 1.6.
 */
#include "gossip/core/core.h"
#include "node/base/check.h"
#include "node/base/hash.h"
#include "node/base/mem.h"

#include <string.h>

static const uint64_t member_key = 0x6d656d6265727331U;

/* ---- table ---- */

struct member *member_find(const struct gossip *core, uint64_t id)
{
    struct member *member = NULL;
    HASH_FIND(hh, core->by_id, &id, sizeof(id), member);
    return member;
}

struct member *member_add(struct gossip *core, const struct gossip_member *pub)
{
    ASSERT(pub->id != 0 && member_find(core, pub->id) == NULL);
    if (core->member_count >= GOSSIP_MEMBERS_MAX) {
        return NULL;
    }
    if (core->member_count == core->member_size) {
        core->member_size = MAX(core->member_size * 2, (size_t)16);
        core->members = mem_grow(core->members, core->member_size, sizeof(struct member *));
    }
    struct member *member = mem_new(sizeof(*member));
    member->pub = *pub;
    member->pub.state_since_ms = core->now.mono_ms;
    HASH_ADD(hh, core->by_id, pub.id, sizeof(member->pub.id), member);

    size_t at = core->member_count++;
    while (at > 1 && core->members[at - 1]->pub.id > pub->id) {
        core->members[at] = core->members[at - 1];
        at--;
    }
    core->members[at] = member;
    core->member_hash_stale = true;
    return member;
}

void member_drop(struct gossip *core, struct member *member)
{
    ASSERT(member != core->self);
    size_t at = 0;
    while (core->members[at] != member) {
        at++;
    }
    core->member_count--;
    memmove(&core->members[at], &core->members[at + 1],
            (core->member_count - at) * sizeof(struct member *));
    HASH_DELETE(hh, core->by_id, member);
    core->fact_rumours -= member->rumoured ? 1 : 0;
    core->member_hash_stale = true;
    probe_member_gone(core, member->pub.id);
    mem_free(member);
}

size_t member_up_count(const struct gossip *core)
{
    size_t count = 0;
    for (size_t i = 0; i < core->member_count; i++) {
        count += member_is_up(core->members[i]) ? 1 : 0;
    }
    return count;
}

size_t member_pick(struct gossip *core, uint64_t except, struct member **ret_members, size_t max)
{
    struct member *up[GOSSIP_MEMBERS_MAX];
    size_t count = 0;
    for (size_t i = 1; i < core->member_count; i++) {
        if (member_is_up(core->members[i]) && core->members[i]->pub.id != except) {
            up[count++] = core->members[i];
        }
    }
    size_t picked = 0;
    for (; picked < MIN(max, count); picked++) {
        size_t other = picked + (size_t)rng_below(&core->rng, count - picked);
        ret_members[picked] = up[other];
        up[other] = up[picked];
    }
    return picked;
}

/* Equal on two nodes that believe the same of the same members. Suspicions and incarnations come
 * and go by rumour and are left out. */
uint64_t member_table_hash(struct gossip *core)
{
    if (!core->member_hash_stale) {
        return core->member_hash;
    }
    uint64_t sum = 0;
    for (size_t i = 0; i < core->member_count; i++) {
        const struct gossip_member *pub = &core->members[i]->pub;
        uint64_t state = member_is_up(core->members[i]) ? MEMBER_ALIVE : pub->state;
        uint64_t words[3] = {pub->id, pub->generation, state};
        sum ^= hash_sip64(member_key, member_key, words, sizeof(words));
    }
    core->member_hash = sum;
    core->member_hash_stale = false;
    return sum;
}

/* ---- belief ---- */

void member_changed(struct gossip *core, struct member *member)
{
    core->member_hash_stale = true;
    if (member != core->self) {
        member->dirty = true;
        core->members_dirty = true;
    }
}

void member_set_state(struct gossip *core, struct member *member, enum member_state state,
                      const char *why)
{
    static const char *const words[] = {"alive", "suspect", "dead", "left"};
    enum member_state old = member->pub.state;
    if (old == state) {
        return;
    }
    member->pub.state = state;
    member->pub.state_since_ms = core->now.mono_ms;
    member->suspect_deadline_ms = NEVER;
    if (state == MEMBER_DEAD) {
        core_count(core, COUNT_deaths);
        member->retry_wait_ms = 1000;
        member->retry_ms = core->now.mono_ms + member->retry_wait_ms;
        core_wake(core, member->retry_ms);
    }
    if (!member_is_up(member)) {
        member->pub.ready = false;
        member->differ_since_ms = 0;
        member->members_differ_since_ms = 0;
        member->audit_since_ms = 0;
        member->pull = false;
        probe_member_gone(core, member->pub.id);
    }
    /* A suspicion is not worth a write to the disk, nor is its end. */
    if (state != MEMBER_SUSPECT && old != MEMBER_SUSPECT) {
        member_changed(core, member);
    } else if (!member_is_up(member)) {
        member_changed(core, member);
    }
    core_event(core, GOSSIP_EVENT_MEMBER, member, "%s is %s: %s", member->pub.name, words[state],
               why);
}

void member_suspect(struct gossip *core, struct member *member)
{
    uint64_t own_id = core->self->pub.id;
    if (member->pub.state == MEMBER_ALIVE) {
        suspect_begin(core, member, own_id);
        rumour_fact(core, member);
    } else if (member->pub.state == MEMBER_SUSPECT && suspect_confirm(core, member, own_id)) {
        rumour_fact(core, member);
    }
}

void member_kill(struct gossip *core, struct member *member, const char *why)
{
    if (member_is_up(member)) {
        member->accuser = core->self->pub.id;
        member_set_state(core, member, MEMBER_DEAD, why);
        rumour_fact(core, member);
    }
}

void member_refute(struct gossip *core, uint64_t above, const char *why)
{
    struct gossip_member *self = &core->self->pub;
    if (above >= UINT64_MAX / 2) {
        return; /* no honest node counts so far */
    }
    if (!MUTANT(MUTANT_SAME_INCARNATION)) {
        self->incarnation = above + 1;
    }
    if (self->incarnation >= core->incarnation_limit) {
        core->incarnation_limit = self->incarnation + INCARNATION_STEP;
        core->limit_dirty = true;
    }
    core->health = MIN(core->health + 1, (uint32_t)HEALTH_MAX);
    core_count(core, COUNT_refutations);
    rumour_fact(core, core->self);
    core_event(core, GOSSIP_EVENT_WARNING, core->self,
               "%s: answered with incarnation %llu (local health %u of %d)", why,
               (unsigned long long)self->incarnation, core->health, HEALTH_MAX);
}

void member_accuse(struct gossip *core, struct member *member, const struct member *to,
                   const struct addr *addr)
{
    if (to == NULL || (member->accused_ms != 0 && core->now.mono_ms < member->accused_ms + 1000)) {
        return;
    }
    member->accused_ms = core->now.mono_ms;
    struct gossip_fact fact;
    fact_from_member(member, &fact);
    send_part(core, to, addr, &(struct gossip_part){.kind = PART_FACT, .fact = &fact});
}

/* ---- hearing ---- */

static void hear_self(struct gossip *core, const struct gossip_fact *fact)
{
    const struct gossip_member *self = &core->self->pub;
    if (fact->generation > self->generation) {
        generation_lost(core, fact->generation, "a peer knows a later generation of this node");
    } else if (fact->generation == self->generation && !core->leaving) {
        if ((fact->forget || fact->state != MEMBER_ALIVE) &&
            fact->incarnation >= self->incarnation) {
            member_refute(core, fact->incarnation,
                          fact->state == MEMBER_SUSPECT ? "a peer suspects this node"
                                                        : "a peer believes that this node is gone");
        } else if (fact->incarnation > self->incarnation) {
            member_refute(core, fact->incarnation, "a peer knows a later incarnation of this node");
        }
    }
}

/* An address belongs to the identity that answers there: a wiped node comes back under a new id at
 * once, the old one will not speak again. */
static void hear_address(struct gossip *core, struct member *member)
{
    for (size_t i = 1; i < core->member_count; i++) {
        struct member *other = core->members[i];
        if (other != member && member_is_up(other) &&
            addr_compare(&other->pub.addr, &member->pub.addr) == 0) {
            member_kill(core, other, "another identity answers at its address");
        }
    }
}

static void take_identity(struct member *member, const struct gossip_fact *fact)
{
    member->pub.generation = fact->generation;
    member->pub.incarnation = fact->incarnation;
    member->pub.addr = fact->addr;
    memcpy(member->pub.name, fact->name, sizeof(member->pub.name));
    memcpy(member->pub.version, fact->version, sizeof(member->pub.version));
    member->accuser = fact->accuser;
}

static void take_state(struct gossip *core, struct member *member, const struct gossip_fact *fact)
{
    if (fact->state == MEMBER_SUSPECT) {
        suspect_begin(core, member, fact->accuser);
    } else {
        bool own = fact->state != MEMBER_DEAD && fact->accuser == 0;
        member_set_state(core, member, fact->state, own ? "said by itself" : "told by a peer");
    }
}

static struct member *hear_new(struct gossip *core, const struct gossip_fact *fact, enum heard how,
                               const struct member *from, const struct addr *addr)
{
    struct forgotten *gone = forgotten_find(core, fact->id);
    if (gone != NULL) {
        bool newer = fact->generation > gone->generation || (fact->generation == gone->generation &&
                                                             fact->incarnation > gone->incarnation);
        if (fact->state != MEMBER_ALIVE || (how != HEARD_DIRECT && !newer)) {
            if (how == HEARD_DATAGRAM && from != NULL) {
                struct gossip_fact reply;
                forgotten_fact(gone, &reply);
                send_part(core, from, addr,
                          &(struct gossip_part){.kind = PART_FACT, .fact = &reply});
            }
            return NULL;
        }
        forgotten_remove(core, fact->id);
    }
    struct gossip_member pub = {.id = fact->id, .state = MEMBER_ALIVE};
    memcpy(pub.name, fact->name, sizeof(pub.name));
    struct member *member = member_add(core, &pub);
    if (member == NULL) {
        core_count(core, COUNT_datagrams_refused);
        return NULL;
    }
    take_identity(member, fact);
    member_changed(core, member);
    if (fact->state == MEMBER_ALIVE) {
        core_event(core, GOSSIP_EVENT_MEMBER, member, "%s is alive: new", member->pub.name);
    } else {
        take_state(core, member, fact);
    }
    rumour_fact(core, member);
    return member;
}

/* True when the fact is newer than our belief. */
static bool hear_known(struct gossip *core, struct member *member, const struct gossip_fact *fact)
{
    struct gossip_member *pub = &member->pub;
    bool fresh = fact->generation > pub->generation ||
                 (fact->generation == pub->generation && fact->incarnation > pub->incarnation);
    if (fresh) {
        bool moved = fact->generation != pub->generation ||
                     addr_compare(&fact->addr, &pub->addr) != 0 ||
                     strncmp(fact->version, pub->version, sizeof(pub->version)) != 0;
        take_identity(member, fact);
        if (moved) {
            member_changed(core, member);
        }
        take_state(core, member, fact);
        rumour_fact(core, member);
        return true;
    }
    if (fact->generation != pub->generation || fact->incarnation != pub->incarnation) {
        return false;
    }
    if (fact->state > pub->state) {
        member->accuser = fact->accuser;
        take_state(core, member, fact);
        rumour_fact(core, member);
        return true;
    }
    if (fact->state == MEMBER_SUSPECT && pub->state == MEMBER_SUSPECT &&
        suspect_confirm(core, member, fact->accuser)) {
        rumour_fact(core, member);
    }
    return false;
}

/* Older than what we believe, and it matters: one side counts on the member, the other does not. */
static bool is_harmful(const struct member *member, const struct gossip_fact *fact, enum heard how)
{
    bool fact_up = fact->state == MEMBER_ALIVE || fact->state == MEMBER_SUSPECT;
    if (how == HEARD_DIRECT) {
        return member->pub.state != MEMBER_ALIVE && fact->state == MEMBER_ALIVE;
    }
    return how == HEARD_DATAGRAM && fact_up != member_is_up(member);
}

void member_hear(struct gossip *core, const struct gossip_fact *fact, enum heard how,
                 struct member *from, const struct addr *addr)
{
    if (fact->id == core->self->pub.id) {
        hear_self(core, fact);
        return;
    }
    if (fact->forget) {
        forget_hear(core, fact);
        return;
    }
    if (fact->addr.sa.sa_family == AF_UNSPEC || addr_port(&fact->addr) == 0) {
        return;
    }
    struct member *member = member_find(core, fact->id);
    bool news = true;
    if (member == NULL) {
        member = hear_new(core, fact, how, from, addr);
        if (member == NULL) {
            return;
        }
    } else {
        news = hear_known(core, member, fact);
    }
    if (how == HEARD_DIRECT) {
        member->pub.heard_ms = core->now.mono_ms;
    }
    if (news && member_is_up(member)) {
        if (how == HEARD_DIRECT) {
            hear_address(core, member);
        } else if (addr_compare(&member->pub.addr, &core->self->pub.addr) == 0) {
            member_kill(core, member, "this node has its address now");
        }
    } else if (!news && is_harmful(member, fact, how)) {
        member_accuse(core, member, how == HEARD_DIRECT ? member : from, addr);
    }
}

void member_check_name(struct gossip *core, struct member *member)
{
    const struct gossip_member *self = &core->self->pub;
    if (member->name_flagged || member->pub.state != MEMBER_ALIVE ||
        strcmp(member->pub.name, self->name) != 0 ||
        addr_compare(&member->pub.addr, &self->addr) == 0) {
        return;
    }
    char at[ADDR_TEXT_MAX];
    addr_format(&member->pub.addr, at);
    if (self->ready && member->pub.ready) {
        member->name_flagged = true;
        core_event(core, GOSSIP_EVENT_WARNING, member,
                   "two nodes that serve are named \"%s\": this one and the one at %s", self->name,
                   at);
    } else if (!self->ready && (member->pub.ready || member->pub.id < self->id)) {
        /* The newcomer gives way; of two newcomers, one. */
        member->name_flagged = true;
        core_event(core, GOSSIP_EVENT_NAME_TAKEN, member,
                   "the name \"%s\" belongs to a living node at %s", self->name, at);
    }
}

/* ---- time ---- */

void member_tick(struct gossip *core)
{
    uint64_t now = core->now.mono_ms;
    for (size_t i = 1; i < core->member_count; i++) {
        struct member *member = core->members[i];
        if (member->pub.state == MEMBER_SUSPECT) {
            if (now >= member->suspect_deadline_ms) {
                member_kill(core, member, "it did not answer the suspicion in time");
            } else {
                core_wake(core, member->suspect_deadline_ms);
            }
        } else if (member->pub.state == MEMBER_DEAD && !core->leaving) {
            if (now >= member->retry_ms) {
                probe_send(core, member, rng_next(&core->rng));
                member->retry_wait_ms = MIN(member->retry_wait_ms * 2, (uint32_t)RETRY_MAX_MS);
                member->retry_ms =
                    now + member->retry_wait_ms + rng_below(&core->rng, member->retry_wait_ms / 8);
            }
            core_wake(core, member->retry_ms);
        }
    }
}

size_t gossip_member_count(const struct gossip *core)
{
    return core->member_count;
}

const struct gossip_member *gossip_member_at(const struct gossip *core, size_t idx)
{
    return idx < core->member_count ? &core->members[idx]->pub : NULL;
}
