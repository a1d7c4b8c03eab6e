/*
 * Live state of endpoints; see endpoint.h.
 */
#include "node/proxy/endpoint.h"

#include "node/base/hash.h"
#include "node/base/mem.h"

/* Family, address and port; scopes are of one machine. IPv6 counts whole. */
static uint64_t identity_of(const struct addr *addr)
{
    uint8_t bytes[1 + 16 + 2] = {addr->sa.sa_family == AF_INET6 ? 6 : 4};
    if (addr->sa.sa_family == AF_INET6) {
        memcpy(bytes + 1, &addr->in6.sin6_addr, 16);
    } else {
        memcpy(bytes + 1, &addr->in4.sin_addr, 4);
    }
    uint16_t port = addr_port(addr);
    bytes[17] = (uint8_t)(port >> 8);
    bytes[18] = (uint8_t)port;
    return hash_sip64(UINT64_C(0x736b65696e), UINT64_C(0x656e64706f696e74), bytes, sizeof(bytes));
}

struct endpoint *endpoint_new(const struct addr *addr, size_t slot_count)
{
    struct endpoint *endpoint =
        mem_lines(sizeof(struct endpoint) + slot_count * sizeof(struct endpoint_slot));
    endpoint->addr = *addr;
    (void)addr_format(addr, endpoint->text);
    endpoint->identity = identity_of(addr);
    refcnt_init(&endpoint->refs);
    endpoint->slot_count = slot_count;
    atomic_init(&endpoint->idle_max, PROXY_POOL_DEFAULT);
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
        ASSERT(endpoint->slots[i].idle == NULL && endpoint->slots[i].tls == NULL);
    }
    mem_free(endpoint);
}

void endpoint_begin(struct endpoint *endpoint)
{
    (void)atomic_fetch_add_explicit(&endpoint->in_flight, 1, memory_order_relaxed);
}

bool endpoint_begin_within(struct endpoint *endpoint, uint32_t limit)
{
    if (limit == 0) {
        endpoint_begin(endpoint);
        return true;
    }
    uint32_t now = atomic_load_explicit(&endpoint->in_flight, memory_order_seq_cst);
    while (now < limit) {
        if (atomic_compare_exchange_weak_explicit(&endpoint->in_flight, &now, now + 1,
                                                  memory_order_seq_cst, memory_order_seq_cst)) {
            return true;
        }
    }
    return false;
}

void endpoint_end(struct endpoint *endpoint)
{
    uint32_t old = atomic_fetch_sub_explicit(&endpoint->in_flight, 1, memory_order_seq_cst);
    ASSERT(old != 0);
}

static void set_flag(struct endpoint *endpoint, uint32_t flag)
{
    (void)atomic_fetch_or_explicit(&endpoint->flags, flag, memory_order_relaxed);
}

static void clear_flag(struct endpoint *endpoint, uint32_t flag)
{
    if ((endpoint_flags(endpoint) & flag) != 0) {
        (void)atomic_fetch_and_explicit(&endpoint->flags, ~flag, memory_order_relaxed);
    }
}

void endpoint_connect_failed(struct endpoint *endpoint, uint64_t now_ms)
{
    (void)atomic_fetch_add_explicit(&endpoint->connect_failures, 1, memory_order_relaxed);
    atomic_store_explicit(&endpoint->skip_until_ms, now_ms + ENDPOINT_SKIP_MS,
                          memory_order_relaxed);
    set_flag(endpoint, ENDPOINT_SKIPPED);
}

void endpoint_connected(struct endpoint *endpoint)
{
    clear_flag(endpoint, ENDPOINT_SKIPPED);
}

/* An eighth of the new one: a few connects forget an outlier. Lost updates do not matter. */
void endpoint_connect_took(struct endpoint *endpoint, uint64_t took_us)
{
    int64_t now = (int64_t)MIN(took_us, (uint64_t)60 * 1000 * 1000);
    int64_t old = atomic_load_explicit(&endpoint->connect_us, memory_order_relaxed);
    int64_t next = old == 0 ? now : old + (now - old) / 8;
    atomic_store_explicit(&endpoint->connect_us, (uint32_t)MAX(next, (int64_t)1),
                          memory_order_relaxed);
}

void endpoint_ramp(struct endpoint *endpoint, uint64_t now_ms)
{
    atomic_store_explicit(&endpoint->ramp_from_ms, now_ms, memory_order_relaxed);
    set_flag(endpoint, ENDPOINT_RAMPING);
}

uint32_t endpoint_share(struct endpoint *endpoint, uint32_t slow_start_ms, uint64_t now_ms)
{
    enum { FIRST = ENDPOINT_SHARE_FULL / 10 };
    uint64_t from_ms = atomic_load_explicit(&endpoint->ramp_from_ms, memory_order_relaxed);
    uint64_t past_ms = now_ms > from_ms ? now_ms - from_ms : 0;
    if (past_ms >= slow_start_ms) {
        clear_flag(endpoint, ENDPOINT_RAMPING);
        return ENDPOINT_SHARE_FULL;
    }
    return FIRST + (uint32_t)((ENDPOINT_SHARE_FULL - FIRST) * past_ms / slow_start_ms);
}

void endpoint_set_token(struct endpoint *endpoint, const uint8_t token[PROXY_TOKEN_BYTES])
{
    uint64_t head;
    uint32_t tail;
    memcpy(&head, token, sizeof(head));
    memcpy(&tail, token + sizeof(head), sizeof(tail));
    atomic_store_explicit(&endpoint->token_head, head, memory_order_relaxed);
    atomic_store_explicit(&endpoint->token_tail, tail, memory_order_relaxed);
}

void endpoint_token(const struct endpoint *endpoint, uint8_t ret_token[PROXY_TOKEN_BYTES])
{
    uint64_t head = atomic_load_explicit(&endpoint->token_head, memory_order_relaxed);
    uint32_t tail = atomic_load_explicit(&endpoint->token_tail, memory_order_relaxed);
    memcpy(ret_token, &head, sizeof(head));
    memcpy(ret_token + sizeof(head), &tail, sizeof(tail));
}
