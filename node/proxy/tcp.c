/*
 * TCP connections: what happens to them, and their end; see tcp.h. tcp_connect.c finds and connects
 * endpoints, tcp_flow.c moves bytes.
 */
#include "node/proxy/tcp.h"

#include "node/base/mem.h"
#include "node/proxy/access_log.h"
#include "node/proxy/limiter.h"

#include <sys/epoll.h>
#include <unistd.h>
#include <utlist.h>

enum { SETTLE_MS = 15000 }; /* a connection that lasts longer gets the options for that */

/* ---- the end ---- */

/* What moved since the last time, into the counters. */
static void count_traffic(struct tcp *tcp)
{
    struct worker *worker = tcp->worker;
    uint64_t in = tcp->up.bytes - tcp->up.counted;
    uint64_t out = tcp->down.bytes - tcp->down.counted;
    tcp->up.counted = tcp->up.bytes;
    tcp->down.counted = tcp->down.bytes;
    if (tcp->backend != NULL) {
        backend_touch(tcp->backend);
    }
    struct traffic *const places[] = {
        &route_slot(tcp->rule->route, worker->idx)->traffic,
        tcp->backend != NULL ? &tcp_slot(tcp)->traffic : NULL,
        tcp->endpoint != NULL ? &tcp->endpoint->slots[worker->idx].traffic : NULL,
    };
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        if (places[i] != NULL) {
            counter_add(&places[i]->bytes_in, in);
            counter_add(&places[i]->bytes_out, out);
        }
    }
    stat_add(&worker->stats, STAT_TCP_BYTES_IN, in);
    stat_add(&worker->stats, STAT_TCP_BYTES_OUT, out);
}

static void log_end(struct tcp *tcp)
{
    if (!tcp->logged) {
        return;
    }
    const struct tcp_record record = {
        .client = &tcp->peer,
        .listener = tcp->acceptor->text,
        .route = tcp->rule->route->name,
        .backend = tcp->backend != NULL ? tcp->backend->name : NULL,
        .endpoint = tcp->endpoint != NULL ? tcp->endpoint->text : NULL,
        .start_ns = tcp->start_ns,
        .sent_ns = tcp->sent_ns,
        .connected_ns = tcp->connected_ns,
        .bytes_in = tcp->up.bytes,
        .bytes_out = tcp->down.bytes,
        .retries = tcp->tried_count,
        .reason = tcp->failure,
        .end = tcp->why,
    };
    access_log_tcp(tcp->worker, &record);
}

/* The end of the event: nothing of this batch looks at it any more. */
static void on_end(struct task *task)
{
    struct tcp *tcp = CONTAINER_OF(task, struct tcp, end);
    tcp_rule_unref(tcp->rule);
    pool_put(&tcp->worker->tcp_pool, tcp);
}

void tcp_side_close(struct tcp_side *side, bool reset)
{
    if (side->fd < 0) {
        return;
    }
    if (UNLIKELY(reset)) {
        const struct linger now = {.l_onoff = 1, .l_linger = 0};
        (void)setsockopt(side->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)); /* a plain close */
    }
    (void)close(side->fd); /* a socket: nothing to be told about */
    side->fd = -1;
}

void tcp_leave_endpoint(struct tcp *tcp)
{
    if (tcp->endpoint == NULL) {
        return;
    }
    place_give_back(tcp->worker, tcp->backend, tcp->endpoint);
    endpoint_unref(tcp->endpoint);
    tcp->endpoint = NULL;
}

void tcp_end(struct tcp *tcp, enum exchange_end why)
{
    if (tcp->state == TCP_GONE) {
        return;
    }
    struct worker *worker = tcp->worker;
    tcp->state = TCP_GONE;
    tcp->why = why;
    count_traffic(tcp);
    struct route_slot *route = route_slot(tcp->rule->route, worker->idx);
    if (tcp->failure != REASON_NONE) {
        counter_add(&route->failures, 1);
    } else if (tcp->upstream.fd >= 0) {
        counter_add(&route->connections, 1);
    }
    log_end(tcp);
    DL_DELETE(worker->tcps, tcp);
    wheel_clear(&worker->wheel, &tcp->timer);
    place_cancel(&tcp->waiter);
    tcp_flow_drop(tcp, &tcp->up);
    tcp_flow_drop(tcp, &tcp->down);
    tcp_side_close(&tcp->client, tcp->reset);
    tcp_side_close(&tcp->upstream, tcp->reset);
    tcp_leave_endpoint(tcp);
    for (uint32_t i = 0; i < tcp->tried_count; i++) {
        endpoint_unref(tcp->tried[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(tcp->places); i++) {
        limiter_leave(tcp->places[i]);
    }
    worker_client_closed(worker);
    worker_defer(worker, &tcp->end, on_end);
}

void tcp_fail(struct tcp *tcp, enum reason reason)
{
    tcp->failure = reason;
    stat_add(&tcp->worker->stats, STAT_TCP_UNAVAILABLE, 1);
    tcp_end(tcp, reason == REASON_CONNECT_FAILED    ? EXCHANGE_END_ENDPOINT
                 : reason == REASON_CONNECT_TIMEOUT ? EXCHANGE_END_TIME
                                                    : EXCHANGE_END_RESOURCE);
}

/* ---- moving bytes ---- */

void tcp_set_limit(struct tcp *tcp)
{
    uint64_t limit_ms = tcp->timeouts.tunnel_ms;
    if (tcp->up.done) {
        limit_ms = MIN(limit_ms, (uint64_t)tcp->timeouts.client_fin_ms);
    }
    if (tcp->down.done) {
        limit_ms = MIN(limit_ms, (uint64_t)tcp->timeouts.server_fin_ms);
    }
    uint64_t silent_ms = worker_now(tcp->worker) - tcp->active_ms;
    if (silent_ms >= limit_ms) {
        tcp_end(tcp, EXCHANGE_END_TIME);
        return;
    }
    limit_ms -= silent_ms;
    worker_deadline(tcp->worker, &tcp->timer,
                    tcp->settled ? limit_ms : MIN(limit_ms, (uint64_t)SETTLE_MS));
}

/* The sink takes nothing more, but what it sent before may still be there to read. */
static void sink_lost(struct tcp *tcp, struct tcp_flow *flow)
{
    tcp->reset = true;
    flow->done = true;
    tcp_flow_drop(tcp, flow);
    flow->to->failed = true;
    flow->to->readable = true;
}

/* One flow as far as it goes. False: the connection is over. */
static bool tcp_move(struct tcp *tcp, struct tcp_flow *flow)
{
    uint64_t before = flow->bytes;
    enum tcp_moved moved = tcp_flow_move(tcp, flow);
    if (flow->bytes != before) {
        tcp->active_ms = worker_now(tcp->worker);
    }
    if (LIKELY(moved == TCP_MOVED)) {
        return true;
    }
    if (moved == TCP_MOVED_MORE) {
        struct tcp_side *from = flow->from;
        if (from->watched) { /* else it is told when watching begins */
            tcp_poll_change(&tcp->worker->tcp_poll, from->fd, &from->item, from->waits_for_room);
        }
        return true;
    }
    if (moved == TCP_TO_RESET && !flow->done) {
        struct tcp_flow *other = flow == &tcp->up ? &tcp->down : &tcp->up;
        sink_lost(tcp, flow);
        if (!other->done) {
            return tcp_move(tcp, other); /* until that ends, too */
        }
    }
    const struct tcp_side *lost = moved == TCP_FROM_RESET ? flow->from : flow->to;
    tcp->reset = true;
    tcp_end(tcp, lost == &tcp->client ? EXCHANGE_END_CLIENT : EXCHANGE_END_ENDPOINT);
    return false;
}

/* After moving: pass on the end of a flow, or end when both have. */
static void tcp_moved(struct tcp *tcp, const struct tcp_flow *flow)
{
    if (LIKELY(!flow->done)) {
        return;
    }
    if (tcp->up.done && tcp->down.done) {
        tcp_end(tcp, EXCHANGE_END_NONE);
        return;
    }
    if (!flow->to->shut) {
        flow->to->shut = true;
        (void)shutdown(flow->to->fd, SHUT_WR); /* fails when the peer is gone: reading tells */
        tcp->active_ms = worker_now(tcp->worker);
        tcp_set_limit(tcp);
    }
}

void tcp_run(struct tcp *tcp, struct tcp_flow *flow)
{
    if (tcp_move(tcp, flow)) {
        tcp_moved(tcp, flow);
    }
}

/* ---- events ---- */

static void side_note(struct tcp_side *side, uint32_t events)
{
    if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) {
        side->readable = true;
        side->fin = side->fin || (events & EPOLLRDHUP) != 0;
        side->urgent = side->urgent || (events & EPOLLPRI) != 0;
        side->failed = side->failed || (events & (EPOLLERR | EPOLLHUP)) != 0;
    }
}

/* Room in this side, and input from it. */
static void side_run(struct tcp *tcp, struct tcp_side *side, uint32_t events)
{
    struct tcp_flow *to = side == &tcp->client ? &tcp->down : &tcp->up;
    struct tcp_flow *from = side == &tcp->client ? &tcp->up : &tcp->down;
    if ((events & EPOLLOUT) != 0 && to->full) {
        to->full = false;
        tcp_run(tcp, to);
    }
    if (tcp->state == TCP_OPEN && side->readable) {
        tcp_run(tcp, from);
    }
}

static void on_client_events(struct tcp_poll_item *item, uint32_t events)
{
    struct tcp *tcp = CONTAINER_OF(item, struct tcp, client.item);
    side_note(&tcp->client, events);
    if (LIKELY(tcp->state == TCP_OPEN)) {
        side_run(tcp, &tcp->client, events);
    } else if (tcp->state != TCP_GONE && (events & EPOLLERR) != 0) {
        tcp_end(tcp, EXCHANGE_END_CLIENT); /* it will not be there when the endpoint is */
    }
}

static void on_upstream_events(struct tcp_poll_item *item, uint32_t events)
{
    struct tcp *tcp = CONTAINER_OF(item, struct tcp, upstream.item);
    if (UNLIKELY(tcp->state == TCP_CONNECTING)) {
        if ((events & (EPOLLERR | EPOLLHUP)) != 0) {
            tcp_connect_failed(tcp, REASON_CONNECT_FAILED);
            return;
        }
        if ((events & EPOLLOUT) == 0) {
            return;
        }
        if (!tcp_open(tcp)) {
            tcp_connect_failed(tcp, REASON_CONNECT_FAILED);
            return;
        }
    }
    if (tcp->state == TCP_OPEN) {
        side_note(&tcp->upstream, events);
        side_run(tcp, &tcp->upstream, events);
    }
}

/* Peers that vanish without a word are found out by the kernel. */
static void settle(struct tcp *tcp)
{
    int on = 1;
    tcp->settled = true;
    /* The client's socket has it from its listener. Without it: as long as the limit on silence. */
    (void)setsockopt(tcp->upstream.fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
}

void tcp_timeout(struct tcp *tcp)
{
    if (tcp->state == TCP_CONNECTING) {
        tcp_connect_failed(tcp, REASON_CONNECT_TIMEOUT);
        return;
    }
    if (tcp->state == TCP_OPEN) {
        count_traffic(tcp);
        if (!tcp->settled) {
            settle(tcp);
        }
        tcp_set_limit(tcp);
    }
}

/* ---- the beginning and the end of many ---- */

static void on_turn(struct waiter *waiter)
{
    tcp_try(CONTAINER_OF(waiter, struct tcp, waiter));
}

struct tcp *tcp_new(struct worker *worker, const struct acceptor *acceptor, int fd)
{
    struct tcp *tcp = pool_take(&worker->tcp_pool);
    memset(tcp, 0, sizeof(*tcp));
    tcp->worker = worker;
    tcp->acceptor = acceptor;
    tcp->client =
        (struct tcp_side){.item = {on_client_events}, .fd = fd, .readable = true, .nodelay = true};
    tcp->upstream = (struct tcp_side){.item = {on_upstream_events}, .fd = -1};
    tcp->up.from = tcp->down.to = &tcp->client;
    tcp->up.to = tcp->down.from = &tcp->upstream;
    tcp->timer.kind = WHEEL_TCP;
    tcp->waiter.on_turn = on_turn;
    tcp->state = TCP_WAITING;
    worker_client_opened(worker);
    DL_APPEND(worker->tcps, tcp);
    return tcp;
}

void tcp_cut(struct worker *worker, const struct tcp_port *port, const struct route *keep)
{
    struct tcp *tcp;
    struct tcp *next;
    DL_FOREACH_SAFE (worker->tcps, tcp, next) {
        if (tcp->acceptor->tcp == port && (keep == NULL || tcp->rule->route != keep)) {
            tcp_end(tcp, EXCHANGE_END_PROXY);
        }
    }
}

void tcp_close_all(struct worker *worker)
{
    while (worker->tcps != NULL) {
        tcp_end(worker->tcps, EXCHANGE_END_PROXY);
    }
}
