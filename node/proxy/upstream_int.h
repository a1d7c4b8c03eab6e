/*
 * What the upstream_*.c files share. Nobody else includes it.
 */
#ifndef SKEIN_NODE_PROXY_UPSTREAM_INT_H
#define SKEIN_NODE_PROXY_UPSTREAM_INT_H

#include "node/proxy/upstream.h"

/* Restart the time limit for what it is doing. */
void upstream_touch(struct upstream *up);

extern const struct sock_ops upstream_sock_ops;

/* A zeroed one whose socket is connected or connecting: it is open from here on, and BUSY. */
void upstream_begin(struct upstream *up, struct endpoint *endpoint);

/* ---- upstream_tls.c ---- */

/* How the exchange's requests go to endpoints; NULL: in clear. The worker is online. */
struct tls_target *upstream_target(const struct exchange *exchange);
/* Have it speak TLS: all that is written from here on is encrypted, and leaves when the handshake
 * is done. False: no memory. */
bool upstream_secure(struct upstream *up, struct tls_target *target);
/* The handshake is done: count it. */
void upstream_secured(struct upstream *up);
/* An error: what is lost, which is told to the exchange's log and counters when TLS is the cause.
 */
enum lost upstream_lost_by(struct upstream *up);

/* The connection is of no use any more; its exchange, if any, learns why, and it is closed. */
void upstream_lose(struct upstream *up, enum lost lost);

/* BUSY: bytes of the response. May end the exchange and the connection. */
void upstream_input(struct upstream *up, const char *bytes, size_t len);

/* After a piece of the response: have the rest of a large body moved inside the kernel. */
void upstream_begin_splice(struct upstream *up);
/* Move what is there: bytes have come, or the client has room again. May end the exchange. */
void upstream_splice(struct upstream *up);
void upstream_end_splice(struct upstream *up);

/* The response is complete; surplus bytes came behind it. */
void upstream_response_done(struct upstream *up, size_t surplus);

#endif
