/*
 * SipHash-2-4, 64 and 128 bits, after the paper's description.
 */
#include "node/base/hash.h"

#include <string.h>

uint64_t hash_mix64(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9U;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebU;
    x ^= x >> 31;
    return x;
}

static uint64_t rotl(uint64_t x, unsigned k)
{
    return (x << k) | (x >> (64 - k));
}

static uint64_t load_le64(const uint8_t *p)
{
    uint64_t x = 0;
    memcpy(&x, p, sizeof(x));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    x = __builtin_bswap64(x);
#endif
    return x;
}

static void sip_rounds(uint64_t v[4], unsigned rounds)
{
    while (rounds-- > 0) {
        v[0] += v[1];
        v[1] = rotl(v[1], 13) ^ v[0];
        v[0] = rotl(v[0], 32);
        v[2] += v[3];
        v[3] = rotl(v[3], 16) ^ v[2];
        v[0] += v[3];
        v[3] = rotl(v[3], 21) ^ v[0];
        v[2] += v[1];
        v[1] = rotl(v[1], 17) ^ v[2];
        v[2] = rotl(v[2], 32);
    }
}

static void sip_absorb(uint64_t v[4], const void *bytes, size_t len)
{
    const uint8_t *p = bytes;
    size_t left = len;
    for (; left >= 8; left -= 8, p += 8) {
        uint64_t word = load_le64(p);
        v[3] ^= word;
        sip_rounds(v, 2);
        v[0] ^= word;
    }
    uint64_t tail = (uint64_t)len << 56;
    for (size_t i = 0; i < left; i++) {
        tail |= (uint64_t)p[i] << (8 * i);
    }
    v[3] ^= tail;
    sip_rounds(v, 2);
    v[0] ^= tail;
}

static inline uint64_t load64(const uint8_t *p)
{
    uint64_t x;
    memcpy(&x, p, sizeof(x));
    return x;
}

static inline uint64_t load32(const uint8_t *p)
{
    uint32_t x;
    memcpy(&x, p, sizeof(x));
    return x;
}

__extension__ typedef unsigned __int128 uint128;

static inline uint64_t fold(uint64_t a, uint64_t b)
{
    uint128 product = (uint128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint64_t hash_fold64(const uint64_t key[2], const void *bytes, size_t len)
{
    const uint8_t *p = bytes;
    uint64_t hash = key[0];
    size_t left = len;
    for (; left > 16; left -= 16, p += 16) {
        hash = fold(load64(p) ^ key[1], load64(p + 8) ^ hash);
    }
    /* The last 1 to 16 bytes as two words that may overlap. */
    uint64_t a = 0, b = 0;
    if (left >= 8) {
        a = load64(p);
        b = load64(p + left - 8);
    } else if (left >= 4) {
        a = load32(p);
        b = load32(p + left - 4);
    } else if (left > 0) {
        a = (uint64_t)p[0] << 16 | (uint64_t)p[left / 2] << 8 | p[left - 1];
    }
    hash = fold(a ^ key[1], b ^ hash);
    return fold(hash ^ key[0], key[1] ^ len);
}

uint64_t hash_sip64(uint64_t key0, uint64_t key1, const void *bytes, size_t len)
{
    uint64_t v[4] = {key0 ^ 0x736f6d6570736575U, key1 ^ 0x646f72616e646f6dU,
                     key0 ^ 0x6c7967656e657261U, key1 ^ 0x7465646279746573U};
    sip_absorb(v, bytes, len);
    v[2] ^= 0xff;
    sip_rounds(v, 4);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

void hash_sip128(uint64_t key0, uint64_t key1, const void *bytes, size_t len, uint64_t ret[2])
{
    uint64_t v[4] = {key0 ^ 0x736f6d6570736575U, key1 ^ 0x646f72616e646f6dU ^ 0xee,
                     key0 ^ 0x6c7967656e657261U, key1 ^ 0x7465646279746573U};
    sip_absorb(v, bytes, len);
    v[2] ^= 0xee;
    sip_rounds(v, 4);
    ret[0] = v[0] ^ v[1] ^ v[2] ^ v[3];
    v[1] ^= 0xdd;
    sip_rounds(v, 4);
    ret[1] = v[0] ^ v[1] ^ v[2] ^ v[3];
}
