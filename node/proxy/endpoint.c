/*
 * Live state of endpoints; see endpoint.h.
 */
#include "node/proxy/endpoint.h"

#include "node/base/mem.h"

struct endpoint *endpoint_new(const struct addr *addr, size_t slot_count)
{
    struct endpoint *endpoint =
        mem_lines(sizeof(struct endpoint) + slot_count * sizeof(struct endpoint_slot));
    endpoint->addr = *addr;
    (void)addr_format(addr, endpoint->text);
    refcnt_init(&endpoint->refs);
    endpoint->slot_count = slot_count;
    for (size_t i = 0; i < slot_count; i++) {
        endpoint->slots[i].idle_ms = ENDPOINT_IDLE_MS;
    }
    return endpoint;
}

void endpoint_ref(struct endpoint *endpoint)
{
    refcnt_get(&endpoint->refs);
}

void endpoint_unref(struct endpoint *endpoint)
{
    if (endpoint == NULL || !refcnt_put(&endpoint->refs)) {
        return;
    }
    for (size_t i = 0; i < endpoint->slot_count; i++) {
        ASSERT(endpoint->slots[i].idle == NULL);
    }
    mem_free(endpoint);
}

void endpoint_begin(struct endpoint *endpoint)
{
    (void)atomic_fetch_add_explicit(&endpoint->in_flight, 1, memory_order_relaxed);
}

void endpoint_end(struct endpoint *endpoint)
{
    uint32_t old = atomic_fetch_sub_explicit(&endpoint->in_flight, 1, memory_order_relaxed);
    ASSERT(old != 0);
}

void endpoint_connect_failed(struct endpoint *endpoint, uint64_t now_ms)
{
    atomic_store_explicit(&endpoint->skip_until_ms, now_ms + ENDPOINT_SKIP_MS,
                          memory_order_relaxed);
}

void endpoint_connected(struct endpoint *endpoint)
{
    if (atomic_load_explicit(&endpoint->skip_until_ms, memory_order_relaxed) != 0) {
        atomic_store_explicit(&endpoint->skip_until_ms, 0, memory_order_relaxed);
    }
}
