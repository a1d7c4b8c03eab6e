/*
 * Clocks: the hybrid logical clock that orders writes, and how far our wall clock is from others'.
 *
 * A write that has seen a row always gets a larger hlc than the row's, whatever the wall clocks
 * say. A hlc far ahead of our wall is stored as it is but does not pull ours along: one node with a
 * wrong clock must not push all others into the future. Source: clustering notes 2.3.
 */
#include "gossip/core/core.h"

#include <stdlib.h>
#include <string.h>

enum {
    SAMPLE_LIFE_MS = 10000, /* a better round trip wins only for so long */
    WARN_GAP_MS = 60000,
};

/* ---- offsets ---- */

static int compare_offsets(const void *a, const void *b)
{
    int64_t x = 0;
    int64_t y = 0;
    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return (x > y) - (x < y);
}

/* The median of what peers' clocks are ahead of ours. With an even number the middle two enclose a
 * range of equally good answers: the one nearest to zero, so that of three nodes only the wrong one
 * finds itself wrong. */
static int64_t median_offset(const struct gossip *core, size_t *ret_peers)
{
    int64_t offsets[GOSSIP_MEMBERS_MAX];
    size_t count = 0;
    for (size_t i = 1; i < core->member_count; i++) {
        const struct member *member = core->members[i];
        if (member_is_up(member) && member->offset_at_ms != 0) {
            offsets[count++] = member->pub.clock_offset_ms;
        }
    }
    *ret_peers = count;
    if (count == 0) {
        return 0;
    }
    qsort(offsets, count, sizeof(offsets[0]), compare_offsets);
    int64_t low = offsets[(count - 1) / 2];
    int64_t high = offsets[count / 2];
    return low > 0 ? low : (high < 0 ? high : 0);
}

int64_t clock_offset_ms(const struct gossip *core, size_t *ret_peers)
{
    return -median_offset(core, ret_peers);
}

int64_t gossip_clock_offset_ms(const struct gossip *core)
{
    size_t peers = 0;
    return clock_offset_ms(core, &peers);
}

static void flag_clock(struct gossip *core, struct member *member, int64_t off_ms,
                       const char *whose)
{
    bool out = llabs(off_ms) > core->settings.clock_limit_ms;
    if (out == member->clock_flagged) {
        return;
    }
    member->clock_flagged = out;
    core_event(core, GOSSIP_EVENT_CLOCK, member,
               out ? "the clock of %s is %.1f s %s the median of %s; the limit is %.1f s"
                   : "the clock of %s is %.1f s %s the median of %s: within the limit of %.1f s",
               member->pub.name, core_seconds(off_ms), off_ms < 0 ? "behind" : "ahead of", whose,
               core_seconds(core->settings.clock_limit_ms));
}

void clock_sample(struct gossip *core, struct member *member, uint64_t peer_wall_ms,
                  uint64_t rtt_ms)
{
    uint64_t rtt_us = rtt_ms * 1000;
    uint32_t smooth_us = member->pub.rtt_us;
    member->pub.rtt_us = smooth_us == 0 ? (uint32_t)MIN(rtt_us + 1, (uint64_t)UINT32_MAX)
                                        : (uint32_t)((7 * (uint64_t)smooth_us + rtt_us) / 8);
    if (rtt_ms > core->settings.clock_limit_ms) {
        return; /* says less than what it is to decide */
    }
    if (member->offset_at_ms != 0 && rtt_ms > member->offset_rtt_ms &&
        core->now.mono_ms < member->offset_at_ms + SAMPLE_LIFE_MS) {
        return;
    }
    member->pub.clock_offset_ms = (int64_t)(peer_wall_ms + rtt_ms / 2) - (int64_t)core->now.wall_ms;
    member->offset_rtt_ms = rtt_ms;
    member->offset_at_ms = MAX(core->now.mono_ms, (uint64_t)1);

    size_t peers = 0;
    int64_t median = median_offset(core, &peers);
    for (size_t i = 1; i < core->member_count; i++) {
        struct member *other = core->members[i];
        if (member_is_up(other) && other->offset_at_ms != 0) {
            flag_clock(core, other, other->pub.clock_offset_ms - median, "the peers");
        }
    }
    flag_clock(core, core->self, -median, "its peers");
}

void clock_event(struct gossip *core)
{
    /* A step of our own wall clock moves every offset at once; no need to wait for samples. */
    int64_t difference = (int64_t)core->now.wall_ms - (int64_t)core->now.mono_ms;
    int64_t step = difference - core->wall_minus_mono;
    if (core->wall_minus_mono != 0 && llabs(step) > 50) {
        for (size_t i = 1; i < core->member_count; i++) {
            core->members[i]->pub.clock_offset_ms -= step;
        }
    }
    if (core->wall_minus_mono == 0 || llabs(step) > 50) {
        core->wall_minus_mono = difference;
    }
}

/* ---- order of writes ---- */

uint64_t hlc_next(struct gossip *core, const struct row *over)
{
    uint64_t hlc = MAX(core->now.wall_ms << 16, core->hlc + 1);
    if (over != NULL && over->hlc >= hlc) {
        /* Ours for this key only: the rest of the clock is not pulled along. */
        return over->hlc + 1;
    }
    core->hlc = hlc;
    return hlc;
}

void hlc_observe(struct gossip *core, uint64_t hlc, const struct origin *origin)
{
    if (hlc <= core->hlc) {
        return;
    }
    if (hlc_wall_ms(hlc) <= core->now.wall_ms + HLC_AHEAD_MAX_MS) {
        core->hlc = hlc;
        return;
    }
    if (!core->started ||
        (core->warned_hlc_ms != 0 && core->now.mono_ms < core->warned_hlc_ms + WARN_GAP_MS)) {
        return;
    }
    core->warned_hlc_ms = MAX(core->now.mono_ms, (uint64_t)1);
    struct member *writer = member_find(core, origin->node);
    core_event(core, GOSSIP_EVENT_WARNING, writer,
               "a write of %s is dated %.1f s ahead of this node's clock; it is kept as it is",
               writer != NULL ? writer->pub.name : "an unknown node",
               core_seconds((int64_t)(hlc_wall_ms(hlc) - core->now.wall_ms)));
}
