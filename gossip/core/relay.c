/*
 * Probes passed on for others.
 *
 * A helper that cannot reach the subject says so (PART_MISS): the asker then knows that its own
 * network is not the cause. Slots are reused in a circle; a late answer is passed on as long as its
 * slot lives.
 */
#include "gossip/core/core.h"

void relay_start(struct gossip *core, const struct gossip_part *part, struct member *asker,
                 const struct addr *from)
{
    struct member *subject = member_find(core, part->id);
    if (subject == NULL || subject == core->self || !member_is_up(subject)) {
        struct gossip_part miss = {.kind = PART_MISS, .nonce = part->nonce};
        send_part(core, asker, from, &miss);
        return;
    }
    struct relay *relay = &core->relays[core->relay_next];
    core->relay_next = (core->relay_next + 1) % RELAYS_MAX;
    *relay = (struct relay){
        .nonce = rng_next(&core->rng) | 1,
        .asker = asker->pub.id,
        .asker_nonce = part->nonce,
        .asker_addr = *from,
        .miss_ms = core->now.mono_ms + core->settings.probe_timeout_ms,
        .end_ms = core->now.mono_ms + 4 * (uint64_t)core->settings.probe_interval_ms,
    };
    core->relay_count++;
    core_count(core, COUNT_probes_relayed);
    core_wake(core, relay->miss_ms);
    probe_send(core, subject, relay->nonce);
}

static void relay_answer(struct gossip *core, const struct relay *relay, enum gossip_part_kind kind)
{
    struct member *asker = member_find(core, relay->asker);
    if (asker != NULL) {
        struct gossip_part part = {.kind = kind, .nonce = relay->asker_nonce};
        send_part(core, asker, &relay->asker_addr, &part);
    }
}

bool relay_on_reply(struct gossip *core, uint64_t nonce)
{
    if (core->relay_count == 0 || nonce == 0) {
        return false;
    }
    for (size_t i = 0; i < RELAYS_MAX; i++) {
        if (core->relays[i].nonce == nonce) {
            relay_answer(core, &core->relays[i], PART_REPLY);
            core->relays[i].nonce = 0;
            return true;
        }
    }
    return false;
}

void relay_tick(struct gossip *core)
{
    if (core->relay_count == 0) {
        return;
    }
    size_t live = 0;
    for (size_t i = 0; i < RELAYS_MAX; i++) {
        struct relay *relay = &core->relays[i];
        if (relay->nonce == 0) {
            continue;
        }
        if (core->now.mono_ms >= relay->end_ms) {
            relay->nonce = 0;
            continue;
        }
        live++;
        if (core->now.mono_ms >= relay->miss_ms) {
            relay->miss_ms = NEVER;
            relay_answer(core, relay, PART_MISS);
        }
        core_wake(core, MIN(relay->miss_ms, relay->end_ms));
    }
    core->relay_count = live;
}
