/*
 * The origin sees to it that everybody has its writes.
 *
 * Spreading at random misses a few members in a hundred. Every member tells the origin what it has
 * (rumour_ack), so the origin knows whom news has missed and sends it there directly, for a few
 * seconds; who is out of reach for longer gets it by sync.
 */
#include "gossip/core/core.h"

#include <utlist.h>

enum {
    RESEND_AFTER_MS = 450, /* rumours have had two ticks by then */
    RESEND_GAP_MS = 350,   /* to one member: its answer takes a round trip and a gap of acks */
    RESEND_LIFE_MS = 5000,
};

static bool is_ours(const struct gossip *core, const struct rumour *rumour)
{
    return origin_compare(rumour->part.origin, core_origin(core)) == 0;
}

uint64_t resend_acked_by_all(const struct gossip *core)
{
    uint64_t least = UINT64_MAX;
    for (size_t i = 1; i < core->member_count; i++) {
        if (member_is_up(core->members[i])) {
            least = MIN(least, core->members[i]->pub.acked_seq);
        }
    }
    return least;
}

bool resend_wants(const struct gossip *core, const struct rumour *rumour, uint64_t acked_by_all)
{
    return is_ours(core, rumour) && rumour->part.last_seq > acked_by_all &&
           core->now.mono_ms < rumour->born_ms + RESEND_LIFE_MS;
}

static void resend_to(struct gossip *core, struct member *member)
{
    struct bundle bundle;
    bundle_init(core, &bundle);
    const struct rumour *rumour = NULL;
    /* Any order will do: what comes out of order is merged, and the frontier follows. */
    DL_FOREACH (core->local_rumours, rumour) {
        if (is_ours(core, rumour) && rumour->part.last_seq > member->pub.acked_seq &&
            core->now.mono_ms >= rumour->born_ms + RESEND_AFTER_MS) {
            (void)bundle_add(&bundle, &rumour->part); /* the next round has the rest */
        }
    }
    if (bundle.part_count != 0) {
        member->resent_ms = core->now.mono_ms;
        core_count(core, COUNT_rumours_resent);
        bundle_send(core, &bundle, &member->pub.addr, member);
    }
}

void resend_round(struct gossip *core)
{
    uint64_t newest = 0;
    const struct rumour *rumour = NULL;
    DL_FOREACH (core->local_rumours, rumour) {
        if (is_ours(core, rumour) && core->now.mono_ms >= rumour->born_ms + RESEND_AFTER_MS) {
            newest = MAX(newest, rumour->part.last_seq);
        }
    }
    size_t left = core->settings.fanout;
    size_t count = newest != 0 ? core->member_count : 0;
    size_t first = count != 0 ? (size_t)rng_below(&core->rng, count) : 0;
    for (size_t i = 0; i < count && left != 0; i++) {
        struct member *member = core->members[(first + i) % count];
        if (member != core->self && member_is_up(member) && member->pub.acked_seq < newest &&
            core->now.mono_ms >= member->resent_ms + RESEND_GAP_MS) {
            resend_to(core, member);
            left--;
        }
    }
}
