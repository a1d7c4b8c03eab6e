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

/* Something is known of it: what is over is cleared on the way. */
static uint32_t share_of_flagged(const struct endpoint_set *set, struct endpoint *endpoint,
                                 uint64_t now_ms)
{
    uint32_t flags = backend_check_flags(set->backend, endpoint, now_ms);
    uint32_t bars = ENDPOINT_SKIPPED | (backend_panics(set->backend) ? 0 : ENDPOINT_OUT);
    if ((flags & bars) != 0) {
        return 0;
    }
    return (flags & ENDPOINT_RAMPING) == 0
               ? (uint32_t)ENDPOINT_SHARE_FULL
               : endpoint_share(endpoint, set->policy.slow_start_ms, now_ms);
}

uint32_t balance_share(const struct endpoint_set *set, const struct balance_ask *ask,
                       struct endpoint *endpoint)
{
    if (was_tried(ask, endpoint) ||
        endpoint_is_full(endpoint, set->policy.connections_per_endpoint_max)) {
        return 0;
    }
    return LIKELY(endpoint_flags(endpoint) == 0) ? (uint32_t)ENDPOINT_SHARE_FULL
                                                 : share_of_flagged(set, endpoint, ask->now_ms);
}

bool balance_can_hold(const struct endpoint_set *set, struct endpoint *endpoint,
                      const struct balance_ask *ask)
{
    uint32_t flags = endpoint_flags(endpoint);
    return !was_tried(ask, endpoint) && (flags & ENDPOINT_REMOVED) == 0 &&
           (flags == 0 || share_of_flagged(set, endpoint, ask->now_ms) != 0);
}

/* One that might be picked, with what it weighs now. */
struct candidate {
    const struct set_entry *entry; /* NULL: none yet */
    uint64_t weight;               /* times its share */
};

static struct candidate candidate(const struct set_entry *entry, uint32_t share)
{
    return (struct candidate){.entry = entry, .weight = (uint64_t)entry->weight * share};
}

/* Would one more request weigh less on a than on b? (load + 1) / weight, without the division. */
static bool is_less_loaded(const struct candidate *a, const struct candidate *b)
{
    return ((uint64_t)endpoint_load(a->entry->endpoint) + 1) * b->weight <
           ((uint64_t)endpoint_load(b->entry->endpoint) + 1) * a->weight;
}

static void take_if_better(struct candidate *best, const struct set_entry *entry, uint32_t share)
{
    struct candidate other = candidate(entry, share);
    if (best->entry == NULL || is_less_loaded(&other, best)) {
        *best = other;
    }
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

/* In its slow start it is left out now and then. */
static bool takes_part(const struct balance_ask *ask, uint32_t share)
{
    return share == ENDPOINT_SHARE_FULL ||
           (share != 0 && rng_below(ask->rng, ENDPOINT_SHARE_FULL) < share);
}

/* The least loaded of all that are fit; a random start breaks ties evenly. */
static const struct set_entry *scan(const struct endpoint_set *set, const struct balance_ask *ask)
{
    uint32_t start = (uint32_t)rng_below(ask->rng, set->usable_count);
    struct candidate best = {0};
    for (uint32_t i = 0; i < set->usable_count; i++) {
        uint32_t at = start + i < set->usable_count ? start + i : start + i - set->usable_count;
        uint32_t share = balance_share(set, ask, set->entries[at].endpoint);
        if (share != 0) {
            take_if_better(&best, &set->entries[at], share);
        }
    }
    return best.entry;
}

/* Nothing is fit: is that because of limits? If not, what failed a moment ago or is ejected may
 * still work. */
static const struct set_entry *scan_desperate(const struct endpoint_set *set,
                                              const struct balance_ask *ask, bool *ret_full)
{
    uint32_t limit = set->policy.connections_per_endpoint_max;
    bool panic = backend_panics(set->backend);
    struct candidate best = {0};
    for (uint32_t i = 0; i < set->usable_count; i++) {
        struct endpoint *endpoint = set->entries[i].endpoint;
        uint32_t flags = endpoint_flags(endpoint);
        if (was_tried(ask, endpoint) || ((flags & ENDPOINT_DOWN) != 0 && !panic)) {
            continue;
        }
        if (endpoint_is_full(endpoint, limit)) {
            *ret_full = *ret_full || (flags & (ENDPOINT_SKIPPED | ENDPOINT_EJECTED)) == 0 || panic;
            continue;
        }
        take_if_better(&best, &set->entries[i], ENDPOINT_SHARE_FULL);
    }
    return *ret_full ? NULL : best.entry;
}

static const struct set_entry *pick_random(const struct endpoint_set *set,
                                           const struct balance_ask *ask)
{
    struct candidate first = {0};
    for (int i = 0; i < DRAWS_MAX; i++) {
        const struct set_entry *entry = draw(set, ask->rng);
        uint32_t share = balance_share(set, ask, entry->endpoint);
        if (!takes_part(ask, share)) {
            continue;
        }
        if (first.entry != NULL) {
            take_if_better(&first, entry, share);
            break;
        }
        first = candidate(entry, share);
    }
    return first.entry;
}

static const struct set_entry *pick_least(const struct endpoint_set *set,
                                          const struct balance_ask *ask)
{
    if (set->usable_count <= SCAN_ALL_MAX) {
        return scan(set, ask);
    }
    struct candidate best = {0};
    for (int i = 0; i < SAMPLE; i++) {
        const struct set_entry *entry = draw(set, ask->rng);
        uint32_t share = balance_share(set, ask, entry->endpoint);
        if (share != 0) {
            take_if_better(&best, entry, share);
        }
    }
    return best.entry;
}

static const struct set_entry *pick_turn(const struct endpoint_set *set,
                                         const struct balance_ask *ask)
{
    for (uint32_t i = 0; i < set->schedule_len; i++) {
        uint64_t turn = (*ask->turn)++;
        const struct set_entry *entry = &set->entries[set->schedule[turn % set->schedule_len]];
        if (takes_part(ask, balance_share(set, ask, entry->endpoint))) {
            return entry;
        }
    }
    return NULL;
}

struct endpoint *balance_pick(const struct endpoint_set *set, const struct balance_ask *ask,
                              bool *ret_full)
{
    static const struct set_entry *(*const policies[])(const struct endpoint_set *,
                                                       const struct balance_ask *) = {
        [BALANCE_RANDOM] = pick_random,
        [BALANCE_LEAST_CONN] = pick_least,
        [BALANCE_ROUND_ROBIN] = pick_turn,
        [BALANCE_HASH] = balance_by_hash,
    };
    *ret_full = false;
    if (set->usable_count == 0) {
        return NULL;
    }
    if (set->usable_count == 1 &&
        balance_share(set, ask, set->entries[0].endpoint) == (uint32_t)ENDPOINT_SHARE_FULL) {
        return set->entries[0].endpoint; /* whatever the policy */
    }
    const struct set_entry *entry = policies[set->policy.balance](set, ask);
    if (entry == NULL && set->policy.balance != BALANCE_HASH) {
        entry = scan(set, ask);
    }
    if (entry == NULL) {
        entry = scan_desperate(set, ask, ret_full);
    }
    return entry != NULL ? entry->endpoint : NULL;
}
