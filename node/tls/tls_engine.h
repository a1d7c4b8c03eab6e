/*
 * One TLS connection without a socket: ciphertext in, plaintext out, and the reverse.
 *
 * A custom BIO reads from the bytes of the present call and writes into a buffer of the caller, so
 * no byte is copied but by the cipher itself, and an idle connection holds no buffer of ours. The
 * output buffer may be shared by all connections of a thread if it is emptied after each call.
 *
 *   HANDSHAKE --done--> OPEN --close_notify came--> ENDED        any --protocol failure--> FAILED
 *
 * Thread: the owner's. Nothing blocks. Source: RFC 8446.
 */
#ifndef SKEIN_NODE_TLS_TLS_ENGINE_H
#define SKEIN_NODE_TLS_TLS_ENGINE_H

#include "node/base/buf.h"
#include "node/base/defs.h"
#include "node/base/errors.h"
#include "node/tls/tls_ctx.h"

enum tls_role {
    TLS_CLIENT = 0,
    TLS_SERVER,
};

enum tls_state {
    TLS_HANDSHAKE = 0,
    TLS_OPEN,
    TLS_ENDED,  /* the other side said close_notify; writing is still legal */
    TLS_FAILED, /* tls_engine_error says why; an alert may wait in the output */
};

struct tls_engine;

/*
 * ctx     referenced until tls_engine_free
 * cipher  borrowed until then: what is to be sent is appended here; its cap bounds it
 * arg     for the context's callbacks
 *
 * RC_NO_MEMORY.
 */
MUST_CHECK int tls_engine_new(struct tls_ctx *ctx, enum tls_role role, struct buf *cipher,
                              void *arg, struct tls_engine **ret_eng);
void tls_engine_free(struct tls_engine *eng); /* NULL is accepted */

/* Client: begin the handshake (the first flight goes to cipher). Server: nothing to do, returns 0.
 * RC_FULL, RC_PEER as in feed. */
MUST_CHECK int tls_engine_start(struct tls_engine *eng);

/*
 * Feed ciphertext that the peer sent.
 *
 * in        borrowed for this call, split anywhere; len may be 0 to go on after RC_FULL
 * ret_used  bytes consumed, always set
 * plain     decrypted bytes are appended, up to its cap
 *
 * 0          all of in consumed, whether or not plaintext came out
 * RC_FULL    plain or cipher is at its cap: drain it and call again with the rest of in
 * RC_CLOSED  close_notify came; nothing follows it
 * RC_PEER    protocol failure or a key that does not fit; state FAILED
 *
 * After every result send what cipher holds. Allocates: one record at most.
 */
MUST_CHECK int tls_engine_feed(struct tls_engine *eng, const uint8_t *in, size_t len,
                               size_t *ret_used, struct buf *plain);

/*
 * Encrypt plaintext into cipher. Legal in OPEN and ENDED.
 *
 * 0          all of it
 * RC_FULL    cipher is at its cap after *ret_used bytes: drain it, call again with exactly the rest
 * RC_CLOSED  the state does not allow it
 * RC_PEER    failure; state FAILED
 */
MUST_CHECK int tls_engine_write(struct tls_engine *eng, const void *plain, size_t len,
                                size_t *ret_used);

/* Server of a tls_lib: append the session ticket that has not gone out with data yet. Nothing when
 * there is none to send. */
void tls_engine_ticket(struct tls_engine *eng);

/* Append close_notify to cipher, once; nothing can be written after it. */
void tls_engine_end(struct tls_engine *eng);

enum tls_state tls_engine_state(const struct tls_engine *eng);

/* Why it FAILED, one line; "" before. An alert by the peer is named as such. */
const char *tls_engine_error(const struct tls_engine *eng);

/* The alert that the peer sent when it failed (RFC 8446 6.2), or -1. */
int tls_engine_peer_alert(const struct tls_engine *eng);

#endif
