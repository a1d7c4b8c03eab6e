/*
 * TLS contexts: what many connections share.
 *
 * Today's kind is TLS 1.3 with external pre-shared keys between two nodes (RFC 9257: a key for
 * exactly two parties, with ephemeral Diffie-Hellman). A connection that did not prove the key
 * cannot complete: the server has no certificate, and the client trusts none.
 * Thread: immutable after it was made; the reference count is atomic.
 */
#ifndef SKEIN_NODE_TLS_TLS_CTX_H
#define SKEIN_NODE_TLS_TLS_CTX_H

#include "node/base/defs.h"
#include "node/base/errors.h"

#include <openssl/ssl.h>

enum {
    TLS_PSK_IDENTITY_MAX = 128, /* bytes, without NUL */
    TLS_PSK_KEY_BYTES = 32,
};

/* Alerts with a meaning of their own here (RFC 8446 6.2). */
enum {
    TLS_ALERT_ACCESS_DENIED = 49, /* the key may fit, but not for this server */
    TLS_ALERT_DECRYPT_ERROR = 51, /* the identity is known, its key differs */
    TLS_ALERT_UNKNOWN_KEY = 115,  /* unknown_psk_identity */
};

struct tls_psk {
    size_t identity_len; /* 1..TLS_PSK_IDENTITY_MAX */
    uint8_t identity[TLS_PSK_IDENTITY_MAX];
    uint8_t key[TLS_PSK_KEY_BYTES];
};

/* Called during a handshake, from within tls_engine_feed or _start. arg is the engine's. */
struct tls_psk_ops {
    /* Client: which identity and key. Fills ret_psk. */
    void (*offer)(void *arg, struct tls_psk *ret_psk);

    /* Server: the key for an identity that a client offers (unverified bytes). 0: ret_psk->key is
     * filled; else the alert with which the handshake fails, such as TLS_ALERT_UNKNOWN_KEY. */
    int (*find)(void *arg, const uint8_t *identity, size_t len, struct tls_psk *ret_psk);
};

struct tls_ctx;

/* Context for both roles. ops is borrowed for ever (static). RC_UNSUPPORTED: OpenSSL refused. */
MUST_CHECK int tls_ctx_new_psk(const struct tls_psk_ops *ops, struct tls_ctx **ret_ctx,
                               struct err_info *err);

void tls_ctx_ref(struct tls_ctx *ctx);
void tls_ctx_unref(struct tls_ctx *ctx); /* NULL is accepted */

/* For this unit's engine. */
SSL_CTX *tls_ctx_ssl(const struct tls_ctx *ctx);
bool tls_ctx_is_psk(const struct tls_ctx *ctx);

#endif
