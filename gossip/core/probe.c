/*
 * Failure detection: one member per period is asked whether it lives.
 *
 *   asked     -> answered                            good: local health improves
 *             -> no answer in probe_timeout          three others ask for us, and we try a stream
 *   helped    -> answered by any way                 good
 *             -> none until the end of the period    suspect; local health worsens
 *
 * Targets come in a shuffled order that is used up before it is made anew, so that the time
 * between two probes of one member is bounded. A node whose own health is bad asks less often
 * and waits longer: it may be the slow one. Source: SWIM 4.3, Lifeguard IV-A.
 */
#include "gossip/core/core.h"
#include "node/base/mem.h"

/* ---- sending ---- */

void probe_send(struct gossip *core, struct member *to, uint64_t nonce)
{
    struct bundle bundle;
    bundle_init(core, &bundle);
    (void)bundle_add(&bundle, &(struct gossip_part){.kind = PART_PROBE,
                                                    .nonce = nonce,
                                                    .id = to->pub.id}); /* an empty one has room */
    if (to->pub.state != MEMBER_ALIVE) {
        /* The buddy rule: it must learn of the accusation to refute it. */
        struct gossip_fact fact;
        fact_from_member(to, &fact);
        (void)bundle_add_fact(&bundle, &fact); /* there is room for two parts */
    }
    core->round_no++;
    rumour_fill(core, &bundle, to->pub.id);
    to->probe_nonce = nonce;
    to->probe_sent_ms = core->now.mono_ms;
    core_count(core, COUNT_probes_sent);
    bundle_send(core, &bundle, &to->pub.addr, to);
}

/* ---- whom ---- */

static void shuffle_targets(struct gossip *core)
{
    core->probe_order =
        mem_grow(core->probe_order, MAX(core->member_count, (size_t)1), sizeof(uint64_t));
    size_t count = 0;
    for (size_t i = 1; i < core->member_count; i++) {
        if (member_is_up(core->members[i])) {
            core->probe_order[count++] = core->members[i]->pub.id;
        }
    }
    for (size_t i = count; i > 1; i--) {
        size_t other = (size_t)rng_below(&core->rng, i);
        uint64_t id = core->probe_order[i - 1];
        core->probe_order[i - 1] = core->probe_order[other];
        core->probe_order[other] = id;
    }
    core->probe_order_count = count;
    core->probe_order_next = 0;
}

static struct member *next_target(struct gossip *core)
{
    for (int round = 0; round < 2; round++) {
        while (core->probe_order_next < core->probe_order_count) {
            uint64_t id = core->probe_order[core->probe_order_next++];
            struct member *member = member_find(core, id);
            if (member != NULL && member_is_up(member)) {
                return member;
            }
        }
        shuffle_targets(core);
    }
    return NULL;
}

/* ---- one probe ---- */

static uint64_t scaled(const struct gossip *core, uint32_t ms)
{
    return (uint64_t)ms * (core->health + 1);
}

static void probe_begin(struct gossip *core)
{
    struct member *target = next_target(core);
    if (target == NULL) {
        core->probe.target = 0;
        return;
    }
    core->probe = (struct probe){
        .target = target->pub.id,
        .nonce = rng_next(&core->rng),
        .started_ms = core->now.mono_ms,
        .relay_ms = core->now.mono_ms + scaled(core, core->settings.probe_timeout_ms),
    };
    core_wake(core, core->probe.relay_ms);
    probe_send(core, target, core->probe.nonce);
}

static void probe_get_help(struct gossip *core)
{
    struct probe *probe = &core->probe;
    probe->relay_ms = NEVER;
    struct member *target = member_find(core, probe->target);
    struct member *helpers[RELAY_COUNT];
    size_t count = member_pick(core, probe->target, helpers, RELAY_COUNT);
    for (size_t i = 0; i < count; i++) {
        struct gossip_part part = {
            .kind = PART_RELAY,
            .nonce = probe->nonce,
            .id = probe->target,
            .addr = target->pub.addr,
        };
        send_part(core, helpers[i], NULL, &part);
        probe->misses_due++;
    }
    struct stream *stream = stream_start(core, target, STREAM_PROBE, core->probe_next_ms);
    if (stream != NULL) {
        core_count(core, COUNT_probes_by_stream);
        probe->stream = stream->no;
    }
}

static void probe_close_stream(struct gossip *core)
{
    struct stream *stream = stream_find(core, core->probe.stream);
    core->probe.stream = 0;
    if (stream != NULL) {
        stream_end(core, stream, true);
    }
}

static void probe_end(struct gossip *core)
{
    struct probe probe = core->probe;
    probe_close_stream(core);
    core->probe = (struct probe){0};
    struct member *target = member_find(core, probe.target);
    if (probe.acked || target == NULL || !member_is_up(target)) {
        return;
    }
    core_count(core, COUNT_probes_failed);
    /* Helpers that said "I cannot reach it either" prove that our own network works; each one that
     * said nothing is a sign that it does not. */
    uint32_t worse = probe.misses_due == 0             ? 1
                     : probe.misses < probe.misses_due ? probe.misses_due - probe.misses
                                                       : 0;
    core->health = MIN(core->health + worse, (uint32_t)HEALTH_MAX);
    member_suspect(core, target);
}

static void probe_good(struct gossip *core)
{
    if (!core->probe.acked) {
        core->probe.acked = true;
        core->probe.relay_ms = NEVER;
        core->health -= core->health > 0 ? 1 : 0;
        probe_close_stream(core);
    }
}

void probe_start(struct gossip *core)
{
    /* A random phase: nodes started by one script must not beat together. */
    core->probe_next_ms =
        core->now.mono_ms + rng_below(&core->rng, core->settings.probe_interval_ms) + 1;
    core_wake(core, core->probe_next_ms);
}

void probe_tick(struct gossip *core)
{
    uint64_t now = core->now.mono_ms;
    if (core->probe.target != 0 && !core->probe.acked && now >= core->probe.relay_ms) {
        if (now < core->probe_next_ms) {
            probe_get_help(core);
        }
    }
    if (now >= core->probe_next_ms) {
        if (core->probe.target != 0) {
            probe_end(core);
        }
        core->probe_next_ms = now + scaled(core, core->settings.probe_interval_ms);
        if (!core->leaving) {
            probe_begin(core);
        }
    }
    core_wake(core, core->probe_next_ms);
    if (core->probe.target != 0 && !core->probe.acked) {
        core_wake(core, core->probe.relay_ms);
    }
}

/* ---- answers ---- */

void probe_on_reply(struct gossip *core, struct member *from, uint64_t nonce, uint64_t wall_ms)
{
    if (nonce == from->probe_nonce && nonce != 0) {
        uint64_t rtt_ms = core->now.mono_ms - from->probe_sent_ms;
        from->probe_nonce = 0;
        clock_sample(core, from, wall_ms, rtt_ms);
    }
    if (core->probe.target != 0 && nonce == core->probe.nonce) {
        probe_good(core); /* from the target, or passed on by a helper */
    } else {
        (void)relay_on_reply(core, nonce); /* or late, or of a retry: the contact itself counted */
    }
}

void probe_on_miss(struct gossip *core, uint64_t nonce)
{
    if (core->probe.target != 0 && nonce == core->probe.nonce) {
        core->probe.misses++;
    }
}

void probe_stream_opened(struct gossip *core, struct stream *stream)
{
    core->probe.stream_sent_ms = core->now.mono_ms;
    struct gossip_part part = {.kind = PART_PROBE, .nonce = core->probe.nonce, .id = stream->peer};
    stream_parts(core, stream, &part, 1);
}

void probe_stream_replied(struct gossip *core, struct stream *stream, uint64_t nonce)
{
    if (core->probe.stream == stream->no && core->probe.nonce == nonce) {
        probe_good(core); /* ends the stream */
    }
}

void probe_member_gone(struct gossip *core, uint64_t id)
{
    if (core->probe.target == id) {
        probe_close_stream(core);
        core->probe = (struct probe){0};
    }
}
