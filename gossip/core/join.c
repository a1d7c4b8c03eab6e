/*
 * Getting in touch: each configured address is asked until it answers or is a member's, and again
 * whenever no other member is up. One answer is not enough: two nodes that start together might
 * content themselves with each other. An answer names members; the rest comes with the first sync.
 */
#include "gossip/core/core.h"

enum {
    JOIN_FIRST_MS = 500,
    JOIN_ALONE_MS =
        2000, /* a lone node has nothing else to send, and serves old data if it gives up */
    JOIN_LAST_MS = 10000,
};

static bool has_company(const struct gossip *core)
{
    for (size_t i = 1; i < core->member_count; i++) {
        if (member_is_up(core->members[i])) {
            return true;
        }
    }
    return false;
}

static bool is_known(const struct gossip *core, size_t idx)
{
    if (core->join_answered[idx]) {
        return true;
    }
    for (size_t i = 1; i < core->member_count; i++) {
        if (addr_compare(&core->members[i]->pub.addr, &core->join[idx]) == 0) {
            return true;
        }
    }
    return false;
}

void join_tick(struct gossip *core)
{
    if (core->join_count == 0 || core->leaving) {
        return;
    }
    bool alone = !has_company(core);
    bool wanted = alone;
    for (size_t i = 0; i < core->join_count; i++) {
        core->join_answered[i] = core->join_answered[i] && !alone;
        wanted = wanted || !is_known(core, i);
    }
    if (!wanted) {
        core->join_wait_ms = 0;
        return;
    }
    if (core->now.mono_ms < core->join_ms) {
        core_wake(core, core->join_ms);
        return;
    }
    core->join_nonce = rng_next(&core->rng) | 1;
    core->join_sent_ms = core->now.mono_ms;
    for (size_t i = 0; i < core->join_count; i++) {
        if (alone || !is_known(core, i)) {
            struct gossip_part part = {.kind = PART_JOIN, .nonce = core->join_nonce};
            send_part(core, NULL, &core->join[i], &part);
        }
    }
    uint32_t last_ms = alone ? JOIN_ALONE_MS : JOIN_LAST_MS;
    core->join_wait_ms =
        core->join_wait_ms == 0 ? JOIN_FIRST_MS : MIN(core->join_wait_ms * 2, last_ms);
    core->join_ms = core->now.mono_ms + core->join_wait_ms;
    core_wake(core, core->join_ms);
}

void join_on_ask(struct gossip *core, struct member *from, const struct addr *addr, uint64_t nonce)
{
    struct bundle bundle;
    bundle_init(core, &bundle);
    struct gossip_part grant = {
        .kind = PART_GRANT,
        .nonce = nonce,
        .generation = from->pub.generation,
    };
    (void)bundle_add(&bundle, &grant); /* an empty one has room */
    struct member *others[BUNDLE_PARTS_MAX];
    size_t count = member_pick(core, from->pub.id, others, BUNDLE_PARTS_MAX);
    for (size_t i = 0; i < count; i++) {
        struct gossip_fact fact;
        fact_from_member(others[i], &fact);
        if (!bundle_add_fact(&bundle, &fact)) {
            break;
        }
    }
    bundle_send(core, &bundle, addr, from);
}

void join_on_grant(struct gossip *core, struct member *from, const struct addr *addr,
                   const struct gossip_part *part, uint64_t peer_wall_ms)
{
    if (part->nonce == core->join_nonce && core->join_nonce != 0) {
        clock_sample(core, from, peer_wall_ms, core->now.mono_ms - core->join_sent_ms);
    }
    if (part->generation > core->self->pub.generation) {
        generation_lost(core, part->generation, "a peer knows a later generation of this node");
    }
    for (size_t i = 0; i < core->join_count; i++) {
        if (addr_compare(&core->join[i], addr) == 0) {
            core->join_answered[i] = true;
        }
    }
}
