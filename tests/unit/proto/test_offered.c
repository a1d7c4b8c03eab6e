/*
 * What of the schema is carried out, and that the rest is refused where it is written.
 */
#include "tests/unit/proto/objects.h"

#include "proto/offered.h"

static char *refused(const char *text)
{
    const struct kind *kind = NULL;
    struct object_message *object = object_of(text, &kind);
    struct faults faults;
    faults_init(&faults);
    object_check_offered(kind, &object->base, &faults);
    struct buf out;
    buf_init(&out, 1 << 16);
    faults_format(&faults, &out);
    faults_deinit(&faults);
    message_free(&object->base);
    return buf_take(&out, NULL);
}

#define assert_refused(text, expected)                                                             \
    do {                                                                                           \
        char *found_ = refused(text);                                                              \
        assert_string_equal(found_, expected);                                                     \
        mem_free(found_);                                                                          \
    } while (0)

static void what_is_carried_out_passes(void **state)
{
    (void)state;
    assert_refused("kind: Route\nmetadata: {name: r, labels: {a: b}}\nspec: {host: a.b, path: /x, "
                   "pathType: Exact, to: [{backend: b, weight: 5}], timeouts: {server: 30s}}",
                   "");
    assert_refused("kind: Backend\nmetadata: {name: b}\nspec: {balance: LeastConn, endpoints: "
                   "[{address: 10.0.0.1:80, weight: 5, state: Drain}]}",
                   "");
    assert_refused("kind: Endpoint\nspec: {backend: b, address: '[::1]:80'}", "");
    assert_refused("kind: Endpoint\nspec: {backend: b, address: 'name.example:80'}", "");
    assert_refused("kind: Backend\nmetadata: {name: b}\nspec: {healthCheck: {type: Http, path: /x, "
                   "headers: {a: b}, statuses: ['200']}, endpoints: [{address: 'a.b:80'}]}",
                   "");
    assert_refused("kind: TcpRoute\nmetadata: {name: r}\nspec: {port: 5432, to: [{backend: b}], "
                   "timeouts: {tunnel: 2h}, allowFrom: [10.0.0.0/8], rateLimit: {requests: 5}, "
                   "limits: {connections: 3}, retries: {attempts: 1}, accessLog: false}",
                   "");
    assert_refused("kind: Namespace\nmetadata: {name: a}\nspec: {description: x}", "");
    assert_refused("kind: Settings\nspec: {timeouts: {keepAlive: 1m}, dotSegments: Keep}", "");
}

static void policies_that_nobody_enforces_are_refused(void **state)
{
    (void)state;
    struct faults faults;
    faults_init(&faults);
    /* Set is set, also to nothing. */
    Skein__Settings settings = SKEIN__SETTINGS__INIT;
    Skein__SettingsSpec spec = SKEIN__SETTINGS_SPEC__INIT;
    Skein__RequiredHsts hsts = SKEIN__REQUIRED_HSTS__INIT;
    Skein__RequiredHsts *required[] = {&hsts};
    spec.required_hsts = required;
    spec.n_required_hsts = 1;
    settings.spec = &spec;
    object_check_offered(kind_by_name("Settings"), &settings.base, &faults);
    assert_int_equal(faults.total, 1);
    assert_string_equal(faults.items[0].path, "spec.requiredHsts");
    faults_deinit(&faults);
}

static void values_are_listed(void **state)
{
    (void)state;
    assert_refused("kind: Backend\nmetadata: {name: b}\nspec: {protocol: Http2}",
                   "spec.protocol: Http2 is not available in this version; accepted: Http1 Tcp\n");
    assert_refused("kind: Route\nmetadata: {name: r}\nspec: {host: a.b, to: [{backend: b}], "
                   "rateLimit: {requests: 1, scope: "
                   "Cluster}}",
                   "spec.rateLimit.scope: Cluster is not available in this version; accepted: "
                   "Node\n");
    assert_refused("kind: Backend\nmetadata: {name: b}\nspec: {healthCheck: {type: Grpc, service: "
                   "x}}",
                   "spec.healthCheck.type: Grpc is not available in this version; accepted: None "
                   "Tcp Http\nspec.healthCheck.service: is not available in this version; leave it "
                   "out\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_carried_out_passes),
        cmocka_unit_test(policies_that_nobody_enforces_are_refused),
        cmocka_unit_test(values_are_listed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
