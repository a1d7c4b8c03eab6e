/*
 * TCP connections: a place at an endpoint, the connect, and another endpoint when it fails; see
 * tcp.h.
 */
#include "node/proxy/tcp.h"

#include <errno.h>
#include <netinet/tcp.h>

/* Not given this connection again. */
static void mark_tried(struct tcp *tcp)
{
    ASSERT(tcp->tried_count < EXCHANGE_TRIED_MAX);
    endpoint_ref(tcp->endpoint);
    tcp->tried[tcp->tried_count++] = tcp->endpoint;
}

/* The connect came to nothing. True: another endpoint may be tried. */
static bool connect_lost(struct tcp *tcp, enum reason reason)
{
    struct worker *worker = tcp->worker;
    struct backend_slot *slot = tcp_slot(tcp);
    uint64_t now_ms = worker_now(worker);
    tcp->failure = reason;
    tcp_side_close(&tcp->upstream, false);
    tcp->upstream = (struct tcp_side){.item = tcp->upstream.item, .fd = -1};
    wheel_clear(&worker->wheel, &tcp->timer);
    counter_add(&slot->connect_errors, 1);
    stat_add(&worker->stats,
             reason == REASON_CONNECT_TIMEOUT ? STAT_CONNECT_TIMEOUT : STAT_CONNECT_FAILED, 1);
    if (reason != REASON_OVERLOAD) {
        worker_online(worker);
        endpoint_connect_failed(tcp->endpoint, now_ms);
        backend_failed(tcp->backend, tcp->endpoint, now_ms);
    }
    if (tcp->retries_left == 0) {
        return false;
    }
    if (!retry_take(&slot->budget, now_ms)) {
        counter_add(&slot->retries_refused, 1);
        return false;
    }
    tcp->retries_left--;
    mark_tried(tcp);
    tcp_leave_endpoint(tcp);
    stat_add(&worker->stats, STAT_RETRIES, 1);
    counter_add(&slot->retries, 1);
    return true;
}

static bool watch_client(struct tcp *tcp)
{
    struct tcp_side *side = &tcp->client;
    side->watched =
        side->watched || tcp_poll_add(&tcp->worker->tcp_poll, side->fd, &side->item, false);
    return side->watched;
}

bool tcp_open(struct tcp *tcp)
{
    struct worker *worker = tcp->worker;
    struct tcp_side *upstream = &tcp->upstream;
    endpoint_connected(tcp->endpoint);
    worker_online(worker);
    enum proxy_protocol_version version = backend_endpoints(tcp->backend)->policy.proxy_protocol;
    if (version != PROXY_PROTOCOL_OFF && !tcp_send_header(tcp, version)) {
        return false;
    }
    tcp->state = TCP_OPEN;
    tcp->failure = REASON_NONE;
    tcp->connected_ns = tcp->logged ? uv_hrtime() : 0;
    tcp->active_ms = worker_now(worker);
    stat_add(&worker->stats, STAT_UPSTREAM_OPENED, 1);
    if (tcp->timer.deadline_ms != 0) {
        wheel_clear(&worker->wheel, &tcp->timer); /* of the connect: it would come too early */
    }
    tcp_set_limit(tcp);
    if (tcp->state == TCP_OPEN) {
        tcp_run(tcp, &tcp->up);
    }
    /* Only now: what was there already needs no event. */
    if (tcp->state == TCP_OPEN && !upstream->watched) {
        upstream->watched = tcp_poll_add(&worker->tcp_poll, upstream->fd, &upstream->item,
                                         upstream->waits_for_room);
    }
    if (tcp->state == TCP_OPEN && (!upstream->watched || !watch_client(tcp))) {
        tcp_end(tcp, EXCHANGE_END_RESOURCE);
    }
    return true;
}

static bool is_local(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM ||
           error == EADDRNOTAVAIL;
}

/* The connect is under way: wait for it. */
static enum reason await_connect(struct tcp *tcp)
{
    struct tcp_side *upstream = &tcp->upstream;
    upstream->watched = tcp_poll_add(&tcp->worker->tcp_poll, upstream->fd, &upstream->item, true);
    upstream->waits_for_room = true;
    if (!upstream->watched) {
        return REASON_OVERLOAD;
    }
    worker_deadline(tcp->worker, &tcp->timer, tcp->timeouts.connect_ms);
    return REASON_NONE;
}

/* Begin a connect to the endpoint at which it has a place. REASON_NONE: it is under way or done. */
static enum reason tcp_connect(struct tcp *tcp)
{
    const struct addr *addr = &tcp->endpoint->addr;
    struct tcp_side *upstream = &tcp->upstream;
    tcp->state = TCP_CONNECTING;
    tcp->sent_ns = tcp->logged ? uv_hrtime() : 0;
    upstream->fd = socket(addr->sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (upstream->fd < 0) {
        return REASON_OVERLOAD;
    }
    bool introduced = backend_endpoints(tcp->backend)->policy.proxy_protocol != PROXY_PROTOCOL_OFF;
    size_t early = introduced ? 0 : tcp_take_early(tcp);
    bool kept = !introduced && tcp->up.held != NULL;
    if (early != 0 || kept) {
        /* The handshake is completed by the bytes themselves instead of an empty segment. */
        int off = 0;
        (void)setsockopt(upstream->fd, IPPROTO_TCP, TCP_QUICKACK, &off, sizeof(off));
    }
    int error = connect(upstream->fd, &addr->sa, addr_len(addr)) == 0 ? 0 : errno;
    if (error == EINPROGRESS && (early != 0 || kept)) {
        error = early != 0 ? tcp_send_early(tcp, early) : tcp_send_kept(tcp);
        error = error == EAGAIN ? EINPROGRESS : error;
    } else {
        tcp_keep_early(tcp, early);
    }
    if (error == 0) {
        return tcp_open(tcp) ? REASON_NONE : REASON_CONNECT_FAILED;
    }
    if (error != EINPROGRESS) {
        return is_local(error) ? REASON_OVERLOAD : REASON_CONNECT_FAILED;
    }
    return await_connect(tcp);
}

/* A place at some endpoint; else it waits, or is over. */
static bool find_place(struct tcp *tcp)
{
    const struct place_ask ask = {
        .backend = tcp->backend,
        .hash = tcp->hash,
        .tried = tcp->tried,
        .tried_count = tcp->tried_count,
        .queue_ms = tcp->timeouts.queue_ms,
    };
    struct endpoint *endpoint = NULL;
    switch (place_seek(tcp->worker, &ask, &tcp->waiter, &endpoint)) {
    case PLACE_TAKEN:
        endpoint_ref(endpoint);
        tcp->endpoint = endpoint;
        return true;
    case PLACE_WAITING:
        tcp->state = TCP_WAITING;
        if (!watch_client(tcp)) { /* it may go away meanwhile */
            tcp_fail(tcp, REASON_OVERLOAD);
        }
        return false;
    case PLACE_FULL:
        tcp_fail(tcp, REASON_QUEUE_FULL);
        return false;
    case PLACE_LATE:
        tcp_fail(tcp, REASON_QUEUE_TIMEOUT);
        return false;
    case PLACE_NONE:
        tcp_fail(tcp, tcp->failure == REASON_NONE ? REASON_NO_ENDPOINT : tcp->failure);
        return false;
    }
    UNREACHABLE("place");
}

void tcp_try(struct tcp *tcp)
{
    while (find_place(tcp)) {
        enum reason reason = tcp_connect(tcp);
        if (reason == REASON_NONE) {
            return;
        }
        if (!connect_lost(tcp, reason)) {
            tcp_fail(tcp, reason);
            return;
        }
    }
}

void tcp_connect_failed(struct tcp *tcp, enum reason reason)
{
    if (connect_lost(tcp, reason)) {
        tcp_try(tcp);
    } else {
        tcp_fail(tcp, reason);
    }
}
