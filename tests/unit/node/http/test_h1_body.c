/*
 * Body decoder: every vector in one piece, cut at every byte, and byte by byte; and that what
 * the chunk writer makes is read back as it was.
 */
#include "tests/support/unit.h"

#include "node/http/h1_body.h"

struct got {
    int rc; /* RC_OK: done; RC_AGAIN: wants more */
    enum h1_fault fault;
    size_t used;
    struct buf data;
    struct buf trailers;
};

static void feed_part(struct h1_body *body, struct got *got, const char *bytes, size_t len)
{
    char *exact = malloc(len > 0 ? len : 1);
    size_t at = 0;
    memcpy(exact, bytes, len);
    while (at < len && !h1_body_done(body) && got->rc == RC_AGAIN) {
        struct h1_piece piece;
        uint64_t run = h1_body_run(body);
        int rc = h1_body_next(body, exact + at, len - at, &piece);
        if (rc != 0) {
            got->rc = rc;
            got->fault = body->fault;
            /* a fault is final */
            assert_int_equal(h1_body_next(body, exact + at, len - at, &piece), rc);
            break;
        }
        assert_true(piece.used > 0 && piece.used <= len - at && piece.data_len <= piece.used);
        assert_true(run == 0 || piece.data_len > 0);
        assert_int_equal(buf_put(&got->data, piece.data, piece.data_len), 0);
        at += piece.used;
        got->used += piece.used;
    }
    free(exact);
}

/* Cut into pieces that end at first, then every step bytes. */
static void feed(struct got *got, enum h1_framing framing, uint64_t length, const char *bytes,
                 size_t len, size_t first, size_t step)
{
    struct h1_body body;
    const struct h1_body_limits limits = {
        .body_bytes = 100, .overhead_bytes = 40, .trailer_bytes = 80, .trailer_count = 3};
    *got = (struct got){.rc = RC_AGAIN};
    buf_init(&got->data, 4096);
    buf_init(&got->trailers, 4096);
    h1_body_init(&body, framing, length, &limits, &got->trailers);
    for (size_t at = 0; at < len;) {
        size_t part = MIN(at == 0 && first > 0 ? first : step, len - at);
        feed_part(&body, got, bytes + at, part);
        at += part;
    }
    if (got->rc == RC_AGAIN && h1_body_done(&body)) {
        got->rc = RC_OK;
        assert_int_equal(h1_body_end(&body), RC_OK);
    } else if (framing != H1_BODY_UNTIL_CLOSE) {
        assert_int_equal(h1_body_end(&body), RC_CLOSED);
    }
    if (got->rc == RC_OK || got->rc == RC_AGAIN) {
        assert_int_equal(body.received, got->data.len);
    }
    (void)buf_puts(&got->data, "");
    (void)buf_puts(&got->trailers, "");
}

static void drop(struct got *got)
{
    buf_deinit(&got->data);
    buf_deinit(&got->trailers);
}

struct vector {
    const char *bytes;
    int rc;
    enum h1_fault fault;
    const char *data; /* NULL: not looked at */
    const char *trailers;
    size_t left; /* bytes behind the end */
};

#define BAD(bytes, fault)                                                                          \
    {                                                                                              \
        bytes, RC_INVALID, H1_FAULT_##fault, NULL, NULL, 0                                         \
    }
#define BIG(bytes, fault)                                                                          \
    {                                                                                              \
        bytes, RC_TOO_BIG, H1_FAULT_##fault, NULL, NULL, 0                                         \
    }

static const struct vector chunked[] = {
    {"5\r\nhello\r\n0\r\n\r\n", RC_OK, 0, "hello", "", 0},
    {"0\r\n\r\nGET / HTTP/1.1\r\n\r\n", RC_OK, 0, "", "", 18},
    {"A\r\n0123456789\r\na\r\nabcdefghij\r\n000\r\n\r\nx", RC_OK, 0, "0123456789abcdefghij", "", 1},
    {"1\r\n\r\r\n1\r\n\n\r\n0\r\n\r\n", RC_OK, 0, "\r\n", "", 0},
    {"5;e\r\nhello\r\n0;x=y;z=\"a;\\\"b\"\r\n\r\n", RC_OK, 0, "hello", "", 0},
    {"5 \t;e\r\nhello\r\n0\r\n\r\n", RC_OK, 0, "hello", "", 0},
    {"2\r\nok\r\n0\r\nX-Sum: 9\r\nContent-Length: 7\r\nX-B:\r\n\r\n", RC_OK, 0, "ok",
     "X-Sum: 9\r\nX-B:\r\n", 0},
    {"0\r\nHost: other\r\nTransfer-Encoding: x\r\nSET-COOKIE: a\r\n\r\n", RC_OK, 0, "", "", 0},
    {"5\r\nhel", RC_AGAIN, 0, "hel", "", 0},
    {"5\r\nhello\r\n", RC_AGAIN, 0, "hello", "", 0},
    {"5\r\nhello\r\n0\r\n", RC_AGAIN, 0, "hello", "", 0},
    {"5\r\nhello\r\n0\r\n\r", RC_AGAIN, 0, "hello", "", 0},
    BAD("\r\n5\r\nhello\r\n0\r\n\r\n", CHUNK_SIZE),
    BAD("-5\r\nhello\r\n", CHUNK_SIZE),
    BAD("+5\r\nhello\r\n", CHUNK_SIZE),
    BAD("0x5\r\nhello\r\n", CHUNK_SIZE),
    BAD("xyz\r\nhello\r\n", CHUNK_SIZE),
    BAD(" 5\r\nhello\r\n", CHUNK_SIZE),
    BAD(";e\r\n", CHUNK_SIZE),
    BAD("1000000000000001\r\n", CHUNK_SIZE),
    BAD("10000000000000005\r\nhello\r\n", CHUNK_SIZE),
    BAD("00000000000000005\r\nhello\r\n", CHUNK_SIZE),
    BAD("5,\r\nhello\r\n", CHUNK_SIZE),
    BAD("5 \r\nhello\r\n", CHUNK_LINE),
    BAD("5 5\r\nhello\r\n", CHUNK_LINE),
    BAD("5\nhello\n0\n\n", CHUNK_SIZE),
    BAD("5\rhello\r\n", CHUNK_LINE),
    BAD("2;a\nxx\r\n", CHUNK_LINE),
    BAD("2;a\rxx\r\n", CHUNK_LINE),
    BAD("2;a=\"\r\nxx\r\n", CHUNK_LINE),
    BAD("2;a=\"\\\r\nxx\r\n", CHUNK_LINE),
    BAD("2;a\x01\r\nxx\r\n", CHUNK_LINE),
    BAD("3\r\nhello\r\n0\r\n\r\n", CHUNK_DATA),
    BAD("5\r\nhelloXY0\r\n\r\n", CHUNK_DATA),
    BAD("5\r\nhello\n0\r\n\r\n", CHUNK_DATA),
    BAD("5\r\nhello\r0\r\n\r\n", CHUNK_DATA),
    BAD("0\n\n", CHUNK_SIZE),
    BAD("0\r\n\nX", TRAILER),
    BAD("0\r\n\rX", TRAILER),
    BAD("0\r\nX-A: b\nGET / HTTP/1.1\r\n\r\n", TRAILER),
    BAD("0\r\nX-A: b\rc\r\n\r\n", TRAILER),
    BAD("0\r\n fold: b\r\n\r\n", TRAILER),
    BAD("0\r\nX: a\r\n b\r\n\r\n", TRAILER),
    BAD("0\r\nX : a\r\n\r\n", TRAILER),
    BAD("0\r\n: a\r\n\r\n", TRAILER),
    BAD("0\r\nX\r\n\r\n", TRAILER),
    BAD("5;01234567890123456789012345678901234567890\r\n", CHUNK_OVERHEAD),
    BIG("0\r\nA: 1\r\nB: 2\r\nC: 3\r\nD: 4\r\n\r\n", TRAILER_TOO_BIG),
    BIG("0\r\nA: 01234567890123456789012345678901234567890123456789012345678901234567890123456789",
        TRAILER_TOO_BIG),
    BIG("65\r\n", BODY_TOO_BIG),
    BIG("100000005\r\nhello\r\n", BODY_TOO_BIG),
    BIG("5\r\nhello\r\n60\r\n", BODY_TOO_BIG),
};

static void expect(const struct got *got, const struct vector *vector, size_t len)
{
    if (got->rc != vector->rc || got->fault != vector->fault) {
        fail_msg("%s: rc %d fault %s", vector->bytes, got->rc, h1_fault_label(got->fault));
    }
    if (vector->data != NULL) {
        assert_string_equal(got->data.data, vector->data);
        assert_string_equal(got->trailers.data, vector->trailers);
        assert_int_equal(got->used, len - vector->left);
    }
}

static void test_chunked(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(chunked); i++) {
        const struct vector *vector = &chunked[i];
        size_t len = strlen(vector->bytes);
        struct got got;
        for (size_t cut = 0; cut < len; cut++) {
            feed(&got, H1_BODY_CHUNKED, 0, vector->bytes, len, cut, len);
            expect(&got, vector, len);
            drop(&got);
        }
        feed(&got, H1_BODY_CHUNKED, 0, vector->bytes, len, 1, 1);
        expect(&got, vector, len);
        drop(&got);
    }
}

static void test_overhead(void **state)
{
    (void)state;
    /* 30 extension bytes a chunk: one byte of data does not pay for them, ten do */
    struct got got;
    struct buf raw;
    for (int size = 1; size <= 8; size += 7) {
        buf_init(&raw, 4096);
        for (int i = 0; i < 10; i++) {
            (void)buf_printf(&raw, "%d;%030d\r\n%.*s\r\n", size, 0, size, "12345678");
        }
        feed(&got, H1_BODY_CHUNKED, 0, raw.data, raw.len, 0, raw.len);
        assert_int_equal(got.fault, size == 1 ? H1_FAULT_CHUNK_OVERHEAD : H1_FAULT_NONE);
        drop(&got);
        buf_deinit(&raw);
    }
}

static void test_trailers_dropped(void **state)
{
    (void)state;
    static const char raw[] = "0\r\nX: 1\r\n\r\nrest";
    struct h1_body body;
    struct h1_piece piece;
    h1_body_init(&body, H1_BODY_CHUNKED, 0, NULL, NULL);
    assert_int_equal(h1_body_next(&body, raw, sizeof(raw) - 1, &piece), 0);
    assert_true(h1_body_done(&body));
    assert_int_equal(piece.used, sizeof(raw) - 1 - 4);
    assert_int_equal(piece.data_len, 0);
}

/* A full trailer buffer is a refusal, not a cut field. */
static void test_trailers_full(void **state)
{
    (void)state;
    static const char raw[] = "0\r\nX-Long: 0123456789\r\n\r\n";
    struct h1_body body;
    struct h1_piece piece;
    struct buf trailers;
    buf_init(&trailers, 10);
    h1_body_init(&body, H1_BODY_CHUNKED, 0, NULL, &trailers);
    assert_int_equal(h1_body_next(&body, raw, sizeof(raw) - 1, &piece), RC_TOO_BIG);
    assert_int_equal(body.fault, H1_FAULT_TRAILER_TOO_BIG);
    buf_deinit(&trailers);
}

static void test_length(void **state)
{
    (void)state;
    struct got got;
    for (size_t step = 1; step <= 8; step++) {
        feed(&got, H1_BODY_LENGTH, 5, "hello+++", 8, 0, step);
        assert_int_equal(got.rc, RC_OK);
        assert_string_equal(got.data.data, "hello");
        assert_int_equal(got.used, 5);
        drop(&got);
    }
    feed(&got, H1_BODY_LENGTH, 5, "hell", 4, 0, 4);
    assert_int_equal(got.rc, RC_AGAIN);
    drop(&got);
    feed(&got, H1_BODY_LENGTH, 0, "+", 1, 0, 1);
    assert_int_equal(got.rc, RC_OK);
    assert_int_equal(got.used, 0);
    drop(&got);
    feed(&got, H1_BODY_NONE, 0, "+", 1, 0, 1);
    assert_int_equal(got.rc, RC_OK);
    drop(&got);
    feed(&got, H1_BODY_LENGTH, 101, "x", 1, 0, 1);
    assert_int_equal(got.rc, RC_TOO_BIG);
    assert_int_equal(got.fault, H1_FAULT_BODY_TOO_BIG);
    drop(&got);
}

static void test_until_close(void **state)
{
    (void)state;
    struct got got;
    feed(&got, H1_BODY_UNTIL_CLOSE, 0, "all of it", 9, 0, 4);
    assert_int_equal(got.rc, RC_AGAIN);
    assert_string_equal(got.data.data, "all of it");
    drop(&got);
    char large[101];
    memset(large, 'x', sizeof(large));
    feed(&got, H1_BODY_UNTIL_CLOSE, 0, large, 100, 0, 30);
    assert_int_equal(got.rc, RC_AGAIN);
    drop(&got);
    feed(&got, H1_BODY_UNTIL_CLOSE, 0, large, 101, 0, 30);
    assert_int_equal(got.rc, RC_TOO_BIG);
    drop(&got);
    struct h1_body body;
    h1_body_init(&body, H1_BODY_UNTIL_CLOSE, 0, NULL, NULL);
    assert_false(h1_body_done(&body));
    assert_int_equal(h1_body_run(&body), UINT64_MAX);
    assert_int_equal(h1_body_end(&body), RC_OK);
    assert_true(h1_body_done(&body));
}

static void test_skip(void **state)
{
    (void)state;
    struct h1_body body;
    struct h1_piece piece;
    h1_body_init(&body, H1_BODY_CHUNKED, 0, NULL, NULL);
    assert_int_equal(h1_body_run(&body), 0);
    assert_int_equal(h1_body_next(&body, "5\r\nh", 4, &piece), 0);
    assert_int_equal(h1_body_run(&body), 4);
    h1_body_skip(&body, 4);
    assert_int_equal(h1_body_run(&body), 0);
    assert_int_equal(body.received, 5);
    assert_int_equal(h1_body_next(&body, "\r\n0\r\n\r\n", 7, &piece), 0);
    assert_true(h1_body_done(&body));
}

static void test_chunk_head(void **state)
{
    (void)state;
    static const struct {
        uint64_t size;
        const char *text;
    } rows[] = {{1, "1\r\n"},
                {15, "f\r\n"},
                {16, "10\r\n"},
                {8000, "1f40\r\n"},
                {UINT64_MAX, "ffffffffffffffff\r\n"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char out[H1_CHUNK_HEAD_MAX];
        size_t len = h1_chunk_head(out, rows[i].size);
        assert_int_equal(len, strlen(rows[i].text));
        assert_memory_equal(out, rows[i].text, len);
    }
}

static void test_round_trip(void **state)
{
    (void)state;
    struct buf out;
    struct got got;
    buf_init(&out, 200);
    assert_int_equal(h1_chunk_put(&out, "hello", 5), 0);
    assert_int_equal(h1_chunk_put(&out, "", 0), 0);
    assert_int_equal(h1_chunk_put(&out, "0123456789012345678", 19), 0);
    assert_int_equal(h1_chunk_end(&out, "X: 1\r\n", 6), 0);
    assert_string_equal(out.data, "5\r\nhello\r\n13\r\n0123456789012345678\r\n0\r\nX: 1\r\n\r\n");
    feed(&got, H1_BODY_CHUNKED, 0, out.data, out.len, 0, 3);
    assert_int_equal(got.rc, RC_OK);
    assert_string_equal(got.data.data, "hello0123456789012345678");
    assert_string_equal(got.trailers.data, "X: 1\r\n");
    drop(&got);
    buf_deinit(&out);
    buf_init(&out, 8);
    assert_int_equal(h1_chunk_put(&out, "hello", 5), RC_FULL);
    assert_int_equal(out.len, 0);
    buf_reset(&out);
    assert_int_equal(h1_chunk_end(&out, NULL, 0), 0);
    assert_string_equal(out.data, "0\r\n\r\n");
    buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chunked),
        cmocka_unit_test(test_overhead),
        cmocka_unit_test(test_trailers_dropped),
        cmocka_unit_test(test_trailers_full),
        cmocka_unit_test(test_length),
        cmocka_unit_test(test_until_close),
        cmocka_unit_test(test_skip),
        cmocka_unit_test(test_chunk_head),
        cmocka_unit_test(test_round_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
