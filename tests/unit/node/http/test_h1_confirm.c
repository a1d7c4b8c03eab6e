/*
 * llhttp's reading: it agrees with heads that were taken, and a head that was taken wrongly is
 * refused by it, be it in its start line, a name, or its framing.
 */
#include "tests/unit/node/http/heads.h"

#include "node/http/h1_int.h"

static struct h1_field confirm_fields[32];

/* A head as the first two passes leave it. */
static void prepare(struct h1_head *head, const char *raw, bool is_request)
{
    struct h1_scan scan = {0};
    h1_head_init(head, confirm_fields, 32);
    int rc = is_request ? h1_parse_request(&scan, raw, strlen(raw), &heads_limits, head)
                        : h1_parse_response(&scan, raw, strlen(raw), H1_GET, &heads_limits, head);
    assert_int_equal(rc, 0);
}

static void test_agrees(void **state)
{
    (void)state;
    static const char *const requests[] = {
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "BREW / HTTP/1.0\r\n\r\n",
        "get /?a|b\"<>^`{} HTTP/1.1\r\nHost: a\r\nX-Unknown: \xe4 \t v \t\r\nX-Empty: \t\r\n\r\n",
        "CONNECT a_b:1 HTTP/1.1\r\nHost: a_b:1\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        "CONNECT [::1]:1 HTTP/1.1\r\nHost: [::1]:1\r\n\r\n",
        "PATCH http://[::1]:8080/ HTTP/1.1\r\nHost: [::1]:8080\r\nContent-Length: 7\r\n\r\n",
        "TRACE / HTTP/1.1\r\nHost: a\r\nConnection: ,,close\r\n\r\n",
        "TRACE / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\tchunked \r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection:\r\nUpgrade:\r\nProxy-Connection: x\r\n\r\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
        struct h1_head head;
        prepare(&head, requests[i], true);
    }
}

static void test_objects(void **state)
{
    (void)state;
    static const char length[] = "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n";
    static const char none[] = "PUT / HTTP/1.1\r\nHost: a\r\nX-Unknown: 5\r\n\r\n";
    struct h1_head head;
    prepare(&head, length, true);
    assert_int_equal(h1_confirm(&head, length, 0, true), 0);
    head.content_length = 6;
    assert_int_equal(h1_confirm(&head, length, 0, true), RC_INVALID);
    assert_int_equal(head.fault, H1_FAULT_SYNTAX);
    prepare(&head, length, true);
    head.framing = H1_BODY_CHUNKED;
    assert_int_equal(h1_confirm(&head, length, 0, true), RC_INVALID);
    prepare(&head, length, true);
    head.length_announced = false;
    assert_int_equal(h1_confirm(&head, length, 0, true), RC_INVALID);
    /* a start line, a name and an end that only this unit would have taken */
    prepare(&head, none, true);
    assert_int_equal(h1_confirm(&head, none, 1, false), RC_INVALID);
    char raw[sizeof(none)];
    memcpy(raw, none, sizeof(none));
    raw[strlen("PUT / HTTP/1.1\r\nHost: a\r\nX-")] = '(';
    assert_int_equal(h1_confirm(&head, raw, 0, true), RC_INVALID);
    memcpy(raw, none, sizeof(none));
    raw[strlen("PUT / ")] = 'h';
    assert_int_equal(h1_confirm(&head, raw, 0, true), RC_INVALID);
    memcpy(raw, none, sizeof(none));
    raw[sizeof(none) - 3] = 'x';
    assert_int_equal(h1_confirm(&head, raw, 0, true), RC_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agrees),
        cmocka_unit_test(test_objects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
