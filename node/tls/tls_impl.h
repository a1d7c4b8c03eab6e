/*
 * What tls_ctx and tls_engine know of each other. For node/tls only.
 */
#ifndef SKEIN_NODE_TLS_TLS_IMPL_H
#define SKEIN_NODE_TLS_TLS_IMPL_H

#include "node/tls/tls_ctx.h"
#include "node/tls/tls_engine.h"
#include "node/tls/tls_policy.h"

#include <stdatomic.h>

struct tls_ctx {
    SSL_CTX *ssl_ctx;
    const struct tls_psk_ops *psk_ops; /* NULL: certificates */
    atomic_uint refs;
};

struct tls_lib;
struct tls_resume;

/* What the callbacks of a context find at SSL_get_app_data. */
struct tls_session {
    /* of a tls_ctx */
    void *arg;           /* the caller's */
    struct tls_psk *psk; /* client: what is offered; OpenSSL keeps a pointer to the identity */
    int refusal;         /* server: the alert that tls_psk_ops.find asked for, or 0 */

    /* of a tls_lib */
    struct tls_lib *lib;       /* NULL: it is of a tls_ctx */
    struct tls_cert *cert;     /* server: a reference, until the handshake is done */
    struct tls_target *target; /* client: a reference */
    struct tls_resume *resume; /* client: where sessions are put; NULL: nowhere */
    bool tickets;              /* server: in the domain */
    uint8_t domain[TLS_DIGEST_BYTES];
};

struct tls_engine;

/* After a handshake with a client: what a resumed session carries still holds. */
bool tls_lib_admits(SSL *ssl);
/* After one with a server: keep a ticket that TLS 1.2 renewed, of which no callback tells. */
void tls_lib_connected(SSL *ssl);

/* An engine over a connection of a tls_lib, which it takes, also when it fails; session->lib and
 * what belongs to it is filled in by the caller. RC_NO_MEMORY. */
MUST_CHECK int tls_engine_wrap(SSL *ssl, enum tls_role role, struct buf *cipher,
                               struct tls_engine **ret_eng);
struct tls_session *tls_engine_session(struct tls_engine *eng);
SSL *tls_engine_ssl(const struct tls_engine *eng);

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
