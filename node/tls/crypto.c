/*
 * EVP with fetched algorithms. Calls whose inputs have fixed, valid shapes cannot fail but for
 * memory, and are asserted.
 */
#include "node/tls/crypto.h"

#include "node/base/check.h"
#include "node/base/mem.h"

#include <limits.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <string.h>

struct crypto {
    EVP_CIPHER *gcm;
    EVP_KDF *hkdf;
};

/* The contexts are made at first use of their direction: most keys serve one direction only. */
struct aead {
    const struct crypto *crypto;
    EVP_CIPHER_CTX *seal;
    EVP_CIPHER_CTX *open;
    uint8_t key[AEAD_KEY_BYTES];
};

int crypto_new(struct crypto **ret_crypto, struct err_info *err)
{
    struct crypto *crypto = mem_new(sizeof(*crypto));
    crypto->gcm = EVP_CIPHER_fetch(NULL, "AES-256-GCM", NULL);
    crypto->hkdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
    if (crypto->gcm == NULL || crypto->hkdf == NULL) {
        int rc = err_set(err, RC_UNSUPPORTED, "OpenSSL offers no %s on this machine",
                         crypto->gcm == NULL ? "AES-256-GCM" : "HKDF");
        crypto_free(crypto);
        return rc;
    }
    *ret_crypto = crypto;
    return RC_OK;
}

void crypto_free(struct crypto *crypto)
{
    if (crypto == NULL) {
        return;
    }
    EVP_CIPHER_free(crypto->gcm);
    EVP_KDF_free(crypto->hkdf);
    mem_free(crypto);
}

void crypto_hkdf(const struct crypto *crypto, const void *key, size_t key_len, const void *info,
                 size_t info_len, uint8_t *ret, size_t len)
{
    static char digest[] = "SHA256";
    EVP_KDF_CTX *ctx = EVP_KDF_CTX_new(crypto->hkdf);
    ASSERT(ctx != NULL);
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, unconst(key), key_len),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, unconst(info), info_len),
        OSSL_PARAM_construct_end(),
    };
    ASSERT(EVP_KDF_derive(ctx, ret, len, params) == 1);
    EVP_KDF_CTX_free(ctx);
}

struct aead *aead_new(const struct crypto *crypto, const uint8_t key[AEAD_KEY_BYTES])
{
    struct aead *aead = mem_new(sizeof(*aead));
    aead->crypto = crypto;
    memcpy(aead->key, key, AEAD_KEY_BYTES);
    return aead;
}

void aead_free(struct aead *aead)
{
    if (aead == NULL) {
        return;
    }
    EVP_CIPHER_CTX_free(aead->seal); /* wipes what it holds */
    EVP_CIPHER_CTX_free(aead->open);
    crypto_wipe(aead->key, sizeof(aead->key));
    mem_free(aead);
}

static EVP_CIPHER_CTX *keyed(const struct aead *aead, int encrypt)
{
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    ASSERT(ctx != NULL);
    ASSERT(EVP_CipherInit_ex2(ctx, aead->crypto->gcm, aead->key, NULL, encrypt, NULL) == 1);
    return ctx;
}

/* Nonce and clear bytes into a keyed context. */
static void begin(EVP_CIPHER_CTX *ctx, const struct aead_frame *frame, size_t len)
{
    ASSERT(len <= INT_MAX && frame->aad_len <= INT_MAX);
    int done = 0;
    ASSERT(EVP_CipherInit_ex2(ctx, NULL, NULL, frame->nonce, -1, NULL) == 1);
    ASSERT(frame->aad_len == 0 ||
           EVP_CipherUpdate(ctx, NULL, &done, frame->aad, (int)frame->aad_len) == 1);
}

void aead_seal(struct aead *aead, const struct aead_frame *frame, const uint8_t *plain, size_t len,
               uint8_t *out)
{
    if (aead->seal == NULL) {
        aead->seal = keyed(aead, 1);
    }
    EVP_CIPHER_CTX *ctx = aead->seal;
    int done = 0;
    begin(ctx, frame, len);
    ASSERT(len == 0 || EVP_CipherUpdate(ctx, out, &done, plain, (int)len) == 1);
    ASSERT(EVP_CipherFinal_ex(ctx, out + done, &done) == 1);
    ASSERT(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, AEAD_TAG_BYTES, out + len) == 1);
}

int aead_open(struct aead *aead, const struct aead_frame *frame, const uint8_t *sealed, size_t len,
              uint8_t *out)
{
    if (len < AEAD_TAG_BYTES) {
        return RC_AUTH;
    }
    if (aead->open == NULL) {
        aead->open = keyed(aead, 0);
    }
    EVP_CIPHER_CTX *ctx = aead->open;
    size_t body = len - AEAD_TAG_BYTES;
    uint8_t tag[AEAD_TAG_BYTES];
    memcpy(tag, sealed + body, sizeof(tag)); /* out may be the same memory */
    int done = 0;
    begin(ctx, frame, body);
    ASSERT(body == 0 || EVP_CipherUpdate(ctx, out, &done, sealed, (int)body) == 1);
    ASSERT(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, AEAD_TAG_BYTES, tag) == 1);
    return EVP_CipherFinal_ex(ctx, out + done, &done) == 1 ? RC_OK : RC_AUTH;
}

void crypto_sha256(const void *bytes, size_t len, uint8_t ret[SHA256_BYTES])
{
    int good = EVP_Digest(bytes, len, ret, NULL, EVP_sha256(), NULL);
    ASSERT(good == 1);
}

bool crypto_equal(const void *left, const void *right, size_t len)
{
    return CRYPTO_memcmp(left, right, len) == 0;
}

void crypto_wipe(void *bytes, size_t len)
{
    OPENSSL_cleanse(bytes, len);
}
