/*
 * compile_tls: what is demanded of clients, and whose word counts. check_tls: what is refused
 * before it is written. covers: compile_tls.c, check_tls.c
 */
#include "tests/unit/proto/objects.h"

#include "node/app/check_tls.h"
#include "node/app/compile_tls.h"

static struct compile_store store;
static char *chain;
static char *key;

static int set_up(void **state)
{
    (void)state;
    static const char *const names[] = {"a.test", "*.b.test"};
    struct err_info err;
    assert_int_equal(tls_cert_generate(names, 2, &chain, &key, &err), RC_OK);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    mem_free(chain);
    mem_free(key);
    return 0;
}

static struct object_message *route_of(const char *tls)
{
    const struct kind *kind = NULL;
    char *text = mem_printf(
        "kind: Route\nmetadata: {name: r}\nspec: {host: a.test, to: [{backend: b}], tls: %s}", tls);
    struct object_message *object = object_of(text, &kind);
    mem_free(text);
    return object;
}

static const Skein__RouteTls *tls_of(const struct object_message *object)
{
    return ((const Skein__RouteSpec *)(const void *)object->spec)->tls;
}

static void test_rules(void **state)
{
    (void)state;
    struct object_message *object =
        route_of("{termination: Edge, insecure: Redirect, redirectStatus: 301}");
    struct proxy_rule_tls rule = compile_rule_tls(tls_of(object), NULL, NULL, &store);
    assert_int_equal(rule.termination, PROXY_EDGE);
    assert_int_equal(rule.insecure, PROXY_INSECURE_REDIRECT);
    assert_int_equal(rule.redirect_status, 301);
    assert_null(rule.client_cert);
    message_free(&object->base);
    object = route_of("{termination: Passthrough}");
    rule = compile_rule_tls(tls_of(object), NULL, NULL, &store);
    assert_int_equal(rule.termination, PROXY_PASSTHROUGH);
    assert_int_equal(rule.insecure, PROXY_INSECURE_DENY);
    message_free(&object->base);
    rule = compile_rule_tls(NULL, NULL, NULL, &store);
    assert_int_equal(rule.termination, PROXY_PLAIN);
}

static void test_whose_word_counts(void **state)
{
    (void)state;
    struct err_info err;
    char modern[] = "1.3";
    Skein__SettingsTls settings = SKEIN__SETTINGS_TLS__INIT;
    Skein__ClientAuth auth = SKEIN__CLIENT_AUTH__INIT;
    settings.has_profile = true;
    settings.profile = SKEIN__TLS_PROFILE__Custom;
    settings.min_version = modern;
    auth.has_policy = true;
    auth.policy = SKEIN__CLIENT_AUTH__POLICY__Required;
    auth.ca = chain;
    struct object_message *plain = route_of("{termination: Edge}");
    struct object_message *own = route_of("{termination: Edge, profile: Old}");
    struct tls_policy *inherited, *overridden, *of_settings;
    assert_int_equal(compile_tls_policy(tls_of(plain), &settings, &inherited, &err), RC_OK);
    assert_int_equal(compile_tls_policy(tls_of(own), &settings, &overridden, &err), RC_OK);
    assert_int_equal(compile_tls_policy(NULL, &settings, &of_settings, &err), RC_OK);
    assert_memory_equal(tls_policy_digest(inherited), tls_policy_digest(of_settings),
                        TLS_DIGEST_BYTES);
    assert_memory_not_equal(tls_policy_digest(overridden), tls_policy_digest(of_settings),
                            TLS_DIGEST_BYTES);
    assert_false(compile_tls_has_policy(tls_of(plain)));
    assert_true(compile_tls_has_policy(tls_of(own)));
    assert_false(compile_tickets_off(tls_of(plain), &settings));

    settings.client_auth = &auth;
    assert_true(compile_tickets_off(tls_of(plain), &settings));
    struct proxy_rule_tls rule = compile_rule_tls(tls_of(plain), &settings, NULL, &store);
    assert_true(rule.client_cert->required && rule.client_cert->tell);
    tls_policy_unref(inherited);
    tls_policy_unref(overridden);
    tls_policy_unref(of_settings);
    message_free(&plain->base);
    message_free(&own->base);
}

static void test_settings(void **state)
{
    (void)state;
    struct proxy_tls tls = compile_proxy_tls(NULL);
    assert_int_equal(tls.inspect_ms, 5000);
    assert_int_equal(tls.handshakes_max, 4096);
    assert_false(tls.strict_sni || tls.tickets_off);
}

static void test_reencrypt(void **state)
{
    (void)state;
    struct err_info err;
    struct tls_target *by_host, *by_name;
    struct object_message *object = route_of("{termination: Reencrypt}");
    struct object_message *named = route_of("{termination: Reencrypt, serverName: a.test}");
    assert_int_equal(compile_reencrypt(tls_of(object), "a.test", &by_host, &err), RC_OK);
    assert_int_equal(compile_reencrypt(tls_of(named), "*.test", &by_name, &err), RC_OK);
    assert_memory_equal(tls_target_digest(by_host), tls_target_digest(by_name), TLS_DIGEST_BYTES);
    tls_target_unref(by_host);
    tls_target_unref(by_name);
    assert_int_equal(compile_reencrypt(tls_of(object), "*.test", &by_host, &err), RC_INVALID);
    message_free(&object->base);
    message_free(&named->base);
}

static void assert_refused(const char *kind_name, ProtobufCMessage *message, const char *path)
{
    struct faults faults;
    faults_init(&faults);
    check_tls(kind_by_name(kind_name), message, &faults);
    if (path == NULL) {
        assert_false(faults_any(&faults));
    } else {
        assert_true(faults_any(&faults));
        assert_string_equal(faults.items[0].path, path);
        assert_null(strstr(faults.items[0].text, key + 40));
    }
    faults_deinit(&faults);
}

static void test_certificates(void **state)
{
    (void)state;
    static const char *const names[] = {"other.test"};
    struct err_info err;
    char *other_chain, *other_key;
    Skein__CertificateSpec spec = SKEIN__CERTIFICATE_SPEC__INIT;
    Skein__Certificate certificate = SKEIN__CERTIFICATE__INIT;
    assert_int_equal(tls_cert_generate(names, 1, &other_chain, &other_key, &err), RC_OK);
    certificate.spec = &spec;
    spec.chain = chain;
    assert_refused("Certificate", &certificate.base, "spec.key");
    spec.key = other_key;
    assert_refused("Certificate", &certificate.base, "spec");
    spec.key = key;
    assert_refused("Certificate", &certificate.base, NULL);
    struct tls_cert *cert;
    assert_int_equal(compile_certificate(&spec, &cert, &err), RC_OK);
    assert_true(tls_cert_covers(cert, "x.b.test"));
    tls_cert_unref(cert);
    mem_free(other_chain);
    mem_free(other_key);
}

static void test_words(void **state)
{
    (void)state;
    struct object_message *object = route_of(
        "{termination: Edge, profile: Custom, minVersion: '1.2', ciphers: [NO-SUCH-SUITE]}");
    assert_refused("Route", &object->base, "spec.tls");
    message_free(&object->base);
    object =
        route_of("{termination: Reencrypt, destinationCa: \"-----BEGIN CERTIFICATE-----\\nAA\\n"
                 "-----END CERTIFICATE-----\\n\"}");
    assert_refused("Route", &object->base, "spec.tls.destinationCa");
    message_free(&object->base);
    object = route_of("{termination: Edge}");
    assert_refused("Route", &object->base, NULL);
    message_free(&object->base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules),        cmocka_unit_test(test_whose_word_counts),
        cmocka_unit_test(test_settings),     cmocka_unit_test(test_reencrypt),
        cmocka_unit_test(test_certificates), cmocka_unit_test(test_words),
    };
    int failed = cmocka_run_group_tests(tests, set_up, tear_down);
    compile_store_free(&store);
    return failed;
}
