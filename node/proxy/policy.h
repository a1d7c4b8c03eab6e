/*
 * What rules and Settings ask for besides addresses and weights, compiled: sets, templates, limits
 * and texts that the request path uses without looking anything up.
 *
 * A rule that asks for nothing has no policy (NULL), so that it pays one pointer test at each step.
 *
 *   request   access lists, limits, CORS preflight, redirect, body limit, rewrite, edits of
 *             Settings, edits of the rule, forwarded fields, endpoint
 *   response  edits of the rule, edits of Settings, CORS, HSTS, further lines
 *
 * Immutable once published. A policy lives as long as its rule (an exchange keeps the host); a
 * policy_base is counted, since Settings change under exchanges.
 * Thread: made and freed by the control thread, read by all.
 */
#ifndef SKEIN_NODE_PROXY_POLICY_H
#define SKEIN_NODE_PROXY_POLICY_H

#include "node/base/cidr.h"
#include "node/base/template.h"
#include "node/http/h1_edit.h"
#include "node/proxy/access_capture.h"
#include "node/proxy/limiter.h"
#include "node/proxy/proxy.h"
#include "node/proxy/shared.h"

struct catalog;

struct policy_page {
    uint16_t status;
    char *content_type;
    char *body;
    size_t body_len;
};

struct policy_pages {
    struct policy_page *items;
    size_t count;
};

/* Values of the request that templates of the response mention; see policy_keep.h. */
struct policy_keeps {
    struct template_part *items; /* their texts belong to the templates */
    size_t count;
};

struct policy_rate {
    struct limit limit;
    enum proxy_rate_key key;
    char *header; /* lower-case; with PROXY_RATE_HEADER */
    size_t header_len;
};

struct policy_redirect {
    enum proxy_scheme scheme;
    char *host; /* NULL: the request's */
    uint16_t port;
    char *replace_prefix;
    char *replace_path;
    uint16_t status;
};

struct policy_rewrite {
    char *replace_prefix;
    char *replace_path;
    char *host;
    size_t host_len;
};

struct cors;

/* Of one rule. */
struct policy {
    struct limiter *limiter; /* the node's; with rate or at_once */
    struct cidr_set *allow;  /* NULL: everybody */
    struct cidr_set *deny;
    struct policy_rate *rate; /* per key */
    struct limit at_once;     /* exchanges of the whole rule; at_once 0: no limit */
    uint64_t body_bytes_max;  /* 0: the default's */
    struct policy_redirect *redirect;
    struct policy_rewrite *rewrite;
    struct h1_edits request;
    struct h1_edits response;
    struct policy_keeps keeps;
    char *hsts; /* the whole line */
    struct cors *cors;
    struct policy_pages pages;
    bool access_log_off;
    struct captures *captures; /* for the access log; NULL: none */
};

/* Of Settings. */
struct policy_base {
    struct refcnt refs;
    struct cidr_set *trusted;   /* NULL: nobody */
    char *id_header;            /* NULL: none */
    struct template *id_format; /* NULL: random */
    struct h1_edits request;
    struct h1_edits response;
    struct policy_keeps keeps;
    char *hsts;
    struct policy_pages pages;
    bool changes_requests;   /* on their way to the endpoint */
    struct limiter *limiter; /* the node's; with per_client */
    struct limit per_client; /* connections; at_once 0: no limit */
};

/* Compile the policy of a route, which may be a TCP one; *ret_policy is NULL when it asks for
 * nothing (from may be NULL). route: "namespace/name". RC_INVALID with a text that names the field:
 * nothing is held. */
MUST_CHECK int policy_new(struct catalog *catalog, const char *route,
                          const struct proxy_policy *from, struct policy **ret_policy,
                          struct err_info *err);
void policy_free(struct policy *policy); /* NULL is accepted */

/* The same of Settings, with one reference. */
MUST_CHECK int policy_base_new(const struct proxy_defaults *defaults, struct catalog *catalog,
                               struct policy_base **ret_base, struct err_info *err);
/* Any thread. NULL is accepted. */
void policy_base_ref(struct policy_base *base);
void policy_base_unref(struct policy_base *base);

/* A place for a connection from this peer, in *ret_place (NULL where there is no limit, and for
 * trusted proxies, which speak for many). False: it has as many as it may have. base may be NULL.
 */
bool policy_client_place(const struct policy_base *base, const struct addr *peer,
                         struct limiter_place **ret_place);

/* NULL: no page for this status. */
const struct policy_page *policy_page(const struct policy_pages *pages, unsigned status);

/* Whether the access lists let this address in. policy may be NULL. */
bool policy_allows(const struct policy *policy, const struct addr *client);

#endif
