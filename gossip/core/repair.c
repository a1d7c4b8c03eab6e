/*
 * When to open a session, and with whom.
 *
 * A difference between frontiers is normal for as long as a rumour travels, so a stream is opened
 * only when it lasts, or at once when the peer says that no rumour will come (`pull`), or while we
 * have not been in step with anybody yet. Among several candidates one is picked at random: the
 * sessions of a cluster spread over its members instead of meeting at one.
 */
#include "gossip/core/core.h"

enum {
    SESSION_GAP_MS = 300,      /* between two sessions that we open */
    MEMBERS_DIFFER_MS = 10000, /* member tables may differ for so long */
    CUT_WAIT_MS = 500,         /* after a session that did not complete, and up to twice more */
};

static void set_since(uint64_t *since_ms, bool differs, uint64_t now)
{
    if (!differs) {
        *since_ms = 0;
    } else if (*since_ms == 0) {
        *since_ms = MAX(now, (uint64_t)1);
    }
}

/* Draw the next look at the candidates nearer. */
static void look_at(struct gossip *core, uint64_t at_ms)
{
    at_ms = MAX(at_ms, core->sync_last_ms + SESSION_GAP_MS);
    if (at_ms < core->sync_next_ms) {
        core->sync_next_ms = at_ms;
        core_wake(core, at_ms);
    }
}

void sync_consider(struct gossip *core, struct member *member, const struct gossip_summary *summary)
{
    uint64_t now = core->now.mono_ms;
    if (!member_is_up(member) || core->leaving) {
        return;
    }
    bool differs = summary->frontier_hash != core->kv.frontier_hash;
    set_since(&member->differ_since_ms, differs, now);
    set_since(&member->audit_since_ms, !differs && summary->audit_root != core->kv.audit_root, now);
    set_since(&member->members_differ_since_ms, summary->member_hash != member_table_hash(core),
              now);
    if (member->sync_stream != 0) {
        return;
    }
    if ((differs && summary->pull) || (!core->in_step && core->syncs_out == 0)) {
        sync_start(core, member, STREAM_SYNC);
    }
    if (member->sync_stream == 0) {
        member->pull = differs && (member->pull || summary->pull);
        if (differs) {
            look_at(core, member->pull ? now : member->differ_since_ms + DIFFER_MS);
        }
    }
}

static enum stream_use wanted_use(const struct gossip *core, const struct member *member)
{
    uint64_t now = core->now.mono_ms;
    if (!member_is_up(member) || member->sync_stream != 0 || now < member->sync_after_ms) {
        return STREAM_UNKNOWN;
    }
    if (!core->in_step || member->pull ||
        (member->differ_since_ms != 0 && now >= member->differ_since_ms + DIFFER_MS) ||
        (member->members_differ_since_ms != 0 &&
         now >= member->members_differ_since_ms + MEMBERS_DIFFER_MS)) {
        return STREAM_SYNC;
    }
    return member->audit_since_ms != 0 && now >= member->audit_since_ms + AUDIT_MS ? STREAM_AUDIT
                                                                                   : STREAM_UNKNOWN;
}

void sync_tick(struct gossip *core)
{
    uint64_t now = core->now.mono_ms;
    if (now < core->sync_next_ms) {
        core_wake(core, core->sync_next_ms);
        return;
    }
    struct member *chosen = NULL;
    uint64_t candidates = 0;
    for (size_t i = 1; i < core->member_count; i++) {
        if (wanted_use(core, core->members[i]) != STREAM_UNKNOWN) {
            candidates++;
            if (rng_below(&core->rng, candidates) == 0) {
                chosen = core->members[i];
            }
        }
    }
    core->sync_next_ms = now + core->settings.sync_interval_ms;
    core_wake(core, core->sync_next_ms);
    if (chosen != NULL) {
        enum stream_use use = wanted_use(core, chosen);
        sync_start(core, chosen, use);
        if (use == STREAM_AUDIT) {
            chosen->audit_since_ms = now; /* not again before it had time to help */
        }
        if (candidates > 1) {
            look_at(core, now + SESSION_GAP_MS);
        }
    }
}

void sync_cut(struct gossip *core, struct stream *stream)
{
    if (stream->inbound) {
        core->syncs_in--;
    } else {
        core->syncs_out--;
    }
    struct member *member = member_find(core, stream->peer);
    if (member != NULL && member->sync_stream == stream->no) {
        member->sync_stream = 0;
        if (!stream->complete) {
            member->sync_after_ms =
                core->now.mono_ms + CUT_WAIT_MS + rng_below(&core->rng, 2 * (uint64_t)CUT_WAIT_MS);
        }
    }
    if (!stream->complete) {
        core_count(core, COUNT_syncs_cut);
    }
}
