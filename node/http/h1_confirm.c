/*
 * llhttp's reading of a head.
 *
 * llhttp is the parser: a head is good when llhttp takes its start line, its field names and the
 * values that it acts on, and sees the same framing. What says nothing to it is left out of what it
 * is fed, since its eight instructions a byte are most of what a head costs: the lines of names
 * that the table of known names has and that do not steer it, and between colon and CRLF the values
 * of unknown ones. The sweep has judged the bytes of both. It is fed straight from the caller's
 * bytes, in runs.
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

/* A run of the head; nothing when it is empty. */
static bool feed_run(llhttp_t *parser, const char *bytes, size_t begin, size_t end)
{
    return begin == end || llhttp_execute(parser, bytes + begin, end - begin) == HPE_OK;
}

/*
 * Everything up to the end of the head. True when llhttp saw it end there. White space around a
 * value is left out, since llhttp takes no tab behind digits, which RFC 9110 5.5 allows.
 */
static bool feed(llhttp_t *parser, const struct h1_head *head, const char *bytes, size_t at)
{
    for (uint32_t i = 0; i < head->field_count; i++) {
        const struct h1_field *field = &head->fields[i];
        bool is_last = i + 1 == head->field_count;
        size_t next = is_last ? head->len - 2 : field[1].name.off;
        bool is_fed = (fed_values & H1_BIT(field->id)) != 0;
        size_t cut = field->name.off, resume = next;
        if (is_fed && field->value.len > 0) {
            cut = (size_t)field->value.off + field->value.len;
            resume = next - 2;
        } else if (is_fed || !field->known) {
            cut += field->name.len + 1u;
            resume = next - 2;
        }
        if (cut != resume) {
            if (!feed_run(parser, bytes, at, cut)) {
                return false;
            }
            at = resume;
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
