/*
 * Weighted rendezvous hashing: key and endpoint give a number u in (0, 1), and weight / -ln(u) is
 * the score; the highest wins with a probability of its share of the weights.
 *
 * Costs a multiplication for each endpoint: since -ln(u) > 1 - u, a logarithm is needed only for
 * those that might beat the best so far, and none at all where all weigh the same. 64 endpoints
 * cost 0.2 us, or 1 us with weights; the largest sets 10 to 20 us, which a ring would save at the
 * price of memory for each backend, a rebuild on each change and an uneven split.
 */
#include "node/proxy/balance.h"

#include "node/base/hash.h"

#include <math.h>

/* 53 bits of the hash as a number in (0, 1). */
static double to_unit(uint64_t hash)
{
    return ((double)(hash >> 11) + 0.5) * 0x1p-53;
}

static const struct set_entry *highest_even(const struct endpoint_set *set,
                                            const struct balance_ask *ask, bool *ret_ramping)
{
    const struct set_entry *best = NULL;
    uint64_t best_hash = 0;
    for (uint32_t i = 0; i < set->usable_count; i++) {
        uint64_t hash = hash_mix64(set->identities[i] ^ ask->hash);
        if (best != NULL && hash <= best_hash) {
            continue;
        }
        uint32_t share = balance_share(set, ask, set->entries[i].endpoint);
        if (share == 0) {
            continue;
        }
        *ret_ramping = *ret_ramping || share != ENDPOINT_SHARE_FULL;
        best = &set->entries[i];
        best_hash = hash;
    }
    return best;
}

static const struct set_entry *highest_weighted(const struct endpoint_set *set,
                                                const struct balance_ask *ask)
{
    const struct set_entry *best = NULL;
    double best_cost = 0; /* -ln(u) / weight: the lowest wins */
    for (uint32_t i = 0; i < set->usable_count; i++) {
        const struct set_entry *entry = &set->entries[i];
        double unit = to_unit(hash_mix64(set->identities[i] ^ ask->hash));
        if (best != NULL && 1 - unit >= best_cost * entry->weight) {
            continue;
        }
        uint32_t share = balance_share(set, ask, entry->endpoint);
        if (share == 0) {
            continue;
        }
        double cost = -log(unit) / ((double)entry->weight * share / ENDPOINT_SHARE_FULL);
        if (best == NULL || cost < best_cost) {
            best = entry;
            best_cost = cost;
        }
    }
    return best;
}

const struct set_entry *balance_by_hash(const struct endpoint_set *set,
                                        const struct balance_ask *ask)
{
    if (!set->even) {
        return highest_weighted(set, ask);
    }
    bool ramping = false;
    const struct set_entry *best = highest_even(set, ask, &ramping);
    return ramping ? highest_weighted(set, ask) : best;
}
