/*
 * What the files of tls_lib share. For node/tls only.
 */
#ifndef SKEIN_NODE_TLS_TLS_LIB_INT_H
#define SKEIN_NODE_TLS_TLS_LIB_INT_H

#include "node/base/hashtable.h"
#include "node/tls/tls_impl.h"
#include "node/tls/tls_lib.h"

#include <openssl/provider.h>
#include <openssl/x509.h>

enum { TICKET_DERIVED_MAX = 256 };

/* A pair as OpenSSL uses it. */
struct tls_parsed {
    X509 *leaf;
    STACK_OF(X509) * chain; /* behind the leaf */
    EVP_PKEY *key;
};

/* A context, or a certificate. */
struct tls_item {
    uint8_t key[TLS_DIGEST_BYTES];
    SSL_CTX *ctx;
    size_t pair_count;
    struct tls_parsed pairs[TLS_CERT_PAIRS_MAX];
    struct tls_item *prev; /* utlist: by last use */
    struct tls_item *next;
    UT_hash_handle hh;
};

struct tls_cache {
    struct tls_item *items;
    struct tls_item *order; /* the last used one first */
    size_t count;
    size_t max;
};

/* What a ring key becomes in a domain. */
struct ticket_derived {
    bool set;
    uint8_t name[TICKET_NAME_BYTES];
    uint8_t domain[TLS_DIGEST_BYTES];
    uint8_t cipher_key[32];
    uint8_t mac_key[32];
};

struct tls_lib {
    struct tls_lib_config config;
    OSSL_LIB_CTX *libctx;
    OSSL_PROVIDER *provider;
    X509_STORE *system;
    struct tls_cache servers;
    struct tls_cache clients;
    struct tls_cache certs;
    EVP_CIPHER *ticket_cipher;
    EVP_KDF *kdf;
    struct ticket_derived derived[TICKET_DERIVED_MAX]; /* by hash; a newer one takes the place */
};

/* ---- tls_ticket.c ---- */

/* False: OpenSSL lacks an algorithm. */
bool tls_ticket_begin(struct tls_lib *lib);
void tls_ticket_end(struct tls_lib *lib);
int tls_ticket_callback(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher,
                        EVP_MAC_CTX *mac, int sealing);

#endif
