/*
 * Descriptions of policies and targets: texts that OpenSSL has accepted once, and a digest of all
 * that they say.
 */
#include "node/tls/tls_policy.h"

#include "node/base/buf.h"
#include "node/base/check.h"
#include "node/base/mem.h"
#include "node/tls/tls_err.h"
#include "node/tls/tls_impl.h"

#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <stdatomic.h>
#include <string.h>

enum { LIST_MAX = 4096, GROUPS_MAX = 32 };

/* Mozilla's server side TLS 5.7, in the order of preference. DHE has left Intermediate. */
#define CIPHERS_INTERMEDIATE                                                                       \
    "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:"     \
    "ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305"

static const char ciphers_old[] = CIPHERS_INTERMEDIATE
    ":ECDHE-ECDSA-AES128-SHA256:ECDHE-RSA-AES128-SHA256:ECDHE-ECDSA-AES128-SHA:"
    "ECDHE-RSA-AES128-SHA:ECDHE-ECDSA-AES256-SHA384:ECDHE-RSA-AES256-SHA384:"
    "ECDHE-ECDSA-AES256-SHA:ECDHE-RSA-AES256-SHA:AES128-GCM-SHA256:AES256-GCM-SHA384:"
    "AES128-SHA256:AES256-SHA256:AES128-SHA:AES256-SHA:@SECLEVEL=0";
static const char ciphersuites_all[] =
    "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";

/* In the order of preference; those that this OpenSSL does not know are left out. */
static const char *const groups_builtin[] = {"X25519MLKEM768", "X25519", "P-256", "P-384"};
static const char *const groups_custom[] = {"X25519MLKEM768", "X25519", "P-256", "P-384", "P-521"};

static const struct version {
    const char *name;
    int number;
} versions[] = {
    {"1.0", TLS1_VERSION},
    {"1.1", TLS1_1_VERSION},
    {"1.2", TLS1_2_VERSION},
    {"1.3", TLS1_3_VERSION},
};

/* ---- parts ---- */

static bool knows_group(SSL_CTX *probe, const char *name)
{
    char list[64];
    if (strlen(name) >= sizeof(list)) {
        return false;
    }
    memcpy(list, name, strlen(name) + 1);
    bool knows = SSL_CTX_set1_groups_list(probe, list) == 1;
    tls_err_clear();
    return knows;
}

/* "a:b:c" of those that are known. */
static void put_groups(struct buf *out, SSL_CTX *probe, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (knows_group(probe, names[i])) {
            buf_printf(out, "%s%s", out->len == 0 ? "" : ":", names[i]);
        }
    }
}

static int find_version(const char *name, int *ret_number, struct err_info *err)
{
    for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
        if (strcmp(versions[i].name, name) == 0) {
            *ret_number = versions[i].number;
            return RC_OK;
        }
    }
    return err_set(err, RC_INVALID, "\"%.32s\" is no version of TLS: 1.0, 1.1, 1.2 or 1.3", name);
}

/* A word of a list: no separators, nothing that OpenSSL would take for a command. */
static bool is_word(const char *text)
{
    size_t len = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.");
    return len != 0 && text[len] == '\0' && text[0] != '-' && len < 64;
}

/* Each word has to be one that OpenSSL knows: it would pass over others in silence. */
static int join_words(const char *what, const char *const *words, size_t count,
                      bool (*knows)(SSL_CTX *probe, const char *word), SSL_CTX *probe,
                      struct buf *out, struct err_info *err)
{
    for (size_t i = 0; i < count; i++) {
        if (!is_word(words[i]) || !knows(probe, words[i])) {
            return err_set(err, RC_INVALID, "\"%.64s\" is no %s that OpenSSL offers here", words[i],
                           what);
        }
        buf_printf(out, "%s%s", out->len == 0 ? "" : ":", words[i]);
    }
    return out->full ? err_set(err, RC_INVALID, "too many words of this kind: %s", what) : RC_OK;
}

static bool knows_cipher(SSL_CTX *probe, const char *name)
{
    char list[96];
    (void)snprintf(list, sizeof(list), "%s:@SECLEVEL=0", name); /* a word is short */
    bool knows = SSL_CTX_set_cipher_list(probe, list) == 1;
    bool exact = false;
    STACK_OF(SSL_CIPHER) *ciphers = knows ? SSL_CTX_get_ciphers(probe) : NULL;
    for (int i = 0; ciphers != NULL && i < sk_SSL_CIPHER_num(ciphers); i++) {
        exact = exact || strcmp(SSL_CIPHER_get_name(sk_SSL_CIPHER_value(ciphers, i)), name) == 0;
    }
    tls_err_clear();
    return exact; /* and no group of ciphers such as "HIGH" */
}

static bool knows_ciphersuite(SSL_CTX *probe, const char *name)
{
    bool knows = SSL_CTX_set_ciphersuites(probe, name) == 1;
    tls_err_clear();
    return knows;
}

static int custom_lists(struct tls_policy *policy, const struct tls_custom *custom, SSL_CTX *probe,
                        struct buf *groups, struct err_info *err)
{
    struct buf ciphers, suites;
    buf_init(&ciphers, LIST_MAX);
    buf_init(&suites, LIST_MAX);
    int rc = RC_OK;
    policy->min_version = TLS1_2_VERSION;
    if (custom->min_version != NULL) {
        rc = find_version(custom->min_version, &policy->min_version, err);
    }
    rc = rc != RC_OK ? rc
                     : join_words("cipher of TLS 1.2", custom->ciphers, custom->cipher_count,
                                  knows_cipher, probe, &ciphers, err);
    rc = rc != RC_OK
             ? rc
             : join_words("ciphersuite of TLS 1.3", custom->ciphersuites, custom->ciphersuite_count,
                          knows_ciphersuite, probe, &suites, err);
    rc = rc != RC_OK ? rc
                     : join_words("group", custom->groups, custom->group_count, knows_group, probe,
                                  groups, err);
    if (rc == RC_OK) {
        if (ciphers.len != 0 && policy->min_version < TLS1_2_VERSION) {
            buf_puts(&ciphers, ":@SECLEVEL=0");
        }
        policy->ciphers = mem_strdup(ciphers.len != 0                       ? ciphers.data
                                     : policy->min_version < TLS1_2_VERSION ? ciphers_old
                                                                            : CIPHERS_INTERMEDIATE);
        policy->ciphersuites = mem_strdup(suites.len != 0 ? suites.data : ciphersuites_all);
        if (groups->len == 0) {
            put_groups(groups, probe, groups_custom, ARRAY_LEN(groups_custom));
        }
    }
    buf_deinit(&ciphers);
    buf_deinit(&suites);
    return rc;
}

static int set_lists(struct tls_policy *policy, const struct tls_policy_spec *spec, SSL_CTX *probe,
                     struct err_info *err)
{
    struct buf groups;
    buf_init(&groups, LIST_MAX);
    int rc = RC_OK;
    if (spec->profile == TLS_PROFILE_CUSTOM) {
        ASSERT(spec->custom != NULL);
        rc = custom_lists(policy, spec->custom, probe, &groups, err);
    } else {
        policy->min_version = spec->profile == TLS_PROFILE_MODERN ? TLS1_3_VERSION
                              : spec->profile == TLS_PROFILE_OLD  ? TLS1_VERSION
                                                                  : TLS1_2_VERSION;
        policy->ciphers =
            mem_strdup(spec->profile == TLS_PROFILE_OLD ? ciphers_old : CIPHERS_INTERMEDIATE);
        policy->ciphersuites = mem_strdup(ciphersuites_all);
        put_groups(&groups, probe, groups_builtin, ARRAY_LEN(groups_builtin));
    }
    if (rc == RC_OK) {
        policy->groups = buf_take(&groups, NULL);
    }
    buf_deinit(&groups);
    return rc;
}

/* ---- the digest ---- */

struct digest {
    EVP_MD_CTX *md;
};

static void digest_begin(struct digest *digest, const char *domain)
{
    digest->md = EVP_MD_CTX_new();
    ASSERT(digest->md != NULL && EVP_DigestInit_ex(digest->md, EVP_sha256(), NULL) == 1);
    ASSERT(EVP_DigestUpdate(digest->md, domain, strlen(domain) + 1) == 1);
}

static void digest_bytes(struct digest *digest, const void *bytes, size_t len)
{
    uint64_t size = len;
    uint8_t head[8];
    for (size_t i = 0; i < sizeof(head); i++) {
        head[i] = (uint8_t)(size >> (8 * i));
    }
    ASSERT(EVP_DigestUpdate(digest->md, head, sizeof(head)) == 1);
    ASSERT(len == 0 || EVP_DigestUpdate(digest->md, bytes, len) == 1);
}

static void digest_text(struct digest *digest, const char *text)
{
    digest_bytes(digest, text != NULL ? text : "\xff", text != NULL ? strlen(text) : 1);
}

static void digest_end(struct digest *digest, uint8_t ret[TLS_DIGEST_BYTES])
{
    unsigned len = 0;
    ASSERT(EVP_DigestFinal_ex(digest->md, ret, &len) == 1 && len == TLS_DIGEST_BYTES);
    EVP_MD_CTX_free(digest->md);
}

/* ---- policies ---- */

int tls_policy_new(const struct tls_policy_spec *spec, struct tls_policy **ret_policy,
                   struct err_info *err)
{
    bool asks = spec->client_auth != TLS_CLIENT_AUTH_OFF;
    if (asks && spec->client_ca == NULL) {
        return err_set(err, RC_INVALID,
                       "certificates of clients are asked for, but there is no "
                       "authority (PEM) to check them with");
    }
    int rc = asks ? tls_ca_check(spec->client_ca, err) : RC_OK;
    if (rc == RC_OK && asks && spec->client_crl != NULL) {
        rc = tls_crl_check(spec->client_crl, err);
    }
    if (rc != RC_OK) {
        return rc;
    }
    tls_err_clear();
    SSL_CTX *probe = SSL_CTX_new(TLS_server_method());
    if (probe == NULL) {
        return tls_err_take(err, RC_NO_MEMORY, "no TLS context");
    }
    struct tls_policy *policy = mem_new(sizeof(*policy));
    atomic_init(&policy->refs, 1);
    rc = set_lists(policy, spec, probe, err);
    SSL_CTX_free(probe);
    if (rc != RC_OK) {
        tls_policy_unref(policy);
        return rc;
    }
    policy->client_auth = spec->client_auth;
    if (asks) {
        policy->client_ca = mem_strdup(spec->client_ca);
        policy->client_crl = spec->client_crl != NULL ? mem_strdup(spec->client_crl) : NULL;
    }
    struct digest digest;
    digest_begin(&digest, "policy");
    digest_bytes(&digest, &(uint8_t){(uint8_t)(policy->min_version & 0xff)}, 1);
    digest_text(&digest, policy->ciphers);
    digest_text(&digest, policy->ciphersuites);
    /* What an OpenSSL version adds to a built-in list must not part the nodes. */
    bool own_groups = spec->profile == TLS_PROFILE_CUSTOM && spec->custom->group_count != 0;
    digest_text(&digest, own_groups ? policy->groups : NULL);
    digest_bytes(&digest, &(uint8_t){(uint8_t)policy->client_auth}, 1);
    digest_text(&digest, policy->client_ca);
    digest_text(&digest, policy->client_crl);
    digest_end(&digest, policy->digest);
    *ret_policy = policy;
    return RC_OK;
}

void tls_policy_ref(struct tls_policy *policy)
{
    unsigned before = atomic_fetch_add_explicit(&policy->refs, 1, memory_order_relaxed);
    ASSERT(before > 0 && before < UINT32_MAX / 2);
}

void tls_policy_unref(struct tls_policy *policy)
{
    if (policy == NULL || atomic_fetch_sub_explicit(&policy->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    mem_free(policy->ciphers);
    mem_free(policy->ciphersuites);
    mem_free(policy->groups);
    mem_free(policy->client_ca);
    mem_free(policy->client_crl);
    mem_free(policy);
}

const uint8_t *tls_policy_digest(const struct tls_policy *policy)
{
    return policy->digest;
}

enum tls_client_auth tls_policy_client_auth(const struct tls_policy *policy)
{
    return policy->client_auth;
}

/* ---- targets ---- */

int tls_target_new(const struct tls_target_spec *spec, struct tls_target **ret_target,
                   struct err_info *err)
{
    if (spec->server_name == NULL && spec->verify == TLS_VERIFY_FULL) {
        return err_set(err, RC_INVALID,
                       "the endpoint's certificate is to be checked in full, so the name that "
                       "stands in it has to be given");
    }
    if (spec->server_name != NULL && strlen(spec->server_name) > 253) {
        return err_set(err, RC_INVALID, "a server name has at most 253 bytes");
    }
    int rc = spec->ca != NULL ? tls_ca_check(spec->ca, err) : RC_OK;
    if (rc != RC_OK) {
        return rc;
    }
    struct tls_policy *policy = NULL;
    rc = tls_policy_new(&(const struct tls_policy_spec){.profile = spec->profile}, &policy, err);
    if (rc != RC_OK) {
        return rc;
    }
    struct tls_target *target = mem_new(sizeof(*target));
    atomic_init(&target->refs, 1);
    target->policy = policy;
    target->verify = spec->verify;
    target->ca = spec->ca != NULL ? mem_strdup(spec->ca) : NULL;
    target->server_name = spec->server_name != NULL ? mem_strdup(spec->server_name) : NULL;
    target->client_cert = spec->client_cert;
    uint64_t cert_id = 0;
    if (spec->client_cert != NULL) {
        tls_cert_ref(spec->client_cert);
        cert_id = tls_cert_id(spec->client_cert);
    }
    struct digest digest;
    digest_begin(&digest, "target");
    digest_bytes(&digest, policy->digest, sizeof(policy->digest));
    digest_bytes(&digest, &(uint8_t){(uint8_t)spec->verify}, 1);
    digest_text(&digest, target->ca);
    digest_text(&digest, target->server_name);
    digest_bytes(&digest, &cert_id, sizeof(cert_id)); /* stays in this process */
    digest_end(&digest, target->digest);
    *ret_target = target;
    return RC_OK;
}

void tls_target_ref(struct tls_target *target)
{
    unsigned before = atomic_fetch_add_explicit(&target->refs, 1, memory_order_relaxed);
    ASSERT(before > 0 && before < UINT32_MAX / 2);
}

void tls_target_unref(struct tls_target *target)
{
    if (target == NULL || atomic_fetch_sub_explicit(&target->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    tls_policy_unref(target->policy);
    tls_cert_unref(target->client_cert);
    mem_free(target->ca);
    mem_free(target->server_name);
    mem_free(target);
}

const uint8_t *tls_target_digest(const struct tls_target *target)
{
    return target->digest;
}
