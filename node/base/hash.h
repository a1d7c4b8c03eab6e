/*
 * Hashes that all nodes must agree on (placement, audit) and that tables use. Pure, any thread.
 */
#ifndef SKEIN_NODE_BASE_HASH_H
#define SKEIN_NODE_BASE_HASH_H

#include "node/base/defs.h"

/* Finaliser of splitmix64: a bijection that spreads every bit. */
uint64_t hash_mix64(uint64_t x);

/*
 * SipHash-2-4 with a 128-bit key (Aumasson and Bernstein 2012): 64 bits, the same on every machine.
 * Tables that clients can fill use a secret key; what nodes compare uses a fixed one.
 */
uint64_t hash_sip64(uint64_t key0, uint64_t key1, const void *bytes, size_t len);

/* SipHash with 128 bits of output. */
void hash_sip128(uint64_t key0, uint64_t key1, const void *bytes, size_t len, uint64_t ret[2]);

/*
 * A keyed hash for tables in memory, a fourth of SipHash's cost for short keys: 16 bytes a step,
 * each step a 64 x 64 -> 128 bit product folded to 64 (the construction of wyhash). With a secret
 * key nobody outside can aim at collisions; the values mean nothing to another process.
 */
uint64_t hash_fold64(const uint64_t key[2], const void *bytes, size_t len);

#endif
