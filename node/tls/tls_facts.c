/*
 * What an open connection came to, for logs and header fields.
 */
#include "node/base/check.h"
#include "node/tls/tls_impl.h"
#include "node/tls/tls_lib.h"

#include <openssl/evp.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

void tls_engine_facts(const struct tls_engine *eng, struct tls_facts *ret_facts)
{
    const SSL *ssl = tls_engine_ssl(eng);
    const char *cipher = SSL_get_cipher_name(ssl);
    *ret_facts = (struct tls_facts){
        .version = SSL_get_version(ssl),
        .cipher = cipher != NULL ? cipher : "",
        .resumed = SSL_session_reused(ssl) == 1,
    };
}

static void put_text(char *out, size_t size, BIO *bio)
{
    char *bytes = NULL;
    size_t len = (size_t)MAX(BIO_get_mem_data(bio, &bytes), 0L);
    len = MIN(len, size - 1);
    for (size_t i = 0; i < len; i++) { /* it goes into a header field */
        out[i] = bytes[i] >= ' ' && bytes[i] < 0x7f ? bytes[i] : '?';
    }
    out[len] = '\0';
}

static void put_name(char *out, size_t size, const X509_NAME *name)
{
    BIO *bio = BIO_new(BIO_s_mem());
    ASSERT(bio != NULL);
    (void)X509_NAME_print_ex(bio, name, 0, XN_FLAG_RFC2253);
    put_text(out, size, bio);
    BIO_free(bio);
}

static int64_t put_time(char out[24], const ASN1_TIME *time)
{
    struct tm tm = {0};
    if (ASN1_TIME_to_tm(time, &tm) != 1) {
        out[0] = '\0';
        return 0;
    }
    (void)strftime(out, 24, "%Y-%m-%dT%H:%M:%SZ", &tm);
    return (int64_t)timegm(&tm);
}

static void put_serial(char *out, size_t size, X509 *x509)
{
    BIGNUM *number = ASN1_INTEGER_to_BN(X509_get0_serialNumber(x509), NULL);
    char *hex = number != NULL ? BN_bn2hex(number) : NULL;
    (void)snprintf(out, size, "%s", hex != NULL ? hex : "");
    OPENSSL_free(hex);
    BN_free(number);
}

bool tls_engine_peer(const struct tls_engine *eng, struct tls_peer *ret_peer)
{
    const SSL *ssl = tls_engine_ssl(eng);
    X509 *x509 = SSL_get0_peer_certificate(ssl);
    memset(ret_peer, 0, sizeof(*ret_peer));
    if (x509 == NULL || SSL_get_verify_result(ssl) != X509_V_OK) {
        return false;
    }
    put_name(ret_peer->subject, sizeof(ret_peer->subject), X509_get_subject_name(x509));
    put_name(ret_peer->issuer, sizeof(ret_peer->issuer), X509_get_issuer_name(x509));
    put_serial(ret_peer->serial, sizeof(ret_peer->serial), x509);
    ret_peer->not_after_s = put_time(ret_peer->not_after, X509_get0_notAfter(x509));
    (void)put_time(ret_peer->not_before, X509_get0_notBefore(x509));
    X509_NAME *subject = X509_get_subject_name(x509);
    int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
    if (at >= 0) {
        BIO *bio = BIO_new(BIO_s_mem());
        ASSERT(bio != NULL);
        (void)ASN1_STRING_print_ex(bio, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)),
                                   ASN1_STRFLGS_UTF8_CONVERT);
        put_text(ret_peer->common_name, sizeof(ret_peer->common_name), bio);
        BIO_free(bio);
    }
    unsigned char print[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    ASSERT(X509_digest(x509, EVP_sha256(), print, &len) == 1 && len == 32);
    for (size_t i = 0; i < len; i++) {
        (void)snprintf(ret_peer->fingerprint + i * 2, 3, "%02x", print[i]);
    }
    return true;
}

bool tls_engine_peer_der(const struct tls_engine *eng, struct buf *out)
{
    X509 *x509 = SSL_get0_peer_certificate(tls_engine_ssl(eng));
    unsigned char *der = NULL;
    int len = x509 != NULL ? i2d_X509(x509, &der) : 0;
    if (len <= 0) {
        return false;
    }
    char *room = buf_reserve(out, (size_t)len * 4 / 3 + 8);
    if (room != NULL) {
        buf_grow(out, (size_t)EVP_EncodeBlock((unsigned char *)room, der, len));
    }
    OPENSSL_free(der);
    return room != NULL;
}

const char *tls_engine_verify_text(const struct tls_engine *eng)
{
    static _Thread_local char text[384];
    const SSL *ssl = tls_engine_ssl(eng);
    long result = SSL_get_verify_result(ssl);
    if (result == X509_V_OK || tls_engine_state(eng) != TLS_FAILED ||
        SSL_get_verify_mode(ssl) == SSL_VERIFY_NONE) {
        return ""; /* or nobody minded */
    }
    bool of_name =
        result == X509_V_ERR_HOSTNAME_MISMATCH || result == X509_V_ERR_IP_ADDRESS_MISMATCH;
    const struct tls_session *own = SSL_get_app_data(ssl);
    if (!of_name || own->target == NULL || own->target->server_name == NULL) {
        return X509_verify_cert_error_string(result);
    }
    (void)snprintf(text, sizeof(text), "%s: expected %s", X509_verify_cert_error_string(result),
                   own->target->server_name);
    return text;
}
