/*
 * Which endpoint of a set gets the next request.
 *
 * Load is the shared count of exchanges in flight, divided by weight. Never given: an endpoint that
 * this request tried, one that is full, and one that active checks found down (unless so few are up
 * that all are used). One that refused a connection a moment ago or is ejected only when nothing
 * else is left. One in its slow start gets the part of its share that it has reached.
 *
 * Hashing is weighted rendezvous: the endpoint with the highest score for the key, so that one that
 * leaves gives away its own keys and no others, and every node agrees. When it cannot serve, the
 * one with the next score does. Pure but for live state. Thread: a worker, online.
 */
#ifndef SKEIN_NODE_PROXY_BALANCE_H
#define SKEIN_NODE_PROXY_BALANCE_H

#include "node/base/rng.h"
#include "node/proxy/backend.h"

struct balance_ask {
    struct rng *rng;
    uint64_t *turn; /* round robin position of this worker */
    uint64_t now_ms;
    uint64_t hash; /* BALANCE_HASH: of the key */
    struct endpoint *const *tried;
    size_t tried_count;
};

/* NULL: the set has none that can be given now; *ret_full: but it would have, were they not full.
 */
struct endpoint *balance_pick(const struct endpoint_set *set, const struct balance_ask *ask,
                              bool *ret_full);

/* May this very endpoint be given, though its weight is 0 or it drains? Full ones count as fit. */
bool balance_can_hold(const struct endpoint_set *set, struct endpoint *endpoint,
                      const struct balance_ask *ask);

/* ---- for the policies ---- */

/* The part of its weight with which an endpoint takes part now, out of ENDPOINT_SHARE_FULL; 0: it
 * is not fit for this request. */
uint32_t balance_share(const struct endpoint_set *set, const struct balance_ask *ask,
                       struct endpoint *endpoint);

/* balance_hash.c: the fit one with the highest score; NULL: none. */
const struct set_entry *balance_by_hash(const struct endpoint_set *set,
                                        const struct balance_ask *ask);

#endif
