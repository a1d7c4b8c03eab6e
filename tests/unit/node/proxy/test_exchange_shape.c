/*
 * covers: exchange_shape.c exchange_head.c policy_keep.c
 *
 * Policies at work on parsed heads, without connections: who the client is, what is refused and
 * with which lines, the head that goes to the endpoint, the lines that come with its response.
 */
#include "tests/support/unit.h"

#include "node/base/mem.h"
#include "node/proxy/exchange_shape.h"

static struct catalog catalog;
static struct worker *worker;
static struct h1_field fields[64];
static struct h1_head head;
static char bytes[8192];
static struct fwd_peer peer;
static struct addr client;

static char route_name[] = "ns/r";
static char backend_name[] = "ns/b";
static char rule_path[] = "/p";
static struct route route;
static struct backend backend;
static struct rule rule;
static struct exchange exchange;
static struct exchange_request request;
static struct uri_path path;

#define TEXTS(...)                                                                                 \
    {                                                                                              \
        .items = (const char *const[]){__VA_ARGS__},                                               \
        .count = ARRAY_LEN(((const char *const[]){__VA_ARGS__}))                                   \
    }

static const struct h1_limits limits = {
    .head_bytes = 8192, .field_count = 64, .target_bytes = 4096};

/* A request from 10.0.0.1, and an exchange for it. */
static void begin(const char *line, const char *lines)
{
    struct h1_scan scan = {0};
    int len =
        snprintf(bytes, sizeof(bytes), "%s HTTP/1.1\r\nHost: A.test:81\r\n%s\r\n", line, lines);
    h1_head_init(&head, fields, ARRAY_LEN(fields));
    assert_int_equal(h1_parse_request(&scan, bytes, (size_t)len, &limits, &head), 0);
    assert_int_equal(addr_parse("10.0.0.1:4711", &client, NULL), RC_OK);
    fwd_peer_init(&peer, &client, 80, false);
    memset(&exchange, 0, sizeof(exchange));
    exchange.worker = worker;
    exchange.client_addr = client;
    exchange.rule = &rule;
    exchange.backend = &backend;
    request =
        (struct exchange_request){.head = &head, .bytes = bytes, .peer = &peer, .client = &client};
    assert_int_equal(uri_path_canon(bytes + head.path.off, head.path.len, URI_DOTS_REMOVE,
                                    worker->path, sizeof(worker->path), &path),
                     RC_OK);
}

static void end(void)
{
    exchange_shape_end(&exchange);
    if (exchange.head != NULL) {
        chunk_put(&worker->chunks, exchange.head);
    }
}

static struct policy *with(const struct proxy_policy *from)
{
    struct policy *policy = NULL;
    struct err_info err = {0};
    assert_int_equal(policy_new(&catalog, "ns/r", from, &policy, &err), RC_OK);
    exchange.policy = policy;
    return policy;
}

static struct policy_base *settings(const struct proxy_defaults *from)
{
    struct policy_base *base = NULL;
    assert_int_equal(policy_base_new(from, &catalog, &base, NULL), RC_OK);
    return base;
}

static const char *head_out(struct policy_base *base)
{
    static char text[8192];
    assert_int_equal(exchange_build_head(&exchange, &request, &path, base, FORWARDED_APPEND),
                     REASON_NONE);
    (void)snprintf(text, sizeof(text), "%.*s", (int)exchange.head->end, exchange.head->bytes);
    return text;
}

static const char *response_lines(const char *lines)
{
    static char text[4096];
    static struct h1_field response_fields[32];
    struct h1_head response;
    struct h1_scan scan = {0};
    int len = snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\n%s\r\n", lines);
    h1_head_init(&response, response_fields, ARRAY_LEN(response_fields));
    assert_int_equal(h1_parse_response(&scan, text, (size_t)len, H1_GET, &limits, &response), 0);
    assert_true(exchange_shape_response(&exchange, &response, text));
    return worker->lines.data != NULL ? worker->lines.data : "";
}

static void who_asks(void **state)
{
    (void)state;
    const struct proxy_defaults from = {.trusted_proxies = TEXTS("10.0.0.0/8"),
                                        .unique_id_header = "X-Id"};
    struct policy_base *base = settings(&from);
    char text[ADDR_TEXT_MAX];
    begin("GET /p/x", "X-Forwarded-For: 1.2.3.4:5\r\nX-Forwarded-Proto: https\r\nX-Id: theirs\r\n");
    exchange_shape_begin(&exchange, &request, base);
    assert_string_equal(addr_format(&exchange.client_addr, text), "1.2.3.4:5");
    assert_true(exchange.peer_trusted && exchange.secure && !exchange.peer_foreign);
    assert_int_equal(exchange.request_id_len, 6);
    assert_memory_equal(exchange.request_id, "theirs", 6);
    assert_non_null(strstr(head_out(base), "\r\nX-Id: theirs\r\n"));
    end();
    begin("GET /p/x", "X-Forwarded-For: 1.2.3.4\r\nX-Id: theirs\r\n");
    assert_int_equal(addr_parse("9.9.9.9:1", &client, NULL), RC_OK);
    exchange.client_addr = client;
    exchange_shape_begin(&exchange, &request, base);
    assert_string_equal(addr_format(&exchange.client_addr, text), "9.9.9.9:1");
    assert_true(exchange.peer_foreign && !exchange.secure);
    assert_int_equal(exchange.request_id_len, 32);
    const char *out = head_out(base);
    assert_null(strstr(out, "1.2.3.4"));
    assert_null(strstr(out, "theirs"));
    end();
    policy_base_unref(base);
}

static void formats_of_ids(void **state)
{
    (void)state;
    const struct proxy_defaults from = {
        .unique_id_header = "X-Id", .unique_id_format = "%{node}/%{method}/%{request.header.a}"};
    struct policy_base *base = settings(&from);
    begin("GET /p/x", "A: b\r\n");
    exchange_shape_begin(&exchange, &request, base);
    assert_non_null(strstr(head_out(base), "\r\nX-Id: n1/GET/b\r\n"));
    end();
    policy_base_unref(base);
}

static enum reason admit(struct exchange_answer *answer)
{
    *answer = (struct exchange_answer){0};
    answer->reason = exchange_shape_admit(&exchange, &request, &path, answer);
    return answer->reason;
}

static void what_is_refused(void **state)
{
    (void)state;
    struct exchange_answer answer;
    begin("GET /p/x", "");
    struct policy *policy = with(&(const struct proxy_policy){.deny_from = TEXTS("10.0.0.1")});
    assert_int_equal(admit(&answer), REASON_DENIED);
    end();
    policy_free(policy);
    const struct proxy_policy limited = {
        .rate = {.requests = 1, .window_ms = 3600000, .connections = 1},
        .connections_max = 1,
    };
    begin("GET /p/x", "");
    policy = with(&limited);
    assert_int_equal(admit(&answer), REASON_NONE);
    assert_true(exchange.places[0] != NULL && exchange.places[1] != NULL);
    struct limiter_place *places[2] = {exchange.places[0], exchange.places[1]};
    begin("GET /p/x", "");
    exchange.policy = policy;
    assert_int_equal(admit(&answer), REASON_RATE_LIMITED);
    assert_string_equal(answer.lines, "Retry-After: 3600\r\n");
    end();
    limiter_leave(places[0]);
    limiter_leave(places[1]);
    policy_free(policy);
    const struct proxy_policy at_once = {
        .rate = {.connections = 1, .key = PROXY_RATE_HEADER, .header = "X-Key"}};
    begin("GET /p/x", "x-key: a\r\n");
    policy = with(&at_once);
    assert_int_equal(admit(&answer), REASON_NONE);
    places[0] = exchange.places[0];
    begin("GET /p/x", "x-key: a\r\n");
    exchange.policy = policy;
    assert_int_equal(admit(&answer), REASON_TOO_MANY);
    end();
    begin("GET /p/x", "x-key: b\r\n");
    exchange.policy = policy;
    assert_int_equal(admit(&answer), REASON_NONE);
    end();
    limiter_leave(places[0]);
    policy_free(policy);
}

static void what_is_answered(void **state)
{
    (void)state;
    struct exchange_answer answer;
    static const struct proxy_redirect to = {
        .scheme = PROXY_SCHEME_HTTPS, .replace_prefix = "/n", .status = 308};
    begin("GET /p/x?q", "");
    struct policy *policy = with(&(const struct proxy_policy){.redirect = &to});
    assert_int_equal(admit(&answer), REASON_REDIRECT);
    assert_int_equal(answer.status, 308);
    assert_string_equal(answer.lines, "Location: https://a.test/n/x?q\r\n");
    end();
    policy_free(policy);
    const struct proxy_cors cors = {.origins = TEXTS("https://o.test")};
    const struct proxy_policy with_cors = {.cors = &cors, .redirect = &to};
    begin("OPTIONS /p/x", "Origin: https://o.test\r\nAccess-Control-Request-Method: PUT\r\n");
    policy = with(&with_cors);
    assert_int_equal(admit(&answer), REASON_PREFLIGHT);
    assert_non_null(strstr(answer.lines, "Access-Control-Allow-Methods: PUT\r\n"));
    exchange_shape_answer(&exchange, NULL, &answer);
    assert_null(strstr(strstr(answer.lines, "Allow-Origin") + 1, "Allow-Origin"));
    end();
    begin("GET /p/x", "Origin: https://o.test\r\n");
    exchange.policy = policy;
    assert_int_equal(admit(&answer), REASON_REDIRECT);
    exchange_shape_answer(&exchange, NULL, &answer);
    assert_string_equal(answer.lines, "Location: https://a.test/n/x\r\n"
                                      "Access-Control-Allow-Origin: https://o.test\r\n"
                                      "Vary: Origin\r\n");
    end();
    policy_free(policy);
}

static void the_request_that_goes_out(void **state)
{
    (void)state;
    static const struct proxy_edit edits[] = {
        {PROXY_EDIT_SET, "X-All",
         "%{client.address}|%{host}|%{path}|%{query}|%{method}|%{route}|"
         "%{namespace}|%{backend}|%{node}|%{scheme}|%{listener.port}"},
        {PROXY_EDIT_DELETE, "User-Agent", NULL},
        {PROXY_EDIT_SET, "X-Forwarded-Proto", "https"},
    };
    static const struct proxy_rewrite rewrite = {.replace_prefix = "/in", .host = "in.test"};
    static const struct proxy_edit all = {PROXY_EDIT_SET, "X-All", "of Settings"};
    const struct proxy_defaults from = {.request = {&all, 1}};
    struct policy_base *base = settings(&from);
    begin("GET /p/./x?q=1", "User-Agent: me\r\nX-Forwarded-For: 1.1.1.1\r\nKeep: it\r\n");
    struct policy *policy = with(
        &(const struct proxy_policy){.request = {edits, ARRAY_LEN(edits)}, .rewrite = &rewrite});
    const char *out = head_out(base);
    assert_int_equal(strncmp(out, "GET /in/x?q=1 HTTP/1.1\r\n", 24), 0);
    assert_non_null(strstr(out, "\r\nKeep: it\r\n"));
    assert_non_null(strstr(out, "\r\nHost: in.test\r\n"));
    assert_null(strstr(out, "A.test:81\r\nHost"));
    assert_non_null(strstr(out, "\r\nX-Forwarded-Host: A.test:81\r\n"));
    assert_non_null(strstr(out, "\r\nX-Forwarded-For: 1.1.1.1, 10.0.0.1\r\n"));
    assert_non_null(strstr(out, "\r\nX-Forwarded-Proto: https\r\n"));
    assert_null(strstr(out, "X-Forwarded-Proto: http\r\n"));
    assert_null(strstr(out, "User-Agent"));
    assert_null(strstr(out, "of Settings"));
    assert_non_null(strstr(out, "\r\nX-All: 10.0.0.1|a.test|/p/./x|q=1|GET|r|ns|b|n1|http|80\r\n"));
    end();
    policy_free(policy);
    policy_base_unref(base);
}

static void the_hops_of_options_are_counted_with_policies_too(void **state)
{
    (void)state;
    static const struct proxy_edit edit = {PROXY_EDIT_SET, "X-A", "b"};
    begin("OPTIONS /p/x", "Max-Forwards: 3\r\n");
    struct policy *policy = with(&(const struct proxy_policy){.request = {&edit, 1}});
    const char *out = head_out(NULL);
    assert_non_null(strstr(out, "\r\nX-A: b\r\nMax-Forwards: 2\r\n"));
    end();
    begin("OPTIONS /p/x", "Max-Forwards: 0\r\n");
    exchange.policy = policy;
    assert_int_equal(exchange_build_head(&exchange, &request, &path, NULL, FORWARDED_APPEND),
                     REASON_OPTIONS);
    end();
    policy_free(policy);
}

static void values_of_the_request_reach_its_response(void **state)
{
    (void)state;
    static const struct proxy_edit edits[] = {
        {PROXY_EDIT_SET, "X-Rule", "%{path} %{request.header.x-a} %{response.header.age}"},
        {PROXY_EDIT_ADD, "X-Rule", "%{method}"},
        {PROXY_EDIT_SET, "X-Both", "rule"},
    };
    static const struct proxy_edit base_edits[] = {
        {PROXY_EDIT_SET, "X-Base", "%{query} %{host} %{listener.port} %{path}"},
        {PROXY_EDIT_SET, "X-Both", "Settings"},
    };
    const struct proxy_cors cors = {.origins = TEXTS("*")};
    const struct proxy_defaults from = {.response = {base_edits, 2}, .hsts = "max-age=5"};
    struct policy_base *base = settings(&from);
    struct exchange_answer answer;
    begin("GET /p/x?q", "X-A: 1\r\nX-A: 2\r\nOrigin: null\r\n");
    exchange_shape_begin(&exchange, &request, base);
    assert_ptr_equal(exchange.base, base);
    struct policy *policy =
        with(&(const struct proxy_policy){.response = {edits, 3}, .cors = &cors});
    assert_int_equal(admit(&answer), REASON_NONE);
    memset(bytes, 'z', sizeof(bytes)); /* the head is gone */
    exchange.secure = true;
    assert_string_equal(response_lines("Age: 7\r\n"),
                        "X-Rule: /p/x 1, 2 7\r\nX-Rule: GET\r\nX-Base: q a.test 80 /p/x\r\n"
                        "X-Both: Settings\r\nAccess-Control-Allow-Origin: *\r\n"
                        "Strict-Transport-Security: max-age=5\r\n");
    exchange.secure = false;
    assert_null(strstr(response_lines(""), "Strict-Transport"));
    end();
    policy_free(policy);
    /* Settings alone */
    begin("GET /p/x?q", "");
    exchange_shape_begin(&exchange, &request, base);
    assert_int_equal(admit(&answer), REASON_NONE);
    assert_string_equal(response_lines(""), "X-Base: q a.test 80 /p/x\r\nX-Both: Settings\r\n");
    end();
    policy_base_unref(base);
}

/* Nothing is kept then, but that it was looked at. */
static void cors_for_all_and_a_request_without_origin(void **state)
{
    (void)state;
    const struct proxy_cors cors = {.origins = TEXTS("*")};
    struct exchange_answer answer;
    begin("GET /p/x", "");
    struct policy *policy = with(&(const struct proxy_policy){.cors = &cors});
    buf_deinit(&worker->lines); /* as on a worker's first request */
    buf_init(&worker->lines, WORKER_LINES_MAX);
    assert_int_equal(admit(&answer), REASON_NONE);
    assert_non_null(exchange.kept);
    (void)response_lines("Access-Control-Allow-Origin: x\r\n");
    assert_int_equal(worker->lines.len, 0);
    end();
    policy_free(policy);
}

static void pages(void **state)
{
    (void)state;
    static const struct proxy_error_page mine = {.status = 502, .body = "rule", .body_len = 4};
    static const struct proxy_error_page all[] = {
        {.status = 502, .body = "all", .body_len = 3},
        {.status = 404, .content_type = "text/plain", .body = "no", .body_len = 2}};
    const struct proxy_defaults from = {.error_pages = {all, 2}};
    struct policy_base *base = settings(&from);
    begin("GET /p/x", "");
    struct policy *policy = with(&(const struct proxy_policy){.error_pages = {&mine, 1}});
    struct exchange_answer answer = {.reason = REASON_CONNECT_FAILED};
    exchange_shape_answer(&exchange, base, &answer);
    assert_string_equal(answer.body, "rule");
    answer = (struct exchange_answer){.reason = REASON_NO_ROUTE};
    exchange_shape_answer(&exchange, base, &answer);
    assert_string_equal(answer.body, "no");
    assert_string_equal(answer.content_type, "text/plain");
    answer = (struct exchange_answer){.reason = REASON_OVERLOAD};
    exchange_shape_answer(&exchange, base, &answer);
    assert_null(answer.body);
    answer = (struct exchange_answer){.reason = REASON_NO_ROUTE, .body = "own", .body_len = 3};
    exchange_shape_answer(&exchange, base, &answer);
    assert_string_equal(answer.body, "own");
    end();
    policy_free(policy);
    policy_base_unref(base);
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    char *value = mem_array(TEMPLATE_TEXT_MAX + 1, 1);
    memset(value, 'v', TEMPLATE_TEXT_MAX);
    struct proxy_edit edits[5];
    for (size_t i = 0; i < ARRAY_LEN(edits); i++) {
        edits[i] = (struct proxy_edit){PROXY_EDIT_ADD, "X-Long", value};
    }
    const struct proxy_policy from = {.request = {edits, ARRAY_LEN(edits)},
                                      .response = {edits, ARRAY_LEN(edits)}};
    begin("GET /p/x", "");
    struct policy *policy = with(&from);
    assert_int_equal(exchange_build_head(&exchange, &request, &path, NULL, FORWARDED_APPEND),
                     REASON_HEADERS_TOO_BIG);
    struct h1_head response = {.fields = fields};
    assert_false(exchange_shape_response(&exchange, &response, bytes));
    end();
    policy_free(policy);
    mem_free(value);
}

static int set_up(void **state)
{
    (void)state;
    catalog_init(&catalog, 1);
    worker = mem_lines(sizeof(*worker));
    worker->node_name = "n1";
    route.name = route_name;
    backend.name = backend_name;
    rule.route = &route;
    rule.path = rule_path;
    rule.path_len = 2;
    worker->catalog = &catalog;
    rng_init(&worker->rng, 1);
    buf_init(&worker->head_out, WORKER_HEAD_OUT_MAX);
    buf_init(&worker->lines, WORKER_LINES_MAX);
    buf_init(&worker->value, WORKER_SCRATCH_BYTES);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    buf_deinit(&worker->head_out);
    buf_deinit(&worker->lines);
    buf_deinit(&worker->value);
    chunk_pool_deinit(&worker->chunks);
    mem_free(worker);
    catalog_deinit(&catalog);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_asks),
        cmocka_unit_test(formats_of_ids),
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(what_is_answered),
        cmocka_unit_test(the_request_that_goes_out),
        cmocka_unit_test(the_hops_of_options_are_counted_with_policies_too),
        cmocka_unit_test(values_of_the_request_reach_its_response),
        cmocka_unit_test(cors_for_all_and_a_request_without_origin),
        cmocka_unit_test(pages),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
