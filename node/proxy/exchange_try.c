/*
 * Sending a request to an endpoint, and once more when that failed and may be repeated.
 *
 * A request is sent twice only if it may be (RFC 9110 9.2.2): nothing of it left the machine, or
 * its method is idempotent, and never after a byte of the response. What is repeated is kept in
 * head, body and trailers; when more was sent than is kept, there is no repetition.
 */
#include "node/base/mem.h"
#include "node/proxy/balance.h"
#include "node/proxy/exchange.h"
#include "node/proxy/upstream.h"

#include <errno.h>

void exchange_forget_replay(struct exchange *exchange)
{
    struct chunk_pool *chunks = &exchange->worker->chunks;
    exchange->replayable = false;
    if (exchange->head != NULL) {
        chunk_put(chunks, exchange->head);
        exchange->head = NULL;
    }
    chunkq_clear(chunks, &exchange->body);
    buf_deinit(&exchange->trailers);
}

static struct backend_slot *backend_slot(const struct exchange *exchange)
{
    return &exchange->backend->slots[exchange->worker->idx];
}

static struct endpoint *pick(struct exchange *exchange)
{
    struct worker *worker = exchange->worker;
    worker_online(worker);
    const struct balance_ask ask = {
        .rng = &worker->rng,
        .turn = &backend_slot(exchange)->turn,
        .now_ms = worker_now(worker),
        .tried = exchange->tried,
        .tried_count = exchange->tried_count,
    };
    return balance_pick(backend_endpoints(exchange->backend), &ask);
}

/* It is not given this request again. */
static void mark_tried(struct exchange *exchange, struct endpoint *endpoint)
{
    ASSERT(exchange->tried_count < EXCHANGE_TRIED_MAX);
    endpoint_ref(endpoint);
    exchange->tried[exchange->tried_count++] = endpoint;
}

static void send_request(struct exchange *exchange, struct upstream_side *upstream)
{
    upstream->exchange = exchange;
    exchange->upstream = upstream;
    const struct upstream_request request = {
        .head = exchange->head->bytes,
        .head_len = exchange->head->end,
        .framing = exchange->framing,
        .method = exchange->method,
        .upgrade = exchange->upgrade,
    };
    upstream->ops->request(upstream, &request);
    for (const struct chunk *chunk = exchange->body.head; chunk != NULL; chunk = chunk->next) {
        upstream->ops->data(upstream, chunk->bytes + chunk->start, chunk->end - chunk->start);
    }
    if (exchange->request_done) {
        upstream->ops->end(upstream, exchange->trailers.data, exchange->trailers.len);
    }
}

/* True: it is on its way. */
static bool try_endpoint(struct exchange *exchange, struct endpoint *endpoint)
{
    int error = 0;
    struct upstream_side *upstream = upstream_get(exchange, endpoint, &error);
    if (upstream == NULL) {
        bool local = error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
        exchange->failure = local ? REASON_OVERLOAD : REASON_CONNECT_FAILED;
        if (!local) {
            endpoint_connect_failed(endpoint, worker_now(exchange->worker));
        }
        stat_add(&exchange->worker->stats, STAT_CONNECT_FAILED, 1);
        counter_add(&backend_slot(exchange)->connect_errors, 1);
        mark_tried(exchange, endpoint);
        return false;
    }
    if (upstream_is_reused(upstream)) {
        counter_add(&backend_slot(exchange)->reused, 1);
    }
    exchange->endpoint = endpoint;
    endpoint_begin(endpoint);
    send_request(exchange, upstream);
    return true;
}

static void count_retry(struct exchange *exchange)
{
    stat_add(&exchange->worker->stats, STAT_RETRIES, 1);
    counter_add(&backend_slot(exchange)->retries, 1);
}

void exchange_try(struct exchange *exchange)
{
    for (;;) {
        struct endpoint *endpoint = pick(exchange);
        if (endpoint == NULL) {
            bool none = exchange->failure == REASON_NONE;
            exchange_answer(exchange, none ? REASON_NO_ENDPOINT : exchange->failure);
            return;
        }
        if (try_endpoint(exchange, endpoint)) {
            return;
        }
        if (exchange->retries_left == 0) {
            exchange_answer(exchange, exchange->failure);
            return;
        }
        exchange->retries_left--;
        count_retry(exchange);
    }
}

/* What became of the endpoint, in counters and in its own state. */
static void account_loss(struct exchange *exchange, struct endpoint *endpoint, enum lost lost)
{
    static const struct {
        enum reason reason;
        bool connect;
    } rows[] = {
        [LOST_CONNECT] = {REASON_CONNECT_FAILED, true},
        [LOST_CONNECT_TIMEOUT] = {REASON_CONNECT_TIMEOUT, true},
        [LOST_CLOSED] = {REASON_UPSTREAM_CLOSED, false},
        [LOST_GARBLED] = {REASON_BAD_RESPONSE, false},
        [LOST_TIMEOUT] = {REASON_SERVER_TIMEOUT, false},
    };
    struct worker *worker = exchange->worker;
    exchange->failure = rows[lost].reason;
    if (!rows[lost].connect) {
        counter_add(&backend_slot(exchange)->response_errors, 1);
        return;
    }
    counter_add(&backend_slot(exchange)->connect_errors, 1);
    endpoint_connect_failed(endpoint, worker_now(worker));
    stat_add(&worker->stats, lost == LOST_CONNECT ? STAT_CONNECT_FAILED : STAT_CONNECT_TIMEOUT, 1);
}

void exchange_upstream_lost(struct exchange *exchange, enum lost lost, bool reused, bool any_byte)
{
    struct worker *worker = exchange->worker;
    struct endpoint *endpoint = exchange->endpoint;
    bool sent = exchange->upstream->ops->sent(exchange->upstream) != 0;
    exchange->upstream->exchange = NULL;
    exchange->upstream = NULL;
    exchange->endpoint = NULL;
    endpoint_end(endpoint);
    bool may_repeat = exchange->replayable && !any_byte && !exchange->response_begun &&
                      (exchange->idempotent || !sent) && lost != LOST_TIMEOUT &&
                      lost != LOST_GARBLED;
    if (may_repeat && reused && lost == LOST_CLOSED && !exchange->stale_retried &&
        !endpoint_is_gone(endpoint)) {
        /* Closed while it was idle, as servers do: nothing is wrong with the endpoint. */
        stat_add(&worker->stats, STAT_UPSTREAM_STALE, 1);
        exchange->stale_retried = true;
        exchange->fresh_only = true;
        exchange->client->ops->hold(exchange->client, false);
        count_retry(exchange);
        if (!try_endpoint(exchange, endpoint)) {
            exchange_try(exchange);
        }
        return;
    }
    account_loss(exchange, endpoint, lost);
    if (!may_repeat || exchange->retries_left == 0) {
        exchange_answer(exchange, exchange->failure);
        return;
    }
    exchange->retries_left--;
    mark_tried(exchange, endpoint);
    count_retry(exchange);
    exchange->client->ops->hold(exchange->client, false);
    exchange_try(exchange);
}
