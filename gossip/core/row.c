/*
 * Order, checks and copies of rows. Pure, any thread.
 */
#include "gossip/core/row.h"

#include "node/base/hash.h"
#include "node/base/mem.h"

#include <string.h>

/* Fixed keys: all nodes must compute the same hash. */
static const uint64_t value_key0 = 0x736b65696e20726fU;
static const uint64_t value_key1 = 0x772076616c756531U;

/* Above every honest clock (the year 10,800), below what could overflow when counted on. */
#define HLC_MAX 0xffff000000000000U

/* A deletion and an empty value must differ, so the flag takes part through the key. */
static uint64_t value_hash(const struct row *row)
{
    uint64_t key1 = value_key1 ^ (row->flags & ROW_TOMBSTONE);
    return hash_sip64(value_key0, key1, row->value, row->value_len);
}

static void put_be64(uint8_t *out, uint64_t value)
{
    for (unsigned i = 0; i < 8; i++) {
        out[i] = (uint8_t)(value >> (56 - 8 * i));
    }
}

void row_stamp(const struct row *row, uint8_t out[ROW_STAMP_LEN])
{
    put_be64(out, row->hlc);
    put_be64(out + 8, row->dot.origin.node);
    put_be64(out + 16, row->dot.origin.generation);
    put_be64(out + 24, value_hash(row));
}

static int order_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

int origin_compare(struct origin a, struct origin b)
{
    int order = order_u64(a.node, b.node);
    return order != 0 ? order : order_u64(a.generation, b.generation);
}

int row_compare(const struct row *a, const struct row *b)
{
    int order = order_u64(a->hlc, b->hlc);
    if (order == 0) {
        order = origin_compare(a->dot.origin, b->dot.origin);
    }
    return order != 0 ? order : order_u64(value_hash(a), value_hash(b));
}

int row_check(const struct row *row, struct err_info *err)
{
    if (row->kind == 0 || row->kind > 255) {
        return err_set(err, RC_INVALID, "row kind %u is not in 1..255", row->kind);
    }
    if (row->id_len == 0 || row->id_len > ROW_ID_MAX || row->id == NULL) {
        return err_set(err, RC_INVALID, "row id of %u bytes: accepted are 1 to %d", row->id_len,
                       ROW_ID_MAX);
    }
    if (row->value_len > ROW_VALUE_MAX || (row->value_len != 0 && row->value == NULL)) {
        return err_set(err, RC_INVALID, "row value of %u bytes: accepted are 0 to %d",
                       row->value_len, ROW_VALUE_MAX);
    }
    if (!row_is_live(row) && row->value_len != 0) {
        return err_set(err, RC_INVALID, "a deleted row has a value");
    }
    if (row->hlc == 0 || row->hlc >= HLC_MAX) {
        return err_set(err, RC_INVALID, "row without a possible time");
    }
    if (row->dot.origin.node == 0 || row->dot.origin.generation == 0 || row->dot.seq == 0) {
        return err_set(err, RC_INVALID, "row without origin or sequence number");
    }
    if (row->vector_len == 0 || row->vector_len > ROW_VECTOR_MAX || row->vector == NULL) {
        return err_set(err, RC_INVALID, "row vector of %u entries: accepted are 1 to %d",
                       row->vector_len, ROW_VECTOR_MAX);
    }
    bool named = false;
    for (uint32_t i = 0; i < row->vector_len; i++) {
        const struct dot *dot = &row->vector[i];
        if (dot->origin.node == 0 || dot->origin.generation == 0 || dot->seq == 0) {
            return err_set(err, RC_INVALID, "row vector names no origin or sequence number");
        }
        for (uint32_t k = 0; k < i; k++) {
            if (origin_compare(dot->origin, row->vector[k].origin) == 0) {
                return err_set(err, RC_INVALID, "row vector names an origin twice");
            }
        }
        named = named ||
                (origin_compare(dot->origin, row->dot.origin) == 0 && dot->seq >= row->dot.seq);
    }
    return named ? RC_OK : err_set(err, RC_INVALID, "row vector lacks the row's own write");
}

struct row *row_copy(const struct row *row, const struct dot *vector, size_t vector_len)
{
    if (vector == NULL) {
        vector = row->vector;
        vector_len = row->vector_len;
    }
    size_t vector_bytes = vector_len * sizeof(struct dot);
    char *block = mem_new(sizeof(struct row) + vector_bytes + row->id_len + row->value_len);
    struct row *copy = (struct row *)(void *)block;
    struct dot *dots = (struct dot *)(void *)(block + sizeof(struct row));
    char *id = block + sizeof(struct row) + vector_bytes;
    *copy = *row;
    memcpy(dots, vector, vector_bytes);
    memcpy(id, row->id, row->id_len);
    copy->vector = dots;
    copy->vector_len = (uint32_t)vector_len;
    copy->id = id;
    copy->value = NULL;
    if (row->value_len != 0) {
        memcpy(id + row->id_len, row->value, row->value_len);
        copy->value = (const uint8_t *)id + row->id_len;
    }
    return copy;
}
