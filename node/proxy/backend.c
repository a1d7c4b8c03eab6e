/*
 * Backends and the building of their endpoint sets; see backend.h.
 */
#include "node/proxy/backend.h"

#include "node/base/mem.h"
#include "node/base/timesrc.h"
#include "node/proxy/catalog.h"
#include "node/proxy/queue.h"
#include "node/tls/tls_policy.h"

#include <utlist.h>

enum { SCHEDULE_MAX = 16384 }; /* turns before a round repeats; larger weights are rounded */

static struct endpoint_set *set_alloc(size_t count)
{
    return mem_new(sizeof(struct endpoint_set) + count * sizeof(struct set_entry));
}

static void set_release(struct qsbr_node *node)
{
    struct endpoint_set *set = CONTAINER_OF(node, struct endpoint_set, retired);
    for (uint32_t i = 0; i < set->count; i++) {
        endpoint_unref(set->entries[i].endpoint);
    }
    mem_free(unconst(set->policy.hash_name));
    tls_target_unref(set->policy.tls);
    mem_free(set->identities);
    mem_free(set->tokens);
    mem_free(set->schedule);
    mem_free(set);
}

struct backend *backend_make(struct catalog *catalog, const char *name)
{
    size_t slots = catalog->slot_count;
    struct backend *backend = mem_lines(sizeof(*backend) + slots * sizeof(struct backend_slot));
    backend->catalog = catalog;
    backend->name = mem_strdup(name);
    refcnt_init(&backend->refs);
    backend->slot_count = slots;
    /* Workers begin at different places, so that they do not walk in step. */
    for (size_t i = 0; i < slots; i++) {
        backend->slots[i].turn = i * UINT64_C(0x9e3779b97f4a7c15) >> 32;
        backend->slots[i].backend = backend;
        backend->slots[i].call_mail.kind = WORKER_MAIL_PLACE;
    }
    int rc = pthread_mutex_init(&backend->lock, NULL);
    ASSERT(rc == 0);
    struct endpoint_set *set = set_alloc(0);
    set->backend = backend;
    atomic_init(&backend->set, set);
    DL_APPEND(catalog->backends, backend);
    return backend;
}

void backend_ref(struct backend *backend)
{
    refcnt_get(&backend->refs);
}

void backend_destroy(struct backend *backend)
{
    struct endpoint_set *set = atomic_load_explicit(&backend->set, memory_order_relaxed);
    for (uint32_t i = 0; i < set->count; i++) {
        catalog_endpoint_gone(backend->catalog, set->entries[i].endpoint);
    }
    set_release(&set->retired);
    DL_DELETE(backend->catalog->backends, backend);
    ASSERT(backend->queue.waiting == NULL);
    (void)pthread_mutex_destroy(&backend->lock); /* nobody holds it */
    catalog_metrics_forget_backend(backend->catalog, backend);
    for (size_t i = 0; i < backend->slot_count; i++) {
        mem_free(atomic_load_explicit(&backend->slots[i].times, memory_order_relaxed));
    }
    mem_free(backend->name);
    mem_free(backend);
}

static void backend_release(struct qsbr_node *node)
{
    backend_destroy(CONTAINER_OF(node, struct backend, retired));
}

void backend_put(struct backend *backend)
{
    if (backend != NULL && refcnt_put(&backend->refs)) {
        qsbr_post_mt(&backend->catalog->qsbr, &backend->retired, backend_release);
    }
}

static int compare_entries(const void *left, const void *right)
{
    const struct set_entry *a = left;
    const struct set_entry *b = right;
    return addr_compare(&a->endpoint->addr, &b->endpoint->addr);
}

/* One turn of a round: endpoint `idx` is due at `at`, turns in the order of their time. */
struct turn {
    double at;
    uint16_t idx;
};

static int compare_turns(const void *left, const void *right)
{
    const struct turn *a = left;
    const struct turn *b = right;
    if (a->at != b->at) {
        return a->at < b->at ? -1 : 1;
    }
    return (int)a->idx - (int)b->idx;
}

static uint32_t gcd(uint32_t a, uint32_t b)
{
    while (b != 0) {
        uint32_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Spread each endpoint's turns evenly over the round: its j-th of w turns is due at (j + 0.5) / w.
 */
static void set_schedule(struct endpoint_set *set)
{
    uint32_t divisor = 0;
    for (uint32_t i = 0; i < set->usable_count; i++) {
        divisor = gcd(set->entries[i].weight, divisor);
    }
    if (divisor == 0) {
        return;
    }
    double scale = 1.0 / divisor;
    if (set->weight_total / divisor > SCHEDULE_MAX) {
        scale = (double)SCHEDULE_MAX / set->weight_total;
    }
    size_t cap = (size_t)SCHEDULE_MAX + set->usable_count;
    cap = MIN(cap, (size_t)(set->weight_total / divisor) + set->usable_count);
    struct turn *turns = mem_array(cap, sizeof(*turns));
    uint32_t len = 0;
    for (uint32_t i = 0; i < set->usable_count; i++) {
        uint32_t share = (uint32_t)(set->entries[i].weight * scale + 0.5);
        share = MAX(share, 1U);
        for (uint32_t j = 0; j < share && len < cap; j++) {
            turns[len++] = (struct turn){.at = (j + 0.5) / share, .idx = (uint16_t)i};
        }
    }
    qsort(turns, len, sizeof(*turns), compare_turns);
    set->schedule = mem_array(len, sizeof(*set->schedule));
    for (uint32_t i = 0; i < len; i++) {
        set->schedule[i] = turns[i].idx;
    }
    set->schedule_len = len;
    mem_free(turns);
}

/* Endpoints of `old` in order of their address, to be found by bsearch; count in *ret_count. */
static struct set_entry *entries_sorted(const struct endpoint_set *old)
{
    struct set_entry *sorted = mem_array(old->count, sizeof(*sorted));
    if (old->count != 0) {
        memcpy(sorted, old->entries, old->count * sizeof(*sorted));
        qsort(sorted, old->count, sizeof(*sorted), compare_entries);
    }
    return sorted;
}

static int compare_to_addr(const void *key, const void *elem)
{
    const struct addr *addr = key;
    const struct set_entry *entry = elem;
    return addr_compare(addr, &entry->endpoint->addr);
}

/* The endpoint that has this address already, with a new reference, or a fresh one. */
static struct endpoint *entry_endpoint(const struct set_entry *sorted, uint32_t count,
                                       const struct addr *addr, size_t slot_count)
{
    const struct set_entry *found =
        count == 0 ? NULL : bsearch(addr, sorted, count, sizeof(*sorted), compare_to_addr);
    if (found == NULL) {
        struct endpoint *endpoint = endpoint_new(addr, slot_count);
        if (count != 0) {
            endpoint_ramp(endpoint, time_mono_ms()); /* it joins others, who are warm */
        }
        return endpoint;
    }
    endpoint_ref(found->endpoint);
    return found->endpoint;
}

/* ---- tokens of sticky cookies ---- */

static uint32_t token_slot(const uint8_t *token, uint32_t mask)
{
    uint32_t bits;
    memcpy(&bits, token, sizeof(bits));
    return bits & mask;
}

static bool has_token(const uint8_t *token)
{
    static const uint8_t none[PROXY_TOKEN_BYTES];
    return memcmp(token, none, sizeof(none)) != 0;
}

static void token_add(struct endpoint_set *set, const uint8_t *token, uint32_t entry)
{
    if (!has_token(token)) {
        return;
    }
    uint32_t at = token_slot(token, set->token_mask);
    while (set->tokens[at].entry != 0) {
        at = (at + 1) & set->token_mask;
    }
    memcpy(set->tokens[at].token, token, PROXY_TOKEN_BYTES);
    set->tokens[at].entry = (uint16_t)(entry + 1);
}

/* from[i] is what entry i was made of. At most half of the table is used: two tokens each. */
static void set_tokens(struct endpoint_set *set, const struct proxy_endpoint *const *from)
{
    bool any = false;
    for (uint32_t i = 0; i < set->count; i++) {
        any = any || has_token(from[i]->token);
    }
    if (!any) {
        return;
    }
    uint32_t size = 4;
    while (size < set->count * 4) {
        size *= 2;
    }
    set->token_mask = size - 1;
    set->tokens = mem_array(size, sizeof(*set->tokens));
    for (uint32_t i = 0; i < set->count; i++) {
        token_add(set, from[i]->token, i);
        token_add(set, from[i]->old_token, i);
        endpoint_set_token(set->entries[i].endpoint, from[i]->token);
    }
}

struct endpoint *set_find_token(const struct endpoint_set *set,
                                const uint8_t token[PROXY_TOKEN_BYTES])
{
    if (set->tokens == NULL) {
        return NULL;
    }
    uint32_t at = token_slot(token, set->token_mask);
    while (set->tokens[at].entry != 0) {
        if (memcmp(set->tokens[at].token, token, PROXY_TOKEN_BYTES) == 0) {
            return set->entries[set->tokens[at].entry - 1].endpoint;
        }
        at = (at + 1) & set->token_mask;
    }
    return NULL;
}

/* Tell which endpoints stop and which (again) start being offered. */
static void mark_changes(struct catalog *catalog, const struct endpoint_set *old,
                         const struct endpoint_set *set)
{
    for (uint32_t i = 0; i < set->usable_count; i++) {
        atomic_store_explicit(&set->entries[i].endpoint->gone, false, memory_order_release);
    }
    for (uint32_t i = set->usable_count; i < set->count; i++) {
        catalog_endpoint_gone(catalog, set->entries[i].endpoint);
    }
    struct set_entry *now = entries_sorted(set);
    for (uint32_t i = 0; i < old->count; i++) {
        struct endpoint *endpoint = old->entries[i].endpoint;
        if (set->count == 0 ||
            bsearch(&endpoint->addr, now, set->count, sizeof(*now), compare_to_addr) == NULL) {
            (void)atomic_fetch_or_explicit(&endpoint->flags, ENDPOINT_REMOVED,
                                           memory_order_relaxed);
            catalog_endpoint_gone(catalog, endpoint);
        }
    }
    mem_free(now);
}

static int compare_given(const void *left, const void *right)
{
    const struct proxy_endpoint *a = *(const struct proxy_endpoint *const *)left;
    const struct proxy_endpoint *b = *(const struct proxy_endpoint *const *)right;
    int order = addr_compare(&a->addr, &b->addr);
    if (order != 0) {
        return order;
    }
    return a < b ? -1 : a > b; /* position in the array */
}

/* Which entries repeat an address given before them; release with mem_free. */
static bool *mark_repeated(const struct proxy_endpoint *endpoints, size_t count)
{
    bool *repeated = mem_array(count, sizeof(*repeated));
    const struct proxy_endpoint **sorted = mem_array(count, sizeof(*sorted));
    for (size_t i = 0; i < count; i++) {
        sorted[i] = &endpoints[i];
    }
    if (count != 0) {
        qsort(sorted, count, sizeof(*sorted), compare_given);
    }
    for (size_t i = 1; i < count; i++) {
        repeated[sorted[i] - endpoints] = addr_compare(&sorted[i]->addr, &sorted[i - 1]->addr) == 0;
    }
    mem_free(sorted);
    return repeated;
}

/* One entry for each address: the usable ones first. */
static void set_fill(struct endpoint_set *set, const struct endpoint_set *old,
                     const struct proxy_endpoint *endpoints, size_t count)
{
    struct set_entry *sorted = entries_sorted(old);
    bool *repeated = mark_repeated(endpoints, count);
    const struct proxy_endpoint **made_of = mem_array(count, sizeof(*made_of));
    for (int unusable = 0; unusable <= 1; unusable++) {
        for (size_t i = 0; i < count; i++) {
            const struct proxy_endpoint *from = &endpoints[i];
            if (repeated[i] || (from->draining || from->weight == 0) != (unusable == 1)) {
                continue;
            }
            made_of[set->count] = from;
            struct set_entry *entry = &set->entries[set->count++];
            entry->endpoint =
                entry_endpoint(sorted, old->count, &from->addr, set->backend->slot_count);
            entry->weight = from->weight;
            if (unusable == 0) {
                set->weight_total += from->weight;
                set->usable_count++;
            }
            entry->weight_end = set->weight_total;
        }
    }
    set_tokens(set, made_of);
    mem_free(made_of);
    mem_free(repeated);
    mem_free(sorted);
}

/* What the policy wants to have at hand for picks, and what endpoints are told of it. */
static void set_policy(struct endpoint_set *set, const struct proxy_backend *policy)
{
    set->policy = *policy;
    set->policy.hash_name = policy->hash_name == NULL ? NULL : mem_strdup(policy->hash_name);
    if (policy->tls != NULL) {
        tls_target_ref(policy->tls);
    }
    struct proxy_passive *passive = &set->policy.passive;
    passive->window_ms = MAX(passive->window_ms, 1U);
    passive->eject_ms = MAX(passive->eject_ms, 1U);
    set->even = true;
    for (uint32_t i = 0; i < set->usable_count; i++) {
        set->even = set->even && set->entries[i].weight == set->entries[0].weight;
    }
    for (uint32_t i = 0; i < set->count; i++) {
        struct endpoint *endpoint = set->entries[i].endpoint;
        atomic_store_explicit(&endpoint->idle_max, policy->idle_per_endpoint_max,
                              memory_order_relaxed);
        atomic_store_explicit(&endpoint->idle_ms, policy->idle_ms, memory_order_relaxed);
        atomic_store_explicit(&endpoint->requests_max, policy->requests_per_connection_max,
                              memory_order_relaxed);
    }
    if (policy->balance == BALANCE_ROUND_ROBIN) {
        set_schedule(set);
    } else if (policy->balance == BALANCE_HASH) {
        set->identities = mem_array(set->usable_count, sizeof(*set->identities));
        for (uint32_t i = 0; i < set->usable_count; i++) {
            set->identities[i] = set->entries[i].endpoint->identity;
        }
    }
}

int backend_replace(struct backend *backend, const struct proxy_backend *policy,
                    const struct proxy_endpoint *endpoints, size_t count, struct err_info *err)
{
    if (count > PROXY_ENDPOINTS_MAX) {
        return err_set(err, RC_TOO_BIG, "backend %s: %zu endpoints is above %d", backend->name,
                       count, PROXY_ENDPOINTS_MAX);
    }
    for (size_t i = 0; i < count; i++) {
        if (endpoints[i].weight > PROXY_WEIGHT_MAX) {
            return err_set(err, RC_TOO_BIG, "backend %s: weight %u is above %d", backend->name,
                           endpoints[i].weight, PROXY_WEIGHT_MAX);
        }
    }
    struct endpoint_set *old = atomic_load_explicit(&backend->set, memory_order_relaxed);
    struct endpoint_set *set = set_alloc(count);
    set->backend = backend;
    set_fill(set, old, endpoints, count);
    set_policy(set, policy);
    atomic_store_explicit(&backend->set, set, memory_order_seq_cst);
    backend_recount(backend);
    mark_changes(backend->catalog, old, set);
    place_call_all_mt(backend);
    qsbr_defer(&backend->catalog->qsbr, &old->retired, set_release);
    return RC_OK;
}

struct backend_times *backend_times_make(struct backend *backend, size_t idx)
{
    struct backend_times *times = mem_lines(sizeof(*times));
    atomic_store_explicit(&backend->slots[idx].times, times, memory_order_release);
    return times;
}
