/*
 * HKDF-SHA256 and AES-256-GCM with algorithms that are looked up once.
 *
 * OpenSSL 3 looks an algorithm up by name under a lock each time it is used by a static name;
 * struct crypto keeps the results. Thread: struct crypto is immutable and may be shared; a struct
 * aead belongs to one thread. Source: RFC 5869, NIST SP 800-38D.
 */
#ifndef SKEIN_NODE_TLS_CRYPTO_H
#define SKEIN_NODE_TLS_CRYPTO_H

#include "node/base/defs.h"
#include "node/base/errors.h"

enum {
    AEAD_KEY_BYTES = 32,
    AEAD_NONCE_BYTES = 12,
    AEAD_TAG_BYTES = 16,
};

struct crypto;
struct aead;

/* RC_UNSUPPORTED: the installed OpenSSL lacks an algorithm; err says which. */
MUST_CHECK int crypto_new(struct crypto **ret_crypto, struct err_info *err);
void crypto_free(struct crypto *crypto); /* after all its aeads; NULL is accepted */

/* ret[0..len), len 1 to 255 * 32, from secret key material and a label that says what for. */
void crypto_hkdf(const struct crypto *crypto, const void *key, size_t key_len, const void *info,
                 size_t info_len, uint8_t *ret, size_t len);

/* One key, ready for many messages. Never NULL. */
struct aead *aead_new(const struct crypto *crypto, const uint8_t key[AEAD_KEY_BYTES]);
void aead_free(struct aead *aead); /* NULL is accepted */

/* What a message is bound to: a nonce that is never used twice with a key, and clear bytes. */
struct aead_frame {
    uint8_t nonce[AEAD_NONCE_BYTES];
    const void *aad; /* borrowed */
    size_t aad_len;
};

/* out: len + AEAD_TAG_BYTES bytes (ciphertext, then tag); may be the same memory as plain. */
void aead_seal(struct aead *aead, const struct aead_frame *frame, const uint8_t *plain, size_t len,
               uint8_t *out);

/* len includes the tag. out: len - AEAD_TAG_BYTES bytes; may be the same memory as sealed.
 * RC_AUTH: not sealed with this key, nonce and aad; out holds nothing of use. */
MUST_CHECK int aead_open(struct aead *aead, const struct aead_frame *frame, const uint8_t *sealed,
                         size_t len, uint8_t *out);

/* SHA-256 of the bytes. */
enum { SHA256_BYTES = 32 };
void crypto_sha256(const void *bytes, size_t len, uint8_t ret[SHA256_BYTES]);

/* In a time that depends on len alone. */
bool crypto_equal(const void *left, const void *right, size_t len);

/* Overwrite secrets in a way that the compiler keeps. */
void crypto_wipe(void *bytes, size_t len);

#endif
