/*
 * Forwarded fields under the four policies, as they go out in a request head.
 */
#include "tests/unit/node/http/heads.h"

#include "node/http/forwarded.h"
#include "node/http/h1_write.h"

#define BEGIN "GET / HTTP/1.1\r\nHost: a.test\r\n"
#define SPOOFED                                                                                    \
    "X-Forwarded-For: 203.0.113.7\r\nX-Forwarded-Proto: gopher\r\nX-Forwarded-Host: evil.test\r\n" \
    "X-Forwarded-Port: 1\r\nForwarded: for=203.0.113.7;proto=gopher\r\n"
#define OWN                                                                                        \
    "X-Forwarded-For: 10.0.0.1\r\nX-Forwarded-Host: a.test\r\nX-Forwarded-Port: 80\r\n"            \
    "X-Forwarded-Proto: http\r\nForwarded: for=10.0.0.1;host=a.test;proto=http\r\n"

static void peer_of(struct fwd_peer *peer, const char *text, uint16_t port, bool secure)
{
    struct addr client = {0};
    if (text != NULL) {
        assert_int_equal(addr_parse(text, &client, NULL), 0);
    }
    fwd_peer_init(peer, &client, port, secure);
}

/* The head that goes out for these lines behind the request line and Host. */
static void expect(const char *begin, const char *lines, enum fwd_policy policy,
                   const struct fwd_peer *peer, const char *want)
{
    struct h1_field fields[32];
    struct h1_head head;
    struct h1_scan scan = {0};
    struct buf out;
    char raw[2048];
    int len = snprintf(raw, sizeof(raw), "%s%s\r\n", begin, lines);
    h1_head_init(&head, fields, 32);
    buf_init(&out, 8192);
    assert_int_equal(h1_parse_request(&scan, raw, (size_t)len, &heads_limits, &head), 0);
    const struct h1_out how = {.peer = peer, .policy = policy};
    assert_int_equal(h1_write_request(&out, &head, raw, &how), 0);
    assert_true(out.len >= strlen(begin));
    assert_memory_equal(out.data, begin, strlen(begin));
    assert_string_equal(out.data + strlen(begin), want);
    buf_deinit(&out);
}

static void test_append(void **state)
{
    (void)state;
    struct fwd_peer peer;
    peer_of(&peer, "10.0.0.1:4000", 80, false);
    expect(BEGIN, "", FWD_APPEND, &peer, OWN "\r\n");
    expect(BEGIN, SPOOFED "X: y\r\n", FWD_APPEND, &peer,
           "X: y\r\nX-Forwarded-For: 203.0.113.7, 10.0.0.1\r\n"
           "X-Forwarded-Host: evil.test, a.test\r\nX-Forwarded-Port: 1, 80\r\n"
           "X-Forwarded-Proto: gopher, http\r\nForwarded: for=203.0.113.7;proto=gopher, "
           "for=10.0.0.1;host=a.test;proto=http\r\n\r\n");
    /* several lines become one, empty ones go, order stays */
    expect(BEGIN,
           "X-Forwarded-For: 1.1.1.1, 2.2.2.2\r\nA: b\r\nx-forwarded-for:\r\n"
           "X-FORWARDED-FOR: 3.3.3.3\r\n",
           FWD_APPEND, &peer,
           "A: b\r\nX-Forwarded-For: 1.1.1.1, 2.2.2.2, 3.3.3.3, 10.0.0.1\r\n"
           "X-Forwarded-Host: a.test\r\nX-Forwarded-Port: 80\r\nX-Forwarded-Proto: http\r\n"
           "Forwarded: for=10.0.0.1;host=a.test;proto=http\r\n\r\n");
}

static void test_open_quote(void **state)
{
    (void)state;
    static const char *const open[] = {"Forwarded: for=\"_x\r\n", "Forwarded: for=\"_x\\\"\r\n",
                                       "Forwarded: for=\"_x\\\r\n", "Forwarded: \"\r\n"};
    struct fwd_peer peer;
    peer_of(&peer, "10.0.0.1:4000", 80, false);
    for (size_t i = 0; i < ARRAY_LEN(open); i++) {
        expect(BEGIN, open[i], FWD_APPEND, &peer, OWN "\r\n");
    }
    expect(BEGIN, "Forwarded: for=\"a\\\"b\"\r\nForwarded: for=\"\r\nForwarded: by=c\r\n",
           FWD_APPEND, &peer,
           "X-Forwarded-For: 10.0.0.1\r\nX-Forwarded-Host: a.test\r\nX-Forwarded-Port: 80\r\n"
           "X-Forwarded-Proto: http\r\n"
           "Forwarded: for=\"a\\\"b\", by=c, for=10.0.0.1;host=a.test;proto=http\r\n\r\n");
}

static void test_replace(void **state)
{
    (void)state;
    struct fwd_peer peer;
    peer_of(&peer, "10.0.0.1:4000", 80, false);
    expect(BEGIN, SPOOFED "X-FORWARDED-FOR: 1\r\n", FWD_REPLACE, &peer, OWN "\r\n");
    expect(BEGIN, "", FWD_REPLACE, &peer, OWN "\r\n");
}

static void test_if_none(void **state)
{
    (void)state;
    struct fwd_peer peer;
    peer_of(&peer, "10.0.0.1:4000", 443, true);
    expect(BEGIN, SPOOFED, FWD_IF_NONE, &peer, SPOOFED "\r\n");
    expect(BEGIN, "X-Forwarded-Proto: gopher\r\nX-Forwarded-Port:\r\n", FWD_IF_NONE, &peer,
           "X-Forwarded-Proto: gopher\r\nX-Forwarded-Port:\r\nX-Forwarded-For: 10.0.0.1\r\n"
           "X-Forwarded-Host: a.test\r\nForwarded: for=10.0.0.1;host=a.test;proto=https\r\n\r\n");
    /* taken out by Connection is absent */
    expect(BEGIN, "Connection: x-forwarded-for\r\nX-Forwarded-For: 1\r\nForwarded: for=2\r\n",
           FWD_IF_NONE, &peer,
           "Forwarded: for=2\r\nX-Forwarded-For: 10.0.0.1\r\nX-Forwarded-Host: a.test\r\n"
           "X-Forwarded-Port: 443\r\nX-Forwarded-Proto: https\r\n\r\n");
}

static void test_never(void **state)
{
    (void)state;
    struct fwd_peer peer;
    peer_of(&peer, "10.0.0.1:4000", 80, false);
    expect(BEGIN, SPOOFED, FWD_NEVER, &peer, SPOOFED "\r\n");
    expect(BEGIN, "", FWD_NEVER, &peer, "\r\n");
    expect(BEGIN, SPOOFED, FWD_APPEND, NULL, SPOOFED "\r\n");
}

static void test_addresses(void **state)
{
    (void)state;
    struct fwd_peer peer;
    peer_of(&peer, "[2001:db8::1]:4000", 8443, true);
    expect("GET / HTTP/1.1\r\nHost: a.test:8443\r\n", "", FWD_REPLACE, &peer,
           "X-Forwarded-For: 2001:db8::1\r\nX-Forwarded-Host: a.test:8443\r\n"
           "X-Forwarded-Port: 8443\r\nX-Forwarded-Proto: https\r\n"
           "Forwarded: for=\"[2001:db8::1]\";host=\"a.test:8443\";proto=https\r\n\r\n");
    expect("GET / HTTP/1.1\r\nHost: [::1]\r\n", "", FWD_REPLACE, &peer,
           "X-Forwarded-For: 2001:db8::1\r\nX-Forwarded-Host: [::1]\r\n"
           "X-Forwarded-Port: 8443\r\nX-Forwarded-Proto: https\r\n"
           "Forwarded: for=\"[2001:db8::1]\";host=\"[::1]\";proto=https\r\n\r\n");
    peer_of(&peer, "[::ffff:10.0.0.1]:4000", 80, false);
    assert_string_equal(peer.address, "10.0.0.1");
    assert_false(peer.quoted);
    peer_of(&peer, "[1111:2222:3333:4444:5555:6666:7777:8888]:4000", 65535, false);
    assert_string_equal(peer.address, "1111:2222:3333:4444:5555:6666:7777:8888");
    assert_true(peer.quoted);
    assert_string_equal(peer.port, "65535");
    peer_of(&peer, NULL, 80, false);
    assert_string_equal(peer.address, "unknown");
    expect("GET / HTTP/1.1\r\nHost: a.test.\r\n", "", FWD_APPEND, &peer,
           "X-Forwarded-For: unknown\r\nX-Forwarded-Host: a.test.\r\n"
           "X-Forwarded-Port: 80\r\nX-Forwarded-Proto: http\r\n"
           "Forwarded: for=unknown;host=a.test.;proto=http\r\n\r\n");
}

static void test_put(void **state)
{
    (void)state;
    static const char raw[] = BEGIN SPOOFED "\r\n";
    struct h1_field fields[32];
    struct h1_head head;
    struct h1_scan scan = {0};
    struct fwd_peer peer;
    struct buf out;
    peer_of(&peer, "10.0.0.1:4000", 80, false);
    h1_head_init(&head, fields, 32);
    assert_int_equal(h1_parse_request(&scan, raw, sizeof(raw) - 1, &heads_limits, &head), 0);
    buf_init(&out, 20);
    assert_int_equal(fwd_put(&out, &peer, FWD_REPLACE, &head, raw), RC_FULL);
    buf_deinit(&out);
    buf_init(&out, 2048);
    assert_int_equal(fwd_put(&out, &peer, FWD_REPLACE, &head, raw), RC_OK);
    assert_string_equal(out.data, OWN);
    buf_deinit(&out);
    assert_int_equal(fwd_drop(FWD_NEVER) | fwd_drop(FWD_IF_NONE), 0);
    assert_true((fwd_drop(FWD_APPEND) & H1_BIT(H1_FORWARDED)) != 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_append),  cmocka_unit_test(test_open_quote),
        cmocka_unit_test(test_replace), cmocka_unit_test(test_if_none),
        cmocka_unit_test(test_never),   cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_put),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
