/* unit: node_http */
/*
 * What an endpoint sends on one connection for one request: interim heads, the final head, its
 * body, and what stands behind it; read as the data plane reads it and written on as it writes it.
 *
 * However the bytes are cut, the same is understood; and llhttp at its strictest sees the written
 * response end at its last byte, with the status, fields and body that came, or sees that it was
 * cut short. The first byte of an input says what was asked: 'H' HEAD, 'U' an upgrade, '0' a GET by
 * an HTTP/1.0 client, anything else a GET.
 */
#include "node/http/h1_body.h"
#include "node/http/h1_write.h"
#include "tests/fuzz/strict.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FIELDS = 64, EVERY_CUT_BYTES = 160, CUTS = 24 };

static const struct h1_limits limits = {
    .head_bytes = 8192, .field_count = FIELDS, .target_bytes = 8192};
static const char date[] = "Sun, 06 Nov 1994 08:49:37 GMT";

enum phase { PHASE_HEAD = 0, PHASE_BODY, PHASE_TUNNEL, PHASE_DONE, PHASE_BROKEN };

struct reader {
    char asked;
    bool write;
    enum phase phase;
    size_t at;
    struct buf told;
    struct h1_scan scan;
    struct h1_head head;
    struct h1_field fields[FIELDS];
    struct h1_body body;
    struct buf trailers;
    struct buf data;
    struct buf out;
    struct buf want;
    enum h1_framing framing; /* of what is written */
};

static void reader_init(struct reader *reader, char asked, bool write)
{
    memset(reader, 0, sizeof(*reader));
    reader->asked = asked;
    reader->write = write;
    struct buf *bufs[] = {&reader->told, &reader->trailers, &reader->data, &reader->out,
                          &reader->want};
    for (size_t i = 0; i < ARRAY_LEN(bufs); i++) {
        buf_init(bufs[i], STRICT_CAP);
    }
    h1_head_init(&reader->head, reader->fields, FIELDS);
}

static void reader_deinit(struct reader *reader)
{
    struct buf *bufs[] = {&reader->told, &reader->trailers, &reader->data, &reader->out,
                          &reader->want};
    for (size_t i = 0; i < ARRAY_LEN(bufs); i++) {
        buf_deinit(bufs[i]);
    }
}

static void tell_head(struct reader *reader, const char *bytes)
{
    const struct h1_head *head = &reader->head;
    struct buf *told = &reader->told;
    (void)buf_printf(told, "head at %zu len %u status %u framing %d length %llu keep %d up %d",
                     reader->at, head->len, head->status, head->framing,
                     (unsigned long long)head->content_length, head->keep_alive, head->upgrade);
    for (uint32_t i = 0; i < head->field_count; i++) {
        const struct h1_field *field = &head->fields[i];
        (void)buf_printf(told, " %c%.*s|%.*s", field->hop ? '-' : '+', (int)field->name.len,
                         bytes + field->name.off, (int)field->value.len, bytes + field->value.off);
    }
    (void)buf_puts(told, "\n");
}

/* What the client must see of this head. */
static void expect_head(struct reader *reader, const char *bytes)
{
    const struct h1_head *head = &reader->head;
    bool has_date = head->status < 200;
    buf_reset(&reader->want);
    for (uint32_t i = 0; i < head->field_count; i++) {
        const struct h1_field *field = &head->fields[i];
        bool is_trailer = field->id == H1_TRAILER && reader->framing != H1_BODY_CHUNKED;
        has_date = has_date || field->id == H1_DATE;
        if (!field->hop && field->id != H1_CONTENT_LENGTH && !is_trailer) {
            strict_put_field(&reader->want, bytes + field->name.off, field->name.len,
                             bytes + field->value.off, field->value.len);
        }
    }
    if (!has_date) {
        strict_put_field(&reader->want, "Date", 4, date, sizeof(date) - 1);
    }
}

static void check_written(const struct reader *reader, bool is_whole)
{
    const struct h1_head *head = &reader->head;
    struct strict strict;
    strict_init(&strict);
    strict.bodiless = reader->asked == 'H' || head->status == 204 || head->status == 304;
    strict_read(&strict, HTTP_RESPONSE, reader->out.data, reader->out.len, 0);
    ASSERT(strict.sound && strict.status == head->status);
    bool until_close = reader->framing == H1_BODY_UNTIL_CLOSE;
    ASSERT(strict.is_complete == (is_whole && !until_close));
    ASSERT(strict.target.len == head->reason.len);
    ASSERT(strict_same(&strict.fields, &reader->want));
    ASSERT(strict.lengths + strict.codings <= 1);
    ASSERT(strict.codings == (reader->framing == H1_BODY_CHUNKED ? 1 : 0));
    ASSERT((head->status >= 200 && head->status != 204) || strict.lengths + strict.codings == 0);
    ASSERT(strict.connections <= 1 && (strict.upgrades > 0) == head->upgrade);
    ASSERT(strict_same(&strict.body, &reader->data));
    strict_deinit(&strict);
}

static void write_head(struct reader *reader, const char *bytes)
{
    const struct h1_head *head = &reader->head;
    bool is_interim = head->status < 200;
    struct h1_out how = {.date = date, .content_length = head->content_length};
    if (head->upgrade) {
        how.connection = H1_CONNECTION_UPGRADE;
    } else if (!is_interim) {
        bool has_body = head->framing == H1_BODY_CHUNKED || head->framing == H1_BODY_UNTIL_CLOSE;
        how.framing = !has_body              ? head->framing
                      : reader->asked == '0' ? H1_BODY_UNTIL_CLOSE
                                             : H1_BODY_CHUNKED;
        how.connection = how.framing == H1_BODY_UNTIL_CLOSE ? H1_CONNECTION_CLOSE
                         : reader->asked == '0'             ? H1_CONNECTION_KEEP_ALIVE
                                                            : H1_CONNECTION_SILENT;
    }
    reader->framing = how.framing;
    buf_reset(&reader->out);
    ASSERT(h1_write_response(&reader->out, head, bytes, &how) == 0);
    expect_head(reader, bytes);
    if (is_interim && !head->upgrade) {
        check_written(reader, true);
    }
}

static void break_off(struct reader *reader, const char *why, enum h1_fault fault)
{
    (void)buf_printf(&reader->told, "%s: %s\n", why, h1_fault_label(fault));
    if (reader->write && reader->phase == PHASE_BODY) {
        check_written(reader, false);
    }
    reader->phase = PHASE_BROKEN;
}

static void end_body(struct reader *reader)
{
    (void)buf_printf(&reader->told, "body %zu: ", reader->data.len);
    ASSERT(buf_put(&reader->told, reader->data.data, reader->data.len) == 0);
    (void)buf_puts(&reader->told, "\ntrailers: ");
    ASSERT(buf_put(&reader->told, reader->trailers.data, reader->trailers.len) == 0);
    (void)buf_printf(&reader->told, "\nup to %zu\n", reader->at);
    if (reader->write) {
        if (reader->framing == H1_BODY_CHUNKED) {
            ASSERT(h1_chunk_end(&reader->out, reader->trailers.data, reader->trailers.len) == 0);
        }
        check_written(reader, true);
    }
    reader->phase = reader->head.upgrade ? PHASE_TUNNEL : PHASE_DONE;
}

static bool take_head(struct reader *reader, const char *bytes, size_t avail)
{
    enum h1_method method = reader->asked == 'H' ? H1_HEAD : H1_GET;
    struct h1_head *head = &reader->head;
    int rc = avail == reader->at ? RC_AGAIN
                                 : h1_parse_response(&reader->scan, bytes + reader->at,
                                                     avail - reader->at, method, &limits, head);
    if (rc == RC_AGAIN) {
        return false;
    }
    if (rc != 0 || (head->status == 101 && !(head->upgrade && reader->asked == 'U'))) {
        ASSERT(rc == 0 || head->fault != H1_FAULT_NONE);
        break_off(reader, "refused head", H1_FAULT_NONE);
        return false;
    }
    reader->scan = (struct h1_scan){0};
    tell_head(reader, bytes + reader->at);
    if (reader->write) {
        write_head(reader, bytes + reader->at);
    }
    reader->at += head->len;
    if (head->status >= 200 || head->upgrade) {
        h1_body_init(&reader->body, head->framing, head->content_length, NULL, &reader->trailers);
        reader->phase = PHASE_BODY;
    }
    return true;
}

static bool take_body(struct reader *reader, const char *bytes, size_t avail)
{
    if (h1_body_done(&reader->body)) {
        end_body(reader);
        return true;
    }
    if (reader->at == avail) {
        return false;
    }
    struct h1_piece piece = {0};
    int rc = h1_body_next(&reader->body, bytes + reader->at, avail - reader->at, &piece);
    if (rc != 0) {
        break_off(reader, "broken body", reader->body.fault);
        return false;
    }
    ASSERT(piece.used > 0 && piece.used <= avail - reader->at && piece.data_len <= piece.used);
    ASSERT(piece.data_len == 0 || buf_put(&reader->data, piece.data, piece.data_len) == 0);
    if (reader->write && reader->framing == H1_BODY_CHUNKED) {
        ASSERT(h1_chunk_put(&reader->out, piece.data, piece.data_len) == 0);
    } else if (reader->write && piece.data_len > 0) {
        ASSERT(buf_put(&reader->out, piece.data, piece.data_len) == 0);
    }
    reader->at += piece.used;
    return true;
}

static void take(struct reader *reader, const char *bytes, size_t avail)
{
    bool more = true;
    while (more) {
        if (reader->phase == PHASE_HEAD) {
            more = take_head(reader, bytes, avail);
        } else if (reader->phase == PHASE_BODY) {
            more = take_body(reader, bytes, avail);
        } else {
            reader->at = reader->phase == PHASE_TUNNEL ? avail : reader->at;
            more = false;
        }
    }
}

/* The endpoint closed. */
static void finish(struct reader *reader)
{
    if (reader->phase == PHASE_BODY) {
        if (h1_body_end(&reader->body) == 0) {
            end_body(reader);
        } else {
            break_off(reader, "cut body", H1_FAULT_NONE);
        }
    }
    (void)buf_printf(&reader->told, "end in %d\n", reader->phase);
}

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
    if (size == 0) {
        return 0;
    }
    char asked = (char)data[0];
    const char *bytes = (const char *)data + 1;
    size--;
    reader_init(&whole, asked, true);
    take(&whole, bytes, size);
    finish(&whole);

    bool every = size <= EVERY_CUT_BYTES || getenv("SKEIN_EVERY_CUT") != NULL;
    size_t step = every ? 1 : size / CUTS + 1;
    for (size_t cut = every ? 1 : 1 + (size_t)data[size] % step; cut < size; cut += step) {
        reader_init(&other, asked, false);
        take_first(&other, bytes, cut);
        take(&other, bytes, size);
        compare(&whole, &other);
    }
    reader_init(&other, asked, true);
    for (size_t avail = 1; avail <= size; avail++) {
        take(&other, bytes, avail);
    }
    compare(&whole, &other);
    reader_deinit(&whole);
    return 0;
}
