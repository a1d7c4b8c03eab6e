/*
 * Others' writes into the table.
 *
 * Rows are always merged, in whatever order they come; the frontier moves only where nothing can be
 * missing below it: a change-set that follows on what we have, or the mark at the end of a sync.
 */
#include "gossip/core/core.h"
#include "node/base/mem.h"

/* A write in our own name that we do not remember: the disk was lost or put back. */
static void check_own(struct gossip *core, const struct row *row)
{
    struct origin own = core_origin(core);
    if (!core->started || row->dot.origin.node != own.node) {
        return;
    }
    if (row->dot.origin.generation > own.generation ||
        (row->dot.origin.generation == own.generation && row->dot.seq > core->last_seq)) {
        generation_lost(core, row->dot.origin.generation,
                        "a peer holds a write of this node that this node does not know");
    }
}

bool apply_row(struct gossip *core, const struct row *row, bool persist, bool *ret_changed)
{
    check_own(core, row);
    struct kv_change change;
    int rc = kv_apply(&core->kv, row, persist, &change);
    if (rc != RC_OK) {
        core_count(core, COUNT_rows_refused);
        return false;
    }
    hlc_observe(core, row->hlc, &row->dot.origin);
    if (change.effect == KV_ROW) {
        core_count(core, COUNT_rows_applied);
        core->ops->applied(core->ctx, change.row, change.old);
        mem_free(change.old);
        if (MUTANT(MUTANT_NO_TOMBSTONE) && !row_is_live(row)) {
            kv_find(&core->kv, row->kind, row->id, row->id_len)->row->hlc = 1;
        }
    }
    *ret_changed = *ret_changed || change.effect != KV_SAME;
    return true;
}

void apply_advance(struct gossip *core, struct origin origin, uint64_t seq)
{
    if (kv_advance(&core->kv, origin, seq, true)) {
        rumour_ack(core, origin);
    }
}

static bool is_well_formed(const struct gossip_part *part)
{
    if (part->first_seq == 0 || part->last_seq < part->first_seq || part->row_count == 0) {
        return false;
    }
    for (size_t i = 0; i < part->row_count; i++) {
        const struct dot *dot = &part->rows[i]->dot;
        if (origin_compare(dot->origin, part->origin) != 0 || dot->seq < part->first_seq ||
            dot->seq > part->last_seq) {
            return false;
        }
    }
    return true;
}

void apply_change_set(struct gossip *core, const struct gossip_part *part, struct member *from)
{
    core_count(core, COUNT_rumours_received);
    if (!is_well_formed(part)) {
        core_count(core, COUNT_datagrams_refused);
        return;
    }
    uint64_t have = kv_frontier(&core->kv, part->origin);
    if (have >= part->last_seq) {
        if (from->pub.id == part->origin.node) {
            rumour_ack(core, part->origin); /* our first acknowledgement got lost */
        }
        return;
    }
    bool changed = false;
    bool complete = true;
    for (size_t i = 0; i < part->row_count; i++) {
        core->counters[COUNT_rows_received].value++;
        complete = apply_row(core, part->rows[i], true, &changed) && complete;
    }
    if (complete && have >= part->first_seq - 1) {
        apply_advance(core, part->origin, part->last_seq);
        changed = true;
    } else if (changed) {
        sync_gap(core);
    }
    if (changed) {
        (void)rumour_change_set(core, part, false); /* it came in a datagram */
    }
}
