/*
 * Outgoing heads: what is kept, what is dropped, and that framing is always the one that was
 * decided.
 */
#include "tests/unit/node/http/heads.h"

#include "node/http/h1_write.h"

#define END "\r\n\r\n"

static struct h1_field parse_fields[32];

static void parse(struct h1_head *head, const char *raw, bool is_request, enum h1_method method)
{
    struct h1_scan scan = {0};
    h1_head_init(head, parse_fields, 32);
    int rc = is_request ? h1_parse_request(&scan, raw, strlen(raw), &heads_limits, head)
                        : h1_parse_response(&scan, raw, strlen(raw), method, &heads_limits, head);
    if (rc != 0) {
        fail_msg("%s: %s", raw, h1_fault_label(head->fault));
    }
}

static void expect_request(const char *raw, const struct h1_out *how, const char *want)
{
    struct h1_head head;
    struct buf out;
    parse(&head, raw, true, H1_GET);
    buf_init(&out, 8192);
    assert_int_equal(h1_write_request(&out, &head, raw, how), 0);
    assert_string_equal(out.data, want);
    /* the result is itself a sound head with that framing */
    struct h1_head again;
    static struct h1_field fields[64];
    struct h1_scan scan = {0};
    h1_head_init(&again, fields, 64);
    assert_int_equal(h1_parse_request(&scan, out.data, out.len, &heads_limits, &again), 0);
    assert_int_equal(again.len, out.len);
    assert_int_equal(again.framing, how->framing);
    assert_int_equal(again.content_length, how->content_length);
    assert_string_equal(again.host_name, head.host_name);
    buf_deinit(&out);
}

static void test_request(void **state)
{
    (void)state;
    const struct h1_out plain = {0};
    const struct h1_out length = {.framing = H1_BODY_LENGTH, .content_length = 12345678901};
    const struct h1_out chunked = {.framing = H1_BODY_CHUNKED};
    expect_request("GET /a%2fb?c HTTP/1.1\r\nHost: A.test:80\r\nX: y" END, &plain,
                   "GET /a%2fb?c HTTP/1.1\r\nHost: A.test:80\r\nX: y" END);
    expect_request("GET / HTTP/1.0\r\nHost: a" END, &plain, "GET / HTTP/1.1\r\nHost: a" END);
    /* hop-by-hop fields at the begin, in the middle, at the end */
    expect_request("GET / HTTP/1.1\r\nConnection: keep-alive, x-hop\r\nHost: a\r\nX-Hop: 1\r\n"
                   "X-One:  spaced \r\nKeep-Alive: 1\r\nTE: trailers\r\nX-Two: 2\r\nX-Two: 3\r\n"
                   "Proxy: p\r\nUpgrade: u\r\nProxy-Connection: close" END,
                   &plain,
                   "GET / HTTP/1.1\r\nHost: a\r\nX-One:  spaced \r\nX-Two: 2\r\nX-Two: 3" END);
    /* framing is written from what was decided, not from what came */
    expect_request("POST / HTTP/1.1\r\nContent-Length: 5\r\nHost: a\r\nTrailer: X" END, &chunked,
                   "POST / HTTP/1.1\r\nHost: a\r\nTrailer: X\r\nTransfer-Encoding: chunked" END);
    expect_request("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nHost: a\r\nTrailer: X" END,
                   &length, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 12345678901" END);
    expect_request("POST / HTTP/1.1\r\nConnection: content-length\r\nContent-Length: 05\r\n"
                   "Host: a" END,
                   &length, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 12345678901" END);
    /* Expect passes unless it is dropped; Host cannot be dropped */
    const struct h1_out drop = {.drop = H1_BIT(H1_EXPECT) | H1_BIT(H1_HOST) | H1_BIT(H1_OTHER)};
    expect_request("GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nX: 1" END, &plain,
                   "GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nX: 1" END);
    expect_request("GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nX: 1" END, &drop,
                   "GET / HTTP/1.1\r\nHost: a\r\nX: 1" END);
}

static void test_targets(void **state)
{
    (void)state;
    const struct h1_out plain = {0};
    const struct h1_out other = {
        .target = "/b", .target_len = 2, .extra = "A: b\r\n", .extra_len = 6};
    expect_request("GET http://a.test/x?y HTTP/1.1\r\nHost: a.test" END, &plain,
                   "GET /x?y HTTP/1.1\r\nHost: a.test" END);
    expect_request("GET http://a.test HTTP/1.1\r\nHost: a.test" END, &plain,
                   "GET / HTTP/1.1\r\nHost: a.test" END);
    expect_request("GET http://a.test?y HTTP/1.1\r\nHost: a.test" END, &plain,
                   "GET /?y HTTP/1.1\r\nHost: a.test" END);
    expect_request("GET http://a.test:81/x HTTP/1.0" END, &plain,
                   "GET /x HTTP/1.1\r\nHost: a.test:81" END);
    expect_request("OPTIONS http://a.test HTTP/1.1\r\nHost: a.test" END, &plain,
                   "OPTIONS * HTTP/1.1\r\nHost: a.test" END);
    expect_request("OPTIONS * HTTP/1.1\r\nHost: a.test" END, &plain,
                   "OPTIONS * HTTP/1.1\r\nHost: a.test" END);
    expect_request("GET /a/../b HTTP/1.1\r\nHost: a" END, &other,
                   "GET /b HTTP/1.1\r\nHost: a\r\nA: b" END);
}

static void test_request_connection(void **state)
{
    (void)state;
    static const char raw[] = "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\n"
                              "Upgrade: websocket\r\nUpgrade: other" END;
    expect_request(raw, &(struct h1_out){.connection = H1_CONNECTION_UPGRADE},
                   "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
                   "Upgrade: other" END);
    expect_request(raw, &(struct h1_out){.connection = H1_CONNECTION_CLOSE},
                   "GET / HTTP/1.1\r\nHost: a\r\nConnection: close" END);
    expect_request(raw, &(struct h1_out){.te_trailers = true},
                   "GET / HTTP/1.1\r\nHost: a\r\nConnection: TE\r\nTE: trailers" END);
}

static void test_request_refused(void **state)
{
    (void)state;
    struct h1_head head;
    struct buf out;
    const struct h1_out plain = {0};
    buf_init(&out, 8192);
    parse(&head, "GET / HTTP/1.0" END, true, H1_GET);
    assert_int_equal(h1_write_request(&out, &head, "GET / HTTP/1.0" END, &plain), RC_INVALID);
    static const char connect[] = "CONNECT a:1 HTTP/1.1\r\nHost: a:1" END;
    parse(&head, connect, true, H1_GET);
    assert_int_equal(h1_write_request(&out, &head, connect, &plain), RC_INVALID);
    assert_int_equal(out.len, 0);
    buf_deinit(&out);
    buf_init(&out, 40);
    (void)buf_puts(&out, "before");
    static const char get[] = "GET / HTTP/1.1\r\nHost: a" END;
    parse(&head, get, true, H1_GET);
    assert_int_equal(h1_write_request(&out, &head, get, &plain), RC_FULL);
    assert_string_equal(out.data, "before");
    buf_deinit(&out);
}

static void expect_response(const char *raw, enum h1_method method, const struct h1_out *how,
                            const char *want)
{
    struct h1_head head;
    struct buf out;
    parse(&head, raw, false, method);
    buf_init(&out, 8192);
    assert_int_equal(h1_write_response(&out, &head, raw, how), 0);
    assert_string_equal(out.data, want);
    struct h1_head again;
    static struct h1_field fields[64];
    struct h1_scan scan = {0};
    h1_head_init(&again, fields, 64);
    assert_int_equal(h1_parse_response(&scan, out.data, out.len, method, &heads_limits, &again), 0);
    assert_int_equal(again.framing, how->framing);
    buf_deinit(&out);
}

static void test_response(void **state)
{
    (void)state;
    const struct h1_out length = {
        .framing = H1_BODY_LENGTH, .content_length = 2, .date = "Sun, 06 Nov 1994 08:49:37 GMT"};
    const struct h1_out chunked = {.framing = H1_BODY_CHUNKED};
    const struct h1_out close = {.framing = H1_BODY_UNTIL_CLOSE, .connection = H1_CONNECTION_CLOSE};
    const struct h1_out none = {.date = "Sun, 06 Nov 1994 08:49:37 GMT"};
    expect_response("HTTP/1.0 200 Fine\r\nContent-Length: 2\r\nConnection: X\r\nX: 1\r\nY: 2" END,
                    H1_GET, &length,
                    "HTTP/1.1 200 Fine\r\nY: 2\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
                    "Content-Length: 2" END);
    expect_response("HTTP/1.1 299 \r\nDate: mine\r\nContent-Length: 2" END, H1_GET, &length,
                    "HTTP/1.1 299 \r\nDate: mine\r\nContent-Length: 2" END);
    expect_response("HTTP/1.1 299\r\nKeep-Alive: timeout=7\r\nSet-Cookie: a\r\nSet-Cookie: b" END,
                    H1_GET, &chunked,
                    "HTTP/1.1 299 \r\nSet-Cookie: a\r\nSet-Cookie: b\r\n"
                    "Transfer-Encoding: chunked" END);
    expect_response("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X" END, H1_GET,
                    &close, "HTTP/1.1 200 OK\r\nConnection: close" END);
    /* no body by nature: the announced length stays, but not where none may stand */
    expect_response("HTTP/1.1 200 OK\r\nContent-Length: 50\r\nDate: d" END, H1_HEAD, &none,
                    "HTTP/1.1 200 OK\r\nDate: d\r\nContent-Length: 50" END);
    expect_response("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nDate: d" END, H1_HEAD, &none,
                    "HTTP/1.1 200 OK\r\nDate: d" END);
    expect_response("HTTP/1.1 304 Same\r\nContent-Length: 40\r\nDate: d" END, H1_GET, &none,
                    "HTTP/1.1 304 Same\r\nDate: d\r\nContent-Length: 40" END);
    expect_response("HTTP/1.1 204 None\r\nContent-Length: 40\r\nDate: d" END, H1_GET, &none,
                    "HTTP/1.1 204 None\r\nDate: d" END);
    expect_response("HTTP/1.1 103 Hints\r\nLink: </a>\r\nTransfer-Encoding: chunked" END, H1_GET,
                    &none, "HTTP/1.1 103 Hints\r\nLink: </a>" END);
}

static void test_response_connection(void **state)
{
    (void)state;
    expect_response("HTTP/1.1 101 Switching\r\nupgrade: websocket\r\nConnection: Upgrade\r\n"
                    "Sec-WebSocket-Accept: A" END,
                    H1_GET, &(struct h1_out){.connection = H1_CONNECTION_UPGRADE},
                    "HTTP/1.1 101 Switching\r\nSec-WebSocket-Accept: A\r\nConnection: upgrade\r\n"
                    "Upgrade: websocket" END);
    const struct h1_out keep = {.framing = H1_BODY_LENGTH,
                                .content_length = 0,
                                .connection = H1_CONNECTION_KEEP_ALIVE,
                                .drop = H1_BIT(H1_SERVER),
                                .extra = "X: 1\r\n",
                                .extra_len = 6};
    expect_response("HTTP/1.1 200 OK\r\nServer: s\r\nContent-Length: 0" END, H1_GET, &keep,
                    "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\nX: 1" END);
}

/* A caller may strike single fields. */
static void test_drop_field(void **state)
{
    (void)state;
    static const char raw[] = "GET / HTTP/1.1\r\nHost: a\r\nCookie: a\r\nCookie: b\r\nX: 1" END;
    struct h1_head head;
    struct buf out;
    const struct h1_out plain = {0};
    parse(&head, raw, true, H1_GET);
    buf_init(&out, 8192);
    parse_fields[1].drop = true;
    assert_int_equal(h1_write_request(&out, &head, raw, &plain), 0);
    assert_string_equal(out.data, "GET / HTTP/1.1\r\nHost: a\r\nCookie: b\r\nX: 1" END);
    buf_deinit(&out);
}

static void test_own_heads(void **state)
{
    (void)state;
    struct buf out;
    buf_init(&out, 8192);
    h1_put_status(&out, 404);
    assert_int_equal(h1_put_field(&out, "X-Name", "a value"), 0);
    assert_int_equal(h1_put_field(&out, "X-Evil", "a\r\nSet-Cookie: b"), RC_INVALID);
    assert_int_equal(h1_put_field(&out, "X Evil", "a"), RC_INVALID);
    assert_int_equal(h1_put_field(&out, "", "a"), RC_INVALID);
    h1_put_length(&out, 0);
    h1_put_end(&out);
    assert_string_equal(out.data,
                        "HTTP/1.1 404 Not Found\r\nX-Name: a value\r\nContent-Length: 0" END);
    assert_false(out.full);
    buf_deinit(&out);
    buf_init(&out, 10);
    assert_int_equal(h1_put_field(&out, "X-Name", "a value"), RC_FULL);
    h1_put_length(&out, 1);
    assert_true(out.full);
    buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_request),
        cmocka_unit_test(test_targets),
        cmocka_unit_test(test_request_connection),
        cmocka_unit_test(test_request_refused),
        cmocka_unit_test(test_response),
        cmocka_unit_test(test_response_connection),
        cmocka_unit_test(test_drop_field),
        cmocka_unit_test(test_own_heads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
