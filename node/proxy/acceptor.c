/*
 * Listening sockets of a worker; see acceptor.h.
 */
#include "node/proxy/acceptor.h"

#include "node/base/log.h"
#include "node/proxy/client.h"
#include "node/proxy/greet.h"
#include "node/proxy/hello.h"
#include "node/proxy/proxy_int.h"
#include "node/proxy/tcp.h"
#include "node/proxy/worker.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <unistd.h>
#include <utlist.h>

enum {
    ACCEPTS_PER_EVENT = 4,
    PATIENCE = 16, /* an accept in vain costs as much as several events */
    BACKLOG = 4096,
};

static int listen_failed(int fd, const struct addr *addr, const char *what, struct err_info *err)
{
    int error = errno;
    if (fd >= 0) {
        (void)close(fd);
    }
    char text[ADDR_TEXT_MAX];
    return err_set(err, error == EADDRINUSE ? RC_BUSY : RC_IO, "cannot listen on %s: %s: %s",
                   addr_format(addr, text), what, strerror(error));
}

int acceptor_probe(const struct addr *addr, struct err_info *err)
{
    int fd = socket(addr->sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return listen_failed(fd, addr, "socket", err);
    }
    int on = 1;
    /* TIME_WAIT is no conflict, a listener is. A failure shows in bind. */
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (addr->sa.sa_family == AF_INET6) {
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
    }
    if (bind(fd, &addr->sa, addr_len(addr)) != 0) {
        return listen_failed(fd, addr, "bind", err);
    }
    (void)close(fd); /* was never connected */
    return RC_OK;
}

int acceptor_listen(const struct addr *addr, int *ret_fd, struct addr *ret_addr,
                    struct err_info *err)
{
    int fd = socket(addr->sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return listen_failed(fd, addr, "socket", err);
    }
    int on = 1;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) != 0) {
        return listen_failed(fd, addr, "socket option", err);
    }
    if (addr->sa.sa_family == AF_INET6) {
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)); /* "[::]" means IPv6 */
    }
    /* Inherited by accept; the second finds out clients that vanished without a word. */
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    if (bind(fd, &addr->sa, addr_len(addr)) != 0) {
        return listen_failed(fd, addr, "bind", err);
    }
    if (listen(fd, BACKLOG) != 0) {
        return listen_failed(fd, addr, "listen", err);
    }
    struct sockaddr_storage got;
    socklen_t len = sizeof(got);
    if (getsockname(fd, (struct sockaddr *)&got, &len) != 0) {
        return listen_failed(fd, addr, "getsockname", err);
    }
    addr_from_sockaddr((struct sockaddr *)&got, ret_addr);
    *ret_fd = fd;
    return RC_OK;
}

/* One connection; false: none waits, or accepting was paused. */
static bool accept_one(struct acceptor *acceptor)
{
    struct worker *worker = acceptor->worker;
    struct sockaddr_storage from;
    socklen_t len = sizeof(from);
    if (acceptor->tls && hello_is_full(worker)) {
        acceptor_pause(acceptor); /* more handshakes at once would only make all of them late */
        return false;
    }
    int fd = accept4(acceptor->fd, (struct sockaddr *)&from, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            static _Thread_local struct log_limit limit;
            uint32_t suppressed;
            if (log_limit_pass(&limit, 1, &suppressed)) {
                log_warn("accepting is paused", "reason=\"%s\"", strerror(errno));
            }
            stat_add(&worker->stats, STAT_CLIENT_REFUSED, 1);
            acceptor_pause(acceptor);
        }
        return false;
    }
    struct addr peer;
    addr_from_sockaddr((struct sockaddr *)&from, &peer);
    counter_add(&acceptor->accepted, 1);
    if (UNLIKELY(cidr_set_has(worker->proxy->proxy_trusted, &peer))) {
        greet_accept(worker, acceptor, fd, &peer);
    } else if (acceptor->tcp != NULL) {
        tcp_accept(worker, acceptor, fd, &peer, NULL);
    } else if (acceptor->tls) {
        hello_accept(worker, acceptor, fd, &peer, NULL);
    } else {
        client_accept(worker, acceptor, fd, &peer, NULL);
    }
    return true;
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    (void)status; /* an error shows in accept */
    (void)events; /* only one kind was asked for */
    struct acceptor *acceptor = poll->data;
    struct worker *worker = acceptor->worker;
    bool follows = acceptor->last_turn + 1 >= worker->turn;
    if (acceptor->patience != 0) {
        acceptor->patience--;
        follows = false;
    }
    acceptor->budget = follows ? MIN(acceptor->budget * 2, (uint32_t)ACCEPTS_PER_EVENT) : 1;
    acceptor->last_turn = worker->turn;
    for (uint32_t i = 0; i < acceptor->budget && !acceptor->paused && !acceptor->closed; i++) {
        if (!accept_one(acceptor)) {
            acceptor->budget = 1;
            acceptor->patience = PATIENCE;
            break;
        }
        if (worker->client_count >= worker->clients_max) {
            stat_add(&worker->stats, STAT_CLIENT_REFUSED, 1);
            acceptor_pause(acceptor);
        }
    }
    worker_settle(worker);
}

void acceptor_start(struct acceptor *acceptor, struct worker *worker)
{
    acceptor->worker = worker;
    acceptor->poll.data = acceptor;
    int rc = uv_poll_init(&worker->loop, &acceptor->poll, acceptor->fd);
    ASSERT(rc == 0);
    acceptor->budget = 1;
    acceptor->opened = true;
    DL_APPEND(worker->listening, acceptor);
    rc = uv_poll_start(&acceptor->poll, UV_READABLE, on_readable);
    ASSERT(rc == 0);
}

void acceptor_pause(struct acceptor *acceptor)
{
    if (!acceptor->paused && !acceptor->closed) {
        acceptor->paused = true;
        counter_add(&acceptor->paused_count, 1);
        acceptor->worker->accepting_paused = true;
        (void)uv_poll_stop(&acceptor->poll); /* always 0 */
        worker_tick_soon(acceptor->worker);  /* which resumes it */
    }
}

void acceptor_resume(struct acceptor *acceptor)
{
    if (acceptor->paused && !acceptor->closed) {
        acceptor->paused = false;
        int rc = uv_poll_start(&acceptor->poll, UV_READABLE, on_readable);
        ASSERT(rc == 0);
    }
}

/* HTTP's are embedded in what outlives the loop. */
static void on_closed(uv_handle_t *handle)
{
    struct acceptor *acceptor = handle->data;
    tcp_port_unref(acceptor->tcp);
}

void acceptor_abandon(struct acceptor *acceptor)
{
    if (acceptor->closed) {
        return;
    }
    acceptor->closed = true;
    DL_DELETE(acceptor->worker->listening, acceptor);
    uv_close((uv_handle_t *)&acceptor->poll, on_closed);
    /* At once: what is queued from here on would be reset by the close. */
    (void)close(acceptor->fd); /* a listening socket has nothing to tell */
    acceptor->fd = -1;
}

void acceptor_close(struct acceptor *acceptor)
{
    struct worker *worker = acceptor->worker;
    /* What the kernel already queued would be reset (tcp_migrate_req is off by default). */
    while (!acceptor->closed && worker->client_count < worker->clients_max &&
           accept_one(acceptor)) {
    }
    acceptor_abandon(acceptor);
}
