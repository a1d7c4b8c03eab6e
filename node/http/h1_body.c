/*
 * Body decoder: a state machine over single bytes for chunk framing, whole runs for data.
 *
 *   state        byte                    next            remark
 *   SIZE         hex digit               SIZE            at most 16, value at most 2^60
 *                CR ; SP HT              SIZE_LF EXT SIZE_SP   only after a digit
 *   SIZE_SP      SP HT ;                 SIZE_SP EXT     "bad white space" of RFC 9112 7.1.1
 *   EXT          any but controls        EXT             counted
 *                '"'                     EXT_QUOTED
 *                CR                      SIZE_LF
 *   EXT_QUOTED   '"' '\'                 EXT EXT_ESCAPE  a CR in quotes is a fault
 *   SIZE_LF      LF                      DATA or, after size 0, TRAILER
 *   DATA         (run)                   DATA_CR
 *   DATA_CR      CR                      DATA_LF
 *   DATA_LF      LF                      SIZE
 *   TRAILER      CR                      END_LF          an empty line
 *                token byte              TRAILER_NAME    anything else is a fault, a fold too
 *   TRAILER_NAME token byte ':'          TRAILER_NAME TRAILER_VALUE
 *   TRAILER_VALUE any but controls       TRAILER_VALUE
 *                CR                      TRAILER_LF
 *   TRAILER_LF   LF                      TRAILER
 *   END_LF       LF                      DONE
 *
 * All other bytes are faults, and a fault is final.
 */
#include "node/http/h1_body.h"

#include "node/http/h1_int.h"

#include <string.h>

enum {
    STATE_SIZE = 0,
    STATE_SIZE_SP,
    STATE_EXT,
    STATE_EXT_QUOTED,
    STATE_EXT_ESCAPE,
    STATE_SIZE_LF,
    STATE_DATA,
    STATE_DATA_CR,
    STATE_DATA_LF,
    STATE_TRAILER,
    STATE_TRAILER_NAME,
    STATE_TRAILER_VALUE,
    STATE_TRAILER_LF,
    STATE_END_LF,
    STATE_DONE,
    STATE_FAULT,
};

enum {
    OVERHEAD_DEFAULT = 4096,
    TRAILER_BYTES_DEFAULT = 8192,
    TRAILER_COUNT_DEFAULT = 64,
    EXT_FREE_BYTES = 16, /* of each extension, and two for each byte of data */
    SIZE_DIGITS_MAX = 16,
};

static const uint64_t chunk_max = UINT64_C(1) << 60;

/* Trailer fields that nobody may merge into a head (RFC 9110 6.5.1). */
static const uint64_t forbidden_trailers =
    H1_BIT(H1_AUTHORIZATION) | H1_BIT(H1_CONNECTION) | H1_BIT(H1_CONTENT_ENCODING) |
    H1_BIT(H1_CONTENT_LENGTH) | H1_BIT(H1_CONTENT_TYPE) | H1_BIT(H1_COOKIE) | H1_BIT(H1_DATE) |
    H1_BIT(H1_EXPECT) | H1_BIT(H1_FORWARDED) | H1_BIT(H1_HOST) | H1_BIT(H1_HTTP2_SETTINGS) |
    H1_BIT(H1_IF_MATCH) | H1_BIT(H1_IF_NONE_MATCH) | H1_BIT(H1_KEEP_ALIVE) | H1_BIT(H1_LOCATION) |
    H1_BIT(H1_MAX_FORWARDS) | H1_BIT(H1_ORIGIN) | H1_BIT(H1_PROXY) | H1_BIT(H1_PROXY_AUTHENTICATE) |
    H1_BIT(H1_PROXY_AUTHORIZATION) | H1_BIT(H1_PROXY_CONNECTION) | H1_BIT(H1_RETRY_AFTER) |
    H1_BIT(H1_SET_COOKIE) | H1_BIT(H1_STRICT_TRANSPORT_SECURITY) | H1_BIT(H1_TE) |
    H1_BIT(H1_TRAILER) | H1_BIT(H1_TRANSFER_ENCODING) | H1_BIT(H1_UPGRADE) | H1_BIT(H1_VIA) |
    H1_BIT(H1_X_FORWARDED_FOR) | H1_BIT(H1_X_FORWARDED_HOST) | H1_BIT(H1_X_FORWARDED_PORT) |
    H1_BIT(H1_X_FORWARDED_PROTO) | H1_BIT(H1_X_REQUEST_ID);

static int fail(struct h1_body *body, enum h1_fault fault)
{
    body->state = STATE_FAULT;
    body->fault = (uint8_t)fault;
    bool is_limit = fault == H1_FAULT_BODY_TOO_BIG || fault == H1_FAULT_TRAILER_TOO_BIG;
    return is_limit ? RC_TOO_BIG : RC_INVALID;
}

/* What only chunks need. */
static void init_chunks(struct h1_body *body, const struct h1_body_limits *limits)
{
    static const struct h1_body_limits none = {0};
    limits = limits != NULL ? limits : &none;
    body->overhead_max = limits->overhead_bytes != 0 ? limits->overhead_bytes : OVERHEAD_DEFAULT;
    body->trailer_bytes_left =
        limits->trailer_bytes != 0 ? limits->trailer_bytes : TRAILER_BYTES_DEFAULT;
    body->trailers_left =
        limits->trailer_count != 0 ? limits->trailer_count : TRAILER_COUNT_DEFAULT;
    body->line_off = 0;
    body->overhead = 0;
    body->digits = 0;
}

void h1_body_init(struct h1_body *body, enum h1_framing framing, uint64_t content_length,
                  const struct h1_body_limits *limits, struct buf *trailers)
{
    body->framing = (uint8_t)framing;
    body->fault = H1_FAULT_NONE;
    body->received = 0;
    body->remaining = 0;
    body->body_max = limits != NULL ? limits->body_bytes : 0;
    body->trailers = trailers;
    switch (framing) {
    case H1_BODY_NONE:
        body->state = STATE_DONE;
        break;
    case H1_BODY_LENGTH:
        body->remaining = content_length;
        body->state = content_length > 0 ? STATE_DATA : STATE_DONE;
        if (body->body_max != 0 && content_length > body->body_max) {
            (void)fail(body, H1_FAULT_BODY_TOO_BIG); /* the first h1_body_next says so */
        }
        break;
    case H1_BODY_CHUNKED:
        init_chunks(body, limits);
        body->state = STATE_SIZE;
        break;
    case H1_BODY_UNTIL_CLOSE:
        body->remaining = UINT64_MAX;
        body->state = STATE_DATA;
        break;
    }
}

/* The end of a run of data. */
static void end_run(struct h1_body *body)
{
    if (body->remaining == 0) {
        body->state = body->framing == H1_BODY_CHUNKED ? STATE_DATA_CR : STATE_DONE;
    }
}

static int take_size(struct h1_body *body, char byte)
{
    if (h1_is_class(byte, H1_CLASS_HEX)) {
        unsigned digit = byte <= '9' ? (unsigned)byte - '0' : ((unsigned)byte | 0x20u) - 'a' + 10;
        body->remaining = body->remaining * 16 + digit;
        if (++body->digits > SIZE_DIGITS_MAX || body->remaining > chunk_max) {
            return fail(body, H1_FAULT_CHUNK_SIZE);
        }
        return 0;
    }
    if (body->digits == 0) {
        return fail(body, H1_FAULT_CHUNK_SIZE);
    }
    if (byte == '\r') {
        body->state = STATE_SIZE_LF;
    } else if (byte == ';') {
        body->state = STATE_EXT;
    } else if (byte == ' ' || byte == '\t') {
        body->state = STATE_SIZE_SP;
    } else {
        return fail(body, H1_FAULT_CHUNK_SIZE);
    }
    return 0;
}

/* Extension bytes count until the data behind them pays for them, so that neither one endless line
 * nor a large extension on each of many small chunks is free (CVE-2023-39326). */
static int count_overhead(struct h1_body *body)
{
    if (++body->overhead > body->overhead_max) {
        return fail(body, H1_FAULT_CHUNK_OVERHEAD);
    }
    return 0;
}

static int take_extension(struct h1_body *body, char byte)
{
    bool is_control = ((unsigned char)byte < 0x20 && byte != '\t') || byte == 0x7f;
    switch (body->state) {
    case STATE_SIZE_SP:
        if (byte != ' ' && byte != '\t' && byte != ';') {
            return fail(body, H1_FAULT_CHUNK_LINE);
        }
        body->state = byte == ';' ? STATE_EXT : STATE_SIZE_SP;
        break;
    case STATE_EXT:
        if (is_control && byte != '\r') {
            return fail(body, H1_FAULT_CHUNK_LINE);
        }
        body->state = byte == '\r' ? STATE_SIZE_LF : byte == '"' ? STATE_EXT_QUOTED : STATE_EXT;
        break;
    case STATE_EXT_QUOTED:
        if (is_control) {
            return fail(body, H1_FAULT_CHUNK_LINE);
        }
        body->state = byte == '"' ? STATE_EXT : byte == '\\' ? STATE_EXT_ESCAPE : STATE_EXT_QUOTED;
        break;
    default: /* STATE_EXT_ESCAPE */
        if (is_control) {
            return fail(body, H1_FAULT_CHUNK_LINE);
        }
        body->state = STATE_EXT_QUOTED;
        break;
    }
    return count_overhead(body);
}

/* The chunk line is complete. */
static int begin_chunk(struct h1_body *body, char byte)
{
    if (byte != '\n') {
        return fail(body, H1_FAULT_CHUNK_LINE);
    }
    body->digits = 0;
    uint64_t paid = EXT_FREE_BYTES + 2 * body->remaining; /* at most 2^61 and a little */
    body->overhead -= (uint32_t)MIN((uint64_t)body->overhead, paid);
    if (body->remaining == 0) {
        body->state = STATE_TRAILER;
        return 0;
    }
    uint64_t max = body->body_max;
    if (max != 0 && (body->remaining > max || body->received > max - body->remaining)) {
        return fail(body, H1_FAULT_BODY_TOO_BIG);
    }
    body->state = STATE_DATA;
    return 0;
}

/* Keep the trailer line that ended if it may be forwarded. */
static void settle_trailer(struct h1_body *body)
{
    if (body->trailers == NULL) {
        return;
    }
    const char *line = body->trailers->data + body->line_off;
    size_t len = body->trailers->len - body->line_off, name = 0;
    while (name < len && line[name] != ':') {
        name++;
    }
    if ((forbidden_trailers & H1_BIT(h1_name_id(line, name))) != 0) {
        body->trailers->len = body->line_off;
        body->trailers->data[body->line_off] = '\0';
    }
    body->line_off = (uint32_t)body->trailers->len; /* within the cap */
}

static int take_trailer(struct h1_body *body, char byte)
{
    bool is_token = h1_is_class(byte, H1_CLASS_TOKEN);
    bool is_ok = true;
    switch (body->state) {
    case STATE_TRAILER:
        if (byte == '\r') {
            body->state = STATE_END_LF;
            return 0;
        }
        is_ok = is_token;
        body->state = STATE_TRAILER_NAME;
        if (body->trailers_left-- == 0) {
            return fail(body, H1_FAULT_TRAILER_TOO_BIG);
        }
        if (body->trailers != NULL) {
            body->line_off = (uint32_t)body->trailers->len; /* within the cap */
        }
        break;
    case STATE_TRAILER_NAME:
        is_ok = is_token || byte == ':';
        body->state = byte == ':' ? STATE_TRAILER_VALUE : STATE_TRAILER_NAME;
        break;
    case STATE_TRAILER_VALUE:
        is_ok = ((unsigned char)byte >= 0x20 && byte != 0x7f) || byte == '\t' || byte == '\r';
        body->state = byte == '\r' ? STATE_TRAILER_LF : STATE_TRAILER_VALUE;
        break;
    default: /* STATE_TRAILER_LF */
        is_ok = byte == '\n';
        body->state = STATE_TRAILER;
        break;
    }
    if (!is_ok) {
        return fail(body, H1_FAULT_TRAILER);
    }
    if (body->trailer_bytes_left-- == 0 ||
        (body->trailers != NULL && buf_putc(body->trailers, byte) != 0)) {
        return fail(body, H1_FAULT_TRAILER_TOO_BIG);
    }
    if (body->state == STATE_TRAILER) {
        settle_trailer(body);
    }
    return 0;
}

/* One byte that is not data. */
static int take_byte(struct h1_body *body, char byte)
{
    switch (body->state) {
    case STATE_SIZE:
        return take_size(body, byte);
    case STATE_SIZE_SP:
    case STATE_EXT:
    case STATE_EXT_QUOTED:
    case STATE_EXT_ESCAPE:
        return take_extension(body, byte);
    case STATE_SIZE_LF:
        return begin_chunk(body, byte);
    case STATE_DATA_CR:
        body->state = STATE_DATA_LF;
        return byte == '\r' ? 0 : fail(body, H1_FAULT_CHUNK_DATA);
    case STATE_DATA_LF:
        body->state = STATE_SIZE;
        return byte == '\n' ? 0 : fail(body, H1_FAULT_CHUNK_DATA);
    case STATE_END_LF:
        body->state = STATE_DONE;
        return byte == '\n' ? 0 : fail(body, H1_FAULT_TRAILER);
    default:
        return take_trailer(body, byte);
    }
}

static __attribute__((noinline)) int next_piece(struct h1_body *body, const char *bytes, size_t len,
                                                struct h1_piece *ret_piece)
{
    struct h1_piece piece = {0};
    if (body->state == STATE_FAULT) {
        return fail(body, body->fault);
    }
    while (piece.used < len && body->state != STATE_DONE && body->state != STATE_DATA) {
        int rc = take_byte(body, bytes[piece.used]);
        if (rc != 0) {
            return rc;
        }
        piece.used++;
    }
    if (body->state == STATE_DATA && piece.used < len) {
        piece.data = bytes + piece.used;
        piece.data_len = (size_t)MIN(body->remaining, (uint64_t)(len - piece.used));
        piece.used += piece.data_len;
        h1_body_skip(body, piece.data_len);
    }
    uint64_t max = body->body_max;
    if (body->framing == H1_BODY_UNTIL_CLOSE && max != 0 && body->received > max) {
        return fail(body, H1_FAULT_BODY_TOO_BIG);
    }
    /* What only closes the chunk comes along, so that one call takes a whole chunk. */
    while (piece.used < len && (body->state == STATE_DATA_CR || body->state == STATE_DATA_LF)) {
        int rc = take_byte(body, bytes[piece.used]);
        if (rc != 0) {
            return rc;
        }
        piece.used++;
    }
    *ret_piece = piece;
    return 0;
}

int h1_body_next(struct h1_body *body, const char *bytes, size_t len, struct h1_piece *ret_piece)
{
    if (UNLIKELY(body->framing != H1_BODY_LENGTH || body->state != STATE_DATA || len == 0)) {
        return next_piece(body, bytes, len, ret_piece);
    }
    size_t data_len = (size_t)MIN(body->remaining, (uint64_t)len);
    *ret_piece = (struct h1_piece){.used = data_len, .data = bytes, .data_len = data_len};
    h1_body_skip(body, data_len);
    return 0;
}

void h1_body_skip(struct h1_body *body, uint64_t len)
{
    body->received += len;
    if (body->framing != H1_BODY_UNTIL_CLOSE) {
        body->remaining -= len;
        end_run(body);
    }
}

int h1_body_end(struct h1_body *body)
{
    if (body->state == STATE_DATA && body->framing == H1_BODY_UNTIL_CLOSE) {
        body->state = STATE_DONE;
    }
    return body->state == STATE_DONE ? 0 : RC_CLOSED;
}

bool h1_body_done(const struct h1_body *body)
{
    return body->state == STATE_DONE;
}

uint64_t h1_body_run(const struct h1_body *body)
{
    return body->state == STATE_DATA ? body->remaining : 0;
}

size_t h1_chunk_head(char out[H1_CHUNK_HEAD_MAX], uint64_t size)
{
    static const char digits[] = "0123456789abcdef";
    size_t len = 1;
    for (uint64_t rest = size >> 4; rest != 0; rest >>= 4) {
        len++;
    }
    for (size_t i = len; i > 0; i--) {
        out[i - 1] = digits[size & 15];
        size >>= 4;
    }
    out[len] = '\r';
    out[len + 1] = '\n';
    return len + 2;
}

int h1_chunk_put(struct buf *out, const char *data, size_t len)
{
    if (len == 0) {
        return 0;
    }
    char head[H1_CHUNK_HEAD_MAX];
    size_t head_len = h1_chunk_head(head, len);
    char *room = buf_reserve(out, head_len + len + 2);
    if (room == NULL) {
        return RC_FULL;
    }
    memcpy(room, head, head_len);
    memcpy(room + head_len, data, len);
    memcpy(room + head_len + len, "\r\n", 2);
    buf_grow(out, head_len + len + 2);
    return 0;
}

int h1_chunk_end(struct buf *out, const char *trailers, size_t len)
{
    char *room = buf_reserve(out, len + 5);
    if (room == NULL) {
        return RC_FULL;
    }
    memcpy(room, "0\r\n", 3);
    if (len > 0) {
        memcpy(room + 3, trailers, len);
    }
    memcpy(room + 3 + len, "\r\n", 2);
    buf_grow(out, len + 5);
    return 0;
}
