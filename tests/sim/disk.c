/*
 * The simulated disk; see disk.h.
 */
#include "tests/sim/disk.h"

#include "node/base/check.h"
#include "node/base/mem.h"

#include <string.h>

enum { ORIGIN_KEY_LEN = sizeof(uint64_t) + sizeof(uint32_t) };

void disk_init(struct disk *disk, uint64_t id)
{
    *disk = (struct disk){.id = id, .generation = 1};
}

void disk_deinit(struct disk *disk)
{
    struct disk_row *row = NULL;
    struct disk_row *next_row = NULL;
    HASH_ITER (hh, disk->rows, row, next_row) {
        HASH_DEL(disk->rows, row);
        mem_free(row->row);
        mem_free(row);
    }
    struct disk_frontier *front = NULL;
    struct disk_frontier *next_front = NULL;
    HASH_ITER (hh, disk->frontier, front, next_front) {
        HASH_DEL(disk->frontier, front);
        mem_free(front);
    }
    struct disk_member *member = NULL;
    struct disk_member *next_member = NULL;
    HASH_ITER (hh, disk->members, member, next_member) {
        HASH_DEL(disk->members, member);
        mem_free(member);
    }
    *disk = (struct disk){0};
}

static unsigned key_put(uint8_t *out, uint16_t kind, const char *id, size_t id_len)
{
    out[0] = (uint8_t)(kind >> 8);
    out[1] = (uint8_t)kind;
    memcpy(out + 2, id, id_len);
    return (unsigned)id_len + 2;
}

static struct disk_row *row_find(const struct disk *disk, uint16_t kind, const char *id,
                                 size_t id_len)
{
    uint8_t key[2 + ROW_ID_MAX];
    unsigned len = key_put(key, kind, id, id_len);
    struct disk_row *row = NULL;
    HASH_FIND(hh, disk->rows, key, len, row);
    return row;
}

const struct row *disk_find(const struct disk *disk, uint16_t kind, const char *id, size_t id_len)
{
    const struct disk_row *row = row_find(disk, kind, id, id_len);
    return row != NULL ? row->row : NULL;
}

uint64_t disk_frontier(const struct disk *disk, struct origin origin)
{
    struct disk_frontier *front = NULL;
    HASH_FIND(hh, disk->frontier, &origin, ORIGIN_KEY_LEN, front);
    return front != NULL ? front->dot.seq : 0;
}

static void put_row(struct disk *disk, const struct row *row)
{
    struct disk_row *held = row_find(disk, row->kind, row->id, row->id_len);
    if (held == NULL) {
        held = mem_new(sizeof(*held));
        unsigned len = key_put(held->key, row->kind, row->id, row->id_len);
        HASH_ADD_KEYPTR(hh, disk->rows, held->key, len, held);
    } else if (row_compare(row, held->row) < 0) {
        return;
    }
    mem_free(held->row);
    held->row = row_copy(row, NULL, 0);
}

static void put_frontier(struct disk *disk, const struct dot *dot)
{
    struct disk_frontier *front = NULL;
    HASH_FIND(hh, disk->frontier, &dot->origin, ORIGIN_KEY_LEN, front);
    if (front == NULL) {
        front = mem_new(sizeof(*front));
        front->dot = *dot;
        HASH_ADD(hh, disk->frontier, dot.origin, ORIGIN_KEY_LEN, front);
    }
    front->dot.seq = dot->seq;
}

static void put_member(struct disk *disk, const struct gossip_member *pub)
{
    struct disk_member *member = NULL;
    HASH_FIND(hh, disk->members, &pub->id, sizeof(pub->id), member);
    if (member == NULL) {
        member = mem_new(sizeof(*member));
        member->member.id = pub->id;
        HASH_ADD(hh, disk->members, member.id, sizeof(member->member.id), member);
    }
    member->member = *pub;
}

static void remove_member(struct disk *disk, uint64_t id)
{
    struct disk_member *member = NULL;
    HASH_FIND(hh, disk->members, &id, sizeof(id), member);
    if (member != NULL) {
        HASH_DEL(disk->members, member);
        mem_free(member);
    }
}

void disk_copy(const struct disk *from, struct disk *ret_to)
{
    disk_init(ret_to, from->id);
    ret_to->generation = from->generation;
    ret_to->incarnation = from->incarnation;
    for (const struct disk_row *row = from->rows; row != NULL; row = row->hh.next) {
        put_row(ret_to, row->row);
    }
    for (const struct disk_frontier *f = from->frontier; f != NULL; f = f->hh.next) {
        put_frontier(ret_to, &f->dot);
    }
    for (const struct disk_member *m = from->members; m != NULL; m = m->hh.next) {
        put_member(ret_to, &m->member);
    }
}

struct disk_batch *disk_batch_new(const struct gossip_batch *batch)
{
    struct disk_batch *copy = mem_new(sizeof(*copy));
    copy->rows = mem_array(batch->row_count, sizeof(*copy->rows));
    copy->row_count = batch->row_count;
    for (size_t i = 0; i < batch->row_count; i++) {
        copy->rows[i] = row_copy(batch->rows[i], NULL, 0);
    }
    copy->frontier = mem_dup(batch->frontier, batch->frontier_count * sizeof(struct dot));
    copy->frontier_count = batch->frontier_count;
    copy->members = mem_dup(batch->members, batch->member_count * sizeof(struct gossip_member));
    copy->member_count = batch->member_count;
    copy->forgotten = mem_dup(batch->forgotten, batch->forgotten_count * sizeof(uint64_t));
    copy->forgotten_count = batch->forgotten_count;
    copy->incarnation_limit = batch->incarnation_limit;
    copy->generation = batch->generation;
    return copy;
}

void disk_batch_free(struct disk_batch *batch)
{
    for (size_t i = 0; i < batch->row_count; i++) {
        mem_free(batch->rows[i]);
    }
    mem_free(batch->rows);
    mem_free(batch->frontier);
    mem_free(batch->members);
    mem_free(batch->forgotten);
    mem_free(batch);
}

void disk_commit(struct disk *disk, const struct disk_batch *batch)
{
    for (size_t i = 0; i < batch->row_count; i++) {
        put_row(disk, batch->rows[i]);
    }
    for (size_t i = 0; i < batch->frontier_count; i++) {
        put_frontier(disk, &batch->frontier[i]);
    }
    for (size_t i = 0; i < batch->forgotten_count; i++) {
        remove_member(disk, batch->forgotten[i]);
    }
    for (size_t i = 0; i < batch->member_count; i++) {
        put_member(disk, &batch->members[i]);
    }
    if (batch->incarnation_limit != 0) {
        disk->incarnation = batch->incarnation_limit;
    }
    if (batch->generation != 0) {
        disk->generation = batch->generation;
    }
}

void disk_load(const struct disk *disk, struct gossip *core)
{
    struct err_info err = {.text = ""};
    int rc = RC_OK;
    for (const struct disk_row *row = disk->rows; row != NULL && rc == RC_OK; row = row->hh.next) {
        rc = gossip_load_row(core, row->row, &err);
    }
    for (const struct disk_frontier *f = disk->frontier; f != NULL && rc == RC_OK; f = f->hh.next) {
        rc = gossip_load_frontier(core, &f->dot, &err);
    }
    for (const struct disk_member *m = disk->members; m != NULL && rc == RC_OK; m = m->hh.next) {
        rc = gossip_load_member(core, &m->member, &err);
    }
    ASSERT(rc == RC_OK);
}
