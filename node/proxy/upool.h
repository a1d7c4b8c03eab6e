/*
 * Idle connections per worker and endpoint: last in, first out, bounded, trusted for a time.
 *
 * Idle connections stay registered, so that an end or stray bytes remove them. The time is what the
 * endpoint says in Keep-Alive, else what was learned: a peer that closes after T idle is trusted
 * for 0.8 T from then on, and a little longer after each time that we were first. Plain connections
 * and those of all TLS targets stand in one list, so that one bound holds for the endpoint.
 * Thread: the worker's.
 */
#ifndef SKEIN_NODE_PROXY_UPOOL_H
#define SKEIN_NODE_PROXY_UPOOL_H

#include "node/proxy/upstream.h"

/* One that is fit, or NULL. A request that must not be repeated gets only one that was used a
 * moment ago; what was idle for longer, or may not be repeated, is probed first. target: a TLS
 * connection that was made by the same; NULL: a plain one. */
struct upstream *upool_take(struct worker *worker, struct endpoint *endpoint,
                            struct tls_target *target, bool repeatable);

/* up->state is UPSTREAM_IDLE. The oldest one of the endpoint goes when there are too many; it is
 * closed itself when there is no room for any. */
void upool_put(struct upstream *up);
/* It leaves the idle state by closing. */
void upool_remove(struct upstream *up);

/* The endpoint closed an idle connection; we did because its time was over. */
void upool_learn_closed(struct upstream *up);
void upool_learn_unused(struct upstream *up);

#endif
