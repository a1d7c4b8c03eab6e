/*
 * Outgoing heads: one reservation of an upper bound, then a cursor.
 *
 * Whatever the incoming head said about framing is dropped and said anew from how->framing, so the
 * two can never both go out, and never differ from what follows.
 */
#include "node/http/h1_write.h"

#include "node/base/check.h"
#include "node/http/forwarded_int.h"
#include "node/http/h1_int.h"
#include "node/http/status.h"

#include <string.h>

enum {
    FIXED_ROOM = 256, /* versions, framing, Connection, TE, Date, line ends */
    DECIMAL_MAX = 20, /* digits of a 64-bit number */
};

static const uint64_t framing_names = H1_BIT(H1_CONTENT_LENGTH) | H1_BIT(H1_TRANSFER_ENCODING);

static char *put_decimal(char *at, uint64_t number)
{
    static const char pairs[] = "00010203040506070809101112131415161718192021222324"
                                "25262728293031323334353637383940414243444546474849"
                                "50515253545556575859606162636465666768697071727374"
                                "75767778798081828384858687888990919293949596979899";
    char digits[DECIMAL_MAX], *begin = digits + sizeof(digits);
    for (; number >= 100; number /= 100) {
        begin -= 2;
        memcpy(begin, pairs + number % 100 * 2, 2);
    }
    begin -= 2;
    memcpy(begin, pairs + number * 2, 2);
    begin += number < 10;
    return h1_put(at, begin, (size_t)(digits + sizeof(digits) - begin));
}

static char *put_content_length(char *at, uint64_t length)
{
    at = H1_PUT_TEXT(at, "Content-Length: ");
    at = put_decimal(at, length);
    return H1_PUT_TEXT(at, "\r\n");
}

/* Field lines that stay, in runs: lines are neighbours in the bytes they were parsed from. */
static inline __attribute__((always_inline)) char *put_fields(char *at, const struct h1_head *head,
                                                              const char *bytes, uint64_t drop)
{
    const struct h1_field *field = head->fields, *end = field + head->field_count;
    size_t fields_end = head->len - 2u;
    size_t begin = field < end ? field->name.off : fields_end;
    for (; field < end; field++) {
        uint16_t out_flags; /* hop and drop */
        memcpy(&out_flags, &field->hop, sizeof(out_flags));
        bool is_out = out_flags != 0 || (drop >> field->id & 1) != 0;
        if (UNLIKELY(is_out)) {
            at = h1_put(at, bytes + begin, field->name.off - begin);
            begin = field + 1 < end ? field[1].name.off : fields_end;
        }
    }
    return h1_put(at, bytes + begin, fields_end - begin);
}

/* The Upgrade fields, which put_fields left out as hop-by-hop. */
static char *put_upgrade(char *at, const struct h1_head *head, const char *bytes)
{
    const struct h1_field *field = h1_find(head, H1_UPGRADE);
    for (; field != NULL; field = h1_find_next(head, field)) {
        at = H1_PUT_TEXT(at, "Upgrade: ");
        at = h1_put(at, bytes + field->value.off, field->value.len);
        at = H1_PUT_TEXT(at, "\r\n");
    }
    return at;
}

static __attribute__((noinline)) char *say_connection(char *at, const struct h1_head *head,
                                                      const char *bytes, const struct h1_out *how)
{
    switch (how->connection) {
    case H1_CONNECTION_SILENT:
        return how->te_trailers ? H1_PUT_TEXT(at, "Connection: TE\r\nTE: trailers\r\n") : at;
    case H1_CONNECTION_CLOSE:
        at = H1_PUT_TEXT(at, "Connection: close\r\n");
        break;
    case H1_CONNECTION_KEEP_ALIVE:
        at = H1_PUT_TEXT(at, "Connection: keep-alive\r\n");
        break;
    case H1_CONNECTION_UPGRADE:
        at = H1_PUT_TEXT(at, "Connection: upgrade\r\n");
        at = put_upgrade(at, head, bytes);
        break;
    }
    return at;
}

static inline char *put_connection(char *at, const struct h1_head *head, const char *bytes,
                                   const struct h1_out *how)
{
    bool is_silent = how->connection == H1_CONNECTION_SILENT && !how->te_trailers;
    return LIKELY(is_silent) ? at : say_connection(at, head, bytes, how);
}

/* The set of names that go, for both directions. Bit 0 would be every unknown name. */
static uint64_t dropped_names(const struct h1_out *how)
{
    uint64_t drop = (how->drop & ~H1_BIT(H1_OTHER)) | framing_names;
    return how->framing == H1_BODY_CHUNKED ? drop : drop | H1_BIT(H1_TRAILER);
}

static char *put_request_line(char *at, const struct h1_head *head, const char *bytes,
                              const struct h1_out *how)
{
    at = h1_put(at, bytes + head->method.off, head->method.len);
    at = H1_PUT_TEXT(at, " ");
    if (how->target != NULL) {
        at = h1_put(at, how->target, how->target_len);
    } else if (head->form != H1_FORM_ABSOLUTE) {
        at = h1_put(at, bytes + head->target.off, head->target.len);
    } else if (head->path.len == 0 && !head->has_query) {
        /* RFC 9112 3.2.4 */
        at = head->method_id == H1_OPTIONS ? H1_PUT_TEXT(at, "*") : H1_PUT_TEXT(at, "/");
    } else {
        /* To an origin server the target goes in origin form (RFC 9112 3.2.1). */
        at = head->path.len == 0 ? H1_PUT_TEXT(at, "/") : at;
        size_t begin = head->path.off;
        size_t end = (size_t)head->query.off + head->query.len;
        at = h1_put(at, bytes + begin, end - begin);
    }
    return H1_PUT_TEXT(at, " HTTP/1.1\r\n");
}

int h1_write_request(struct buf *out, const struct h1_head *head, const char *bytes,
                     const struct h1_out *how)
{
    ASSERT(how->framing != H1_BODY_UNTIL_CLOSE);
    bool has_host = (head->present & H1_BIT(H1_HOST)) != 0;
    if (head->host.len == 0 || head->form == H1_FORM_AUTHORITY) {
        return RC_INVALID;
    }
    size_t fwd = how->peer != NULL ? fwd_room(how->peer, head) : 0;
    char *room = buf_reserve(out, FIXED_ROOM + (size_t)head->len + how->target_len +
                                      how->extra_len + head->host.len + fwd);
    if (room == NULL) {
        return RC_FULL;
    }
    uint64_t drop = dropped_names(how);
    char *at = put_request_line(room, head, bytes, how);
    if (!has_host) {
        at = H1_PUT_TEXT(at, "Host: ");
        at = h1_put(at, bytes + head->host.off, head->host.len);
        at = H1_PUT_TEXT(at, "\r\n");
    }
    drop &= ~H1_BIT(H1_HOST);
    if (how->peer != NULL) {
        drop |= fwd_drop(how->policy);
    }
    at = put_fields(at, head, bytes, drop);
    if (how->peer != NULL) {
        at = fwd_write(at, how->peer, how->policy, head, bytes);
    }
    if (how->framing == H1_BODY_LENGTH) {
        at = put_content_length(at, how->content_length);
    } else if (how->framing == H1_BODY_CHUNKED) {
        at = H1_PUT_TEXT(at, "Transfer-Encoding: chunked\r\n");
    }
    at = put_connection(at, head, bytes, how);
    at = how->extra_len > 0 ? h1_put(at, how->extra, how->extra_len) : at;
    at = H1_PUT_TEXT(at, "\r\n");
    buf_grow(out, (size_t)(at - room));
    return 0;
}

int h1_write_response(struct buf *out, const struct h1_head *head, const char *bytes,
                      const struct h1_out *how)
{
    char *room = buf_reserve(out, FIXED_ROOM + (size_t)head->len + how->extra_len);
    if (room == NULL) {
        return RC_FULL;
    }
    char *at = H1_PUT_TEXT(room, "HTTP/1.1 ");
    uint32_t status = head->status, tens = status / 10;
    at[0] = (char)('0' + tens / 10);
    at[1] = (char)('0' + tens % 10);
    at[2] = (char)('0' + status % 10);
    at[3] = ' ';
    at += 4;
    at = h1_put(at, bytes + head->reason.off, head->reason.len);
    at = H1_PUT_TEXT(at, "\r\n");
    at = put_fields(at, head, bytes, dropped_names(how));
    bool is_interim = head->status < 200;
    bool has_date = (head->present & ~how->drop & H1_BIT(H1_DATE)) != 0;
    if (how->date != NULL && !has_date && !is_interim) {
        at = H1_PUT_TEXT(at, "Date: ");
        at = h1_put(at, how->date, HTTP_DATE_LEN);
        at = H1_PUT_TEXT(at, "\r\n");
    }
    if (is_interim || head->status == 204) {
        /* RFC 9110 8.6, RFC 9112 6.1: no framing field may stand here */
    } else if (how->framing == H1_BODY_LENGTH) {
        at = put_content_length(at, how->content_length);
    } else if (how->framing == H1_BODY_CHUNKED) {
        at = H1_PUT_TEXT(at, "Transfer-Encoding: chunked\r\n");
    } else if (how->framing == H1_BODY_NONE && head->length_announced) {
        at = put_content_length(at, head->content_length);
    }
    at = put_connection(at, head, bytes, how);
    at = how->extra_len > 0 ? h1_put(at, how->extra, how->extra_len) : at;
    at = H1_PUT_TEXT(at, "\r\n");
    buf_grow(out, (size_t)(at - room));
    return 0;
}

void h1_put_status(struct buf *out, int status)
{
    (void)buf_printf(out, "HTTP/1.1 %d %s\r\n", status, status_reason(status));
}

int h1_put_field(struct buf *out, const char *name, const char *value)
{
    size_t name_len = strlen(name), value_len = strlen(value);
    if (!h1_is_token(name, name_len) || !h1_is_field_value(value, value_len)) {
        return RC_INVALID;
    }
    char *room = buf_reserve(out, name_len + value_len + 4);
    if (room == NULL) {
        return RC_FULL;
    }
    char *at = h1_put(room, name, name_len);
    at = H1_PUT_TEXT(at, ": ");
    at = h1_put(at, value, value_len);
    at = H1_PUT_TEXT(at, "\r\n");
    buf_grow(out, (size_t)(at - room));
    return 0;
}

void h1_put_length(struct buf *out, uint64_t content_length)
{
    char *room = buf_reserve(out, DECIMAL_MAX + sizeof("Content-Length: \r\n"));
    if (room != NULL) {
        buf_grow(out, (size_t)(put_content_length(room, content_length) - room));
    }
}

void h1_put_end(struct buf *out)
{
    (void)buf_put(out, "\r\n", 2); /* shows in out->full */
}
