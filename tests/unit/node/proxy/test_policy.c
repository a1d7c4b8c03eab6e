/*
 * policy: what asks for nothing is nothing, what is unsound is refused by its name, and access
 * lists decide.
 */
#include "tests/support/unit.h"

#include "node/proxy/catalog.h"
#include "node/proxy/policy.h"

static struct catalog catalog;

#define TEXTS(...)                                                                                 \
    {                                                                                              \
        .items = (const char *const[]){__VA_ARGS__},                                               \
        .count = ARRAY_LEN(((const char *const[]){__VA_ARGS__}))                                   \
    }

static struct policy *make(const struct proxy_policy *from)
{
    struct policy *policy = NULL;
    struct err_info err = {0};
    assert_int_equal(policy_new(&catalog, "ns/r", from, &policy, &err), RC_OK);
    return policy;
}

static void what_asks_for_nothing_is_nothing(void **state)
{
    (void)state;
    assert_null(make(NULL));
    assert_null(make(&(const struct proxy_policy){0}));
    struct policy_base *base = NULL;
    const struct proxy_defaults none = {0};
    assert_int_equal(policy_base_new(&none, &catalog, &base, NULL), RC_OK);
    assert_null(base);
    policy_free(NULL);
    policy_base_unref(NULL);
}

static bool lets_in(const struct policy *policy, const char *text)
{
    struct addr addr;
    assert_int_equal(addr_parse_ip(text, strlen(text), &addr), RC_OK);
    return policy_allows(policy, &addr);
}

static void access_lists(void **state)
{
    (void)state;
    struct policy *policy = make(&(const struct proxy_policy){
        .allow_from = TEXTS("10.0.0.0/8", "2001:db8::/32"), .deny_from = TEXTS("10.1.0.0/16")});
    assert_true(lets_in(policy, "10.2.0.1"));
    assert_true(lets_in(policy, "::ffff:10.2.0.1"));
    assert_true(lets_in(policy, "2001:db8::1"));
    assert_false(lets_in(policy, "10.1.0.1"));
    assert_false(lets_in(policy, "11.0.0.1"));
    const struct addr nobody = {0};
    assert_false(policy_allows(policy, &nobody));
    policy_free(policy);
    policy = make(&(const struct proxy_policy){.deny_from = TEXTS("10.1.0.0/16")});
    assert_true(lets_in(policy, "11.0.0.1"));
    assert_false(lets_in(policy, "10.1.0.1"));
    policy_free(policy);
    assert_true(lets_in(NULL, "10.1.0.1"));
}

static void unsound_policies_are_refused(void **state)
{
    (void)state;
    static const struct proxy_redirect bad_path = {.replace_path = "a", .status = 302};
    static const struct proxy_redirect bad_line = {.replace_path = "/a\r\nb", .status = 302};
    static const struct proxy_redirect bad_status = {.replace_path = "/a", .status = 200};
    static const struct proxy_redirect bad_host = {.host = "a@b", .status = 302};
    static const struct proxy_rewrite bad_rewrite = {.replace_prefix = "/a?b"};
    static const struct proxy_rewrite bad_to = {.host = "a\r\n"};
    static const struct proxy_edit host = {.name = "Host", .value = "x"};
    static const struct proxy_edit bad_name = {.name = "a b", .value = "x"};
    static const struct proxy_edit bad_value = {.name = "X", .value = "%{no}"};
    static const struct proxy_edit no_value = {.name = "X", .value = NULL};
    static const struct proxy_error_page page = {.status = 200, .body = "x", .body_len = 1};
    static const struct proxy_error_page type = {.status = 404, .content_type = "a\r\nb"};
    const struct {
        struct proxy_policy policy;
        const char *says;
    } rows[] = {
        {{.allow_from = TEXTS("10.0.0.0/8", "x")}, "allowFrom"},
        {{.deny_from = TEXTS("")}, "denyFrom"},
        {{.rate = {.requests = 1, .key = PROXY_RATE_HEADER}}, "rateLimit"},
        {{.rate = {.requests = 1, .key = PROXY_RATE_HEADER, .header = "a b"}}, "rateLimit"},
        {{.redirect = &bad_path}, "redirect"},
        {{.redirect = &bad_line}, "redirect"},
        {{.redirect = &bad_status}, "redirect"},
        {{.redirect = &bad_host}, "redirect"},
        {{.rewrite = &bad_rewrite}, "rewrite"},
        {{.rewrite = &bad_to}, "rewrite"},
        {{.request = {&host, 1}}, "Host"},
        {{.response = {&bad_name, 1}}, "a b"},
        {{.response = {&bad_value, 1}}, "header X"},
        {{.hsts = "a\r\nb"}, "hsts"},
        {{.hsts = ""}, "hsts"},
        {{.cors = &(const struct proxy_cors){.origins = TEXTS("*"), .credentials = true}}, "cors"},
        {{.error_pages = {&page, 1}}, "200"},
        {{.error_pages = {&type, 1}}, "404"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct policy *policy = NULL;
        struct err_info err = {0};
        assert_int_equal(policy_new(&catalog, "ns/r", &rows[i].policy, &policy, &err), RC_INVALID);
        assert_null(policy);
        assert_non_null(strstr(err.text, "route ns/r: "));
        assert_non_null(strstr(err.text, rows[i].says));
    }
    policy_free(make(&(const struct proxy_policy){.request = {&no_value, 1}})); /* an empty value */
}

static void settings(void **state)
{
    (void)state;
    static const struct proxy_error_page pages[] = {
        {.status = 404, .content_type = "text/plain", .body = "no", .body_len = 2},
        {.status = 503, .body = "later", .body_len = 5}};
    const struct proxy_defaults defaults = {.trusted_proxies = TEXTS("10.0.0.0/8"),
                                            .unique_id_header = "X-Request-Id",
                                            .hsts = "max-age=1",
                                            .connections_per_client_max = 2,
                                            .error_pages = {pages, 2}};
    struct policy_base *base = NULL;
    assert_int_equal(policy_base_new(&defaults, &catalog, &base, NULL), RC_OK);
    assert_string_equal(base->hsts, "Strict-Transport-Security: max-age=1\r\n");
    assert_string_equal(policy_page(&base->pages, 404)->body, "no");
    assert_string_equal(policy_page(&base->pages, 503)->content_type, "text/html; charset=utf-8");
    assert_null(policy_page(&base->pages, 500));
    struct addr client, proxy;
    struct limiter_place *places[3];
    assert_int_equal(addr_parse("1.2.3.4:5", &client, NULL), RC_OK);
    assert_int_equal(addr_parse("10.2.3.4:5", &proxy, NULL), RC_OK);
    assert_true(policy_client_place(base, &client, &places[0]));
    addr_set_port(&client, 6);
    assert_true(policy_client_place(base, &client, &places[1]));
    assert_false(policy_client_place(base, &client, &places[2]));
    for (int i = 0; i < 5; i++) { /* speaks for many */
        assert_true(policy_client_place(base, &proxy, &places[2]));
        assert_null(places[2]);
    }
    assert_true(policy_client_place(NULL, &client, &places[2]));
    limiter_leave(places[0]);
    assert_true(policy_client_place(base, &client, &places[0]));
    limiter_leave(places[0]);
    limiter_leave(places[1]);
    policy_base_ref(base);
    policy_base_unref(base);
    policy_base_unref(base);
    const struct proxy_defaults bad[] = {{.trusted_proxies = TEXTS("10.0.0.0/99")},
                                         {.unique_id_header = "Host"},
                                         {.unique_id_header = "a b"},
                                         {.unique_id_header = "X", .unique_id_format = "%{route}"}};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err_info err = {0};
        assert_int_equal(policy_base_new(&bad[i], &catalog, &base, &err), RC_INVALID);
        assert_non_null(strstr(err.text, "settings: "));
    }
}

static void a_limit_keeps_its_name(void **state)
{
    (void)state;
    const struct proxy_policy one = {.rate = {.requests = 5, .window_ms = 1000}};
    struct proxy_policy same = one;
    same.deny_from = (struct proxy_texts)TEXTS("10.0.0.0/8");
    struct proxy_policy other = one;
    other.rate.requests = 6;
    struct policy *a = make(&one), *b = make(&same), *c = make(&other);
    assert_true(a->rate->limit.id == b->rate->limit.id);
    assert_true(a->rate->limit.id != c->rate->limit.id);
    policy_free(a);
    policy_free(b);
    policy_free(c);
}

static int set_up(void **state)
{
    (void)state;
    catalog_init(&catalog, 1);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    catalog_deinit(&catalog);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_asks_for_nothing_is_nothing), cmocka_unit_test(access_lists),
        cmocka_unit_test(unsound_policies_are_refused),     cmocka_unit_test(settings),
        cmocka_unit_test(a_limit_keeps_its_name),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
