/*
 * What a check asks an endpoint and what it wants to hear: compiled once, shared by all endpoints
 * of a backend.
 *
 * Thread: the owner's; reference counts are not atomic.
 */
#ifndef SKEIN_NODE_HEALTH_CHECK_SPEC_H
#define SKEIN_NODE_HEALTH_CHECK_SPEC_H

#include "node/base/addr.h"
#include "node/base/buf.h"
#include "node/health/check.h"
#include "node/http/h1_head.h"
#include "node/tls/tls_policy.h"

enum {
    CHECK_STATUSES_MAX = 16,
    CHECK_HEADERS_MAX = 20,
    CHECK_REQUEST_BYTES_MAX = 512 * 1024, /* above all that the fields below can amount to */
    CHECK_BODY_SEARCH_BYTES = 64 * 1024,  /* how much of a response's body is looked through */
};

enum check_type {
    CHECK_TCP = 0, /* connect, handshake if there is to be one, and close */
    CHECK_HTTP,    /* one request on a connection of its own */
};

struct check_statuses {
    uint16_t low;
    uint16_t high; /* included */
};

struct check_header {
    const char *name;
    const char *value;
};

/* Texts are borrowed; the object model has checked them. NULL and 0 mean the default. */
struct check_config {
    enum check_type type;
    struct check_pace pace;                             /* all set */
    uint16_t port;                                      /* 0: the endpoint's own */
    const char *path;                                   /* "/"; a query may follow */
    const char *method;                                 /* GET */
    const char *host;                                   /* the endpoint's address */
    struct check_statuses statuses[CHECK_STATUSES_MAX]; /* none: 200 to 399 */
    size_t status_count;
    struct check_header headers[CHECK_HEADERS_MAX];
    size_t header_count;
    const char *body;       /* must occur in the response's body; NULL: any body will do */
    struct tls_target *tls; /* by TLS, and how; a reference is taken; NULL: in clear */
};

struct check_spec {
    unsigned refs;
    enum check_type type;
    struct check_pace pace;
    uint16_t port;
    enum h1_method method;
    bool has_host;
    char *before_host; /* request line and "Host: ", with the host when the check names one */
    char *after_host;  /* from the end of the Host line to the end of the head */
    struct check_statuses statuses[CHECK_STATUSES_MAX];
    size_t status_count;
    char *body; /* NULL: not looked at */
    size_t body_len;
    struct tls_target *tls; /* a reference; NULL: in clear */
};

/* One reference, the caller's. RC_INVALID: a text cannot stand in a request head. */
MUST_CHECK int check_spec_new(const struct check_config *config, struct check_spec **ret_spec);
struct check_spec *check_spec_ref(struct check_spec *spec);
void check_spec_unref(struct check_spec *spec); /* NULL is accepted */

/* Append the request for an endpoint called host ("10.1.0.4:8080"). RC_FULL. */
MUST_CHECK int check_spec_request(const struct check_spec *spec, const char *host, struct buf *out);

bool check_spec_wants_status(const struct check_spec *spec, uint16_t status);

#endif
