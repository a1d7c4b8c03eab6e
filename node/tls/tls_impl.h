/*
 * What tls_ctx and tls_engine know of each other. For node/tls only.
 */
#ifndef SKEIN_NODE_TLS_TLS_IMPL_H
#define SKEIN_NODE_TLS_TLS_IMPL_H

#include "node/tls/tls_ctx.h"

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

#endif
