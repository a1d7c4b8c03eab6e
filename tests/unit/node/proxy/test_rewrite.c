/*
 * rewrite: each trap of prefix replacement, and where redirects lead.
 */
#include "tests/support/unit.h"

#include "node/proxy/rewrite.h"

static void segments(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        size_t count;
    } rows[] = {{"", 0}, {"/", 0}, {"/a", 1}, {"/a/", 1}, {"/a/b", 2}, {"/a/b/", 2}, {"/a//b", 3}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(rewrite_segments(rows[i].path), rows[i].count);
    }
}

static void prefixes(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        const char *replacement;
        const char *path;
        const char *result;
    } rows[] = {
        {"/foo", "/bar", "/foo/x", "/bar/x"},
        {"/foo", "/bar", "/foo", "/bar"},
        {"/foo", "/bar", "/foo/", "/bar/"},
        {"/foo", "/bar/", "/foo", "/bar/"},
        {"/foo", "/bar/", "/foo/", "/bar/"},
        {"/foo", "/bar/", "/foo/x", "/bar/x"}, /* no double slash */
        {"/foo", "/", "/foo", "/"},
        {"/foo", "/", "/foo/", "/"},
        {"/foo", "/", "/foo/x", "/x"},
        {"/foo", "", "/foo", "/"},
        {"/foo", "", "/foo/x", "/x"},
        {"/", "/bar", "/x", "/bar/x"}, /* no eaten slash */
        {"/", "/bar", "/", "/bar/"},
        {"/", "/bar/", "/x", "/bar/x"},
        {"/", "/", "/x/y", "/x/y"},
        {"/foo/", "/bar", "/foo/x", "/bar/x"},
        {"/a/b", "/c", "/a/b/c/d", "/c/c/d"},
        {"/foo", "/b", "/%66oo/x", "/b/x"}, /* spelt otherwise */
        {"/foo", "/b", "/foo/%2F/x", "/b/%2F/x"},
        {"/foo", "/b", "/foo//x", "/b//x"},       /* as it came */
        {"/foo", "/", "/foo//evil/x", "/evil/x"}, /* but never a reference to a host */
        {"/foo", "//b", "/foo/x", "//b/x"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf out;
        buf_init(&out, 256);
        rewrite_prefix(rows[i].replacement, rewrite_segments(rows[i].rule), rows[i].path,
                       strlen(rows[i].path), &out);
        assert_string_equal(out.data, rows[i].result);
        buf_deinit(&out);
    }
}

static void assert_location(const struct policy_redirect *redirect, const struct redirect_ask *ask,
                            const char *expected)
{
    struct buf out, scratch;
    buf_init(&out, 4096);
    buf_init(&scratch, 4096);
    redirect_location(redirect, ask, &scratch, &out);
    assert_string_equal(out.data, expected);
    buf_deinit(&scratch);
    buf_deinit(&out);
}

static void locations(void **state)
{
    (void)state;
    struct redirect_ask ask = {.scheme = "http",
                               .host = "a.test",
                               .port = -1,
                               .rule_path = "/old",
                               .path = "/old/x",
                               .path_len = 6};
    struct policy_redirect to = {.scheme = PROXY_SCHEME_HTTPS};
    assert_location(&to, &ask, "https://a.test/old/x");
    ask.port = 8080;
    assert_location(&to, &ask, "https://a.test/old/x"); /* another scheme, its own port */
    to.scheme = PROXY_SCHEME_HTTP;
    assert_location(&to, &ask, "http://a.test:8080/old/x");
    to.scheme = PROXY_SCHEME_SAME;
    to.port = 80;
    assert_location(&to, &ask, "http://a.test/old/x");
    to.port = 443;
    assert_location(&to, &ask, "http://a.test:443/old/x");
    to.port = 0;
    to.host = unconst("b.test");
    assert_location(&to, &ask, "http://b.test/old/x");
    to.replace_prefix = unconst("/new/");
    ask.query = "a=b";
    ask.query_len = 3;
    assert_location(&to, &ask, "http://b.test/new/x?a=b");
    to.replace_path = unconst("/z");
    assert_location(&to, &ask, "http://b.test/z?a=b");
    ask.query_len = 0;
    assert_location(&to, &ask, "http://b.test/z?");
    ask.scheme = "https";
    ask.port = 443;
    to = (struct policy_redirect){.replace_path = unconst("/n")};
    ask.host = "[::1]";
    ask.query = NULL;
    assert_location(&to, &ask, "https://[::1]/n");
}

static void what_no_uri_may_hold_is_escaped(void **state)
{
    (void)state;
    static const char path[] = "/a\r\nX: y\"<>\\^`{|}\x7f\xc3#z%41";
    const struct redirect_ask ask = {.scheme = "http",
                                     .host = "a",
                                     .port = -1,
                                     .rule_path = "/",
                                     .path = path,
                                     .path_len = sizeof(path) - 1,
                                     .query = "\n",
                                     .query_len = 1};
    const struct policy_redirect to = {.scheme = PROXY_SCHEME_HTTPS};
    assert_location(&to, &ask,
                    "https://a/a%0D%0AX:%20y%22%3C%3E%5C%5E%60%7B%7C%7D%7F%C3%23z%41?%0A");
    struct buf out, scratch;
    buf_init(&out, 8);
    buf_init(&scratch, 4096);
    redirect_location(&to, &ask, &scratch, &out);
    assert_true(out.full);
    buf_reset(&out);
    out.cap_bytes = 4096;
    scratch.cap_bytes = 4;
    redirect_location(&to, &ask, &scratch, &out);
    assert_true(out.full);
    buf_deinit(&scratch);
    buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(segments),
        cmocka_unit_test(prefixes),
        cmocka_unit_test(locations),
        cmocka_unit_test(what_no_uri_may_hold_is_escaped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
