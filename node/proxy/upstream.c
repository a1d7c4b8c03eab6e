/*
 * HTTP/1.1 to endpoints: requests out, tunnels, time, the end; see upstream.h for the states.
 * Connections are found or made in upstream_open.c, responses read in upstream_in.c.
 */
#include "node/proxy/upstream.h"

#include "node/base/mem.h"
#include "node/proxy/race.h"
#include "node/proxy/sock_tls.h"
#include "node/proxy/upool.h"
#include "node/proxy/upstream_int.h"
#include "node/proxy/utls.h"

#include <errno.h>
#include <utlist.h>

static struct upstream *of_sock(struct sock *sock)
{
    return CONTAINER_OF(sock, struct upstream, sock);
}

static struct upstream *of_side(struct upstream_side *side)
{
    return CONTAINER_OF(side, struct upstream, side);
}

static struct worker *worker_of(const struct upstream *up)
{
    return up->sock.worker;
}

/* The time limit for what it is doing now. */
void upstream_touch(struct upstream *up)
{
    const struct exchange *exchange = up->side.exchange;
    if (exchange == NULL || up->state != UPSTREAM_BUSY) {
        return;
    }
    if (UNLIKELY(up->sock.connecting) && up->timer.deadline_ms != 0) {
        return; /* connect and handshake have one limit, whatever is staged meanwhile */
    }
    uint64_t delay_ms =
        up->sock.connecting ? exchange->timeouts.connect_ms : exchange->timeouts.server_ms;
    if (UNLIKELY(up->try_until_ms != 0) && !up->head_done) {
        uint64_t now_ms = worker_now(worker_of(up));
        delay_ms = now_ms < up->try_until_ms ? MIN(delay_ms, up->try_until_ms - now_ms) : delay_ms;
    }
    worker_deadline(worker_of(up), &up->timer, delay_ms);
}

/* A try that takes too long is given up, unless it is the client who keeps it waiting. */
static bool try_is_over(const struct upstream *up)
{
    return up->try_until_ms != 0 && !up->head_done && up->request_done &&
           worker_now(worker_of(up)) >= up->try_until_ms;
}

void upstream_close(struct upstream *up)
{
    if (up->state == UPSTREAM_CLOSED) {
        return;
    }
    struct worker *worker = worker_of(up);
    if (up->state == UPSTREAM_IDLE) {
        upool_remove(up);
    }
    up->state = UPSTREAM_CLOSED;
    DL_DELETE(worker->upstreams, up);
    wheel_clear(&worker->wheel, &up->timer);
    counter_set(&worker->stats.upstreams, counter_read(&worker->stats.upstreams) - 1);
    if (up->tls != NULL && up->request_done && sock_tls_is_open(&up->sock)) {
        sock_end(&up->sock); /* RFC 8446 6.1; a request that was cut off does not end so */
        sock_push(&up->sock);
    }
    sock_close(&up->sock);
}

static void on_closed(struct sock *sock)
{
    struct upstream *up = of_sock(sock);
    struct worker *worker = worker_of(up);
    ASSERT(up->state == UPSTREAM_CLOSED && up->side.exchange == NULL);
    chunkq_clear(&worker->chunks, &up->in);
    upstream_end_splice(up);
    buf_deinit(&up->trailers);
    if (UNLIKELY(up->tls != NULL)) {
        utls_put(worker, up->tls);
    }
    endpoint_unref(up->endpoint);
    pool_put(&worker->upstream_pool, up);
}

/* The connection is of no use any more; its exchange, if any, learns why. */
void upstream_lose(struct upstream *up, enum lost lost)
{
    struct exchange *exchange = up->side.exchange;
    bool reused = up->reused;
    bool any_byte = up->any_byte;
    if (exchange != NULL) {
        exchange_upstream_lost(exchange, lost, reused, any_byte);
    }
    upstream_close(up);
}

/* ---- the exchange's side ---- */

static void side_request(struct upstream_side *side, const struct upstream_request *request)
{
    struct upstream *up = of_side(side);
    up->chunked = request->framing == H1_BODY_CHUNKED;
    up->method = request->method;
    up->upgrade = request->upgrade;
    up->request_done = up->head_done = up->any_byte = up->held = false;
    up->interims = 0;
    up->keep = true;
    up->scan = (struct h1_scan){0};
    up->sent_before = sock_sent(&up->sock);
    up->requests++;
    uint32_t per_try_ms = side->exchange->per_try_ms;
    up->try_until_ms = per_try_ms == 0 ? 0 : worker_now(worker_of(up)) + per_try_ms;
    if (!request->head_is_new || !sock_write_chunk(&up->sock, request->head)) {
        sock_write(&up->sock, request->head->bytes, request->head_len);
    }
    upstream_touch(up);
}

static void write_data(struct upstream *up, const char *bytes, size_t len)
{
    if (!up->chunked || up->state == UPSTREAM_TUNNEL) {
        sock_write(&up->sock, bytes, len);
        return;
    }
    char head[H1_CHUNK_HEAD_MAX];
    sock_write(&up->sock, head, h1_chunk_head(head, len));
    sock_write(&up->sock, bytes, len);
    sock_write(&up->sock, "\r\n", 2);
}

static void side_data(struct upstream_side *side, const char *bytes, size_t len)
{
    struct upstream *up = of_side(side);
    if (len != 0) {
        write_data(up, bytes, len);
        upstream_touch(up);
    }
}

static void side_end(struct upstream_side *side, const char *trailers, size_t len)
{
    struct upstream *up = of_side(side);
    up->request_done = true;
    if (up->chunked) {
        sock_write(&up->sock, "0\r\n", 3);
        sock_write(&up->sock, trailers, len);
        sock_write(&up->sock, "\r\n", 2);
        upstream_touch(up);
    } /* else nothing has been written since the last time */
}

static void side_hold(struct upstream_side *side, bool hold)
{
    struct upstream *up = of_side(side);
    up->held = hold;
    if (hold) {
        sock_pause(&up->sock);
    } else {
        upstream_touch(up);
        sock_resume(&up->sock);
        if (up->pipe != NULL) {
            upstream_splice(up); /* what is in the pipe; nobody else would tell of it */
        }
    }
}

static void side_finish(struct upstream_side *side)
{
    struct upstream *up = of_side(side);
    up->want_finish = true;
    sock_want_drain(&up->sock);
}

static uint64_t side_sent(const struct upstream_side *side)
{
    const struct upstream *up = CONTAINER_OF(unconst(side), struct upstream, side);
    return sock_sent(&up->sock) - up->sent_before;
}

static void side_abandon(struct upstream_side *side)
{
    upstream_close(of_side(side));
}

static void side_release(struct upstream_side *side)
{
    struct upstream *up = of_side(side);
    if (up->state == UPSTREAM_TUNNEL) {
        /* What the client sent last goes out before the end, within the time of one connect. */
        sock_want_drain(&up->sock);
        worker_deadline(worker_of(up), &up->timer, UPSTREAM_FLUSH_MS);
        return;
    }
    uint32_t requests_max = atomic_load_explicit(&up->endpoint->requests_max, memory_order_relaxed);
    bool fit = (requests_max == 0 || up->requests < requests_max) && up->keep && up->head_done &&
               up->request_done && !up->eof && !up->sock.write_dead &&
               sock_waiting(&up->sock) == 0 && up->in.len == 0 && !worker_of(up)->stopping &&
               !endpoint_is_gone(up->endpoint) && !up->introduced;
    if (!fit) {
        upstream_close(up);
        return;
    }
    if (up->held) {
        up->held = false;
        sock_resume(&up->sock);
    }
    up->reused = true;
    up->state = UPSTREAM_IDLE;
    upool_put(up);
}

static const struct upstream_ops side_ops = {
    .request = side_request,
    .data = side_data,
    .end = side_end,
    .hold = side_hold,
    .finish = side_finish,
    .sent = side_sent,
    .release = side_release,
    .abandon = side_abandon,
};

static void on_data(struct sock *sock, const char *bytes, size_t len)
{
    struct upstream *up = of_sock(sock);
    if (up->state == UPSTREAM_BUSY) {
        upstream_input(up, bytes, len);
    } else if (up->state == UPSTREAM_TUNNEL && up->side.exchange != NULL) {
        exchange_response_data(up->side.exchange, bytes, len);
    } else if (up->state == UPSTREAM_IDLE) {
        upstream_close(up); /* a response to nothing */
    }
}

static void on_eof(struct sock *sock)
{
    struct upstream *up = of_sock(sock);
    up->eof = true;
    switch (up->state) {
    case UPSTREAM_IDLE:
        upool_learn_closed(up);
        upstream_close(up);
        return;
    case UPSTREAM_TUNNEL:
        if (up->side.exchange != NULL) {
            exchange_upstream_finished(up->side.exchange);
        }
        return;
    case UPSTREAM_BUSY:
        if (up->head_done && h1_body_end(&up->body) == RC_OK) {
            upstream_response_done(up, 0);
            return;
        }
        upstream_lose(up, LOST_CLOSED);
        return;
    case UPSTREAM_CLOSED:
        return;
    }
}

static void on_error(struct sock *sock, int error)
{
    struct upstream *up = of_sock(sock);
    switch (up->state) {
    case UPSTREAM_IDLE:
        upool_learn_closed(up);
        upstream_close(up);
        return;
    case UPSTREAM_BUSY:
        if (up->sock.write_dead && !up->sock.connecting && !up->eof && !up->write_told &&
            error != EPROTO) {
            /* It takes no more of the request, but may have answered before it closed (413, 401):
             * reading tells. Not a second time, though. */
            up->write_told = true;
            sock_resume(&up->sock);
            return;
        }
        upstream_lose(up, upstream_lost_by(up));
        return;
    case UPSTREAM_TUNNEL:
        upstream_lose(up, LOST_CLOSED);
        return;
    case UPSTREAM_CLOSED:
        return;
    }
}

static void on_connected(struct sock *sock)
{
    struct upstream *up = of_sock(sock);
    endpoint_connected(up->endpoint);
    if (up->tls != NULL) {
        upstream_secured(up);
    }
    if (up->side.exchange != NULL) {
        const struct exchange *exchange = up->side.exchange;
        exchange_note_connected(up->side.exchange);
        endpoint_connect_took(up->endpoint, (exchange->connected_ns - exchange->sent_ns) / 1000);
        race_forget(up->side.exchange);
    }
    wheel_clear(&worker_of(up)->wheel, &up->timer);
    upstream_touch(up);
}

static void on_full(struct sock *sock)
{
    struct upstream *up = of_sock(sock);
    if (up->side.exchange != NULL) {
        exchange_upstream_full(up->side.exchange, true);
    }
}

static void on_drain(struct sock *sock)
{
    struct upstream *up = of_sock(sock);
    upstream_touch(up);
    if (up->state == UPSTREAM_TUNNEL) {
        if (up->want_finish) {
            sock_finish(sock);
        }
        if (up->side.exchange == NULL) {
            upstream_close(up);
            return;
        }
    }
    if (up->side.exchange != NULL) {
        exchange_upstream_full(up->side.exchange, false);
    }
}

static void on_readable(struct sock *sock)
{
    upstream_splice(of_sock(sock));
}

const struct sock_ops upstream_sock_ops = {
    .on_readable = on_readable,
    .on_data = on_data,
    .on_eof = on_eof,
    .on_error = on_error,
    .on_connected = on_connected,
    .on_full = on_full,
    .on_drain = on_drain,
    .on_closed = on_closed,
};

void upstream_timeout(struct upstream *up)
{
    if (up->state == UPSTREAM_IDLE) {
        upool_learn_unused(up);
        upstream_close(up);
        return;
    }
    if (up->side.exchange == NULL) {
        upstream_close(up); /* a tunnel that could not flush */
        return;
    }
    if (up->state != UPSTREAM_BUSY) {
        return; /* tunnels are timed by the client's side */
    }
    if (up->sock.connecting) {
        upstream_lose(up, LOST_CONNECT_TIMEOUT);
        return;
    }
    if (try_is_over(up)) {
        upstream_lose(up, LOST_TIMEOUT);
        return;
    }
    bool waits_for_client =
        up->held || (!up->request_done && !up->head_done && sock_waiting(&up->sock) == 0);
    if (waits_for_client || (sock_waiting(&up->sock) != 0 && sock_progressed(&up->sock))) {
        upstream_touch(up);
        return;
    }
    upstream_lose(up, LOST_TIMEOUT);
}

void upstream_begin(struct upstream *up, struct endpoint *endpoint)
{
    struct worker *worker = worker_of(up);
    endpoint_ref(endpoint);
    up->endpoint = endpoint;
    up->side.ops = &side_ops;
    up->timer.kind = WHEEL_UPSTREAM;
    up->state = UPSTREAM_BUSY;
    buf_init(&up->trailers, UPSTREAM_TRAILER_BYTES_MAX);
    DL_APPEND(worker->upstreams, up);
    counter_set(&worker->stats.upstreams, counter_read(&worker->stats.upstreams) + 1);
    stat_add(&worker->stats, STAT_UPSTREAM_OPENED, 1);
    sock_start(&up->sock);
}

void upstream_close_all(struct worker *worker)
{
    struct upstream *up;
    struct upstream *next;
    DL_FOREACH_SAFE (worker->upstreams, up, next) {
        if (up->side.exchange == NULL) {
            upstream_close(up);
        }
    }
    utls_stop(worker);
}
