/*
 * Buckets as the moment at which each is full again (the generic cell rate algorithm); see the
 * header.
 */
#include "admin/server/throttle.h"

#include "node/base/hash.h"
#include "node/base/rng.h"

#include <string.h>

void throttle_init(struct throttle *throttle)
{
    *throttle = (struct throttle){0};
    throttle->key[0] = rng_secret_u64();
    throttle->key[1] = rng_secret_u64();
}

static void source_of(const struct addr *from, uint8_t out[16])
{
    memset(out, 0, 16);
    if (from->sa.sa_family == AF_INET6 && !IN6_IS_ADDR_V4MAPPED(&from->in6.sin6_addr)) {
        memcpy(out, &from->in6.sin6_addr, 8);
        return;
    }
    out[10] = out[11] = 0xff;
    if (from->sa.sa_family == AF_INET) {
        memcpy(out + 12, &from->in4.sin_addr, 4);
    } else if (from->sa.sa_family == AF_INET6) {
        memcpy(out + 12, (const uint8_t *)&from->in6.sin6_addr + 12, 4);
    }
}

/* The source's row, or the one that it may have: the one that is full first. */
static struct throttle_row *row_of(struct throttle *throttle, const uint8_t source[16])
{
    uint64_t hash = hash_sip64(throttle->key[0], throttle->key[1], source, 16);
    struct throttle_row *rows = throttle->rows[hash % THROTTLE_SETS];
    struct throttle_row *oldest = &rows[0];
    for (size_t i = 0; i < THROTTLE_WAYS; i++) {
        if (memcmp(rows[i].source, source, 16) == 0) {
            return &rows[i];
        }
        if (rows[i].full_ms < oldest->full_ms) {
            oldest = &rows[i];
        }
    }
    memcpy(oldest->source, source, 16);
    oldest->full_ms = 0;
    return oldest;
}

uint32_t throttle_fail(struct throttle *throttle, const struct addr *from, uint64_t now_ms)
{
    uint8_t source[16];
    source_of(from, source);
    struct throttle_row *row = row_of(throttle, source);
    uint64_t owed_ms = row->full_ms > now_ms ? row->full_ms - now_ms : 0;
    uint64_t most_ms = (uint64_t)(THROTTLE_BURST - 1) * THROTTLE_REFILL_MS;
    if (owed_ms > most_ms) {
        return (uint32_t)((owed_ms - most_ms + 999) / 1000);
    }
    row->full_ms = now_ms + owed_ms + THROTTLE_REFILL_MS;
    return 0;
}
