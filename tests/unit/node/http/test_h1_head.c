/*
 * Heads as a whole: start lines, targets, Host, framing, limits. Every vector is parsed whole, cut
 * at every byte, and byte by byte.
 */
#include "tests/unit/node/http/heads.h"

#define H "Host: a.test\r\n"

struct vector {
    const char *bytes;
    size_t len; /* 0: strlen */
    enum h1_fault fault;
    const char *text; /* NULL: refused (fault set), or incomplete */
};

#define OK(bytes, text)                                                                            \
    {                                                                                              \
        bytes, sizeof(bytes) - 1, H1_FAULT_NONE, text                                              \
    }
#define BAD(fault, bytes)                                                                          \
    {                                                                                              \
        bytes, sizeof(bytes) - 1, H1_FAULT_##fault, NULL                                           \
    }
#define INCOMPLETE(bytes)                                                                          \
    {                                                                                              \
        bytes, sizeof(bytes) - 1, H1_FAULT_NONE, NULL                                              \
    }

static const struct vector requests[] = {
    /* start lines and targets */
    OK("GET / HTTP/1.1\r\n" H "\r\n",
       "len=32 1.1 none method=GET target=/ path=/ host=a.test keep [Host|a.test]"),
    OK("GET /a/b?c=d?e HTTP/1.1\r\n" H "\r\nrest",
       "len=41 1.1 none method=GET target=/a/b?c=d?e path=/a/b query=c=d?e host=a.test keep "
       "[Host|a.test]"),
    OK("GET /a? HTTP/1.0\r\n\r\n", "len=20 1.0 none method=GET target=/a? path=/a query="),
    OK("\r\n\r\nGET / HTTP/1.1\r\n" H "\r\n",
       "len=36 1.1 none method=GET target=/ path=/ host=a.test keep [Host|a.test]"),
    OK("BREW / HTTP/1.1\r\n" H "\r\n",
       "len=33 1.1 none method=BREW target=/ path=/ host=a.test keep [Host|a.test]"),
    OK("M-E_T.H / HTTP/1.1\r\n" H "\r\n",
       "len=36 1.1 none method=M-E_T.H target=/ path=/ host=a.test keep [Host|a.test]"),
    OK("get / HTTP/1.1\r\n" H "\r\n",
       "len=32 1.1 none method=get target=/ path=/ host=a.test keep [Host|a.test]"),
    OK("GET http://A.test HTTP/1.1\r\n" H "\r\n",
       "len=44 1.1 none method=GET target=http://A.test authority=A.test host=a.test absolute keep "
       "[Host|a.test]"),
    OK("GET HTTPS://a.test:443?x HTTP/1.1\r\n" H "\r\n",
       "len=51 1.1 none method=GET target=HTTPS://a.test:443?x query=x authority=a.test:443 "
       "host=a.test absolute keep [Host|a.test]"),
    OK("GET http://b.test:8/x HTTP/1.0\r\n\r\n",
       "len=34 1.0 none method=GET target=http://b.test:8/x path=/x authority=b.test:8 "
       "host=b.test absolute"),
    OK("OPTIONS * HTTP/1.1\r\n" H "\r\n",
       "len=36 1.1 none method=OPTIONS target=* path=* host=a.test asterisk keep [Host|a.test]"),
    OK("CONNECT a.test:80 HTTP/1.1\r\nHost: a.test:80\r\n\r\n",
       "len=47 1.1 none method=CONNECT target=a.test:80 authority=a.test:80 host=a.test authority "
       "keep [Host|a.test:80]"),
    OK("GET //a//b/ HTTP/1.1\r\n" H "\r\n",
       "len=38 1.1 none method=GET target=//a//b/ path=//a//b/ host=a.test keep [Host|a.test]"),
    OK("GET /a;v=1/b,c!$'()*@:=&%zz HTTP/1.1\r\n" H "\r\n",
       "len=54 1.1 none method=GET target=/a;v=1/b,c!$'()*@:=&%zz path=/a;v=1/b,c!$'()*@:=&%zz "
       "host=a.test keep [Host|a.test]"),
    BAD(CONTROL_BYTE, "GET / HTTP/1.1\rHost: a.test\r\r"),
    BAD(CONTROL_BYTE, "GET / HTTP/1.1\nHost: a.test\n\n"),
    BAD(CONTROL_BYTE, "GET / HTTP/1.1\r\nHost: a.test\n\r\n"),
    BAD(CONTROL_BYTE, "GET /a\0b HTTP/1.1\r\n" H "\r\n"),
    BAD(CONTROL_BYTE, "GE\1T / HTTP/1.1\r\n" H "\r\n"),
    BAD(CONTROL_BYTE, "\x16\x03\x01\x00\x4a\x01"),
    BAD(START_LINE, "\r\n\r\n\r\nGET / HTTP/1.1\r\n" H "\r\n"),
    BAD(START_LINE, "GET /\r\n"),
    BAD(START_LINE, "GET / http/1.1\r\n" H "\r\n"),
    BAD(START_LINE, "GET / HTTP/1.10\r\n" H "\r\n"),
    BAD(START_LINE, "GET / HTTP/1.1 x\r\n" H "\r\n"),
    BAD(START_LINE, "GET / HTTP/1.1 \r\n" H "\r\n"),
    BAD(START_LINE, "GET / 1.1\r\n" H "\r\n"),
    BAD(START_LINE, "GET HTTP/1.1\r\n" H "\r\n"),
    BAD(VERSION, "GET / HTTP/2.0\r\n" H "\r\n"),
    BAD(VERSION, "GET / HTTP/1.2\r\n" H "\r\n"),
    BAD(VERSION, "GET / HTTP/0.9\r\n" H "\r\n"),
    BAD(VERSION, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    BAD(TARGET, "GET  /  HTTP/1.1\r\n" H "\r\n"),
    BAD(TARGET, "GET /a b HTTP/1.1\r\n" H "\r\n"),
    BAD(TARGET, "GET first HTTP/1.1\r\n" H "\r\n"),
    BAD(TARGET, "GET * HTTP/1.1\r\n" H "\r\n"),
    BAD(TARGET, "GET /a#b HTTP/1.1\r\n" H "\r\n"),
    BAD(TARGET, "GET /a?b#c HTTP/1.1\r\n" H "\r\n"),
    BAD(TARGET, "GET /caf\xc3\xa9 HTTP/1.1\r\n" H "\r\n"),
    BAD(TARGET, "GET ftp://a.test/ HTTP/1.1\r\n" H "\r\n"),
    BAD(TARGET, "GET http:///x HTTP/1.1\r\n" H "\r\n"),
    BAD(TARGET, "GET http://u@a.test/x HTTP/1.1\r\n" H "\r\n"),
    BAD(TARGET, "GET http://a.test:99999/x HTTP/1.1\r\n" H "\r\n"),
    BAD(TARGET, "GET a.test:80 HTTP/1.1\r\n" H "\r\n"),
    BAD(TARGET, "CONNECT /x HTTP/1.1\r\n" H "\r\n"),
    BAD(TARGET, "CONNECT a.test HTTP/1.1\r\n" H "\r\n"),
    BAD(TARGET, "GET /a\tb HTTP/1.1\r\n" H "\r\n"),
    BAD(METHOD, "GET\t/\tHTTP/1.1\r\n" H "\r\n"),
    BAD(METHOD, "G(E)T / HTTP/1.1\r\n" H "\r\n"),
    BAD(METHOD, " / HTTP/1.1\r\n" H "\r\n"),
    BAD(METHOD, "\x80\x81\xff\r\n\r\n"),
    BAD(METHOD, "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA / HTTP/1.1\r\n" H "\r\n"),
    /* Host */
    OK("GET / HTTP/1.1\r\nHost: A.Test.:8080\r\n\r\n",
       "len=38 1.1 none method=GET target=/ path=/ host=a.test keep [Host|A.Test.:8080]"),
    BAD(HOST, "GET / HTTP/1.1\r\n\r\n"),
    BAD(HOST, "GET / HTTP/1.1\r\nHost:\r\n\r\n"),
    BAD(HOST, "GET / HTTP/1.0\r\nHost: \r\n\r\n"),
    BAD(HOST, "GET / HTTP/1.1\r\n" H "Host: b.test\r\n\r\n"),
    BAD(HOST, "GET / HTTP/1.1\r\n" H "HOST: a.test\r\n\r\n"),
    BAD(HOST, "GET / HTTP/1.1\r\nHost: b.test@a.test\r\n\r\n"),
    BAD(HOST, "GET / HTTP/1.1\r\nHost: a.test b.test\r\n\r\n"),
    BAD(HOST, "GET / HTTP/1.1\r\nHost: a.test\tb.test\r\n\r\n"),
    BAD(HOST, "GET / HTTP/1.1\r\nHost: a.test/b\r\n\r\n"),
    BAD(HOST, "GET / HTTP/1.1\r\nHost: a.test:80b\r\n\r\n"),
    BAD(HOST, "GET http://b.test/ HTTP/1.1\r\n" H "\r\n"),
    BAD(HOST, "GET http://a.test:81/ HTTP/1.1\r\n" H "\r\n"),
    BAD(HOST, "GET http://a.test/ HTTP/1.1\r\nHost: a.test:443\r\n\r\n"),
    BAD(HOST, "GET https://a.test/ HTTP/1.1\r\nHost: a.test:80\r\n\r\n"),
    /* incomplete, but sound so far */
    INCOMPLETE(""),
    INCOMPLETE("\r\n"),
    INCOMPLETE("GET / HTT"),
    INCOMPLETE("GET / HTTP/1.1\r"),
    INCOMPLETE("GET / HTTP/1.1\r\n" H),
    INCOMPLETE("GET / HTTP/1.1\r\n" H "\r"),
};

static const struct vector responses[] = {
    OK("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
       "len=38 1.1 length:5 status=200 reason=OK keep [Content-Length|5]"),
    OK("HTTP/1.1 299 \r\nContent-Length: 0\r\n\r\n",
       "len=36 1.1 length:0 status=299 keep [Content-Length|0]"),
    OK("HTTP/1.1 299\r\nContent-Length: 0\r\n\r\n",
       "len=35 1.1 length:0 status=299 keep [Content-Length|0]"),
    OK("HTTP/1.1 418 I'm a \xe4 pot\r\nTransfer-Encoding: Chunked\r\n\r\n",
       "len=56 1.1 chunked status=418 reason=I'm a \xe4 pot keep -[Transfer-Encoding|Chunked]"),
    OK("HTTP/1.0 200 OK\r\n\r\n", "len=19 1.0 close status=200 reason=OK"),
    OK("HTTP/1.1 200 OK\r\nX: y\r\n\r\n", "len=25 1.1 close status=200 reason=OK [X|y]"),
    OK("HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 1\r\n\r\n",
       "len=62 1.0 length:1 status=200 reason=OK keep -[Connection|Keep-Alive] "
       "[Content-Length|1]"),
    OK("HTTP/1.1 200 OK\r\nConnection: x, CLOSE\r\nContent-Length: 1\r\nX: 2\r\n\r\n",
       "len=66 1.1 length:1 status=200 reason=OK -[Connection|x, CLOSE] [Content-Length|1] "
       "-[X|2]"),
    OK("HTTP/1.1 204 None\r\nTransfer-Encoding: chunked\r\n\r\n",
       "len=49 1.1 none status=204 reason=None keep -[Transfer-Encoding|chunked]"),
    OK("HTTP/1.1 304 Same\r\nContent-Length: 40\r\n\r\n",
       "len=41 1.1 none status=304 reason=Same keep [Content-Length|40]"),
    OK("HTTP/1.1 103 Hints\r\nLink: </a>\r\n\r\n",
       "len=34 1.1 none status=103 reason=Hints keep [Link|</a>]"),
    OK("HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
       "len=67 1.1 none status=101 reason=Switching upgrade -[Upgrade|websocket] "
       "-[Connection|Upgrade]"),
    OK("HTTP/1.1 200 OK\r\nUpgrade: h2c\r\nContent-Length: 0\r\n\r\n",
       "len=52 1.1 length:0 status=200 reason=OK keep -[Upgrade|h2c] [Content-Length|0]"),
    BAD(LENGTH_AND_CODING,
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"),
    BAD(LENGTH, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 7\r\n\r\n"),
    BAD(LENGTH, "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"),
    BAD(CODING, "HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\n"),
    BAD(CODING, "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
    BAD(FIELD_NAME, "HTTP/1.1 200 OK\r\nX-Test : a\r\n\r\n"),
    BAD(FOLD, "HTTP/1.1 200 OK\r\nX-Test: a\r\n b\r\n\r\n"),
    BAD(CONTROL_BYTE, "HTTP/1.1 200 OK\r\nX: a\rSet-Cookie: b=1\r\n\r\n"),
    BAD(CONTROL_BYTE, "HTTP/1.1 200 OK\nContent-Length: 2\n\nok"),
    BAD(STATUS, "HTTP/1.1 abc OK\r\n\r\n"),
    BAD(STATUS, "HTTP/1.1 99 OK\r\n\r\n"),
    BAD(STATUS, "HTTP/1.1 2000 OK\r\n\r\n"),
    BAD(STATUS, "HTTP/1.1 099 OK\r\n\r\n"),
    BAD(VERSION, "HTTP/2.0 200 OK\r\n\r\n"),
    BAD(START_LINE, "just some text\r\n\r\nmore"),
    BAD(START_LINE, "\r\nHTTP/1.1 200 OK\r\n\r\n"),
    BAD(STATUS, "HTTP/1.1  200 OK\r\n\r\n"),
    INCOMPLETE("HTTP/1.1 200 OK\r\nContent-Le"),
};

static void check(const struct vector *vector, bool is_request)
{
    struct heads_parse got;
    heads_parse_all(vector->bytes, vector->len, is_request, H1_GET, &got);
    if (got.fault != vector->fault || (vector->text != NULL && got.rc != 0)) {
        fail_msg("%s: rc %d, fault %s", vector->bytes, got.rc, h1_fault_label(got.fault));
    }
    assert_string_equal(got.text, vector->text != NULL ? vector->text : "");
    if (vector->text == NULL && vector->fault == H1_FAULT_NONE) {
        assert_int_equal(got.rc, RC_AGAIN);
    }
}

static void test_requests(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
        check(&requests[i], true);
    }
}

static void test_responses(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(responses); i++) {
        check(&responses[i], false);
    }
}

static void test_response_to_head(void **state)
{
    (void)state;
    static const char length[] = "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n";
    static const char chunked[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    struct heads_parse got;
    heads_parse_all(length, sizeof(length) - 1, false, H1_HEAD, &got);
    assert_string_equal(got.text, "len=39 1.1 none status=200 reason=OK keep [Content-Length|50]");
    heads_parse_all(chunked, sizeof(chunked) - 1, false, H1_HEAD, &got);
    assert_string_equal(got.text,
                        "len=47 1.1 none status=200 reason=OK keep -[Transfer-Encoding|chunked]");
}

/* A request with a target and one field of these sizes. */
static void sized(struct buf *out, size_t target, size_t value)
{
    buf_reset(out);
    (void)buf_puts(out, "GET /");
    for (size_t i = 1; i < target; i++) {
        (void)buf_putc(out, 'u');
    }
    (void)buf_puts(out, " HTTP/1.1\r\n" H "X: ");
    for (size_t i = 0; i < value; i++) {
        (void)buf_putc(out, 'v');
    }
    (void)buf_puts(out, "\r\n\r\n");
    assert_false(out->full);
}

static void expect_sized(size_t target, size_t value, int rc, enum h1_fault fault)
{
    struct buf raw;
    struct h1_scan scan = {0};
    struct heads_parse got;
    buf_init(&raw, 100000);
    sized(&raw, target, value);
    assert_int_equal(heads_try(&scan, raw.data, raw.len, true, H1_GET, &got), rc);
    assert_int_equal(got.fault, fault);
    scan = (struct h1_scan){0};
    int last = RC_AGAIN;
    for (size_t len = 0; len <= raw.len && last == RC_AGAIN; len += 7) {
        last = heads_try(&scan, raw.data, len, true, H1_GET, &got);
    }
    if (last == RC_AGAIN) {
        last = heads_try(&scan, raw.data, raw.len, true, H1_GET, &got);
    }
    assert_int_equal(last, rc);
    assert_int_equal(got.fault, fault);
    buf_deinit(&raw);
}

static void test_limits(void **state)
{
    (void)state;
    expect_sized(1024, 10, RC_OK, H1_FAULT_NONE);
    expect_sized(1025, 10, RC_TOO_BIG, H1_FAULT_TARGET_TOO_LONG);
    expect_sized(50000, 10, RC_TOO_BIG, H1_FAULT_TARGET_TOO_LONG);
    /* 4096: "GET /" " HTTP/1.1\r\n" Host "X: " "\r\n\r\n" are 37 bytes */
    expect_sized(1, 4059, RC_OK, H1_FAULT_NONE);
    expect_sized(1, 4060, RC_TOO_BIG, H1_FAULT_HEAD_TOO_BIG);
    expect_sized(1, 60000, RC_TOO_BIG, H1_FAULT_HEAD_TOO_BIG);
}

static void test_field_count(void **state)
{
    (void)state;
    for (int count = 30; count <= 33; count++) {
        struct buf raw;
        struct heads_parse got;
        buf_init(&raw, 100000);
        (void)buf_puts(&raw, "GET / HTTP/1.1\r\n" H);
        for (int i = 1; i < count; i++) {
            (void)buf_puts(&raw, "X: 1\r\n");
        }
        (void)buf_puts(&raw, "\r\n");
        heads_parse_all(raw.data, raw.len, true, H1_GET, &got);
        assert_int_equal(got.fault, count > 32 ? H1_FAULT_FIELDS_TOO_MANY : H1_FAULT_NONE);
        assert_int_equal(got.rc, count > 32 ? RC_TOO_BIG : RC_OK);
        buf_deinit(&raw);
    }
}

/* The largest head that spans can describe, and limits beyond it. */
static void test_span_limit(void **state)
{
    (void)state;
    static struct h1_field fields[8];
    const struct h1_limits limits = {
        .head_bytes = 1u << 30, .field_count = 1u << 20, .target_bytes = 1u << 30};
    for (size_t total = 65000; total < 66000; total += 100) {
        struct buf raw;
        struct h1_head head;
        struct h1_scan scan = {0};
        h1_head_init(&head, fields, 8);
        buf_init(&raw, 100000);
        sized(&raw, 1, total - 37);
        assert_int_equal(raw.len, total);
        int rc = h1_parse_request(&scan, raw.data, raw.len, &limits, &head);
        assert_int_equal(rc, total <= 65531 ? RC_OK : RC_TOO_BIG);
        buf_deinit(&raw);
    }
}

/* A head that came whole leaves no trace of the one before it. */
static void test_reuse(void **state)
{
    (void)state;
    static const char first[] = "POST http://a.test/x?y HTTP/1.1\r\n" H
                                "Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n"
                                "TE: trailers\r\nConnection: close\r\n\r\n";
    static const char second[] = "GET / HTTP/1.0\r\n\r\n";
    struct h1_field fields[32];
    struct h1_head head;
    char text[512];
    h1_head_init(&head, fields, 32);
    struct h1_scan scan = {0};
    assert_int_equal(h1_parse_request(&scan, first, sizeof(first) - 1, &heads_limits, &head), 0);
    assert_true(head.expect_continue && head.te_trailers && head.close_option);
    scan = (struct h1_scan){0};
    assert_int_equal(h1_parse_request(&scan, second, sizeof(second) - 1, &heads_limits, &head), 0);
    heads_describe(&head, second, text, sizeof(text));
    assert_string_equal(text, "len=18 1.0 none method=GET target=/ path=/");
    assert_int_equal(head.present, 0);
    assert_false(head.length_announced || head.close_option);
}

/* The oracle does refuse: what it is told wrongly, and what only it would refuse. */
static void test_oracle_objects(void **state)
{
    (void)state;
    static const char length[] = "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n";
    struct h1_field fields[8];
    struct h1_head head;
    struct h1_scan scan = {0};
    h1_head_init(&head, fields, 8);
    assert_int_equal(h1_parse_request(&scan, length, sizeof(length) - 1, &heads_limits, &head), 0);
    assert_true(h1_oracle_agrees(&head, length, 0, true));
    head.content_length = 6;
    assert_false(h1_oracle_agrees(&head, length, 0, true));
    head.content_length = 5;
    head.present |= H1_BIT(H1_TRANSFER_ENCODING);
    assert_false(h1_oracle_agrees(&head, length, 0, true));
    head.present &= ~H1_BIT(H1_TRANSFER_ENCODING);
    head.length_announced = false;
    assert_false(h1_oracle_agrees(&head, length, 0, true));
    head.length_announced = true;
    assert_false(h1_oracle_agrees(&head, length, 0, false));
    static const size_t places[] = {4, 16, 19, sizeof(length) - 2};
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        char raw[sizeof(length)];
        memcpy(raw, length, sizeof(length));
        raw[places[i]] = '\x01';
        assert_false(h1_oracle_agrees(&head, raw, 0, true));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_responses),
        cmocka_unit_test(test_response_to_head),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_field_count),
        cmocka_unit_test(test_span_limit),
        cmocka_unit_test(test_reuse),
        cmocka_unit_test(test_oracle_objects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
