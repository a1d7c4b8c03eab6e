/*
 * Sticky cookies and hash keys on parsed requests: what is found, hidden, set and hashed.
 */
#include "node/proxy/affinity.h"

#include "node/base/mem.h"
#include "node/http/h1_edit.h"
#include "node/proxy/rules.h"
#include "tests/support/unit.h"

static struct catalog catalog;
static struct backend *backends[2];
static struct worker *worker;
static struct exchange *exchange;
static struct rules rules;
static struct h1_head head;
static struct h1_field fields[64];
static struct fwd_peer peer;
static struct exchange_request request;
static char bytes[4096];

static void fill(struct backend *backend, const char *addr, char token, uint32_t weight)
{
    struct proxy_endpoint from = {.weight = weight};
    assert_int_equal(addr_parse(addr, &from.addr, NULL), RC_OK);
    memset(from.token, token, sizeof(from.token));
    memset(from.old_token, token + 1, sizeof(from.old_token));
    const struct proxy_backend policy = {.balance = BALANCE_RANDOM};
    struct err_info err;
    assert_int_equal(backend_replace(backend, &policy, &from, 1, &err), RC_OK);
}

static void make_rule(const struct proxy_sticky *sticky, uint32_t first, uint32_t second)
{
    const struct proxy_target targets[] = {{backends[0], first}, {backends[1], second}};
    const struct proxy_policy policy = {.sticky = sticky};
    const struct proxy_rule rule = {
        .route = "n/r", .path = "/", .targets = targets, .target_count = 2, .policy = &policy};
    struct err_info err;
    rules_deinit(&rules, &catalog);
    assert_int_equal(rules_init(&rules, &catalog, &rule, 1, &err), RC_OK);
    exchange->rule = rules_match(&rules, "/", 1);
}

static int setup(void **state)
{
    (void)state;
    catalog_init(&catalog, 1);
    worker = mem_lines(sizeof(*worker));
    worker->catalog = &catalog;
    worker->reader = &catalog.qsbr.readers[0];
    rng_init(&worker->rng, 1);
    buf_init(&worker->lines, 4096);
    exchange = mem_new(sizeof(*exchange));
    exchange->worker = worker;
    backends[0] = backend_make(&catalog, "a");
    backends[1] = backend_make(&catalog, "b");
    fill(backends[0], "10.0.0.1:80", 'A', 1);
    fill(backends[1], "10.0.0.2:80", 'M', 1);
    h1_head_init(&head, fields, 64);
    peer = (struct fwd_peer){.secure = false};
    request = (struct exchange_request){.head = &head, .bytes = bytes, .peer = &peer};
    rules = (struct rules){0};
    make_rule(&(const struct proxy_sticky){.cookie = "sid"}, 1, 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    qsbr_offline(worker->reader);
    endpoint_unref(exchange->wanted);
    rules_deinit(&rules, &catalog);
    backend_put(backends[0]);
    backend_put(backends[1]);
    buf_deinit(&worker->lines);
    mem_free(worker);
    mem_free(exchange);
    catalog_deinit(&catalog);
    return 0;
}

/* A request with these field lines. */
static void parse(const char *target, const char *lines)
{
    struct h1_scan scan = {0};
    const struct h1_limits limits = {4096, 64, 4096};
    int len =
        snprintf(bytes, sizeof(bytes), "GET %s HTTP/1.1\r\nHost: a.test\r\n%s\r\n", target, lines);
    assert_int_equal(h1_parse_request(&scan, bytes, (size_t)len, &limits, &head), RC_OK);
    endpoint_unref(exchange->wanted);
    exchange->wanted = NULL;
    exchange->token_is_old = false;
}

static struct endpoint *only(size_t idx)
{
    return backend_endpoints(backends[idx])->entries[0].endpoint;
}

/* 12 bytes "A": QUFB four times. */
#define TOKEN_A     "QUFBQUFBQUFBQUFB"
#define TOKEN_OLD_A "QkJCQkJCQkJCQkJC"
#define TOKEN_M     "TU1NTU1NTU1NTU1N"

static void test_the_cookie_names_endpoint_and_backend(void **state)
{
    (void)state;
    parse("/", "Cookie: x=1; sid=" TOKEN_M "\r\n");
    assert_ptr_equal(affinity_backend(exchange, &request), backends[1]); /* its weight is 0 */
    assert_ptr_equal(exchange->wanted, only(1));
    parse("/", "Cookie: x=1\r\nCookie: sid=" TOKEN_A "\r\n");
    assert_ptr_equal(affinity_backend(exchange, &request), backends[0]);
    assert_ptr_equal(exchange->wanted, only(0));
    assert_false(exchange->token_is_old);
    parse("/", "Cookie: sid=" TOKEN_OLD_A "\r\n");
    assert_ptr_equal(affinity_backend(exchange, &request), backends[0]);
    assert_true(exchange->token_is_old);
    static const char *const others[] = {
        "",
        "Cookie: sid\r\n",
        "Cookie: sid=\r\n",
        "Cookie: SID=" TOKEN_M "\r\n",
        "Cookie: sid=\"" TOKEN_M "\"\r\n",
        "Cookie: sid=" TOKEN_M "A\r\n",
        "Cookie: sid=TU1NTU1NTU1NTU1+\r\n",
        "Cookie: sid=AAAAAAAAAAAAAAAA\r\n",
        "Cookie: xsid=" TOKEN_M "; sid=x\r\n",
        "X-Cookie: sid=" TOKEN_M "\r\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        parse("/", others[i]);
        assert_ptr_equal(affinity_backend(exchange, &request), backends[0]);
        assert_null(exchange->wanted);
    }
}

static void test_an_empty_backend_is_passed_over(void **state)
{
    (void)state;
    make_rule(NULL, 1, 1);
    fill(backends[0], "10.0.0.1:80", 'A', 0);
    parse("/", "");
    for (int i = 0; i < 50; i++) {
        assert_ptr_equal(affinity_backend(exchange, &request), backends[1]);
    }
    make_rule(NULL, 1, 0);
    assert_ptr_equal(affinity_backend(exchange, &request), backends[0]); /* no other has a weight */
    make_rule(NULL, 0, 0);
    assert_null(affinity_backend(exchange, &request));
}

static void test_the_cookie_is_hidden(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"Cookie: sid=1\r\n", ""},
        {"Cookie: a=1; sid=1;b=2 \r\n", "Cookie: a=1; b=2\r\n"},
        {"Cookie: sid=1; sid=2; c\r\n", "Cookie: c\r\n"},
        {"Cookie: a=1\r\nCookie: sid=1; b=2\r\n", "Cookie: b=2\r\n"},
        {"Cookie: a=sid=1\r\n", ""},
        {"Cookie: ;;\r\n", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        parse("/", cases[i][0]);
        struct h1_out how = {0};
        affinity_hide_cookie(exchange, &request, &how);
        assert_int_equal(how.extra_len, strlen(cases[i][1]));
        assert_memory_equal(how.extra, cases[i][1], how.extra_len);
        struct buf out;
        buf_init(&out, 4096);
        assert_int_equal(h1_write_request(&out, &head, bytes, &how), RC_OK);
        assert_null(strstr(out.data, " sid="));
        buf_deinit(&out);
    }
    /* What was taken out before does not come back. */
    parse("/", "Cookie: a=1; sid=1\r\n");
    h1_drop_id(&head, H1_COOKIE);
    struct h1_out gone = {0};
    affinity_hide_cookie(exchange, &request, &gone);
    assert_int_equal(gone.extra_len, 0);
    parse("/", "Connection: cookie\r\nCookie: a=1; sid=1\r\n");
    affinity_hide_cookie(exchange, &request, &gone);
    assert_int_equal(gone.extra_len, 0);
    /* What stood there before stays. */
    parse("/", "Cookie: a=1; sid=1\r\n");
    struct h1_out how = {.extra = "X: y\r\n", .extra_len = 6};
    affinity_hide_cookie(exchange, &request, &how);
    assert_string_equal(how.extra, "X: y\r\nCookie: a=1\r\n");
}

static void expect_cookie(const char *expected)
{
    buf_reset(&worker->lines);
    affinity_set_cookie(exchange, &worker->lines);
    assert_string_equal(worker->lines.data != NULL ? worker->lines.data : "", expected);
}

static void test_the_cookie_is_set_when_another_answers(void **state)
{
    (void)state;
    exchange->endpoint = only(0);
    expect_cookie("Set-Cookie: sid=" TOKEN_A "; Path=/; HttpOnly; SameSite=Lax\r\n"
                  "Cache-Control: private\r\n");
    exchange->secure = true;
    expect_cookie("Set-Cookie: sid=" TOKEN_A "; Path=/; HttpOnly; SameSite=Lax; Secure\r\n"
                  "Cache-Control: private\r\n");
    make_rule(&(const struct proxy_sticky){.cookie = "c",
                                           .same_site = PROXY_SAME_SITE_NONE,
                                           .max_age_s = 60,
                                           .path = "/x",
                                           .secure_set = true,
                                           .secure = false},
              1, 1);
    expect_cookie("Set-Cookie: c=" TOKEN_A "; Path=/x; Max-Age=60; HttpOnly; SameSite=None\r\n"
                  "Cache-Control: private\r\n");
    exchange->wanted = only(0);
    endpoint_ref(exchange->wanted);
    expect_cookie("");
    exchange->token_is_old = true;
    buf_reset(&worker->lines);
    affinity_set_cookie(exchange, &worker->lines);
    assert_int_not_equal(worker->lines.len, 0);
    exchange->endpoint = NULL;
    expect_cookie("");
}

static uint64_t key_of(enum proxy_hash_on on, const char *name, const char *target,
                       const char *lines)
{
    const struct proxy_backend policy = {.balance = BALANCE_HASH, .hash_on = on, .hash_name = name};
    struct err_info err;
    assert_int_equal(backend_replace(backends[0], &policy, NULL, 0, &err), RC_OK);
    exchange->backend = backends[0];
    exchange->hash = 0;
    parse(target, lines);
    struct uri_path path = {.at = bytes + head.path.off, .len = head.path.len};
    affinity_key(exchange, &request, &path);
    assert_int_not_equal(exchange->hash, 0);
    return exchange->hash;
}

static void test_keys(void **state)
{
    (void)state;
    assert_int_equal(addr_parse("[2001:db8::1]:1234", &exchange->client_addr, NULL), RC_OK);
    uint64_t client = key_of(PROXY_HASH_CLIENT, NULL, "/", "");
    assert_int_equal(client, affinity_client_key(&exchange->client_addr));
    addr_set_port(&exchange->client_addr, 9);
    assert_int_equal(client, affinity_client_key(&exchange->client_addr));
    struct addr other;
    assert_int_equal(addr_parse("[2001:db8::2]:9", &other, NULL), RC_OK);
    assert_int_not_equal(client, affinity_client_key(&other)); /* not by prefix */

    assert_int_equal(key_of(PROXY_HASH_HEADER, "X-Key", "/", "x-KEY: v\r\n"),
                     key_of(PROXY_HASH_HEADER, "x-key", "/other", "A: b\r\nX-Key:  v \r\n"));
    assert_int_not_equal(key_of(PROXY_HASH_HEADER, "X-Key", "/", "X-Key: v\r\n"),
                         key_of(PROXY_HASH_HEADER, "X-Key", "/", "X-Key: w\r\n"));
    assert_int_equal(key_of(PROXY_HASH_HEADER, "X-Key", "/", ""), client);
    assert_int_equal(key_of(PROXY_HASH_HEADER, "X-Key", "/", "X-Key:\r\n"), client);

    assert_int_equal(key_of(PROXY_HASH_COOKIE, "id", "/", "Cookie: a=b; id=7\r\n"),
                     key_of(PROXY_HASH_COOKIE, "id", "/", "Cookie: id=7; c=d\r\n"));
    assert_int_equal(key_of(PROXY_HASH_COOKIE, "id", "/", "Cookie: ID=7\r\n"), client);
    assert_int_equal(key_of(PROXY_HASH_QUERY, "u", "/x?a=1&u=7", ""),
                     key_of(PROXY_HASH_QUERY, "u", "/y?u=7&b", ""));
    assert_int_equal(key_of(PROXY_HASH_QUERY, "u", "/x?U=7&uu=7&u", ""), client);
    assert_int_equal(key_of(PROXY_HASH_QUERY, "u", "/x", ""), client);
    assert_int_equal(key_of(PROXY_HASH_PATH, NULL, "/x?1", ""),
                     key_of(PROXY_HASH_PATH, NULL, "/x?2", ""));
    assert_int_not_equal(key_of(PROXY_HASH_PATH, NULL, "/x", ""),
                         key_of(PROXY_HASH_PATH, NULL, "/y", ""));
    assert_int_equal(key_of(PROXY_HASH_HOST, NULL, "/x", ""),
                     key_of(PROXY_HASH_HOST, NULL, "/y", ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_cookie_names_endpoint_and_backend, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_an_empty_backend_is_passed_over, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_cookie_is_hidden, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_cookie_is_set_when_another_answers, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_keys, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
