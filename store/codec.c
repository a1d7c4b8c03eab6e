/*
 * Bytes of columns: stamps, vectors, addresses, checksums. Pure.
 */
#include "store/internal.h"

#include "node/base/hash.h"

#include <netinet/in.h>
#include <string.h>

/* Fixed keys: what is checked is chance, not malice. */
static const uint64_t SUM_KEY0 = 0x736b65696e207375;
static const uint64_t SUM_KEY1 = 0x6d206f6620726f77;

void put_be16(uint8_t *out, uint16_t value)
{
    out[0] = (uint8_t)(value >> 8);
    out[1] = (uint8_t)value;
}

void put_be32(uint8_t *out, uint32_t value)
{
    put_be16(out, (uint16_t)(value >> 16));
    put_be16(out + 2, (uint16_t)value);
}

void put_be64(uint8_t *out, uint64_t value)
{
    put_be32(out, (uint32_t)(value >> 32));
    put_be32(out + 4, (uint32_t)value);
}

uint16_t get_be16(const uint8_t *in)
{
    return (uint16_t)(in[0] << 8 | in[1]);
}

uint32_t get_be32(const uint8_t *in)
{
    return (uint32_t)get_be16(in) << 16 | get_be16(in + 2);
}

uint64_t get_be64(const uint8_t *in)
{
    return (uint64_t)get_be32(in) << 32 | get_be32(in + 4);
}

static uint64_t sum_of(const void *bytes, size_t len)
{
    return hash_sip64(SUM_KEY0, SUM_KEY1, bytes, len);
}

uint64_t entry_sum(const struct row *row, const uint8_t stamp[ROW_STAMP_LEN], const uint8_t *vector,
                   size_t vector_len)
{
    uint8_t all[2 + 4 + 8 + 8 + ROW_STAMP_LEN + 3 * 8];
    put_be16(all, row->kind);
    put_be32(all + 2, row->flags);
    put_be64(all + 6, row->dot.seq);
    put_be64(all + 14, row->created_hlc);
    memcpy(all + 22, stamp, ROW_STAMP_LEN);
    put_be64(all + 22 + ROW_STAMP_LEN, sum_of(row->id, row->id_len));
    put_be64(all + 30 + ROW_STAMP_LEN, sum_of(row->value, row->value_len));
    put_be64(all + 38 + ROW_STAMP_LEN, sum_of(vector, vector_len));
    return sum_of(all, sizeof(all));
}

uint64_t frontier_sum(const struct dot *dot)
{
    uint8_t all[STORE_DOT_LEN];
    vector_encode(dot, 1, all);
    return sum_of(all, sizeof(all));
}

uint64_t member_sum(const struct gossip_member *member)
{
    uint8_t all[8 + 4 + 8 + 4 + STORE_ADDR_LEN + 8 + 8];
    put_be64(all, member->id);
    put_be32(all + 8, member->generation);
    put_be64(all + 12, member->incarnation);
    put_be32(all + 20, (uint32_t)member->state);
    addr_encode(&member->addr, all + 24);
    put_be64(all + 24 + STORE_ADDR_LEN,
             sum_of(member->name, strnlen(member->name, sizeof(member->name))));
    put_be64(all + 32 + STORE_ADDR_LEN,
             sum_of(member->version, strnlen(member->version, sizeof(member->version))));
    return sum_of(all, sizeof(all));
}

uint64_t identity_sum(const struct store_identity *identity)
{
    uint8_t all[20];
    put_be64(all, identity->node);
    put_be32(all + 8, identity->generation);
    put_be64(all + 12, identity->incarnation_limit);
    return sum_of(all, sizeof(all));
}

void vector_encode(const struct dot *dots, size_t count, uint8_t *out)
{
    for (size_t i = 0; i < count; i++, out += STORE_DOT_LEN) {
        put_be64(out, dots[i].origin.node);
        put_be32(out + 8, dots[i].origin.generation);
        put_be64(out + 12, dots[i].seq);
    }
}

int vector_decode(const uint8_t *bytes, size_t len, struct dot out[ROW_VECTOR_MAX],
                  uint32_t *ret_count)
{
    size_t count = len / STORE_DOT_LEN;
    if (count == 0 || count > ROW_VECTOR_MAX || len % STORE_DOT_LEN != 0) {
        return RC_CORRUPT;
    }
    for (size_t i = 0; i < count; i++, bytes += STORE_DOT_LEN) {
        out[i] = (struct dot){
            .origin = {.node = get_be64(bytes), .generation = get_be32(bytes + 8)},
            .seq = get_be64(bytes + 12),
        };
    }
    *ret_count = (uint32_t)count;
    return RC_OK;
}

void addr_encode(const struct addr *addr, uint8_t out[STORE_ADDR_LEN])
{
    memset(out, 0, STORE_ADDR_LEN);
    if (addr->sa.sa_family == AF_INET) {
        out[0] = 4;
        put_be16(out + 1, addr_port(addr));
        memcpy(out + 7, &addr->in4.sin_addr, 4);
    } else if (addr->sa.sa_family == AF_INET6) {
        out[0] = 6;
        put_be16(out + 1, addr_port(addr));
        put_be32(out + 3, addr->in6.sin6_scope_id);
        memcpy(out + 7, &addr->in6.sin6_addr, 16);
    }
}

int addr_decode(const uint8_t *bytes, size_t len, struct addr *ret_addr)
{
    struct addr addr = {0};
    if (len != STORE_ADDR_LEN) {
        return RC_CORRUPT;
    }
    if (bytes[0] == 4) {
        addr.in4.sin_family = AF_INET;
        memcpy(&addr.in4.sin_addr, bytes + 7, 4);
    } else if (bytes[0] == 6) {
        addr.in6.sin6_family = AF_INET6;
        addr.in6.sin6_scope_id = get_be32(bytes + 3);
        memcpy(&addr.in6.sin6_addr, bytes + 7, 16);
    } else if (bytes[0] != 0) {
        return RC_CORRUPT;
    }
    if (bytes[0] != 0) {
        addr_set_port(&addr, get_be16(bytes + 1));
    }
    *ret_addr = addr;
    return RC_OK;
}
