/*
 * Connections to endpoints: a pooled one, a new one, or one that won a race.
 */
#include "node/net/proxy_header.h"
#include "node/proxy/upool.h"
#include "node/proxy/upstream_int.h"

#include <errno.h>

/* The PROXY header, before the request; both leave in one piece. */
static void introduce(struct upstream *up, const struct exchange *exchange,
                      enum proxy_protocol_version version)
{
    char header[PROXY_HEADER_OUT_MAX + 1];
    struct addr local;
    exchange->client->ops->local(exchange->client, &local);
    size_t len = version == PROXY_PROTOCOL_V1
                     ? proxy_header_v1(header, &exchange->client_addr, &local)
                     : proxy_header_v2(header, &exchange->client_addr, &local);
    up->introduced = true;
    sock_write(&up->sock, header, len);
}

static struct upstream *adopt(struct worker *worker, struct endpoint *endpoint, int fd)
{
    struct upstream *up = pool_take(&worker->upstream_pool);
    memset(up, 0, sizeof(*up));
    sock_init(&up->sock, worker, &upstream_sock_ops, fd);
    upstream_begin(up, endpoint);
    return up;
}

struct upstream_side *upstream_adopt(struct exchange *exchange, struct endpoint *endpoint, int fd)
{
    struct upstream *up = adopt(exchange->worker, endpoint, fd);
    struct tls_target *target = upstream_target(exchange);
    if (target != NULL && !upstream_secure(up, target)) {
        upstream_close(up);
        return NULL;
    }
    return &up->side;
}

void upstream_spare(struct worker *worker, struct endpoint *endpoint, int fd)
{
    struct upstream *up = adopt(worker, endpoint, fd);
    if (worker->stopping || endpoint_is_gone(endpoint)) {
        upstream_close(up);
        return;
    }
    up->reused = true; /* when it is used, it may have been closed meanwhile */
    up->state = UPSTREAM_IDLE;
    upool_put(up);
}

/* The PROXY header goes in clear, before the handshake. */
static struct upstream *upstream_open(struct exchange *exchange, struct endpoint *endpoint,
                                      struct tls_target *target, int *ret_error)
{
    struct worker *worker = exchange->worker;
    struct upstream *up = pool_take(&worker->upstream_pool);
    memset(up, 0, sizeof(*up));
    int error = sock_connect(&up->sock, worker, &upstream_sock_ops, &endpoint->addr);
    if (error != 0) {
        pool_put(&worker->upstream_pool, up);
        *ret_error = error;
        return NULL;
    }
    upstream_begin(up, endpoint);
    enum proxy_protocol_version version =
        backend_endpoints(exchange->backend)->policy.proxy_protocol;
    if (UNLIKELY(version != PROXY_PROTOCOL_OFF)) {
        introduce(up, exchange, version);
    }
    if (target != NULL && !upstream_secure(up, target)) {
        upstream_close(up);
        *ret_error = ENOMEM;
        return NULL;
    }
    return up;
}

struct upstream_side *upstream_get(struct exchange *exchange, struct endpoint *endpoint,
                                   int *ret_error)
{
    struct worker *worker = exchange->worker;
    struct upstream *up = NULL;
    worker_online(worker);
    struct tls_target *target = upstream_target(exchange);
    bool introduced =
        backend_endpoints(exchange->backend)->policy.proxy_protocol != PROXY_PROTOCOL_OFF;
    if (!exchange->fresh_only && LIKELY(!introduced)) {
        up = upool_take(worker, endpoint, target, exchange->idempotent);
    }
    exchange->fresh_only = false;
    if (up == NULL) {
        up = upstream_open(exchange, endpoint, target, ret_error);
    } else {
        up->state = UPSTREAM_BUSY;
        stat_add(&worker->stats, STAT_UPSTREAM_REUSED, 1);
    }
    return up != NULL ? &up->side : NULL;
}

bool upstream_is_connecting(const struct upstream_side *side)
{
    const struct upstream *up = CONTAINER_OF(unconst(side), struct upstream, side);
    return up->sock.connecting && up->sock.sent == 0;
}

bool upstream_is_ready(const struct upstream_side *side)
{
    const struct upstream *up = CONTAINER_OF(unconst(side), struct upstream, side);
    return !up->sock.connecting;
}

bool upstream_is_reused(const struct upstream_side *side)
{
    const struct upstream *up = CONTAINER_OF(unconst(side), struct upstream, side);
    return up->reused;
}
