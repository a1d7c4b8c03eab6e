/*
 * The durable part of a simulated node: what a transaction has put there survives a crash, nothing
 * else does. Obeys the contract of struct gossip_batch.
 */
#ifndef SKEIN_TESTS_SIM_DISK_H
#define SKEIN_TESTS_SIM_DISK_H

#include "gossip/core/gossip.h"
#include "node/base/hashtable.h"

struct disk_row {
    UT_hash_handle hh;
    struct row *row; /* owned */
    uint8_t key[2 + ROW_ID_MAX];
};

struct disk_frontier {
    UT_hash_handle hh;
    struct dot dot;
};

struct disk_member {
    UT_hash_handle hh;
    struct gossip_member member;
};

struct disk {
    uint64_t id; /* the identity lives and dies with the disk */
    uint32_t generation;
    uint64_t incarnation;
    struct disk_row *rows;
    struct disk_frontier *frontier;
    struct disk_member *members;
};

/* One transaction on its way. Owns its copies. */
struct disk_batch {
    struct row **rows;
    size_t row_count;
    struct dot *frontier;
    size_t frontier_count;
    struct gossip_member *members;
    size_t member_count;
    uint64_t *forgotten;
    size_t forgotten_count;
    uint64_t incarnation_limit;
    uint32_t generation;
};

void disk_init(struct disk *disk, uint64_t id);
void disk_deinit(struct disk *disk);
void disk_copy(const struct disk *from, struct disk *ret_to);

struct disk_batch *disk_batch_new(const struct gossip_batch *batch);
void disk_batch_free(struct disk_batch *batch);
void disk_commit(struct disk *disk, const struct disk_batch *batch);

const struct row *disk_find(const struct disk *disk, uint16_t kind, const char *id, size_t id_len);
uint64_t disk_frontier(const struct disk *disk, struct origin origin);
/* Everything into a core that was not started yet. */
void disk_load(const struct disk *disk, struct gossip *core);

#endif
