/*
 * One direction of a TCP connection: from one socket to the other; see tcp.h.
 *
 * With edge-triggered events a short read says that the source has nothing more until the next
 * event, and one that follows an announced end says that the end comes next: both save the read
 * that would say so. Neither holds beside urgent data, where reads stop at the mark, or when an
 * error waits.
 */
#include "node/proxy/tcp.h"

#include "node/net/proxy_header.h"

#include <errno.h>
#include <netinet/tcp.h>

enum {
    COPIES_PER_EVENT = 4,     /* of up to 64 KiB */
    LARGE_BYTES = 16384,      /* a piece from this size on is part of a bulk transfer */
    ONE_SEGMENT_BYTES = 1200, /* leaves at once as the first one, also without TCP_NODELAY */
    STREAK_MAX = INT32_MAX / 2,
    EARLY_BYTES = 8192, /* taken of what a client sent before its endpoint was connected to */
};

/*
 * Send; how much was taken, 0: nothing now, -1: it failed. When these bytes are the last ones, the
 * end that follows in this event leaves with them, in one packet.
 */
static ssize_t flow_send(struct tcp_flow *flow, const char *bytes, size_t len)
{
    int how = flow->ended ? MSG_NOSIGNAL | MSG_MORE : MSG_NOSIGNAL;
    struct tcp_side *to = flow->to;
    if (!to->nodelay && (to->sent || len > ONE_SEGMENT_BYTES)) {
        int on = 1;
        to->nodelay = true;
        (void)setsockopt(to->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); /* slower without */
    }
    to->sent = true;
    ssize_t n;
    do {
        n = send(to->fd, bytes, len, how);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        return errno == EAGAIN ? 0 : -1;
    }
    flow->bytes += (uint64_t)n;
    return n;
}

/* Have room in the sink told from now on; once per socket. */
static void flow_block(struct tcp *tcp, struct tcp_flow *flow)
{
    flow->full = true;
    if (!flow->to->waits_for_room) {
        flow->to->waits_for_room = true;
        if (flow->to->watched) { /* else it is asked for when watching begins */
            tcp_poll_change(&tcp->worker->tcp_poll, flow->to->fd, &flow->to->item, true);
        }
    }
}

/* Send what is held. False: not all of it went. */
static bool flow_flush(struct tcp *tcp, struct tcp_flow *flow, enum tcp_moved *ret_moved)
{
    struct chunk *held = flow->held;
    ssize_t n = flow_send(flow, held->bytes + held->start, held->end - held->start);
    if (n < 0) {
        *ret_moved = TCP_TO_RESET;
        return false;
    }
    held->start += (uint32_t)n;
    if (held->start != held->end) {
        flow_block(tcp, flow);
        *ret_moved = TCP_MOVED;
        return false;
    }
    chunk_put(&tcp->worker->chunks, held);
    flow->held = NULL;
    return true;
}

static void flow_keep(struct tcp *tcp, struct tcp_flow *flow, const char *bytes, size_t len)
{
    struct chunk *held = chunk_take(&tcp->worker->chunks, len);
    memcpy(held->bytes, bytes, len);
    held->end = (uint32_t)len;
    flow->held = held;
}

/* The rest waits for room in the sink. */
static void flow_hold(struct tcp *tcp, struct tcp_flow *flow, const char *bytes, size_t len)
{
    flow_keep(tcp, flow, bytes, len);
    flow_block(tcp, flow);
}

/* What the last piece says about how much flows. */
static void flow_count(struct tcp_flow *flow, size_t len)
{
    flow->streak = len < LARGE_BYTES ? 0 : MIN(flow->streak + (uint32_t)len, (uint32_t)STREAK_MAX);
}

/* One read and one send. True: go on. */
static bool flow_copy(struct tcp *tcp, struct tcp_flow *flow, enum tcp_moved *ret_moved)
{
    struct tcp_side *from = flow->from;
    char *scratch = tcp->worker->scratch;
    ssize_t n = recv(from->fd, scratch, WORKER_SCRATCH_BYTES, 0);
    if (UNLIKELY(n <= 0)) {
        if (n < 0 && errno == EINTR) {
            return true;
        }
        from->readable = false;
        flow->ended = n == 0;
        *ret_moved = n == 0 || errno == EAGAIN ? TCP_MOVED : TCP_FROM_RESET;
        return false;
    }
    if (n < WORKER_SCRATCH_BYTES && !from->urgent && !from->failed) {
        from->readable = false;
        flow->ended = from->fin;
    }
    flow_count(flow, (size_t)n);
    ssize_t sent = flow_send(flow, scratch, (size_t)n);
    if (UNLIKELY(sent < n)) {
        if (sent < 0) {
            *ret_moved = TCP_TO_RESET;
            return false;
        }
        flow_hold(tcp, flow, scratch + sent, (size_t)(n - sent));
        *ret_moved = TCP_MOVED;
        return false;
    }
    return true;
}

static void flow_end_splice(struct tcp *tcp, struct tcp_flow *flow)
{
    splice_pipe_put(&tcp->worker->pipes, flow->pipe);
    flow->pipe = NULL;
}

static enum tcp_moved flow_splice(struct tcp *tcp, struct tcp_flow *flow)
{
    uint64_t left = UINT64_MAX;
    size_t moved = 0;
    enum splice_result result =
        splice_move(flow->pipe, flow->from->fd, flow->to->fd, &left, &moved);
    flow->bytes += moved;
    flow->to->sent = true;
    switch (result) {
    case SPLICE_MOVED:
    case SPLICE_DONE: /* there is no end to what was asked for */
        return TCP_MOVED_MORE;
    case SPLICE_FULL:
        flow_block(tcp, flow);
        return TCP_MOVED;
    case SPLICE_DRY:
        flow->from->readable = false;
        flow_count(flow, moved);
        flow_end_splice(tcp, flow);
        return TCP_MOVED;
    case SPLICE_EOF:
        flow->from->readable = false;
        flow->ended = true;
        flow_end_splice(tcp, flow);
        return TCP_MOVED;
    case SPLICE_IN_ERROR:
        flow->from->readable = false;
        return TCP_FROM_RESET;
    case SPLICE_OUT_ERROR:
        return TCP_TO_RESET;
    }
    UNREACHABLE("splice result");
}

/* Through the kernel from now on, when there is a pipe for it. */
static bool flow_begin_splice(struct tcp *tcp, struct tcp_flow *flow)
{
    flow->pipe = splice_pipe_take(&tcp->worker->pipes);
    flow->streak = flow->pipe != NULL ? flow->streak : 0; /* look again after as much */
    if (flow->pipe != NULL && !flow->to->nodelay) {
        int on = 1;
        flow->to->nodelay = true;
        (void)setsockopt(flow->to->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); /* as above */
    }
    return flow->pipe != NULL;
}

static enum tcp_moved flow_move(struct tcp *tcp, struct tcp_flow *flow)
{
    enum tcp_moved moved = TCP_MOVED;
    if (flow->held != NULL && !flow_flush(tcp, flow, &moved)) {
        return moved;
    }
    for (int i = 0; flow->from->readable || flow->pipe != NULL; i++) {
        if (flow->pipe != NULL ||
            (flow->streak > SPLICE_WORTH_BYTES && flow_begin_splice(tcp, flow))) {
            return flow_splice(tcp, flow);
        }
        if (i == COPIES_PER_EVENT) {
            return TCP_MOVED_MORE;
        }
        if (!flow_copy(tcp, flow, &moved)) {
            return moved;
        }
    }
    return TCP_MOVED;
}

enum tcp_moved tcp_flow_move(struct tcp *tcp, struct tcp_flow *flow)
{
    if (flow->done || flow->full) {
        return TCP_MOVED;
    }
    enum tcp_moved moved = flow_move(tcp, flow);
    flow->done = flow->ended && flow->held == NULL && flow->pipe == NULL;
    return moved;
}

void tcp_flow_drop(struct tcp *tcp, struct tcp_flow *flow)
{
    if (flow->held != NULL) {
        chunk_put(&tcp->worker->chunks, flow->held);
        flow->held = NULL;
    }
    if (flow->pipe != NULL) {
        flow_end_splice(tcp, flow);
    }
}

size_t tcp_take_early(struct tcp *tcp)
{
    struct tcp_side *client = &tcp->client;
    if (!client->readable || tcp->up.held != NULL) {
        return 0;
    }
    ssize_t n = recv(client->fd, tcp->worker->scratch, EARLY_BYTES, 0);
    /* An end or an error is met again once the endpoint is there; so is what was announced while
     * the client was watched already. Of one that is not, all is told when watching begins. */
    client->readable = n == 0 || n == EARLY_BYTES || (n < 0 && errno != EAGAIN) || client->fin ||
                       client->urgent || client->failed;
    return n > 0 ? (size_t)n : 0;
}

int tcp_send_early(struct tcp *tcp, size_t len)
{
    const char *bytes = tcp->worker->scratch;
    ssize_t n = send(tcp->upstream.fd, bytes, len, MSG_NOSIGNAL);
    int error = n < 0 ? errno : 0;
    size_t sent = n > 0 ? (size_t)n : 0;
    tcp->up.bytes += sent;
    tcp->upstream.sent = sent != 0;
    if (sent < len) {
        flow_keep(tcp, &tcp->up, bytes + sent, len - sent);
    }
    return error == EINTR ? EAGAIN : error;
}

int tcp_send_kept(struct tcp *tcp)
{
    struct chunk *held = tcp->up.held;
    ssize_t n =
        send(tcp->upstream.fd, held->bytes + held->start, held->end - held->start, MSG_NOSIGNAL);
    if (n < 0) {
        return errno == EINTR ? EAGAIN : errno;
    }
    tcp->up.bytes += (size_t)n;
    tcp->upstream.sent = n != 0;
    held->start += (uint32_t)n;
    if (held->start == held->end) {
        chunk_put(&tcp->worker->chunks, held);
        tcp->up.held = NULL;
    }
    return 0;
}

void tcp_flow_keep(struct tcp *tcp, const char *bytes, size_t len)
{
    flow_keep(tcp, &tcp->up, bytes, len);
}

void tcp_keep_early(struct tcp *tcp, size_t len)
{
    if (len != 0) {
        flow_keep(tcp, &tcp->up, tcp->worker->scratch, len);
    }
}

bool tcp_send_header(struct tcp *tcp, enum proxy_protocol_version version)
{
    char header[PROXY_HEADER_OUT_MAX + 1];
    if (tcp->local.sa.sa_family == AF_UNSPEC) {
        struct sockaddr_storage local;
        socklen_t len = sizeof(local);
        if (getsockname(tcp->client.fd, (struct sockaddr *)&local, &len) == 0) {
            addr_from_sockaddr((struct sockaddr *)&local, &tcp->local);
        }
    }
    size_t len = version == PROXY_PROTOCOL_V1 ? proxy_header_v1(header, &tcp->peer, &tcp->local)
                                              : proxy_header_v2(header, &tcp->peer, &tcp->local);
    tcp->upstream.sent = true;
    /* The first bytes of a connection fit into any socket. */
    return send(tcp->upstream.fd, header, len, MSG_NOSIGNAL) == (ssize_t)len;
}
