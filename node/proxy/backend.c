/*
 * Backends and the building of their endpoint sets; see backend.h.
 */
#include "node/proxy/backend.h"

#include "node/base/mem.h"
#include "node/proxy/catalog.h"

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
    }
    atomic_init(&backend->set, set_alloc(0));
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
        return endpoint_new(addr, slot_count);
    }
    endpoint_ref(found->endpoint);
    return found->endpoint;
}

/* Tell which endpoints stop and which (again) start being offered. */
static void mark_changes(struct catalog *catalog, const struct set_entry *old, uint32_t old_count,
                         struct endpoint_set *set)
{
    for (uint32_t i = 0; i < set->usable_count; i++) {
        atomic_store_explicit(&set->entries[i].endpoint->gone, false, memory_order_release);
    }
    for (uint32_t i = set->usable_count; i < set->count; i++) {
        catalog_endpoint_gone(catalog, set->entries[i].endpoint);
    }
    struct set_entry *now = entries_sorted(set);
    for (uint32_t i = 0; i < old_count; i++) {
        struct endpoint *endpoint = old[i].endpoint;
        if (set->count == 0 ||
            bsearch(&endpoint->addr, now, set->count, sizeof(*now), compare_to_addr) == NULL) {
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
static struct endpoint_set *set_build(const struct backend *backend, const struct set_entry *sorted,
                                      uint32_t sorted_count, const struct proxy_endpoint *endpoints,
                                      size_t count)
{
    struct endpoint_set *set = set_alloc(count);
    bool *repeated = mark_repeated(endpoints, count);
    for (int unusable = 0; unusable <= 1; unusable++) {
        for (size_t i = 0; i < count; i++) {
            const struct proxy_endpoint *from = &endpoints[i];
            if (repeated[i] || (from->draining || from->weight == 0) != (unusable == 1)) {
                continue;
            }
            struct set_entry *entry = &set->entries[set->count++];
            entry->endpoint =
                entry_endpoint(sorted, sorted_count, &from->addr, backend->slot_count);
            entry->weight = from->weight;
            if (unusable == 0) {
                set->weight_total += from->weight;
                set->usable_count++;
            }
            entry->weight_end = set->weight_total;
        }
    }
    mem_free(repeated);
    return set;
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
    struct set_entry *sorted = entries_sorted(old);
    struct endpoint_set *set = set_build(backend, sorted, old->count, endpoints, count);
    set->balance = policy->balance;
    if (policy->balance == BALANCE_ROUND_ROBIN) {
        set_schedule(set);
    }
    atomic_store_explicit(&backend->set, set, memory_order_seq_cst);
    mark_changes(backend->catalog, sorted, old->count, set);
    qsbr_defer(&backend->catalog->qsbr, &old->retired, set_release);
    mem_free(sorted);
    return RC_OK;
}
