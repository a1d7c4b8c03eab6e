/*
 * The ticket callback: keys of the ring, derived for the domain of the connection.
 *
 * What it returns decides a lot (the clustering notes 4.3): 2 is "good, and give a new one", 1 is
 * "good", 0 is "no ticket" or "not ours, a full handshake", -1 a failure of the connection. It
 * takes no lock and does no input or output.
 */
#include "node/base/check.h"
#include "node/tls/crypto.h"
#include "node/tls/tls_lib_int.h"

#include <openssl/core_names.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/rand.h>
#include <string.h>

enum { IV_BYTES = 16 };

static char label[] = "skein session ticket";

bool tls_ticket_begin(struct tls_lib *lib)
{
    lib->ticket_cipher = EVP_CIPHER_fetch(lib->libctx, "AES-256-CBC", NULL);
    lib->kdf = EVP_KDF_fetch(lib->libctx, "HKDF", NULL);
    return lib->ticket_cipher != NULL && lib->kdf != NULL;
}

void tls_ticket_end(struct tls_lib *lib)
{
    crypto_wipe(lib->derived, sizeof(lib->derived));
    EVP_CIPHER_free(lib->ticket_cipher);
    EVP_KDF_free(lib->kdf);
}

static bool derive(struct tls_lib *lib, const struct ticket_key *key, const uint8_t *domain,
                   struct ticket_derived *out)
{
    static char digest[] = "SHA256";
    uint8_t bytes[64];
    EVP_KDF_CTX *ctx = EVP_KDF_CTX_new(lib->kdf);
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, unconst(key->secret),
                                          sizeof(key->secret)),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, label, sizeof(label) - 1),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, unconst(domain), TLS_DIGEST_BYTES),
        OSSL_PARAM_construct_end(),
    };
    bool good = ctx != NULL && EVP_KDF_derive(ctx, bytes, sizeof(bytes), params) == 1;
    EVP_KDF_CTX_free(ctx);
    if (good) {
        memcpy(out->name, key->name, sizeof(out->name));
        memcpy(out->domain, domain, sizeof(out->domain));
        memcpy(out->cipher_key, bytes, 32);
        memcpy(out->mac_key, bytes + 32, 32);
        out->set = true;
    }
    crypto_wipe(bytes, sizeof(bytes));
    return good;
}

/* NULL: a failure of OpenSSL's. */
static const struct ticket_derived *derived(struct tls_lib *lib, const struct ticket_key *key,
                                            const uint8_t *domain)
{
    uint64_t a, b; /* both are as good as random */
    memcpy(&a, key->name, sizeof(a));
    memcpy(&b, domain, sizeof(b));
    struct ticket_derived *at = &lib->derived[(a ^ b) % TICKET_DERIVED_MAX];
    if (at->set && memcmp(at->name, key->name, sizeof(at->name)) == 0 &&
        memcmp(at->domain, domain, sizeof(at->domain)) == 0) {
        return at;
    }
    at->set = false;
    return derive(lib, key, domain, at) ? at : NULL;
}

static bool set_keys(struct tls_lib *lib, const struct ticket_key *key, const uint8_t *domain,
                     const unsigned char *iv, EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac, int sealing)
{
    static char digest[] = "SHA256";
    const OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_end(),
    };
    const struct ticket_derived *keys = derived(lib, key, domain);
    return keys != NULL &&
           EVP_CipherInit_ex2(cipher, lib->ticket_cipher, keys->cipher_key, iv, sealing, NULL) ==
               1 &&
           EVP_MAC_init(mac, keys->mac_key, sizeof(keys->mac_key), params) == 1;
}

int tls_ticket_callback(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher,
                        EVP_MAC_CTX *mac, int sealing)
{
    const struct tls_session *own = SSL_get_app_data(ssl);
    struct tls_lib *lib = own->lib;
    const struct ticket_ring *ring = own->tickets ? lib->config.tickets(lib->config.arg) : NULL;
    if (ring == NULL) {
        return 0;
    }
    if (sealing != 0) {
        const struct ticket_key *key = ticket_ring_active(ring);
        if (key == NULL) {
            return 0;
        }
        memcpy(name, key->name, TICKET_NAME_BYTES);
        if (RAND_bytes_ex(lib->libctx, iv, IV_BYTES, 0) != 1) {
            return -1;
        }
        return set_keys(lib, key, own->domain, iv, cipher, mac, 1) ? 1 : -1;
    }
    const struct ticket_key *key = ticket_ring_find(ring, name);
    if (key == NULL) {
        return 0;
    }
    if (!set_keys(lib, key, own->domain, iv, cipher, mac, 0)) {
        return -1;
    }
    return SSL_version(ssl) == TLS1_3_VERSION || key->state != TICKET_ACTIVE ? 2 : 1;
}
