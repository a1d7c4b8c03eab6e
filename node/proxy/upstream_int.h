/*
 * What upstream.c (connections, output, time) and upstream_in.c (input) share. Nobody else includes
 * it.
 */
#ifndef SKEIN_NODE_PROXY_UPSTREAM_INT_H
#define SKEIN_NODE_PROXY_UPSTREAM_INT_H

#include "node/proxy/upstream.h"

/* Restart the time limit for what it is doing. */
void upstream_touch(struct upstream *up);

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
