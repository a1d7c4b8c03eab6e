/*
 * What a server shows and says: the key that a client can use, old versions where they are asked
 * for, the stapled response, key log lines, and clients whose certificate was revoked.
 * covers: tls_lib.c, tls_policy.c
 */
#include "tests/support/unit.h"

#include "node/base/mem.h"
#include "node/tls/tls_impl.h"
#include "node/tls/tls_lib.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/ocsp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <unistd.h>

enum { CAP = 100000, RSA_BITS = 2048, SERIAL = 77 };

static const struct ticket_ring *ring_of(void *arg)
{
    return arg;
}

static char *pem_of(BIO *bio)
{
    char *bytes = NULL;
    long len = BIO_get_mem_data(bio, &bytes);
    char *text = mem_strndup(bytes, (size_t)len);
    BIO_free(bio);
    return text;
}

/* Self-signed, an authority for itself. */
struct own {
    EVP_PKEY *key;
    X509 *x509;
    char *chain, *secret;
};

static struct own make_own(EVP_PKEY *key)
{
    struct own own = {.key = key, .x509 = X509_new()};
    X509_NAME *name = X509_get_subject_name(own.x509);
    assert_int_equal(
        X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const uint8_t *)"own", -1, -1, 0), 1);
    assert_int_equal(X509_set_version(own.x509, X509_VERSION_3), 1);
    ASN1_INTEGER_set(X509_get_serialNumber(own.x509), SERIAL);
    X509_gmtime_adj(X509_getm_notBefore(own.x509), -86400);
    X509_gmtime_adj(X509_getm_notAfter(own.x509), 86400);
    X509_set_issuer_name(own.x509, name);
    X509_set_pubkey(own.x509, key);
    assert_true(X509_sign(own.x509, key, EVP_sha256()) > 0);
    BIO *chain = BIO_new(BIO_s_mem()), *secret = BIO_new(BIO_s_mem());
    assert_int_equal(PEM_write_bio_X509(chain, own.x509), 1);
    assert_int_equal(PEM_write_bio_PKCS8PrivateKey(secret, key, NULL, NULL, 0, NULL, NULL), 1);
    own.chain = pem_of(chain);
    own.secret = pem_of(secret);
    return own;
}

static void own_free(struct own *own)
{
    EVP_PKEY_free(own->key);
    X509_free(own->x509);
    mem_free(own->chain);
    mem_free(own->secret);
}

static struct tls_cert *read_pairs(const struct tls_cert_source *pairs, size_t count)
{
    struct err_info err = {0};
    struct tls_cert *cert = NULL;
    assert_int_equal(tls_cert_read(pairs, count, &cert, &err), RC_OK);
    return cert;
}

static struct tls_lib *make_lib(struct ticket_ring *ring, int keylog_fd)
{
    struct err_info err = {0};
    struct tls_lib *lib = NULL;
    const struct tls_lib_config config = {
        .tickets = ring != NULL ? ring_of : NULL, .arg = ring, .keylog_fd = keylog_fd};
    assert_int_equal(tls_lib_new(&config, &lib, &err), RC_OK);
    return lib;
}

static struct tls_policy *make_policy(const struct tls_policy_spec *spec)
{
    struct err_info err = {0};
    struct tls_policy *policy = NULL;
    assert_int_equal(tls_policy_new(spec, &policy, &err), RC_OK);
    return policy;
}

/* ---- one connection; the server and its client are of one library ---- */

struct talk {
    struct tls_engine *server, *client;
    struct buf to_client, to_server, plain;
};

/* What a client is like. */
struct like {
    struct tls_cert *cert;
    struct tls_resume *resume;
    const char *sigalgs; /* NULL: OpenSSL's */
    int version;         /* 0: any */
    bool wants_status;
};

static void begin(struct talk *talk, struct tls_lib *lib, const struct tls_accept *accept,
                  const struct like *like)
{
    struct err_info err = {0};
    struct tls_target *target = NULL;
    memset(talk, 0, sizeof(*talk));
    buf_init(&talk->to_client, CAP);
    buf_init(&talk->to_server, CAP);
    buf_init(&talk->plain, CAP);
    const struct tls_target_spec to = {
        .profile = TLS_PROFILE_OLD, .verify = TLS_VERIFY_NONE, .client_cert = like->cert};
    assert_int_equal(tls_target_new(&to, &target, &err), RC_OK);
    assert_int_equal(tls_lib_accept(lib, accept, &talk->to_client, &talk->server, &err), RC_OK);
    assert_int_equal(
        tls_lib_connect(lib, target, like->resume, &talk->to_server, &talk->client, &err), RC_OK);
    tls_target_unref(target);
    SSL *ssl = tls_engine_ssl(talk->client);
    if (like->sigalgs != NULL) {
        char *list = mem_strdup(like->sigalgs); /* the macro casts const away */
        assert_int_equal(SSL_set1_sigalgs_list(ssl, list), 1);
        mem_free(list);
    }
    if (like->version != 0) {
        assert_int_equal(SSL_set_min_proto_version(ssl, like->version), 1);
        assert_int_equal(SSL_set_max_proto_version(ssl, like->version), 1);
    }
    if (like->wants_status) {
        assert_int_equal(SSL_set_tlsext_status_type(ssl, TLSEXT_STATUSTYPE_ocsp), 1);
    }
    assert_int_equal(tls_engine_start(talk->client), RC_OK);
}

static void move(struct buf *from, struct tls_engine *to, struct buf *plain)
{
    size_t used = 0;
    if (tls_engine_feed(to, (const uint8_t *)from->data, from->len, &used, plain) != RC_OK) {
        used = from->len; /* it failed: nobody reads the rest */
    }
    buf_drop(from, used);
}

static bool settle(struct talk *talk)
{
    while (talk->to_client.len != 0 || talk->to_server.len != 0) {
        move(&talk->to_server, talk->server, &talk->plain);
        move(&talk->to_client, talk->client, &talk->plain);
    }
    if (tls_engine_state(talk->server) == TLS_OPEN) {
        tls_engine_ticket(talk->server);
        move(&talk->to_client, talk->client, &talk->plain);
    }
    return tls_engine_state(talk->server) == TLS_OPEN && tls_engine_state(talk->client) == TLS_OPEN;
}

static void finish(struct talk *talk)
{
    tls_engine_free(talk->server);
    tls_engine_free(talk->client);
    buf_deinit(&talk->to_client);
    buf_deinit(&talk->to_server);
    buf_deinit(&talk->plain);
}

/* ---- tests ---- */

static void test_the_key_fits_the_client(void **state)
{
    (void)state;
    struct own rsa = make_own(EVP_RSA_gen(RSA_BITS)), ec = make_own(EVP_EC_gen("P-256"));
    const struct tls_cert_source pairs[] = {{.chain = rsa.chain, .key = rsa.secret},
                                            {.chain = ec.chain, .key = ec.secret}};
    struct tls_cert *cert = read_pairs(pairs, 2);
    struct tls_policy *policy = make_policy(&(struct tls_policy_spec){.profile = TLS_PROFILE_OLD});
    struct tls_lib *lib = make_lib(NULL, -1);
    const struct tls_accept accept = {.policy = policy, .cert = cert};
    static const struct {
        struct like like;
        int key;
    } rows[] = {
        {{.version = TLS1_3_VERSION}, EVP_PKEY_EC},
        {{.version = TLS1_2_VERSION}, EVP_PKEY_EC},
        {{.version = TLS1_3_VERSION, .sigalgs = "rsa_pss_rsae_sha256"}, EVP_PKEY_RSA},
        {{.version = TLS1_2_VERSION, .sigalgs = "RSA+SHA256"}, EVP_PKEY_RSA},
        {{.version = TLS1_1_VERSION}, EVP_PKEY_EC},
        {{.version = TLS1_VERSION}, EVP_PKEY_EC},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct talk talk;
        begin(&talk, lib, &accept, &rows[i].like);
        assert_true(settle(&talk));
        const X509 *seen = SSL_get0_peer_certificate(tls_engine_ssl(talk.client));
        assert_int_equal(EVP_PKEY_get_base_id(X509_get0_pubkey(seen)), rows[i].key);
        assert_int_equal(SSL_version(tls_engine_ssl(talk.server)), rows[i].like.version);
        finish(&talk);
    }
    tls_lib_free(lib);
    tls_policy_unref(policy);
    tls_cert_unref(cert);
    own_free(&rsa);
    own_free(&ec);
}

static void test_profiles_bound_versions(void **state)
{
    (void)state;
    struct own own = make_own(EVP_EC_gen("P-256"));
    struct tls_cert *cert =
        read_pairs(&(struct tls_cert_source){.chain = own.chain, .key = own.secret}, 1);
    struct tls_lib *lib = make_lib(NULL, -1);
    static const struct {
        enum tls_profile profile;
        int version;
        bool good;
    } rows[] = {
        {TLS_PROFILE_INTERMEDIATE, TLS1_1_VERSION, false},
        {TLS_PROFILE_INTERMEDIATE, TLS1_2_VERSION, true},
        {TLS_PROFILE_MODERN, TLS1_2_VERSION, false},
        {TLS_PROFILE_MODERN, TLS1_3_VERSION, true},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct tls_policy *policy =
            make_policy(&(struct tls_policy_spec){.profile = rows[i].profile});
        const struct tls_accept accept = {.policy = policy, .cert = cert};
        struct talk talk;
        begin(&talk, lib, &accept, &(struct like){.version = rows[i].version});
        assert_int_equal(settle(&talk), rows[i].good);
        if (!rows[i].good) {
            assert_int_equal(tls_engine_peer_alert(talk.client), SSL_AD_PROTOCOL_VERSION);
        }
        finish(&talk);
        tls_policy_unref(policy);
    }
    tls_lib_free(lib);
    tls_cert_unref(cert);
    own_free(&own);
}

/* An OCSPResponse about the certificate, signed by itself; to be freed with OPENSSL_free. */
static unsigned char *make_status(const struct own *own, size_t *ret_len)
{
    OCSP_BASICRESP *basic = OCSP_BASICRESP_new();
    OCSP_CERTID *id = OCSP_cert_to_id(EVP_sha1(), own->x509, own->x509);
    ASN1_TIME *now = X509_gmtime_adj(NULL, 0);
    assert_non_null(OCSP_basic_add1_status(basic, id, V_OCSP_CERTSTATUS_GOOD, 0, NULL, now, NULL));
    assert_int_equal(OCSP_basic_sign(basic, own->x509, own->key, EVP_sha256(), NULL, 0), 1);
    OCSP_RESPONSE *response = OCSP_response_create(OCSP_RESPONSE_STATUS_SUCCESSFUL, basic);
    unsigned char *der = NULL;
    *ret_len = (size_t)i2d_OCSP_RESPONSE(response, &der);
    OCSP_RESPONSE_free(response);
    OCSP_BASICRESP_free(basic);
    OCSP_CERTID_free(id);
    ASN1_TIME_free(now);
    return der;
}

static void test_status_and_key_log(void **state)
{
    (void)state;
    struct own own = make_own(EVP_EC_gen("P-256"));
    size_t len = 0;
    unsigned char *status = make_status(&own, &len);
    const struct tls_cert_source source = {
        .chain = own.chain, .key = own.secret, .ocsp = status, .ocsp_len = len};
    struct tls_cert *cert = read_pairs(&source, 1);
    struct tls_policy *policy = make_policy(&(struct tls_policy_spec){0});
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    struct tls_lib *lib = make_lib(NULL, ends[1]);
    const struct tls_accept accept = {.policy = policy, .cert = cert};
    struct talk talk;
    begin(&talk, lib, &accept, &(struct like){.wants_status = true});
    assert_true(settle(&talk));
    const unsigned char *seen = NULL;
    long seen_len = SSL_get_tlsext_status_ocsp_resp(tls_engine_ssl(talk.client), &seen);
    assert_int_equal(seen_len, len);
    assert_memory_equal(seen, status, len);
    char lines[4096] = "";
    assert_true(read(ends[0], lines, sizeof(lines) - 1) > 0);
    assert_memory_equal(lines, "SERVER_HANDSHAKE_TRAFFIC_SECRET ", 32);
    assert_non_null(strstr(lines, "\nSERVER_TRAFFIC_SECRET_0 "));
    finish(&talk);
    tls_lib_free(lib);
    (void)close(ends[0]);
    (void)close(ends[1]);
    tls_policy_unref(policy);
    tls_cert_unref(cert);
    OPENSSL_free(status);
    own_free(&own);
}

/* Of an authority that revoked its own certificate, or another one. */
static char *make_crl(const struct own *own, long serial)
{
    X509_CRL *crl = X509_CRL_new();
    ASN1_TIME *from = X509_gmtime_adj(NULL, -3600), *to = X509_gmtime_adj(NULL, 3600);
    X509_REVOKED *revoked = X509_REVOKED_new();
    ASN1_INTEGER *number = ASN1_INTEGER_new();
    ASN1_INTEGER_set(number, serial);
    X509_REVOKED_set_serialNumber(revoked, number);
    X509_REVOKED_set_revocationDate(revoked, from);
    X509_CRL_set_version(crl, X509_CRL_VERSION_2);
    X509_CRL_set_issuer_name(crl, X509_get_subject_name(own->x509));
    X509_CRL_set1_lastUpdate(crl, from);
    X509_CRL_set1_nextUpdate(crl, to);
    assert_int_equal(X509_CRL_add0_revoked(crl, revoked), 1);
    assert_true(X509_CRL_sign(crl, own->key, EVP_sha256()) > 0);
    BIO *bio = BIO_new(BIO_s_mem());
    assert_int_equal(PEM_write_bio_X509_CRL(bio, crl), 1);
    X509_CRL_free(crl);
    ASN1_TIME_free(from);
    ASN1_TIME_free(to);
    ASN1_INTEGER_free(number);
    return pem_of(bio);
}

/* With and without its ticket: who is revoked does not come in again. */
static void test_revoked_clients(void **state)
{
    (void)state;
    struct own own = make_own(EVP_EC_gen("P-256"));
    struct tls_cert *cert =
        read_pairs(&(struct tls_cert_source){.chain = own.chain, .key = own.secret}, 1);
    char *harmless = make_crl(&own, SERIAL + 1), *hit = make_crl(&own, SERIAL);
    struct tls_policy_spec spec = {
        .client_auth = TLS_CLIENT_AUTH_REQUIRED, .client_ca = own.chain, .client_crl = harmless};
    struct tls_policy *before = make_policy(&spec);
    spec.client_crl = hit;
    struct tls_policy *after = make_policy(&spec);
    const struct ticket_key key = {.state = TICKET_ACTIVE};
    struct ticket_ring *ring = ticket_ring_new(&key, 1, 3600);
    struct tls_lib *lib = make_lib(ring, -1);
    struct tls_resume resume = {0};
    const struct like with = {.cert = cert, .resume = &resume};
    const struct {
        struct tls_policy *policy;
        bool good, resumed;
    } rows[] = {{before, true, false},
                {before, true, true},
                {after, false, false},
                {after, false, false},
                {before, true, false}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        /* What a domain is made of holds what the policy says. */
        const struct tls_accept accept = {
            .policy = rows[i].policy, .cert = cert, .domain = tls_policy_digest(rows[i].policy)};
        struct talk talk;
        struct tls_facts facts;
        struct tls_peer peer;
        begin(&talk, lib, &accept, &with);
        assert_int_equal(settle(&talk), rows[i].good);
        tls_engine_facts(talk.server, &facts);
        assert_int_equal(facts.resumed, rows[i].resumed);
        assert_int_equal(rows[i].good && tls_engine_peer(talk.server, &peer), rows[i].good);
        if (!rows[i].good) {
            assert_string_equal(tls_engine_verify_text(talk.server), "certificate revoked");
        }
        finish(&talk);
    }
    tls_resume_clear(&resume);
    tls_lib_free(lib);
    ticket_ring_unref(ring);
    tls_policy_unref(before);
    tls_policy_unref(after);
    tls_cert_unref(cert);
    mem_free(harmless);
    mem_free(hit);
    own_free(&own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_key_fits_the_client),
        cmocka_unit_test(test_profiles_bound_versions),
        cmocka_unit_test(test_status_and_key_log),
        cmocka_unit_test(test_revoked_clients),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
