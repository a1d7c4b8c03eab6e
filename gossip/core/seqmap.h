/*
 * An ordered map from (sequence number, tie number) to an item: which key each write of one origin
 * went to.
 *
 * A treap whose priorities are a seeded hash of the key, so that its shape depends on the content
 * alone and nobody without the seed can unbalance it. Depth is O(log n) in expectation.
 * Thread: the owner's. Allocates: one node per entry.
 */
#ifndef SKEIN_GOSSIP_CORE_SEQMAP_H
#define SKEIN_GOSSIP_CORE_SEQMAP_H

#include "node/base/defs.h"

struct seqmap_node {
    uint64_t seq;
    uint64_t tie; /* two items may claim one seq when a node reused its numbers */
    void *item;   /* borrowed */
    struct seqmap_node *left;
    struct seqmap_node *right;
    uint64_t priority;
};

struct seqmap {
    struct seqmap_node *root;
    size_t count;
    uint64_t seed;
};

void seqmap_init(struct seqmap *map, uint64_t seed);
void seqmap_deinit(struct seqmap *map);

/* The pair must not be in the map yet. */
void seqmap_put(struct seqmap *map, uint64_t seq, uint64_t tie, void *item);

/* Nothing happens when the pair is not there. */
void seqmap_remove(struct seqmap *map, uint64_t seq, uint64_t tie);

/* The smallest entry above (seq, tie), or NULL. Valid until the map changes. */
const struct seqmap_node *seqmap_above(const struct seqmap *map, uint64_t seq, uint64_t tie);

/* The largest sequence number, 0 when empty. */
uint64_t seqmap_max(const struct seqmap *map);

#endif
