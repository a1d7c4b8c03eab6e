/*
 * Canonical hosts.
 */
#include "tests/support/unit.h"

#include "node/http/uri.h"

static const struct {
    const char *host;
    const char *name; /* NULL: refused */
    int port;
} rows[] = {
    {"a.test", "a.test", -1},
    {"A.TeSt", "a.test", -1},
    {"a.test:8080", "a.test", 8080},
    {"a.test:", "a.test", -1},
    {"a.test.", "a.test", -1},
    {"a.test.:80", "a.test", 80},
    {"a_b-c.test", "a_b-c.test", -1},
    {"xn--bcher-kva.example", "xn--bcher-kva.example", -1},
    {"localhost:0", "localhost", 0},
    {"a:65535", "a", 65535},
    {"a:00080", "a", 80},
    {"10.0.0.1:80", "10.0.0.1", 80},
    {"[::1]", "[::1]", -1},
    {"[::1]:80", "[::1]", 80},
    {"[2001:DB8:0:0::1]:443", "[2001:db8::1]", 443},
    {"[::ffff:10.0.0.1]", "[::ffff:10.0.0.1]", -1},
    {"", NULL, 0},
    {".", NULL, 0},
    {"..", NULL, 0},
    {".a", NULL, 0},
    {"a..b", NULL, 0},
    {"a.test..", NULL, 0},
    {":80", NULL, 0},
    {"a:b", NULL, 0},
    {"a:80b", NULL, 0},
    {"a:-1", NULL, 0},
    {"a:65536", NULL, 0},
    {"a:000080", NULL, 0},
    {"a:80:80", NULL, 0},
    {"u@a", NULL, 0},
    {"a b", NULL, 0},
    {"a/b", NULL, 0},
    {"a%2eb", NULL, 0},
    {"a,b", NULL, 0},
    {"caf\xc3\xa9", NULL, 0},
    {"*.a", NULL, 0},
    {"[::1", NULL, 0},
    {"[]", NULL, 0},
    {"[::1]80", NULL, 0},
    {"[::1]:x", NULL, 0},
    {"[10.0.0.1]", NULL, 0},
    {"[fe80::1%25eth0]", NULL, 0},
    {"[v1.x]", NULL, 0},
    {"[0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0001]", NULL, 0},
    {"a]", NULL, 0},
};

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char out[URI_HOST_MAX + 1];
        struct uri_host host;
        size_t len = strlen(rows[i].host);
        char *exact = malloc(len > 0 ? len : 1);
        memcpy(exact, rows[i].host, len);
        int rc = uri_host_canon(exact, len, out, &host);
        free(exact);
        if ((rc == 0) != (rows[i].name != NULL)) {
            fail_msg("%s: rc %d", rows[i].host, rc);
        }
        if (rc == 0) {
            assert_string_equal(out, rows[i].name);
            assert_int_equal(host.name_len, strlen(out));
            assert_int_equal(host.port, rows[i].port);
            bool is_ip = rows[i].host[0] == '[' || strncmp(rows[i].host, "10.", 3) == 0;
            assert_int_equal(host.is_ip, is_ip);
            /* canonical already: once more changes nothing */
            char again[URI_HOST_MAX + 1];
            assert_int_equal(uri_host_canon(out, host.name_len, again, &host), 0);
            assert_string_equal(again, out);
        }
    }
}

/* Labels of `label` bytes up to a name of `total` bytes, with or without a trailing dot. */
static int try_size(size_t label, size_t total, const char *tail)
{
    char host[600], out[URI_HOST_MAX + 1];
    struct uri_host ret;
    for (size_t i = 0; i < total; i++) {
        host[i] = (i + 1) % (label + 1) == 0 && i + 1 < total ? '.' : 'a';
    }
    (void)snprintf(host + total, sizeof(host) - total, "%s", tail);
    int rc = uri_host_canon(host, strlen(host), out, &ret);
    if (rc == 0) {
        assert_int_equal(ret.name_len, total);
        assert_int_equal(strlen(out), total);
    }
    return rc;
}

static void test_sizes(void **state)
{
    (void)state;
    static const char *const tails[] = {"", ".", ":80", ".:65535"};
    for (size_t i = 0; i < ARRAY_LEN(tails); i++) {
        assert_int_equal(try_size(63, 63, tails[i]), RC_OK);
        assert_int_equal(try_size(64, 64, tails[i]), RC_INVALID);
        assert_int_equal(try_size(63, 252, tails[i]), RC_OK);
        assert_int_equal(try_size(49, 253, tails[i]), RC_OK);
        assert_int_equal(try_size(49, 254, tails[i]), RC_INVALID);
        assert_int_equal(try_size(49, 255, tails[i]), RC_INVALID);
        assert_int_equal(try_size(49, 500, tails[i]), RC_INVALID);
        assert_int_equal(try_size(64, 130, tails[i]), RC_INVALID);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
