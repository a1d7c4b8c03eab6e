/*
 * IP address and port: parse, format, compare. Pure, any thread.
 */
#ifndef SKEIN_NODE_BASE_ADDR_H
#define SKEIN_NODE_BASE_ADDR_H

#include "node/base/defs.h"
#include "node/base/errors.h"

#include <netinet/in.h>
#include <sys/socket.h>

enum { ADDR_TEXT_MAX = 64 }; /* "[v6 with scope]:65535" and NUL */

/* One socket address; sa.sa_family AF_UNSPEC (all zero) means "unset". */
struct addr {
    union {
        struct sockaddr sa;
        struct sockaddr_in in4;
        struct sockaddr_in6 in6;
    };
};

/*
 * "10.0.0.1:80", "[::1]:80", ":80" or "*:80" (any address, IPv4). Names are not resolved.
 * RC_INVALID with a text that says what is wrong and what would be accepted.
 */
MUST_CHECK int addr_parse(const char *text, struct addr *ret_addr, struct err_info *err);

/* "10.0.0.1:80" or "[::1]:80" into out; returns out. "-" when unset. */
const char *addr_format(const struct addr *addr, char out[ADDR_TEXT_MAX]);

/* The address without its port ("10.0.0.1", "::1"). */
const char *addr_format_ip(const struct addr *addr, char out[ADDR_TEXT_MAX]);

uint16_t addr_port(const struct addr *addr);
void addr_set_port(struct addr *addr, uint16_t port);
socklen_t addr_len(const struct addr *addr);

/* <0, 0, >0 over family, address, port. */
int addr_compare(const struct addr *a, const struct addr *b);

/* Copy from the kernel's form; other families give "unset". */
void addr_from_sockaddr(const struct sockaddr *sa, struct addr *ret_addr);

bool addr_is_loopback(const struct addr *addr);
bool addr_is_any(const struct addr *addr);

#endif
