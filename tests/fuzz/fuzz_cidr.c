/* unit: node_base */
/*
 * Networks, one a line: what is taken holds its own address, and a set of them agrees with them one
 * by one on the edges of each and next to them.
 */
#include "node/base/check.h"
#include "node/base/cidr.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { NETWORKS_MAX = 64, TEXT_MAX = 80 };

/* The first or the last address of a network, or the one before or behind it. */
static struct addr addr_of(const struct cidr *cidr, bool last, int step)
{
    struct addr addr = {0};
    uint8_t bytes[16];
    memcpy(bytes, cidr->addr, sizeof(bytes));
    for (unsigned bit = cidr->bits; last && bit < cidr->len * 8U; bit++) {
        bytes[bit / 8] = (uint8_t)(bytes[bit / 8] | 0x80U >> bit % 8);
    }
    for (unsigned i = cidr->len; step != 0 && i-- > 0;) {
        int sum = bytes[i] + step;
        bytes[i] = (uint8_t)sum;
        step = sum < 0 ? -1 : sum > 255 ? 1 : 0;
    }
    addr.sa.sa_family = cidr->len == 4 ? AF_INET : AF_INET6;
    if (cidr->len == 4) {
        memcpy(&addr.in4.sin_addr, bytes, 4);
    } else {
        memcpy(&addr.in6.sin6_addr, bytes, 16);
    }
    return addr;
}

/* The set says what its networks say one by one; an IPv4-mapped address is the IPv4 one. */
static void check_edge(const struct cidr_set *set, const struct cidr *cidrs, size_t count,
                       const struct addr *edge)
{
    struct addr addr = addr_unmapped(edge);
    bool is_v4 = addr.sa.sa_family == AF_INET;
    const uint8_t *bytes =
        is_v4 ? (const uint8_t *)&addr.in4.sin_addr : (const uint8_t *)&addr.in6.sin6_addr;
    bool want = false;
    for (size_t i = 0; i < count; i++) {
        want = want || cidr_has(&cidrs[i], bytes, is_v4 ? 4 : 16);
    }
    ASSERT(cidr_set_has(set, edge) == want);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char texts[NETWORKS_MAX][TEXT_MAX];
    const char *good[NETWORKS_MAX] = {NULL};
    struct cidr cidrs[NETWORKS_MAX];
    size_t count = 0;
    size_t at = 0;
    while (at < size && count < NETWORKS_MAX) {
        size_t len = 0;
        while (at < size && data[at] != '\n') {
            if (len + 1 < TEXT_MAX) {
                texts[count][len++] = (char)data[at];
            }
            at++;
        }
        at++;
        texts[count][len] = '\0';
        struct err_info err = {0};
        if (cidr_parse(texts[count], &cidrs[count], &err) == RC_OK) {
            ASSERT(cidrs[count].len == 4 || cidrs[count].len == 16);
            ASSERT(cidr_has(&cidrs[count], cidrs[count].addr, cidrs[count].len));
            good[count] = texts[count];
            count++;
        } else {
            ASSERT(err.text[0] != '\0');
        }
    }
    struct cidr_set *set = NULL;
    ASSERT(cidr_set_new(good, count, &set, NULL) == RC_OK);
    for (size_t i = 0; i < count; i++) {
        struct addr first = addr_of(&cidrs[i], false, 0);
        ASSERT(cidr_set_has(set, &first));
        for (int step = -1; step <= 1; step++) {
            first = addr_of(&cidrs[i], false, step);
            struct addr last = addr_of(&cidrs[i], true, step);
            check_edge(set, cidrs, count, &first);
            check_edge(set, cidrs, count, &last);
        }
    }
    cidr_set_free(set);
    return 0;
}
