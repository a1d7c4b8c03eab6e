/*
 * The one pass for usual heads against the careful passes: what it takes, they take, and in the
 * same way. A head that comes in two pieces goes the careful way.
 */
#include "tests/unit/node/http/heads.h"

#include "node/http/h1_int.h"

#include <ctype.h>

/* Parse whole and in two pieces; returns whether both took it. */
static bool both_agree(const char *raw, size_t len, bool is_request)
{
    struct heads_parse quick, careful;
    struct h1_scan scan = {0};
    (void)heads_try(&scan, raw, len, is_request, H1_GET, &quick);
    scan = (struct h1_scan){0};
    if (heads_try(&scan, raw, 1, is_request, H1_GET, &careful) == RC_AGAIN) {
        assert_true(scan.pos > 0);
        (void)heads_try(&scan, raw, len, is_request, H1_GET, &careful);
    }
    assert_int_equal(quick.rc, careful.rc);
    assert_int_equal(quick.fault, careful.fault);
    assert_string_equal(quick.text, careful.text);
    return quick.rc == 0;
}

#define QUICK_LINE "GET / HTTP/1.1\r\n"

/* Whether the quick pass says anything at all about these lines. */
static bool is_quick(const char *lines)
{
    struct h1_field fields[8];
    struct h1_head head;
    char raw[512];
    int len = snprintf(raw, sizeof(raw), QUICK_LINE "%s", lines);
    h1_head_init(&head, fields, 8);
    head.minor = 1;
    size_t end = h1_quick_line(raw, (size_t)len);
    assert_int_equal(end, strlen(QUICK_LINE) - 2);
    return h1_quick_fields(&head, raw, end + 2, (size_t)len, 8);
}

static void test_what_is_usual(void **state)
{
    (void)state;
#if defined(__SSE2__)
    assert_true(is_quick("Host: a\r\n\r\n"));
    assert_true(is_quick("Host:a\r\nTE:\r\nX-Some-Name: b c\r\nVia: \r\n\r\nbody"));
    assert_true(is_quick("\r\n"));
#endif
    static const char *const others[] = {
        "Host: a\r\n",
        "Host: a\r\n\r",
        "Host: a\r\n\rx",
        "Host: a\r\nx",
        "Host:  a\r\n\r\n",
        "Host: a \r\n\r\n",
        "Host: \ta\r\n\r\n",
        "Host: \xe4\r\n\r\n",
        "Host : a\r\n\r\n",
        " Host: a\r\n\r\n",
        "Host\r\n\r\n",
        ": a\r\n\r\n",
        "Host: a\n\r\n",
        "Host: a\rb\r\n\r\n",
        "Host: \x7f\r\n\r\n",
        "Host: a\r\nHost: a\r\n\r\n",
        "Content-Length: x\r\n\r\n",
        "A(: b\r\n\r\n",
        "A-Name-Of-More-Than-31-Bytes-In-All: b\r\n\r\n",
        "A: 1\r\nA: 1\r\nA: 1\r\nA: 1\r\nA: 1\r\nA: 1\r\nA: 1\r\nA: 1\r\nA: 1\r\n\r\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        assert_false(is_quick(others[i]));
    }
    assert_int_equal(h1_quick_line("GET / HTTP/1.1", 14), 0);
    assert_int_equal(h1_quick_line("GET /\x80 HTTP/1.1\r\n", 17), 0);
    assert_int_equal(h1_quick_line("GET / HTTP/1.1  \r", 17), 0);
}

/* Every known name with every byte changed into every other one, far from the end of what may be
 * read and close to it. */
static void test_names(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(h1_known_names); i++) {
        const char *text = h1_known_names[i].text;
        size_t len = strcspn(text, ":");
        for (size_t pad = 0; pad <= 40 && text[0] != '\0'; pad += 40) {
            char raw[160];
            int raw_len = snprintf(raw, sizeof(raw), "HTTP/1.1 200 OK\r\n%s 1\r\nX:%*s\r\n\r\n",
                                   text, (int)pad, "");
            for (size_t at = 17; at < 17 + len + 2; at++) {
                char kept = raw[at];
                for (int byte = 0; byte < 0x100; byte++) {
                    raw[at] = (char)byte;
                    (void)both_agree(raw, (size_t)raw_len, false);
                }
                raw[at] = (char)toupper((unsigned char)kept);
                bool taken = both_agree(raw, (size_t)raw_len, false);
                assert_true(taken || strcmp(text, "transfer-encoding:") == 0);
            }
        }
    }
}

/* Values of every length, with every byte at every place. */
static void test_values(void **state)
{
    (void)state;
    for (size_t len = 0; len <= 50; len++) {
        char raw[128];
        int raw_len =
            snprintf(raw, sizeof(raw), "GET / HTTP/1.1\r\nHost: a\r\nCookie: %.*s\r\n\r\n",
                     (int)len, "0123456789012345678901234567890123456789012345678901");
        assert_true(both_agree(raw, (size_t)raw_len, true));
        for (size_t at = 33; at < 33 + len + 4; at++) {
            char kept = raw[at];
            for (int byte = 0; byte < 0x100; byte++) {
                raw[at] = (char)byte;
                (void)both_agree(raw, (size_t)raw_len, true);
            }
            raw[at] = kept;
        }
        for (size_t cut = 0; cut < (size_t)raw_len; cut++) {
            assert_false(both_agree(raw, cut, true));
        }
    }
}

static void test_limits(void **state)
{
    (void)state;
    char raw[8192];
    for (int len = 4000; len < 4100; len++) { /* heads_limits.head_bytes is 4096 */
        int raw_len =
            snprintf(raw, sizeof(raw), "GET / HTTP/1.1\r\nHost: a\r\nCookie: %0*d\r\n\r\n", len, 1);
        assert_true(both_agree(raw, (size_t)raw_len, true) == (raw_len <= 4096));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_usual),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
