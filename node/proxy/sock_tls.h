/*
 * TLS between a socket and its owner, who does not see it: what arrives is decrypted before
 * on_data, what is written is staged in clear and encrypted when the event is over, so a head and
 * its body are one record and, with what the handshake has to say, one send.
 *
 *   direction  on the way
 *   in         recv into the worker's scratch -> engine -> the worker's plain buffer -> on_data
 *   out        sock_write -> tls->plain -> engine -> the worker's cipher buffer -> send; what the
 *              kernel does not take waits in sock->out, and no more is encrypted meanwhile
 *
 * on_connected of a connecting socket means that the handshake is done. The peer's close_notify is
 * on_eof; an end without it is an error (ECONNRESET), since nobody knows whether it is one: a cut
 * message must not look whole. A failed handshake is an error (EPROTO), after the alert was sent.
 * sock_end and sock_finish say close_notify, sock_close does not.
 * Thread: the worker's.
 */
#ifndef SKEIN_NODE_PROXY_SOCK_TLS_H
#define SKEIN_NODE_PROXY_SOCK_TLS_H

#include "node/proxy/sock.h"
#include "node/tls/tls_lib.h"

enum {
    SOCK_TLS_CIPHER_MAX = 98304, /* encrypted in one go: several records */
};

struct sock_tls {
    struct tls_engine *engine; /* owned */
    struct chunkq plain;       /* staged, in clear */
    uint64_t sent;             /* bytes in clear that were encrypted, ever */
    bool opened : 1;           /* the handshake is done, and the owner knows */
    bool end : 1;              /* close_notify is wanted behind what is staged */
    bool ended : 1;            /* it was said */
};

/*
 * From here on the socket speaks TLS; nothing was read or written before but, of a connecting one,
 * what goes in clear in front (a PROXY header). The engine is taken; its output goes to the
 * worker's cipher buffer (worker->cipher). A client's handshake begins, and the socket counts as
 * connecting until it is done.
 */
void sock_start_tls(struct sock *sock, struct tls_engine *engine, enum tls_role role);

/* Bytes of the peer that somebody else has read. */
void sock_tls_input(struct sock *sock, const char *bytes, size_t len);

/* The handshake is done. */
static inline bool sock_tls_is_open(const struct sock *sock)
{
    return sock->tls == NULL || sock->tls->opened;
}

/* ---- for sock.c ---- */

void sock_tls_write(struct sock *sock, const char *bytes, size_t len);
/* Encrypt what can be sent. Returns the bytes that the kernel took. */
size_t sock_tls_flush(struct sock *sock);
void sock_tls_free(struct sock *sock);

#endif
