/*
 * Reading certificates: PEM in, checked DER out. What a handshake would stumble over is refused
 * here, with a text that a person can act on.
 */
#include "node/tls/tls_cert.h"

#include "node/base/buf.h"
#include "node/base/check.h"
#include "node/base/mem.h"
#include "node/tls/crypto.h"
#include "node/tls/tls_err.h"
#include "node/tls/tls_impl.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ocsp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

enum { RSA_BITS_MIN = 2048, RSA_BITS_MAX = 8192 };

/* What is gathered while reading. */
struct reading {
    struct tls_cert *cert;
    size_t names, warnings; /* allocated in info so far */
    struct buf key_types;
    struct err_info *err;
};

static BIO *memory(const char *text)
{
    BIO *bio = BIO_new_mem_buf(text, (int)strlen(text)); /* at most TLS_CERT_PEM_MAX */
    ASSERT(bio != NULL);
    return bio;
}

/* A passphrase is never asked for. */
static int no_passphrase(char *out, int size, int rwflag, void *arg)
{
    (void)out;
    (void)size;
    (void)rwflag;
    *(bool *)arg = true;
    return -1;
}

static void warn(struct reading *reading, char *text)
{
    struct tls_cert_info *info = &reading->cert->info;
    if (info->warning_count == TLS_CERT_WARNINGS_MAX) {
        mem_free(text);
        return;
    }
    const char **list = mem_grow(unconst(info->warnings), info->warning_count + 1, sizeof(*list));
    list[info->warning_count++] = text;
    info->warnings = list;
}

/* ---- chains ---- */

static int read_chain(const char *pem, STACK_OF(X509) * chain, struct err_info *err)
{
    size_t len = strnlen(pem, TLS_CERT_PEM_MAX + 1);
    if (len > TLS_CERT_PEM_MAX) {
        return err_set(err, RC_INVALID, "chain: more than %d bytes", (int)TLS_CERT_PEM_MAX);
    }
    BIO *bio = memory(pem);
    X509 *x509;
    int rc = RC_OK;
    while (rc == RC_OK && (x509 = PEM_read_bio_X509(bio, NULL, NULL, NULL)) != NULL) {
        if (sk_X509_num(chain) == TLS_CERT_CHAIN_MAX || sk_X509_push(chain, x509) == 0) {
            X509_free(x509);
            rc = err_set(err, RC_INVALID, "chain: more than %d certificates",
                         (int)TLS_CERT_CHAIN_MAX);
        }
    }
    unsigned long code = ERR_peek_last_error();
    bool at_end = ERR_GET_LIB(code) == ERR_LIB_PEM && ERR_GET_REASON(code) == PEM_R_NO_START_LINE;
    if (rc == RC_OK && sk_X509_num(chain) == 0) {
        rc = at_end ? err_set(err, RC_INVALID,
                              "chain: no certificate; \"-----BEGIN CERTIFICATE-----\" is expected")
                    : tls_err_take(err, RC_INVALID, "chain: the first certificate cannot be read");
    } else if (rc == RC_OK && !at_end) {
        rc = err_set(err, RC_INVALID, "chain: certificate %d cannot be read: it is damaged",
                     sk_X509_num(chain) + 1);
    }
    tls_err_clear();
    BIO_free(bio);
    return rc;
}

static char *name_text(const X509_NAME *name)
{
    BIO *bio = BIO_new(BIO_s_mem());
    ASSERT(bio != NULL);
    (void)X509_NAME_print_ex(bio, name, 0, XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB);
    char *bytes = NULL;
    long len = BIO_get_mem_data(bio, &bytes);
    char *text = mem_strndup(bytes != NULL ? bytes : "", (size_t)MAX(len, 0L));
    BIO_free(bio);
    return text;
}

/* From the leaf on, each signed by the next: put right what stands in another order, drop what does
 * not belong to it. */
static int order_chain(struct reading *reading, STACK_OF(X509) * chain, STACK_OF(X509) * ordered)
{
    X509 *at = sk_X509_value(chain, 0);
    bool mended = false;
    ASSERT(sk_X509_push(ordered, at) > 0);
    for (int place = 1; place < sk_X509_num(chain); place++) {
        if (X509_self_signed(at, 0) == 1) {
            break; /* its end */
        }
        X509 *next = NULL;
        int from = 0;
        for (int i = 1; i < sk_X509_num(chain) && next == NULL; i++) {
            X509 *issuer = sk_X509_value(chain, i);
            if (X509_check_issued(issuer, at) == X509_V_OK &&
                X509_verify(at, X509_get0_pubkey(issuer)) == 1) {
                next = issuer;
                from = i;
            }
        }
        if (next == NULL || sk_X509_num(ordered) > sk_X509_num(chain)) {
            break;
        }
        mended = mended || from != place;
        ASSERT(sk_X509_push(ordered, next) > 0);
        at = next;
    }
    tls_err_clear();
    int dropped = sk_X509_num(chain) - sk_X509_num(ordered);
    if (dropped > 0 && sk_X509_num(ordered) == 1 && X509_self_signed(at, 0) != 1) {
        char *subject = name_text(X509_get_issuer_name(at));
        int rc = err_set(reading->err, RC_INVALID,
                         "chain: none of the certificates behind the first one signed it; its "
                         "issuer is %.200s",
                         subject);
        mem_free(subject);
        return rc;
    }
    if (dropped > 0) {
        warn(reading,
             mem_printf("%d certificates of the chain do not belong to it and are not sent",
                        dropped));
    }
    if (mended) {
        warn(reading, mem_strdup("the chain was not in order: leaf first, then each issuer"));
    }
    return RC_OK;
}

/* ---- keys ---- */

static int read_key(const char *pem, EVP_PKEY **ret_key, struct err_info *err)
{
    if (strnlen(pem, TLS_CERT_PEM_MAX + 1) > TLS_CERT_PEM_MAX) {
        return err_set(err, RC_INVALID, "key: more than %d bytes", (int)TLS_CERT_PEM_MAX);
    }
    BIO *bio = memory(pem);
    bool encrypted = false;
    *ret_key = PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, &encrypted);
    BIO_free(bio);
    tls_err_clear();
    if (*ret_key != NULL) {
        return RC_OK;
    }
    if (encrypted || strstr(pem, "ENCRYPTED") != NULL) {
        return err_set(err, RC_INVALID,
                       "key: it is protected by a passphrase; give it without one "
                       "(openssl pkey -in KEY)");
    }
    return err_set(
        err, RC_INVALID,
        "key: no private key that can be read; \"-----BEGIN PRIVATE KEY-----\" (PKCS#8), "
        "\"RSA PRIVATE KEY\" or \"EC PRIVATE KEY\" is expected");
}

/* Kind and size are ones that clients accept. */
static int check_key(const EVP_PKEY *key, enum tls_key_type *ret_type, char *text, size_t size,
                     struct err_info *err)
{
    int bits = EVP_PKEY_get_bits(key);
    char curve[64] = "";
    switch (EVP_PKEY_get_base_id(key)) {
    case EVP_PKEY_RSA:
    case EVP_PKEY_RSA_PSS:
        *ret_type = TLS_KEY_RSA;
        (void)snprintf(text, size, "RSA %d", bits);
        return bits >= RSA_BITS_MIN && bits <= RSA_BITS_MAX
                   ? RC_OK
                   : err_set(err, RC_INVALID, "key: RSA with %d bits; %d to %d are accepted", bits,
                             (int)RSA_BITS_MIN, (int)RSA_BITS_MAX);
    case EVP_PKEY_EC:
        *ret_type = TLS_KEY_ECDSA;
        if (EVP_PKEY_get_group_name(key, curve, sizeof(curve), NULL) != 1) {
            (void)snprintf(curve, sizeof(curve), "explicit parameters");
        }
        (void)snprintf(text, size, "ECDSA P-%d", bits);
        return strcmp(curve, "prime256v1") == 0 || strcmp(curve, "secp384r1") == 0 ||
                       strcmp(curve, "secp521r1") == 0
                   ? RC_OK
                   : err_set(err, RC_INVALID,
                             "key: the curve %s is not supported; P-256, P-384 and P-521 are",
                             curve);
    case EVP_PKEY_ED25519:
    case EVP_PKEY_ED448:
        *ret_type = TLS_KEY_EDDSA;
        (void)snprintf(text, size, "%s",
                       EVP_PKEY_get_base_id(key) == EVP_PKEY_ED25519 ? "Ed25519" : "Ed448");
        return RC_OK;
    default:
        return err_set(err, RC_INVALID,
                       "key: of a kind that is not supported; RSA, ECDSA "
                       "and EdDSA are");
    }
}

/* ---- names ---- */

static bool is_host(const unsigned char *name, size_t len)
{
    size_t begin = len > 2 && name[0] == '*' && name[1] == '.' ? 2 : 0;
    if (len <= begin || len > 253) {
        return false;
    }
    for (size_t i = begin; i < len; i++) {
        unsigned char c = name[i];
        bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    c == '-' || c == '_' || (c == '.' && i > begin && name[i - 1] != '.');
        if (!good) {
            return false;
        }
    }
    return true;
}

static void add_name(struct reading *reading, const unsigned char *bytes, size_t len)
{
    struct tls_cert_info *info = &reading->cert->info;
    len -= len > 0 && bytes[len - 1] == '.';
    if (!is_host(bytes, len) || info->name_count == TLS_CERT_NAMES_MAX) {
        return;
    }
    char *name = mem_strndup((const char *)bytes, len);
    for (char *c = name; *c != '\0'; c++) {
        *c = *c >= 'A' && *c <= 'Z' ? (char)(*c | 0x20) : *c;
    }
    size_t at = 0;
    while (at < info->name_count && strcmp(info->names[at], name) < 0) {
        at++;
    }
    if (at < info->name_count && strcmp(info->names[at], name) == 0) {
        mem_free(name);
        return;
    }
    const char **list = mem_grow(unconst(info->names), info->name_count + 1, sizeof(*list));
    memmove(list + at + 1, list + at, (info->name_count - at) * sizeof(*list));
    list[at] = name;
    info->names = list;
    info->name_count++;
}

static void read_names(struct reading *reading, X509 *leaf)
{
    GENERAL_NAMES *names = X509_get_ext_d2i(leaf, NID_subject_alt_name, NULL, NULL);
    bool any = false;
    for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
        if (name->type == GEN_DNS) {
            add_name(reading, ASN1_STRING_get0_data(name->d.dNSName),
                     (size_t)ASN1_STRING_length(name->d.dNSName));
            any = true;
        }
    }
    GENERAL_NAMES_free(names);
    X509_NAME *subject = X509_get_subject_name(leaf);
    int at = any ? -1 : X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
    if (at >= 0) {
        const ASN1_STRING *text = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at));
        add_name(reading, ASN1_STRING_get0_data(text), (size_t)ASN1_STRING_length(text));
        warn(reading, mem_strdup("the names come from the common name: there are no subject "
                                 "alternative names, which browsers insist on"));
    }
}

/* ---- one pair ---- */

static int64_t unix_time(const ASN1_TIME *time)
{
    struct tm tm;
    return ASN1_TIME_to_tm(time, &tm) == 1 ? (int64_t)timegm(&tm) : 0;
}

static char *hex(const unsigned char *bytes, size_t len)
{
    char *text = mem_new(len * 2 + 1);
    for (size_t i = 0; i < len; i++) {
        (void)snprintf(text + i * 2, 3, "%02x", bytes[i]);
    }
    return text;
}

/* Texts of the first leaf, times of all. */
static void describe(struct reading *reading, X509 *leaf, const char *key_text)
{
    struct tls_cert_info *info = &reading->cert->info;
    int64_t from = unix_time(X509_get0_notBefore(leaf));
    int64_t to = unix_time(X509_get0_notAfter(leaf));
    bool first = info->subject == NULL;
    info->not_before = first ? from : MAX(info->not_before, from);
    info->not_after = first ? to : MIN(info->not_after, to);
    buf_printf(&reading->key_types, "%s%s", first ? "" : ", ", key_text);
    read_names(reading, leaf);
    int digest = NID_undef;
    (void)X509_get_signature_info(leaf, &digest, NULL, NULL, NULL); /* undefined for EdDSA */
    if (digest == NID_sha1 || digest == NID_md5) {
        warn(reading, mem_printf("it is signed with %s, which clients refuse", OBJ_nid2sn(digest)));
    }
    if (!first) {
        return;
    }
    info->subject = name_text(X509_get_subject_name(leaf));
    info->issuer = name_text(X509_get_issuer_name(leaf));
    info->self_signed = X509_self_signed(leaf, 0) == 1;
    BIGNUM *serial = ASN1_INTEGER_to_BN(X509_get0_serialNumber(leaf), NULL);
    char *text = serial != NULL ? BN_bn2hex(serial) : NULL;
    info->serial = mem_strdup(text != NULL ? text : "");
    OPENSSL_free(text);
    BN_free(serial);
    unsigned char print[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    ASSERT(X509_digest(leaf, EVP_sha256(), print, &len) == 1);
    info->fingerprint = hex(print, len);
}

static int store_der(struct tls_pair *pair, STACK_OF(X509) * chain, EVP_PKEY *key,
                     struct err_info *err)
{
    for (int i = 0; i < sk_X509_num(chain); i++) {
        unsigned char *der = NULL;
        int len = i2d_X509(sk_X509_value(chain, i), &der);
        if (len <= 0) {
            return tls_err_take(err, RC_INVALID, "chain: it cannot be encoded");
        }
        pair->chain[pair->chain_count] = mem_dup(der, (size_t)len);
        pair->chain_len[pair->chain_count++] = (size_t)len;
        OPENSSL_free(der);
    }
    unsigned char *der = NULL;
    int len = i2d_PrivateKey(key, &der);
    if (len <= 0) {
        return tls_err_take(err, RC_INVALID, "key: it cannot be encoded");
    }
    pair->key_type = EVP_PKEY_get_base_id(key);
    pair->key = mem_dup(der, (size_t)len);
    pair->key_len = (size_t)len;
    OPENSSL_clear_free(der, (size_t)len);
    return RC_OK;
}

/* The response is of this leaf. Its signature is the clients' to check. */
static int store_ocsp(struct tls_pair *pair, const struct tls_cert_source *source,
                      STACK_OF(X509) * chain, struct err_info *err)
{
    if (source->ocsp == NULL || source->ocsp_len == 0) {
        return RC_OK;
    }
    if (source->ocsp_len > TLS_CERT_OCSP_MAX) {
        return err_set(err, RC_INVALID, "ocsp: more than %d bytes", (int)TLS_CERT_OCSP_MAX);
    }
    const unsigned char *at = source->ocsp;
    OCSP_RESPONSE *response = d2i_OCSP_RESPONSE(NULL, &at, (long)source->ocsp_len);
    OCSP_BASICRESP *basic = response != NULL ? OCSP_response_get1_basic(response) : NULL;
    const ASN1_INTEGER *serial = X509_get0_serialNumber(sk_X509_value(chain, 0));
    bool fits = false;
    for (int i = 0; basic != NULL && i < OCSP_resp_count(basic) && !fits; i++) {
        ASN1_INTEGER *of = NULL;
        const OCSP_CERTID *id = OCSP_SINGLERESP_get0_id(OCSP_resp_get0(basic, i));
        fits = OCSP_id_get0_info(NULL, NULL, NULL, &of, unconst(id)) == 1 &&
               ASN1_INTEGER_cmp(of, serial) == 0;
    }
    OCSP_BASICRESP_free(basic);
    OCSP_RESPONSE_free(response);
    tls_err_clear();
    if (!fits) {
        return err_set(err, RC_INVALID,
                       basic == NULL ? "ocsp: no OCSPResponse (DER) with a basic response"
                                     : "ocsp: the response is not about this certificate");
    }
    pair->ocsp = mem_dup(source->ocsp, source->ocsp_len);
    pair->ocsp_len = source->ocsp_len;
    return RC_OK;
}

static int add_pair(struct reading *reading, const struct tls_cert_source *source,
                    STACK_OF(X509) * ordered, EVP_PKEY *key)
{
    struct tls_cert *cert = reading->cert;
    struct tls_pair *pair = &cert->pairs[cert->pair_count];
    X509 *leaf = sk_X509_value(ordered, 0);
    char text[64];
    if (X509_check_private_key(leaf, key) != 1) {
        tls_err_clear();
        return err_set(reading->err, RC_INVALID,
                       "key: it does not belong to the first certificate of the chain");
    }
    int rc = check_key(key, &pair->type, text, sizeof(text), reading->err);
    for (size_t i = 0; rc == RC_OK && i < cert->pair_count; i++) {
        if (cert->pairs[i].type == pair->type) {
            rc = err_set(reading->err, RC_INVALID,
                         "key: there is a pair with this kind of key already; one of each kind "
                         "is accepted");
        }
    }
    if (rc != RC_OK) {
        return rc;
    }
    cert->pair_count++; /* from here on it is freed with the certificate */
    rc = store_der(pair, ordered, key, reading->err);
    rc = rc != RC_OK ? rc : store_ocsp(pair, source, ordered, reading->err);
    if (rc == RC_OK) {
        describe(reading, leaf, text);
    }
    return rc;
}

static int read_pair(struct reading *reading, const struct tls_cert_source *source)
{
    STACK_OF(X509) *chain = sk_X509_new_null(), *ordered = sk_X509_new_null();
    EVP_PKEY *key = NULL;
    ASSERT(chain != NULL && ordered != NULL);
    tls_err_clear();
    int rc = read_chain(source->chain, chain, reading->err);
    rc = rc != RC_OK ? rc : read_key(source->key, &key, reading->err);
    rc = rc != RC_OK ? rc : order_chain(reading, chain, ordered);
    rc = rc != RC_OK ? rc : add_pair(reading, source, ordered, key);
    EVP_PKEY_free(key);
    sk_X509_free(ordered); /* borrowed of chain */
    sk_X509_pop_free(chain, X509_free);
    tls_err_clear();
    return rc;
}

/* ---- life ---- */

int tls_cert_read(const struct tls_cert_source *pairs, size_t count, struct tls_cert **ret_cert,
                  struct err_info *err)
{
    static atomic_uint_fast64_t next_id = 1;
    if (count == 0 || count > TLS_CERT_PAIRS_MAX) {
        return err_set(err, RC_INVALID, "%zu pairs of chain and key; 1 to %d are accepted", count,
                       (int)TLS_CERT_PAIRS_MAX);
    }
    struct tls_cert *cert = mem_new(sizeof(*cert));
    atomic_init(&cert->refs, 1);
    cert->id = atomic_fetch_add_explicit(&next_id, 1, memory_order_relaxed);
    struct reading reading = {.cert = cert, .err = err};
    buf_init(&reading.key_types, 256);
    int rc = RC_OK;
    for (size_t i = 0; rc == RC_OK && i < count; i++) {
        rc = read_pair(&reading, &pairs[i]);
        if (rc != RC_OK && count > 1) {
            rc = err_prefix(err, rc, "pair %zu", i + 1);
        }
    }
    cert->info.key_types = buf_take(&reading.key_types, NULL);
    if (rc != RC_OK) {
        tls_cert_unref(cert);
        return rc;
    }
    if (cert->info.name_count == 0) {
        warn(&reading, mem_strdup("it has no DNS names, so it serves no host by itself"));
    }
    *ret_cert = cert;
    return RC_OK;
}

void tls_cert_ref(struct tls_cert *cert)
{
    unsigned before = atomic_fetch_add_explicit(&cert->refs, 1, memory_order_relaxed);
    ASSERT(before > 0 && before < UINT32_MAX / 2);
}

static void free_list(const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        mem_free(unconst(list[i]));
    }
    mem_free(unconst(list));
}

void tls_cert_unref(struct tls_cert *cert)
{
    if (cert == NULL || atomic_fetch_sub_explicit(&cert->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    for (size_t i = 0; i < cert->pair_count; i++) {
        struct tls_pair *pair = &cert->pairs[i];
        for (size_t j = 0; j < pair->chain_count; j++) {
            mem_free(pair->chain[j]);
        }
        if (pair->key != NULL) {
            crypto_wipe(pair->key, pair->key_len);
            mem_free(pair->key);
        }
        mem_free(pair->ocsp);
    }
    const struct tls_cert_info *info = &cert->info;
    free_list(info->names, info->name_count);
    free_list(info->warnings, info->warning_count);
    mem_free(unconst(info->subject));
    mem_free(unconst(info->issuer));
    mem_free(unconst(info->serial));
    mem_free(unconst(info->fingerprint));
    mem_free(unconst(info->key_types));
    mem_free(cert);
}

const struct tls_cert_info *tls_cert_info(const struct tls_cert *cert)
{
    return &cert->info;
}

uint64_t tls_cert_id(const struct tls_cert *cert)
{
    return cert->id;
}

static bool has_name(const struct tls_cert_info *info, const char *name, size_t len, bool wildcard)
{
    for (size_t i = 0; i < info->name_count; i++) {
        const char *at = info->names[i];
        at = wildcard ? (at[0] == '*' ? at + 1 : "") : at;
        if (strlen(at) == len && memcmp(at, name, len) == 0) {
            return true;
        }
    }
    return false;
}

bool tls_cert_covers(const struct tls_cert *cert, const char *host)
{
    const char *dot = host[0] == '*' ? NULL : strchr(host, '.');
    return has_name(&cert->info, host, strlen(host), false) ||
           (dot != NULL && dot != host && has_name(&cert->info, dot, strlen(dot), true));
}

/* ---- authorities ---- */

int tls_ca_check(const char *pem, struct err_info *err)
{
    BIO *bio = memory(pem);
    X509 *x509;
    size_t count = 0;
    tls_err_clear();
    while (count <= TLS_CA_MAX && (x509 = PEM_read_bio_X509(bio, NULL, NULL, NULL)) != NULL) {
        X509_free(x509);
        count++;
    }
    unsigned long code = ERR_peek_last_error();
    bool at_end = ERR_GET_LIB(code) == ERR_LIB_PEM && ERR_GET_REASON(code) == PEM_R_NO_START_LINE;
    tls_err_clear();
    BIO_free(bio);
    if (count > TLS_CA_MAX) {
        return err_set(err, RC_INVALID, "more than %d certificates", (int)TLS_CA_MAX);
    }
    if (count == 0 || !at_end) {
        return err_set(err, RC_INVALID,
                       "certificate %zu cannot be read; PEM is expected, "
                       "\"-----BEGIN CERTIFICATE-----\"",
                       count + 1);
    }
    return RC_OK;
}

int tls_crl_check(const char *pem, struct err_info *err)
{
    BIO *bio = memory(pem);
    X509_CRL *crl;
    size_t count = 0;
    tls_err_clear();
    while ((crl = PEM_read_bio_X509_CRL(bio, NULL, NULL, NULL)) != NULL) {
        X509_CRL_free(crl);
        count++;
    }
    unsigned long code = ERR_peek_last_error();
    bool at_end = ERR_GET_LIB(code) == ERR_LIB_PEM && ERR_GET_REASON(code) == PEM_R_NO_START_LINE;
    tls_err_clear();
    BIO_free(bio);
    return count > 0 && at_end ? RC_OK
                               : err_set(err, RC_INVALID,
                                         "revocation list %zu cannot be read; PEM is expected, "
                                         "\"-----BEGIN X509 CRL-----\"",
                                         count + 1);
}
