/*
 * PROXY headers of accepted connections; see greet.h.
 */
#include "node/proxy/greet.h"

#include "node/base/mem.h"
#include "node/net/proxy_header.h"
#include "node/proxy/client.h"
#include "node/proxy/hello.h"
#include "node/proxy/tcp.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>
#include <utlist.h>

/* Take the header out of the socket. RC_AGAIN: not complete; else as proxy_header_parse. */
static int take_header(struct worker *worker, int fd, struct proxy_header *ret_header)
{
    ssize_t n = recv(fd, worker->scratch, PROXY_HEADER_MAX, MSG_PEEK);
    if (n <= 0) {
        return n < 0 && (errno == EAGAIN || errno == EINTR) ? RC_AGAIN : RC_CLOSED;
    }
    int rc = proxy_header_parse(worker->scratch, (size_t)n, ret_header);
    if (rc == RC_OK && recv(fd, worker->scratch, ret_header->len, 0) != (ssize_t)ret_header->len) {
        return RC_CLOSED; /* it was there a moment ago */
    }
    return rc;
}

/* It is as any other now. */
static void hand_over(struct worker *worker, struct acceptor *acceptor, int fd,
                      const struct addr *peer, const struct proxy_header *header)
{
    const struct addr *source = header->told ? &header->source : peer;
    const struct addr *local = header->told ? &header->destination : NULL;
    if (acceptor->tcp != NULL) {
        tcp_accept(worker, acceptor, fd, source, local);
    } else if (acceptor->tls) {
        hello_accept(worker, acceptor, fd, source, local);
    } else {
        client_accept(worker, acceptor, fd, source, local);
    }
}

static void refuse(struct worker *worker, int fd)
{
    stat_add(&worker->stats, STAT_PROXY_HEADER_FAULT, 1);
    (void)close(fd); /* nobody is there to be told */
}

static void on_end(struct task *task)
{
    struct greet *greet = CONTAINER_OF(task, struct greet, end);
    mem_free(greet);
}

/* Returns the descriptor. */
static int greet_end(struct greet *greet)
{
    struct worker *worker = greet->worker;
    int fd = greet->fd;
    greet->fd = -1;
    DL_DELETE(worker->greets, greet);
    wheel_clear(&worker->wheel, &greet->timer);
    worker_client_closed(worker);
    worker_defer(worker, &greet->end, on_end);
    return fd;
}

static void on_events(struct tcp_poll_item *item, uint32_t events)
{
    struct greet *greet = CONTAINER_OF(item, struct greet, item);
    struct worker *worker = greet->worker;
    if (greet->fd < 0) {
        return;
    }
    struct proxy_header header;
    int rc = take_header(worker, greet->fd, &header);
    if (rc == RC_AGAIN && (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) == 0) {
        return;
    }
    struct acceptor *acceptor = greet->acceptor;
    struct addr peer = greet->peer;
    int fd = greet_end(greet);
    if (rc == RC_OK) {
        tcp_poll_remove(&worker->tcp_poll, fd);
        hand_over(worker, acceptor, fd, &peer, &header);
    } else {
        refuse(worker, fd);
    }
}

void greet_timeout(struct greet *greet)
{
    struct worker *worker = greet->worker;
    refuse(worker, greet_end(greet));
}

void greet_accept(struct worker *worker, struct acceptor *acceptor, int fd, const struct addr *peer)
{
    struct proxy_header header;
    int rc = take_header(worker, fd, &header); /* most come with the first segment */
    if (rc == RC_OK) {
        hand_over(worker, acceptor, fd, peer, &header);
        return;
    }
    if (rc != RC_AGAIN) {
        refuse(worker, fd);
        return;
    }
    struct greet *greet = mem_new(sizeof(*greet));
    greet->item.on_events = on_events;
    greet->fd = fd;
    greet->worker = worker;
    greet->acceptor = acceptor;
    greet->peer = *peer;
    greet->timer.kind = WHEEL_GREET;
    DL_APPEND(worker->greets, greet);
    worker_client_opened(worker);
    worker_deadline(worker, &greet->timer, worker_defaults(worker)->timeouts.client_header_ms);
    if (!tcp_poll_add(&worker->tcp_poll, fd, &greet->item, false)) {
        greet_timeout(greet);
    }
}

void greet_cut(struct worker *worker, const struct tcp_port *port)
{
    struct greet *greet;
    struct greet *next;
    DL_FOREACH_SAFE (worker->greets, greet, next) {
        if (port == NULL || greet->acceptor->tcp == port) {
            (void)close(greet_end(greet)); /* not its fault */
        }
    }
}
