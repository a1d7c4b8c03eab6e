/*
 * What a rule, a backend and the defaults may ask for besides addresses and weights, as node/app
 * hands it over: plain structures, strings and lists borrowed for the call and copied by it.
 *
 * All zero asks for nothing. Times are milliseconds. Texts were checked by the object model; what
 * is unsound here all the same is RC_INVALID with a text, and nothing changes.
 */
#ifndef SKEIN_NODE_PROXY_PROXY_POLICY_H
#define SKEIN_NODE_PROXY_PROXY_POLICY_H

#include "node/base/addr.h"

struct tls_target;

struct proxy_texts {
    const char *const *items;
    size_t count;
};

/* ---- header fields ---- */

enum proxy_edit_action {
    PROXY_EDIT_SET = 0, /* the one field of this name */
    PROXY_EDIT_ADD,     /* one more */
    PROXY_EDIT_DELETE,
};

struct proxy_edit {
    enum proxy_edit_action action;
    const char *name;
    const char *value; /* a template (node/base/template.h); NULL with DELETE */
};

struct proxy_edits {
    const struct proxy_edit *items; /* in order */
    size_t count;
};

/* ---- answers without an endpoint ---- */

struct proxy_error_page {
    uint16_t status;
    const char *content_type;
    const char *body;
    size_t body_len;
};

struct proxy_error_pages {
    const struct proxy_error_page *items;
    size_t count;
};

enum proxy_scheme {
    PROXY_SCHEME_SAME = 0,
    PROXY_SCHEME_HTTP,
    PROXY_SCHEME_HTTPS,
};

struct proxy_redirect {
    enum proxy_scheme scheme;
    const char *host; /* NULL: the request's */
    uint16_t port;    /* 0: the scheme's own when scheme or host change, else as it came */
    const char *replace_prefix; /* stands for the rule's path, by whole segments; NULL: none */
    const char *replace_path;   /* the whole path; NULL: none */
    uint16_t status;            /* 301, 302, 303, 307, 308 */
};

struct proxy_cors {
    struct proxy_texts origins; /* "*" or whole origins */
    struct proxy_texts methods; /* none: what the preflight asks for */
    struct proxy_texts headers; /* none: what the preflight asks for */
    struct proxy_texts expose;
    bool credentials;
    uint32_t max_age_s; /* 0: not said */
};

/* ---- limits ---- */

enum proxy_rate_key {
    PROXY_RATE_CLIENT = 0, /* client address; IPv6 by /64 */
    PROXY_RATE_HEADER,
    PROXY_RATE_ROUTE, /* all clients together */
};

struct proxy_rate {
    uint32_t requests; /* per window; 0: no limit on the rate */
    uint32_t window_ms;
    uint32_t burst; /* at once, at least 1; 0: as requests */
    enum proxy_rate_key key;
    const char *header;   /* with PROXY_RATE_HEADER */
    uint32_t connections; /* exchanges or TCP connections at once by the same key; 0: no limit */
};

/* ---- going upstream ---- */

struct proxy_rewrite {
    const char *replace_prefix; /* NULL: none; at most one of the two */
    const char *replace_path;
    const char *host; /* Host sent upstream; NULL: as it came */
};

enum proxy_same_site {
    PROXY_SAME_SITE_LAX = 0,
    PROXY_SAME_SITE_STRICT,
    PROXY_SAME_SITE_NONE,
};

struct proxy_sticky {
    const char *cookie; /* its name */
    enum proxy_same_site same_site;
    bool secure_set; /* else Secure for clients that come over TLS */
    bool secure;
    uint32_t max_age_s; /* 0: a session cookie */
    const char *path;   /* "/" */
};

enum proxy_retry_on {
    PROXY_RETRY_CONNECT = 1, /* nothing was sent */
    PROXY_RETRY_RESET = 2,   /* closed before a byte of the response */
    PROXY_RETRY_TIMEOUT = 4,
    PROXY_RETRY_STATUS = 8, /* one of statuses */
};

enum { PROXY_RETRY_STATUSES_MAX = 16 };

struct proxy_retries {
    bool set;          /* else the default's */
    uint32_t attempts; /* further endpoints tried */
    unsigned on;       /* proxy_retry_on bits */
    uint16_t statuses[PROXY_RETRY_STATUSES_MAX];
    uint32_t status_count;
    uint32_t per_try_ms; /* until the response head; 0: none */
};

/* ---- the access log ---- */

struct proxy_capture {
    const char *name;
    uint32_t max_length;
};

struct proxy_captures {
    const struct proxy_capture *request; /* fields */
    size_t request_count;
    const struct proxy_capture *response;
    size_t response_count;
    const struct proxy_capture *cookies; /* of the request */
    size_t cookie_count;
};

/* ---- together ---- */

/* Of one rule. */
struct proxy_policy {
    struct proxy_texts allow_from; /* CIDRs; none: everybody */
    struct proxy_texts deny_from;  /* checked first */
    struct proxy_rate rate;
    uint64_t body_bytes_max;  /* 0: the default's */
    uint32_t connections_max; /* exchanges or TCP connections at once; 0: no limit */
    const struct proxy_redirect *redirect;
    const struct proxy_rewrite *rewrite;
    struct proxy_edits request;
    struct proxy_edits response;
    const char *hsts; /* value of the field; used on TLS connections only */
    const struct proxy_cors *cors;
    const struct proxy_sticky *sticky;
    struct proxy_retries retries;
    struct proxy_error_pages error_pages;
    bool access_log_off;
    struct proxy_captures captures;
};

enum proxy_hash_on {
    PROXY_HASH_CLIENT = 0, /* client address */
    PROXY_HASH_HEADER,
    PROXY_HASH_COOKIE,
    PROXY_HASH_QUERY,
    PROXY_HASH_PATH,
    PROXY_HASH_HOST,
};

enum proxy_protocol_version {
    PROXY_PROTOCOL_OFF = 0,
    PROXY_PROTOCOL_V1,
    PROXY_PROTOCOL_V2,
};

/* Ejection by what ordinary traffic meets: connect failures, resets, 5xx. */
struct proxy_passive {
    uint32_t failures;            /* in a row, or within the window; 0: off */
    uint32_t window_ms;           /* 10 s */
    uint32_t eject_ms;            /* the first time; doubles up to 10 times that */
    uint32_t max_ejected_percent; /* 50 */
};

#define PROXY_POOL_DEFAULT UINT32_MAX /* more than an enum constant may be */

/* How a backend uses its endpoints. */
struct proxy_backend {
    enum balance {
        BALANCE_RANDOM = 0, /* two weighted draws, the less loaded wins */
        BALANCE_LEAST_CONN,
        BALANCE_ROUND_ROBIN,
        BALANCE_HASH, /* consistent, by hash_on; Source is PROXY_HASH_CLIENT */
    } balance;
    enum proxy_hash_on hash_on;
    const char *hash_name; /* of the header, cookie or query parameter */
    struct proxy_passive passive;
    uint32_t panic_percent;                /* below it all endpoints are used; 0: never */
    uint32_t slow_start_ms;                /* of an endpoint that is new or came back; 0: none */
    uint32_t connections_per_endpoint_max; /* exchanges in flight; 0: no limit */
    uint32_t queue_max;                    /* exchanges that may wait for one, per node */
    uint32_t queue_ms;                     /* 0: the rule's or default queue limit */
    enum proxy_protocol_version proxy_protocol; /* sent to endpoints */
    uint32_t idle_per_endpoint_max;             /* PROXY_POOL_DEFAULT: the default's */
    uint32_t idle_ms;                           /* 0: learned */
    uint32_t requests_per_connection_max;       /* 0: no limit */
    struct tls_target *tls; /* endpoints speak TLS, like this; NULL: they do not */
};

#endif
