/*
 * Known names, token classes, lists.
 */
#include "tests/unit/node/http/heads.h"

#include <ctype.h>

static const struct {
    const char *name;
    enum h1_name id;
} names[] = {
    {"Accept", H1_ACCEPT},
    {"Accept-Encoding", H1_ACCEPT_ENCODING},
    {"Alt-Svc", H1_ALT_SVC},
    {"Authorization", H1_AUTHORIZATION},
    {"Connection", H1_CONNECTION},
    {"Content-Encoding", H1_CONTENT_ENCODING},
    {"Content-Length", H1_CONTENT_LENGTH},
    {"Content-Type", H1_CONTENT_TYPE},
    {"Cookie", H1_COOKIE},
    {"Date", H1_DATE},
    {"Expect", H1_EXPECT},
    {"Forwarded", H1_FORWARDED},
    {"Host", H1_HOST},
    {"HTTP2-Settings", H1_HTTP2_SETTINGS},
    {"If-Match", H1_IF_MATCH},
    {"If-None-Match", H1_IF_NONE_MATCH},
    {"Keep-Alive", H1_KEEP_ALIVE},
    {"Location", H1_LOCATION},
    {"Max-Forwards", H1_MAX_FORWARDS},
    {"Origin", H1_ORIGIN},
    {"Proxy", H1_PROXY},
    {"Proxy-Authenticate", H1_PROXY_AUTHENTICATE},
    {"Proxy-Authorization", H1_PROXY_AUTHORIZATION},
    {"Proxy-Connection", H1_PROXY_CONNECTION},
    {"Retry-After", H1_RETRY_AFTER},
    {"Server", H1_SERVER},
    {"Set-Cookie", H1_SET_COOKIE},
    {"Strict-Transport-Security", H1_STRICT_TRANSPORT_SECURITY},
    {"TE", H1_TE},
    {"Trailer", H1_TRAILER},
    {"Transfer-Encoding", H1_TRANSFER_ENCODING},
    {"Upgrade", H1_UPGRADE},
    {"User-Agent", H1_USER_AGENT},
    {"Via", H1_VIA},
    {"X-Forwarded-For", H1_X_FORWARDED_FOR},
    {"X-Forwarded-Host", H1_X_FORWARDED_HOST},
    {"X-Forwarded-Port", H1_X_FORWARDED_PORT},
    {"X-Forwarded-Proto", H1_X_FORWARDED_PROTO},
    {"X-Request-ID", H1_X_REQUEST_ID},
};

static void test_ids(void **state)
{
    (void)state;
    assert_int_equal(ARRAY_LEN(names), H1_NAME_COUNT - 1);
    assert_true(H1_NAME_COUNT <= 64);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        size_t len = strlen(names[i].name);
        char text[40];
        for (size_t at = 0; at <= len; at++) {
            text[at] = (char)toupper((unsigned char)names[i].name[at]);
        }
        assert_int_equal(h1_name_id(names[i].name, len), names[i].id);
        assert_int_equal(h1_name_id(text, len), names[i].id);
        assert_int_equal(h1_name_id(text, len - 1), H1_OTHER);
        /* any other byte anywhere makes it another name */
        for (size_t at = 0; at < len; at++) {
            for (int byte = 1; byte < 256; byte++) {
                char kept = text[at];
                if (tolower(byte) == tolower((unsigned char)kept)) {
                    continue;
                }
                text[at] = (char)byte;
                enum h1_name got = h1_name_id(text, len);
                assert_true(got == H1_OTHER || got != names[i].id);
                text[at] = kept;
            }
        }
    }
    assert_int_equal(h1_name_id("", 0), H1_OTHER);
    assert_int_equal(h1_name_id("x", 1), H1_OTHER);
    assert_int_equal(h1_name_id("Content_Length", 14), H1_OTHER);
}

static void test_tokens(void **state)
{
    (void)state;
    static const char others[] = "!#$%&'*+-.^_`|~";
    for (int byte = 0; byte < 256; byte++) {
        char one = (char)byte;
        bool want = byte < 128 && (isalnum(byte) || (byte != 0 && strchr(others, byte) != NULL));
        assert_int_equal(h1_is_token(&one, 1), want);
        bool is_value = byte == '\t' || (byte >= 0x20 && byte != 0x7f);
        assert_int_equal(h1_is_field_value(&one, 1), is_value);
    }
    assert_false(h1_is_token("", 0));
    assert_true(h1_is_field_value("", 0));
    assert_false(h1_is_token("a b", 3));
}

static bool has(const char *list, const char *token)
{
    return h1_list_has(list, strlen(list), token);
}

static void test_lists(void **state)
{
    (void)state;
    assert_true(has("a", "a"));
    assert_true(has(" x ,\tA\t, b", "a"));
    assert_true(has(",,a,,", "a"));
    assert_false(has("", "a"));
    assert_false(has(" ,\t,", "a"));
    assert_false(has("aa, ba", "a"));
    assert_false(has("a;q=1", "a"));
    assert_true(has("keep-alive, TRAILERS", "trailers"));
}

static void test_find(void **state)
{
    (void)state;
    static const char raw[] = "GET / HTTP/1.1\r\nHost: a\r\nX-A: 1\r\nCookie: b\r\nx-a: 2\r\n"
                              "COOKIE: c\r\n\r\n";
    struct h1_field fields[8];
    struct h1_head head;
    struct h1_scan scan = {0};
    h1_head_init(&head, fields, 8);
    assert_int_equal(h1_parse_request(&scan, raw, sizeof(raw) - 1, &heads_limits, &head), 0);
    const struct h1_field *field = h1_find(&head, H1_COOKIE);
    assert_ptr_equal(field, &fields[2]);
    field = h1_find_next(&head, field);
    assert_ptr_equal(field, &fields[4]);
    assert_null(h1_find_next(&head, field));
    assert_null(h1_find(&head, H1_VIA));
    assert_ptr_equal(h1_find_named(&head, raw, "x-a", 3), &fields[1]);
    assert_ptr_equal(h1_find_named(&head, raw, "host", 4), &fields[0]);
    assert_null(h1_find_named(&head, raw, "x-b", 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_find),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
