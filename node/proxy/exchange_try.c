/*
 * Sending a request to an endpoint, and once more when that failed and may be repeated.
 *
 * A request is sent twice only if it may be (RFC 9110 9.2.2): nothing of it left the machine, or
 * its method is idempotent, and never after a byte of the response. What is repeated is kept in
 * head, body and trailers; when more was sent than is kept, there is no repetition. The budget of
 * the backend bounds how many are repeated.
 */
#include "node/base/mem.h"
#include "node/proxy/exchange.h"
#include "node/proxy/race.h"
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
    if (UNLIKELY(exchange->body.head != NULL || exchange->trailers.data != NULL)) {
        chunkq_clear(chunks, &exchange->body);
        buf_deinit(&exchange->trailers);
    }
}

static struct backend_slot *backend_slot(const struct exchange *exchange)
{
    return &exchange->backend->slots[exchange->worker->idx];
}

void exchange_set_retries(struct exchange *exchange, const struct proxy_retries *rule,
                          const struct proxy_defaults *defaults)
{
    const struct proxy_retries *retries = rule != NULL && rule->set ? rule : &defaults->retries;
    if (!retries->set) {
        exchange->retries_left = MIN(defaults->retries_max, (uint32_t)EXCHANGE_TRIED_MAX - 1);
        exchange->retry_on = PROXY_RETRY_CONNECT | PROXY_RETRY_RESET;
        return;
    }
    exchange->retries_left = MIN(retries->attempts, (uint32_t)EXCHANGE_TRIED_MAX - 1);
    exchange->retry_on = retries->on;
    exchange->per_try_ms = retries->per_try_ms;
    if ((retries->on & PROXY_RETRY_STATUS) != 0) {
        exchange->status_count = MIN(retries->status_count, (uint32_t)PROXY_RETRY_STATUSES_MAX);
        memcpy(exchange->statuses, retries->statuses, sizeof(exchange->statuses));
    }
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
        .head = exchange->head,
        .head_len = exchange->head_len,
        .head_is_new = !exchange->head_sent,
        .framing = exchange->framing,
        .method = exchange->method,
        .upgrade = exchange->upgrade,
    };
    exchange->head_sent = true;
    upstream->ops->request(upstream, &request);
    for (const struct chunk *chunk = exchange->body.head; chunk != NULL; chunk = chunk->next) {
        upstream->ops->data(upstream, chunk->bytes + chunk->start, chunk->end - chunk->start);
    }
    if (exchange->request_done) {
        upstream->ops->end(upstream, exchange->trailers.data, exchange->trailers.len);
    }
}

/* Send it to the endpoint at which it has a place. True: it is on its way. */
static bool try_endpoint(struct exchange *exchange, struct endpoint *endpoint)
{
    struct worker *worker = exchange->worker;
    int error = 0;
    struct upstream_side *upstream = upstream_get(exchange, endpoint, &error);
    if (upstream == NULL) {
        bool local = error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
        exchange->failure = local ? REASON_OVERLOAD : REASON_CONNECT_FAILED;
        if (!local) {
            endpoint_connect_failed(endpoint, worker_now(worker));
            backend_failed(exchange->backend, endpoint, worker_now(worker));
        }
        stat_add(&worker->stats, STAT_CONNECT_FAILED, 1);
        counter_add(&backend_slot(exchange)->connect_errors, 1);
        mark_tried(exchange, endpoint);
        place_give_back(worker, exchange->backend, endpoint);
        return false;
    }
    exchange_note_sent(exchange, upstream_is_reused(upstream));
    exchange->endpoint = endpoint;
    send_request(exchange, upstream);
    if (!exchange->reused) {
        race_watch(exchange);
    }
    return true;
}

/* Once more: is that allowed? It is counted. */
static bool take_retry(struct exchange *exchange)
{
    struct backend_slot *slot = backend_slot(exchange);
    if (exchange->retries_left == 0) {
        return false;
    }
    if (!retry_take(&slot->budget, worker_now(exchange->worker))) {
        counter_add(&slot->retries_refused, 1);
        return false;
    }
    exchange->retries_left--;
    return true;
}

static void count_retry(struct exchange *exchange)
{
    stat_add(&exchange->worker->stats, STAT_RETRIES, 1);
    counter_add(&backend_slot(exchange)->retries, 1);
}

static void on_turn(struct waiter *waiter)
{
    struct exchange *exchange = CONTAINER_OF(waiter, struct exchange, waiter);
    exchange_try(exchange);
}

static struct place_ask ask_of(const struct exchange *exchange)
{
    return (struct place_ask){
        .backend = exchange->backend,
        .hash = exchange->hash,
        .wanted = exchange->wanted,
        .tried = exchange->tried,
        .tried_count = exchange->tried_count,
        .queue_ms = exchange->timeouts.queue_ms,
    };
}

/* A place at some endpoint; else the exchange waits, or is answered. */
static struct endpoint *find_place(struct exchange *exchange)
{
    const struct place_ask ask = ask_of(exchange);
    bool waited = exchange->waiter.rank != 0;
    exchange->waiter.on_turn = on_turn;
    struct endpoint *endpoint = NULL;
    switch (place_seek(exchange->worker, &ask, &exchange->waiter, &endpoint)) {
    case PLACE_TAKEN:
        if (waited) {
            exchange->client->ops->hold(exchange->client, false);
        }
        return endpoint;
    case PLACE_WAITING:
        exchange->queued = true;
        if (!waited && exchange->framing != H1_BODY_NONE && !exchange->request_done) {
            exchange->client->ops->hold(exchange->client, true);
        } /* else it is read on, to see it go away */
        return NULL;
    case PLACE_FULL:
        exchange_answer(exchange, REASON_QUEUE_FULL);
        return NULL;
    case PLACE_LATE:
        exchange_answer(exchange, REASON_QUEUE_TIMEOUT);
        return NULL;
    case PLACE_NONE:
        exchange_answer(exchange,
                        exchange->failure == REASON_NONE ? REASON_NO_ENDPOINT : exchange->failure);
        return NULL;
    }
    UNREACHABLE("place");
}

void exchange_try(struct exchange *exchange)
{
    if (exchange->tried_count == 0 && exchange->waiter.rank == 0) {
        retry_count_request(&backend_slot(exchange)->budget, worker_now(exchange->worker));
    }
    for (;;) {
        struct endpoint *endpoint = find_place(exchange);
        if (endpoint == NULL || try_endpoint(exchange, endpoint)) {
            return;
        }
        if ((exchange->retry_on & PROXY_RETRY_CONNECT) == 0 || !take_retry(exchange)) {
            exchange_answer(exchange, exchange->failure);
            return;
        }
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
        [LOST_TLS] = {REASON_ENDPOINT_TLS, true},
        [LOST_CERTIFICATE] = {REASON_ENDPOINT_CERTIFICATE, true},
    };
    struct worker *worker = exchange->worker;
    exchange->failure = rows[lost].reason;
    if (lost == LOST_CERTIFICATE && exchange->rule->target != NULL) {
        /* What one route demands says nothing of how others find the endpoint. */
        counter_add(&backend_slot(exchange)->connect_errors, 1);
        return;
    }
    if (!exchange->response_begun) {
        worker_online(worker);
        backend_failed(exchange->backend, endpoint, worker_now(worker));
    }
    if (!rows[lost].connect) {
        counter_add(&backend_slot(exchange)->response_errors, 1);
        return;
    }
    counter_add(&backend_slot(exchange)->connect_errors, 1);
    endpoint_connect_failed(endpoint, worker_now(worker));
    if (lost == LOST_CONNECT || lost == LOST_CONNECT_TIMEOUT) { /* TLS has counters of its own */
        stat_add(&worker->stats, lost == LOST_CONNECT ? STAT_CONNECT_FAILED : STAT_CONNECT_TIMEOUT,
                 1);
    }
}

/* May what was lost this way be sent again, as far as the request and the configuration go? */
static bool may_repeat(const struct exchange *exchange, enum lost lost, bool sent)
{
    static const unsigned needs[] = {
        [LOST_CONNECT] = PROXY_RETRY_CONNECT,     [LOST_CONNECT_TIMEOUT] = PROXY_RETRY_CONNECT,
        [LOST_CLOSED] = PROXY_RETRY_RESET,        [LOST_GARBLED] = 0,
        [LOST_TIMEOUT] = PROXY_RETRY_TIMEOUT,     [LOST_TLS] = PROXY_RETRY_CONNECT,
        [LOST_CERTIFICATE] = PROXY_RETRY_CONNECT,
    };
    return (exchange->retry_on & needs[lost]) != 0 && exchange->replayable &&
           !exchange->response_begun && !exchange->interim_sent && (exchange->idempotent || !sent);
}

/* It has no upstream any more; its place goes to whoever waits for it. */
static void detach(struct exchange *exchange)
{
    exchange->upstream->exchange = NULL;
    exchange->upstream = NULL;
    place_give_back(exchange->worker, exchange->backend, exchange->endpoint);
    exchange->endpoint = NULL;
}

static void try_another(struct exchange *exchange)
{
    count_retry(exchange);
    exchange->client->ops->hold(exchange->client, false);
    exchange_try(exchange);
}

/* Closed while it was idle, as servers do: nothing is wrong with the endpoint. The place is kept.
 */
static void replace_stale(struct exchange *exchange)
{
    struct endpoint *endpoint = exchange->endpoint;
    exchange->upstream->exchange = NULL;
    exchange->upstream = NULL;
    exchange->endpoint = NULL;
    stat_add(&exchange->worker->stats, STAT_UPSTREAM_STALE, 1);
    exchange->stale_retried = true;
    exchange->fresh_only = true;
    exchange->client->ops->hold(exchange->client, false);
    count_retry(exchange);
    if (!try_endpoint(exchange, endpoint)) {
        exchange_try(exchange);
    }
}

void exchange_race_won(struct exchange *exchange, struct upstream_side *upstream,
                       struct endpoint *endpoint)
{
    struct upstream_side *slow = exchange->upstream;
    struct endpoint *before = exchange->endpoint;
    endpoint_connect_failed(before, worker_now(exchange->worker)); /* others shall not wait, too */
    mark_tried(exchange, before);
    detach(exchange);
    slow->ops->abandon(slow);
    exchange_note_sent(exchange, false);
    exchange->connected_ns = upstream_is_ready(upstream) ? exchange->sent_ns : 0;
    exchange->endpoint = endpoint;
    exchange->client->ops->hold(exchange->client, false);
    send_request(exchange, upstream);
}

void exchange_upstream_lost(struct exchange *exchange, enum lost lost, bool reused, bool any_byte)
{
    race_forget(exchange);
    struct endpoint *endpoint = exchange->endpoint;
    bool sent = exchange->upstream->ops->sent(exchange->upstream) != 0;
    bool unharmed = exchange->replayable && !any_byte && !exchange->response_begun &&
                    (exchange->idempotent || !sent);
    if (unharmed && reused && lost == LOST_CLOSED && !exchange->stale_retried &&
        !endpoint_is_gone(endpoint)) {
        replace_stale(exchange);
        return;
    }
    account_loss(exchange, endpoint, lost);
    bool again = !any_byte && may_repeat(exchange, lost, sent) && take_retry(exchange);
    if (again) {
        mark_tried(exchange, endpoint);
    }
    detach(exchange);
    if (again) {
        try_another(exchange);
    } else {
        exchange_answer(exchange, exchange->failure);
    }
}

/* ---- statuses ---- */

static bool wants_status(const struct exchange *exchange, uint16_t status)
{
    for (uint32_t i = 0; i < exchange->status_count; i++) {
        if (exchange->statuses[i] == status) {
            return true;
        }
    }
    return false;
}

bool exchange_retry_status(struct exchange *exchange, uint16_t status)
{
    if (!wants_status(exchange, status) || !exchange->replayable || !exchange->idempotent ||
        exchange->interim_sent || exchange->retries_left == 0) {
        return false;
    }
    struct upstream_side *upstream = exchange->upstream;
    struct endpoint *endpoint = exchange->endpoint;
    mark_tried(exchange, endpoint);
    const struct place_ask ask = ask_of(exchange);
    if (!place_is_there(exchange->worker, &ask) || !take_retry(exchange)) {
        endpoint_unref(exchange->tried[--exchange->tried_count]);
        return false; /* this response is better than none */
    }
    counter_add(&endpoint->slots[exchange->worker->idx].traffic.responses[status / 100U], 1);
    detach(exchange);
    upstream->ops->abandon(upstream);
    try_another(exchange);
    return true;
}
