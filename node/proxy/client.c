/*
 * HTTP/1 from clients: requests in, tunnels, the end of connections; see client.h for the states.
 * What goes out is in client_out.c.
 */
#include "node/proxy/client.h"

#include "node/base/mem.h"
#include "node/proxy/client_int.h"
#include "node/proxy/proxy_int.h"
#include "node/proxy/sock_tls.h"

#include <unistd.h>
#include <utlist.h>

static struct client *of_sock(struct sock *sock)
{
    return CONTAINER_OF(sock, struct client, sock);
}

static struct worker *worker_of(const struct client *client)
{
    return client->sock.worker;
}

static uint32_t limit_ms(const struct client *client)
{
    return client->state == CLIENT_TUNNEL ? client->tunnel_ms : client->client_ms;
}

void client_arm(struct client *client)
{
    client_touch(client);
    worker_deadline(worker_of(client), &client->timer, limit_ms(client));
}

static struct client_work *client_begin_work(struct client *client)
{
    if (client->work == NULL) {
        struct client_work *work = pool_take(&worker_of(client)->work_pool);
        work->scan = (struct h1_scan){0};
        buf_init(&work->trailers, CLIENT_TRAILER_BYTES_MAX);
        client->work = work;
    }
    return client->work;
}

void client_end_work(struct client *client)
{
    if (client->work != NULL) {
        buf_deinit(&client->work->trailers);
        pool_put(&worker_of(client)->work_pool, client->work);
        client->work = NULL;
    }
}

/* It came to this. Once. */
static void client_end_handshake(struct client *client, enum stat_id stat)
{
    struct worker *worker = worker_of(client);
    if (client->tls->counted) {
        client->tls->counted = false;
        atomic_fetch_sub_explicit(&worker->proxy->handshakes, 1, memory_order_relaxed);
        stat_add(&worker->stats, stat, 1);
    }
}

static void on_connected(struct sock *sock)
{
    struct client *client = of_sock(sock);
    struct tls_facts facts;
    tls_engine_facts(client->tls->engine, &facts);
    client_end_handshake(client, facts.resumed ? STAT_TLS_RESUMED : STAT_TLS_FULL);
}

void client_close(struct client *client)
{
    if (client->state == CLIENT_CLOSED) {
        return;
    }
    struct worker *worker = worker_of(client);
    ASSERT(client->side.exchange == NULL);
    client->state = CLIENT_CLOSED;
    limiter_leave(client->place);
    client->place = NULL;
    DL_DELETE(worker->clients, client);
    wheel_clear(&worker->wheel, &client->timer);
    worker_client_closed(worker);
    counter_add(&client->acceptor->open, UINT64_MAX); /* one less */
    if (UNLIKELY(client->tls != NULL)) {
        client_end_handshake(client, STAT_TLS_FAILED); /* nothing when it is done */
    }
    sock_close(&client->sock);
}

static void client_free(struct client *client)
{
    struct worker *worker = worker_of(client);
    chunkq_clear(&worker->chunks, &client->in);
    client_end_work(client);
    mem_free(client->local);
    mem_free(client->tls);
    pool_put(&worker->client_pool, client);
}

static void on_resume(struct task *task);

static void on_closed(struct sock *sock)
{
    struct client *client = of_sock(sock);
    if (client->resuming) {
        client->free_on_resume = true; /* the task is queued and looks at it */
        return;
    }
    client_free(client);
}

void client_resume_soon(struct client *client)
{
    if (!client->resuming && client->in.len != 0) {
        client->resuming = true;
        worker_defer(worker_of(client), &client->resume, on_resume);
    }
}

void client_update_reading(struct client *client)
{
    if (client->held || client->stuffed) {
        sock_pause(&client->sock);
    } else {
        sock_resume(&client->sock);
    }
}

/* ---- requests ---- */

/* Answer a head that could not be read, and end the connection. */
static void answer_refusal(struct client *client, enum reason reason)
{
    exchange_refused(worker_of(client), &(const struct exchange_refusal){
                                            .client = &client->addr,
                                            .listener = client->acceptor->text,
                                            .start_ns = client->start_ns,
                                            .reason = reason,
                                        });
    client->keep = false;
    client->request_done = false;
    client->http10 = false;
    client->is_head = false;
    client_put_answer(client, &(const struct exchange_answer){.reason = reason});
}

static void client_refuse(struct client *client, enum reason reason)
{
    if (client->state == CLIENT_IDLE) {
        client->start_ns = worker_turn_ns(worker_of(client));
    }
    answer_refusal(client, reason);
}

/* Begin the exchange for the head that was just parsed. */
static void begin_exchange(struct client *client, const char *bytes,
                           const struct proxy_defaults *defaults)
{
    struct worker *worker = worker_of(client);
    struct client_work *work = client->work;
    struct h1_head *head = &worker->request;
    uint64_t routed_ns = worker_turn_ns(worker);
    if (client->state == CLIENT_IDLE) {
        client->start_ns = routed_ns;
    }
    work->scan = (struct h1_scan){0};
    client->state = CLIENT_BUSY;
    client->keep = head->keep_alive && !worker->draining;
    client->http10 = head->minor == 0;
    client->is_head = head->method_id == H1_HEAD;
    client->request_done = client->chunked = client->until_close = false;
    client->client_ms = defaults->timeouts.client_ms;
    client->keepalive_ms = defaults->timeouts.keepalive_ms;
    client->tunnel_ms = defaults->timeouts.tunnel_ms;
    buf_reset(&work->trailers);
    h1_body_init(&work->body, head->framing, head->content_length, NULL, &work->trailers);
    const struct exchange_request request = {
        .head = head,
        .bytes = bytes,
        .peer = &client->peer,
        .client = &client->addr,
        .start_ns = client->start_ns,
        .routed_ns = routed_ns,
        .tls = client->tls,
        .listener = client->acceptor->text,
    };
    exchange_start(worker, &client->side, &request);
    const struct exchange *exchange = client->side.exchange;
    if (exchange != NULL) {
        client->client_ms = exchange->timeouts.client_ms;
        client->keepalive_ms = exchange->timeouts.keepalive_ms;
        client->tunnel_ms = exchange->timeouts.tunnel_ms;
        client_arm(client);
    }
}

/* A head at the front of bytes; returns how much it took, 0: incomplete, or the end. */
static size_t take_head(struct client *client, const char *bytes, size_t len)
{
    struct worker *worker = worker_of(client);
    const struct proxy_defaults *defaults = worker_defaults(worker);
    const struct h1_limits limits = {
        .head_bytes = defaults->header_bytes_max,
        .field_count = defaults->header_count_max,
        .target_bytes = defaults->uri_bytes_max,
    };
    struct h1_head *head = &worker->request;
    struct client_work *work = client_begin_work(client);
    int rc = h1_parse_request(&work->scan, bytes, len, &limits, head);
    if (rc == RC_AGAIN) {
        if (client->state == CLIENT_IDLE) {
            client->state = CLIENT_HEAD;
            client->start_ns = worker_turn_ns(worker_of(client));
            worker_deadline(worker, &client->timer, defaults->timeouts.client_header_ms);
        }
        return 0;
    }
    if (rc != RC_OK) {
        client_refuse(client, client_fault_reason(head->fault));
        return 0;
    }
    size_t used = head->len;
    begin_exchange(client, bytes, defaults);
    return used;
}

/* Body data at the front of bytes; returns how much it took. */
static size_t take_body(struct client *client, const char *bytes, size_t len)
{
    struct h1_piece piece;
    struct h1_body *body = &client->work->body;
    int rc = h1_body_next(body, bytes, len, &piece);
    if (rc != RC_OK) {
        exchange_request_fault(client->side.exchange, client_fault_reason(body->fault));
        return 0;
    }
    if (piece.data_len != 0) {
        exchange_request_data(client->side.exchange, piece.data, piece.data_len);
        if (client->side.exchange != NULL) { /* its body is within the limit */
            client_touch(client);
        }
    }
    return piece.used;
}

/* As far as these bytes go and can be used now; returns how many were. */
static size_t take_input(struct client *client, const char *bytes, size_t len)
{
    size_t used = 0;
    for (;;) {
        if (client->state == CLIENT_IDLE || client->state == CLIENT_HEAD) {
            if (sock_waiting(&client->sock) > SOCK_FULL_BYTES) {
                sock_want_drain(&client->sock); /* first the answers before */
                break;
            }
            size_t n = used == len ? 0 : take_head(client, bytes + used, len - used);
            if (n == 0) {
                break;
            }
            used += n;
        } else if (client->state == CLIENT_BUSY && !client->request_done) {
            const struct client_work *work = client->work;
            if (h1_body_done(&work->body)) {
                client->request_done = true;
                exchange_request_end(client->side.exchange, work->trailers.data,
                                     work->trailers.len);
                continue;
            }
            size_t n = used == len ? 0 : take_body(client, bytes + used, len - used);
            if (n == 0) {
                break;
            }
            used += n;
        } else if (client->state == CLIENT_TUNNEL && used != len) {
            client_touch(client);
            exchange_request_data(client->side.exchange, bytes + used, len - used);
            used = len;
        } else {
            break;
        }
    }
    return client->state == CLIENT_LINGER || client->state == CLIENT_CLOSED ? len : used;
}

/* Use what is kept in `in`, now that the state allows more or more has come. */
static void take_kept(struct client *client)
{
    struct chunk_pool *chunks = &worker_of(client)->chunks;
    while (client->in.len != 0) {
        /* Only a head must lie in one piece. */
        const struct chunk *head = client->in.head;
        size_t len = head->end - head->start;
        if (client->state == CLIENT_IDLE || client->state == CLIENT_HEAD) {
            len = MAX(len, MIN(client->in.len, (size_t)H1_HEAD_BYTES_MAX));
        }
        const char *bytes = chunkq_pull(chunks, &client->in, len);
        len = client->in.head->end - client->in.head->start;
        size_t used = take_input(client, bytes, len);
        chunkq_drop(chunks, &client->in, used);
        if (used == 0) {
            break;
        }
    }
    /* In HEAD all that came belongs to the head, which has a limit of its own. */
    bool stuffed = client->in.len > CLIENT_PIPELINE_BYTES &&
                   (client->state == CLIENT_BUSY || client->state == CLIENT_IDLE);
    if (stuffed != client->stuffed && client->state != CLIENT_CLOSED) {
        client->stuffed = stuffed;
        client_update_reading(client);
    }
}

static void after_eof(struct client *client);

static void on_resume(struct task *task)
{
    struct client *client = CONTAINER_OF(task, struct client, resume);
    client->resuming = false;
    if (client->free_on_resume) {
        client_free(client);
        return;
    }
    if (client->state == CLIENT_CLOSED) {
        return;
    }
    take_kept(client);
    if (client->eof) {
        after_eof(client);
    }
}

static void on_data(struct sock *sock, const char *bytes, size_t len)
{
    struct client *client = of_sock(sock);
    if (client->state == CLIENT_CLOSED) {
        return;
    }
    if (client->state == CLIENT_LINGER) {
        client->discarded += (uint32_t)MIN(len, (size_t)CLIENT_LINGER_BYTES);
        if (client->discarded > CLIENT_LINGER_BYTES) {
            client_close(client);
        }
        return;
    }
    struct chunk_pool *chunks = &worker_of(client)->chunks;
    if (client->in.len == 0) {
        size_t used = take_input(client, bytes, len);
        if (used == len) {
            return;
        }
        chunkq_put(chunks, &client->in, bytes + used, len - used);
        if (client->in.len <= CLIENT_PIPELINE_BYTES) {
            return;
        }
    } else {
        chunkq_put(chunks, &client->in, bytes, len);
    }
    take_kept(client);
}

/* ---- the end of connections ---- */

/* The connection ends before there was a request, or a whole head of one. */
static void note_no_request(const struct client *client)
{
    bool empty = client->state == CLIENT_IDLE && client->start_ns == 0;
    if (empty || client->state == CLIENT_HEAD) {
        exchange_refused(worker_of(client), &(const struct exchange_refusal){
                                                .client = &client->addr,
                                                .listener = client->acceptor->text,
                                                .start_ns = client->start_ns,
                                            });
    }
}

/* The client cannot be served any more: cancel what is under way. */
static void client_lost(struct client *client)
{
    note_no_request(client);
    if (client->side.exchange != NULL) {
        exchange_client_gone(client->side.exchange);
    }
    client_close(client);
}

/* Not a byte has come, and nothing is answered yet. */
static bool client_is_unused(const struct client *client)
{
    return client->start_ns == 0 && client->in.len == 0 && sock_is_quiet(&client->sock);
}

/* It ends without another request; one that had none at all is told so if Settings want it. */
static void client_end_unused(struct client *client, enum reason reason)
{
    bool unused = client->start_ns == 0 && client->in.len == 0;
    if (unused && !worker_defaults(worker_of(client))->ignore_empty) {
        answer_refusal(client, reason);
    } else {
        note_no_request(client);
        client_close_when_sent(client);
    }
}

/*
 * The client sends no more. It may have closed for good or only this direction (RFC 9112 9.6),
 * which nobody can tell before something is written; so what is complete is answered, but it is
 * waited for with little patience unless Settings say otherwise, and what can never be complete
 * ends now.
 */
static void after_eof(struct client *client)
{
    switch (client->state) {
    case CLIENT_IDLE:
        if (client->in.len != 0 && sock_waiting(&client->sock) > SOCK_FULL_BYTES) {
            return; /* the next one is taken up when the answers before are out */
        }
        client_end_unused(client, REASON_EMPTY);
        return;
    case CLIENT_HEAD:
        note_no_request(client);
        client_close_when_sent(client);
        return;
    case CLIENT_BUSY:
        if (!client->request_done && client->in.len == 0) {
            client_lost(client);
            return;
        }
        if (!worker_defaults(worker_of(client))->continue_closed) {
            client->client_ms =
                MIN(client->client_ms, client->side.exchange->timeouts.client_fin_ms);
        }
        client_arm(client);
        return;
    case CLIENT_TUNNEL:
        client->tunnel_ms = MIN(client->tunnel_ms, client->side.exchange->timeouts.client_fin_ms);
        client_arm(client);
        exchange_client_finished(client->side.exchange);
        return;
    case CLIENT_LINGER:
        if (!client->closing_soon) {
            client_close(client); /* it has read what was sent last */
        }
        return;
    case CLIENT_CLOSED:
        return;
    }
}

static void on_eof(struct sock *sock)
{
    struct client *client = of_sock(sock);
    client->eof = true;
    after_eof(client);
}

static void on_error(struct sock *sock, int error)
{
    (void)error; /* the peer is gone, whatever the kernel calls it */
    client_lost(of_sock(sock));
}

static void on_full(struct sock *sock)
{
    struct client *client = of_sock(sock);
    if (client->side.exchange != NULL) {
        exchange_client_full(client->side.exchange, true);
    }
}

static void on_drain(struct sock *sock)
{
    struct client *client = of_sock(sock);
    if (client->state == CLIENT_CLOSED) {
        return;
    }
    if (client->want_finish) {
        sock_finish(sock);
    }
    if (client->closing_soon) {
        client_all_sent(client);
        return;
    }
    if (client->side.exchange != NULL) {
        client_touch(client);
        exchange_client_full(client->side.exchange, false);
    }
    client_resume_soon(client);
}

static const struct sock_ops client_sock_ops = {
    .on_connected = on_connected,
    .on_data = on_data,
    .on_eof = on_eof,
    .on_error = on_error,
    .on_full = on_full,
    .on_drain = on_drain,
    .on_closed = on_closed,
};

/* Not when a request has come this very moment: closing would reset it. It is answered, then. */
static void client_close_idle(struct client *client)
{
    if (client->in.len == 0 && sock_is_quiet(&client->sock)) {
        note_no_request(client);
        client_close(client);
    } else {
        worker_deadline(worker_of(client), &client->timer, CLIENT_LINGER_MS);
    }
}

/* BUSY: who is it that does not go on? */
static void busy_timeout(struct client *client)
{
    if (sock_waiting(&client->sock) != 0) {
        if (sock_progressed(&client->sock)) {
            client_arm(client);
        } else {
            client_lost(client);
        }
    } else if (client->eof && !worker_defaults(worker_of(client))->continue_closed) {
        client_lost(client);
    } else if (!client->request_done && !client->held) {
        exchange_request_fault(client->side.exchange, REASON_CLIENT_TIMEOUT);
    } else {
        client_arm(client); /* the endpoint's turn; its side has a limit of its own */
    }
}

/* It went on since the entry was put there: put it where it would be now. */
static bool client_went_on(struct client *client)
{
    if (client->state != CLIENT_BUSY && client->state != CLIENT_TUNNEL) {
        return false;
    }
    uint64_t now_ms = worker_now(worker_of(client));
    uint64_t due_ms = client->progress_ms + limit_ms(client);
    if (due_ms > now_ms) {
        worker_deadline(worker_of(client), &client->timer, due_ms - now_ms);
    }
    return due_ms > now_ms;
}

void client_timeout(struct client *client)
{
    if (client_went_on(client)) {
        return;
    }
    if (!sock_tls_is_open(&client->sock)) { /* it can be told nothing */
        client_lost(client);
        return;
    }
    switch (client->state) {
    case CLIENT_CLOSED:
        return;
    case CLIENT_IDLE:
        if (client_is_unused(client)) {
            client_end_unused(client, REASON_CLIENT_TIMEOUT);
        } else {
            client_close_idle(client);
        }
        return;
    case CLIENT_HEAD:
        client_refuse(client, REASON_CLIENT_TIMEOUT);
        return;
    case CLIENT_BUSY:
        busy_timeout(client);
        return;
    case CLIENT_TUNNEL:
        client_lost(client);
        return;
    case CLIENT_LINGER:
        if (client->closing_soon && sock_progressed(&client->sock)) {
            client_arm(client);
        } else {
            client_close(client);
        }
        return;
    }
}

/* NULL: it has too many already, and is closed. */
static struct client *client_begin(struct worker *worker, const struct client_origin *origin,
                                   bool secure)
{
    const struct settings *settings = worker_settings(worker);
    struct limiter_place *place;
    if (!policy_client_place(settings->base, origin->peer, &place)) {
        stat_add(&worker->stats, STAT_CLIENT_LIMITED, 1);
        (void)close(origin->fd); /* nothing was answered, and nobody waits for the result */
        return NULL;
    }
    struct client *client = pool_take(&worker->client_pool);
    struct acceptor *acceptor = origin->acceptor;
    const struct addr *local = origin->local;
    memset(client, 0, sizeof(*client));
    client->place = place;
    sock_init(&client->sock, worker, &client_sock_ops, origin->fd);
    client->side.ops = &client_side_ops;
    client->state = CLIENT_IDLE;
    client->addr = *origin->peer;
    client->acceptor = acceptor;
    counter_add(&acceptor->open, 1);
    client->local = UNLIKELY(local != NULL) ? mem_dup(local, sizeof(*local)) : NULL;
    fwd_peer_init(&client->peer, origin->peer, local != NULL ? addr_port(local) : acceptor->port,
                  secure);
    DL_APPEND(worker->clients, client);
    worker_client_opened(worker);
    stat_add(&worker->stats, STAT_CLIENT_ACCEPTED, 1);
    client->client_ms = settings->defaults.timeouts.client_ms;
    worker_deadline(worker, &client->timer, settings->defaults.timeouts.client_header_ms);
    return client;
}

void client_accept(struct worker *worker, struct acceptor *acceptor, int fd,
                   const struct addr *peer, const struct addr *local)
{
    const struct client_origin origin = {
        .acceptor = acceptor, .fd = fd, .peer = peer, .local = local};
    struct client *client = client_begin(worker, &origin, false);
    if (client != NULL) {
        sock_read_soon(&client->sock);
    }
}

void client_accept_tls(struct worker *worker, const struct client_origin *origin,
                       struct tls_engine *engine, const struct tls_policy *policy,
                       const char *bytes, size_t len)
{
    struct client *client = client_begin(worker, origin, true);
    if (client == NULL) {
        tls_engine_free(engine);
        return;
    }
    client->tls = mem_new(sizeof(*client->tls));
    client->tls->engine = engine;
    memcpy(client->tls->policy, tls_policy_digest(policy), TLS_DIGEST_BYTES);
    client->tls->counted = true;
    atomic_fetch_add_explicit(&worker->proxy->handshakes, 1, memory_order_relaxed);
    sock_start_tls(&client->sock, engine, TLS_SERVER);
    sock_tls_input(&client->sock, bytes, len);
    sock_start(&client->sock);
}

void client_read_fresh(struct worker *worker)
{
    struct sock *sock;
    while ((sock = sock_take_fresh(worker)) != NULL) {
        struct client *client = CONTAINER_OF(sock, struct client, sock);
        sock_read_now(sock);
        if (client->state == CLIENT_BUSY && client->request_done) {
            sock_start_late(sock); /* nothing is expected before the response */
        } else {
            sock_start(sock);
        }
        worker_settle(worker);
    }
}

void client_drain_all(struct worker *worker)
{
    struct client *client;
    struct client *next;
    client_read_fresh(worker); /* one that was accepted has its request served */
    DL_FOREACH_SAFE (worker->clients, client, next) {
        if (client->state == CLIENT_IDLE) {
            client_close_idle(client);
        }
    }
}

void client_close_all(struct worker *worker)
{
    struct client *client;
    struct client *next;
    DL_FOREACH_SAFE (worker->clients, client, next) {
        client_lost(client);
    }
}
