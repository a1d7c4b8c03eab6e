/*
 * llhttp's reading of a head that node/http took: does a second, independent parser take it, too,
 * end it at the same byte, and see the same framing?
 *
 * The unit's own tests and the fuzz targets ask it about every head that is taken, so nothing that
 * llhttp refuses is ever forwarded. It is fed the start line and each field line as they came, but
 * for white space around values, since llhttp takes no tab behind digits, which RFC 9110 5.5
 * allows. llhttp knows a fixed set of methods; any other token, which a proxy passes on, is
 * replaced by POST for it (RFC 9110 9.1: a method does not change how a request is framed).
 */
#ifndef SKEIN_TESTS_SUPPORT_H1_ORACLE_H
#define SKEIN_TESTS_SUPPORT_H1_ORACLE_H

#include "node/http/h1_head.h"

#include <llhttp.h>

static int h1_oracle_on_complete(llhttp_t *parser)
{
    (void)parser;
    return HPE_PAUSED;
}

static bool h1_oracle_feed(llhttp_t *parser, const char *bytes, size_t len)
{
    return len == 0 || llhttp_execute(parser, bytes, len) == HPE_OK;
}

/* The field lines and the end of the head. True when llhttp saw it end there. */
static bool h1_oracle_feed_fields(llhttp_t *parser, const struct h1_head *head, const char *bytes)
{
    for (uint32_t i = 0; i < head->field_count; i++) {
        const struct h1_field *field = &head->fields[i];
        if (!h1_oracle_feed(parser, bytes + field->name.off, field->name.len + 1u) ||
            !h1_oracle_feed(parser, bytes + field->value.off, field->value.len) ||
            !h1_oracle_feed(parser, "\r\n", 2)) {
            return false;
        }
    }
    const char *end = bytes + head->len;
    return llhttp_execute(parser, end - 2, 2) == HPE_PAUSED && llhttp_get_error_pos(parser) == end;
}

/* start: where the start line begins. */
UNUSED static bool h1_oracle_agrees(const struct h1_head *head, const char *bytes, size_t start,
                                    bool is_request)
{
    static const llhttp_settings_t settings = {.on_headers_complete = h1_oracle_on_complete};
    llhttp_t parser;
    llhttp_init(&parser, is_request ? HTTP_REQUEST : HTTP_RESPONSE, &settings);
    if (is_request && head->method_id == H1_METHOD_OTHER) {
        start += head->method.len;
        if (!h1_oracle_feed(&parser, "POST", 4)) {
            return false;
        }
    }
    size_t fields = head->field_count > 0 ? head->fields[0].name.off : head->len - 2u;
    if (!h1_oracle_feed(&parser, bytes + start, fields - start) ||
        !h1_oracle_feed_fields(&parser, head, bytes)) {
        return false;
    }
    bool is_chunked = (parser.flags & F_CHUNKED) != 0;
    bool has_coding = (head->present & H1_BIT(H1_TRANSFER_ENCODING)) != 0;
    bool has_length = (parser.flags & F_CONTENT_LENGTH) != 0;
    return is_chunked == has_coding && has_length == head->length_announced &&
           (!has_length || parser.content_length == head->content_length);
}

#endif
