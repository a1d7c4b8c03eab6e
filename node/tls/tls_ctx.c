/*
 * The PSK context: TLS 1.3, one suite, ephemeral Diffie-Hellman always, no tickets, no certificate.
 */
#include "node/tls/tls_ctx.h"

#include "node/base/check.h"
#include "node/base/mem.h"
#include "node/tls/crypto.h"
#include "node/tls/tls_err.h"
#include "node/tls/tls_impl.h"

#include <string.h>

/* A session that stands for an external key (RFC 8446 4.2.11); NULL without memory. */
static SSL_SESSION *session_from_key(SSL *ssl, const uint8_t key[TLS_PSK_KEY_BYTES])
{
    static const unsigned char aes128_gcm_sha256[] = {0x13, 0x01};
    const SSL_CIPHER *cipher = SSL_CIPHER_find(ssl, aes128_gcm_sha256);
    SSL_SESSION *session = SSL_SESSION_new();
    if (session == NULL || cipher == NULL ||
        SSL_SESSION_set1_master_key(session, key, TLS_PSK_KEY_BYTES) != 1 ||
        SSL_SESSION_set_cipher(session, cipher) != 1 ||
        SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) != 1) {
        SSL_SESSION_free(session);
        return NULL;
    }
    return session;
}

static const struct tls_psk_ops *ops_of(SSL *ssl)
{
    const struct tls_ctx *ctx = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
    return ctx->psk_ops;
}

/* md is NULL or, after a HelloRetryRequest, the hash of the one suite that we offer. */
static int on_use_session(SSL *ssl, const EVP_MD *md, const unsigned char **id, size_t *id_len,
                          SSL_SESSION **ret_session)
{
    (void)md;
    struct tls_session *own = SSL_get_app_data(ssl);
    struct tls_psk *psk = own->psk;
    ops_of(ssl)->offer(own->arg, psk);
    ASSERT(psk->identity_len > 0 && psk->identity_len <= TLS_PSK_IDENTITY_MAX);
    SSL_SESSION *session = session_from_key(ssl, psk->key);
    crypto_wipe(psk->key, sizeof(psk->key));
    if (session == NULL) {
        return 0;
    }
    *id = psk->identity;
    *id_len = psk->identity_len;
    *ret_session = session;
    return 1;
}

static int on_find_session(SSL *ssl, const unsigned char *identity, size_t len,
                           SSL_SESSION **ret_session)
{
    *ret_session = NULL; /* unknown: OpenSSL goes on, and fails for want of a certificate */
    struct tls_session *own = SSL_get_app_data(ssl);
    struct tls_psk psk = {0};
    own->refusal = len == 0 || len > TLS_PSK_IDENTITY_MAX
                       ? TLS_ALERT_UNKNOWN_KEY
                       : ops_of(ssl)->find(own->arg, identity, len, &psk);
    if (own->refusal != 0) {
        return 1;
    }
    SSL_SESSION *session = session_from_key(ssl, psk.key);
    crypto_wipe(psk.key, sizeof(psk.key));
    *ret_session = session;
    return session != NULL ? 1 : 0;
}

static bool configure(SSL_CTX *ctx)
{
    static char groups[] = "X25519:P-256"; /* the macro casts const away */
    /* Output goes to buffers that may move, and a full one is no error. */
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                              SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET);
    (void)SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF); /* returns the old mode */
    SSL_CTX_set_psk_use_session_callback(ctx, on_use_session);
    SSL_CTX_set_psk_find_session_callback(ctx, on_find_session);
    return SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) == 1 &&
           SSL_CTX_set_max_proto_version(ctx, TLS1_3_VERSION) == 1 &&
           SSL_CTX_set_ciphersuites(ctx, "TLS_AES_128_GCM_SHA256") == 1 &&
           SSL_CTX_set1_groups_list(ctx, groups) == 1 && SSL_CTX_set_num_tickets(ctx, 0) == 1;
}

int tls_ctx_new_psk(const struct tls_psk_ops *ops, struct tls_ctx **ret_ctx, struct err_info *err)
{
    tls_err_clear();
    SSL_CTX *ssl_ctx = SSL_CTX_new(TLS_method());
    if (ssl_ctx == NULL || !configure(ssl_ctx)) {
        SSL_CTX_free(ssl_ctx);
        return tls_err_take(err, RC_UNSUPPORTED, "cannot set up TLS 1.3");
    }
    struct tls_ctx *ctx = mem_new(sizeof(*ctx));
    ctx->ssl_ctx = ssl_ctx;
    ctx->psk_ops = ops;
    atomic_init(&ctx->refs, 1);
    ASSERT(SSL_CTX_set_app_data(ssl_ctx, ctx) == 1);
    *ret_ctx = ctx;
    return RC_OK;
}

void tls_ctx_ref(struct tls_ctx *ctx)
{
    unsigned before = atomic_fetch_add_explicit(&ctx->refs, 1, memory_order_relaxed);
    ASSERT(before > 0 && before < UINT32_MAX / 2);
}

void tls_ctx_unref(struct tls_ctx *ctx)
{
    if (ctx == NULL) {
        return;
    }
    unsigned before = atomic_fetch_sub_explicit(&ctx->refs, 1, memory_order_acq_rel);
    ASSERT(before > 0);
    if (before == 1) {
        SSL_CTX_free(ctx->ssl_ctx);
        mem_free(ctx);
    }
}

SSL_CTX *tls_ctx_ssl(const struct tls_ctx *ctx)
{
    return ctx->ssl_ctx;
}

bool tls_ctx_is_psk(const struct tls_ctx *ctx)
{
    return ctx->psk_ops != NULL;
}
