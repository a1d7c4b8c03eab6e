/*
 * Readiness beside libuv; see tcp_poll.h.
 */
#include "node/proxy/tcp_poll.h"

#include "node/proxy/worker.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
    EVENTS_PER_BATCH = 128, /* more come in the next one */
    BATCHES_PER_TURN = 4,   /* to look once more costs a third of a turn of the loop */
    WATCHED = EPOLLIN | EPOLLRDHUP | EPOLLPRI,
};

static void on_readable(uv_poll_t *handle, int status, int events)
{
    (void)status; /* an epoll descriptor has no errors */
    (void)events; /* only one kind was asked for */
    struct tcp_poll *poll = handle->data;
    struct epoll_event list[EVENTS_PER_BATCH];
    int count = 1;
    for (int batch = 0; batch < BATCHES_PER_TURN && count > 0; batch++) {
        count = epoll_wait(poll->fd, list, EVENTS_PER_BATCH, 0);
        for (int i = 0; i < count; i++) {
            struct tcp_poll_item *item = list[i].data.ptr;
            item->on_events(item, list[i].events);
        }
        worker_settle(poll->worker);
    }
}

void tcp_poll_init(struct tcp_poll *poll, struct worker *worker)
{
    poll->worker = worker;
    poll->fd = epoll_create1(EPOLL_CLOEXEC);
    ASSERT(poll->fd >= 0); /* at start, with descriptors set aside */
    int rc = uv_poll_init(&worker->loop, &poll->poll, poll->fd);
    ASSERT(rc == 0);
    poll->poll.data = poll;
    rc = uv_poll_start(&poll->poll, UV_READABLE, on_readable);
    ASSERT(rc == 0);
}

void tcp_poll_close(struct tcp_poll *poll)
{
    if (poll->fd >= 0) {
        uv_close((uv_handle_t *)&poll->poll, NULL); /* embedded in what outlives the loop */
        (void)close(poll->fd);
        poll->fd = -1;
    }
}

static int control(struct tcp_poll *poll, int how, int fd, struct tcp_poll_item *item, bool room)
{
    uint32_t events = room ? WATCHED | EPOLLOUT : WATCHED;
    struct epoll_event event = {.events = events | EPOLLET, .data.ptr = item};
    return epoll_ctl(poll->fd, how, fd, &event);
}

bool tcp_poll_add(struct tcp_poll *poll, int fd, struct tcp_poll_item *item, bool room)
{
    return control(poll, EPOLL_CTL_ADD, fd, item, room) == 0;
}

void tcp_poll_change(struct tcp_poll *poll, int fd, struct tcp_poll_item *item, bool room)
{
    int rc = control(poll, EPOLL_CTL_MOD, fd, item, room);
    ASSERT(rc == 0); /* it is watched */
}

void tcp_poll_remove(struct tcp_poll *poll, int fd)
{
    (void)epoll_ctl(poll->fd, EPOLL_CTL_DEL, fd, NULL); /* it is watched */
}
