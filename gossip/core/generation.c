/*
 * When may this node go on writing in its own name?
 *
 * A (node, generation, seq) must never name two different writes. A disk that was lost or put back
 * from a backup has forgotten numbers that peers have seen, and the disk itself cannot tell. So a
 * node that starts with a past asks every peer it counted on what it has of ours, before it accepts
 * the first write:
 *
 *   all say no more than we have      -> go on in this generation
 *   one has more, or a later one      -> new generation, above the highest known
 *   some did not answer in time, or
 *   were dead already                 -> new generation too: it costs one more frontier entry, a
 *                                        wrong guess would cost writes
 *
 * The step to the new generation is random: who was asked may not know of a generation that this
 * node began, used alone and lost again, and highest + 1 would be that one.
 *
 * The new generation is persisted before it is used; what was lost comes back from the peers as
 * writes of the old one. Source: clustering notes 2.5.
 */
#include "gossip/core/core.h"

#include <stdio.h>

enum {
    GENERATION_STEP_MAX = 4096,
    ASK_GAP_MS = 300,
    DOUBT_WAIT_MS = 1000,
    ASK_AT_ONCE = 64,
};

static uint32_t highest_known(const struct gossip *core)
{
    uint32_t highest = core->self->pub.generation;
    struct kv_origin *origin = NULL;
    struct kv_origin *next = NULL;
    HASH_ITER (hh, core->kv.origins, origin, next) {
        if (origin->origin.node == core->self->pub.id) {
            highest = MAX(highest, origin->origin.generation);
        }
    }
    return highest;
}

static void persist_generation(struct gossip *core)
{
    struct gossip_batch batch = {
        .generation = core->wanted_generation,
        .incarnation_limit = core->incarnation_limit,
    };
    core->bump_token = ++core->last_token;
    core->ops->persist(core->ctx, &batch, core->bump_token);
}

void generation_lost(struct gossip *core, uint32_t generation, const char *why)
{
    if (MUTANT(MUTANT_GENERATION_REUSED)) {
        core->gate = GATE_OPEN;
        return;
    }
    uint32_t known = MAX(generation, highest_known(core));
    if (known > UINT32_MAX - GENERATION_STEP_MAX) {
        return; /* no honest node counts so far */
    }
    if (core->gate == GATE_BUMPING) {
        if (known < core->wanted_generation) {
            return; /* already going beyond it */
        }
    } else {
        (void)snprintf(core->bump_why, sizeof(core->bump_why), "%s", why); /* may be cut */
    }
    core->gate = GATE_BUMPING;
    core->wanted_generation = known + 1 + (uint32_t)rng_below(&core->rng, GENERATION_STEP_MAX);
    persist_generation(core);
}

bool generation_persisted(struct gossip *core, uint64_t token, int rc)
{
    if (token > core->bump_token || core->gate != GATE_BUMPING) {
        return false;
    }
    if (token != core->bump_token) {
        return true; /* an earlier, smaller wish */
    }
    core->bump_token = 0;
    if (rc != RC_OK) {
        core->bump_retry_ms = core->now.mono_ms + 1000;
        core_wake(core, core->bump_retry_ms);
        return true;
    }
    core->self->pub.generation = core->wanted_generation;
    core->last_seq = kv_frontier(&core->kv, core_origin(core));
    core->gate = GATE_OPEN;
    core->member_hash_stale = true;
    for (size_t i = 1; i < core->member_count; i++) {
        core->members[i]->pub.acked_seq = 0; /* spoke of the old generation */
    }
    core_count(core, COUNT_generations_begun);
    rumour_fact(core, core->self);
    core_event(core, GOSSIP_EVENT_GENERATION, core->self, "generation %u begun: %s",
               core->self->pub.generation, core->bump_why);
    return true;
}

bool gossip_writable(const struct gossip *core)
{
    return core->started && core->gate == GATE_OPEN;
}

/* ---- asking at the start ---- */

void generation_start(struct gossip *core)
{
    bool peers = false;
    for (size_t i = 1; i < core->member_count; i++) {
        peers = peers || core->members[i]->loaded;
    }
    core->gate = peers || core->join_count != 0 ? GATE_ASKING : GATE_OPEN;
    core->gate_deadline_ms = core->now.mono_ms + FRONTIER_WAIT_MS;
    core->doubt_ms = core->now.mono_ms + DOUBT_WAIT_MS;
    core->ask_next_ms = core->now.mono_ms;
}

/* Who must answer: whoever we counted on when we stopped, and whoever is up according to a peer
 * that we are in step with (a member may be newer than a restored disk). A node on its first start
 * needs one answer from anybody: its disk may be new under an old identity. */
static bool must_tell(const struct member *member)
{
    return !member->told && (member->loaded || member_is_up(member));
}

/* Members that were dead already may know more than the others do; they are given a moment. */
static bool is_doubtful(const struct gossip *core)
{
    for (size_t i = 1; i < core->member_count; i++) {
        if (core->members[i]->loaded_dead && !core->members[i]->told) {
            return true;
        }
    }
    return false;
}

static bool all_told(const struct gossip *core)
{
    bool any_told = false;
    bool all = true;
    for (size_t i = 1; i < core->member_count; i++) {
        any_told = any_told || core->members[i]->told;
        all = all && !must_tell(core->members[i]);
    }
    return core->fresh ? any_told : all && core->in_step;
}

void generation_consider(struct gossip *core)
{
    if (core->gate != GATE_ASKING || !all_told(core)) {
        return;
    }
    if (!is_doubtful(core)) {
        core->gate = GATE_OPEN;
    } else if (core->now.mono_ms >= core->doubt_ms) {
        generation_lost(core, core->self->pub.generation,
                        "a dead member cannot be asked which writes of this node it knows");
    } else {
        core_wake(core, core->doubt_ms);
    }
}

void generation_told(struct gossip *core, struct member *from, uint32_t generation, uint64_t seq)
{
    struct origin own = core_origin(core);
    if (generation > own.generation) {
        generation_lost(core, generation, "a peer knows a later generation of this node");
        return;
    }
    if (generation < own.generation) {
        return; /* it has yet to hear of this generation */
    }
    from->told = true;
    if (seq > core->last_seq) {
        generation_lost(core, generation,
                        "a peer has writes of this node that this node does not know");
    } else {
        generation_consider(core);
    }
}

static void ask(struct gossip *core)
{
    size_t asked = 0;
    for (size_t i = 1; i < core->member_count && asked < ASK_AT_ONCE; i++) {
        struct member *member = core->members[i];
        if (must_tell(member)) {
            probe_send(core, member, rng_next(&core->rng));
            asked++;
        }
    }
    core->ask_next_ms = core->now.mono_ms + ASK_GAP_MS;
}

void generation_tick(struct gossip *core)
{
    uint64_t now = core->now.mono_ms;
    if (core->gate == GATE_BUMPING && core->bump_token == 0) {
        if (now >= core->bump_retry_ms) {
            persist_generation(core);
        } else {
            core_wake(core, core->bump_retry_ms);
        }
    }
    if (core->gate != GATE_ASKING) {
        return;
    }
    if (now >= core->gate_deadline_ms) {
        if (core->fresh) {
            core->gate = GATE_OPEN; /* nothing was ever written in this name */
        } else {
            generation_lost(core, core->self->pub.generation,
                            "not every peer could be asked which writes of this node it knows");
        }
        return;
    }
    generation_consider(core);
    if (core->gate != GATE_ASKING) {
        return;
    }
    if (now >= core->ask_next_ms) {
        ask(core);
    }
    core_wake(core, MIN(core->ask_next_ms, core->gate_deadline_ms));
}
