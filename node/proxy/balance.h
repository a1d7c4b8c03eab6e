/*
 * Which endpoint of a set gets the next request.
 *
 * Load is the shared count of exchanges in flight, divided by weight. An endpoint that was tried by
 * this request is never given again; one that refused a connection a moment ago only when nothing
 * else is left. Pure but for the reads of live state. Thread: a worker.
 */
#ifndef SKEIN_NODE_PROXY_BALANCE_H
#define SKEIN_NODE_PROXY_BALANCE_H

#include "node/base/rng.h"
#include "node/proxy/backend.h"

struct balance_ask {
    struct rng *rng;
    uint64_t *turn; /* round robin position of this worker */
    uint64_t now_ms;
    struct endpoint *const *tried;
    size_t tried_count;
};

/* NULL: the set has no usable endpoint that was not tried. */
struct endpoint *balance_pick(const struct endpoint_set *set, const struct balance_ask *ask);

#endif
