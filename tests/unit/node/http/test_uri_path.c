/*
 * Canonical paths under the three policies, escapes, query parameters.
 */
#include "tests/support/unit.h"

#include "node/http/uri.h"

/* NULL: refused. "=" stands for the input itself, without use of the scratch. */
static const struct {
    const char *path;
    const char *refuse;
    const char *remove;
    const char *keep;
} rows[] = {
    {"", "/", "/", "/"},
    {"/", "=", "=", "="},
    {"/a/b", "=", "=", "="},
    {"//a//b/", "=", "=", "="},
    {"/a;v=1/b,c!$'()*@:=&", "=", "=", "="},
    {"/a.b/c..d/e.", "=", "=", "="},
    {"a", NULL, NULL, NULL},
    /* escapes */
    {"/%41%7e%2d", "/A~-", "/A~-", "/A~-"},
    {"/a%2fb%2Fc", "/a%2Fb%2Fc", "/a%2Fb%2Fc", "/a%2Fb%2Fc"},
    {"/%c3%a9%E4", "/%C3%A9%E4", "/%C3%A9%E4", "/%C3%A9%E4"},
    {"/a%252e", "/a%252e", "/a%252e", "/a%252e"},
    {"/a%5cb", "/a%5Cb", "/a%5Cb", "/a%5Cb"},
    {"/a%0d%0ab", "/a%0D%0Ab", "/a%0D%0Ab", "/a%0D%0Ab"},
    {"/a%00b", NULL, NULL, NULL},
    {"/a%zz", NULL, NULL, NULL},
    {"/a%4", NULL, NULL, NULL},
    {"/a%", NULL, NULL, NULL},
    {"/a%%41", NULL, NULL, NULL},
    {"/a%-1", NULL, NULL, NULL},
    /* dot segments */
    {"/.", NULL, "/", "/."},
    {"/..", NULL, "/", "/.."},
    {"/a/.", NULL, "/a/", "/a/."},
    {"/a/..", NULL, "/", "/a/.."},
    {"/a/../b", NULL, "/b", "/a/../b"},
    {"/a/./b/", NULL, "/a/b/", "/a/./b/"},
    {"/a/b/../../../../c", NULL, "/c", "/a/b/../../../../c"},
    {"/a//../b", NULL, "/a/b", "/a//../b"},
    {"/a/%2e%2E/b", NULL, "/b", "/a/../b"},
    {"/a/.%2e/b", NULL, "/b", "/a/../b"},
    {"/%2e", NULL, "/", "/."},
    {"/...", "/...", "/...", "/..."},
    {"/.a/..b/.c.", "/.a/..b/.c.", "/.a/..b/.c.", "/.a/..b/.c."},
    {"/.well-known/x", "/.well-known/x", "/.well-known/x", "/.well-known/x"},
    /* dots that only some servers see */
    {"/a/..%2fb", NULL, NULL, "/a/..%2Fb"},
    {"/a%2f..%2fb", NULL, NULL, "/a%2F..%2Fb"},
    {"/a%2F..", NULL, NULL, "/a%2F.."},
    {"/a/..%5cb", NULL, NULL, "/a/..%5Cb"},
    {"/a/..\\b", NULL, NULL, "/a/..\\b"},
    {"/a\\..\\b", NULL, NULL, "/a\\..\\b"},
    {"/a\\.", NULL, NULL, "/a\\."},
    {"/a/..;x/b", NULL, NULL, "/a/..;x/b"},
    {"/a/.;", NULL, NULL, "/a/.;"},
    {"/a/%2e%2e;/b", NULL, NULL, "/a/..;/b"},
    {"/a;x%2f..", NULL, NULL, "/a;x%2F.."},
    {"/a;..", "=", "=", "="},
    {"/a;x%2fy", "/a;x%2Fy", "/a;x%2Fy", "/a;x%2Fy"},
    {"/a%2f.b\\c.", "/a%2F.b\\c.", "/a%2F.b\\c.", "/a%2F.b\\c."},
};

static void check(const char *path, enum uri_dots dots, const char *want, bool had_dots)
{
    size_t len = strlen(path);
    char *exact = malloc(len > 0 ? len : 1), *scratch = malloc(len > 0 ? len : 1);
    struct uri_path got;
    memcpy(exact, path, len);
    int rc = uri_path_canon(exact, len, dots, scratch, len, &got);
    if (want == NULL) {
        if (rc != RC_INVALID) {
            fail_msg("%s under %d: rc %d", path, (int)dots, rc);
        }
    } else {
        assert_int_equal(rc, RC_OK);
        bool is_same = strcmp(want, "=") == 0;
        if (is_same) {
            assert_ptr_equal(got.at, exact);
        }
        want = is_same ? path : want;
        if (got.len != strlen(want) || memcmp(got.at, want, got.len) != 0) {
            fail_msg("%s under %d: %.*s", path, (int)dots, (int)got.len, got.at);
        }
        assert_int_equal(got.had_dots, had_dots);
    }
    free(exact);
    free(scratch);
}

static void test_paths(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        check(rows[i].path, URI_DOTS_REFUSE, rows[i].refuse, false);
        check(rows[i].path, URI_DOTS_REMOVE, rows[i].remove, rows[i].refuse == NULL);
        check(rows[i].path, URI_DOTS_KEEP, rows[i].keep, false);
    }
}

static void test_scratch(void **state)
{
    (void)state;
    struct uri_path path;
    char small[4];
    assert_int_equal(uri_path_canon("/a%41", 5, URI_DOTS_REFUSE, small, 4, &path), RC_TOO_BIG);
    assert_int_equal(uri_path_canon("/abcdefgh", 9, URI_DOTS_REFUSE, small, 4, &path), RC_OK);
}

static void test_decode(void **state)
{
    (void)state;
    char out[16];
    size_t len = 0;
    assert_int_equal(uri_decode("a%2Fb+c%20", 10, true, out, sizeof(out), &len), RC_OK);
    assert_int_equal(len, 6);
    assert_memory_equal(out, "a/b c ", 6);
    assert_int_equal(uri_decode("a+b", 3, false, out, sizeof(out), &len), RC_OK);
    assert_memory_equal(out, "a+b", 3);
    assert_int_equal(uri_decode("a%2", 3, false, out, sizeof(out), &len), RC_INVALID);
    assert_int_equal(uri_decode("a%00", 4, false, out, sizeof(out), &len), RC_INVALID);
    assert_int_equal(uri_decode("abc", 3, false, out, 2, &len), RC_TOO_BIG);
    char in_place[] = "%61%62";
    assert_int_equal(uri_decode(in_place, 6, false, in_place, 6, &len), RC_OK);
    assert_memory_equal(in_place, "ab", 2);
}

static void test_query(void **state)
{
    (void)state;
    static const char query[] = "&a=b&&c&d==e&=f&";
    static const char *const want[] = {"a|b", "c|", "d|=e", "|f"};
    struct uri_param param;
    size_t cursor = 0;
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        char got[32];
        assert_true(uri_query_next(query, sizeof(query) - 1, &cursor, &param));
        (void)snprintf(got, sizeof(got), "%.*s|%.*s", (int)param.name_len, param.name,
                       (int)param.value_len, param.value);
        assert_string_equal(got, want[i]);
    }
    assert_false(uri_query_next(query, sizeof(query) - 1, &cursor, &param));
    assert_false(uri_query_next(query, sizeof(query) - 1, &cursor, &param));
    cursor = 0;
    assert_false(uri_query_next("", 0, &cursor, &param));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_scratch),
        cmocka_unit_test(test_decode),
        cmocka_unit_test(test_query),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
