/*
 * Numbers in network byte order. For gossip/net only.
 */
#ifndef SKEIN_GOSSIP_NET_BYTES_H
#define SKEIN_GOSSIP_NET_BYTES_H

#include "node/base/defs.h"

static inline void put_be32(uint8_t *at, uint32_t value)
{
    for (int i = 3; i >= 0; i--) {
        at[i] = (uint8_t)value;
        value >>= 8;
    }
}

static inline void put_be64(uint8_t *at, uint64_t value)
{
    put_be32(at, (uint32_t)(value >> 32));
    put_be32(at + 4, (uint32_t)value);
}

static inline uint32_t get_be32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static inline uint64_t get_be64(const uint8_t *at)
{
    return (uint64_t)get_be32(at) << 32 | get_be32(at + 4);
}

#endif
