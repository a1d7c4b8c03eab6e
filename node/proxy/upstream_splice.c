/*
 * Large response bodies, moved from socket to socket inside the kernel (splice.h).
 *
 * Begun when a read shows that much comes at once and a body of known length has much to go; ended
 * with the body. In between nothing of the response is read by libuv: it says that there is
 * something, and the bytes pass by. When the client takes no more, a little is taken out of the
 * pipe and waits in its socket as all other bytes do, and what is left in the pipe goes on when
 * that is through.
 */
#include "node/proxy/upstream_int.h"

#include <errno.h>

enum { TAIL_BYTES = 4096 };

void upstream_begin_splice(struct upstream *up)
{
    struct exchange *exchange = up->side.exchange;
    if (exchange == NULL || up->state != UPSTREAM_BUSY || !up->head_done || up->pipe != NULL ||
        up->tls != NULL || up->body.framing != H1_BODY_LENGTH ||
        h1_body_run(&up->body) < SPLICE_WORTH_BYTES ||
        exchange->client->ops->raw(exchange->client) == NULL) {
        return;
    }
    up->pipe = splice_pipe_take(&up->sock.worker->pipes);
    sock_leave_unread(&up->sock, up->pipe != NULL);
}

void upstream_end_splice(struct upstream *up)
{
    if (up->pipe != NULL) {
        splice_pipe_put(&up->sock.worker->pipes, up->pipe);
        up->pipe = NULL;
        sock_leave_unread(&up->sock, false);
    }
}

/* Nothing more until the client's socket has written what waits there. */
static void wait_for_client(struct upstream *up, struct sock *to)
{
    up->held = true;
    sock_pause(&up->sock);
    sock_want_drain(to);
}

/* The client takes no more. */
static void wait_with_rest(struct upstream *up, struct sock *to)
{
    char tail[TAIL_BYTES];
    sock_write(to, tail, splice_take_out(up->pipe, tail, sizeof(tail)));
    wait_for_client(up, to);
}

void upstream_splice(struct upstream *up)
{
    struct exchange *exchange = up->side.exchange;
    struct sock *to = exchange == NULL ? NULL : exchange->client->ops->raw(exchange->client);
    if (to == NULL || up->state != UPSTREAM_BUSY) {
        return; /* one of both is about to end */
    }
    upstream_touch(up);
    if (sock_waiting(to) != 0) {
        wait_for_client(up, to);
        return;
    }
    uint64_t run = h1_body_run(&up->body), left = run;
    size_t moved = 0;
    enum splice_result result = splice_move(up->pipe, up->sock.fd, to->fd, &left, &moved);
    int error = errno;
    h1_body_skip(&up->body, run - left);
    exchange->bytes_out += run - left;
    to->sent += moved;
    switch (result) {
    case SPLICE_MOVED:
    case SPLICE_DRY:
        return;
    case SPLICE_FULL:
        wait_with_rest(up, to);
        return;
    case SPLICE_DONE:
        upstream_end_splice(up);
        /* Nobody saw whether something follows that belongs to no response. */
        upstream_response_done(up, sock_is_quiet(&up->sock) ? 0 : 1);
        return;
    case SPLICE_EOF:
        upstream_end_splice(up);
        up->sock.eof = true;
        up->sock.ops->on_eof(&up->sock);
        return;
    case SPLICE_IN_ERROR:
        upstream_end_splice(up);
        upstream_lose(up, LOST_CLOSED);
        return;
    case SPLICE_OUT_ERROR:
        upstream_end_splice(up);
        sock_pause(&up->sock); /* its bytes have nowhere to go */
        sock_fail(to, error);
        return;
    }
}
