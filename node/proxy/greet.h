/*
 * Connections that begin with a PROXY header: it is read before they are anything else.
 *
 * Only those of peers in the trusted networks come here (proxy_config.proxy_trusted). The header is
 * looked at in the kernel's buffer and taken out exactly, so what follows it is untouched and the
 * connection goes on as any other, with the addresses that the header tells. What is missing,
 * malformed or late ends it, and is counted.
 * Thread: the worker's.
 */
#ifndef SKEIN_NODE_PROXY_GREET_H
#define SKEIN_NODE_PROXY_GREET_H

#include "node/base/addr.h"
#include "node/proxy/sock.h"
#include "node/proxy/tcp_poll.h"
#include "node/proxy/wheel.h"

struct acceptor;
struct tcp_port;

/* One whose header is not complete yet. */
struct greet {
    struct tcp_poll_item item;
    int fd; /* -1: over */
    struct worker *worker;
    struct acceptor *acceptor;
    struct greet *prev; /* utlist: the worker's */
    struct greet *next;
    struct addr peer;
    struct wheel_entry timer;
    struct task end; /* frees it */
};

/* Take an accepted descriptor. */
void greet_accept(struct worker *worker, struct acceptor *acceptor, int fd,
                  const struct addr *peer);

/* The wheel fired its entry: too late. */
void greet_timeout(struct greet *greet);

/* Close those of a port; NULL: all. */
void greet_cut(struct worker *worker, const struct tcp_port *port);

#endif
