/*
 * The life of an exchange: begin, events from both sides, end; see exchange.h for the table.
 *
 * Order when it ends: both codecs are detached first, then they are told, so that nothing they do
 * comes back here.
 */
#include "node/proxy/exchange.h"

#include "node/base/mem.h"
#include "node/proxy/access_log.h"
#include "node/proxy/affinity.h"
#include "node/proxy/exchange_shape.h"
#include "node/proxy/proxy_int.h"
#include "node/proxy/race.h"

void exchange_start(struct worker *worker, struct client_side *side,
                    const struct exchange_request *request)
{
    struct exchange *exchange = pool_take(&worker->exchange_pool);
    memset(exchange, 0, offsetof(struct exchange, request_id));
    exchange->worker = worker;
    exchange->client = side;
    exchange->start_ns = request->start_ns;
    exchange->routed_ns = request->routed_ns;
    exchange->replayable = true;
    exchange->client_addr = *request->client;
    exchange->waiter.rank = 0;
    buf_init(&exchange->trailers, WORKER_SCRATCH_BYTES);
    side->exchange = exchange;
    stat_add(&worker->stats, STAT_REQUESTS, 1);
    if (access_log_wants(worker)) {
        access_begin(exchange, request);
    }
    struct exchange_answer answer = {0};
    answer.reason = exchange_route(exchange, request, &answer);
    if (answer.reason != REASON_NONE) {
        exchange_answer_with(exchange, &answer);
        return;
    }
    if (exchange->timeouts.request_ms != 0) {
        exchange->timed = true;
        exchange->timer = (struct wheel_entry){.kind = WHEEL_EXCHANGE};
        worker_deadline(worker, &exchange->timer, exchange->timeouts.request_ms);
    }
    exchange_try(exchange);
}

/* Detach both sides, account, free. The sides are still there, and told by the caller. */
static void exchange_over(struct exchange *exchange)
{
    struct worker *worker = exchange->worker;
    exchange->client->exchange = NULL;
    if (exchange->upstream != NULL) {
        exchange->upstream->exchange = NULL;
    }
    exchange_account(exchange);
    place_cancel(&exchange->waiter);
    race_forget(exchange);
    if (exchange->timed) {
        wheel_clear(&worker->wheel, &exchange->timer);
    }
    if (exchange->endpoint != NULL) {
        place_give_back(worker, exchange->backend, exchange->endpoint);
    }
    if (exchange->wanted != NULL) {
        endpoint_unref(exchange->wanted);
    }
    for (uint32_t i = 0; i < exchange->tried_count; i++) {
        endpoint_unref(exchange->tried[i]);
    }
    if (exchange->replayable || exchange->body.len != 0) { /* else it was forgotten before */
        exchange_forget_replay(exchange);
    }
    if (exchange->policy != NULL || exchange->base != NULL) {
        exchange_shape_end(exchange);
    }
    host_unref(exchange->host);
    pool_put(&worker->exchange_pool, exchange);
}

/* End it without a complete response from the endpoint. */
static void exchange_fail(struct exchange *exchange)
{
    struct upstream_side *upstream = exchange->upstream;
    exchange_over(exchange);
    if (upstream != NULL) {
        upstream->ops->abandon(upstream);
    }
}

void exchange_answer(struct exchange *exchange, enum reason reason)
{
    exchange_answer_with(exchange, &(const struct exchange_answer){.reason = reason});
}

/* What policies add to an answer, in *shaped when they do. */
static const struct exchange_answer *shape_answer(struct exchange *exchange,
                                                  const struct exchange_answer *answer,
                                                  struct exchange_answer *shaped)
{
    struct policy_base *base = worker_settings(exchange->worker)->base;
    if (exchange->policy == NULL && base == NULL) {
        return answer;
    }
    *shaped = *answer;
    exchange_shape_answer(exchange, base, shaped);
    return shaped;
}

void exchange_answer_with(struct exchange *exchange, const struct exchange_answer *answer)
{
    struct client_side *client = exchange->client;
    enum reason reason = answer->reason;
    bool cut = exchange->response_begun;
    struct exchange_answer shaped;
    exchange->reason = reason;
    if (cut) {
        stat_add(&exchange->worker->stats, STAT_RESPONSE_CUT, 1);
        exchange->status = exchange->tunnel ? exchange->status : 0;
    } else {
        exchange->status = answer->status != 0 ? answer->status : reason_row(reason)->status;
        counter_add(&exchange->worker->stats.answered[reason], 1);
        answer = shape_answer(exchange, answer, &shaped);
    }
    exchange_fail(exchange);
    if (cut) {
        client->ops->cut(client);
    } else {
        client->ops->answer(client, answer);
    }
}

void exchange_request_data(struct exchange *exchange, const char *bytes, size_t len)
{
    struct upstream_side *upstream = exchange->upstream;
    exchange->bytes_in += len;
    if (UNLIKELY(exchange->bytes_in > exchange->body_bytes_max) && exchange->body_bytes_max != 0 &&
        !exchange->tunnel) {
        exchange_answer(exchange, REASON_BODY_TOO_BIG);
        return;
    }
    if (upstream == NULL) { /* it waits for a place: no more is read than was at hand */
        chunkq_put(&exchange->worker->chunks, &exchange->body, bytes, len);
        return;
    }
    if (exchange->replayable) {
        bool sent = upstream->ops->sent(upstream) != 0;
        bool fits = exchange->body.len + len <= EXCHANGE_REPLAY_BYTES;
        if (sent && (!exchange->idempotent || !fits)) {
            exchange_forget_replay(exchange);
        } else {
            chunkq_put(&exchange->worker->chunks, &exchange->body, bytes, len);
        }
    }
    upstream->ops->data(upstream, bytes, len);
}

void exchange_request_end(struct exchange *exchange, const char *trailers, size_t len)
{
    exchange->request_done = true;
    if (len != 0 && exchange->replayable && buf_put(&exchange->trailers, trailers, len) != RC_OK) {
        exchange_forget_replay(exchange);
    }
    if (exchange->upstream != NULL) {
        exchange->upstream->ops->end(exchange->upstream, trailers, len);
    } else { /* it waits for a place: read on, to see the client go away */
        exchange->client->ops->hold(exchange->client, false);
    }
}

void exchange_request_fault(struct exchange *exchange, enum reason reason)
{
    exchange_answer(exchange, reason);
}

void exchange_timeout(struct exchange *exchange)
{
    exchange_answer(exchange, REASON_REQUEST_TIMEOUT);
}

void exchange_client_gone(struct exchange *exchange)
{
    if (!exchange->tunnel) {
        stat_add(&exchange->worker->stats, STAT_CLIENT_ABORTED, 1);
        exchange->status = 0;
    }
    exchange->end = EXCHANGE_END_CLIENT;
    exchange_fail(exchange);
}

void exchange_client_full(struct exchange *exchange, bool full)
{
    if (exchange->upstream != NULL) {
        exchange->upstream->ops->hold(exchange->upstream, full);
    }
}

void exchange_upstream_full(struct exchange *exchange, bool full)
{
    exchange->client->ops->hold(exchange->client, full);
}

void exchange_interim(struct exchange *exchange, const struct h1_head *head, const char *bytes)
{
    exchange->interim_sent = true;
    exchange->client->ops->interim(exchange->client, head, bytes);
}

void exchange_response_head(struct exchange *exchange, struct h1_head *head, const char *bytes)
{
    if (head->status >= 500) {
        worker_online(exchange->worker);
        backend_failed(exchange->backend, exchange->endpoint, worker_now(exchange->worker));
    }
    if (UNLIKELY((exchange->retry_on & PROXY_RETRY_STATUS) != 0) &&
        exchange_retry_status(exchange, (uint16_t)head->status)) {
        return;
    }
    bool shaped = exchange->policy != NULL || exchange->base != NULL;
    if (shaped && !exchange_shape_response(exchange, head, bytes)) {
        exchange_answer(exchange, REASON_BAD_RESPONSE);
        return;
    }
    struct buf *lines = &exchange->worker->lines;
    if (exchange->rule->sticky != NULL) {
        if (!shaped) {
            buf_reset(lines);
        }
        affinity_set_cookie(exchange, lines);
        shaped = true;
    }
    exchange->response_begun = true;
    exchange->status = head->status;
    exchange_forget_replay(exchange);
    if (head->upgrade) {
        exchange->tunnel = true;
        stat_add(&exchange->worker->stats, STAT_TUNNELS, 1);
        counter_add(&exchange->worker->stats.tunnels, 1);
    }
    exchange_note_head(exchange, head, bytes);
    exchange->client->ops->head(exchange->client, head, bytes, shaped ? lines->data : NULL,
                                shaped ? lines->len : 0);
}

void exchange_response_data(struct exchange *exchange, const char *bytes, size_t len)
{
    exchange->bytes_out += len;
    exchange->client->ops->data(exchange->client, bytes, len);
}

void exchange_response_end(struct exchange *exchange, const char *trailers, size_t len)
{
    struct client_side *client = exchange->client;
    struct upstream_side *upstream = exchange->upstream;
    bool request_done = exchange->request_done;
    exchange_over(exchange);
    client->ops->end(client, trailers, len);
    if (request_done) {
        upstream->ops->release(upstream);
    } else {
        upstream->ops->abandon(upstream);
    }
}

/* Both directions of a tunnel are done. */
static void tunnel_end_if_done(struct exchange *exchange)
{
    if (exchange->client_finished && exchange->upstream_finished) {
        exchange->request_done = true;
        exchange_response_end(exchange, NULL, 0);
    }
}

void exchange_client_finished(struct exchange *exchange)
{
    exchange->client_finished = true;
    exchange->upstream->ops->finish(exchange->upstream);
    tunnel_end_if_done(exchange);
}

void exchange_upstream_finished(struct exchange *exchange)
{
    exchange->upstream_finished = true;
    exchange->client->ops->finish(exchange->client);
    tunnel_end_if_done(exchange);
}
