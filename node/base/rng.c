/*
 * Generators; see rng.h.
 */
#include "node/base/rng.h"

#include "node/base/check.h"
#include "node/base/hash.h"

#include <errno.h>
#include <sys/random.h>

void rng_init(struct rng *rng, uint64_t seed)
{
    for (size_t i = 0; i < ARRAY_LEN(rng->s); i++) {
        seed += 0x9e3779b97f4a7c15U;
        rng->s[i] = hash_mix64(seed);
    }
}

static uint64_t rotl(uint64_t x, unsigned k)
{
    return (x << k) | (x >> (64 - k));
}

uint64_t rng_next(struct rng *rng)
{
    uint64_t *s = rng->s;
    uint64_t result = rotl(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45);
    return result;
}

uint64_t rng_below(struct rng *rng, uint64_t below)
{
    ASSERT(below > 0);
    /* Lemire's multiply-shift; the bias is below 2^-32 for every range used here. */
    __extension__ unsigned __int128 wide = (unsigned __int128)rng_next(rng) * below;
    return (uint64_t)(wide >> 64);
}

bool rng_chance(struct rng *rng, double p)
{
    return (double)(rng_next(rng) >> 11) * 0x1.0p-53 < p;
}

void rng_secret(void *ret_bytes, size_t len)
{
    char *at = ret_bytes;
    while (len > 0) {
        ssize_t got = getrandom(at, len, 0);
        if (got < 0) {
            ASSERT(errno == EINTR);
            continue;
        }
        at += got;
        len -= (size_t)got;
    }
}

uint64_t rng_secret_u64(void)
{
    uint64_t value = 0;
    rng_secret(&value, sizeof(value));
    return value;
}
