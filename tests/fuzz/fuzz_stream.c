/* unit: node_http */
/*
 * Whole client connections: requests one behind the other, read as the data plane reads them and
 * written on as it writes them.
 *
 * However the bytes are cut (in two at every place, byte by byte), the same is understood. And what
 * is written has one reading: llhttp at its strictest sees each message end at its last byte, with
 * the target, host, framing, body and end-to-end fields that came in. SKEIN_EVERY_CUT in the
 * environment cuts long inputs at every place, too.
 */
#include "node/http/h1_body.h"
#include "node/http/h1_write.h"
#include "tests/fuzz/strict.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FIELDS = 64, EVERY_CUT_BYTES = 160, CUTS = 24, BODY_BYTES = 1 << 20 };

static const struct h1_limits limits = {
    .head_bytes = 8192, .field_count = FIELDS, .target_bytes = 2048};
static const struct h1_body_limits body_limits = {.body_bytes = BODY_BYTES};

enum phase { PHASE_HEAD = 0, PHASE_BODY, PHASE_TUNNEL, PHASE_OVER };

struct reader {
    enum phase phase;
    size_t at;       /* consumed */
    struct buf told; /* what was understood */
    struct h1_scan scan;
    struct h1_head head;
    struct h1_field fields[FIELDS];
    struct h1_body body;
    struct buf trailers;
    struct buf data; /* of the body in progress, decoded */

    bool write; /* also write and check what a recipient makes of it */
    struct buf out;
    struct buf want; /* fields that the recipient must see */
    struct buf want_target;
};

static void reader_init(struct reader *reader, bool write)
{
    memset(reader, 0, sizeof(*reader));
    reader->write = write;
    struct buf *bufs[] = {&reader->told, &reader->trailers, &reader->data,
                          &reader->out,  &reader->want,     &reader->want_target};
    for (size_t i = 0; i < ARRAY_LEN(bufs); i++) {
        buf_init(bufs[i], STRICT_CAP);
    }
    h1_head_init(&reader->head, reader->fields, FIELDS);
}

static void reader_deinit(struct reader *reader)
{
    struct buf *bufs[] = {&reader->told, &reader->trailers, &reader->data,
                          &reader->out,  &reader->want,     &reader->want_target};
    for (size_t i = 0; i < ARRAY_LEN(bufs); i++) {
        buf_deinit(bufs[i]);
    }
}

static void tell_span(struct buf *told, const char *bytes, struct h1_span span)
{
    (void)buf_printf(told, " %.*s", (int)span.len, bytes + span.off);
}

static void tell_head(struct reader *reader, const char *bytes)
{
    const struct h1_head *head = &reader->head;
    struct buf *told = &reader->told;
    (void)buf_printf(told, "head at %zu len %u form %d minor %d framing %d length %llu", reader->at,
                     head->len, head->form, head->minor, head->framing,
                     (unsigned long long)head->content_length);
    (void)buf_printf(told, " keep %d upgrade %d expect %d%d te %d host %s", head->keep_alive,
                     head->upgrade, head->expect_continue, head->expect_other, head->te_trailers,
                     head->host_name);
    tell_span(told, bytes, head->method);
    tell_span(told, bytes, head->path);
    tell_span(told, bytes, head->query);
    for (uint32_t i = 0; i < head->field_count; i++) {
        (void)buf_printf(told, "%s", head->fields[i].hop ? " -" : " +");
        tell_span(told, bytes, head->fields[i].name);
        tell_span(told, bytes, head->fields[i].value);
    }
    (void)buf_puts(told, "\n");
}

/* What the recipient must see of this head. */
static void expect_head(struct reader *reader, const char *bytes)
{
    const struct h1_head *head = &reader->head;
    buf_reset(&reader->want);
    buf_reset(&reader->want_target);
    if ((head->present & H1_BIT(H1_HOST)) == 0) {
        strict_put_field(&reader->want, "Host", 4, bytes + head->host.off, head->host.len);
    }
    for (uint32_t i = 0; i < head->field_count; i++) {
        const struct h1_field *field = &head->fields[i];
        bool is_trailer = field->id == H1_TRAILER && head->framing != H1_BODY_CHUNKED;
        if (!field->hop && field->id != H1_CONTENT_LENGTH && !is_trailer) {
            strict_put_field(&reader->want, bytes + field->name.off, field->name.len,
                             bytes + field->value.off, field->value.len);
        }
    }
    struct buf *target = &reader->want_target;
    bool is_star = head->form == H1_FORM_ASTERISK ||
                   (head->method_id == H1_OPTIONS && head->path.len == 0 && !head->has_query);
    if (is_star) {
        ASSERT(buf_putc(target, '*') == 0);
    } else if (head->path.len == 0) {
        ASSERT(buf_putc(target, '/') == 0);
    } else {
        ASSERT(buf_put(target, bytes + head->path.off, head->path.len) == 0);
    }
    if (head->has_query) {
        ASSERT(buf_putc(target, '?') == 0);
        ASSERT(buf_put(target, bytes + head->query.off, head->query.len) == 0);
    }
}

static void write_head(struct reader *reader, const char *bytes)
{
    const struct h1_head *head = &reader->head;
    const struct h1_out how = {
        .framing = head->framing,
        .content_length = head->content_length,
        .connection = head->upgrade ? H1_CONNECTION_UPGRADE : H1_CONNECTION_SILENT,
        .te_trailers = head->te_trailers,
    };
    buf_reset(&reader->out);
    int rc = h1_write_request(&reader->out, head, bytes, &how);
    bool is_possible = head->host.len != 0 && head->method_id != H1_CONNECT;
    ASSERT(rc == (is_possible ? 0 : RC_INVALID));
    if (!is_possible) {
        reader->phase = PHASE_OVER;
        return;
    }
    expect_head(reader, bytes);
}

/* The message went out, or as much of it as there will be. */
static void check_written(const struct reader *reader, bool is_whole)
{
    const struct h1_head *head = &reader->head;
    struct strict strict;
    strict_init(&strict);
    size_t method_len = head->method_id == H1_METHOD_OTHER ? head->method.len : 0;
    strict_read(&strict, HTTP_REQUEST, reader->out.data, reader->out.len, method_len);
    ASSERT(strict.sound);
    ASSERT(strict.is_complete == is_whole);
    ASSERT(strict_same(&strict.target, &reader->want_target));
    ASSERT(strict_same(&strict.fields, &reader->want));
    ASSERT(strict.hosts == 1);
    ASSERT(strict.lengths == (head->framing == H1_BODY_LENGTH ? 1 : 0));
    ASSERT(strict.codings == (head->framing == H1_BODY_CHUNKED ? 1 : 0));
    ASSERT(strict.connections == (head->upgrade || head->te_trailers ? 1 : 0));
    ASSERT((strict.upgrades > 0) == head->upgrade);
    ASSERT(strict.tes <= 1);
    ASSERT(strict_same(&strict.body, &reader->data));
    strict_deinit(&strict);
}

static void end_body(struct reader *reader)
{
    ASSERT(reader->body.received == reader->data.len);
    (void)buf_printf(&reader->told, "body %zu: ", reader->data.len);
    ASSERT(buf_put(&reader->told, reader->data.data, reader->data.len) == 0);
    (void)buf_puts(&reader->told, "\ntrailers: ");
    ASSERT(buf_put(&reader->told, reader->trailers.data, reader->trailers.len) == 0);
    (void)buf_printf(&reader->told, "\nup to %zu\n", reader->at);
    if (reader->write) {
        if (reader->head.framing == H1_BODY_CHUNKED) {
            ASSERT(h1_chunk_end(&reader->out, reader->trailers.data, reader->trailers.len) == 0);
        }
        check_written(reader, true);
    }
    reader->phase = reader->head.upgrade      ? PHASE_TUNNEL
                    : reader->head.keep_alive ? PHASE_HEAD
                                              : PHASE_OVER;
    reader->scan = (struct h1_scan){0};
}

static bool take_head(struct reader *reader, const char *bytes, size_t avail)
{
    int rc = avail == reader->at ? RC_AGAIN
                                 : h1_parse_request(&reader->scan, bytes + reader->at,
                                                    avail - reader->at, &limits, &reader->head);
    if (rc == RC_AGAIN) {
        return false;
    }
    if (rc != 0) {
        /* Of two faults in one head, the cut decides which is met first. */
        ASSERT(reader->head.fault != H1_FAULT_NONE);
        (void)buf_printf(&reader->told, "refused head at %zu\n", reader->at);
        reader->phase = PHASE_OVER;
        return false;
    }
    const char *start = bytes + reader->at;
    tell_head(reader, start);
    reader->phase = PHASE_BODY;
    buf_reset(&reader->data);
    buf_reset(&reader->trailers);
    h1_body_init(&reader->body, reader->head.framing, reader->head.content_length, &body_limits,
                 &reader->trailers);
    if (reader->write) {
        write_head(reader, start);
    }
    if (reader->head.method_id == H1_CONNECT || reader->head.host.len == 0) {
        reader->phase = PHASE_OVER;
    }
    reader->at += reader->head.len;
    return reader->phase == PHASE_BODY;
}

static bool take_body(struct reader *reader, const char *bytes, size_t avail)
{
    if (h1_body_done(&reader->body)) {
        end_body(reader);
        return reader->phase != PHASE_OVER;
    }
    if (reader->at == avail) {
        return false;
    }
    struct h1_piece piece = {0};
    int rc = h1_body_next(&reader->body, bytes + reader->at, avail - reader->at, &piece);
    if (rc != 0) {
        ASSERT(reader->body.fault != H1_FAULT_NONE);
        (void)buf_printf(&reader->told, "broken body: %s\n", h1_fault_label(reader->body.fault));
        reader->phase = PHASE_OVER;
        return false;
    }
    ASSERT(piece.used > 0 && piece.used <= avail - reader->at && piece.data_len <= piece.used);
    ASSERT(piece.data_len == 0 || buf_put(&reader->data, piece.data, piece.data_len) == 0);
    if (reader->write && reader->head.framing == H1_BODY_CHUNKED) {
        ASSERT(h1_chunk_put(&reader->out, piece.data, piece.data_len) == 0);
    } else if (reader->write && piece.data_len > 0) {
        ASSERT(buf_put(&reader->out, piece.data, piece.data_len) == 0);
    }
    reader->at += piece.used;
    return true;
}

/* As far as bytes[0..avail) go. */
static void take(struct reader *reader, const char *bytes, size_t avail)
{
    bool more = true;
    while (more) {
        switch (reader->phase) {
        case PHASE_HEAD:
            more = take_head(reader, bytes, avail);
            break;
        case PHASE_BODY:
            more = take_body(reader, bytes, avail);
            break;
        case PHASE_TUNNEL:
            reader->at = avail;
            more = false;
            break;
        case PHASE_OVER:
            more = false;
            break;
        }
    }
}

/* Nothing more comes. */
static void finish(struct reader *reader)
{
    (void)buf_printf(&reader->told, "end in %d\n", reader->phase);
    if (reader->phase == PHASE_BODY && reader->write) {
        check_written(reader, false);
    }
}

/* The first `cut` bytes in a block of their own, so that a sanitizer sees a read too far. */
static void take_first(struct reader *reader, const char *bytes, size_t cut)
{
    char *exact = malloc(cut > 0 ? cut : 1);
    memcpy(exact, bytes, cut);
    take(reader, exact, cut);
    free(exact);
}

static void compare(const struct reader *whole, struct reader *other)
{
    finish(other);
    ASSERT(strict_same(&whole->told, &other->told));
    reader_deinit(other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct reader whole, other;
    const char *bytes = (const char *)data;
    reader_init(&whole, true);
    take(&whole, bytes, size);
    finish(&whole);

    bool every = size <= EVERY_CUT_BYTES || getenv("SKEIN_EVERY_CUT") != NULL;
    size_t step = every ? 1 : size / CUTS + 1;
    for (size_t cut = every ? 1 : 1 + (size_t)data[size - 1] % step; cut < size; cut += step) {
        reader_init(&other, false);
        take_first(&other, bytes, cut);
        take(&other, bytes, size);
        compare(&whole, &other);
    }
    reader_init(&other, true);
    for (size_t avail = 1; avail <= size; avail++) {
        take(&other, bytes, avail);
    }
    compare(&whole, &other);
    reader_deinit(&whole);
    return 0;
}
