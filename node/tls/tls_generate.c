/*
 * A self-signed certificate: what a node shows until somebody gives it a real one.
 */
#include "node/base/buf.h"
#include "node/base/mem.h"
#include "node/tls/tls_cert.h"
#include "node/tls/tls_err.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <string.h>

enum { YEARS = 10, SERIAL_BYTES = 16, NAMES_TEXT_MAX = 65536 };

static bool set_serial(X509 *x509)
{
    unsigned char bytes[SERIAL_BYTES];
    if (RAND_bytes(bytes, sizeof(bytes)) != 1) {
        return false;
    }
    bytes[0] &= 0x7f; /* positive: RFC 5280 4.1.2.2 */
    BIGNUM *number = BN_bin2bn(bytes, sizeof(bytes), NULL);
    bool set = number != NULL && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(x509)) != NULL;
    BN_free(number);
    return set;
}

static bool add_extension(X509 *x509, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509V3_set_ctx(&ctx, x509, x509, NULL, NULL, 0);
    X509_EXTENSION *ext = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    bool added = ext != NULL && X509_add_ext(x509, ext, -1) == 1;
    X509_EXTENSION_free(ext);
    return added;
}

static bool fill(X509 *x509, EVP_PKEY *key, const char *const *names, size_t count)
{
    static const unsigned char organisation[] = "Skein";
    static const unsigned char common_name[] = "skein default";
    struct buf alternatives;
    buf_init(&alternatives, NAMES_TEXT_MAX);
    for (size_t i = 0; i < count; i++) {
        buf_printf(&alternatives, "%sDNS:%s", i == 0 ? "" : ",", names[i]);
    }
    X509_NAME *subject = X509_get_subject_name(x509);
    bool good =
        !alternatives.full && X509_set_version(x509, X509_VERSION_3) == 1 && set_serial(x509) &&
        X509_gmtime_adj(X509_getm_notBefore(x509), -3600) != NULL && /* clocks differ */
        X509_time_adj_ex(X509_getm_notAfter(x509), YEARS * 365, 0, NULL) != NULL &&
        X509_NAME_add_entry_by_txt(subject, "O", MBSTRING_ASC, organisation, -1, -1, 0) == 1 &&
        X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, common_name, -1, -1, 0) == 1 &&
        X509_set_issuer_name(x509, subject) == 1 && X509_set_pubkey(x509, key) == 1 &&
        add_extension(x509, NID_basic_constraints, "critical,CA:FALSE") &&
        add_extension(x509, NID_key_usage, "critical,digitalSignature") &&
        (count == 0 || add_extension(x509, NID_subject_alt_name, alternatives.data)) &&
        X509_sign(x509, key, EVP_sha256()) > 0;
    buf_deinit(&alternatives);
    return good;
}

static char *take_text(BIO *bio)
{
    char *bytes = NULL;
    long len = BIO_get_mem_data(bio, &bytes);
    return mem_strndup(bytes != NULL ? bytes : "", (size_t)MAX(len, 0L));
}

int tls_cert_generate(const char *const *names, size_t count, char **ret_chain, char **ret_key,
                      struct err_info *err)
{
    tls_err_clear();
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *x509 = X509_new();
    BIO *chain = BIO_new(BIO_s_mem()), *secret = BIO_new(BIO_s_secmem());
    bool good = key != NULL && x509 != NULL && chain != NULL && secret != NULL &&
                fill(x509, key, names, count) && PEM_write_bio_X509(chain, x509) == 1 &&
                PEM_write_bio_PKCS8PrivateKey(secret, key, NULL, NULL, 0, NULL, NULL) == 1;
    int rc = RC_OK;
    if (good) {
        *ret_chain = take_text(chain);
        *ret_key = take_text(secret);
    } else {
        rc = tls_err_take(err, RC_UNSUPPORTED, "cannot make a certificate");
    }
    BIO_free(chain);
    BIO_free(secret);
    X509_free(x509);
    EVP_PKEY_free(key);
    return rc;
}
