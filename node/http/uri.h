/*
 * Targets and hosts: the canonical forms that routing decides on. Pure, any thread, no allocation.
 *
 * What is forwarded are the bytes that came; the canonical form exists so that one resource has one
 * name when routes are matched, however a client spells it.
 */
#ifndef SKEIN_NODE_HTTP_URI_H
#define SKEIN_NODE_HTTP_URI_H

#include "node/base/defs.h"
#include "node/base/errors.h"

enum {
    URI_HOST_MAX = 253, /* RFC 1035 2.3.4, without trailing dot */
    URI_LABEL_MAX = 63,
};

/* What to do with "." and ".." segments. The same values as the data plane's dot_segments. */
enum uri_dots {
    URI_DOTS_REFUSE = 0,
    URI_DOTS_REMOVE, /* RFC 3986 5.2.4; the caller forwards the canonical path then */
    URI_DOTS_KEEP,
};

/* A path in canonical form. */
struct uri_path {
    const char *at; /* into the input when that is canonical already, else into the scratch */
    size_t len;     /* at least 1: "" becomes "/" */
    bool had_dots;  /* dot segments were removed */
};

/*
 * Canonical form of an absolute path (no query): escapes of unreserved characters are decoded, all
 * others get upper-case digits and stay; %2F stays. Dot segments count whether plain or escaped,
 * and under REFUSE and REMOVE those that only some servers see ("..%2F", "..\", "..;x") are
 * refused.
 *
 * scratch  at least len bytes; only used when something changes
 * RC_INVALID  no leading '/', a malformed escape, %00, refused dot segments
 * RC_TOO_BIG  changes are needed and do not fit the scratch
 */
MUST_CHECK int uri_path_canon(const char *path, size_t len, enum uri_dots dots, char *scratch,
                              size_t scratch_size, struct uri_path *ret_path);

/* The parts of a Host value or authority. */
struct uri_host {
    size_t name_len; /* of the canonical name */
    int32_t port;    /* -1: none, or an empty one */
    bool is_ip;      /* an IPv4 address or a bracketed IPv6 literal */
};

/*
 * Canonical name of "host[:port]" into out (NUL-terminated): lower-case, no port, one trailing dot
 * stripped; IPv6 literals keep their brackets and are written the shortest way (RFC 5952).
 * RC_INVALID: empty, user information, bytes that no host name has (letters, digits, '-', '_' and
 * '.' are), empty or overlong labels, too long, a port that is no number below 65536.
 */
MUST_CHECK int uri_host_canon(const char *host, size_t len, char out[URI_HOST_MAX + 1],
                              struct uri_host *ret_host);

/* Decode all escapes of a query part or path segment; '+' is a space when `form`. out may be the
 * input. RC_INVALID: malformed escape or %00. Returns the length in *ret_len. RC_TOO_BIG. */
MUST_CHECK int uri_decode(const char *text, size_t len, bool form, char *out, size_t out_size,
                          size_t *ret_len);

/*
 * Walk the parameters of a query ("a=b&c"): true while there is one; *cursor starts at 0. Name and
 * value are spans of the query, still escaped; a parameter without '=' has an empty value.
 */
struct uri_param {
    const char *name;
    size_t name_len;
    const char *value;
    size_t value_len;
};
bool uri_query_next(const char *query, size_t len, size_t *cursor, struct uri_param *ret_param);

#endif
