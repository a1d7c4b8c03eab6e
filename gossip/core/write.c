/*
 * Local writes: staged -> persisting -> durable, applied and spread -> reported.
 *
 * Nothing of a write is visible here or elsewhere before it is durable: a sequence number that
 * others have seen must survive a power cut. Numbers are given when staged and never again; a
 * write that failed to persist leaves no hole, because the next change-set's range starts behind
 * the last durable one. Persisting answers in order, so ranges follow one another.
 */
#include "gossip/core/core.h"
#include "node/base/check.h"
#include "node/base/mem.h"

#include <string.h>
#include <utlist.h>

static unsigned key_len(const struct gossip_change *change)
{
    return (unsigned)change->id_len + 2;
}

static struct pending_key *key_new(const struct gossip_change *change, uint64_t token)
{
    struct pending_key *key = mem_new(sizeof(*key) + key_len(change));
    key->token = token;
    key->key[0] = (uint8_t)(change->kind >> 8);
    key->key[1] = (uint8_t)change->kind;
    memcpy(key->key + 2, change->id, change->id_len);
    return key;
}

static void write_free(struct gossip *core, struct write *write)
{
    for (size_t i = 0; i < write->row_count; i++) {
        MEM_FREE(write->rows[i]);
    }
    for (size_t i = 0; i < write->row_count; i++) {
        if (write->keys[i] != NULL) {
            HASH_DEL(core->pending_keys, write->keys[i]);
            MEM_FREE(write->keys[i]);
        }
    }
    MEM_FREE(write->rows);
    MEM_FREE(write->keys);
    mem_free(write);
}

void write_deinit(struct gossip *core)
{
    while (core->writes != NULL) {
        struct write *write = core->writes;
        DL_DELETE(core->writes, write);
        write_free(core, write);
    }
}

/* ---- staging ---- */

static int check_change(const struct gossip_change *change, struct err_info *err)
{
    if (change->kind == 0 || change->kind > 255) {
        return err_set(err, RC_INVALID, "kind %u is not in 1..255", change->kind);
    }
    if (change->id_len == 0 || change->id_len > ROW_ID_MAX) {
        return err_set(err, RC_INVALID, "an id has %zu bytes: accepted are 1 to %d", change->id_len,
                       ROW_ID_MAX);
    }
    if ((change->flags & ROW_TOMBSTONE) == 0 && change->value_len > ROW_VALUE_MAX) {
        return err_set(err, RC_TOO_BIG, "a value has %zu bytes: accepted are up to %d",
                       change->value_len, ROW_VALUE_MAX);
    }
    return RC_OK;
}

static int check_size(const struct gossip_change *changes, size_t count, size_t *ret_bytes,
                      struct err_info *err)
{
    if (count == 0) {
        return err_set(err, RC_INVALID, "nothing to write");
    }
    if (count > CHANGE_SET_ROWS_MAX) {
        return err_set(err, RC_TOO_BIG, "%zu objects in one write: accepted are up to %d", count,
                       CHANGE_SET_ROWS_MAX);
    }
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        int rc = check_change(&changes[i], err);
        if (rc != RC_OK) {
            return rc;
        }
        bytes += (changes[i].flags & ROW_TOMBSTONE) != 0 ? 0 : changes[i].value_len;
    }
    if (bytes > CHANGE_SET_BYTES_MAX) {
        return err_set(err, RC_TOO_BIG, "%zu bytes in one write: accepted are up to %d", bytes,
                       CHANGE_SET_BYTES_MAX);
    }
    *ret_bytes = bytes;
    return RC_OK;
}

static int check_state(const struct gossip *core, size_t bytes, struct err_info *err)
{
    size_t peers = 0;
    int64_t off_ms = clock_offset_ms(core, &peers);
    if (off_ms > (int64_t)core->settings.clock_limit_ms ||
        off_ms < -(int64_t)core->settings.clock_limit_ms) {
        return err_set(err, RC_CLOCK,
                       "this node's clock is %.1f s %s the median of %zu peer%s; writes are "
                       "refused above %.1f s",
                       core_seconds(off_ms), off_ms < 0 ? "behind" : "ahead of", peers,
                       peers == 1 ? "" : "s", core_seconds(core->settings.clock_limit_ms));
    }
    if (core->gate == GATE_ASKING) {
        return err_set(err, RC_BUSY,
                       "this node has just started and is asking its peers which of its writes "
                       "they know; try again in a moment");
    }
    if (core->gate == GATE_BUMPING) {
        return err_set(err, RC_BUSY,
                       "this node is beginning a new generation (%s); try again in a moment",
                       core->bump_why);
    }
    if (core->write_count >= WRITES_MAX ||
        core->write_bytes + bytes > (size_t)16 * CHANGE_SET_BYTES_MAX) {
        return err_set(err, RC_BUSY, "too many writes wait for the disk; try again in a moment");
    }
    return RC_OK;
}

/* Claim every key or none. */
static int claim_keys(struct gossip *core, struct write *write, const struct gossip_change *changes,
                      struct err_info *err)
{
    for (size_t i = 0; i < write->row_count; i++) {
        struct pending_key *key = key_new(&changes[i], write->token);
        struct pending_key *other = NULL;
        HASH_FIND(hh, core->pending_keys, key->key, key_len(&changes[i]), other);
        if (other != NULL) {
            mem_free(key);
            bool own = other->token == write->token;
            return err_set(err, own ? RC_INVALID : RC_BUSY,
                           own ? "\"%.*s\" is written twice in one write"
                               : "a write of \"%.*s\" is not durable yet; try again",
                           (int)changes[i].id_len, changes[i].id);
        }
        HASH_ADD_KEYPTR(hh, core->pending_keys, key->key, key_len(&changes[i]), key);
        write->keys[i] = key;
    }
    return RC_OK;
}

static struct row *stage_row(struct gossip *core, const struct gossip_change *change, uint64_t seq)
{
    const struct kv_entry *entry = kv_find(&core->kv, change->kind, change->id, change->id_len);
    const struct row *held = entry != NULL ? entry->row : NULL;
    bool deleted = (change->flags & ROW_TOMBSTONE) != 0;
    struct row row = {
        .kind = change->kind,
        .id_len = (uint16_t)change->id_len,
        .value_len = deleted ? 0 : (uint32_t)change->value_len,
        .flags = change->flags,
        .hlc = hlc_next(core, held),
        .dot = {core_origin(core), seq},
        .id = change->id,
        .value = deleted ? NULL : change->value,
    };
    row.created_hlc = held != NULL && row_is_live(held) ? held->created_hlc : row.hlc;
    struct dot vector[ROW_VECTOR_MAX];
    size_t vector_len = kv_vector(held, &row.dot, vector);
    return row_copy(&row, vector, vector_len);
}

static void persist_write(struct gossip *core, const struct write *write)
{
    struct dot frontier = {core_origin(core), write->last_seq};
    struct gossip_batch batch = {
        .rows = (const struct row *const *)write->rows,
        .row_count = write->row_count,
        .frontier = &frontier,
        .frontier_count = 1,
    };
    core->ops->persist(core->ctx, &batch, write->token);
}

int gossip_write(struct gossip *core, const struct gossip_change *changes, size_t count,
                 struct gossip_now now, uint64_t *ret_write, struct err_info *err)
{
    core->now = now;
    clock_event(core);
    size_t bytes = 0;
    int rc = check_size(changes, count, &bytes, err);
    if (rc == RC_OK) {
        rc = check_state(core, bytes, err);
    }
    if (rc != RC_OK) {
        core_count(core, COUNT_writes_refused);
        return rc;
    }
    struct write *write = mem_new(sizeof(*write));
    write->token = ++core->last_token;
    write->row_count = count;
    write->bytes = bytes;
    write->rows = mem_array(count, sizeof(*write->rows));
    write->keys = mem_array(count, sizeof(*write->keys));
    rc = claim_keys(core, write, changes, err);
    if (rc != RC_OK) {
        core_count(core, COUNT_writes_refused);
        write_free(core, write);
        return rc;
    }
    write->origin = core_origin(core);
    for (size_t i = 0; i < count; i++) {
        write->rows[i] = stage_row(core, &changes[i], ++core->last_seq);
    }
    write->last_seq = core->last_seq;
    DL_APPEND(core->writes, write);
    core->write_count++;
    core->write_bytes += bytes;
    core_count(core, COUNT_writes_accepted);
    *ret_write = write->token;
    persist_write(core, write);
    core_finish(core);
    return RC_OK;
}

/* ---- durable ---- */

static void write_apply(struct gossip *core, const struct write *write)
{
    for (size_t i = 0; i < write->row_count; i++) {
        const struct row *row = write->rows[i];
        struct kv_change change;
        int rc = kv_apply(&core->kv, row, false, &change);
        if (rc != RC_OK) {
            core_count(core, COUNT_rows_refused); /* the table is full; the disk has it */
            continue;
        }
        if (change.effect != KV_SAME && change.row->vector_len != row->vector_len) {
            /* Met a remote write on the way: what the disk has names only one of the two. */
            kv_mark_dirty(&core->kv, kv_find(&core->kv, row->kind, row->id, row->id_len));
        }
        if (change.effect == KV_ROW) {
            core_count(core, COUNT_rows_applied);
            core->ops->applied(core->ctx, change.row, change.old);
            mem_free(change.old);
            if (MUTANT(MUTANT_NO_TOMBSTONE) && !row_is_live(row)) {
                kv_find(&core->kv, row->kind, row->id, row->id_len)->row->hlc = 1;
            }
        }
    }
}

static void write_spread(struct gossip *core, const struct write *write, uint64_t first_seq)
{
    struct gossip_part part = {
        .kind = PART_CHANGE_SET,
        .origin = write->origin,
        .first_seq = first_seq,
        .last_seq = write->last_seq,
        .rows = (const struct row *const *)write->rows,
        .row_count = write->row_count,
    };
    rumour_send_now(core, &part);
}

bool write_persisted(struct gossip *core, uint64_t token, int rc)
{
    struct write *write = NULL;
    DL_SEARCH_SCALAR(core->writes, write, token, token);
    if (write == NULL) {
        return false;
    }
    ASSERT(write == core->writes); /* answers come in order */
    DL_DELETE(core->writes, write);
    core->write_count--;
    core->write_bytes -= write->bytes;
    if (rc != RC_OK) {
        core_count(core, COUNT_writes_failed);
    } else {
        write_apply(core, write);
        uint64_t first_seq = kv_frontier(&core->kv, write->origin) + 1;
        (void)kv_advance(&core->kv, write->origin, write->last_seq, false); /* in the batch */
        write_spread(core, write, first_seq);
    }
    core->ops->written(core->ctx, token, rc, rc == RC_OK ? write->last_seq : 0);
    write_free(core, write);
    return true;
}
