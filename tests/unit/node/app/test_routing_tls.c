/*
 * TLS of hosts: which certificate is shown, whose policy counts, and what a change marks; against a
 * fake of node/proxy/proxy.h that keeps the last word. covers: routing_certs.c, routing_tls.c
 */
#include "tests/unit/proto/objects.h"

#include "node/app/objects.h"
#include "node/app/routing.h"
#include "node/app/status.h"

/* ---- the fake data plane ---- */

static struct {
    char host[64];
    struct tls_cert *cert;
    bool has_policy;
    size_t rule_count;
    struct proxy_rule_tls rules[4];
    char routes[4][64];
} told[8];
static size_t host_calls;
static struct tls_cert *standard;
static bool strict;

struct backend {
    int unused;
};

static struct backend backend;

struct backend *backend_new(struct proxy *proxy, const char *name)
{
    (void)proxy;
    (void)name;
    return &backend;
}

void backend_unref(struct proxy *proxy, struct backend *one)
{
    (void)proxy;
    (void)one;
}

int backend_set(struct proxy *proxy, struct backend *one, const struct proxy_backend *policy,
                const struct proxy_endpoint *endpoints, size_t count, struct err_info *err)
{
    (void)proxy;
    (void)one;
    (void)policy;
    (void)endpoints;
    (void)count;
    (void)err;
    return RC_OK;
}

void backend_health(struct proxy *proxy, struct backend *one, const struct addr *addr,
                    enum proxy_health health)
{
    (void)proxy;
    (void)one;
    (void)addr;
    (void)health;
}

static size_t place_of(const char *host)
{
    size_t at = 0;
    while (strcmp(told[at].host, host) != 0 && told[at].host[0] != '\0') {
        at++;
    }
    return at;
}

int proxy_host_set(struct proxy *proxy, const char *host, const struct proxy_rule *rules,
                   size_t count, const struct proxy_host_tls *tls, struct err_info *err)
{
    (void)proxy;
    (void)err;
    size_t at = place_of(host);
    host_calls++;
    (void)snprintf(told[at].host, sizeof(told[at].host), "%s", host);
    tls_cert_unref(told[at].cert);
    told[at].cert = tls != NULL ? tls->cert : NULL;
    if (told[at].cert != NULL) {
        tls_cert_ref(told[at].cert);
    }
    told[at].has_policy = tls != NULL && tls->policy != NULL;
    told[at].rule_count = count;
    for (size_t i = 0; i < count; i++) {
        told[at].rules[i] = rules[i].tls;
        (void)snprintf(told[at].routes[i], sizeof(told[at].routes[i]), "%s", rules[i].route);
    }
    return RC_OK;
}

int proxy_tcp_set(struct proxy *proxy, uint16_t port, const struct proxy_tcp *tcp,
                  struct err_info *err)
{
    (void)proxy;
    (void)tcp;
    return err_set(err, RC_BUSY, "%u", port);
}

void proxy_tcp_remove(struct proxy *proxy, uint16_t port)
{
    (void)proxy;
    (void)port;
}

void proxy_set_defaults(struct proxy *proxy, const struct proxy_defaults *defaults)
{
    (void)proxy;
    (void)defaults;
}

void proxy_set_tls(struct proxy *proxy, const struct proxy_tls *tls)
{
    (void)proxy;
    assert_non_null(tls->policy);
    standard = tls->cert;
    strict = tls->strict_sni;
}

/* ---- a node without its network ---- */

static struct objects *objects;
static struct routing *routing;
static uint64_t hlc;

/* hlc of the write; a route's age is that of its first one. */
static void put_packed(const struct kind *kind, const char *id, const uint8_t *bytes, size_t len)
{
    hlc += 1 << 16;
    struct row row = {.kind = kind->number,
                      .id = id,
                      .id_len = (uint16_t)strlen(id),
                      .hlc = hlc,
                      .created_hlc = hlc,
                      .flags = bytes == NULL ? ROW_TOMBSTONE : 0,
                      .value = bytes,
                      .value_len = (uint32_t)len};
    struct objects_change change;
    objects_apply(objects, &row, &change);
    routing_change(routing, change.now, change.before);
    objects_change_done(&change);
}

static void put_message(const struct kind *kind, const ProtobufCMessage *message)
{
    char id[OBJECT_ID_MAX + 1];
    uint8_t *bytes;
    size_t len;
    const struct object_message *object = (const struct object_message *)(const void *)message;
    (void)object_id(kind, object->metadata, id);
    assert_int_equal(object_pack(kind, message, &bytes, &len, NULL), RC_OK);
    put_packed(kind, id, bytes, len);
    mem_free(bytes);
}

static void put(const char *manifest)
{
    const struct kind *kind = NULL;
    struct object_message *object = object_of(manifest, &kind);
    put_message(kind, &object->base);
    message_free(&object->base);
}

static void put_route(const char *name, const char *host, const char *path, const char *tls)
{
    char *text =
        mem_printf("kind: Route\nmetadata: {namespace: shop, name: %s}\nspec: {host: '%s', "
                   "path: '%s', to: [{backend: b}], tls: %s}",
                   name, host, path, tls);
    put(text);
    mem_free(text);
}

static void put_certificate(char *name, const char *dns)
{
    char namespace_[] = "shop";
    struct err_info err;
    Skein__Metadata metadata = SKEIN__METADATA__INIT;
    Skein__CertificateSpec spec = SKEIN__CERTIFICATE_SPEC__INIT;
    Skein__Certificate certificate = SKEIN__CERTIFICATE__INIT;
    metadata.namespace_ = namespace_;
    metadata.name = name;
    certificate.metadata = &metadata;
    certificate.spec = &spec;
    assert_int_equal(tls_cert_generate(&dns, 1, &spec.chain, &spec.key, &err), RC_OK);
    put_message(kind_by_name("Certificate"), &certificate.base);
    mem_free(spec.chain);
    mem_free(spec.key);
}

static const char *shown(const char *host)
{
    const struct tls_cert *cert = told[place_of(host)].cert;
    return cert != NULL ? tls_cert_info(cert)->names[0] : "";
}

static const char *warning_of(const char *id)
{
    const struct object *object = objects_find(objects, kind_by_name("Route"), id);
    status_fill(routing, NULL, object);
    const Skein__RouteStatus *status = (const void *)object->message->status;
    return status->n_warnings > 0 ? status->warnings[0] : "";
}

static int set_up(void **state)
{
    (void)state;
    static int anything;
    objects = objects_new();
    routing = routing_new();
    host_calls = 0;
    standard = NULL;
    routing_attach(routing, (struct proxy *)(void *)&anything);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    routing_free(routing);
    objects_free(objects);
    for (size_t i = 0; i < ARRAY_LEN(told); i++) {
        tls_cert_unref(told[i].cert);
    }
    memset(told, 0, sizeof(told));
    return 0;
}

/* ---- tests ---- */

static void test_choice(void **state)
{
    (void)state;
    char wild[] = "wild", exact[] = "exact", far[] = "far";
    put_route("a", "a.shop.test", "/", "{termination: Edge}");
    put_route("b", "b.shop.test", "/", "{termination: Edge}");
    put_route("p", "p.test", "/", "{termination: None}");
    routing_flush(routing);
    assert_string_equal(shown("a.shop.test"), "");
    assert_non_null(strstr(warning_of("shop/a"), "no Certificate of this namespace covers"));
    put_certificate(wild, "*.shop.test");
    routing_flush(routing);
    assert_string_equal(shown("a.shop.test"), "*.shop.test");
    assert_string_equal(shown("b.shop.test"), "*.shop.test");
    assert_string_equal(warning_of("shop/a"), "");
    host_calls = 0;
    put_certificate(exact, "a.shop.test");
    put_certificate(far, "far.test");
    routing_flush(routing);
    assert_int_equal(host_calls, 1); /* that one alone */
    assert_string_equal(shown("a.shop.test"), "a.shop.test");
    put_packed(kind_by_name("Certificate"), "shop/exact", NULL, 0);
    routing_flush(routing);
    assert_int_equal(host_calls, 2);
    assert_string_equal(shown("a.shop.test"), "*.shop.test");
    struct routing_cert_view view;
    assert_true(routing_cert_view(routing, "shop/wild", &view));
    assert_int_equal(view.routes, 2);
    assert_false(routing_cert_view(routing, "shop/exact", &view));
}

static void test_named(void **state)
{
    (void)state;
    char cert[] = "cert";
    put_route("a", "a.test", "/", "{termination: Edge, certificate: cert}");
    routing_flush(routing);
    assert_non_null(strstr(warning_of("shop/a"), "shop/cert does not exist"));
    put_certificate(cert, "other.test");
    routing_flush(routing);
    assert_string_equal(shown("a.test"), "other.test");
    assert_non_null(strstr(warning_of("shop/a"), "does not cover a.test"));
    put_packed(kind_by_name("Route"), "shop/a", NULL, 0);
    put_packed(kind_by_name("Certificate"), "shop/cert", NULL, 0);
    routing_flush(routing);
}

static void test_the_oldest_decides(void **state)
{
    (void)state;
    put_route("old", "a.test", "/", "{termination: Edge}");
    put_route("same", "a.test", "/same", "{termination: Edge, profile: Intermediate}");
    put_route("late", "a.test", "/late", "{termination: Edge, profile: Modern}");
    routing_flush(routing);
    size_t at = place_of("a.test");
    assert_false(told[at].has_policy);
    assert_int_equal(told[at].rule_count, 3);
    for (size_t i = 0; i < 3; i++) {
        bool late = strcmp(told[at].routes[i], "shop/late") == 0;
        assert_int_equal(told[at].rules[i].misdirected, late);
    }
    assert_non_null(strstr(warning_of("shop/late"), "shop/old decides profile"));

    /* Settings that agree with the late one make it right, and the other wrong. */
    put("kind: Settings\nmetadata: {name: default}\nspec: {tls: {profile: Modern, strictSni: "
        "true}}");
    routing_flush(routing);
    assert_true(strict);
    for (size_t i = 0; i < 3; i++) {
        bool same = strcmp(told[at].routes[i], "shop/same") == 0;
        assert_int_equal(told[at].rules[i].misdirected, same);
    }
    put_packed(kind_by_name("Settings"), "default", NULL, 0);
    routing_flush(routing);
}

static void test_passthrough_beside_termination(void **state)
{
    (void)state;
    put_route("through", "a.test", "/", "{termination: Passthrough}");
    put_route("edge", "a.test", "/x", "{termination: Edge}");
    put_route("first", "b.test", "/x", "{termination: Edge}");
    put_route("second", "b.test", "/", "{termination: Passthrough}");
    routing_flush(routing);
    assert_int_equal(told[place_of("a.test")].rule_count, 2);
    assert_non_null(strstr(warning_of("shop/edge"), "shop/through passes TLS"));
    assert_int_equal(told[place_of("b.test")].rule_count, 1);
    assert_string_equal(told[place_of("b.test")].routes[0], "shop/first");
    assert_non_null(strstr(warning_of("shop/second"), "shop/first terminates TLS"));
}

static void test_the_standard_one(void **state)
{
    (void)state;
    char own[] = "own";
    assert_null(standard);
    put("kind: Settings\nmetadata: {name: default}\nspec: {tls: {defaultCertificate: shop/own}}");
    routing_flush(routing);
    assert_null(standard);
    assert_string_equal(routing_missing_standard(routing), "shop/own");
    put_certificate(own, "own.test");
    routing_flush(routing);
    assert_non_null(standard);
    assert_null(routing_missing_standard(routing));
    put_packed(kind_by_name("Certificate"), "shop/own", NULL, 0);
    put_packed(kind_by_name("Settings"), "default", NULL, 0);
    routing_flush(routing);
    assert_null(standard);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_choice, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_oldest_decides, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_passthrough_beside_termination, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_standard_one, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
