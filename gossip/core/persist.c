/*
 * What others taught us, to the disk.
 *
 * One batch is under way at a time; what changes meanwhile collects and makes the next one. So a
 * slow disk delays nobody and costs no memory beyond the table, and a failed batch can simply be
 * made again. A frontier goes to the disk only with, or after, every row it speaks of: it is left
 * out of a batch that does not take all waiting rows.
 */
#include "gossip/core/core.h"
#include "node/base/mem.h"

#include <string.h>

enum {
    BATCH_ROWS = 1000,
    BATCH_BYTES = 4 << 20,
    RETRY_FIRST_MS = 1000,
    RETRY_LAST_MS = 60000,
};

/* ---- collecting: each part moves what is dirty to the batch ---- */

static void take_rows(struct gossip *core, struct gossip_batch *batch)
{
    struct kv *kv = &core->kv;
    size_t max = MIN(kv->dirty_count, (size_t)BATCH_ROWS);
    const struct row **rows = mem_array(max, sizeof(*rows));
    core->batch_entries =
        mem_grow(core->batch_entries, MAX(max, (size_t)1), sizeof(struct kv_entry *));
    size_t bytes = 0;
    size_t count = 0;
    while (count < max && bytes < BATCH_BYTES) {
        struct kv_entry *entry = kv->dirty[count];
        entry->dirty = false;
        bytes += entry->row->value_len;
        core->batch_entries[count] = entry;
        rows[count++] = entry->row;
    }
    kv->dirty_count -= count;
    if (kv->dirty_count > 0) { /* before the first write there is no array */
        memmove(kv->dirty, kv->dirty + count, kv->dirty_count * sizeof(struct kv_entry *));
    }
    core->batch_entry_count = count;
    batch->rows = rows;
    batch->row_count = count;
}

static void take_frontier(struct gossip *core, struct gossip_batch *batch)
{
    core->batch_origin_count = 0;
    if (core->kv.dirty_origins == 0 || core->kv.dirty_count != 0) {
        return;
    }
    struct dot *dots = mem_array(core->kv.dirty_origins, sizeof(*dots));
    core->batch_origins =
        mem_grow(core->batch_origins, core->kv.dirty_origins, sizeof(struct origin));
    size_t count = 0;
    struct kv_origin *origin = NULL;
    struct kv_origin *next = NULL;
    HASH_ITER (hh, core->kv.origins, origin, next) {
        if (origin->dirty) {
            origin->dirty = false;
            core->batch_origins[count] = origin->origin;
            dots[count++] = (struct dot){origin->origin, origin->frontier};
        }
    }
    core->kv.dirty_origins = 0;
    core->batch_origin_count = count;
    batch->frontier = dots;
    batch->frontier_count = count;
}

static void take_members(struct gossip *core, struct gossip_batch *batch)
{
    core->batch_member_count = 0;
    if (!core->members_dirty) {
        return;
    }
    core->members_dirty = false;
    struct gossip_member *members = mem_array(core->member_count, sizeof(*members));
    core->batch_members = mem_grow(core->batch_members, core->member_count, sizeof(uint64_t));
    size_t count = 0;
    for (size_t i = 1; i < core->member_count; i++) {
        struct member *member = core->members[i];
        if (member->dirty) {
            member->dirty = false;
            core->batch_members[count] = member->pub.id;
            members[count++] = member->pub;
        }
    }
    core->batch_member_count = count;
    batch->members = members;
    batch->member_count = count;
}

void persist_flush(struct gossip *core)
{
    bool work = core->kv.dirty_count != 0 || core->kv.dirty_origins != 0 || core->members_dirty ||
                core->limit_dirty || core->forgets_dirty_count != 0;
    if (!work || core->batch_token != 0 || !core->started) {
        return;
    }
    if (core->now.mono_ms < core->batch_retry_ms) {
        core_wake(core, core->batch_retry_ms);
        return;
    }
    struct gossip_batch batch = {0};
    take_rows(core, &batch);
    take_frontier(core, &batch);
    take_members(core, &batch);
    batch.forgotten = core->forgets_dirty;
    batch.forgotten_count = core->forgets_dirty_count;
    core->batch_forgets = core->forgets_dirty_count;
    core->batch_limit = core->limit_dirty;
    if (core->limit_dirty) {
        batch.incarnation_limit = core->incarnation_limit;
        core->limit_dirty = false;
    }
    core->batch_token = ++core->last_token;
    core->ops->persist(core->ctx, &batch, core->batch_token);
    mem_free(unconst(batch.rows));
    mem_free(unconst(batch.frontier));
    mem_free(unconst(batch.members));
}

void persist_tick(struct gossip *core)
{
    if (core->batch_token == 0 && core->now.mono_ms < core->batch_retry_ms) {
        core_wake(core, core->batch_retry_ms);
    }
}

/* ---- answers ---- */

static void take_back(struct gossip *core)
{
    for (size_t i = 0; i < core->batch_entry_count; i++) {
        kv_mark_dirty(&core->kv, core->batch_entries[i]);
    }
    for (size_t i = 0; i < core->batch_origin_count; i++) {
        struct kv_origin *origin = kv_find_origin(&core->kv, core->batch_origins[i]);
        kv_mark_origin_dirty(&core->kv, origin);
    }
    for (size_t i = 0; i < core->batch_member_count; i++) {
        struct member *member = member_find(core, core->batch_members[i]);
        if (member != NULL) {
            member->dirty = true;
            core->members_dirty = true;
        }
    }
    core->limit_dirty = core->limit_dirty || core->batch_limit;
}

bool persist_done(struct gossip *core, uint64_t token, int rc)
{
    if (token != core->batch_token || token == 0) {
        return false;
    }
    core->batch_token = 0;
    if (rc == RC_OK) {
        core->batch_wait_ms = 0;
        core->forgets_dirty_count -= core->batch_forgets;
        memmove(core->forgets_dirty, core->forgets_dirty + core->batch_forgets,
                core->forgets_dirty_count * sizeof(core->forgets_dirty[0]));
        return true;
    }
    core_count(core, COUNT_batches_failed);
    if (core->batch_wait_ms == 0) {
        core_event(
            core, GOSSIP_EVENT_WARNING, NULL,
            "what other nodes wrote could not be stored (%s); kept in memory and tried again",
            rc_text(rc));
    }
    take_back(core);
    core->batch_wait_ms = core->batch_wait_ms == 0
                              ? RETRY_FIRST_MS
                              : MIN(core->batch_wait_ms * 2, (uint32_t)RETRY_LAST_MS);
    core->batch_retry_ms = core->now.mono_ms + core->batch_wait_ms;
    return true;
}

void persist_deinit(struct gossip *core)
{
    MEM_FREE(core->batch_entries);
    MEM_FREE(core->batch_origins);
    MEM_FREE(core->batch_members);
}
