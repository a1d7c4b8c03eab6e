/*
 * Requests of checks, and which statuses they want.
 */
#include "node/health/check_spec.h"
#include "tests/support/unit.h"

static struct check_config config_of(enum check_type type)
{
    return (struct check_config){
        .type = type,
        .pace = {.interval_ms = 1, .interval_down_ms = 1, .timeout_ms = 1, .rise = 1, .fall = 1}};
}

static void assert_request(const struct check_config *config, const char *host, const char *wanted)
{
    struct check_spec *spec = NULL;
    struct buf out;
    buf_init(&out, 65536);
    assert_int_equal(check_spec_new(config, &spec), RC_OK);
    assert_int_equal(check_spec_request(spec, host, &out), RC_OK);
    assert_string_equal(out.data, wanted);
    buf_deinit(&out);
    check_spec_unref(spec);
}

#define AGENT "User-Agent: skein/" SKEIN_VERSION " (health check)\r\n"

static void test_requests(void **state)
{
    (void)state;
    struct check_config config = config_of(CHECK_HTTP);
    assert_request(&config, "10.0.0.1:80",
                   "GET / HTTP/1.1\r\nHost: 10.0.0.1:80\r\n" AGENT "Connection: close\r\n\r\n");
    config.path = "/healthz?full=1";
    config.method = "HEAD";
    config.host = "shop.example";
    assert_request(&config, "10.0.0.1:80",
                   "HEAD /healthz?full=1 HTTP/1.1\r\nHost: shop.example\r\n" AGENT
                   "Connection: close\r\n\r\n");
    config.method = "POST";
    config.headers[0] = (struct check_header){"user-agent", "probe"};
    config.headers[1] = (struct check_header){"X-Empty", NULL};
    config.header_count = 2;
    assert_request(&config, "x",
                   "POST /healthz?full=1 HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 0\r\n"
                   "user-agent: probe\r\nX-Empty: \r\nConnection: close\r\n\r\n");
}

static void assert_refused(struct check_config config)
{
    struct check_spec *spec = NULL;
    assert_int_equal(check_spec_new(&config, &spec), RC_INVALID);
    assert_null(spec);
}

/* Rows of peers were validated by other rules: nothing that splits a request gets through. */
static void test_unsound_texts(void **state)
{
    (void)state;
    struct check_config config = config_of(CHECK_HTTP);
    config.path = "/a b";
    assert_refused(config);
    config.path = "/a\r\nX: y";
    assert_refused(config);
    config.path = "a";
    assert_refused(config);
    config = config_of(CHECK_HTTP);
    config.method = "GET /";
    assert_refused(config);
    config.method = "CONNECT";
    assert_refused(config);
    config = config_of(CHECK_HTTP);
    config.host = "a\r\nb";
    assert_refused(config);
    config = config_of(CHECK_HTTP);
    config.header_count = 1;
    config.headers[0] = (struct check_header){"a b", "c"};
    assert_refused(config);
    config.headers[0] = (struct check_header){"a", "c\nd"};
    assert_refused(config);
}

static void test_statuses(void **state)
{
    (void)state;
    struct check_config config = config_of(CHECK_HTTP);
    struct check_spec *spec = NULL;
    assert_int_equal(check_spec_new(&config, &spec), RC_OK);
    assert_false(check_spec_wants_status(spec, 199));
    assert_true(check_spec_wants_status(spec, 200));
    assert_true(check_spec_wants_status(spec, 399));
    assert_false(check_spec_wants_status(spec, 400));
    check_spec_unref(spec);
    config.statuses[0] = (struct check_statuses){204, 204};
    config.statuses[1] = (struct check_statuses){500, 599};
    config.status_count = 2;
    assert_int_equal(check_spec_new(&config, &spec), RC_OK);
    assert_false(check_spec_wants_status(spec, 200));
    assert_true(check_spec_wants_status(spec, 204));
    assert_true(check_spec_wants_status(spec, 503));
    check_spec_unref(spec);
}

static void test_references(void **state)
{
    (void)state;
    struct check_config config = config_of(CHECK_TCP);
    struct check_spec *spec = NULL;
    assert_int_equal(check_spec_new(&config, &spec), RC_OK);
    assert_ptr_equal(check_spec_ref(spec), spec);
    check_spec_unref(spec);
    assert_int_equal(spec->type, CHECK_TCP);
    check_spec_unref(spec);
    check_spec_unref(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_unsound_texts),
        cmocka_unit_test(test_statuses),
        cmocka_unit_test(test_references),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
