/*
 * HTTP/1.1 to endpoints: requests out, responses in, tunnels; see upstream.h for the states. The
 * pool is in upool.c.
 */
#include "node/proxy/upstream.h"

#include "node/base/mem.h"
#include "node/proxy/upool.h"

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
static void upstream_touch(struct upstream *up)
{
    const struct exchange *exchange = up->side.exchange;
    if (exchange != NULL && up->state == UPSTREAM_BUSY) {
        worker_deadline(worker_of(up), &up->timer,
                        up->sock.connecting ? exchange->timeouts.connect_ms
                                            : exchange->timeouts.server_ms);
    }
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
    atomic_store_explicit(&worker->stats.upstreams, counter_read(&worker->stats.upstreams) - 1,
                          memory_order_relaxed);
    sock_close(&up->sock);
}

static void on_closed(struct sock *sock)
{
    struct upstream *up = of_sock(sock);
    struct worker *worker = worker_of(up);
    ASSERT(up->state == UPSTREAM_CLOSED && up->side.exchange == NULL);
    chunkq_clear(&worker->chunks, &up->in);
    buf_deinit(&up->trailers);
    endpoint_unref(up->endpoint);
    pool_put(&worker->upstream_pool, up);
}

/* The connection is of no use any more; its exchange, if any, learns why. */
static void upstream_lose(struct upstream *up, enum lost lost)
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
    up->keep = true;
    up->scan = (struct h1_scan){0};
    up->sent_before = up->sock.sent;
    sock_write(&up->sock, request->head, request->head_len);
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
    }
    upstream_touch(up);
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
    return up->sock.sent - up->sent_before;
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
    bool fit = up->keep && up->head_done && up->request_done && !up->eof && !up->sock.write_dead &&
               sock_waiting(&up->sock) == 0 && up->in.len == 0 && !worker_of(up)->stopping &&
               !endpoint_is_gone(up->endpoint);
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

/* ---- responses ---- */

/* "timeout=5" out of a Keep-Alive field: how long the endpoint promises to wait, less a second for
 * the way. */
static void read_keep_alive(struct upstream *up, const struct h1_head *head, const char *bytes)
{
    if ((head->present & H1_BIT(H1_KEEP_ALIVE)) == 0) {
        return;
    }
    const struct h1_field *field = h1_find(head, H1_KEEP_ALIVE);
    const char *text = bytes + field->value.off;
    static const char key[] = "timeout=";
    const char *at = memmem(text, field->value.len, key, sizeof(key) - 1);
    if (at == NULL) {
        return;
    }
    uint32_t seconds = 0;
    const char *end = text + field->value.len;
    for (at += sizeof(key) - 1; at < end && *at >= '0' && *at <= '9' && seconds < 1000; at++) {
        seconds = seconds * 10 + (uint32_t)(*at - '0');
    }
    uint32_t idle_ms = seconds > 1 ? (seconds - 1) * 1000 : ENDPOINT_IDLE_MS_MIN;
    up->idle_ms = MIN(idle_ms, (uint32_t)ENDPOINT_IDLE_MS_MAX);
}

/* The response is complete. May end the exchange and the connection. */
static void response_done(struct upstream *up, size_t surplus)
{
    if (surplus != 0) {
        up->keep = false; /* bytes that nobody asked for: out of step */
    }
    exchange_response_end(up->side.exchange, up->trailers.data, up->trailers.len);
}

/* A final or interim head at the front of bytes. Returns how much it took; 0: it is incomplete or
 * the connection was lost. */
static size_t take_head(struct upstream *up, const char *bytes, size_t len)
{
    struct worker *worker = worker_of(up);
    struct h1_head *head = &worker->response;
    const struct h1_limits limits = {
        .head_bytes = UPSTREAM_HEAD_BYTES_MAX,
        .field_count = WORKER_FIELDS_MAX,
        .target_bytes = UPSTREAM_HEAD_BYTES_MAX,
    };
    int rc = h1_parse_response(&up->scan, bytes, len, up->method, &limits, head);
    if (rc == RC_AGAIN) {
        return 0;
    }
    if (rc != RC_OK || (head->status == 101 && !(head->upgrade && up->upgrade))) {
        upstream_lose(up, LOST_GARBLED);
        return 0;
    }
    up->scan = (struct h1_scan){0};
    size_t used = head->len;
    if (head->status < 200 && head->status != 101) {
        exchange_interim(up->side.exchange, head, bytes);
        return used;
    }
    up->head_done = true;
    up->keep = head->keep_alive && head->framing != H1_BODY_UNTIL_CLOSE;
    read_keep_alive(up, head, bytes);
    buf_reset(&up->trailers);
    h1_body_init(&up->body, head->framing, head->content_length, NULL, &up->trailers);
    if (head->status == 101) {
        up->state = UPSTREAM_TUNNEL;
        up->keep = false;
        wheel_relax(&up->timer);
    }
    exchange_response_head(up->side.exchange, head, bytes);
    return used;
}

/* Body data at the front of bytes; returns how much it took. */
static size_t take_body(struct upstream *up, const char *bytes, size_t len)
{
    struct h1_piece piece;
    int rc = h1_body_next(&up->body, bytes, len, &piece);
    if (rc != RC_OK) {
        upstream_lose(up, LOST_GARBLED);
        return 0;
    }
    if (piece.data_len != 0) {
        exchange_response_data(up->side.exchange, piece.data, piece.data_len);
    }
    return piece.used;
}

/* As far as these bytes go; returns how many are left (only of an incomplete head). */
static size_t take_response(struct upstream *up, const char *bytes, size_t len)
{
    while (up->side.exchange != NULL && up->state == UPSTREAM_BUSY) {
        if (!up->head_done) {
            size_t used = len == 0 ? 0 : take_head(up, bytes, len);
            if (used == 0) {
                break;
            }
            bytes += used;
            len -= used;
            continue;
        }
        if (h1_body_done(&up->body)) {
            response_done(up, len);
            return 0;
        }
        if (len == 0) {
            break;
        }
        size_t used = take_body(up, bytes, len);
        if (used == 0) {
            break;
        }
        bytes += used;
        len -= used;
    }
    if (up->state == UPSTREAM_TUNNEL && len != 0 && up->side.exchange != NULL) {
        exchange_response_data(up->side.exchange, bytes, len);
        return 0;
    }
    return up->state == UPSTREAM_BUSY && !up->head_done ? len : 0;
}

static void on_busy_data(struct upstream *up, const char *bytes, size_t len)
{
    struct worker *worker = worker_of(up);
    up->any_byte = true;
    upstream_touch(up);
    if (up->in.len == 0) {
        size_t left = take_response(up, bytes, len);
        if (left != 0) {
            chunkq_put(&worker->chunks, &up->in, bytes + len - left, left);
        }
        return;
    }
    /* The rest of a head: what is kept and what came must lie in one piece, which the parser's
     * limit on heads bounds; the surplus is body and comes after. */
    while (len != 0 && up->in.len != 0) {
        size_t room =
            UPSTREAM_HEAD_BYTES_MAX + 1 - MIN(up->in.len, (size_t)UPSTREAM_HEAD_BYTES_MAX);
        size_t n = MIN(len, room);
        chunkq_put(&worker->chunks, &up->in, bytes, n);
        bytes += n;
        len -= n;
        size_t kept = up->in.len;
        const char *flat = chunkq_pull(&worker->chunks, &up->in, kept);
        struct chunkq hold = up->in; /* the bytes must outlive the calls */
        up->in = (struct chunkq){0};
        size_t left = take_response(up, flat, kept);
        if (up->state == UPSTREAM_CLOSED || left == 0) {
            chunkq_clear(&worker->chunks, &hold);
        } else {
            chunkq_drop(&worker->chunks, &hold, kept - left);
            up->in = hold;
        }
    }
    if (len != 0 && up->state != UPSTREAM_CLOSED) {
        if (up->state == UPSTREAM_IDLE) {
            upstream_close(up); /* more than the response: out of step */
            return;
        }
        (void)take_response(up, bytes, len); /* the head is done: nothing is left */
    }
}

static void on_data(struct sock *sock, const char *bytes, size_t len)
{
    struct upstream *up = of_sock(sock);
    if (up->state == UPSTREAM_BUSY) {
        on_busy_data(up, bytes, len);
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
            response_done(up, 0);
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
    (void)error; /* all mean the same here */
    switch (up->state) {
    case UPSTREAM_IDLE:
        upool_learn_closed(up);
        upstream_close(up);
        return;
    case UPSTREAM_BUSY:
        if (up->sock.write_dead && !up->sock.connecting && !up->eof && !up->want_finish) {
            /* It takes no more of the request, but may have answered before it closed (413, 401):
             * reading tells. Not a second time, though. */
            up->want_finish = true;
            up->keep = false;
            sock_resume(&up->sock);
            return;
        }
        upstream_lose(up, up->sock.connecting ? LOST_CONNECT : LOST_CLOSED);
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

static const struct sock_ops upstream_sock_ops = {
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
    bool waits_for_client =
        up->held || (!up->request_done && !up->head_done && sock_waiting(&up->sock) == 0);
    if (waits_for_client || (sock_waiting(&up->sock) != 0 && sock_progressed(&up->sock))) {
        upstream_touch(up);
        return;
    }
    upstream_lose(up, LOST_TIMEOUT);
}

/* ---- opening ---- */

static struct upstream *upstream_open(struct worker *worker, struct endpoint *endpoint,
                                      int *ret_error)
{
    struct upstream *up = pool_take(&worker->upstream_pool);
    memset(up, 0, sizeof(*up));
    int error = sock_connect(&up->sock, worker, &upstream_sock_ops, &endpoint->addr);
    if (error != 0) {
        pool_put(&worker->upstream_pool, up);
        *ret_error = error;
        return NULL;
    }
    endpoint_ref(endpoint);
    up->endpoint = endpoint;
    up->side.ops = &side_ops;
    up->timer.kind = WHEEL_UPSTREAM;
    up->state = UPSTREAM_BUSY;
    buf_init(&up->trailers, UPSTREAM_TRAILER_BYTES_MAX);
    DL_APPEND(worker->upstreams, up);
    atomic_store_explicit(&worker->stats.upstreams, counter_read(&worker->stats.upstreams) + 1,
                          memory_order_relaxed);
    stat_add(&worker->stats, STAT_UPSTREAM_OPENED, 1);
    sock_start(&up->sock);
    return up;
}

struct upstream_side *upstream_get(struct exchange *exchange, struct endpoint *endpoint,
                                   int *ret_error)
{
    struct worker *worker = exchange->worker;
    struct upstream *up = NULL;
    if (!exchange->fresh_only) {
        up = upool_take(worker, endpoint, exchange->idempotent);
    }
    exchange->fresh_only = false;
    if (up == NULL) {
        up = upstream_open(worker, endpoint, ret_error);
    } else {
        up->state = UPSTREAM_BUSY;
        stat_add(&worker->stats, STAT_UPSTREAM_REUSED, 1);
    }
    return up != NULL ? &up->side : NULL;
}

bool upstream_is_reused(const struct upstream_side *side)
{
    const struct upstream *up = CONTAINER_OF(unconst(side), struct upstream, side);
    return up->reused;
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
}
