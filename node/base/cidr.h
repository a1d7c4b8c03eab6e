/*
 * IP networks: parse, compare, and sets of them for access lists.
 *
 * An IPv4-mapped IPv6 address is the IPv4 address that it maps, in networks as in what is looked up
 * ("::ffff:10.0.0.0/104" is 10.0.0.0/8), so that a dual-stack listener changes no decision; "::/0"
 * is every IPv6 address and no IPv4 one. Pure, any thread.
 */
#ifndef SKEIN_NODE_BASE_CIDR_H
#define SKEIN_NODE_BASE_CIDR_H

#include "node/base/addr.h"

/* An IP network. bits counts from the left; addresses are in network order. */
struct cidr {
    uint8_t addr[16];
    uint8_t len;  /* 4 or 16; 0: no address at all */
    uint8_t bits; /* 0..32 or 0..128 */
};

/* "10.0.0.0/8", "2001:db8::/32", or one address. Bits to the right of the prefix must be zero.
 * RC_INVALID with a text. */
MUST_CHECK int cidr_parse(const char *text, struct cidr *ret_cidr, struct err_info *err);

/* addr of 4 or 16 bytes. */
bool cidr_has(const struct cidr *cidr, const uint8_t *addr, size_t len);

/* The network of this one address; len 0 when it is no IP address. */
struct cidr cidr_of_addr(const struct addr *addr);

/* The same cut to a prefix: v4_bits of an IPv4 address, v6_bits of an IPv6 one. */
struct cidr cidr_around(const struct addr *addr, uint8_t v4_bits, uint8_t v6_bits);

/* The plain IPv4 form of an IPv4-mapped address; any other as it is. The port stays. */
struct addr addr_unmapped(const struct addr *addr);

/* An IP address of len bytes without port or brackets; the port is 0. RC_INVALID. */
MUST_CHECK int addr_parse_ip(const char *text, size_t len, struct addr *ret_addr);

/* Any number of networks, looked up in logarithmic time. Immutable. */
struct cidr_set;

/* RC_INVALID with a text that names the element. An empty list is a set that has nothing. */
MUST_CHECK int cidr_set_new(const char *const *texts, size_t count, struct cidr_set **ret_set,
                            struct err_info *err);
void cidr_set_free(struct cidr_set *set); /* NULL is accepted */

/* False for NULL and for what is no IP address. */
bool cidr_set_has(const struct cidr_set *set, const struct addr *addr);

#endif
