/*
 * llhttp's reading of a head.
 *
 * llhttp is the parser: a head is good when llhttp takes every byte of its start line, of its field
 * names and separators and of the values that it acts on, and sees the same framing. Values that
 * say nothing to it (most of the bytes) are left out of what it is fed, between the colon and the
 * CRLF: the sweep has judged them already, and llhttp's eight instructions a byte are most of what
 * a head costs. It is fed straight from the caller's bytes, in runs.
 *
 * llhttp knows a fixed set of methods; any other token, which a proxy passes on, is replaced by
 * POST for it (RFC 9110 9.1: a method does not change how a request is framed).
 */
#include "node/http/h1_int.h"

#include <llhttp.h>
#include <string.h>

/* Fields whose values steer llhttp. */
static const uint64_t fed_values = H1_BIT(H1_CONTENT_LENGTH) | H1_BIT(H1_TRANSFER_ENCODING) |
                                   H1_BIT(H1_CONNECTION) | H1_BIT(H1_PROXY_CONNECTION) |
                                   H1_BIT(H1_UPGRADE);

static int on_complete(llhttp_t *parser)
{
    (void)parser;
    return HPE_PAUSED;
}

static const llhttp_settings_t settings = {.on_headers_complete = on_complete};

/* Everything up to the end of the head. True when it ended there. */
static bool feed(llhttp_t *parser, const struct h1_head *head, const char *bytes, size_t at)
{
    for (uint32_t i = 0; i < head->field_count; i++) {
        const struct h1_field *field = &head->fields[i];
        if ((fed_values & H1_BIT(field->id)) != 0 || field->value.len == 0) {
            continue;
        }
        size_t colon_end = (size_t)field->name.off + field->name.len + 1;
        if (llhttp_execute(parser, bytes + at, colon_end - at) != HPE_OK) {
            return false;
        }
        at = (size_t)field->value.off + field->value.len;
        while (bytes[at] != '\r') { /* trailing white space */
            at++;
        }
    }
    return llhttp_execute(parser, bytes + at, head->len - at) == HPE_PAUSED &&
           llhttp_get_error_pos(parser) == bytes + head->len;
}

int h1_confirm(struct h1_head *head, const char *bytes, size_t start, bool is_request)
{
    llhttp_t parser;
    llhttp_init(&parser, is_request ? HTTP_REQUEST : HTTP_RESPONSE, &settings);
    if (is_request && head->method_id == H1_METHOD_OTHER) {
        start += head->method.len;
        if (llhttp_execute(&parser, "POST", 4) != HPE_OK) {
            return h1_refuse(head, H1_FAULT_SYNTAX);
        }
    }
    if (!feed(&parser, head, bytes, start)) {
        return h1_refuse(head, H1_FAULT_SYNTAX);
    }
    bool is_chunked = (parser.flags & F_CHUNKED) != 0;
    bool has_length = (parser.flags & F_CONTENT_LENGTH) != 0;
    if (is_chunked != (head->framing == H1_BODY_CHUNKED) || has_length != head->length_announced ||
        (has_length && parser.content_length != head->content_length)) {
        return h1_refuse(head, H1_FAULT_SYNTAX);
    }
    return 0;
}
