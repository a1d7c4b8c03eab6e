/*
 * Edge-triggered readiness of sockets that libuv never sees: one epoll set per worker, which the
 * loop watches as a single descriptor.
 *
 * A socket costs one system call to register, one more when it is full for the first time, and none
 * ever after: no changes of masks for back-pressure, no removal before it is closed. Events tell of
 * changes only, so who handles one remembers what it told and reads until there is nothing more.
 *
 * An item may be closed while an event of the same batch waits for it: its memory has to live until
 * the batch is over (worker_defer), and what comes meanwhile is the item's to ignore.
 * Thread: the worker's.
 */
#ifndef SKEIN_NODE_PROXY_TCP_POLL_H
#define SKEIN_NODE_PROXY_TCP_POLL_H

#include "node/base/defs.h"

#include <uv.h>

struct worker;

/* Embedded in what a socket belongs to. */
struct tcp_poll_item {
    /* events: as epoll_wait gives them. May do everything but free the item's memory. */
    void (*on_events)(struct tcp_poll_item *item, uint32_t events);
};

struct tcp_poll {
    uv_poll_t poll;
    struct worker *worker;
    int fd;
};

void tcp_poll_init(struct tcp_poll *poll, struct worker *worker);
/* Idempotent. Every item is closed by then. */
void tcp_poll_close(struct tcp_poll *poll);

/* Watch the socket for input and ends, and for room when asked for; what is true already is told as
 * well. Closing it ends that. False: no memory, or too many are watched (errno). */
MUST_CHECK bool tcp_poll_add(struct tcp_poll *poll, int fd, struct tcp_poll_item *item, bool room);

/* The same of one that is watched: tells anew what is true, in the next turn of the loop. */
void tcp_poll_change(struct tcp_poll *poll, int fd, struct tcp_poll_item *item, bool room);

/* Before the socket goes to another owner. */
void tcp_poll_remove(struct tcp_poll *poll, int fd);

#endif
