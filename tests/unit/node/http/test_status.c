/*
 * Error responses are responses that this unit's own parser takes; dates are right.
 */
#include "tests/unit/node/http/heads.h"

#include "node/http/status.h"

static void test_reasons(void **state)
{
    (void)state;
    static const int known[] = {100, 200, 204, 301, 400, 404, 408, 413, 414,
                                421, 431, 500, 501, 502, 503, 504, 505, 507};
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        assert_true(strlen(status_reason(known[i])) > 1);
        assert_null(strstr(status_reason(known[i]), "Error E"));
    }
    assert_string_equal(status_reason(404), "Not Found");
    assert_string_equal(status_reason(418), "Client Error");
    assert_string_equal(status_reason(599), "Server Error");
    assert_string_equal(status_reason(99), "Unknown");
    assert_string_equal(status_reason(600), "Unknown");
    assert_string_equal(status_reason(-5), "Unknown");
    assert_int_equal(strlen(STATUS_CONTINUE), STATUS_CONTINUE_LEN);
}

static void test_answers(void **state)
{
    (void)state;
    static const int statuses[] = {400, 404, 405, 408, 413, 414, 417, 421,
                                   429, 431, 500, 501, 502, 503, 504, 505};
    static struct h1_field fields[32];
    for (size_t i = 0; i < ARRAY_LEN(statuses) * 6; i++) {
        struct status_answer answer = {.status = statuses[i / 6],
                                       .end = (enum status_end)(i % 3),
                                       .is_head = i % 2 == 1,
                                       .date = "Sun, 06 Nov 1994 08:49:37 GMT",
                                       .extra = i % 2 == 0 ? "Retry-After: 1\r\n" : NULL};
        enum h1_method method = answer.is_head ? H1_HEAD : H1_GET;
        struct buf out;
        struct h1_head head;
        struct h1_scan scan = {0};
        buf_init(&out, 8192);
        h1_head_init(&head, fields, 32);
        assert_int_equal(status_put_answer(&out, &answer), 0);
        assert_int_equal(h1_parse_response(&scan, out.data, out.len, method, &heads_limits, &head),
                         0);
        assert_int_equal(head.status, answer.status);
        assert_int_equal(head.keep_alive, answer.end != STATUS_END_CLOSE);
        assert_true(head.length_announced && head.content_length > 100);
        assert_int_equal(out.len - head.len, answer.is_head ? 0 : head.content_length);
        assert_int_equal(h1_find(&head, H1_RETRY_AFTER) != NULL, answer.extra != NULL);
        assert_non_null(h1_find(&head, H1_DATE));
        buf_deinit(&out);
    }
}

static void test_detail(void **state)
{
    (void)state;
    struct buf out;
    buf_init(&out, 8192);
    struct status_answer answer = {.status = 503, .detail = "<script>\"a&b\"</script>"};
    assert_int_equal(status_put_answer(&out, &answer), 0);
    assert_non_null(strstr(out.data, "&lt;script&gt;&quot;a&amp;b&quot;&lt;/script&gt;"));
    assert_null(strstr(out.data, "<script>"));
    buf_reset(&out);
    char large[5000];
    memset(large, '<', sizeof(large));
    large[sizeof(large) - 1] = '\0';
    answer.detail = large;
    assert_int_equal(status_put_answer(&out, &answer), 0);
    assert_non_null(strstr(out.data, "503 Service Unavailable"));
    buf_deinit(&out);
    buf_init(&out, 100);
    (void)buf_puts(&out, "x");
    assert_int_equal(status_put_answer(&out, &answer), RC_FULL);
    assert_string_equal(out.data, "x");
    buf_deinit(&out);
}

static void test_date(void **state)
{
    (void)state;
    struct http_date cache = {0};
    assert_string_equal(http_date_text(&cache, 784111777000), "Sun, 06 Nov 1994 08:49:37 GMT");
    assert_string_equal(http_date_text(&cache, 784111777999), "Sun, 06 Nov 1994 08:49:37 GMT");
    assert_string_equal(http_date_text(&cache, 784111778000), "Sun, 06 Nov 1994 08:49:38 GMT");
    assert_string_equal(http_date_text(&cache, 1709164800000), "Thu, 29 Feb 2024 00:00:00 GMT");
    assert_string_equal(http_date_text(&cache, 0), "Thu, 01 Jan 1970 00:00:00 GMT");
    struct http_date fresh = {0};
    assert_string_equal(http_date_text(&fresh, 0), "Thu, 01 Jan 1970 00:00:00 GMT");
}

static void test_bodies_and_lines_of_the_caller(void **state)
{
    (void)state;
    struct buf out;
    buf_init(&out, 4096);
    struct status_answer answer = {.status = 302,
                                   .end = STATUS_END_KEEP,
                                   .extra = "A: b\r\n",
                                   .lines = "Location: /x\r\n",
                                   .body = "{}",
                                   .body_len = 2,
                                   .content_type = "application/json"};
    assert_int_equal(status_put_answer(&out, &answer), 0);
    assert_string_equal(out.data, "HTTP/1.1 302 Found\r\nContent-Type: application/json\r\n"
                                  "Content-Length: 2\r\nA: b\r\nLocation: /x\r\n\r\n{}");
    buf_reset(&out);
    answer.is_head = true;
    answer.status = 404;
    answer.content_type = NULL;
    assert_int_equal(status_put_answer(&out, &answer), 0);
    assert_non_null(strstr(out.data, "Content-Type: text/html; charset=utf-8\r\n"));
    assert_non_null(strstr(out.data, "Cache-Control: no-store\r\n"));
    assert_string_equal(strstr(out.data, "\r\n\r\n"), "\r\n\r\n");
    buf_reset(&out);
    answer.status = 204;
    assert_int_equal(status_put_bare(&out, &answer), 0);
    assert_string_equal(out.data, "HTTP/1.1 204 No Content\r\nA: b\r\nLocation: /x\r\n\r\n");
    buf_reset(&out);
    answer.status = 200;
    assert_int_equal(status_put_bare(&out, &answer), 0);
    assert_non_null(strstr(out.data, "Content-Length: 0\r\n"));
    size_t len = out.len;
    out.cap_bytes = len + 10;
    assert_int_equal(status_put_bare(&out, &answer), RC_FULL);
    assert_int_equal(out.len, len);
    buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reasons),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_detail),
        cmocka_unit_test(test_date),
        cmocka_unit_test(test_bodies_and_lines_of_the_caller),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
