/*
 * Networks and sets of them; see cidr.h. A set is one sorted array of ranges that neither overlap
 * nor touch, per address family.
 */
#include "node/base/cidr.h"

#include "node/base/mem.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t mapped_prefix[12] = {[10] = 0xff, [11] = 0xff};

/* An address as a number that compares. */
struct wide {
    uint64_t high;
    uint64_t low;
};

struct range {
    struct wide first;
    struct wide last;
};

struct cidr_set {
    size_t v4_count;
    size_t v6_count;
    struct range *v4;
    struct range *v6;
};

static bool prefix_digits(const char *text, unsigned max, uint8_t *ret_bits)
{
    unsigned bits = 0;
    size_t len = strlen(text);
    if (len == 0 || len > 3) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return false;
        }
        bits = bits * 10 + (unsigned)(text[i] - '0');
    }
    if (bits > max) {
        return false;
    }
    *ret_bits = (uint8_t)bits;
    return true;
}

/* What maps IPv4 networks is those networks. */
static void unmap(struct cidr *cidr)
{
    if (cidr->len == 16 && cidr->bits >= 96 &&
        memcmp(cidr->addr, mapped_prefix, sizeof(mapped_prefix)) == 0) {
        memmove(cidr->addr, cidr->addr + 12, 4);
        memset(cidr->addr + 4, 0, 12);
        cidr->len = 4;
        cidr->bits = (uint8_t)(cidr->bits - 96);
    }
}

/* Zero the bits to the right of the prefix; true: there were some. */
static bool cut(struct cidr *cidr)
{
    bool had = false;
    for (size_t i = 0; i < cidr->len; i++) {
        size_t begin = i * 8;
        unsigned keep = cidr->bits <= begin ? 0 : MIN(cidr->bits - (unsigned)begin, 8U);
        uint8_t mask = (uint8_t)(0xff00U >> keep);
        had = had || (cidr->addr[i] & (uint8_t)~mask) != 0;
        cidr->addr[i] = cidr->addr[i] & mask;
    }
    return had;
}

int cidr_parse(const char *text, struct cidr *ret_cidr, struct err_info *err)
{
    struct cidr cidr = {.len = 0};
    char host[INET6_ADDRSTRLEN];
    size_t host_len = strcspn(text, "/");
    if (host_len < sizeof(host)) {
        memcpy(host, text, host_len);
        host[host_len] = '\0';
        if (inet_pton(AF_INET, host, cidr.addr) == 1) {
            cidr.len = 4;
        } else if (inet_pton(AF_INET6, host, cidr.addr) == 1) {
            cidr.len = 16;
        }
    }
    if (cidr.len == 0) {
        return err_set(err, RC_INVALID,
                       "\"%.60s\" is no network such as 10.0.0.0/8 or 2001:db8::/32", text);
    }
    cidr.bits = (uint8_t)(cidr.len * 8);
    if (text[host_len] == '/' && !prefix_digits(text + host_len + 1, cidr.bits, &cidr.bits)) {
        return err_set(err, RC_INVALID, "\"%.60s\" has no prefix length from 0 to %u", text,
                       cidr.len * 8U);
    }
    if (cut(&cidr)) {
        return err_set(err, RC_INVALID, "\"%.60s\" has address bits beyond its prefix", text);
    }
    unmap(&cidr);
    *ret_cidr = cidr;
    return RC_OK;
}

bool cidr_has(const struct cidr *cidr, const uint8_t *addr, size_t len)
{
    if (len == 16 && memcmp(addr, mapped_prefix, sizeof(mapped_prefix)) == 0) {
        addr += 12;
        len = 4;
    }
    if (len != cidr->len || len == 0) {
        return false;
    }
    size_t whole = cidr->bits / 8;
    unsigned rest = cidr->bits % 8;
    if (memcmp(addr, cidr->addr, whole) != 0) {
        return false;
    }
    return rest == 0 || ((addr[whole] ^ cidr->addr[whole]) & (0xff00U >> rest) & 0xffU) == 0;
}

struct cidr cidr_of_addr(const struct addr *addr)
{
    return cidr_around(addr, 32, 128);
}

struct cidr cidr_around(const struct addr *addr, uint8_t v4_bits, uint8_t v6_bits)
{
    struct cidr cidr = {.len = 0};
    if (addr->sa.sa_family == AF_INET) {
        memcpy(cidr.addr, &addr->in4.sin_addr, 4);
        cidr.len = 4;
        cidr.bits = 32;
    } else if (addr->sa.sa_family == AF_INET6) {
        memcpy(cidr.addr, &addr->in6.sin6_addr, 16);
        cidr.len = 16;
        cidr.bits = 128;
        unmap(&cidr);
    }
    cidr.bits = cidr.len == 4 ? MIN(cidr.bits, v4_bits) : MIN(cidr.bits, v6_bits);
    (void)cut(&cidr); /* they are meant to go */
    return cidr;
}

struct addr addr_unmapped(const struct addr *addr)
{
    if (addr->sa.sa_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&addr->in6.sin6_addr)) {
        return *addr;
    }
    struct addr plain = {0};
    plain.in4.sin_family = AF_INET;
    plain.in4.sin_port = addr->in6.sin6_port;
    memcpy(&plain.in4.sin_addr, addr->in6.sin6_addr.s6_addr + 12, 4);
    return plain;
}

int addr_parse_ip(const char *text, size_t len, struct addr *ret_addr)
{
    char host[INET6_ADDRSTRLEN];
    if (len >= sizeof(host) || memchr(text, '\0', len) != NULL) {
        return RC_INVALID;
    }
    memcpy(host, text, len);
    host[len] = '\0';
    struct addr addr = {0};
    if (inet_pton(AF_INET, host, &addr.in4.sin_addr) == 1) {
        addr.in4.sin_family = AF_INET;
    } else if (inet_pton(AF_INET6, host, &addr.in6.sin6_addr) == 1) {
        addr.in6.sin6_family = AF_INET6;
    } else {
        return RC_INVALID;
    }
    *ret_addr = addr;
    return RC_OK;
}

/* ---- sets ---- */

static uint64_t load_be(const uint8_t *bytes, size_t len)
{
    uint64_t value = 0;
    for (size_t i = 0; i < len; i++) {
        value = value << 8 | bytes[i];
    }
    return value;
}

static struct wide wide_of(const struct cidr *cidr)
{
    if (cidr->len == 4) {
        return (struct wide){.low = load_be(cidr->addr, 4)};
    }
    return (struct wide){.high = load_be(cidr->addr, 8), .low = load_be(cidr->addr + 8, 8)};
}

static int wide_compare(struct wide a, struct wide b)
{
    if (a.high != b.high) {
        return a.high < b.high ? -1 : 1;
    }
    return a.low < b.low ? -1 : a.low > b.low;
}

/* All ones below the prefix; shifts by 64 are undefined. */
static uint64_t ones(unsigned count)
{
    return count >= 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1;
}

static struct range range_of(const struct cidr *cidr)
{
    struct range range = {.first = wide_of(cidr)};
    unsigned free_bits = cidr->len * 8U - cidr->bits;
    range.last = range.first;
    range.last.low |= ones(free_bits);
    range.last.high |= free_bits > 64 ? ones(free_bits - 64) : 0;
    return range;
}

static int range_compare(const void *left, const void *right)
{
    const struct range *a = left;
    const struct range *b = right;
    return wide_compare(a->first, b->first);
}

/* Sort and drop what another one covers: networks nest, they never overlap otherwise. */
static size_t ranges_tidy(struct range *ranges, size_t count)
{
    if (count == 0) {
        return 0;
    }
    qsort(ranges, count, sizeof(*ranges), range_compare);
    size_t kept = 0;
    for (size_t i = 1; i < count; i++) {
        if (wide_compare(ranges[i].first, ranges[kept].last) > 0) {
            ranges[++kept] = ranges[i];
        } else if (wide_compare(ranges[i].last, ranges[kept].last) > 0) {
            ranges[kept].last = ranges[i].last;
        }
    }
    return kept + 1;
}

static bool ranges_have(const struct range *ranges, size_t count, struct wide value)
{
    size_t low = 0;
    size_t high = count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (wide_compare(ranges[mid].last, value) < 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low < count && wide_compare(ranges[low].first, value) <= 0;
}

int cidr_set_new(const char *const *texts, size_t count, struct cidr_set **ret_set,
                 struct err_info *err)
{
    struct cidr_set *set = mem_new(sizeof(*set));
    set->v4 = mem_array(count, sizeof(*set->v4));
    set->v6 = mem_array(count, sizeof(*set->v6));
    for (size_t i = 0; i < count; i++) {
        struct cidr cidr;
        int rc = cidr_parse(texts[i], &cidr, err);
        if (rc != RC_OK) {
            cidr_set_free(set);
            return rc;
        }
        if (cidr.len == 4) {
            set->v4[set->v4_count++] = range_of(&cidr);
        } else {
            set->v6[set->v6_count++] = range_of(&cidr);
        }
    }
    set->v4_count = ranges_tidy(set->v4, set->v4_count);
    set->v6_count = ranges_tidy(set->v6, set->v6_count);
    *ret_set = set;
    return RC_OK;
}

void cidr_set_free(struct cidr_set *set)
{
    if (set != NULL) {
        mem_free(set->v4);
        mem_free(set->v6);
        mem_free(set);
    }
}

bool cidr_set_has(const struct cidr_set *set, const struct addr *addr)
{
    if (set == NULL) {
        return false;
    }
    struct cidr cidr = cidr_of_addr(addr);
    if (cidr.len == 0) {
        return false;
    }
    return cidr.len == 4 ? ranges_have(set->v4, set->v4_count, wide_of(&cidr))
                         : ranges_have(set->v6, set->v6_count, wide_of(&cidr));
}
