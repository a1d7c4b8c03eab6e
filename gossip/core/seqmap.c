/*
 * Treap by split and merge; see seqmap.h.
 */
#include "gossip/core/seqmap.h"

#include "node/base/hash.h"
#include "node/base/mem.h"

static bool is_above(const struct seqmap_node *node, uint64_t seq, uint64_t tie)
{
    return node->seq > seq || (node->seq == seq && node->tie > tie);
}

/* Everything up to (seq, tie) goes to *ret_low, the rest to *ret_high. */
static void split(struct seqmap_node *node, uint64_t seq, uint64_t tie,
                  struct seqmap_node **ret_low, struct seqmap_node **ret_high)
{
    while (node != NULL) {
        if (is_above(node, seq, tie)) {
            *ret_high = node;
            ret_high = &node->left;
            node = node->left;
        } else {
            *ret_low = node;
            ret_low = &node->right;
            node = node->right;
        }
    }
    *ret_low = NULL;
    *ret_high = NULL;
}

/* All of low is below all of high. */
static struct seqmap_node *merge(struct seqmap_node *low, struct seqmap_node *high)
{
    struct seqmap_node *root = NULL;
    struct seqmap_node **link = &root;
    while (low != NULL && high != NULL) {
        if (low->priority >= high->priority) {
            *link = low;
            link = &low->right;
            low = low->right;
        } else {
            *link = high;
            link = &high->left;
            high = high->left;
        }
    }
    *link = low != NULL ? low : high;
    return root;
}

void seqmap_init(struct seqmap *map, uint64_t seed)
{
    *map = (struct seqmap){.seed = seed};
}

void seqmap_deinit(struct seqmap *map)
{
    /* Rotate left children up until none is left, so that no recursion and no stack is needed. */
    struct seqmap_node *node = map->root;
    while (node != NULL) {
        if (node->left != NULL) {
            struct seqmap_node *left = node->left;
            node->left = left->right;
            left->right = node;
            node = left;
        } else {
            struct seqmap_node *right = node->right;
            mem_free(node);
            node = right;
        }
    }
    map->root = NULL;
    map->count = 0;
}

void seqmap_put(struct seqmap *map, uint64_t seq, uint64_t tie, void *item)
{
    struct seqmap_node *node = mem_new(sizeof(*node));
    node->seq = seq;
    node->tie = tie;
    node->item = item;
    node->priority = hash_mix64(map->seed ^ hash_mix64(seq + hash_mix64(tie)));

    /* Descend to where its priority belongs, then split what is below. */
    struct seqmap_node **link = &map->root;
    while (*link != NULL && (*link)->priority >= node->priority) {
        link = is_above(*link, seq, tie) ? &(*link)->left : &(*link)->right;
    }
    split(*link, seq, tie, &node->left, &node->right);
    *link = node;
    map->count++;
}

void seqmap_remove(struct seqmap *map, uint64_t seq, uint64_t tie)
{
    struct seqmap_node **link = &map->root;
    while (*link != NULL && ((*link)->seq != seq || (*link)->tie != tie)) {
        link = is_above(*link, seq, tie) ? &(*link)->left : &(*link)->right;
    }
    struct seqmap_node *node = *link;
    if (node != NULL) {
        *link = merge(node->left, node->right);
        mem_free(node);
        map->count--;
    }
}

const struct seqmap_node *seqmap_above(const struct seqmap *map, uint64_t seq, uint64_t tie)
{
    const struct seqmap_node *best = NULL;
    const struct seqmap_node *node = map->root;
    while (node != NULL) {
        if (is_above(node, seq, tie)) {
            best = node;
            node = node->left;
        } else {
            node = node->right;
        }
    }
    return best;
}

uint64_t seqmap_max(const struct seqmap *map)
{
    const struct seqmap_node *node = map->root;
    while (node != NULL && node->right != NULL) {
        node = node->right;
    }
    return node != NULL ? node->seq : 0;
}
