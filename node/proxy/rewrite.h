/*
 * Paths and addresses that stand for those that came: rewriting of what goes upstream, and the
 * Location of a redirect. Pure; results are appended.
 *
 * A prefix is replaced by whole segments: the segments of the rule's path go, the replacement
 * comes, what is behind them stays as it came, and where the two meet there is exactly one slash:
 *
 *   rule    replacement   path      result
 *   /foo    /bar          /foo/x    /bar/x
 *   /foo    /bar          /foo      /bar
 *   /foo    /bar/         /foo/x    /bar/x
 *   /foo    /             /foo      /
 *   /foo    /             /foo/x    /x
 *   /       /bar          /x        /bar/x
 */
#ifndef SKEIN_NODE_PROXY_REWRITE_H
#define SKEIN_NODE_PROXY_REWRITE_H

#include "node/base/buf.h"
#include "node/proxy/policy.h"

/* Segments of a rule's path: 0 of "/" and "", 1 of "/a" and "/a/". */
size_t rewrite_segments(const char *rule_path);

/* path has at least that many segments, and may be spelt otherwise than the rule's: escapes of
 * unreserved characters never hide a slash. */
void rewrite_prefix(const char *replacement, size_t segments, const char *path, size_t len,
                    struct buf *out);

/* The request that is redirected. */
struct redirect_ask {
    const char *scheme;    /* as the client sees it */
    const char *host;      /* canonical name; never empty */
    int32_t port;          /* of the Host field; -1: none stood there */
    const char *rule_path; /* what replace_prefix stands for */
    const char *path;
    size_t path_len;
    const char *query; /* NULL: none */
    size_t query_len;
};

/* An absolute URI of ASCII without blanks or control bytes; what no URI may hold is escaped.
 * scratch is for the path. out->full: it did not fit one of them. */
void redirect_location(const struct policy_redirect *redirect, const struct redirect_ask *ask,
                       struct buf *scratch, struct buf *out);

#endif
