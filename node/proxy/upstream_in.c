/*
 * Responses from endpoints: heads, bodies, and what comes behind them.
 */
#include "node/proxy/upstream_int.h"

static struct worker *worker_of(const struct upstream *up)
{
    return up->sock.worker;
}

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
void upstream_response_done(struct upstream *up, size_t surplus)
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
        if (++up->interims > UPSTREAM_INTERIMS_MAX) {
            upstream_lose(up, LOST_GARBLED);
            return 0;
        }
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
            upstream_response_done(up, len);
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

static void take_input(struct upstream *up, const char *bytes, size_t len)
{
    struct worker *worker = worker_of(up);
    if (up->in.len == 0) {
        size_t left = take_response(up, bytes, len);
        if (left != 0) {
            chunkq_put(&worker->chunks, &up->in, bytes + len - left, left);
        } else if (len >= UPSTREAM_SPLICE_READ) {
            upstream_begin_splice(up);
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

void upstream_input(struct upstream *up, const char *bytes, size_t len)
{
    up->any_byte = true;
    take_input(up, bytes, len);
    upstream_touch(up); /* if it goes on */
}
