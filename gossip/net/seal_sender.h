/*
 * What is remembered of each sender of datagrams. For gossip/net only.
 *
 * An entry exists only for senders whose seal was good at least once. Its key is cached for the
 * (key, generation) last used; its window belongs to the (generation, salt) that was proven.
 */
#ifndef SKEIN_GOSSIP_NET_SEAL_SENDER_H
#define SKEIN_GOSSIP_NET_SEAL_SENDER_H

#include "gossip/net/cluster_key.h"
#include "gossip/net/replay.h"
#include "node/base/hashtable.h"

struct sender {
    uint64_t id; /* key of the table */
    UT_hash_handle hh;
    uint64_t heard_ms;

    /* Cached key. */
    struct aead *aead;
    const struct cluster_key *aead_key;
    uint32_t aead_generation;

    /* The start that is believed. */
    bool proven;
    uint32_t generation;
    uint32_t salt;
    struct replay replay;

    /* What a new start must answer; 0: nothing was asked. */
    uint64_t challenge;
    uint64_t challenged_ms;
};

struct sender_table {
    struct sender *head; /* uthash */
    size_t count_max;
};

struct sender *sender_find(const struct sender_table *table, uint64_t id);

/* Make an entry; the one not heard for longest goes when the table is full. */
struct sender *sender_add(struct sender_table *table, uint64_t id, uint64_t now_ms);

/* Whether this start of the sender is the one believed. */
bool sender_is_current(const struct sender *sender, uint32_t generation, uint32_t salt);

void sender_table_deinit(struct sender_table *table);

#endif
