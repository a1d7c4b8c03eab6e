/*
 * Responses to checks, in one piece and split at every byte.
 */
#include "node/base/mem.h"
#include "node/health/judge.h"
#include "tests/support/unit.h"

static struct check_spec *spec_of(const char *method, const char *body)
{
    struct check_config config = {
        .type = CHECK_HTTP,
        .pace = {.interval_ms = 1, .interval_down_ms = 1, .timeout_ms = 1, .rise = 1, .fall = 1},
        .method = method,
        .body = body};
    struct check_spec *spec = NULL;
    assert_int_equal(check_spec_new(&config, &spec), RC_OK);
    return spec;
}

/* Feed in pieces of `step` bytes, then end; the first result that is not pending. */
static enum look_result judge(const struct check_spec *spec, const char *bytes, size_t len,
                              size_t step, char why[LOOK_TEXT_MAX])
{
    struct judge judge;
    enum look_result result = LOOK_PENDING;
    judge_init(&judge, spec);
    why[0] = '\0';
    for (size_t at = 0; at < len && result == LOOK_PENDING; at += step) {
        result = judge_feed(&judge, bytes + at, MIN(step, len - at), why);
    }
    if (result == LOOK_PENDING) {
        result = judge_end(&judge, why);
    }
    judge_deinit(&judge);
    return result;
}

static void assert_judged(const char *method, const char *body, const char *bytes,
                          enum look_result wanted, const char *wanted_why)
{
    struct check_spec *spec = spec_of(method, body);
    size_t len = strlen(bytes);
    for (size_t step = 1; step <= MAX(len, (size_t)1); step++) {
        char why[LOOK_TEXT_MAX];
        enum look_result result = judge(spec, bytes, len, step, why);
        if (result != wanted || strcmp(why, wanted_why) != 0) {
            fail_msg("pieces of %zu: %s \"%s\"", step, look_result_label(result), why);
        }
    }
    check_spec_unref(spec);
}

static void test_statuses(void **state)
{
    (void)state;
    assert_judged(NULL, NULL, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", LOOK_GOOD, "");
    assert_judged(NULL, NULL, "HTTP/1.0 204 x\r\n\r\n", LOOK_GOOD, "");
    assert_judged(NULL, NULL, "HTTP/1.1 302 Found\r\nLocation: /x\r\n\r\n", LOOK_GOOD, "");
    assert_judged(NULL, NULL, "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n", LOOK_STATUS,
                  "status 503");
    assert_judged(NULL, NULL, "HTTP/1.1 101 Up\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
                  LOOK_STATUS, "status 101");
    assert_judged("HEAD", NULL, "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n", LOOK_GOOD, "");
}

static void test_interim_responses(void **state)
{
    (void)state;
    assert_judged(NULL, NULL, "HTTP/1.1 103 Hints\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", LOOK_GOOD, "");
    char many[1024] = "";
    size_t len = 0;
    for (size_t i = 0; i < 9; i++) {
        len += (size_t)snprintf(many + len, sizeof(many) - len, "HTTP/1.1 103 x\r\n\r\n");
    }
    assert_judged(NULL, NULL, many, LOOK_PROTOCOL, "too many interim responses");
}

static void test_ends(void **state)
{
    (void)state;
    assert_judged(NULL, NULL, "", LOOK_CLOSED, "connection closed without a response");
    assert_judged(NULL, NULL, "HTTP/1.1 200 OK\r\nA: b\r\n", LOOK_CLOSED,
                  "connection closed within the response");
    assert_judged(NULL, "xyz", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe", LOOK_CLOSED,
                  "connection closed within the body");
    assert_judged(NULL, "xyz", "HTTP/1.1 200 OK\r\n\r\nhello", LOOK_BODY,
                  "body does not contain \"xyz\"");
}

static void test_malformed(void **state)
{
    (void)state;
    struct check_spec *spec = spec_of(NULL, NULL);
    char why[LOOK_TEXT_MAX];
    const char *bad[] = {"SSH-2.0-OpenSSH_9.2\r\n", "HTTP/1.1 200 OK\r\nA : b\r\n\r\n",
                         "HTTP/2 200 OK\r\n\r\n", "\x16\x03\x01\x02"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(judge(spec, bad[i], strlen(bad[i]), 100, why), LOOK_PROTOCOL);
        assert_non_null(strstr(why, "no valid HTTP response: "));
    }
    check_spec_unref(spec);
}

static void test_bodies(void **state)
{
    (void)state;
    assert_judged(NULL, "hello", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n..hello..", LOOK_GOOD,
                  "");
    assert_judged(NULL, "hello", "HTTP/1.1 200 OK\r\n\r\nhello", LOOK_GOOD, "");
    assert_judged(NULL, "hello",
                  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n"
                  "0\r\n\r\n",
                  LOOK_GOOD, "");
    assert_judged(NULL, "hello",
                  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n2\r\nll\r\n"
                  "0\r\n\r\n",
                  LOOK_BODY, "body does not contain \"hello\"");
    assert_judged(NULL, "hello", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", LOOK_BODY,
                  "body does not contain \"hello\"");
    assert_judged(NULL, "hello", "HTTP/1.1 204 No\r\n\r\n", LOOK_BODY,
                  "body does not contain \"hello\"");
    assert_judged(NULL, "aab", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\naaaab", LOOK_GOOD, "");
    assert_judged(NULL, "hello", "HTTP/1.1 500 Oh\r\nContent-Length: 5\r\n\r\nhello", LOOK_STATUS,
                  "status 500");
}

/* The text counts where it ends within the first 64 kB. */
static void test_long_body(void **state)
{
    (void)state;
    struct check_spec *spec = spec_of(NULL, "needle");
    for (size_t shift = 0; shift < 3; shift++) {
        struct buf bytes;
        char why[LOOK_TEXT_MAX];
        buf_init(&bytes, 1 << 20);
        (void)buf_puts(&bytes, "HTTP/1.1 200 OK\r\n\r\n");
        for (size_t i = 0; i < CHECK_BODY_SEARCH_BYTES - 6 - 1 + shift; i++) {
            (void)buf_putc(&bytes, '.');
        }
        (void)buf_puts(&bytes, "needle and more");
        assert_false(bytes.full);
        enum look_result wanted = shift < 2 ? LOOK_GOOD : LOOK_BODY;
        assert_int_equal(judge(spec, bytes.data, bytes.len, 777, why), wanted);
        assert_int_equal(judge(spec, bytes.data, bytes.len, bytes.len, why), wanted);
        assert_string_equal(why,
                            shift < 2 ? "" : "body does not contain \"needle\" in its first 64 kB");
        buf_deinit(&bytes);
    }
    check_spec_unref(spec);
}

static void test_endless_head(void **state)
{
    (void)state;
    struct check_spec *spec = spec_of(NULL, NULL);
    struct judge judge;
    char why[LOOK_TEXT_MAX];
    judge_init(&judge, spec);
    enum look_result result = judge_feed(&judge, "HTTP/1.1 200 OK\r\nA: ", 20, why);
    char block[1000];
    memset(block, 'x', sizeof(block));
    for (size_t i = 0; i < 40 && result == LOOK_PENDING; i++) {
        result = judge_feed(&judge, block, sizeof(block), why);
    }
    assert_int_equal(result, LOOK_PROTOCOL);
    judge_deinit(&judge);
    check_spec_unref(spec);
}

static void test_labels(void **state)
{
    (void)state;
    for (size_t i = 0; i < LOOK_RESULT_COUNT; i++) {
        assert_true(strlen(look_result_label((enum look_result)i)) > 1);
    }
    assert_string_equal(look_result_label(LOOK_RESULT_COUNT), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_statuses),     cmocka_unit_test(test_interim_responses),
        cmocka_unit_test(test_ends),         cmocka_unit_test(test_malformed),
        cmocka_unit_test(test_bodies),       cmocka_unit_test(test_long_body),
        cmocka_unit_test(test_endless_head), cmocka_unit_test(test_labels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
