/*
 * Canonical forms: what they are, that they are fixed points, and what is refused.
 */
#include "tests/support/unit.h"

#include "node/base/defs.h"
#include "proto/validate.h"

static void hosts(void **state)
{
    (void)state;
    static const char *const good[][2] = {
        {"shop.example.com", "shop.example.com"},
        {"Shop.Example.COM", "shop.example.com"},
        {"shop.example.com.", "shop.example.com"},
        {"*.Example.com", "*.example.com"},
        {"localhost", "localhost"},
        {"10.0.0.1", "10.0.0.1"},
        {"xn--bcher-kva.example", "xn--bcher-kva.example"},
        {"a-b.c", "a-b.c"},
    };
    static const char *const bad[] = {
        "",           ".",
        "*",          "*.",
        "a..b",       ".a",
        "a.b..",      "-a.b",
        "a-.b",       "a.*.b",
        "*.*.b",      "**.b",
        "a_b.c",      "a b",
        "shop:80",    "[::1]",
        "::1",        "a/b",
        "b\xc3\xa4r", "a\nb",
        "foo*.b",     "a123456789012345678901234567890123456789012345678901234567890123.b",
    };
    char out[NAME_LONG_MAX_BYTES + 1];
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        assert_int_equal(host_canonical(good[i][0], out, NULL), RC_OK);
        assert_string_equal(out, good[i][1]);
        assert_int_equal(host_canonical(good[i][1], out, NULL), RC_OK);
        assert_string_equal(out, good[i][1]);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err_info err = {""};
        assert_int_equal(host_canonical(bad[i], out, &err), RC_INVALID);
        assert_true(err.text[0] != '\0');
    }
}

static void hosts_have_a_length(void **state)
{
    (void)state;
    char text[300];
    char out[NAME_LONG_MAX_BYTES + 1];
    for (size_t i = 0; i < sizeof text; i++) {
        text[i] = i % 50 == 49 ? '.' : 'a';
    }
    text[NAME_LONG_MAX_BYTES] = '\0';
    assert_int_equal(host_canonical(text, out, NULL), RC_OK);
    text[NAME_LONG_MAX_BYTES] = 'a';
    text[NAME_LONG_MAX_BYTES + 1] = '\0';
    assert_int_equal(host_canonical(text, out, NULL), RC_INVALID);
}

static void paths(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *prefix;
        const char *exact;
    } good[] = {
        {"", "/", "/"},
        {"/", "/", "/"},
        {"/a", "/a", "/a"},
        {"/a/", "/a", "/a/"},
        {"/a//", "/a", "/a//"},
        {"//", "/", "//"},
        {"/%61%2Db%7e", "/a-b~", "/a-b~"},
        {"/a%2fb", "/a%2Fb", "/a%2Fb"},
        {"/a%2fb/", "/a%2Fb", "/a%2Fb/"},
        {"/%c3%a4", "/%C3%A4", "/%C3%A4"},
        {"/a:b@c!$&'()*+,;=", "/a:b@c!$&'()*+,;=", "/a:b@c!$&'()*+,;="},
        {"/...", "/...", "/..."},
        {"/.a/b..", "/.a/b..", "/.a/b.."},
        {"/%25", "/%25", "/%25"},
    };
    static const char *const bad[] = {
        "a",         "*",     "/.",        "/..",   "/a/./b", "/a/../b", "/a/..", "/%2e",
        "/%2E%2e/x", "/a%",   "/a%4",      "/a%zz", "/a%00",  "/a?b",    "/a#b",  "/a b",
        "/a\\b",     "/a\tb", "/\xc3\xa4", "/a\"",  "/a<b>",  "/[a]",    "/a|b",
    };
    char out[PATH_MAX_BYTES + 1];
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        assert_int_equal(path_canonical(good[i].text, false, out, NULL), RC_OK);
        assert_string_equal(out, good[i].prefix);
        assert_int_equal(path_canonical(good[i].text, true, out, NULL), RC_OK);
        assert_string_equal(out, good[i].exact);
        assert_int_equal(path_canonical(good[i].exact, true, out, NULL), RC_OK);
        assert_string_equal(out, good[i].exact);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err_info err = {""};
        assert_int_equal(path_canonical(bad[i], false, out, &err), RC_INVALID);
        assert_int_equal(path_canonical(bad[i], true, out, &err), RC_INVALID);
        assert_true(err.text[0] != '\0');
    }
    /* An escaped slash divides no segments. */
    assert_int_equal(path_canonical("/..%2f..", false, out, NULL), RC_OK);

    char text[PATH_MAX_BYTES + 2];
    memset(text, 'a', sizeof text);
    text[0] = '/';
    text[PATH_MAX_BYTES] = '\0';
    assert_int_equal(path_canonical(text, false, out, NULL), RC_OK);
    text[PATH_MAX_BYTES] = 'a';
    text[PATH_MAX_BYTES + 1] = '\0';
    assert_int_equal(path_canonical(text, false, out, NULL), RC_INVALID);
}

static void addresses(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *canonical;
        bool is_ip;
    } good[] = {
        {"10.1.0.4:8080", "10.1.0.4:8080", true},
        {"127.0.0.1:1", "127.0.0.1:1", true},
        {"169.254.169.254:80", "169.254.169.254:80", true},
        {"[::1]:65535", "[::1]:65535", true},
        {"[2001:DB8:0:0:0:0:0:1]:80", "[2001:db8::1]:80", true},
        {"[::ffff:10.0.0.1]:80", "10.0.0.1:80", true},
        {"Name.Example:8080", "name.example:8080", false},
        {"localhost:80", "localhost:80", false},
        {"1a.2b:80", "1a.2b:80", false},
    };
    static const char *const bad[] = {
        "",
        ":80",
        "10.1.0.4",
        "10.1.0.4:",
        "10.1.0.4:0",
        "10.1.0.4:65536",
        "10.1.0.4:080",
        "10.1.0.4:+80",
        "10.1.0.4:http",
        "10.1.0:80",
        "10.1.0.256:80",
        "010.1.0.4:80",
        "1234:80",
        "::1:80",
        "[::1]",
        "[::1]80",
        "[10.0.0.1]:80",
        "[fe80::1%eth0]:80",
        "[]:80",
        "[:80",
        "a_b:80",
        "a b:80",
        "*:80",
        "0.0.0.0:80",
        "[::]:80",
        "224.0.0.1:80",
        "255.255.255.255:80",
        "[ff02::1]:80",
        "[::ffff:0.0.0.0]:80",
        "http://a:80",
        "a/b:80",
    };
    char out[ENDPOINT_ADDRESS_MAX];
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        assert_int_equal(endpoint_address_canonical(good[i].text, out, NULL), RC_OK);
        assert_string_equal(out, good[i].canonical);
        assert_int_equal(endpoint_address_is_ip(out), good[i].is_ip);
        assert_int_equal(endpoint_address_canonical(good[i].canonical, out, NULL), RC_OK);
        assert_string_equal(out, good[i].canonical);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err_info err = {""};
        assert_int_equal(endpoint_address_canonical(bad[i], out, &err), RC_INVALID);
        assert_true(err.text[0] != '\0');
    }
}

static void names(void **state)
{
    (void)state;
    assert_true(name_is_label("a", 1));
    assert_true(name_is_label("a-0", 3));
    assert_false(name_is_label("", 0));
    assert_false(name_is_label("A", 1));
    assert_false(name_is_label("-a", 2));
    assert_false(name_is_label("a-", 2));
    assert_false(name_is_label("a.b", 3));
    assert_true(name_is_dns("a.b", 3));
    assert_false(name_is_dns("a..b", 4));
    assert_false(name_is_dns("a.", 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts), cmocka_unit_test(hosts_have_a_length),
        cmocka_unit_test(paths), cmocka_unit_test(addresses),
        cmocka_unit_test(names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
