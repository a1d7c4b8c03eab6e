/*
 * cors: what a preflight and other requests get, and what is refused.
 */
#include "tests/support/unit.h"

#include "node/proxy/cors.h"

static struct h1_field fields[32];
static struct h1_head head;

static const struct h1_limits limits = {
    .head_bytes = 16384, .field_count = 32, .target_bytes = 1024};

static const char *parse(const char *method, const char *lines)
{
    static char text[16384];
    struct h1_scan scan = {0};
    int len = snprintf(text, sizeof(text), "%s / HTTP/1.1\r\nHost: a\r\n%s\r\n", method, lines);
    h1_head_init(&head, fields, ARRAY_LEN(fields));
    assert_int_equal(h1_parse_request(&scan, text, (size_t)len, &limits, &head), 0);
    return text;
}

#define TEXTS(...)                                                                                 \
    {                                                                                              \
        .items = (const char *const[]){__VA_ARGS__},                                               \
        .count = ARRAY_LEN(((const char *const[]){__VA_ARGS__}))                                   \
    }

static void assert_lines(const struct cors *cors, const char *method, const char *lines,
                         const char *expected)
{
    const char *bytes = parse(method, lines);
    struct buf out;
    buf_init(&out, 32768);
    if (cors_is_preflight(&head, bytes)) {
        cors_put_preflight(cors, &head, bytes, &out);
    } else {
        cors_put(cors, &head, bytes, &out);
    }
    assert_string_equal(out.data != NULL ? out.data : "", expected);
    buf_deinit(&out);
}

#define VARY "Vary: Origin, Access-Control-Request-Method, Access-Control-Request-Headers\r\n"

static void listed_origins(void **state)
{
    (void)state;
    const struct proxy_cors from = {
        .origins = TEXTS("https://a.test", "http://b.test:8080"),
        .methods = TEXTS("GET", "PUT"),
        .headers = TEXTS("X-A"),
        .expose = TEXTS("X-B", "X-C"),
        .credentials = true,
        .max_age_s = 600,
    };
    struct cors *cors = NULL;
    assert_int_equal(cors_new(&from, &cors, NULL), RC_OK);
    assert_lines(cors, "OPTIONS",
                 "Origin: https://a.test\r\nAccess-Control-Request-Method: DELETE\r\n",
                 "Access-Control-Allow-Origin: https://a.test\r\n"
                 "Access-Control-Allow-Methods: GET, PUT\r\n"
                 "Access-Control-Allow-Headers: X-A\r\n"
                 "Access-Control-Allow-Credentials: true\r\nAccess-Control-Max-Age: 600\r\n" VARY);
    assert_lines(cors, "OPTIONS",
                 "Origin: https://evil.test\r\nAccess-Control-Request-Method: PUT\r\n", VARY);
    assert_lines(cors, "GET", "Origin: HTTP://B.test:8080\r\n",
                 "Access-Control-Allow-Origin: HTTP://B.test:8080\r\n"
                 "Access-Control-Allow-Credentials: true\r\n"
                 "Access-Control-Expose-Headers: X-B, X-C\r\nVary: Origin\r\n");
    static const char *const others[] = {"",
                                         "Origin: null\r\n",
                                         "Origin:\r\n",
                                         "Origin: https://a.test.evil\r\n",
                                         "Origin: https://a.tes\r\n",
                                         "Origin: https://a.test, https://b.test\r\n",
                                         "Origin: https://a.test\r\nOrigin: https://a.test\r\n"};
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        assert_lines(cors, "GET", others[i], "Vary: Origin\r\n");
    }
    cors_free(cors);
    cors_free(NULL);
}

static void any_origin(void **state)
{
    (void)state;
    const struct proxy_cors from = {.origins = TEXTS("*")};
    struct cors *cors = NULL;
    assert_int_equal(cors_new(&from, &cors, NULL), RC_OK);
    assert_lines(cors, "GET", "Origin: null\r\n", "Access-Control-Allow-Origin: *\r\n");
    assert_lines(cors, "GET", "", "");
    assert_lines(cors, "OPTIONS",
                 "Origin: http://x\r\nAccess-Control-Request-Method: PATCH\r\n"
                 "Access-Control-Request-Headers: x-a, x-b\r\n",
                 "Access-Control-Allow-Origin: *\r\nAccess-Control-Allow-Methods: PATCH\r\n"
                 "Access-Control-Allow-Headers: x-a, x-b\r\n" VARY);
    cors_free(cors);
}

static void what_is_a_preflight(void **state)
{
    (void)state;
    const char *both = "Origin: http://x\r\nAccess-Control-Request-Method: GET\r\n";
    assert_true(cors_is_preflight(&head, parse("OPTIONS", both)));
    assert_false(cors_is_preflight(&head, parse("GET", both)));
    assert_false(cors_is_preflight(&head, parse("OPTIONS", "Origin: http://x\r\n")));
    assert_false(
        cors_is_preflight(&head, parse("OPTIONS", "Access-Control-Request-Method: GET\r\n")));
}

static void the_endpoints_own_fields_go(void **state)
{
    (void)state;
    static const char text[] = "HTTP/1.1 200 OK\r\nAccess-Control-Allow-Origin: *\r\nX: y\r\n"
                               "access-control-MAX-age: 1\r\nAccess-Contro: x\r\n\r\n";
    struct h1_scan scan = {0};
    h1_head_init(&head, fields, ARRAY_LEN(fields));
    assert_int_equal(h1_parse_response(&scan, text, sizeof(text) - 1, H1_GET, &limits, &head), 0);
    struct buf lines;
    buf_init(&lines, 256);
    (void)buf_puts(&lines, "X: y\r\nAccess-CONTROL-Foo: x\r\nZ: access-control-a\r\n");
    cors_drop(&head, text, &lines);
    assert_string_equal(lines.data, "X: y\r\nZ: access-control-a\r\n");
    buf_deinit(&lines);
    assert_true(head.fields[0].drop && head.fields[2].drop);
    assert_false(head.fields[1].drop || head.fields[3].drop);
}

static void unsound_policies_are_refused(void **state)
{
    (void)state;
    const struct proxy_cors bad[] = {
        {.origins = TEXTS("*"), .credentials = true},
        {.origins = TEXTS("a\r\nb")},
        {.origins = TEXTS("")},
        {.origins = TEXTS("http://x"), .methods = TEXTS("G T")},
        {.origins = TEXTS("http://x"), .headers = TEXTS("X-A\r\n")},
        {.origins = TEXTS("http://x"), .expose = TEXTS("")},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct cors *cors = NULL;
        struct err_info err = {0};
        assert_int_equal(cors_new(&bad[i], &cors, &err), RC_INVALID);
        assert_true(err.text[0] != '\0');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(listed_origins),
        cmocka_unit_test(any_origin),
        cmocka_unit_test(what_is_a_preflight),
        cmocka_unit_test(the_endpoints_own_fields_go),
        cmocka_unit_test(unsound_policies_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
