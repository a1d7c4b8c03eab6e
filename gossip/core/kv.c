/*
 * Merge, frontier and audit sums of the replicated table; see kv.h for the invariants.
 */
#include "gossip/core/kv.h"

#include "node/base/check.h"
#include "node/base/hash.h"
#include "node/base/mem.h"

#include <string.h>

/* Fixed keys: nodes compare these hashes with each other. */
static const uint64_t frontier_key = 0x66726f6e74696572U;
static const uint64_t audit_key = 0x6175646974726f77U;
static const uint64_t bucket_key = 0x6275636b65747331U;

enum { KEY_MAX = 2 + ROW_ID_MAX };

void kv_init(struct kv *kv, uint64_t seed)
{
    *kv = (struct kv){.seed = seed};
}

void kv_deinit(struct kv *kv)
{
    struct kv_entry *entry = NULL;
    struct kv_entry *next_entry = NULL;
    HASH_ITER (hh, kv->entries, entry, next_entry) {
        HASH_DEL(kv->entries, entry);
        MEM_FREE(entry->row);
        mem_free(entry);
    }
    struct kv_origin *origin = NULL;
    struct kv_origin *next_origin = NULL;
    HASH_ITER (hh, kv->origins, origin, next_origin) {
        HASH_DEL(kv->origins, origin);
        seqmap_deinit(&origin->writes);
        mem_free(origin);
    }
    MEM_FREE(kv->dirty);
    kv->dirty_count = 0;
}

/* ---- keys and origins ---- */

static unsigned key_put(uint8_t out[KEY_MAX], uint16_t kind, const char *id, size_t id_len)
{
    ASSERT(id_len <= ROW_ID_MAX);
    out[0] = (uint8_t)(kind >> 8);
    out[1] = (uint8_t)kind;
    memcpy(out + 2, id, id_len);
    return (unsigned)id_len + 2;
}

struct kv_entry *kv_find(const struct kv *kv, uint16_t kind, const char *id, size_t id_len)
{
    if (id_len > ROW_ID_MAX) {
        return NULL;
    }
    uint8_t key[KEY_MAX];
    unsigned len = key_put(key, kind, id, id_len);
    struct kv_entry *entry = NULL;
    HASH_FIND(hh, kv->entries, key, len, entry);
    return entry;
}

static struct kv_entry *entry_new(struct kv *kv, const struct row *row)
{
    struct kv_entry *entry = mem_new(sizeof(*entry) + 2U + row->id_len);
    entry->key_len = (uint16_t)key_put(entry->key, row->kind, row->id, row->id_len);
    entry->no = ++kv->last_no;
    uint64_t hash = hash_sip64(audit_key, bucket_key, entry->key, entry->key_len);
    entry->bucket = (uint32_t)(hash % MSG_BUCKETS);
    HASH_ADD_KEYPTR(hh, kv->entries, entry->key, entry->key_len, entry);
    return entry;
}

struct kv_origin *kv_find_origin(const struct kv *kv, struct origin origin)
{
    struct kv_origin *found = NULL;
    HASH_FIND(hh, kv->origins, &origin, sizeof(origin.node) + sizeof(origin.generation), found);
    return found;
}

size_t kv_origin_count(const struct kv *kv)
{
    return HASH_COUNT(kv->origins);
}

static struct kv_origin *origin_get(struct kv *kv, struct origin origin)
{
    struct kv_origin *found = kv_find_origin(kv, origin);
    if (found == NULL && HASH_COUNT(kv->origins) < MSG_FRONTIER_MAX) {
        found = mem_new(sizeof(*found));
        found->origin = origin;
        seqmap_init(&found->writes, kv->seed);
        HASH_ADD(hh, kv->origins, origin, sizeof(origin.node) + sizeof(origin.generation), found);
    }
    return found;
}

/* ---- frontier ---- */

static uint64_t frontier_entry_hash(struct origin origin, uint64_t seq)
{
    uint64_t words[3] = {origin.node, origin.generation, seq};
    return seq != 0 ? hash_sip64(frontier_key, frontier_key, words, sizeof(words)) : 0;
}

/* Its own key, or a loose write and a frontier that ends there would cancel out. Where a row stands
 * in its origin's order is what the vector says: a later write of that origin may have lost. */
static uint64_t loose_hash(const struct kv *kv, const struct row *row)
{
    uint64_t seq = 0;
    for (uint32_t i = 0; row != NULL && i < row->vector_len; i++) {
        if (origin_compare(row->vector[i].origin, row->dot.origin) == 0) {
            seq = row->vector[i].seq;
        }
    }
    if (seq == 0 || seq <= kv_frontier(kv, row->dot.origin)) {
        return 0;
    }
    uint64_t words[3] = {row->dot.origin.node, row->dot.origin.generation, row->dot.seq};
    return hash_sip64(frontier_key, bucket_key, words, sizeof(words));
}

uint64_t kv_frontier(const struct kv *kv, struct origin origin)
{
    const struct kv_origin *found = kv_find_origin(kv, origin);
    return found != NULL ? found->frontier : 0;
}

void kv_mark_origin_dirty(struct kv *kv, struct kv_origin *origin)
{
    if (!origin->dirty) {
        origin->dirty = true;
        kv->dirty_origins++;
    }
}

bool kv_advance(struct kv *kv, struct origin origin, uint64_t seq, bool persist)
{
    struct kv_origin *found = origin_get(kv, origin);
    if (found == NULL || seq <= found->frontier) {
        return false;
    }
    /* What is loose up to seq is not any more. */
    const struct seqmap_node *node = seqmap_above(&found->writes, found->frontier, UINT64_MAX);
    while (node != NULL && node->seq <= seq) {
        const struct row *row = ((const struct kv_entry *)node->item)->row;
        if (origin_compare(row->dot.origin, origin) == 0) {
            kv->frontier_hash ^= loose_hash(kv, row);
        }
        node = seqmap_above(&found->writes, node->seq, node->tie);
    }
    kv->frontier_hash ^= frontier_entry_hash(origin, found->frontier);
    kv->frontier_hash ^= frontier_entry_hash(origin, seq);
    kv->revision += seq - found->frontier;
    found->frontier = seq;
    if (persist) {
        kv_mark_origin_dirty(kv, found);
    }
    return true;
}

/* ---- audit ---- */

static uint64_t row_audit_hash(const struct kv_entry *entry, const struct row *row)
{
    if (!row_is_live(row)) {
        return 0; /* deletions may be purged at different times on different nodes */
    }
    uint8_t bytes[KEY_MAX + ROW_STAMP_LEN];
    memcpy(bytes, entry->key, entry->key_len);
    row_stamp(row, bytes + entry->key_len);
    return hash_sip64(audit_key, audit_key, bytes, (size_t)entry->key_len + ROW_STAMP_LEN);
}

static uint64_t bucket_hash(uint32_t bucket, uint64_t sum)
{
    uint64_t words[2] = {bucket, sum};
    return sum != 0 ? hash_sip64(bucket_key, bucket_key, words, sizeof(words)) : 0;
}

static void audit_replace(struct kv *kv, struct kv_entry *entry, uint64_t hash)
{
    uint64_t *sum = &kv->buckets[entry->bucket];
    kv->audit_root ^= bucket_hash(entry->bucket, *sum);
    *sum ^= entry->row_hash ^ hash;
    kv->audit_root ^= bucket_hash(entry->bucket, *sum);
    entry->row_hash = hash;
}

/* ---- merge ---- */

struct vector {
    struct dot dots[2 * ROW_VECTOR_MAX];
    size_t count;
};

static void vector_add(struct vector *vector, const struct dot *dot)
{
    for (size_t i = 0; i < vector->count; i++) {
        if (origin_compare(vector->dots[i].origin, dot->origin) == 0) {
            vector->dots[i].seq = MAX(vector->dots[i].seq, dot->seq);
            return;
        }
    }
    vector->dots[vector->count++] = *dot;
}

/* Which entry a vector above its limit loses: never the winner's, first one of a generation that
 * its node has left, else the smallest origin. Not agreed between nodes; the audit is the net. */
static size_t vector_victim(const struct vector *vector, struct origin keep)
{
    size_t victim = vector->count;
    bool victim_left = false;
    for (size_t i = 0; i < vector->count; i++) {
        struct origin origin = vector->dots[i].origin;
        bool left = false;
        for (size_t k = 0; k < vector->count; k++) {
            left = left || (vector->dots[k].origin.node == origin.node &&
                            vector->dots[k].origin.generation > origin.generation);
        }
        if (origin_compare(origin, keep) == 0) {
            continue;
        }
        if (victim == vector->count || (left && !victim_left) ||
            (left == victim_left && origin_compare(origin, vector->dots[victim].origin) < 0)) {
            victim = i;
            victim_left = left;
        }
    }
    return victim;
}

static void vector_join(struct vector *vector, const struct row *a, const struct row *b,
                        struct origin keep)
{
    vector->count = 0;
    for (uint32_t i = 0; a != NULL && i < a->vector_len; i++) {
        vector_add(vector, &a->vector[i]);
    }
    for (uint32_t i = 0; i < b->vector_len; i++) {
        vector_add(vector, &b->vector[i]);
    }
    while (vector->count > ROW_VECTOR_MAX) {
        vector->dots[vector_victim(vector, keep)] = vector->dots[vector->count - 1];
        vector->count--;
    }
}

static bool vector_equals(const struct vector *vector, const struct row *row)
{
    if (vector->count != row->vector_len) {
        return false;
    }
    for (uint32_t i = 0; i < row->vector_len; i++) {
        if (vector->dots[i].seq != row->vector[i].seq ||
            origin_compare(vector->dots[i].origin, row->vector[i].origin) != 0) {
            return false;
        }
    }
    return true;
}

/* Turn the index from row's vector to the new one. */
static void index_move(struct kv *kv, struct kv_entry *entry, const struct row *old,
                       const struct row *row)
{
    for (uint32_t i = 0; old != NULL && i < old->vector_len; i++) {
        struct kv_origin *origin = kv_find_origin(kv, old->vector[i].origin);
        seqmap_remove(&origin->writes, old->vector[i].seq, entry->no);
    }
    for (uint32_t i = 0; i < row->vector_len; i++) {
        struct kv_origin *origin = kv_find_origin(kv, row->vector[i].origin);
        seqmap_put(&origin->writes, row->vector[i].seq, entry->no, entry);
    }
}

void kv_mark_dirty(struct kv *kv, struct kv_entry *entry)
{
    if (entry->dirty) {
        return;
    }
    if (kv->dirty_count == kv->dirty_size) {
        kv->dirty_size = MAX(kv->dirty_size * 2, (size_t)64);
        kv->dirty = mem_grow(kv->dirty, kv->dirty_size, sizeof(struct kv_entry *));
    }
    kv->dirty[kv->dirty_count++] = entry;
    entry->dirty = true;
}

int kv_apply(struct kv *kv, const struct row *row, bool persist, struct kv_change *ret_change)
{
    struct kv_entry *entry = kv_find(kv, row->kind, row->id, row->id_len);
    struct row *held = entry != NULL ? entry->row : NULL;
    int order = held != NULL ? row_compare(row, held) : 1;
    const struct row *winner = order > 0 ? row : held;

    struct vector vector;
    vector_join(&vector, held, row, winner->dot.origin);
    if (order <= 0 && vector_equals(&vector, held)) {
        *ret_change = (struct kv_change){.effect = KV_SAME, .row = held};
        return RC_OK;
    }
    if (entry == NULL && HASH_COUNT(kv->entries) >= KV_ROWS_MAX) {
        return RC_FULL;
    }
    for (size_t i = 0; i < vector.count; i++) {
        if (origin_get(kv, vector.dots[i].origin) == NULL) {
            return RC_FULL; /* origins made so far stay, without writes: harmless */
        }
    }
    if (entry == NULL) {
        entry = entry_new(kv, row);
    }
    struct row *now = row_copy(winner, vector.dots, vector.count);
    index_move(kv, entry, held, now);
    entry->row = now;
    if (persist) {
        kv_mark_dirty(kv, entry);
    }
    kv->frontier_hash ^= loose_hash(kv, held) ^ loose_hash(kv, now);
    *ret_change = (struct kv_change){.effect = order > 0 ? KV_ROW : KV_VECTOR, .row = now};
    if (order <= 0) {
        mem_free(held);
        return RC_OK;
    }
    audit_replace(kv, entry, row_audit_hash(entry, now));
    kv->live_rows += row_is_live(now) ? 1 : 0;
    kv->live_rows -= held != NULL && row_is_live(held) ? 1 : 0;
    ret_change->old = held;
    return RC_OK;
}

size_t kv_vector(const struct row *held, const struct dot *dot, struct dot out[ROW_VECTOR_MAX])
{
    struct row write = {.vector = dot, .vector_len = 1};
    struct vector vector;
    vector_join(&vector, held, &write, dot->origin);
    size_t count = 0;
    for (size_t i = 0; i < vector.count; i++) {
        if (origin_compare(vector.dots[i].origin, dot->origin) != 0) {
            out[count++] = vector.dots[i];
        }
    }
    out[count++] = *dot; /* the latest writer last: rumours carry the end of a vector */
    return count;
}
