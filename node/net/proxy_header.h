/*
 * The PROXY protocol, versions 1 and 2: the header before the first byte of a connection that tells
 * whose it is (haproxy.org, proxy-protocol.txt, 2020-03-05).
 *
 * Strict: a v1 line is at most 107 bytes, with single blanks and addresses in the form of its
 * family; a v2 block names a known version, command and family, its parts lie within its length,
 * and a checksum that it carries is right. Pure, any thread.
 */
#ifndef SKEIN_NODE_NET_PROXY_HEADER_H
#define SKEIN_NODE_NET_PROXY_HEADER_H

#include "node/base/addr.h"

enum {
    PROXY_HEADER_V1_MAX = 107,                  /* with its line end */
    PROXY_HEADER_V2_FIXED = 16,                 /* before addresses and TLVs */
    PROXY_HEADER_BLOCK_MAX = 4096,              /* addresses and TLVs taken at most */
    PROXY_HEADER_MAX = 16 + 4096,               /* a whole header of either version */
    PROXY_HEADER_OUT_MAX = PROXY_HEADER_V1_MAX, /* what is written */
};

struct proxy_header {
    size_t len; /* bytes that it takes */
    bool told;  /* it names the two ends; else (LOCAL, UNKNOWN, unix ...) the connection's count */
    struct addr source;
    struct addr destination;
};

/*
 * A header at the front of bytes.
 * RC_AGAIN    a beginning of one: there must be more
 * RC_INVALID  no header, or a malformed one
 * RC_TOO_BIG  its length is above PROXY_HEADER_BLOCK_MAX
 */
MUST_CHECK int proxy_header_parse(const char *bytes, size_t len, struct proxy_header *ret_header);

/* Write a header for these two ends; an unset one, or one of another family than IP, makes it say
 * that nothing is known. Returns the length. */
size_t proxy_header_v1(char out[PROXY_HEADER_OUT_MAX + 1], const struct addr *source,
                       const struct addr *destination);
size_t proxy_header_v2(char out[PROXY_HEADER_OUT_MAX + 1], const struct addr *source,
                       const struct addr *destination);

#endif
