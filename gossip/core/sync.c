/*
 * Sessions that bring two tables together.
 *
 *   opener                                   acceptor
 *   SYNC_OPEN (frontier, credit), facts  ->
 *                                        <-  SYNC_OPEN (frontier, credit), facts
 *   ROWS.. MARK.. END                    <>  ROWS.. MARK.. END        both ways at once
 *   DONE (your END was reached)          <>  DONE
 *   closes
 *
 * For every origin where the sender may have more than the peer's frontier, it walks that origin's
 * latest writes in ascending order, from the peer's frontier to the end of what it holds, and sends
 * the rows that those keys hold now. Then a mark sets the peer's frontier to what the sender's was
 * when the peer's open came.
 *
 * Why the mark is sound although the table goes on changing: take any key that the origin wrote at
 * a seq the mark covers. At the open, the sender held that write or a later version, and its entry
 * was in the walk's range or below the peer's frontier. An entry is only ever removed to come
 * back higher up in the same origin's order (kv.h), so an ascending walk that goes to the end meets
 * every key whose entry it has not passed, and sends what the key holds then, which is never older.
 * The peer has applied all of it when the mark arrives, because a stream keeps order. A session
 * that is cut before the mark has merged rows and moved no frontier. Entries above the mark are
 * sent too; they are rows the sender got out of order.
 *
 * Source: clustering notes 2.4, rules 3 and 4.
 */
#include "gossip/core/core.h"
#include "node/base/mem.h"

enum {
    FACTS_PER_MSG = 128,
    DIRTY_MAX = 4096, /* rows waiting for the disk above which no more are asked for */
};

static struct sync_range *ranges_new(struct gossip *core, const struct gossip_part *open,
                                     size_t *ret_count)
{
    struct kv_origin *origin = NULL;
    struct kv_origin *next = NULL;
    HASH_ITER (hh, core->kv.origins, origin, next) {
        origin->peer_seq = 0;
    }
    for (size_t i = 0; i < open->frontier_count; i++) {
        origin = kv_find_origin(&core->kv, open->frontier[i].origin);
        if (origin != NULL) {
            origin->peer_seq = open->frontier[i].seq;
        }
    }
    struct sync_range *ranges = mem_array(kv_origin_count(&core->kv), sizeof(*ranges));
    size_t count = 0;
    HASH_ITER (hh, core->kv.origins, origin, next) {
        if (origin->frontier > origin->peer_seq ||
            seqmap_above(&origin->writes, origin->peer_seq, UINT64_MAX) != NULL) {
            ranges[count++] = (struct sync_range){
                .origin = origin,
                .seq = origin->peer_seq,
                .tie = UINT64_MAX,
                .target = origin->frontier > origin->peer_seq ? origin->frontier : 0,
            };
        }
    }
    *ret_count = count;
    return ranges;
}

/* ---- sending rows ---- */

bool chunk_add(struct chunk *chunk, const struct row *row)
{
    size_t size = msg_row_size(row);
    if (chunk->row_count == MSG_CHUNK_ROWS ||
        (chunk->row_count != 0 && chunk->bytes + size > MSG_CHUNK_BYTES)) {
        return false;
    }
    chunk->rows[chunk->row_count++] = row;
    chunk->bytes += size;
    return true;
}

void chunk_send(struct gossip *core, struct stream *stream, struct chunk *chunk,
                struct origin origin)
{
    struct gossip_part part = {
        .kind = PART_ROWS,
        .origin = origin,
        .rows = chunk->rows,
        .row_count = chunk->row_count,
    };
    stream->credit--;
    core_count(core, COUNT_chunks_sent);
    stream_parts(core, stream, &part, 1);
    chunk->row_count = 0;
    chunk->bytes = 0;
}

static void send_mark(struct gossip *core, struct stream *stream, const struct sync_range *range)
{
    if (range->target != 0) {
        struct gossip_part mark = {
            .kind = PART_MARK,
            .origin = range->origin->origin,
            .last_seq = range->target,
        };
        stream_parts(core, stream, &mark, 1);
    }
}

/* One chunk of one origin. True: the walk is at its end. */
static bool pump_range(struct gossip *core, struct stream *stream, struct sync_range *range)
{
    if (MUTANT(MUTANT_EARLY_FRONTIER)) {
        send_mark(core, stream, range);
    }
    struct chunk chunk;
    chunk.row_count = 0;
    chunk.bytes = 0;
    const struct seqmap_node *node = NULL;
    while ((node = seqmap_above(&range->origin->writes, range->seq, range->tie)) != NULL) {
        const struct kv_entry *entry = node->item;
        if (!chunk_add(&chunk, entry->row)) {
            break;
        }
        range->seq = node->seq;
        range->tie = node->tie;
    }
    if (chunk.row_count != 0) {
        chunk_send(core, stream, &chunk, range->origin->origin);
    }
    return node == NULL;
}

void sync_pump(struct gossip *core, struct stream *stream)
{
    if (!stream->planned || stream->end_sent) {
        return;
    }
    if (stream->use == STREAM_AUDIT) {
        if (!audit_pump(core, stream)) {
            return;
        }
    }
    while (stream->range_count != 0) {
        if (stream->credit == 0) {
            return;
        }
        /* Origins take turns, so that a busy one does not hold up the others' marks. */
        size_t at = stream->range_next++ % stream->range_count;
        struct sync_range *range = &stream->ranges[at];
        if (pump_range(core, stream, range)) {
            send_mark(core, stream, range);
            *range = stream->ranges[--stream->range_count];
        }
    }
    stream->end_sent = true;
    struct gossip_part end = {.kind = PART_END};
    stream_parts(core, stream, &end, 1);
}

/* ---- opening ---- */

static void send_facts(struct gossip *core, struct stream *stream)
{
    struct gossip_fact facts[FACTS_PER_MSG];
    struct gossip_part parts[FACTS_PER_MSG];
    size_t count = 0;
    for (size_t i = 1; i < core->member_count; i++) {
        fact_from_member(core->members[i], &facts[count]);
        parts[count] = (struct gossip_part){.kind = PART_FACT, .fact = &facts[count]};
        count++;
        if (count == FACTS_PER_MSG || i + 1 == core->member_count) {
            stream_parts(core, stream, parts, count);
            count = 0;
        }
    }
}

static void send_open(struct gossip *core, struct stream *stream)
{
    struct dot *frontier = mem_array(kv_origin_count(&core->kv), sizeof(*frontier));
    size_t count = 0;
    struct kv_origin *origin = NULL;
    struct kv_origin *next = NULL;
    HASH_ITER (hh, core->kv.origins, origin, next) {
        if (origin->frontier != 0) {
            frontier[count++] = (struct dot){origin->origin, origin->frontier};
        }
    }
    struct gossip_part open = {
        .kind = PART_SYNC_OPEN,
        .frontier = frontier,
        .frontier_count = count,
        .credit = SYNC_CREDIT,
        .audit = stream->use == STREAM_AUDIT,
    };
    stream_parts(core, stream, &open, 1);
    mem_free(frontier);
    send_facts(core, stream);
}

void sync_start(struct gossip *core, struct member *member, enum stream_use use)
{
    if (core->syncs_out >= SYNCS_OUT_MAX || member->sync_stream != 0 || !member_is_up(member) ||
        core->now.mono_ms < member->sync_after_ms || core->leaving) {
        return;
    }
    struct stream *stream = stream_start(core, member, use, core->now.mono_ms + STREAM_WAIT_MS);
    if (stream == NULL) {
        return;
    }
    core_count(core, use == STREAM_AUDIT ? COUNT_audits_started : COUNT_syncs_started);
    core->syncs_out++;
    core->sync_last_ms = core->now.mono_ms;
    member->sync_stream = stream->no;
    stream->pulled = member->pull;
    member->pull = false;
}

void sync_opened(struct gossip *core, struct stream *stream)
{
    send_open(core, stream);
    if (stream->use == STREAM_AUDIT) {
        audit_ask(core, stream);
    }
}

/* Somebody opened a session with us. */
static bool accept_session(struct gossip *core, struct stream *stream, bool audit)
{
    struct member *member = member_find(core, stream->peer);
    struct stream *other = stream_find(core, member->sync_stream);
    if (other != NULL && !other->inbound) {
        /* Both opened at once: the session of the smaller identity stays. */
        if (other->planned || core->self->pub.id < stream->peer) {
            return false;
        }
    }
    if (core->syncs_in >= SYNCS_IN_MAX) {
        return false;
    }
    if (other != NULL) {
        stream_end(core, other, true);
    }
    stream->use = audit ? STREAM_AUDIT : STREAM_SYNC;
    core->syncs_in++;
    member->sync_stream = stream->no;
    core_count(core, COUNT_syncs_accepted);
    return true;
}

static void on_open(struct gossip *core, struct stream *stream, const struct gossip_part *open)
{
    if (stream->opened) {
        stream_end(core, stream, true);
        return;
    }
    if (stream->use == STREAM_UNKNOWN) {
        if (!accept_session(core, stream, open->audit)) {
            core_count(core, COUNT_syncs_refused);
            stream_end(core, stream, true);
            return;
        }
        send_open(core, stream);
    } else if (stream->inbound || open->audit != (stream->use == STREAM_AUDIT)) {
        stream_end(core, stream, true);
        return;
    }
    stream->opened = true;
    stream->credit = MIN(open->credit, (uint32_t)64);
    struct origin own = core_origin(core);
    struct member *from = member_find(core, stream->peer);
    for (size_t i = 0; i < open->frontier_count; i++) {
        struct origin origin = open->frontier[i].origin;
        if (origin.node == own.node && origin.generation >= own.generation) {
            generation_told(core, from, origin.generation, open->frontier[i].seq);
        }
    }
    if (stream->use == STREAM_SYNC) {
        stream->ranges = ranges_new(core, open, &stream->range_count);
        stream->planned = true;
        sync_pump(core, stream);
    }
}

/* ---- receiving ---- */

/* Others will not hear of it by rumour either. */
static bool is_bulk(const struct gossip_part *chunk, const struct row *row)
{
    return chunk->row_count > 16 || (row->flags & ROW_SECRET) != 0 ||
           msg_row_size(row) > DATAGRAM_ROOM / 2;
}

static void on_rows(struct gossip *core, struct stream *stream, const struct gossip_part *part)
{
    for (size_t i = 0; i < part->row_count; i++) {
        bool changed = false;
        const struct dot *dot = &part->rows[i]->dot;
        core_count(core, COUNT_rows_received);
        if (!apply_row(core, part->rows[i], true, &changed)) {
            stream_end(core, stream, true); /* the table is full: no mark may follow */
            return;
        }
        stream->bulk =
            stream->bulk || (changed && (stream->pulled || is_bulk(part, part->rows[i])));
        if (changed && stream->use == STREAM_AUDIT &&
            kv_frontier(&core->kv, dot->origin) >= dot->seq) {
            stream->repairs++;
            core_count(core, COUNT_audit_repairs);
        }
    }
    stream->owed++;
}

static void session_complete(struct gossip *core, struct stream *stream)
{
    core_count(core, COUNT_syncs_completed);
    stream->complete = true;
    struct member *member = member_find(core, stream->peer);
    member->differ_since_ms = 0;
    member->members_differ_since_ms = 0;
    member->audit_since_ms = 0;
    if (stream->repairs != 0) {
        core_event(core, GOSSIP_EVENT_WARNING, member,
                   "%u entries that should have been equal were not and were repaired with %s",
                   stream->repairs, member->pub.name);
    }
    if (stream->bulk) {
        core->pull_rounds = PULL_ROUNDS;
        core_wake(core, core->gossip_next_ms);
    }
    if (!core->in_step && stream->use == STREAM_SYNC) {
        core->in_step = true;
        core_event(core, GOSSIP_EVENT_IN_STEP, member, "in step with %s", member->pub.name);
        generation_consider(core);
    }
    if (!stream->inbound) {
        stream_end(core, stream, true);
    }
}

static void on_end(struct gossip *core, struct stream *stream)
{
    stream->end_got = true;
    struct gossip_part done = {.kind = PART_DONE};
    stream_parts(core, stream, &done, 1);
}

void sync_part(struct gossip *core, struct stream *stream, const struct gossip_part *part)
{
    uint64_t no = stream->no;
    if (part->kind == PART_SYNC_OPEN) {
        on_open(core, stream, part);
        return;
    }
    if (!stream->opened || stream->complete) {
        stream_end(core, stream, true); /* out of turn */
        return;
    }
    if (part->kind == PART_ROWS) {
        on_rows(core, stream, part);
    } else if (part->kind == PART_MARK && stream->use == STREAM_SYNC) {
        apply_advance(core, part->origin, part->last_seq);
    } else if (part->kind == PART_CREDIT) {
        stream->credit = MIN(stream->credit + MIN(part->credit, (uint32_t)64), (uint32_t)64);
        sync_pump(core, stream);
    } else if (part->kind == PART_AUDIT) {
        audit_on_hashes(core, stream, part);
    } else if (part->kind == PART_BUCKETS) {
        audit_on_buckets(core, stream, part);
    } else if (part->kind == PART_END) {
        on_end(core, stream);
    } else if (part->kind == PART_DONE) {
        stream->done_got = true;
    }
    stream = stream_find(core, no); /* the part may have ended it */
    if (stream != NULL && stream->end_sent && stream->end_got && stream->done_got) {
        session_complete(core, stream);
    }
}

/* Credit comes back when a chunk is applied, but not while the disk is behind. */
void sync_grant(struct gossip *core)
{
    if (core->kv.dirty_count > DIRTY_MAX && core->batch_wait_ms == 0) {
        return; /* slow; a disk that fails does not count: memory has to do */
    }
    struct stream *stream = NULL;
    struct stream *next = NULL;
    HASH_ITER (hh, core->streams, stream, next) {
        if (stream->owed != 0) {
            struct gossip_part part = {.kind = PART_CREDIT, .credit = stream->owed};
            stream->owed = 0;
            stream_parts(core, stream, &part, 1);
        }
    }
}
