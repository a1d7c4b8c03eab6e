/*
 * When to open a session, and with whom.
 *
 * Frontiers that differ are normal for as long as news travels. A difference is evidence of
 * something lost only if we have learnt nothing for a while, before and after the peer said what it
 * has; then a stream is opened. Holding a write above an origin's frontier is better evidence: what
 * lies between got lost if it does not come soon. Where news never rests, a session every few
 * seconds makes up for what is lost. At once: when the peer says that no rumour will come (`pull`),
 * and while we have not been in step with anybody yet. Among several candidates one is picked at
 * random, so that the sessions of a cluster spread over its members instead of meeting at one.
 */
#include "gossip/core/core.h"

enum {
    SESSION_GAP_MS = 300,      /* between two sessions that we open */
    QUIET_MS = 300,            /* without news, before and after a peer's summary */
    GAP_MS = 500,              /* a missing change-set may be on another way */
    GAP_TRIES = 5,             /* then it is lost for good, with its origin */
    BUSY_MS = 3000,            /* between two sessions while news keeps moving */
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

/* Keep track of when we last learnt something. */
static void look_at_self(struct gossip *core)
{
    if (core->seen_hash != core->kv.frontier_hash) {
        core->seen_hash = core->kv.frontier_hash;
        core->quiet_ms = core->now.mono_ms;
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
    look_at_self(core);
    bool differs = summary->frontier_hash != core->kv.frontier_hash;
    member->differ_at_ms = now;
    set_since(&member->differ_since_ms, differs, now);
    set_since(&member->audit_since_ms, !differs && summary->audit_root != core->kv.audit_root, now);
    set_since(&member->members_differ_since_ms, summary->member_hash != member_table_hash(core),
              now);
    member->pull = differs && (member->pull || summary->pull);
    if (member->sync_stream != 0) {
        return;
    }
    if (member->pull || (!core->in_step && core->syncs_out == 0)) {
        sync_start(core, member, STREAM_SYNC);
    }
    if (member->sync_stream != 0 || !differs) {
        return;
    }
    if (member->pull) {
        look_at(core, now);
    } else if (now >= core->quiet_ms + QUIET_MS) {
        look_at(core, now + QUIET_MS);
    }
}

void sync_gap(struct gossip *core)
{
    look_at(core, core->now.mono_ms + GAP_MS + 1);
}

/* The origins, few as they are, are looked through once a second or when a gap showed. */
static bool find_gap(struct gossip *core)
{
    uint64_t now = core->now.mono_ms;
    bool found = false;
    struct kv_origin *origin = NULL;
    for (origin = core->kv.origins; origin != NULL; origin = origin->hh.next) {
        if (seqmap_max(&origin->writes) <= origin->frontier) {
            origin->gap_since_ms = 0;
        } else if (origin->gap_since_ms == 0 || origin->gap_frontier != origin->frontier) {
            origin->gap_since_ms = MAX(now, (uint64_t)1);
            origin->gap_frontier = origin->frontier;
            origin->gap_tries = 0;
            sync_gap(core);
        } else if (now >= origin->gap_since_ms + GAP_MS && origin->gap_tries < GAP_TRIES) {
            origin->gap_tries++;
            found = true;
        }
    }
    return found;
}

static bool is_behind(const struct gossip *core, const struct member *member)
{
    uint64_t now = core->now.mono_ms;
    if (member->differ_since_ms == 0 || member->pub.frontier_hash == core->kv.frontier_hash) {
        return false;
    }
    bool evidence =
        member->differ_at_ms >= core->quiet_ms + QUIET_MS && now >= member->differ_at_ms + QUIET_MS;
    bool busy = now >= member->differ_since_ms + BUSY_MS && now >= core->busy_ms + BUSY_MS;
    return evidence || busy || core->gap_found;
}

static enum stream_use wanted_use(const struct gossip *core, const struct member *member)
{
    uint64_t now = core->now.mono_ms;
    if (!member_is_up(member) || member->sync_stream != 0 || now < member->sync_after_ms) {
        return STREAM_UNKNOWN;
    }
    if (!core->in_step || member->pull || is_behind(core, member) ||
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
    look_at_self(core);
    core->sync_next_ms = now + core->settings.sync_interval_ms;
    core->gap_found = find_gap(core);
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
    core_wake(core, core->sync_next_ms);
    if (chosen != NULL) {
        enum stream_use use = wanted_use(core, chosen);
        sync_start(core, chosen, use);
        core->busy_ms = now;
        if (use == STREAM_AUDIT) {
            chosen->audit_since_ms = now; /* not again before it had time to help */
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
