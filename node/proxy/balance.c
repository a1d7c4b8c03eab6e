/*
 * Balancing policies: one function each, in a table, over one notion of load; see balance.h.
 */
#include "node/proxy/balance.h"

enum {
    SCAN_ALL_MAX = 256, /* least connections above it: the best of SAMPLE draws */
    SAMPLE = 64,
    DRAWS_MAX = 16, /* random: redraws before the set is scanned */
};

static bool was_tried(const struct balance_ask *ask, const struct endpoint *endpoint)
{
    for (size_t i = 0; i < ask->tried_count; i++) {
        if (ask->tried[i] == endpoint) {
            return true;
        }
    }
    return false;
}

static bool is_fit(const struct balance_ask *ask, const struct endpoint *endpoint)
{
    return !was_tried(ask, endpoint) && !endpoint_is_skipped(endpoint, ask->now_ms);
}

/* Would one more request weigh less on a than on b? (load + 1) / weight, without the division. */
static bool is_less_loaded(const struct set_entry *a, const struct set_entry *b)
{
    return ((uint64_t)endpoint_load(a->endpoint) + 1) * b->weight <
           ((uint64_t)endpoint_load(b->endpoint) + 1) * a->weight;
}

/* The entry whose share of the total weight holds a random point. */
static const struct set_entry *draw(const struct endpoint_set *set, struct rng *rng)
{
    uint32_t point = (uint32_t)rng_below(rng, set->weight_total);
    uint32_t low = 0;
    uint32_t high = set->usable_count - 1;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (set->entries[mid].weight_end > point) {
            high = mid;
        } else {
            low = mid + 1;
        }
    }
    return &set->entries[low];
}

/* The least loaded of all; a random start breaks ties evenly. Skipped ones only when asked for. */
static const struct set_entry *scan(const struct endpoint_set *set, const struct balance_ask *ask,
                                    bool with_skipped)
{
    uint32_t start = (uint32_t)rng_below(ask->rng, set->usable_count);
    const struct set_entry *best = NULL;
    for (uint32_t i = 0; i < set->usable_count; i++) {
        uint32_t at = start + i < set->usable_count ? start + i : start + i - set->usable_count;
        const struct set_entry *entry = &set->entries[at];
        if (with_skipped ? was_tried(ask, entry->endpoint) : !is_fit(ask, entry->endpoint)) {
            continue;
        }
        if (best == NULL || is_less_loaded(entry, best)) {
            best = entry;
        }
    }
    return best;
}

static const struct set_entry *pick_random(const struct endpoint_set *set,
                                           const struct balance_ask *ask)
{
    const struct set_entry *first = NULL;
    for (int i = 0; i < DRAWS_MAX; i++) {
        const struct set_entry *entry = draw(set, ask->rng);
        if (!is_fit(ask, entry->endpoint)) {
            continue;
        }
        if (first == NULL) {
            first = entry;
            continue;
        }
        return is_less_loaded(entry, first) ? entry : first;
    }
    return first;
}

static const struct set_entry *pick_least(const struct endpoint_set *set,
                                          const struct balance_ask *ask)
{
    if (set->usable_count <= SCAN_ALL_MAX) {
        return scan(set, ask, false);
    }
    const struct set_entry *best = NULL;
    for (int i = 0; i < SAMPLE; i++) {
        const struct set_entry *entry = draw(set, ask->rng);
        if (is_fit(ask, entry->endpoint) && (best == NULL || is_less_loaded(entry, best))) {
            best = entry;
        }
    }
    return best;
}

static const struct set_entry *pick_turn(const struct endpoint_set *set,
                                         const struct balance_ask *ask)
{
    for (uint32_t i = 0; i < set->schedule_len; i++) {
        uint64_t turn = (*ask->turn)++;
        const struct set_entry *entry = &set->entries[set->schedule[turn % set->schedule_len]];
        if (is_fit(ask, entry->endpoint)) {
            return entry;
        }
    }
    return NULL;
}

struct endpoint *balance_pick(const struct endpoint_set *set, const struct balance_ask *ask)
{
    static const struct set_entry *(*const policies[])(const struct endpoint_set *,
                                                       const struct balance_ask *) = {
        [BALANCE_RANDOM] = pick_random,
        [BALANCE_LEAST_CONN] = pick_least,
        [BALANCE_ROUND_ROBIN] = pick_turn,
    };
    if (set->usable_count == 0) {
        return NULL;
    }
    const struct set_entry *entry = policies[set->balance](set, ask);
    if (entry == NULL) {
        entry = scan(set, ask, false);
    }
    if (entry == NULL) {
        entry = scan(set, ask, true);
    }
    return entry != NULL ? entry->endpoint : NULL;
}
