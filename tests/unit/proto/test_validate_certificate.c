/*
 * What a Certificate accepts and refuses, and which keys it keeps.
 */
#include "tests/unit/proto/objects.h"

#include "proto/checks.h"

#define CERT  "kind: Certificate\nmetadata: {namespace: shop, name: web}\nspec: "
#define CHAIN "\"-----BEGIN CERTIFICATE-----\\nAA\\n-----END CERTIFICATE-----\\n\""
#define OTHER "\"-----BEGIN CERTIFICATE-----\\nBB\\n-----END CERTIFICATE-----\\n\""
#define KEY   "\"-----BEGIN PRIVATE KEY-----\\nAA\\n-----END PRIVATE KEY-----\\n\""

static void shapes(void **state)
{
    (void)state;
    assert_faults(CERT "{chain: " CHAIN ", key: " KEY "}", "");
    assert_faults(CERT "{chain: " CHAIN "}", "");
    assert_faults(CERT "{chain: " CHAIN ", key: " KEY ", also: [{chain: " OTHER ", key: " KEY "}]}",
                  "");
    assert_faults(CERT "{key: " KEY "}", "spec.chain: is missing; wants PEM: the certificate, then "
                                         "those above it\n");
    assert_faults(CERT "{chain: x, key: secret}",
                  "spec.chain: is no PEM text that starts with -----BEGIN CERTIFICATE-----\n"
                  "spec.key: is no PEM text of a private key\n");
    assert_faults(CERT "{chain: " CHAIN ", key: \"-----BEGIN ENCRYPTED PRIVATE KEY-----\"}",
                  "spec.key: has a passphrase; wants the key without one\n");
}

static void kept_keys(void **state)
{
    (void)state;
    char chain[] = "chain", other[] = "other", key[] = "key", key2[] = "key2";
    Skein__CertificateSpec old_spec = SKEIN__CERTIFICATE_SPEC__INIT;
    Skein__CertificatePair old_pair = SKEIN__CERTIFICATE_PAIR__INIT;
    Skein__CertificatePair *old_also[] = {&old_pair};
    Skein__Certificate before = SKEIN__CERTIFICATE__INIT;
    old_spec.chain = chain;
    old_spec.key = key;
    old_pair.chain = other;
    old_pair.key = key2;
    old_spec.also = old_also;
    old_spec.n_also = 1;
    before.spec = &old_spec;

    Skein__CertificateSpec spec = SKEIN__CERTIFICATE_SPEC__INIT;
    Skein__Certificate now = SKEIN__CERTIFICATE__INIT;
    now.spec = &spec;
    char third[] = "third";
    spec.chain = other; /* the pairs change places */
    certificate_keep_keys(&now.base, &before.base);
    assert_string_equal(spec.key, "key2");
    mem_free(spec.key);
    spec.key = NULL;
    spec.chain = third;
    certificate_keep_keys(&now.base, &before.base);
    assert_null(spec.key);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes),
        cmocka_unit_test(kept_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
