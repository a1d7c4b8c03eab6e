/*
 * One message read by llhttp alone, with nothing lenient: what a recipient behind the router sees.
 *
 * The fuzz targets write messages as the data plane does and ask here what arrived. Fields that
 * say how the connection is used are counted, all others are kept for comparison.
 */
#ifndef SKEIN_TESTS_FUZZ_STRICT_H
#define SKEIN_TESTS_FUZZ_STRICT_H

#include "node/base/buf.h"
#include "node/base/check.h"

#include <llhttp.h>
#include <string.h>
#include <strings.h>

enum { STRICT_CAP = 4 << 20 };

struct strict {
    struct buf target; /* or the reason of a response */
    struct buf name;   /* of the field in progress */
    struct buf value;
    struct buf fields;   /* "name:value\n" of all but those below, in order, names as they came */
    struct buf trailers; /* the same behind a chunked body */
    struct buf body;
    unsigned hosts, lengths, codings, connections, upgrades, tes;
    unsigned completed;
    bool in_trailers;
    bool bodiless;    /* a response that has none whatever its head says */
    bool sound;       /* no error; every byte belongs to the one message */
    bool is_complete; /* and its last byte was the message's last */
    int status;
};

static struct strict *strict_of(llhttp_t *parser)
{
    return parser->data;
}

static int strict_on_target(llhttp_t *parser, const char *at, size_t len)
{
    ASSERT(buf_put(&strict_of(parser)->target, at, len) == 0);
    return 0;
}

static int strict_on_name(llhttp_t *parser, const char *at, size_t len)
{
    ASSERT(buf_put(&strict_of(parser)->name, at, len) == 0);
    return 0;
}

static int strict_on_value(llhttp_t *parser, const char *at, size_t len)
{
    ASSERT(buf_put(&strict_of(parser)->value, at, len) == 0);
    return 0;
}

static int strict_on_body(llhttp_t *parser, const char *at, size_t len)
{
    ASSERT(buf_put(&strict_of(parser)->body, at, len) == 0);
    return 0;
}

static bool strict_is(const struct buf *name, const char *word)
{
    return name->len == strlen(word) && strncasecmp(name->data, word, name->len) == 0;
}

/* "name:value\n" without white space around the value. */
static void strict_put_field(struct buf *out, const char *name, size_t name_len, const char *value,
                             size_t len)
{
    while (len > 0 && (value[0] == ' ' || value[0] == '\t')) {
        value++;
        len--;
    }
    while (len > 0 && (value[len - 1] == ' ' || value[len - 1] == '\t')) {
        len--;
    }
    ASSERT(buf_put(out, name, name_len) == 0 && buf_putc(out, ':') == 0);
    ASSERT(len == 0 || buf_put(out, value, len) == 0);
    ASSERT(buf_putc(out, '\n') == 0);
}

static int strict_on_field(llhttp_t *parser)
{
    struct strict *strict = strict_of(parser);
    const struct buf *name = &strict->name;
    if (strict->in_trailers) {
        strict_put_field(&strict->trailers, name->data, name->len, strict->value.data,
                         strict->value.len);
    } else if (strict_is(name, "content-length")) {
        strict->lengths++;
    } else if (strict_is(name, "transfer-encoding")) {
        strict->codings++;
    } else if (strict_is(name, "connection")) {
        strict->connections++;
    } else if (strict_is(name, "upgrade")) {
        strict->upgrades++;
    } else if (strict_is(name, "te")) {
        strict->tes++;
    } else {
        if (strict_is(name, "host")) {
            strict->hosts++;
        }
        strict_put_field(&strict->fields, name->data, name->len, strict->value.data,
                         strict->value.len);
    }
    buf_reset(&strict->name);
    buf_reset(&strict->value);
    return 0;
}

static int strict_on_head(llhttp_t *parser)
{
    strict_of(parser)->in_trailers = true;
    strict_of(parser)->status = parser->status_code;
    return strict_of(parser)->bodiless ? 1 : 0;
}

static int strict_on_complete(llhttp_t *parser)
{
    strict_of(parser)->completed++;
    return HPE_PAUSED;
}

static const llhttp_settings_t strict_settings = {
    .on_url = strict_on_target,
    .on_status = strict_on_target,
    .on_header_field = strict_on_name,
    .on_header_value = strict_on_value,
    .on_header_value_complete = strict_on_field,
    .on_headers_complete = strict_on_head,
    .on_body = strict_on_body,
    .on_message_complete = strict_on_complete,
};

static void strict_init(struct strict *strict)
{
    struct buf *bufs[] = {&strict->target, &strict->name,     &strict->value,
                          &strict->fields, &strict->trailers, &strict->body};
    memset(strict, 0, sizeof(*strict));
    for (size_t i = 0; i < ARRAY_LEN(bufs); i++) {
        buf_init(bufs[i], STRICT_CAP);
    }
}

static void strict_deinit(struct strict *strict)
{
    struct buf *bufs[] = {&strict->target, &strict->name,     &strict->value,
                          &strict->fields, &strict->trailers, &strict->body};
    for (size_t i = 0; i < ARRAY_LEN(bufs); i++) {
        buf_deinit(bufs[i]);
    }
}

/*
 * Read bytes[0..len), which should be one message or the begin of one. method_len is not 0 when
 * llhttp does not know the method: POST stands for that many bytes then.
 */
static void strict_read(struct strict *strict, llhttp_type_t type, const char *bytes, size_t len,
                        size_t method_len)
{
    llhttp_t parser;
    llhttp_init(&parser, type, &strict_settings);
    parser.data = strict;
    if (method_len > 0) {
        ASSERT(llhttp_execute(&parser, "POST", 4) == HPE_OK);
    }
    llhttp_errno_t rc = llhttp_execute(&parser, bytes + method_len, len - method_len);
    if (rc == HPE_OK) {
        strict->sound = true;
    } else if (rc == HPE_PAUSED || rc == HPE_PAUSED_UPGRADE) {
        strict->sound = llhttp_get_error_pos(&parser) == bytes + len;
    }
    strict->is_complete = strict->sound && strict->completed == 1;
}

static bool strict_same(const struct buf *a, const struct buf *b)
{
    return a->len == b->len && (a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
}

#endif
