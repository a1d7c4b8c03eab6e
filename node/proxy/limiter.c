/*
 * Two tables of atomic words; see limiter.h.
 *
 * A key is 64 bits of a keyed hash and never 0. Its low bits choose the set; all of it (rates) or
 * its upper 40 bits (counts) tell it from the others of the set.
 *
 * Rate slot: {key, full_ns}. A slot is taken over by moving full_ns first and writing the key
 * second. Who was about to move the slot's former key may then move the new one's time: full_ns is
 * therefore never believed beyond what its own limit can reach, which bounds the error to one
 * burst of one key.
 *
 * Count word: tag << 24 | number; 0 is free. One compare-and-swap claims, raises, lowers and frees.
 */
#include "node/proxy/limiter.h"

#include "node/base/cidr.h"
#include "node/base/hash.h"
#include "node/base/mem.h"
#include "node/base/rng.h"
#include "node/proxy/shared.h"

enum {
    RATE_SLOTS = 1 << 19,
    COUNT_SLOTS = 1 << 18,
    WAYS = 8,
    NUMBER_BITS = 24,
    CLAIMS_MAX = 4, /* attempts to settle who is first of several with a new key */
};

#define SLACK_NS_MAX (UINT64_C(1) << 62)

static const uint64_t number_mask = (UINT64_C(1) << NUMBER_BITS) - 1;

struct rate_slot {
    _Atomic uint64_t key;
    _Atomic uint64_t full_ns;
};

struct limiter_place {
    _Atomic uint64_t word;
};

struct limiter {
    uint64_t secret[2];
    struct rate_slot *rates;
    struct limiter_place *counts;
};

void limit_init(struct limit *limit, uint64_t id, uint32_t requests, uint32_t window_ms,
                uint32_t burst, uint32_t at_once)
{
    *limit = (struct limit){.id = id, .at_once = MIN(at_once, (uint32_t)number_mask - 1)};
    if (requests != 0) {
        uint64_t window_ns = MAX(window_ms, 1U) * UINT64_C(1000000);
        uint64_t ahead = MAX(burst != 0 ? burst : requests, 1U) - 1;
        limit->interval_ns = MAX(window_ns / requests, UINT64_C(1));
        limit->slack_ns = limit->interval_ns < SLACK_NS_MAX / MAX(ahead, UINT64_C(1))
                              ? limit->interval_ns * ahead
                              : SLACK_NS_MAX;
    }
}

/* Zeroed pages that cost nothing until they are used. */
struct limiter *limiter_new(void)
{
    struct limiter *limiter = mem_new(sizeof(*limiter));
    rng_secret(limiter->secret, sizeof(limiter->secret));
    limiter->rates = mem_array(RATE_SLOTS, sizeof(*limiter->rates));
    limiter->counts = mem_array(COUNT_SLOTS, sizeof(*limiter->counts));
    return limiter;
}

void limiter_free(struct limiter *limiter)
{
    if (limiter != NULL) {
        mem_free(limiter->rates);
        mem_free(limiter->counts);
        mem_free(limiter);
    }
}

uint64_t limit_id(const struct limiter *limiter, const char *bytes, size_t len)
{
    return hash_sip64(limiter->secret[0], limiter->secret[1], bytes, len);
}

uint64_t limiter_key_bytes(const struct limiter *limiter, const struct limit *limit,
                           const char *bytes, size_t len)
{
    uint64_t key = hash_sip64(limiter->secret[0] ^ limit->id, limiter->secret[1], bytes, len);
    return key >> NUMBER_BITS != 0 ? key : UINT64_C(1) << NUMBER_BITS;
}

uint64_t limiter_key_addr(const struct limiter *limiter, const struct limit *limit,
                          const struct addr *addr)
{
    struct cidr network = cidr_around(addr, 32, 64);
    /* The length in front makes it no text that a header could hold. */
    char bytes[1 + sizeof(network.addr)] = {(char)network.len};
    memcpy(bytes + 1, network.addr, sizeof(network.addr));
    return limiter_key_bytes(limiter, limit, bytes, 1U + network.len);
}

uint64_t limiter_key_all(const struct limiter *limiter, const struct limit *limit)
{
    return limiter_key_bytes(limiter, limit, "", 0);
}

/* ---- rates ---- */

/* The slot of this key, or the one to take over: a free one, or the one that is idle the longest.
 */
static struct rate_slot *rate_slot(struct limiter *limiter, uint64_t key, bool *ret_found)
{
    struct rate_slot *set = limiter->rates + (key % (RATE_SLOTS / WAYS)) * WAYS;
    struct rate_slot *stalest = set;
    uint64_t oldest = UINT64_MAX;
    for (size_t i = 0; i < WAYS; i++) {
        if (atomic_load_explicit(&set[i].key, memory_order_acquire) == key) {
            *ret_found = true;
            return &set[i];
        }
        uint64_t full_ns = atomic_load_explicit(&set[i].full_ns, memory_order_relaxed);
        if (full_ns < oldest) {
            oldest = full_ns;
            stalest = &set[i];
        }
    }
    *ret_found = false;
    return stalest;
}

bool limiter_take(struct limiter *limiter, const struct limit *limit, uint64_t key, uint64_t now_ns,
                  uint64_t *ret_wait_ns)
{
    bool found = false;
    struct rate_slot *slot = rate_slot(limiter, key, &found);
    uint64_t seen = atomic_load_explicit(&slot->full_ns, memory_order_relaxed);
    uint64_t most = now_ns + limit->slack_ns + limit->interval_ns;
    for (;;) {
        uint64_t full = found ? MIN(MAX(seen, now_ns), most) : now_ns;
        if (full > now_ns + limit->slack_ns) {
            *ret_wait_ns = full - limit->slack_ns - now_ns;
            return false;
        }
        if (atomic_compare_exchange_weak_explicit(&slot->full_ns, &seen, full + limit->interval_ns,
                                                  memory_order_relaxed, memory_order_relaxed)) {
            break;
        }
        if (!found) {
            /* Somebody took it over, perhaps for this very key. */
            slot = rate_slot(limiter, key, &found);
            seen = atomic_load_explicit(&slot->full_ns, memory_order_relaxed);
        }
    }
    if (!found) {
        atomic_store_explicit(&slot->key, key, memory_order_release);
    }
    return true;
}

/* ---- numbers ---- */

/* The word that has the tag, but not `but`; NULL: none. */
static struct limiter_place *count_find(struct limiter_place *set, uint64_t tag,
                                        const struct limiter_place *but)
{
    for (size_t i = 0; i < WAYS; i++) {
        uint64_t word = atomic_load_explicit(&set[i].word, memory_order_acquire);
        if (&set[i] != but && word != 0 && word >> NUMBER_BITS == tag) {
            return &set[i];
        }
    }
    return NULL;
}

/* True: *ret_place is one that has the tag and was claimed here with the number 1. */
static bool count_claim(struct limiter_place *set, uint64_t tag, struct limiter_place **ret_place)
{
    for (size_t i = 0; i < WAYS; i++) {
        uint64_t free_word = 0;
        if (atomic_compare_exchange_strong_explicit(&set[i].word, &free_word,
                                                    tag << NUMBER_BITS | 1, memory_order_acq_rel,
                                                    memory_order_relaxed)) {
            *ret_place = &set[i];
            return true;
        }
    }
    return false;
}

enum raise { RAISE_GONE = 0, RAISE_DONE, RAISE_FULL };

static enum raise count_raise(struct limiter_place *place, uint64_t tag, uint32_t max)
{
    uint64_t word = atomic_load_explicit(&place->word, memory_order_relaxed);
    while (word != 0 && word >> NUMBER_BITS == tag) {
        if ((word & number_mask) >= max) {
            return RAISE_FULL;
        }
        if (atomic_compare_exchange_weak_explicit(&place->word, &word, word + 1,
                                                  memory_order_acq_rel, memory_order_relaxed)) {
            return RAISE_DONE;
        }
    }
    return RAISE_GONE;
}

struct limiter_place *limiter_enter(struct limiter *limiter, const struct limit *limit,
                                    uint64_t key)
{
    struct limiter_place *set = limiter->counts + (key % (COUNT_SLOTS / WAYS)) * WAYS;
    uint64_t tag = key >> NUMBER_BITS;
    for (unsigned attempt = 0;; attempt++) {
        struct limiter_place *place = count_find(set, tag, NULL);
        if (place != NULL) {
            switch (count_raise(place, tag, limit->at_once)) {
            case RAISE_DONE:
                return place;
            case RAISE_FULL:
                return NULL;
            case RAISE_GONE:
                continue;
            }
        }
        if (!count_claim(set, tag, &place)) {
            return NULL;
        }
        /* Another worker may have claimed a second one for the same key in this moment. */
        if (count_find(set, tag, place) == NULL || attempt >= CLAIMS_MAX) {
            return place;
        }
        limiter_leave(place);
    }
}

void limiter_leave(struct limiter_place *place)
{
    if (place == NULL) {
        return;
    }
    uint64_t word = atomic_load_explicit(&place->word, memory_order_relaxed);
    uint64_t less;
    do {
        ASSERT((word & number_mask) != 0);
        less = (word & number_mask) == 1 ? 0 : word - 1;
    } while (!atomic_compare_exchange_weak_explicit(&place->word, &word, less, memory_order_acq_rel,
                                                    memory_order_relaxed));
}
