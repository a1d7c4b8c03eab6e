/*
 * template: what is accepted where, how refusals speak, and that nothing unclean is rendered.
 */
#include "tests/support/unit.h"

#include "node/base/mem.h"
#include "node/base/template.h"

static const char *const names[TEMPLATE_VAR_COUNT] = {
    [TEMPLATE_CLIENT_ADDRESS] = "client.address",
    [TEMPLATE_CLIENT_PORT] = "client.port",
    [TEMPLATE_HOST] = "host",
    [TEMPLATE_PATH] = "path",
    [TEMPLATE_QUERY] = "query",
    [TEMPLATE_METHOD] = "method",
    [TEMPLATE_REQUEST_ID] = "request.id",
    [TEMPLATE_ROUTE] = "route",
    [TEMPLATE_NAMESPACE] = "namespace",
    [TEMPLATE_BACKEND] = "backend",
    [TEMPLATE_ENDPOINT] = "endpoint",
    [TEMPLATE_NODE] = "node",
    [TEMPLATE_SCHEME] = "scheme",
    [TEMPLATE_LISTENER_PORT] = "listener.port",
    [TEMPLATE_TIME] = "time",
    [TEMPLATE_RANDOM] = "random",
    [TEMPLATE_REQUEST_HEADER] = "request.header.X-Some",
    [TEMPLATE_RESPONSE_HEADER] = "response.header.Age",
};

/* Every variable stands for its own name in angles; the header's name for itself. */
static struct template_value name_of(void *ctx, const struct template_part *part)
{
    char *text = ctx;
    if (part->text != NULL) {
        (void)snprintf(text, 64, "<%.*s>", (int)part->len, part->text);
    } else {
        (void)snprintf(text, 64, "<%s>", names[part->var]);
    }
    return (struct template_value){.at = text, .len = strlen(text)};
}

static char *render(const char *text, enum template_place place)
{
    struct template *template = NULL;
    assert_int_equal(template_new(text, place, &template, NULL), RC_OK);
    struct buf out;
    char room[64];
    buf_init(&out, 1 << 16);
    template_render(template, name_of, room, &out);
    assert_false(out.full);
    template_free(template);
    return buf_take(&out, NULL);
}

#define assert_rendered(text, expected)                                                            \
    do {                                                                                           \
        char *found_ = render(text, TEMPLATE_IN_RESPONSE);                                         \
        assert_string_equal(found_, expected);                                                     \
        mem_free(found_);                                                                          \
    } while (0)

static void texts_and_variables(void **state)
{
    (void)state;
    assert_rendered("", "");
    assert_rendered("plain text", "plain text");
    assert_rendered("%{host}", "<host>");
    assert_rendered("a%{host}b%{path}", "a<host>b<path>");
    assert_rendered("100%%", "100%");
    assert_rendered("%%%%{host}", "%%{host}");
    assert_rendered("%%{host}%{host}", "%{host}<host>");
    assert_rendered("%{request.header.X-Some}", "<x-some>");
    assert_rendered("%{response.header.AGE}", "<age>");
    for (size_t i = 1; i < TEMPLATE_VAR_COUNT; i++) {
        char text[64];
        (void)snprintf(text, sizeof(text), "[%%{%s}]", names[i]);
        char *found = render(text, TEMPLATE_IN_RESPONSE);
        assert_int_equal(found[1], '<');
        mem_free(found);
    }
}

static void refusals_say_what_is_accepted(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum template_place place;
        const char *says;
    } rows[] = {
        {"%", TEMPLATE_IN_REQUEST, "byte 1"},
        {"a%", TEMPLATE_IN_REQUEST, "byte 2"},
        {"50% off", TEMPLATE_IN_REQUEST, "%%"},
        {"%{", TEMPLATE_IN_REQUEST, "begins no variable"},
        {"%{host", TEMPLATE_IN_REQUEST, "begins no variable"},
        {"%{}", TEMPLATE_IN_REQUEST, "accepted are client.address"},
        {"%{Host}", TEMPLATE_IN_REQUEST, "accepted are"},
        {"%{host }", TEMPLATE_IN_REQUEST, "accepted are"},
        {"%{request.header.}", TEMPLATE_IN_REQUEST, "accepted are"},
        {"%{request.header.a b}", TEMPLATE_IN_REQUEST, "header name"},
        {"%{request.header.a:}", TEMPLATE_IN_REQUEST, "header name"},
        {"%{endpoint}", TEMPLATE_IN_REQUEST, "request.header.NAME"},
        {"%{response.header.age}", TEMPLATE_IN_REQUEST, "accepted are"},
        {"%{route}", TEMPLATE_IN_ID, "accepted are"},
        {"%{request.id}", TEMPLATE_IN_ID, "accepted are"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err_info err = {0};
        assert_int_equal(template_check(rows[i].text, rows[i].place, &err), RC_INVALID);
        assert_non_null(strstr(err.text, rows[i].says));
    }
    struct err_info err = {0};
    assert_int_equal(template_check("%{zz}", TEMPLATE_IN_RESPONSE, &err), RC_INVALID);
    assert_non_null(strstr(err.text, "response.header.NAME")); /* the whole list fits */
    assert_int_equal(template_check("%{endpoint} %{route}", TEMPLATE_IN_RESPONSE, NULL), RC_OK);
    assert_int_equal(template_check("%{node}-%{random}-%{time}", TEMPLATE_IN_ID, NULL), RC_OK);
}

static void sizes_are_bounded(void **state)
{
    (void)state;
    char *text = mem_array(TEMPLATE_TEXT_MAX + 2, 1);
    memset(text, 'a', TEMPLATE_TEXT_MAX + 1);
    assert_int_equal(template_check(text, TEMPLATE_IN_REQUEST, NULL), RC_TOO_BIG);
    text[TEMPLATE_TEXT_MAX] = '\0';
    assert_int_equal(template_check(text, TEMPLATE_IN_REQUEST, NULL), RC_OK);
    for (size_t i = 0; i <= TEMPLATE_PARTS_MAX; i++) {
        memcpy(text + i * 7, "%{host}", 8);
    }
    assert_int_equal(template_check(text, TEMPLATE_IN_REQUEST, NULL), RC_TOO_BIG);
    mem_free(text);
}

static struct template_value unclean(void *ctx, const struct template_part *part)
{
    (void)ctx;
    (void)part;
    return (struct template_value){.at = "a\r\nX: y\0z\t\x7f\x80", .len = 12};
}

static void control_bytes_become_blanks(void **state)
{
    (void)state;
    struct template *template = NULL;
    assert_int_equal(template_new("l\r\n%{host}", TEMPLATE_IN_REQUEST, &template, NULL), RC_OK);
    assert_true(template->has_vars);
    struct buf out;
    buf_init(&out, 64);
    template_render(template, unclean, NULL, &out);
    assert_int_equal(out.len, 15);
    assert_memory_equal(out.data, "l  a  X: y z\t \x80", 15);
    buf_reset(&out);
    out.cap_bytes = 5;
    template_render(template, unclean, NULL, &out);
    assert_true(out.full);
    buf_deinit(&out);
    template_free(template);
    template_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_and_variables),
        cmocka_unit_test(refusals_say_what_is_accepted),
        cmocka_unit_test(sizes_are_bounded),
        cmocka_unit_test(control_bytes_become_blanks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
