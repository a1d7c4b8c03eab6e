/*
 * Targets and preconditions of API requests: path segments, query parameters, entity tags.
 *
 * Pure. Everything is decoded once, into memory of its own. Thread: any.
 */
#ifndef SKEIN_ADMIN_SERVER_QUERY_H
#define SKEIN_ADMIN_SERVER_QUERY_H

#include "node/base/errors.h"

enum { QUERY_PARAMS_MAX = 32 };

struct query_param {
    char *name;
    char *value; /* "" when the parameter stands alone ("?pretty") */
};

struct query {
    struct query_param params[QUERY_PARAMS_MAX];
    size_t count;
};

/* What follows the '?' (without it). RC_INVALID: a bad escape, a repeated name, too many; nothing
 * is kept. Free with query_deinit, which accepts a zeroed struct. */
MUST_CHECK int query_parse(const char *text, size_t len, struct query *ret_query,
                           struct err_info *err);
void query_deinit(struct query *query);

/* NULL: not given. */
const char *query_find(const struct query *query, const char *name);

/* "true", "1", "" and "yes" are true, "false", "0" and "no" are false; not given is false. */
MUST_CHECK int query_bool(const struct query *query, const char *name, bool *ret_value,
                          struct err_info *err);

/* A decimal number in min..max; not given leaves *ret_value. */
MUST_CHECK int query_number(const struct query *query, const char *name, uint64_t min, uint64_t max,
                            uint64_t *ret_value, struct err_info *err);

/* RC_INVALID, naming the parameter and what would be accepted, unless every parameter is in the
 * space-separated list. */
MUST_CHECK int query_check(const struct query *query, const char *accepted, struct err_info *err);

/* Percent-decoding into fresh memory (mem_free); '+' means space only in a query. RC_INVALID: a bad
 * escape, or a NUL or control byte. */
MUST_CHECK int percent_decode(const char *text, size_t len, bool plus_is_space, char **ret_text,
                              struct err_info *err);

/*
 * If-Match and If-None-Match (RFC 9110 13.1): "*", or a list of quoted tags. etag is without
 * quotes, NULL when there is no such object. Weak tags match nothing, since no weak ones are given
 * out.
 */
bool etag_matches(const char *header, const char *etag);

#endif
