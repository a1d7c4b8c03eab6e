/*
 * What is derived from the cluster's keys: identifiers, packet keys, pairwise stream keys.
 *
 * Every derived value is HKDF-SHA256 of one key under a label of its own, so that none of them says
 * anything of another or of the key. Thread: immutable after cluster_keys_init.
 * Source: clustering notes 7, RFC 5869, RFC 9257.
 */
#ifndef SKEIN_GOSSIP_NET_CLUSTER_KEY_H
#define SKEIN_GOSSIP_NET_CLUSTER_KEY_H

#include "node/tls/crypto.h"
#include "node/tls/key_file.h"

struct cluster_key {
    uint32_t id;         /* names the key in headers; not secret */
    uint64_t cluster_id; /* binds messages to the cluster; not secret */
    uint8_t secret[KEY_BYTES];
};

struct cluster_keys {
    size_t count; /* the first seals, all open */
    struct cluster_key keys[KEY_FILE_KEYS_MAX];
};

void cluster_keys_init(struct cluster_keys *keys, const struct crypto *crypto,
                       const struct key_ring *ring);
void cluster_keys_wipe(struct cluster_keys *keys);

/* NULL: no key of ours has this id. */
const struct cluster_key *cluster_key_find(const struct cluster_keys *keys, uint32_t id);

/* The key under which a node seals datagrams in one generation. */
void cluster_key_packet(const struct cluster_key *key, const struct crypto *crypto, uint64_t sender,
                        uint32_t generation, uint8_t ret[AEAD_KEY_BYTES]);

/* The key of streams that client opens to server: for these two, in these roles. */
void cluster_key_pair(const struct cluster_key *key, const struct crypto *crypto, uint64_t client,
                      uint64_t server, uint8_t ret[KEY_BYTES]);

#endif
