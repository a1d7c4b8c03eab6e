/*
 * A listening socket of one worker. Each worker has its own on the same address (SO_REUSEPORT).
 *
 * At the connection limit, or when the process is out of descriptors, accepting pauses: what waits
 * stays in the kernel's queue. Few connections are taken per event, so that established ones are
 * not kept waiting, and the queue is never chased to EAGAIN, which costs more than an accept.
 */
#ifndef SKEIN_NODE_PROXY_ACCEPTOR_H
#define SKEIN_NODE_PROXY_ACCEPTOR_H

#include "node/base/addr.h"
#include "node/base/errors.h"
#include "node/proxy/shared.h"

#include <uv.h>

struct tcp_port;
struct worker;

struct acceptor {
    uv_poll_t poll;
    struct worker *worker;
    struct acceptor *prev; /* utlist: the worker's */
    struct acceptor *next;
    struct tcp_port *tcp; /* NULL: for HTTP; a reference from start to the end of poll */
    int fd;
    bool tls; /* clients speak TLS */
    uint16_t port;
    char text[ADDR_TEXT_MAX]; /* where it listens */
    uint32_t budget;          /* connections per event: grows while events follow each other */
    uint32_t patience;        /* events to take one connection each: looking for more failed */
    uint64_t last_turn;       /* of the loop, that had an event */
    bool opened;              /* poll is initialised */
    bool paused;
    bool closed;

    /* Read by others. */
    struct counter accepted;
    struct counter paused_count; /* a connection or file limit was reached */
    struct counter open;         /* HTTP connections by it */
};

/* Is the address free? Sockets with SO_REUSEPORT would share it with another process silently.
 * RC_BUSY: it is in use; RC_IO: refused otherwise. Any thread. */
MUST_CHECK int acceptor_probe(const struct addr *addr, struct err_info *err);

/* A bound, listening descriptor into *ret_fd, and where it listens. Errors as above. */
MUST_CHECK int acceptor_listen(const struct addr *addr, int *ret_fd, struct addr *ret_addr,
                               struct err_info *err);

/* Begin on the worker's loop. */
void acceptor_start(struct acceptor *acceptor, struct worker *worker);
void acceptor_pause(struct acceptor *acceptor);
void acceptor_resume(struct acceptor *acceptor);

/* Accept what is queued already (up to the limit), then close. Idempotent. */
void acceptor_close(struct acceptor *acceptor);
/* Close at once. Idempotent. */
void acceptor_abandon(struct acceptor *acceptor);

#endif
