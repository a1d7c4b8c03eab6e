/*
 * Parsing heads in all the ways that they can arrive, for the tests of this folder.
 *
 * Bytes are always copied into a block of their exact size, so that a sanitizer sees a read too
 * far.
 */
#ifndef SKEIN_TESTS_UNIT_NODE_HTTP_HEADS_H
#define SKEIN_TESTS_UNIT_NODE_HTTP_HEADS_H

#include "tests/support/unit.h"

#include "node/base/buf.h"
#include "node/http/h1_head.h"
#include "tests/support/h1_oracle.h"

static const struct h1_limits heads_limits = {
    .head_bytes = 4096, .field_count = 32, .target_bytes = 1024};

struct heads_parse {
    int rc;
    enum h1_fault fault;
    char text[8192]; /* what was understood, for comparison */
};

static void heads_add(struct buf *out, const char *label, const char *bytes, struct h1_span span)
{
    if (span.len > 0) {
        (void)buf_printf(out, " %s=%.*s", label, (int)span.len, bytes + span.off);
    }
}

static const char *heads_framing(const struct h1_head *head, char out[64])
{
    static const char *const names[] = {"none", "length", "chunked", "close"};
    if (head->framing == H1_BODY_LENGTH) {
        (void)snprintf(out, 64, "length:%llu", (unsigned long long)head->content_length);
    } else {
        (void)snprintf(out, 64, "%s", names[head->framing]);
    }
    return out;
}

/* One line: every property that is not at its default, then the fields. */
UNUSED static void heads_describe(const struct h1_head *head, const char *bytes, char *text,
                                  size_t size)
{
    struct buf out;
    char framing[64];
    buf_init(&out, size - 1);
    (void)buf_printf(&out, "len=%u 1.%u %s", head->len, head->minor, heads_framing(head, framing));
    heads_add(&out, "method", bytes, head->method);
    heads_add(&out, "target", bytes, head->target);
    heads_add(&out, "path", bytes, head->path);
    if (head->has_query) {
        (void)buf_printf(&out, " query=%.*s", (int)head->query.len, bytes + head->query.off);
    }
    heads_add(&out, "authority", bytes, head->authority);
    if (head->host_name_len > 0) {
        (void)buf_printf(&out, " host=%s", head->host_name);
    }
    if (head->status != 0) {
        (void)buf_printf(&out, " status=%u", head->status);
    }
    heads_add(&out, "reason", bytes, head->reason);
    static const char *const forms[] = {"", " absolute", " authority", " asterisk"};
    (void)buf_puts(&out, forms[head->form]);
    (void)buf_puts(&out, head->keep_alive ? " keep" : "");
    (void)buf_puts(&out, head->upgrade ? " upgrade" : "");
    (void)buf_puts(&out, head->expect_continue ? " expect" : "");
    (void)buf_puts(&out, head->expect_other ? " expect-other" : "");
    (void)buf_puts(&out, head->te_trailers ? " te" : "");
    for (uint32_t i = 0; i < head->field_count; i++) {
        const struct h1_field *field = &head->fields[i];
        (void)buf_printf(&out, " %s[%.*s|%.*s]", field->hop ? "-" : "", (int)field->name.len,
                         bytes + field->name.off, (int)field->value.len, bytes + field->value.off);
    }
    assert_false(out.full);
    (void)snprintf(text, size, "%s", out.data);
    buf_deinit(&out);
}

/* method: of the request that a response belongs to; is_request decides which parser. */
UNUSED static int heads_try(struct h1_scan *scan, const char *bytes, size_t len, bool is_request,
                            enum h1_method method, struct heads_parse *ret)
{
    struct h1_field fields[32];
    struct h1_head head;
    h1_head_init(&head, fields, 32);
    char *exact = malloc(len > 0 ? len : 1);
    memcpy(exact, bytes, len);
    ret->rc = is_request ? h1_parse_request(scan, exact, len, &heads_limits, &head)
                         : h1_parse_response(scan, exact, len, method, &heads_limits, &head);
    ret->fault = head.fault;
    ret->text[0] = '\0';
    if (ret->rc == 0) {
        assert_true(h1_oracle_agrees(&head, exact, scan->start, is_request));
        heads_describe(&head, exact, ret->text, sizeof(ret->text));
    }
    free(exact);
    return ret->rc;
}

/*
 * Parse whole, cut in two at every byte, and byte by byte; all must agree. A split parse may refuse
 * before the last byte is there.
 */
UNUSED static void heads_parse_all(const char *bytes, size_t len, bool is_request,
                                   enum h1_method method, struct heads_parse *ret)
{
    struct h1_scan scan = {0};
    struct heads_parse other;
    (void)heads_try(&scan, bytes, len, is_request, method, ret);
    for (size_t cut = 0; cut <= len; cut++) {
        scan = (struct h1_scan){0};
        if (heads_try(&scan, bytes, cut, is_request, method, &other) == RC_AGAIN) {
            (void)heads_try(&scan, bytes, len, is_request, method, &other);
        }
        assert_int_equal(other.rc, ret->rc);
        assert_int_equal(other.fault, ret->fault);
        assert_string_equal(other.text, ret->text);
    }
    scan = (struct h1_scan){0};
    int rc = RC_AGAIN;
    for (size_t now = 0; now <= len && rc == RC_AGAIN; now++) {
        rc = heads_try(&scan, bytes, now, is_request, method, &other);
    }
    assert_int_equal(other.rc, ret->rc);
    assert_int_equal(other.fault, ret->fault);
    assert_string_equal(other.text, ret->text);
}

#endif
