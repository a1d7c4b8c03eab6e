/*
 * Repair of what should not happen: equal frontiers over different rows.
 *
 * The opener sends the sums of all buckets, the acceptor names those that differ, and both send
 * what they hold in them; the merge rule does the rest. No frontier moves. Deletions are kept as
 * rows, so a key that one side lacks is simply sent. Every repaired row is a sign of a bug or of a
 * node that reused its numbers, and is reported. Source: clustering notes 2.4, rule 5.
 */
#include "gossip/core/core.h"
#include "node/base/mem.h"

enum { BUCKETS_AT_ONCE = 512 /* the rest differs next time too */ };

void audit_ask(struct gossip *core, struct stream *stream)
{
    struct gossip_part part = {
        .kind = PART_AUDIT,
        .hashes = core->kv.buckets,
        .hash_count = MSG_BUCKETS,
    };
    stream_parts(core, stream, &part, 1);
}

static void plan(struct gossip *core, struct stream *stream, const uint32_t *buckets, size_t count)
{
    bool wanted[MSG_BUCKETS] = {false};
    for (size_t i = 0; i < count; i++) {
        wanted[buckets[i] % MSG_BUCKETS] = true;
    }
    stream->entries = mem_array(HASH_COUNT(core->kv.entries), sizeof(*stream->entries));
    struct kv_entry *entry = NULL;
    struct kv_entry *next = NULL;
    HASH_ITER (hh, core->kv.entries, entry, next) {
        if (wanted[entry->bucket]) {
            stream->entries[stream->entry_count++] = entry; /* entries never go away */
        }
    }
    stream->planned = true;
    sync_pump(core, stream);
}

void audit_on_hashes(struct gossip *core, struct stream *stream, const struct gossip_part *part)
{
    if (stream->use != STREAM_AUDIT || !stream->inbound || stream->planned ||
        part->hash_count != MSG_BUCKETS) {
        stream_end(core, stream, true);
        return;
    }
    uint32_t differ[BUCKETS_AT_ONCE];
    size_t count = 0;
    for (uint32_t i = 0; i < MSG_BUCKETS && count < BUCKETS_AT_ONCE; i++) {
        if (part->hashes[i] != core->kv.buckets[i]) {
            differ[count++] = i;
        }
    }
    struct gossip_part reply = {.kind = PART_BUCKETS, .buckets = differ, .bucket_count = count};
    stream_parts(core, stream, &reply, 1);
    plan(core, stream, differ, count);
}

void audit_on_buckets(struct gossip *core, struct stream *stream, const struct gossip_part *part)
{
    if (stream->use != STREAM_AUDIT || stream->inbound || stream->planned) {
        stream_end(core, stream, true);
        return;
    }
    plan(core, stream, part->buckets, part->bucket_count);
}

bool audit_pump(struct gossip *core, struct stream *stream)
{
    while (stream->entry_next < stream->entry_count) {
        if (stream->credit == 0) {
            return false;
        }
        struct chunk chunk;
        chunk.row_count = 0;
        chunk.bytes = 0;
        while (stream->entry_next < stream->entry_count &&
               chunk_add(&chunk, stream->entries[stream->entry_next]->row)) {
            stream->entry_next++;
        }
        chunk_send(core, stream, &chunk, core_origin(core));
    }
    return true;
}
