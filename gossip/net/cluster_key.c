/*
 * Derivations; see cluster_key.h.
 */
#include "gossip/net/cluster_key.h"

#include "gossip/net/bytes.h"
#include "node/base/check.h"

#include <string.h>

enum {
    LABEL_BYTES = 24, /* fixed, so that no label is the beginning of another */
    INFO_BYTES = LABEL_BYTES + 16,
};

static void derive(const struct cluster_key *key, const struct crypto *crypto, const char *label,
                   uint64_t first, uint64_t second, uint8_t *ret, size_t len)
{
    uint8_t info[INFO_BYTES] = {0};
    ASSERT(strlen(label) < LABEL_BYTES);
    memcpy(info, label, strlen(label));
    put_be64(info + LABEL_BYTES, first);
    put_be64(info + LABEL_BYTES + 8, second);
    crypto_hkdf(crypto, key->secret, sizeof(key->secret), info, sizeof(info), ret, len);
}

void cluster_keys_init(struct cluster_keys *keys, const struct crypto *crypto,
                       const struct key_ring *ring)
{
    ASSERT(ring->count > 0 && ring->count <= KEY_FILE_KEYS_MAX);
    *keys = (struct cluster_keys){.count = ring->count};
    for (size_t i = 0; i < ring->count; i++) {
        struct cluster_key *key = &keys->keys[i];
        memcpy(key->secret, ring->keys[i], KEY_BYTES);
        uint8_t bytes[8];
        derive(key, crypto, "skein key id", 0, 0, bytes, 4);
        key->id = get_be32(bytes);
        derive(key, crypto, "skein cluster id", 0, 0, bytes, 8);
        key->cluster_id = get_be64(bytes);
    }
}

void cluster_keys_wipe(struct cluster_keys *keys)
{
    crypto_wipe(keys, sizeof(*keys));
}

const struct cluster_key *cluster_key_find(const struct cluster_keys *keys, uint32_t id)
{
    for (size_t i = 0; i < keys->count; i++) {
        if (keys->keys[i].id == id) {
            return &keys->keys[i];
        }
    }
    return NULL;
}

void cluster_key_packet(const struct cluster_key *key, const struct crypto *crypto, uint64_t sender,
                        uint32_t generation, uint8_t ret[AEAD_KEY_BYTES])
{
    derive(key, crypto, "skein datagram", sender, generation, ret, AEAD_KEY_BYTES);
}

void cluster_key_pair(const struct cluster_key *key, const struct crypto *crypto, uint64_t client,
                      uint64_t server, uint8_t ret[KEY_BYTES])
{
    derive(key, crypto, "skein stream", client, server, ret, KEY_BYTES);
}
