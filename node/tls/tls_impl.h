/*
 * What tls_ctx and tls_engine know of each other. For node/tls only.
 */
#ifndef SKEIN_NODE_TLS_TLS_IMPL_H
#define SKEIN_NODE_TLS_TLS_IMPL_H

#include "node/tls/tls_ctx.h"
#include "node/tls/tls_policy.h"

#include <stdatomic.h>

struct tls_ctx {
    SSL_CTX *ssl_ctx;
    const struct tls_psk_ops *psk_ops; /* NULL: certificates */
    atomic_uint refs;
};

/* What the callbacks of a context find at SSL_get_app_data. */
struct tls_session {
    void *arg;          /* the caller's */
    int refusal;        /* server: the alert that tls_psk_ops.find asked for, or 0 */
    struct tls_psk psk; /* client: what is offered; OpenSSL keeps a pointer to the identity */
};

/* Texts in OpenSSL's own forms. */
struct tls_policy {
    atomic_uint refs;
    int min_version;
    char *ciphers;
    char *ciphersuites;
    char *groups;
    enum tls_client_auth client_auth;
    char *client_ca;
    char *client_crl;
    uint8_t digest[TLS_DIGEST_BYTES];
};

struct tls_target {
    atomic_uint refs;
    struct tls_policy *policy; /* profile only */
    enum tls_verify verify;
    char *ca;
    char *server_name;
    struct tls_cert *client_cert;
    uint8_t digest[TLS_DIGEST_BYTES];
};

/* One chain and its key as DER, in one block of the certificate's. */
struct tls_pair {
    enum tls_key_type type;
    size_t chain_count; /* 1..TLS_CERT_CHAIN_MAX, leaf first */
    uint8_t *chain[TLS_CERT_CHAIN_MAX];
    size_t chain_len[TLS_CERT_CHAIN_MAX];
    int key_type; /* EVP_PKEY_* */
    uint8_t *key; /* as i2d_PrivateKey gives it */
    size_t key_len;
    uint8_t *ocsp; /* NULL: none */
    size_t ocsp_len;
};

struct tls_cert {
    atomic_uint refs;
    uint64_t id;
    size_t pair_count;
    struct tls_pair pairs[TLS_CERT_PAIRS_MAX];
    struct tls_cert_info info; /* its texts are owned */
};

#endif
