/*
 * PROXY headers; see proxy_header.h. Section numbers are those of proxy-protocol.txt.
 */
#include "node/net/proxy_header.h"

#include "node/base/cidr.h"

#include <stdio.h>
#include <string.h>

static const char v1_mark[] = "PROXY ";
static const char v2_mark[] = "\r\n\r\n\0\r\nQUIT\n";

enum {
    V1_MARK_LEN = sizeof(v1_mark) - 1,
    V2_MARK_LEN = sizeof(v2_mark) - 1,
    TLV_HEAD = 3, /* type, length of two bytes */
    TLV_CRC32C = 0x03,
    COMMAND_LOCAL = 0x20,
    COMMAND_PROXY = 0x21,
    FAMILY_TCP4 = 0x11,
    FAMILY_TCP6 = 0x21,
    V4_BYTES = 12, /* two addresses and two ports */
    V6_BYTES = 36,
    UNIX_BYTES = 216,
};

static uint16_t get16(const uint8_t *at)
{
    return (uint16_t)(at[0] << 8 | at[1]);
}

/* ---- version 1 (2.1) ---- */

/* Cut the next word off a line: up to the blank, or to the end for the last one. */
static bool take_word(const char **at, const char *end, bool last, const char **ret_word,
                      size_t *ret_len)
{
    const char *word = *at;
    const char *stop = memchr(word, ' ', (size_t)(end - word));
    if ((stop == NULL) != last || word == end || stop == word) {
        return false;
    }
    stop = last ? end : stop;
    *ret_word = word;
    *ret_len = (size_t)(stop - word);
    *at = last ? end : stop + 1;
    return true;
}

static bool take_address(const char **at, const char *end, sa_family_t family,
                         struct addr *ret_addr)
{
    const char *word;
    size_t len;
    return take_word(at, end, false, &word, &len) && addr_parse_ip(word, len, ret_addr) == RC_OK &&
           ret_addr->sa.sa_family == family;
}

/* 0..65535 without leading zeros. */
static bool take_port(const char **at, const char *end, bool last, struct addr *addr)
{
    const char *word;
    size_t len;
    if (!take_word(at, end, last, &word, &len) || len > 5 || (len > 1 && word[0] == '0')) {
        return false;
    }
    uint32_t port = 0;
    for (size_t i = 0; i < len; i++) {
        if (word[i] < '0' || word[i] > '9') {
            return false;
        }
        port = port * 10 + (uint32_t)(word[i] - '0');
    }
    addr_set_port(addr, (uint16_t)port);
    return port <= UINT16_MAX;
}

static bool parse_line(const char *at, const char *end, struct proxy_header *header)
{
    static const char unknown[] = "UNKNOWN";
    size_t len = (size_t)(end - at);
    if (len >= sizeof(unknown) - 1 && memcmp(at, unknown, sizeof(unknown) - 1) == 0 &&
        (len == sizeof(unknown) - 1 || at[sizeof(unknown) - 1] == ' ')) {
        return true; /* whatever follows is ignored */
    }
    const char *word;
    if (!take_word(&at, end, false, &word, &len) || len != 4 || memcmp(word, "TCP", 3) != 0 ||
        (word[3] != '4' && word[3] != '6')) {
        return false;
    }
    sa_family_t family = word[3] == '4' ? AF_INET : AF_INET6;
    header->told = true;
    return take_address(&at, end, family, &header->source) &&
           take_address(&at, end, family, &header->destination) &&
           take_port(&at, end, false, &header->source) &&
           take_port(&at, end, true, &header->destination);
}

static int parse_v1(const char *bytes, size_t len, struct proxy_header *header)
{
    size_t seen = MIN(len, (size_t)PROXY_HEADER_V1_MAX);
    const char *end = memchr(bytes, '\r', seen);
    if (memchr(bytes, '\n', end != NULL ? (size_t)(end - bytes) : seen) != NULL) {
        return RC_INVALID; /* else UNKNOWN would take what follows a line that ended wrongly */
    }
    if (end == NULL || end + 1 == bytes + seen) {
        /* Also a carriage return as the last byte that there may be. */
        return len >= PROXY_HEADER_V1_MAX ? RC_INVALID : RC_AGAIN;
    }
    if (end[1] != '\n' || !parse_line(bytes + V1_MARK_LEN, end, header)) {
        return RC_INVALID;
    }
    header->len = (size_t)(end - bytes) + 2;
    return RC_OK;
}

/* ---- version 2 (2.2) ---- */

/* CRC-32C (Castagnoli), reflected, four bits at a time. */
static uint32_t crc32c_add(uint32_t crc, const uint8_t *bytes, size_t len)
{
    static const uint32_t table[16] = {
        0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
        0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
        0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
    };
    for (size_t i = 0; i < len; i++) {
        crc ^= bytes[i];
        crc = crc >> 4 ^ table[crc & 15];
        crc = crc >> 4 ^ table[crc & 15];
    }
    return crc;
}

/* The checksum covers the whole header, with its own four bytes as zeros (2.2.4). */
static bool checksum_is_right(const uint8_t *header, size_t len, size_t at)
{
    static const uint8_t zeros[4];
    uint32_t crc = crc32c_add(UINT32_MAX, header, at);
    crc = crc32c_add(crc, zeros, sizeof(zeros));
    crc = ~crc32c_add(crc, header + at + sizeof(zeros), len - at - sizeof(zeros));
    const uint8_t *told = header + at;
    return crc == ((uint32_t)told[0] << 24 | (uint32_t)told[1] << 16 | (uint32_t)told[2] << 8 |
                   (uint32_t)told[3]);
}

static bool tlvs_are_sound(const uint8_t *header, size_t len, size_t at)
{
    while (at < len) {
        if (len - at < TLV_HEAD) {
            return false;
        }
        size_t value_len = get16(header + at + 1);
        if (len - at - TLV_HEAD < value_len) {
            return false;
        }
        if (header[at] == TLV_CRC32C &&
            (value_len != 4 || !checksum_is_right(header, len, at + TLV_HEAD))) {
            return false;
        }
        at += TLV_HEAD + value_len;
    }
    return true;
}

static void take_v4(const uint8_t *at, struct proxy_header *header)
{
    header->told = true;
    header->source.in4.sin_family = AF_INET;
    memcpy(&header->source.in4.sin_addr, at, 4);
    memcpy(&header->source.in4.sin_port, at + 8, 2);
    header->destination.in4.sin_family = AF_INET;
    memcpy(&header->destination.in4.sin_addr, at + 4, 4);
    memcpy(&header->destination.in4.sin_port, at + 10, 2);
}

static void take_v6(const uint8_t *at, struct proxy_header *header)
{
    header->told = true;
    header->source.in6.sin6_family = AF_INET6;
    memcpy(&header->source.in6.sin6_addr, at, 16);
    memcpy(&header->source.in6.sin6_port, at + 32, 2);
    header->destination.in6.sin6_family = AF_INET6;
    memcpy(&header->destination.in6.sin6_addr, at + 16, 16);
    memcpy(&header->destination.in6.sin6_port, at + 34, 2);
}

static int parse_v2(const uint8_t *bytes, size_t len, struct proxy_header *header)
{
    /* Bytes of the addresses by the upper half of the family byte: unspecified, IPv4, IPv6, unix.
     */
    static const uint8_t address_bytes[4] = {0, V4_BYTES, V6_BYTES, UNIX_BYTES};
    if (len > 12 && bytes[12] != COMMAND_LOCAL && bytes[12] != COMMAND_PROXY) {
        return RC_INVALID;
    }
    if (len < PROXY_HEADER_V2_FIXED) {
        return RC_AGAIN;
    }
    size_t block = get16(bytes + 14);
    if (block > PROXY_HEADER_BLOCK_MAX) {
        return RC_TOO_BIG;
    }
    uint8_t family = bytes[13];
    bool local = bytes[12] == COMMAND_LOCAL; /* then the block means nothing */
    if (!local && (family >> 4 > 3 || (family & 15) > 2 || block < address_bytes[family >> 4])) {
        return RC_INVALID;
    }
    size_t whole = PROXY_HEADER_V2_FIXED + block;
    if (len < whole) {
        return RC_AGAIN;
    }
    header->len = whole;
    if (local || family >> 4 == 0) {
        return RC_OK;
    }
    if (!tlvs_are_sound(bytes, whole, PROXY_HEADER_V2_FIXED + address_bytes[family >> 4])) {
        return RC_INVALID;
    }
    if (family == FAMILY_TCP4) {
        take_v4(bytes + PROXY_HEADER_V2_FIXED, header);
    } else if (family == FAMILY_TCP6) {
        take_v6(bytes + PROXY_HEADER_V2_FIXED, header);
    }
    return RC_OK;
}

int proxy_header_parse(const char *bytes, size_t len, struct proxy_header *ret_header)
{
    if (len == 0) {
        return RC_AGAIN;
    }
    struct proxy_header header = {0};
    const char *mark = bytes[0] == v1_mark[0] ? v1_mark : v2_mark;
    size_t mark_len = mark == v1_mark ? V1_MARK_LEN : V2_MARK_LEN;
    if (memcmp(bytes, mark, MIN(len, mark_len)) != 0) {
        return RC_INVALID;
    }
    if (len < mark_len) {
        return RC_AGAIN;
    }
    int rc = mark == v1_mark ? parse_v1(bytes, len, &header)
                             : parse_v2((const uint8_t *)bytes, len, &header);
    if (rc == RC_OK) {
        *ret_header = header;
    }
    return rc;
}

/* ---- writing ---- */

static void map_to_v6(struct addr *addr)
{
    if (addr->sa.sa_family == AF_INET) {
        struct addr mapped = {.in6 = {.sin6_family = AF_INET6, .sin6_port = addr->in4.sin_port}};
        mapped.in6.sin6_addr.s6_addr[10] = 0xff;
        mapped.in6.sin6_addr.s6_addr[11] = 0xff;
        memcpy(&mapped.in6.sin6_addr.s6_addr[12], &addr->in4.sin_addr, 4);
        *addr = mapped;
    }
}

/* Both ends in one family; false: nothing can be told. */
static bool same_family(struct addr *source, struct addr *destination)
{
    *source = addr_unmapped(source);
    *destination = addr_unmapped(destination);
    if (source->sa.sa_family != destination->sa.sa_family) {
        map_to_v6(source);
        map_to_v6(destination);
    }
    return source->sa.sa_family == destination->sa.sa_family &&
           (source->sa.sa_family == AF_INET || source->sa.sa_family == AF_INET6);
}

size_t proxy_header_v1(char out[PROXY_HEADER_OUT_MAX + 1], const struct addr *source,
                       const struct addr *destination)
{
    struct addr from = *source;
    struct addr to = *destination;
    const size_t size = PROXY_HEADER_OUT_MAX + 1;
    if (!same_family(&from, &to)) {
        return (size_t)snprintf(out, size, "PROXY UNKNOWN\r\n");
    }
    char from_text[ADDR_TEXT_MAX];
    char to_text[ADDR_TEXT_MAX];
    return (size_t)snprintf(out, size, "PROXY TCP%c %.39s %.39s %u %u\r\n",
                            from.sa.sa_family == AF_INET ? '4' : '6',
                            addr_format_ip(&from, from_text), addr_format_ip(&to, to_text),
                            addr_port(&from), addr_port(&to));
}

size_t proxy_header_v2(char out[PROXY_HEADER_OUT_MAX + 1], const struct addr *source,
                       const struct addr *destination)
{
    struct addr from = *source;
    struct addr to = *destination;
    memcpy(out, v2_mark, V2_MARK_LEN);
    char *block = out + PROXY_HEADER_V2_FIXED;
    if (!same_family(&from, &to)) {
        out[12] = COMMAND_LOCAL;
        out[13] = out[14] = out[15] = 0;
        return PROXY_HEADER_V2_FIXED;
    }
    bool is_v4 = from.sa.sa_family == AF_INET;
    size_t ip = is_v4 ? 4 : 16;
    out[12] = COMMAND_PROXY;
    out[13] = is_v4 ? FAMILY_TCP4 : FAMILY_TCP6;
    out[14] = 0;
    out[15] = is_v4 ? V4_BYTES : V6_BYTES;
    memcpy(block, is_v4 ? (void *)&from.in4.sin_addr : (void *)&from.in6.sin6_addr, ip);
    memcpy(block + ip, is_v4 ? (void *)&to.in4.sin_addr : (void *)&to.in6.sin6_addr, ip);
    memcpy(block + 2 * ip, is_v4 ? &from.in4.sin_port : &from.in6.sin6_port, 2);
    memcpy(block + 2 * ip + 2, is_v4 ? &to.in4.sin_port : &to.in6.sin6_port, 2);
    return PROXY_HEADER_V2_FIXED + 2 * ip + 4;
}
