/*
 * The ring of ticket keys: a counted, immutable array.
 */
#include "node/tls/tls_tickets.h"

#include "node/base/check.h"
#include "node/base/mem.h"
#include "node/tls/crypto.h"

#include <stdatomic.h>
#include <string.h>

struct ticket_ring {
    atomic_uint refs;
    uint32_t life_s;
    size_t count;
    struct ticket_key keys[];
};

struct ticket_ring *ticket_ring_new(const struct ticket_key *keys, size_t count, uint32_t life_s)
{
    ASSERT(count <= TICKET_KEYS_MAX && life_s > 0 && life_s <= TICKET_LIFE_MAX_S);
    struct ticket_ring *ring = mem_new(sizeof(*ring) + count * sizeof(*keys));
    atomic_init(&ring->refs, 1);
    ring->life_s = life_s;
    ring->count = count;
    if (count > 0) {
        memcpy(ring->keys, keys, count * sizeof(*keys));
    }
    return ring;
}

void ticket_ring_ref(struct ticket_ring *ring)
{
    unsigned before = atomic_fetch_add_explicit(&ring->refs, 1, memory_order_relaxed);
    ASSERT(before > 0 && before < UINT32_MAX / 2);
}

void ticket_ring_unref(struct ticket_ring *ring)
{
    if (ring == NULL) {
        return;
    }
    unsigned before = atomic_fetch_sub_explicit(&ring->refs, 1, memory_order_acq_rel);
    ASSERT(before > 0);
    if (before == 1) {
        crypto_wipe(ring->keys, ring->count * sizeof(ring->keys[0]));
        mem_free(ring);
    }
}

const struct ticket_key *ticket_ring_find(const struct ticket_ring *ring,
                                          const uint8_t name[TICKET_NAME_BYTES])
{
    for (size_t i = 0; i < ring->count; i++) {
        if (memcmp(ring->keys[i].name, name, TICKET_NAME_BYTES) == 0) {
            return &ring->keys[i];
        }
    }
    return NULL;
}

const struct ticket_key *ticket_ring_active(const struct ticket_ring *ring)
{
    for (size_t i = 0; i < ring->count; i++) {
        if (ring->keys[i].state == TICKET_ACTIVE) {
            return &ring->keys[i];
        }
    }
    return NULL;
}

uint32_t ticket_ring_life_s(const struct ticket_ring *ring)
{
    return ring->life_s;
}
