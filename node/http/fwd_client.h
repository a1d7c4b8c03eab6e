/*
 * Who asks, when the peer is a proxy that is trusted: the right-most address of X-Forwarded-For (or
 * Forwarded, when there is no X-Forwarded-For) that is not a trusted proxy itself.
 *
 * Only what trusted hops wrote is believed: the walk goes from the right and ends at the first
 * address that is not trusted, or at an element that is none ("unknown", "_hidden", garbage), where
 * the hop that wrote it counts as the client. Thread: any; no state but the arguments.
 */
#ifndef SKEIN_NODE_HTTP_FWD_CLIENT_H
#define SKEIN_NODE_HTTP_FWD_CLIENT_H

#include "node/base/cidr.h"
#include "node/http/h1_head.h"

enum { FWD_HOPS_MAX = 32 }; /* trusted hops behind each other; the client is sought no further */

/* peer is itself when trusted does not have it. The port is that of the element, 0 when it has
 * none. */
struct addr fwd_client(const struct cidr_set *trusted, const struct addr *peer,
                       const struct h1_head *head, const char *bytes);

/* What the trusted peer says of the scheme that the client used: the last element of
 * X-Forwarded-Proto is "https". */
bool fwd_is_https(const struct h1_head *head, const char *bytes);

#endif
