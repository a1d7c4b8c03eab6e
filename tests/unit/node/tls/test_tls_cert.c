/*
 * tls_cert and tls_policy: what is accepted, what is refused and with which words.
 * covers: tls_cert.c, tls_policy.c, tls_generate.c
 */
#include "tests/support/unit.h"

#include "node/base/mem.h"
#include "node/tls/tls_cert.h"
#include "node/tls/tls_policy.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509v3.h>

/* ---- certificates made on the spot ---- */

static char *pem_of(BIO *bio)
{
    char *bytes = NULL;
    long len = BIO_get_mem_data(bio, &bytes);
    char *text = mem_strndup(bytes, (size_t)len);
    BIO_free(bio);
    return text;
}

static char *key_pem(EVP_PKEY *key, const char *passphrase)
{
    BIO *bio = BIO_new(BIO_s_mem());
    assert_int_equal(PEM_write_bio_PKCS8PrivateKey(
                         bio, key, passphrase != NULL ? EVP_aes_128_cbc() : NULL, passphrase,
                         passphrase != NULL ? (int)strlen(passphrase) : 0, NULL, NULL),
                     1);
    return pem_of(bio);
}

struct issued {
    X509 *x509;
    EVP_PKEY *key;
    char *pem;
};

/* name is the common name and, unless san is NULL, san the alternative names. */
static struct issued issue(EVP_PKEY *key, const char *name, const char *san,
                           const struct issued *issuer, long days)
{
    struct issued made = {.x509 = X509_new(), .key = key};
    X509_NAME *subject = X509_get_subject_name(made.x509);
    assert_int_equal(X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                                                (const unsigned char *)name, -1, -1, 0),
                     1);
    static long serial = 1;
    ASN1_INTEGER_set(X509_get_serialNumber(made.x509), ++serial);
    X509_set_version(made.x509, X509_VERSION_3);
    X509_gmtime_adj(X509_getm_notBefore(made.x509), -86400L * 10);
    X509_gmtime_adj(X509_getm_notAfter(made.x509), 86400L * days);
    X509_set_issuer_name(made.x509, issuer != NULL ? X509_get_subject_name(issuer->x509) : subject);
    X509_set_pubkey(made.x509, key);
    if (san != NULL) {
        X509_EXTENSION *ext = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, san);
        assert_non_null(ext);
        X509_add_ext(made.x509, ext, -1);
        X509_EXTENSION_free(ext);
    }
    const EVP_MD *md =
        EVP_PKEY_get_base_id(key) == EVP_PKEY_ED25519 && issuer == NULL ? NULL : EVP_sha256();
    assert_true(X509_sign(made.x509, issuer != NULL ? issuer->key : key, md) > 0);
    BIO *bio = BIO_new(BIO_s_mem());
    PEM_write_bio_X509(bio, made.x509);
    made.pem = pem_of(bio);
    return made;
}

static void issued_free(struct issued *made)
{
    X509_free(made->x509);
    EVP_PKEY_free(made->key);
    mem_free(made->pem);
}

static char *joined(const struct issued *const *parts, size_t count)
{
    char *text = mem_strdup("");
    for (size_t i = 0; i < count; i++) {
        char *more = mem_printf("%s%s", text, parts[i]->pem);
        mem_free(text);
        text = more;
    }
    return text;
}

static int read_one(const char *chain, const char *key, struct tls_cert **ret_cert,
                    struct err_info *err)
{
    const struct tls_cert_source source = {.chain = chain, .key = key};
    return tls_cert_read(&source, 1, ret_cert, err);
}

/* It is refused, and the text says why. */
static void refused(const char *chain, const char *key, const char *why)
{
    struct err_info err = {0};
    struct tls_cert *cert = NULL;
    assert_int_equal(read_one(chain, key, &cert, &err), RC_INVALID);
    if (strstr(err.text, why) == NULL) {
        print_error("\"%s\" is not in \"%s\"\n", why, err.text);
    }
    assert_non_null(strstr(err.text, why));
    assert_null(strstr(err.text, "PRIVATE KEY-----\nM"));
}

/* ---- tests ---- */

static void test_names_and_chain(void **state)
{
    (void)state;
    struct issued root = issue(EVP_EC_gen("P-256"), "root", NULL, NULL, 30);
    struct issued middle = issue(EVP_EC_gen("P-256"), "middle", NULL, &root, 30);
    struct issued leaf =
        issue(EVP_EC_gen("P-256"), "ignored",
              "DNS:Shop.Example.com,DNS:*.api.test,IP:10.0.0.1,DNS:bad name", &middle, 30);
    char *key = key_pem(leaf.key, NULL);
    const struct issued *order[] = {&leaf, &root, &middle};
    char *chain = joined(order, 3);
    struct err_info err = {0};
    struct tls_cert *cert = NULL;
    assert_int_equal(read_one(chain, key, &cert, &err), RC_OK);
    const struct tls_cert_info *info = tls_cert_info(cert);
    assert_int_equal(info->name_count, 2);
    assert_string_equal(info->names[0], "*.api.test");
    assert_string_equal(info->names[1], "shop.example.com");
    assert_string_equal(info->key_types, "ECDSA P-256");
    assert_string_equal(info->subject, "CN=ignored");
    assert_string_equal(info->issuer, "CN=middle");
    assert_int_equal(strlen(info->fingerprint), 64);
    assert_false(info->self_signed);
    assert_int_equal(info->warning_count, 1);
    assert_non_null(strstr(info->warnings[0], "not in order"));
    assert_true(tls_cert_covers(cert, "shop.example.com"));
    assert_true(tls_cert_covers(cert, "x.api.test"));
    assert_true(tls_cert_covers(cert, "*.api.test"));
    assert_false(tls_cert_covers(cert, "api.test"));
    assert_false(tls_cert_covers(cert, "x.y.api.test"));
    assert_false(tls_cert_covers(cert, "*.example.com"));
    tls_cert_unref(cert);
    mem_free(chain);

    struct issued stranger = issue(EVP_EC_gen("P-256"), "stranger", NULL, NULL, 30);
    const struct issued *wrong[] = {&leaf, &stranger};
    chain = joined(wrong, 2);
    refused(chain, key, "none of the certificates behind the first one signed it");
    mem_free(chain);
    const struct issued *more[] = {&leaf, &middle, &stranger};
    chain = joined(more, 3);
    assert_int_equal(read_one(chain, key, &cert, &err), RC_OK);
    assert_non_null(strstr(tls_cert_info(cert)->warnings[0], "do not belong"));
    tls_cert_unref(cert);
    mem_free(chain);
    refused(middle.pem, key, "does not belong to the first certificate");
    mem_free(key);
    issued_free(&root);
    issued_free(&middle);
    issued_free(&leaf);
    issued_free(&stranger);
}

static void test_keys(void **state)
{
    (void)state;
    const struct {
        EVP_PKEY *key;
        const char *types; /* NULL: refused */
        const char *why;
    } rows[] = {
        {EVP_RSA_gen(2048), "RSA 2048", NULL},
        {EVP_RSA_gen(1024), NULL, "RSA with 1024 bits; 2048 to 8192 are accepted"},
        {EVP_EC_gen("P-384"), "ECDSA P-384", NULL},
        {EVP_EC_gen("P-521"), "ECDSA P-521", NULL},
        {EVP_EC_gen("secp256k1"), NULL, "the curve secp256k1 is not supported"},
        {EVP_PKEY_Q_keygen(NULL, NULL, "ED25519"), "Ed25519", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct issued made = issue(rows[i].key, "a.test", "DNS:a.test", NULL, 30);
        char *key = key_pem(made.key, NULL);
        if (rows[i].types == NULL) {
            refused(made.pem, key, rows[i].why);
        } else {
            struct err_info err = {0};
            struct tls_cert *cert = NULL;
            assert_int_equal(read_one(made.pem, key, &cert, &err), RC_OK);
            assert_string_equal(tls_cert_info(cert)->key_types, rows[i].types);
            assert_true(tls_cert_info(cert)->self_signed);
            tls_cert_unref(cert);
        }
        char *locked = key_pem(made.key, "secret");
        refused(made.pem, locked, "protected by a passphrase");
        mem_free(locked);
        mem_free(key);
        issued_free(&made);
    }
}

static void test_pairs_and_forms(void **state)
{
    (void)state;
    struct issued ec = issue(EVP_EC_gen("P-256"), "a.test", NULL, NULL, 30);
    struct issued rsa = issue(EVP_RSA_gen(2048), "a.test", "DNS:a.test", NULL, -1);
    char *ec_key = key_pem(ec.key, NULL), *rsa_key = key_pem(rsa.key, NULL);
    const struct tls_cert_source both[] = {{.chain = ec.pem, .key = ec_key},
                                           {.chain = rsa.pem, .key = rsa_key}};
    struct err_info err = {0};
    struct tls_cert *cert = NULL, *again = NULL;
    assert_int_equal(tls_cert_read(both, 2, &cert, &err), RC_OK);
    assert_string_equal(tls_cert_info(cert)->key_types, "ECDSA P-256, RSA 2048");
    assert_non_null(strstr(tls_cert_info(cert)->warnings[0], "common name"));
    int64_t now = (int64_t)time(NULL);
    assert_true(tls_cert_info(cert)->not_after < now); /* of the one that ends first */
    assert_int_equal(tls_cert_read(both, 2, &again, &err), RC_OK);
    assert_true(tls_cert_id(cert) != tls_cert_id(again));
    tls_cert_unref(cert);
    tls_cert_unref(again);
    const struct tls_cert_source twice[] = {both[0], both[0]};
    assert_int_equal(tls_cert_read(twice, 2, &cert, &err), RC_INVALID);
    assert_non_null(strstr(err.text, "pair 2: key: there is a pair with this kind of key"));
    refused("", ec_key, "no certificate");
    refused("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", ec_key,
            "cannot be read");
    refused(ec.pem, "nonsense", "no private key");
    const struct tls_cert_source stapled = {
        .chain = ec.pem, .key = ec_key, .ocsp = (const uint8_t *)"x", .ocsp_len = 1};
    assert_int_equal(tls_cert_read(&stapled, 1, &cert, &err), RC_INVALID);
    assert_non_null(strstr(err.text, "ocsp"));
    assert_int_equal(tls_ca_check(ec.pem, &err), RC_OK);
    assert_int_equal(tls_ca_check("", &err), RC_INVALID);
    assert_int_equal(tls_crl_check(ec.pem, &err), RC_INVALID);
    mem_free(ec_key);
    mem_free(rsa_key);
    issued_free(&ec);
    issued_free(&rsa);
}

static void test_policies(void **state)
{
    (void)state;
    struct err_info err = {0};
    struct tls_policy *one = NULL, *same = NULL, *other = NULL;
    struct tls_policy_spec spec = {.profile = TLS_PROFILE_INTERMEDIATE};
    assert_int_equal(tls_policy_new(&spec, &one, &err), RC_OK);
    assert_int_equal(tls_policy_new(&spec, &same, &err), RC_OK);
    spec.profile = TLS_PROFILE_MODERN;
    assert_int_equal(tls_policy_new(&spec, &other, &err), RC_OK);
    assert_memory_equal(tls_policy_digest(one), tls_policy_digest(same), TLS_DIGEST_BYTES);
    assert_memory_not_equal(tls_policy_digest(one), tls_policy_digest(other), TLS_DIGEST_BYTES);
    tls_policy_unref(one);
    tls_policy_unref(same);
    tls_policy_unref(other);

    static const char *const good_ciphers[] = {"ECDHE-RSA-AES128-GCM-SHA256"};
    static const char *const bad[] = {"HIGH", "nonsense", "ALL:eNULL", "-x",
                                      "TLS_AES_128_GCM_SHA256"};
    static const char *const groups[] = {"X25519", "P-256"}, *const suites[] = {
                                                                 "TLS_AES_256_GCM_SHA384"};
    struct tls_custom custom = {.min_version = "1.2",
                                .ciphers = good_ciphers,
                                .cipher_count = 1,
                                .groups = groups,
                                .group_count = 2,
                                .ciphersuites = suites,
                                .ciphersuite_count = 1};
    spec = (struct tls_policy_spec){.profile = TLS_PROFILE_CUSTOM, .custom = &custom};
    assert_int_equal(tls_policy_new(&spec, &one, &err), RC_OK);
    tls_policy_unref(one);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        custom.ciphers = &bad[i];
        assert_int_equal(tls_policy_new(&spec, &one, &err), RC_INVALID);
        assert_non_null(strstr(err.text, "no cipher of TLS 1.2"));
    }
    custom.ciphers = good_ciphers;
    custom.groups = bad;
    assert_int_equal(tls_policy_new(&spec, &one, &err), RC_INVALID);
    assert_non_null(strstr(err.text, "no group"));
    custom.group_count = 0;
    custom.min_version = "1.4";
    assert_int_equal(tls_policy_new(&spec, &one, &err), RC_INVALID);
    assert_non_null(strstr(err.text, "1.0, 1.1, 1.2 or 1.3"));
    spec = (struct tls_policy_spec){.client_auth = TLS_CLIENT_AUTH_REQUIRED};
    assert_int_equal(tls_policy_new(&spec, &one, &err), RC_INVALID);
    assert_non_null(strstr(err.text, "no authority"));
    spec = (struct tls_policy_spec){.profile = TLS_PROFILE_OLD};
    assert_int_equal(tls_policy_new(&spec, &one, &err), RC_OK);
    tls_policy_unref(one);
}

static void test_targets(void **state)
{
    (void)state;
    struct err_info err = {0};
    struct tls_target *target = NULL;
    struct tls_target_spec spec = {.verify = TLS_VERIFY_FULL};
    assert_int_equal(tls_target_new(&spec, &target, &err), RC_INVALID);
    assert_non_null(strstr(err.text, "name"));
    spec.verify = TLS_VERIFY_NONE;
    assert_int_equal(tls_target_new(&spec, &target, &err), RC_OK);
    tls_target_unref(target);
    spec.ca = "nonsense";
    assert_int_equal(tls_target_new(&spec, &target, &err), RC_INVALID);
}

static void test_generated(void **state)
{
    (void)state;
    static const char *const names[] = {"*.example.com", "example.com"};
    char *chain = NULL, *key = NULL;
    struct err_info err = {0};
    struct tls_cert *cert = NULL;
    assert_int_equal(tls_cert_generate(names, 2, &chain, &key, &err), RC_OK);
    assert_int_equal(read_one(chain, key, &cert, &err), RC_OK);
    assert_true(tls_cert_covers(cert, "x.example.com"));
    assert_int_equal(tls_cert_info(cert)->warning_count, 0);
    tls_cert_unref(cert);
    mem_free(chain);
    mem_free(key);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_and_chain), cmocka_unit_test(test_keys),
        cmocka_unit_test(test_pairs_and_forms), cmocka_unit_test(test_policies),
        cmocka_unit_test(test_targets),         cmocka_unit_test(test_generated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
