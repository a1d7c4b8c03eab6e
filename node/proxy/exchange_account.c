/*
 * What an exchange leaves behind: when its phases were, counters of everything that it touched, and
 * its record in the access log.
 *
 * Clock reads are the dear part, so there is one for an ordinary exchange on kept connections, when
 * the response head has come; when its own head came is read once for all of a turn of the loop.
 * Its end is a further one only when the loop has turned in between (a long response), sending a
 * fourth only with the access log or after a queue or failed tries; a connection that is opened
 * costs two more, which a connect hides.
 */
#include "node/proxy/access_log.h"
#include "node/proxy/proxy_int.h"

static struct backend_slot *backend_slot(const struct exchange *exchange)
{
    return &exchange->backend->slots[exchange->worker->idx];
}

void exchange_note_sent(struct exchange *exchange, bool reused)
{
    exchange->reused = reused;
    exchange->connected_ns = 0;
    if (reused) {
        counter_add(&backend_slot(exchange)->reused, 1);
    }
    if (!reused || exchange->log != NULL || exchange->sent_ns != 0 || exchange->queued) {
        exchange->sent_ns = uv_hrtime();
    }
}

void exchange_note_connected(struct exchange *exchange)
{
    exchange->connected_ns = uv_hrtime();
    uint64_t took_ns = exchange->connected_ns - exchange->sent_ns;
    struct backend_times *times = backend_times(exchange->backend, exchange->worker->idx);
    histogram_add(&times->connect, histogram_bucket(took_ns), took_ns);
}

void exchange_note_tls_failure(struct exchange *exchange, const char *why)
{
    counter_add(&backend_slot(exchange)->tls_failed, 1);
    access_note(exchange, ACCESS_ITEM_CAUSE, why, strlen(why));
}

void exchange_note_head(struct exchange *exchange, const struct h1_head *head, const char *bytes)
{
    exchange->head_ns = uv_hrtime();
    exchange->head_turn = exchange->worker->turn;
    if (exchange->log != NULL) {
        access_response(exchange, head, bytes);
    }
}

void exchange_account(struct exchange *exchange)
{
    struct worker *worker = exchange->worker;
    struct stats *stats = &worker->stats;
    bool head_is_now = exchange->head_ns != 0 && exchange->head_turn == worker->turn;
    uint64_t end_ns = head_is_now ? exchange->head_ns : uv_hrtime();
    /* How long a tunnel lasts is up to its users: it counts until it was granted. */
    uint64_t took_ns = (exchange->tunnel ? exchange->head_ns : end_ns) - exchange->start_ns;
    size_t bucket = histogram_bucket(took_ns);
    size_t klass = MIN(exchange->status / 100U, 5U); /* 600 and above: 5xx */
    counter_add(&stats->responses[klass], 1);
    counter_add(&stats->bytes_in, exchange->bytes_in);
    counter_add(&stats->bytes_out, exchange->bytes_out);
    histogram_add(&stats->duration, bucket, took_ns);
    if (exchange->tunnel) {
        counter_add(&stats->tunnels, UINT64_MAX); /* one less */
    }
    if (exchange->rule != NULL) {
        struct route_slot *slot = route_slot(exchange->rule->route, worker->idx);
        traffic_count(&slot->traffic, klass, exchange->bytes_in, exchange->bytes_out);
        histogram_add(&slot->duration, bucket, took_ns);
    }
    if (exchange->backend != NULL) {
        backend_touch(exchange->backend);
        traffic_count(&backend_slot(exchange)->traffic, klass, exchange->bytes_in,
                      exchange->bytes_out);
        if (exchange->head_ns != 0) {
            uint64_t from_ns = exchange->connected_ns != 0 ? exchange->connected_ns
                               : exchange->sent_ns != 0    ? exchange->sent_ns
                                                           : exchange->routed_ns;
            uint64_t response_ns = exchange->head_ns - from_ns;
            histogram_add(&backend_times(exchange->backend, worker->idx)->response,
                          histogram_bucket(response_ns), response_ns);
        }
    }
    if (exchange->endpoint != NULL) {
        traffic_count(&exchange->endpoint->slots[worker->idx].traffic, klass, exchange->bytes_in,
                      exchange->bytes_out);
    }
    if (exchange->log != NULL) {
        access_end(exchange, end_ns);
    }
}

void exchange_refused(struct worker *worker, const struct exchange_refusal *refusal)
{
    if (refusal->reason != REASON_NONE) {
        counter_add(&worker->stats.answered[refusal->reason], 1);
        counter_add(&worker->stats.responses[reason_row(refusal->reason)->status / 100U], 1);
    }
    access_refused(worker, refusal);
}
