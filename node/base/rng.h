/*
 * Randomness: a seedable generator for decisions (replayable), the kernel's for secrets.
 */
#ifndef SKEIN_NODE_BASE_RNG_H
#define SKEIN_NODE_BASE_RNG_H

#include "node/base/defs.h"

/* xoshiro256**, Blackman and Vigna 2018. Thread: the owner's. */
struct rng {
    uint64_t s[4];
};

void rng_init(struct rng *rng, uint64_t seed);
uint64_t rng_next(struct rng *rng);

/* Uniform in [0, below); below > 0. */
uint64_t rng_below(struct rng *rng, uint64_t below);

/* True with probability p (0 to 1). */
bool rng_chance(struct rng *rng, double p);

/* Bytes from the kernel, for keys and identities; aborts when the kernel has none. Any thread. */
void rng_secret(void *ret_bytes, size_t len);
uint64_t rng_secret_u64(void);

#endif
