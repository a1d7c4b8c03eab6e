/*
 * News on its way: facts about members, and change-sets.
 *
 * News is the fast path and may be lost; summaries and syncs are what makes nodes agree. Each item
 * is sent a number of times that grows with log10 of the cluster and then left to them. Own
 * change-sets go before forwarded ones, and the item sent least often goes first, so that a flood
 * of others' news cannot starve ours. What fits no datagram, or is secret, is never sent here: some
 * peers are told to fetch it by stream. Source: SWIM 4.1, clustering notes 1.3, 1.5 and 2.4.
 */
#include "gossip/core/core.h"
#include "node/base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* A datagram leaves this much to change-sets when any wait. */
enum {
    FACTS_ROOM = DATAGRAM_ROOM * 6 / 10,
    DATAGRAMS_PER_PEER = 4, /* and tick */
    RUMOUR_VECTOR = 4,      /* writers of a row that are named */
};

static uint32_t send_limit(const struct gossip *core)
{
    return 4 * (uint32_t)ceil(log10((double)member_up_count(core) + 1.0));
}

/* ---- the queues ---- */

static void rumour_free(struct gossip *core, struct rumour *rumour)
{
    struct rumour **queue = rumour->local ? &core->local_rumours : &core->other_rumours;
    DL_DELETE(*queue, rumour);
    core->rumour_count--;
    for (size_t i = 0; i < rumour->part.row_count; i++) {
        mem_free(unconst(rumour->part.rows[i]));
    }
    mem_free(unconst(rumour->part.rows));
    mem_free(rumour);
}

void rumour_deinit(struct gossip *core)
{
    while (core->local_rumours != NULL) {
        rumour_free(core, core->local_rumours);
    }
    while (core->other_rumours != NULL) {
        rumour_free(core, core->other_rumours);
    }
}

void rumour_fact(struct gossip *core, struct member *member)
{
    core->fact_rumours += member->rumoured ? 0 : 1;
    member->rumoured = true;
    member->rumour_sends = 0;
    member->rumour_no = ++core->fact_no;
    core_wake(core, core->gossip_next_ms);
}

/*
 * A row as a rumour carries it: with the latest writers only. A receiver needs the write's own
 * entry to keep its index true (what else the row has been through reached it, or will, as a write
 * or by sync); whole vectors would soon fit no datagram.
 */
static struct row *copy_for_rumour(const struct row *row)
{
    struct dot vector[RUMOUR_VECTOR];
    size_t count = 0;
    size_t first = row->vector_len > RUMOUR_VECTOR ? row->vector_len - RUMOUR_VECTOR : 0;
    for (size_t i = first; i < row->vector_len && count < RUMOUR_VECTOR - 1; i++) {
        if (origin_compare(row->vector[i].origin, row->dot.origin) != 0) {
            vector[count++] = row->vector[i];
        }
    }
    vector[count++] = row->dot;
    return row_copy(row, vector, count);
}

static struct rumour *rumour_new(struct gossip *core, const struct gossip_part *part, bool local)
{
    struct rumour *rumour = mem_new(sizeof(*rumour));
    const struct row **rows = mem_array(part->row_count, sizeof(*rows));
    for (size_t i = 0; i < part->row_count; i++) {
        rows[i] = copy_for_rumour(part->rows[i]);
    }
    rumour->local = local;
    rumour->born_ms = core->now.mono_ms;
    rumour->part = *part;
    rumour->part.rows = rows;
    if (local) {
        DL_PREPEND(core->local_rumours, rumour);
    } else {
        DL_PREPEND(core->other_rumours, rumour);
    }
    core->rumour_count++;
    return rumour;
}

static bool fits_datagram(struct gossip *core, const struct gossip_part *part)
{
    struct bundle bundle;
    bundle_init(core, &bundle);
    bool fits = bundle.size + msg_part_size(part) <= DATAGRAM_ROOM;
    for (size_t i = 0; i < part->row_count; i++) {
        fits = fits && (part->rows[i]->flags & ROW_SECRET) == 0;
    }
    return fits;
}

bool rumour_change_set(struct gossip *core, const struct gossip_part *part, bool local)
{
    if (core->rumour_count >= RUMOURS_MAX) {
        struct rumour *head =
            core->other_rumours != NULL ? core->other_rumours : core->local_rumours;
        rumour_free(core, head->prev); /* the tail was sent most often */
        core_count(core, COUNT_rumours_dropped);
    }
    struct rumour *rumour = rumour_new(core, part, local);
    if (!fits_datagram(core, &rumour->part)) {
        rumour_free(core, rumour);
        return false;
    }
    core_wake(core, core->gossip_next_ms);
    return true;
}

/* Bundles borrow from the queues until they are sent, so what is done with goes before a fill. */
static void drop_spent(struct gossip *core, struct rumour **queue, uint32_t limit)
{
    struct rumour *rumour = NULL;
    struct rumour *next = NULL;
    uint64_t acked = *queue != NULL ? resend_acked_by_all(core) : 0;
    DL_FOREACH_SAFE (*queue, rumour, next) {
        if (rumour->sends >= limit && !resend_wants(core, rumour, acked)) {
            rumour_free(core, rumour);
        }
    }
}

/* ---- filling a datagram ---- */

static void fill_change_sets(struct gossip *core, struct rumour **queue, struct bundle *bundle,
                             uint64_t to, uint32_t limit)
{
    /* Sent items move to the tail, where the walk ends when it meets them. */
    struct rumour *rumour = NULL;
    struct rumour *next = NULL;
    int tries = 64;
    DL_FOREACH_SAFE (*queue, rumour, next) {
        if (rumour->round_no == core->round_no || tries-- == 0) {
            break;
        }
        if (rumour->sends >= limit || rumour->part.origin.node == to ||
            !bundle_add(bundle, &rumour->part)) {
            continue;
        }
        rumour->sends++;
        rumour->round_no = core->round_no;
        core_count(core, COUNT_rumours_sent);
        DL_DELETE(*queue, rumour);
        DL_APPEND(*queue, rumour);
    }
}

static int compare_facts(const void *a, const void *b)
{
    const struct member *x = *(const struct member *const *)a;
    const struct member *y = *(const struct member *const *)b;
    if (x->rumour_sends != y->rumour_sends) {
        return x->rumour_sends < y->rumour_sends ? -1 : 1;
    }
    return (x->rumour_no < y->rumour_no) - (x->rumour_no > y->rumour_no);
}

static void fill_facts(struct gossip *core, struct bundle *bundle, uint64_t to, uint32_t limit)
{
    size_t room = core->rumour_count != 0 ? FACTS_ROOM : DATAGRAM_ROOM;
    struct member *news[GOSSIP_MEMBERS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < core->member_count && core->fact_rumours != 0; i++) {
        struct member *member = core->members[i];
        if (member->rumoured && member->rumour_sends >= limit) {
            member->rumoured = false;
            core->fact_rumours--;
        } else if (member->rumoured && member->pub.id != to) {
            news[count++] = member;
        }
    }
    qsort(news, count, sizeof(struct member *), compare_facts);
    for (size_t i = 0; i < count && bundle->size < room; i++) {
        struct gossip_fact fact;
        fact_from_member(news[i], &fact);
        if (!bundle_add_fact(bundle, &fact)) {
            break;
        }
        news[i]->rumour_sends++;
    }
    for (size_t i = 0; i < core->forgotten_count && bundle->size < room; i++) {
        struct gossip_fact fact;
        forgotten_fact(&core->forgotten[i], &fact);
        if (core->forgotten[i].rumour_sends < limit && bundle_add_fact(bundle, &fact)) {
            core->forgotten[i].rumour_sends++;
        }
    }
}

void rumour_fill(struct gossip *core, struct bundle *bundle, uint64_t to)
{
    uint32_t limit = send_limit(core);
    drop_spent(core, &core->local_rumours, limit);
    drop_spent(core, &core->other_rumours, limit);
    if (core->fact_rumours != 0 || core->forgotten_count != 0) {
        fill_facts(core, bundle, to, limit);
    }
    fill_change_sets(core, &core->local_rumours, bundle, to, limit);
    fill_change_sets(core, &core->other_rumours, bundle, to, limit);
}

/* ---- sending ---- */

void rumour_send_now(struct gossip *core, const struct gossip_part *part)
{
    struct member *peers[GOSSIP_MEMBERS_MAX];
    size_t count = member_pick(core, 0, peers, core->settings.fanout);
    if (!rumour_change_set(core, part, true)) {
        for (size_t i = 0; i < count; i++) {
            send_summary(core, peers[i], true);
        }
        core->gossip_next_ms = core->now.mono_ms + core->settings.gossip_interval_ms;
        core->pull_rounds = PULL_ROUNDS; /* for whom that got lost */
        core_wake(core, core->gossip_next_ms);
        return;
    }
    core->gossip_next_ms = core->now.mono_ms + core->settings.gossip_interval_ms;
    for (size_t i = 0; i < count; i++) {
        struct bundle bundle;
        core->round_no++;
        bundle_init(core, &bundle);
        rumour_fill(core, &bundle, peers[i]->pub.id);
        bundle_send(core, &bundle, &peers[i]->pub.addr, peers[i]);
    }
}

/* What is waiting, in a few datagrams at most: a burst of writes must not take a tick each. */
static void send_news(struct gossip *core, struct member *peer)
{
    core->round_no++;
    for (int i = 0; i < DATAGRAMS_PER_PEER; i++) {
        struct bundle bundle;
        bundle_init(core, &bundle);
        bundle.pull =
            i == 0 && core->pull_rounds != 0 && peer->pub.frontier_hash != core->kv.frontier_hash;
        rumour_fill(core, &bundle, peer->pub.id);
        if (bundle.part_count == 0 && !bundle.pull) {
            break;
        }
        bool full = bundle.size > DATAGRAM_ROOM / 2;
        bundle_send(core, &bundle, &peer->pub.addr, peer);
        if (!full) {
            break;
        }
    }
}

static bool has_news(const struct gossip *core)
{
    if (core->rumour_count != 0 || core->fact_rumours != 0 || core->pull_rounds != 0) {
        return true;
    }
    uint32_t limit = core->forgotten_count != 0 ? send_limit(core) : 0;
    for (size_t i = 0; i < core->forgotten_count; i++) {
        if (core->forgotten[i].rumour_sends < limit) {
            return true;
        }
    }
    return false;
}

void rumour_send_acks(struct gossip *core)
{
    if (core->now.mono_ms < core->acks_ms) {
        core_wake(core, core->acks_ms);
        return;
    }
    core->acks_due = false;
    core->acks_ms = NEVER;
    for (size_t i = 1; i < core->member_count; i++) {
        struct member *member = core->members[i];
        if (!member->ack_due) {
            continue;
        }
        uint64_t at = member->ack_sent_ms == 0 ? 0 : member->ack_sent_ms + ACK_GAP_MS;
        if (core->now.mono_ms < at) {
            core->acks_due = true;
            core->acks_ms = MIN(core->acks_ms, at);
            core_wake(core, at);
            continue;
        }
        member->ack_due = false;
        member->ack_sent_ms = MAX(core->now.mono_ms, (uint64_t)1);
        if (member_is_up(member)) {
            send_summary(core, member, false);
        }
    }
}

void rumour_tick(struct gossip *core)
{
    if (!has_news(core)) {
        return;
    }
    if (core->now.mono_ms < core->gossip_next_ms) {
        core_wake(core, core->gossip_next_ms);
        return;
    }
    struct member *peers[GOSSIP_MEMBERS_MAX];
    size_t count = member_pick(core, 0, peers, core->settings.fanout);
    for (size_t i = 0; i < count; i++) {
        send_news(core, peers[i]);
    }
    resend_round(core);
    core->pull_rounds -= core->pull_rounds != 0 ? 1 : 0;
    core->gossip_next_ms = core->now.mono_ms + core->settings.gossip_interval_ms;
    if (count != 0 && has_news(core)) {
        core_wake(core, core->gossip_next_ms);
    }
}

void rumour_ack(struct gossip *core, struct origin origin)
{
    struct member *member = member_find(core, origin.node);
    if (member == NULL || member == core->self || member->pub.generation != origin.generation) {
        return;
    }
    /* Cumulative, so one small datagram per gap is enough however many writes it covers. */
    member->ack_due = true;
    core->acks_due = true;
    core->acks_ms = 0;
}
