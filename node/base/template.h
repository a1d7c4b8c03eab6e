/*
 * Texts with variables, as header values and request ids have them:
 *
 *   "%{client.address} via %{node}"     "100%%"
 *
 * Everything but '%' stands for itself; "%%" is one '%'. A variable may be used where it is known:
 * those of the response only in what is done to responses. Syntax and rendering only: what a
 * variable stands for is the caller's matter.
 *
 * What is rendered never holds a control byte but tab, whatever the values were: each becomes a
 * blank. Pure, any thread; a compiled template is immutable.
 */
#ifndef SKEIN_NODE_BASE_TEMPLATE_H
#define SKEIN_NODE_BASE_TEMPLATE_H

#include "node/base/buf.h"
#include "node/base/errors.h"

enum {
    TEMPLATE_TEXT_MAX = 16384,
    TEMPLATE_PARTS_MAX = 64,
    TEMPLATE_NAME_MAX = 256, /* of a header in request.header.NAME */
};

enum template_var {
    TEMPLATE_LITERAL = 0,
    TEMPLATE_CLIENT_ADDRESS,  /* client.address */
    TEMPLATE_CLIENT_PORT,     /* client.port */
    TEMPLATE_HOST,            /* host: lower-case, without port */
    TEMPLATE_PATH,            /* path: as it came, without query */
    TEMPLATE_QUERY,           /* query: as it came, without '?' */
    TEMPLATE_METHOD,          /* method */
    TEMPLATE_REQUEST_ID,      /* request.id */
    TEMPLATE_ROUTE,           /* route: its name */
    TEMPLATE_NAMESPACE,       /* namespace: the route's */
    TEMPLATE_BACKEND,         /* backend: its name */
    TEMPLATE_ENDPOINT,        /* endpoint: address:port; responses only */
    TEMPLATE_NODE,            /* node */
    TEMPLATE_SCHEME,          /* scheme: http or https */
    TEMPLATE_LISTENER_PORT,   /* listener.port */
    TEMPLATE_TIME,            /* time: milliseconds since 1970 */
    TEMPLATE_RANDOM,          /* random: 128 bits in hex */
    TEMPLATE_REQUEST_HEADER,  /* request.header.NAME */
    TEMPLATE_RESPONSE_HEADER, /* response.header.NAME; responses only */
    TEMPLATE_VAR_COUNT,
};

/* Where a template is used, which decides what it may mention. */
enum template_place {
    TEMPLATE_IN_REQUEST = 0, /* an edit of the request */
    TEMPLATE_IN_RESPONSE,
    TEMPLATE_IN_ID, /* the request id: made before the route is known */
};

struct template_part {
    enum template_var var;
    uint16_t slot;    /* the caller's to use while compiling */
    const char *text; /* LITERAL: the bytes; *_HEADER: the name in lower-case; else NULL */
    size_t len;
};

struct template
{
    struct template_part *parts;
    size_t count;
    bool has_vars;
    char *store; /* what the parts point into */
};

/* RC_INVALID, RC_TOO_BIG with a text that says where the trouble is and what is accepted. */
MUST_CHECK int template_new(const char *text, enum template_place place,
                            struct template **ret_template, struct err_info *err);
void template_free(struct template *template); /* NULL is accepted */

/* The same check without a result. */
MUST_CHECK int template_check(const char *text, enum template_place place, struct err_info *err);

/* What a variable stands for: len bytes that stay until the next call. */
struct template_value {
    const char *at;
    size_t len;
};

typedef struct template_value template_source_fn(void *ctx, const struct template_part *part);

/* Append; out->full tells that it did not fit. */
void template_render(const struct template *template, template_source_fn *source, void *ctx,
                     struct buf *out);

#endif
