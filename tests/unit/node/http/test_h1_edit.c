/*
 * h1_edit: fields that go are marked, fields that come are lines, in the order of the edits.
 */
#include "tests/unit/node/http/heads.h"

#include "node/base/mem.h"
#include "node/http/h1_edit.h"

static const char REQUEST[] = "GET /p HTTP/1.1\r\nHost: a.test\r\nX-A: 1\r\nx-a: 2\r\n"
                              "User-Agent: me\r\nX-B: b\r\n\r\n";

static struct h1_field fields[32];
static struct h1_head head;
static struct buf lines;

static void parse(void)
{
    struct h1_scan scan = {0};
    h1_head_init(&head, fields, ARRAY_LEN(fields));
    assert_int_equal(h1_parse_request(&scan, REQUEST, sizeof(REQUEST) - 1, &heads_limits, &head),
                     0);
    buf_init(&lines, 4096);
}

static struct template_value value_of(void *ctx, const struct template_part *part)
{
    if (part->var == TEMPLATE_REQUEST_HEADER) {
        return h1_value_named(&head, REQUEST, part->text, part->len, ctx);
    }
    return (struct template_value){.at = "", .len = 0};
}

static void apply(enum h1_edit_action action, const char *name, const char *value)
{
    struct h1_edit edit = {.action = action,
                           .name = mem_strdup(name),
                           .name_len = (uint16_t)strlen(name),
                           .id = (uint8_t)h1_name_id(name, strlen(name))};
    if (value != NULL) {
        assert_int_equal(template_new(value, TEMPLATE_IN_RESPONSE, &edit.value, NULL), RC_OK);
    }
    struct buf scratch;
    buf_init(&scratch, 256);
    h1_edits_apply(&(const struct h1_edits){.items = &edit, .count = 1}, &head, REQUEST, value_of,
                   &scratch, &lines);
    buf_deinit(&scratch);
    template_free(edit.value);
    mem_free(edit.name);
}

static const char *text(void)
{
    return lines.data != NULL ? lines.data : "";
}

static unsigned kept(const char *name)
{
    unsigned count = 0;
    for (uint32_t i = 0; i < head.field_count; i++) {
        count += head.fields[i].name.len == strlen(name) && !head.fields[i].drop &&
                 strncasecmp(REQUEST + head.fields[i].name.off, name, strlen(name)) == 0;
    }
    return count;
}

static void set_replaces_what_came_and_what_was_added(void **state)
{
    (void)state;
    parse();
    apply(H1_EDIT_SET, "x-A", "one");
    assert_int_equal(kept("x-a"), 0);
    assert_string_equal(text(), "x-A: one\r\n");
    apply(H1_EDIT_ADD, "X-B", "c");
    assert_int_equal(kept("x-b"), 1);
    apply(H1_EDIT_SET, "X-a", "two");
    assert_string_equal(text(), "X-B: c\r\nX-a: two\r\n");
    apply(H1_EDIT_SET, "user-agent", "you"); /* a name that the parser knows */
    assert_int_equal(kept("user-agent"), 0);
    apply(H1_EDIT_DELETE, "x-b", NULL);
    assert_int_equal(kept("x-b"), 0);
    assert_string_equal(text(), "X-a: two\r\nuser-agent: you\r\n");
    apply(H1_EDIT_DELETE, "X-Nothing", NULL);
    apply(H1_EDIT_SET, "X", "prefix of no name");
    assert_string_equal(text(), "X-a: two\r\nuser-agent: you\r\nX: prefix of no name\r\n");
    buf_deinit(&lines);
}

static void values_are_those_that_came(void **state)
{
    (void)state;
    parse();
    apply(H1_EDIT_DELETE, "X-A", NULL);
    apply(H1_EDIT_SET, "X-Old", "%{request.header.X-A}");
    apply(H1_EDIT_SET, "X-B", "%{request.header.x-b}%{request.header.x-b}");
    apply(H1_EDIT_SET, "X-None", "%{request.header.x-none}");
    apply(H1_EDIT_SET, "X-Empty", "");
    apply(H1_EDIT_SET, "X-Clean", "a\r\nX-Evil: b");
    assert_string_equal(text(), "X-Old: 1, 2\r\nX-B: bb\r\nX-Empty: \r\nX-Clean: a  X-Evil: b\r\n");
    buf_deinit(&lines);
}

static void what_does_not_fit_is_told(void **state)
{
    (void)state;
    parse();
    lines.cap_bytes = 8;
    apply(H1_EDIT_SET, "X-A", "longer than it may be");
    assert_true(lines.full);
    buf_deinit(&lines);
    struct buf scratch;
    buf_init(&scratch, 64);
    assert_int_equal(h1_value_named(&head, REQUEST, "x-a", 3, &scratch).len, 4);
    assert_int_equal(h1_value_named(&head, REQUEST, "x-z", 3, &scratch).len, 0);
    buf_deinit(&scratch);
}

static void framing_is_not_for_edits(void **state)
{
    (void)state;
    static const char *const refused[] = {"Host",    "content-LENGTH", "Transfer-Encoding",
                                          "Upgrade", "connection",     "TE",
                                          "Trailer", "Keep-Alive",     "Proxy-Connection",
                                          "Proxy",   "Expect",         "HTTP2-Settings"};
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        assert_true(h1_edit_refuses(refused[i], strlen(refused[i])));
    }
    assert_false(h1_edit_refuses("Hosts", 5));
    assert_false(h1_edit_refuses("X-Forwarded-For", 15));
    parse();
    h1_drop_id(&head, H1_USER_AGENT);
    h1_drop_id(&head, H1_COOKIE);
    assert_int_equal(kept("user-agent"), 0);
    h1_drop_named(&head, REQUEST, "HOST", 4);
    assert_int_equal(kept("host"), 0);
    h1_put_line(&lines, "A", 1, "b", 1);
    assert_string_equal(text(), "A: b\r\n");
    buf_deinit(&lines);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(set_replaces_what_came_and_what_was_added),
        cmocka_unit_test(values_are_those_that_came),
        cmocka_unit_test(what_does_not_fit_is_told),
        cmocka_unit_test(framing_is_not_for_edits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
