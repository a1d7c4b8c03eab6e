/*
 * Connections on TLS listeners before it is known what they are: their ClientHello is gathered, and
 * the host that it names decides.
 *
 *   the bytes are                                what becomes of the connection
 *   a ClientHello for a passthrough host         a TCP connection to an endpoint, bytes untouched
 *   a ClientHello otherwise                      a client whose socket speaks TLS
 *   a ClientHello for nobody (strict, no cert)   alert unrecognized_name
 *   a broken or oversized one                    alert, closed
 *   plain HTTP                                   an answer that says so, closed
 *   something else, or nothing in time           closed
 *
 * Most hellos come in one piece and at once: then there is no object and no event. The rest waits
 * with what it has sent so far, up to TLS_HELLO_WIRE_MAX bytes and for the time that
 * proxy_tls.inspect_ms gives.
 * Thread: the worker's.
 */
#ifndef SKEIN_NODE_PROXY_HELLO_H
#define SKEIN_NODE_PROXY_HELLO_H

#include "node/base/addr.h"
#include "node/proxy/chunk.h"
#include "node/proxy/sock.h"
#include "node/proxy/tcp_poll.h"
#include "node/proxy/wheel.h"

struct acceptor;

struct hello {
    struct tcp_poll_item item;
    int fd; /* -1: over */
    bool watched;
    bool has_local;
    struct worker *worker;
    struct acceptor *acceptor;
    struct hello *prev; /* utlist: the worker's */
    struct hello *next;
    struct addr peer;
    struct addr local; /* where it went to, as its PROXY header says */
    struct chunkq in;
    struct wheel_entry timer;
    struct task end; /* frees it */
};

/* Take an accepted descriptor. local: as its PROXY header says; NULL: where it came in. */
void hello_accept(struct worker *worker, struct acceptor *acceptor, int fd, const struct addr *peer,
                  const struct addr *local);

/* Before the next poll: look at those that were accepted in this turn. */
void hello_read_fresh(struct worker *worker);

/* So many handshakes are under way that no more are taken. */
bool hello_is_full(struct worker *worker);

/* The wheel fired its entry: too late. */
void hello_timeout(struct hello *hello);

/* Close all. */
void hello_cut(struct worker *worker);

#endif
