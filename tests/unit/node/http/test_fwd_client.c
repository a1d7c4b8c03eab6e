/*
 * fwd_client: the right-most address that is not trusted, and where the walk ends.
 */
#include "tests/unit/node/http/heads.h"

#include "node/http/fwd_client.h"

static struct cidr_set *trusted;

static struct h1_field fields[64];

static void parse(const char *lines, struct h1_head *head, struct buf *request)
{
    static const struct h1_limits limits = {
        .head_bytes = 65535, .field_count = 64, .target_bytes = 1024};
    struct h1_scan scan = {0};
    buf_init(request, 65536);
    (void)buf_printf(request, "GET / HTTP/1.1\r\nHost: a\r\n%s\r\n", lines);
    h1_head_init(head, fields, ARRAY_LEN(fields));
    assert_int_equal(h1_parse_request(&scan, request->data, request->len, &limits, head), 0);
}

static const char *client_of(const char *peer, const char *lines)
{
    static char text[ADDR_TEXT_MAX];
    struct h1_head head;
    struct buf request;
    struct addr addr;
    parse(lines, &head, &request);
    assert_int_equal(addr_parse_ip(peer, strlen(peer), &addr), RC_OK);
    addr_set_port(&addr, 7);
    struct addr client = fwd_client(trusted, &addr, &head, request.data);
    buf_deinit(&request);
    return addr_format(&client, text);
}

static void the_walk(void **state)
{
    (void)state;
    static const struct {
        const char *lines;
        const char *client;
    } rows[] = {
        {"", "10.0.0.1:7"},
        {"X-Forwarded-For: 1.2.3.4\r\n", "1.2.3.4:0"},
        {"X-Forwarded-For: 1.2.3.4:99\r\n", "1.2.3.4:99"},
        {"X-Forwarded-For: 2001:db8::1\r\n", "[2001:db8::1]:0"},
        {"X-Forwarded-For: [2001:db8::1]\r\n", "[2001:db8::1]:0"},
        {"X-Forwarded-For: [2001:db8::1]:80\r\n", "[2001:db8::1]:80"},
        {"X-Forwarded-For: 5.5.5.5, 1.2.3.4\r\n", "1.2.3.4:0"},
        {"X-Forwarded-For: 5.5.5.5,1.2.3.4 ,\t10.0.0.9\r\n", "1.2.3.4:0"},
        {"X-Forwarded-For: 10.0.0.8, 10.0.0.9\r\n", "10.0.0.8:0"}, /* all are trusted */
        {"X-Forwarded-For: 5.5.5.5\r\nX-Forwarded-For: 1.2.3.4\r\n", "1.2.3.4:0"},
        {"X-Forwarded-For: ::ffff:10.0.0.8\r\n", "[::ffff:10.0.0.8]:0"},
        /* what is none ends it: the hop that wrote it counts */
        {"X-Forwarded-For: 1.2.3.4, unknown\r\n", "10.0.0.1:7"},
        {"X-Forwarded-For: 1.2.3.4, , 10.0.0.9\r\n", "10.0.0.9:0"},
        {"X-Forwarded-For: 1.2.3.4, 10.0.0.999, 10.0.0.9\r\n", "10.0.0.9:0"},
        {"X-Forwarded-For: 1.2.3.4:x\r\n", "10.0.0.1:7"},
        {"X-Forwarded-For: 1.2.3.4:70000\r\n", "10.0.0.1:7"},
        {"X-Forwarded-For: 1.2.3.4:\r\n", "10.0.0.1:7"},
        {"X-Forwarded-For: [1.2.3.4]\r\n", "10.0.0.1:7"},
        {"X-Forwarded-For: [::1\r\n", "10.0.0.1:7"},
        {"X-Forwarded-For: [::1]x\r\n", "10.0.0.1:7"},
        {"X-Forwarded-For:\r\n", "10.0.0.1:7"},
        {"X-Forwarded-For: \"1.2.3.4\"\r\n", "10.0.0.1:7"},
        /* Forwarded, when there is no X-Forwarded-For */
        {"Forwarded: for=1.2.3.4\r\n", "1.2.3.4:0"},
        {"Forwarded: proto=http; FOR=\"1.2.3.4:5\";by=x\r\n", "1.2.3.4:5"},
        {"Forwarded: for=5.5.5.5, for=\"[2001:db8::1]:9\"\r\n", "[2001:db8::1]:9"},
        {"Forwarded: for=1.2.3.4;host=\"a,b;for=6.6.6.6\", for=10.0.0.9\r\n", "1.2.3.4:0"},
        {"Forwarded: for=1.2.3.4, for=_hidden\r\n", "10.0.0.1:7"},
        {"Forwarded: for=1.2.3.4, by=10.0.0.9\r\n", "10.0.0.1:7"},
        {"Forwarded: for=1.2.3.4, for=\"10.0.0.9\r\n", "10.0.0.1:7"}, /* an open quote */
        {"Forwarded: for=\"1.2.3.\\4\"\r\n", "10.0.0.1:7"},
        {"Forwarded: for=6.6.6.6\r\nX-Forwarded-For: 1.2.3.4\r\n", "1.2.3.4:0"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_string_equal(client_of("10.0.0.1", rows[i].lines), rows[i].client);
    }
    assert_string_equal(client_of("9.9.9.9", "X-Forwarded-For: 1.2.3.4\r\n"), "9.9.9.9:7");
    assert_string_equal(client_of("::ffff:10.0.0.1", "X-Forwarded-For: 1.2.3.4\r\n"), "1.2.3.4:0");
}

static void long_chains(void **state)
{
    (void)state;
    struct buf lines;
    buf_init(&lines, 65536);
    (void)buf_puts(&lines, "X-Forwarded-For: 1.2.3.4");
    for (int i = 1; i < FWD_HOPS_MAX; i++) {
        (void)buf_printf(&lines, ", 10.0.1.%d", i);
    }
    struct buf whole;
    buf_init(&whole, 65536);
    (void)buf_printf(&whole, "%s\r\n", lines.data);
    assert_string_equal(client_of("10.0.0.1", whole.data), "1.2.3.4:0");
    buf_reset(&whole);
    (void)buf_printf(&whole, "%s, 10.0.2.1, 10.0.2.2\r\n", lines.data);
    assert_string_equal(client_of("10.0.0.1", whole.data), "10.0.1.2:0"); /* no further */
    buf_deinit(&whole);
    buf_deinit(&lines);
}

static void the_scheme(void **state)
{
    (void)state;
    static const struct {
        const char *lines;
        bool https;
    } rows[] = {
        {"", false},
        {"X-Forwarded-Proto: https\r\n", true},
        {"X-Forwarded-Proto: HTTPS\r\n", true},
        {"X-Forwarded-Proto: http\r\n", false},
        {"X-Forwarded-Proto: https, http\r\n", false},
        {"X-Forwarded-Proto: http, https\r\n", true},
        {"X-Forwarded-Proto: http\r\nX-Forwarded-Proto: https\r\n", true},
        {"X-Forwarded-Proto: httpsx\r\n", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct h1_head head;
        struct buf request;
        parse(rows[i].lines, &head, &request);
        assert_int_equal(fwd_is_https(&head, request.data), rows[i].https);
        buf_deinit(&request);
    }
}

static int set_up(void **state)
{
    (void)state;
    static const char *const texts[] = {"10.0.0.0/8"};
    return cidr_set_new(texts, 1, &trusted, NULL);
}

static int tear_down(void **state)
{
    (void)state;
    cidr_set_free(trusted);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_walk),
        cmocka_unit_test(long_chains),
        cmocka_unit_test(the_scheme),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
