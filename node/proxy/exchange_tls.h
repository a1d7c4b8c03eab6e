/*
 * What TLS, or its absence, means for a request: which rules it may use, what it is answered
 * instead, and what the endpoint is told of the client's certificate.
 * Thread: the worker's.
 */
#ifndef SKEIN_NODE_PROXY_EXCHANGE_TLS_H
#define SKEIN_NODE_PROXY_EXCHANGE_TLS_H

#include "node/proxy/exchange.h"

/* Its rule is known. REASON_NONE: it may go on. answer's lines and status may have been set. */
enum reason exchange_check_scheme(struct exchange *exchange, const struct exchange_request *request,
                                  struct exchange_answer *answer);

/* Over TLS: X-SSL fields that came are left out, those that the rule wants are added in the
 * worker's lines. */
void exchange_tell_tls(struct exchange *exchange, const struct exchange_request *request,
                       struct h1_out *how);

#endif
