/*
 * compile_route: from the fields of routes and Settings to what the data plane is asked for.
 */
#include "tests/unit/proto/objects.h"

#include "node/app/compile_route.h"

static struct object_message *object;
static struct compile_store store;

static const struct proxy_policy *policy_of(const char *spec)
{
    const struct kind *kind = NULL;
    char *text = mem_printf("kind: Route\nmetadata: {name: r}\nspec:\n  host: a.b\n%s", spec);
    object = object_of(text, &kind);
    mem_free(text);
    return compile_policy("default/r", (const Skein__RouteSpec *)object->spec, &store);
}

static void done(void)
{
    compile_store_free(&store);
    message_free(&object->base);
    object = NULL;
}

static void what_asks_for_nothing_has_no_policy(void **state)
{
    (void)state;
    assert_null(policy_of("  to: [{backend: b}]\n  timeouts: {server: 1s}\n  forwarded: Never\n"));
    assert_int_equal(store.count, 0);
    done();
}

static void access_lists(void **state)
{
    (void)state;
    const struct proxy_policy *policy = policy_of(
        "  to: [{backend: b}]\n  allowFrom: [10.0.0.0/8]\n  denyFrom: ['::/0', 1.2.3.4]\n");
    assert_int_equal(policy->allow_from.count, 1);
    assert_string_equal(policy->allow_from.items[0], "10.0.0.0/8");
    assert_string_equal(policy->deny_from.items[1], "1.2.3.4");
    done();
}

static void rates(void **state)
{
    (void)state;
    const struct proxy_policy *policy =
        policy_of("  to: [{backend: b}]\n  rateLimit: {requests: 5, window: 1m, burst: 7, key: "
                  "Header, header: X-K, connections: 9}\n"
                  "  limits: {bodyBytes: 100, connections: 3}\n");
    assert_int_equal(policy->rate.requests, 5);
    assert_int_equal(policy->rate.window_ms, 60000);
    assert_int_equal(policy->rate.burst, 7);
    assert_int_equal(policy->rate.key, PROXY_RATE_HEADER);
    assert_string_equal(policy->rate.header, "X-K");
    assert_int_equal(policy->rate.connections, 9);
    assert_int_equal(policy->body_bytes_max, 100);
    assert_int_equal(policy->connections_max, 3);
    done();
    policy =
        policy_of("  to: [{backend: b}]\n  rateLimit: {requests: 5}\n  limits: {bodyBytes: 0}\n");
    assert_int_equal(policy->rate.window_ms, 1000);
    assert_int_equal(policy->rate.key, PROXY_RATE_CLIENT);
    assert_true(policy->body_bytes_max == UINT64_MAX); /* lifts the limit of Settings */
    done();
    assert_int_equal(compile_rate(NULL).requests, 0);
}

static void redirects_and_rewrites(void **state)
{
    (void)state;
    const struct proxy_policy *policy =
        policy_of("  redirect: {scheme: Https, host: New.Example.com., port: 8443, replacePrefix: "
                  "/n, status: 301}\n");
    assert_int_equal(policy->redirect->scheme, PROXY_SCHEME_HTTPS);
    assert_string_equal(policy->redirect->host, "new.example.com");
    assert_int_equal(policy->redirect->port, 8443);
    assert_string_equal(policy->redirect->replace_prefix, "/n");
    assert_int_equal(policy->redirect->status, 301);
    done();
    policy = policy_of("  redirect: {replacePath: /x}\n");
    assert_int_equal(policy->redirect->status, 302);
    assert_int_equal(policy->redirect->scheme, PROXY_SCHEME_SAME);
    assert_null(policy->redirect->host);
    done();
    policy = policy_of("  to: [{backend: b}]\n  rewrite: {replacePath: /x, host: IN.test}\n");
    assert_string_equal(policy->rewrite->replace_path, "/x");
    assert_string_equal(policy->rewrite->host, "in.test");
    done();
}

static void headers_cors_and_pages(void **state)
{
    (void)state;
    const struct proxy_policy *policy = policy_of(
        "  to: [{backend: b}]\n"
        "  headers: {request: [{name: X-A, value: v}, {action: Delete, name: X-B}], response: "
        "[{action: Add, name: X-C, value: '%{host}'}]}\n"
        "  cors: {allowOrigins: ['https://a.b'], allowMethods: [GET], allowHeaders: [X-A], "
        "exposeHeaders: [X-B], allowCredentials: true, maxAge: 10m}\n"
        "  errorPages: [{status: 404, contentType: text/plain, body: gone}]\n");
    assert_int_equal(policy->request.count, 2);
    assert_int_equal(policy->request.items[0].action, PROXY_EDIT_SET);
    assert_string_equal(policy->request.items[0].value, "v");
    assert_int_equal(policy->request.items[1].action, PROXY_EDIT_DELETE);
    assert_int_equal(policy->response.items[0].action, PROXY_EDIT_ADD);
    assert_string_equal(policy->cors->origins.items[0], "https://a.b");
    assert_int_equal(
        policy->cors->methods.count + policy->cors->headers.count + policy->cors->expose.count, 3);
    assert_true(policy->cors->credentials);
    assert_int_equal(policy->cors->max_age_s, 600);
    assert_int_equal(policy->error_pages.items[0].status, 404);
    assert_int_equal(policy->error_pages.items[0].body_len, 4);
    done();
}

static void stickiness_and_retries(void **state)
{
    (void)state;
    const struct proxy_policy *policy = policy_of(
        "  to: [{backend: b}]\n  sticky: {sameSite: Strict, maxAge: 1h, secure: true}\n"
        "  retries: {attempts: 3, \"on\": [ConnectFailure, Status], statuses: [502, 503], "
        "perTry: 2s}\n");
    assert_true(strlen(policy->sticky->cookie) > 8); /* of this route alone */
    assert_int_equal(policy->sticky->same_site, PROXY_SAME_SITE_STRICT);
    assert_int_equal(policy->sticky->max_age_s, 3600);
    assert_true(policy->sticky->secure);
    assert_string_equal(policy->sticky->path, "/");
    assert_true(policy->retries.set);
    assert_int_equal(policy->retries.attempts, 3);
    assert_int_equal(policy->retries.on, PROXY_RETRY_CONNECT | PROXY_RETRY_STATUS);
    assert_int_equal(policy->retries.status_count, 2);
    assert_int_equal(policy->retries.statuses[1], 503);
    assert_int_equal(policy->retries.per_try_ms, 2000);
    done();
    policy = policy_of("  to: [{backend: b}]\n  sticky: {enabled: false}\n");
    assert_null(policy->sticky);
    assert_false(policy->retries.set);
    done();
}

static void settings(void **state)
{
    (void)state;
    const struct kind *kind = NULL;
    object = object_of("kind: Settings\nspec:\n  trustedProxies: [10.0.0.0/8]\n"
                       "  uniqueId: {header: X-Id, format: '%{random}'}\n"
                       "  headers: {request: [{name: X-A, value: v}]}\n"
                       "  hsts: {maxAge: 365d, includeSubdomains: true, preload: true}\n"
                       "  limits: {connectionsPerClient: 4}\n"
                       "  errorPages: [{status: 503, body: x}]\n"
                       "  emptyRequests: Ignore\n  closedClient: Continue\n",
                       &kind);
    struct proxy_defaults defaults = {0};
    compile_settings(NULL, &store, &defaults);
    assert_int_equal(defaults.trusted_proxies.count, 0);
    compile_settings((const Skein__SettingsSpec *)object->spec, &store, &defaults);
    assert_string_equal(defaults.trusted_proxies.items[0], "10.0.0.0/8");
    assert_string_equal(defaults.unique_id_header, "X-Id");
    assert_string_equal(defaults.unique_id_format, "%{random}");
    assert_int_equal(defaults.request.count, 1);
    assert_string_equal(defaults.hsts, "max-age=31536000; includeSubDomains; preload");
    assert_int_equal(defaults.connections_per_client_max, 4);
    assert_int_equal(defaults.error_pages.items[0].status, 503);
    assert_null(defaults.error_pages.items[0].content_type);
    assert_true(defaults.ignore_empty && defaults.continue_closed);
    done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_asks_for_nothing_has_no_policy),
        cmocka_unit_test(access_lists),
        cmocka_unit_test(rates),
        cmocka_unit_test(redirects_and_rewrites),
        cmocka_unit_test(headers_cors_and_pages),
        cmocka_unit_test(stickiness_and_retries),
        cmocka_unit_test(settings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
