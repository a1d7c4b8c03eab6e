/* unit: node_proxy */
/*
 * Sticky cookies: whatever stands in the Cookie fields of a request, ours is not in what goes to
 * the endpoint, all others are, in their order and to the byte, and the head still has one reading.
 */
#include "node/base/mem.h"
#include "node/http/h1_write.h"
#include "node/proxy/affinity.h"
#include "node/proxy/rules.h"
#include "node/proxy/worker.h"
#include "tests/fuzz/strict.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FIELDS = 64, DATA_MAX = 12000 };

static const char ours[] = "ROUTE";
static const struct h1_limits limits = {
    .head_bytes = 65535, .field_count = FIELDS, .target_bytes = 2048};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* The pairs of one field's value but ours, each with a line end behind it. True: ours was there. */
static bool put_others(struct buf *out, const char *text, size_t len)
{
    bool found = false;
    size_t begin = 0;
    for (size_t i = 0; i <= len; i++) {
        if (i < len && text[i] != ';') {
            continue;
        }
        size_t a = begin, b = i, name = sizeof(ours) - 1;
        while (a < b && is_blank(text[a])) {
            a++;
        }
        while (b > a && is_blank(text[b - 1])) {
            b--;
        }
        if (b - a > name && memcmp(text + a, ours, name) == 0 && text[a + name] == '=') {
            found = true;
        } else if (a < b) {
            ASSERT(buf_put(out, text + a, b - a) == 0 && buf_putc(out, '\n') == 0);
        }
        begin = i + 1;
    }
    return found;
}

/* The same of all Cookie lines of "name:value\n" text. */
static void others_of(struct buf *out, const struct buf *fields)
{
    size_t at = 0;
    while (at < fields->len) {
        const char *line = fields->data + at;
        const char *end = memchr(line, '\n', fields->len - at);
        size_t len = (size_t)(end - line);
        if (len > 7 && strncasecmp(line, "cookie:", 7) == 0) {
            ASSERT(!put_others(out, line + 7, len - 7)); /* ours is gone */
        }
        at += len + 1;
    }
}

static void check(const struct buf *raw, struct h1_head *head)
{
    static struct worker worker;
    static struct exchange exchange;
    static struct sticky sticky = {.attributes = NULL};
    static struct rule rule;
    sticky.cookie = unconst(ours);
    sticky.cookie_len = sizeof(ours) - 1;
    rule.sticky = &sticky;
    exchange.worker = &worker;
    exchange.rule = &rule;
    buf_init(&worker.lines, 65536);
    struct buf want, got, out;
    struct buf *bufs[] = {&want, &got, &out};
    for (size_t i = 0; i < ARRAY_LEN(bufs); i++) {
        buf_init(bufs[i], STRICT_CAP);
    }
    /* Lines without ours stay where they are; what is left of the others comes behind them. */
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < head->field_count; i++) {
            const struct h1_field *field = &head->fields[i];
            size_t before = want.len;
            if (field->id == H1_COOKIE &&
                put_others(&want, raw->data + field->value.off, field->value.len) != (pass == 1)) {
                want.len = before;
            }
        }
    }
    struct h1_out how = {.framing = head->framing, .content_length = head->content_length};
    const struct exchange_request request = {.head = head, .bytes = raw->data};
    affinity_hide_cookie(&exchange, &request, &how);
    ASSERT(h1_write_request(&out, head, raw->data, &how) == 0);
    struct strict strict;
    strict_init(&strict);
    strict_read(&strict, HTTP_REQUEST, out.data, out.len, 0);
    ASSERT(strict.sound && strict.hosts == 1);
    others_of(&got, &strict.fields);
    ASSERT(strict_same(&want, &got));
    strict_deinit(&strict);
    for (size_t i = 0; i < ARRAY_LEN(bufs); i++) {
        buf_deinit(bufs[i]);
    }
    buf_deinit(&worker.lines);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct h1_field fields[FIELDS];
    struct h1_head head;
    struct h1_scan scan = {0};
    struct buf raw;
    if (size > DATA_MAX) {
        return 0;
    }
    /* Each line of the input is a Cookie field. */
    buf_init(&raw, 65536);
    (void)buf_puts(&raw, "GET / HTTP/1.1\r\nHost: a.test\r\nCookie: ");
    for (size_t i = 0; i < size; i++) {
        if (data[i] == '\n') {
            (void)buf_puts(&raw, "\r\nCookie: ");
        } else {
            (void)buf_putc(&raw, (char)data[i]);
        }
    }
    (void)buf_puts(&raw, "\r\n\r\n");
    h1_head_init(&head, fields, FIELDS);
    if (!raw.full && h1_parse_request(&scan, raw.data, raw.len, &limits, &head) == 0) {
        check(&raw, &head);
    }
    buf_deinit(&raw);
    return 0;
}
