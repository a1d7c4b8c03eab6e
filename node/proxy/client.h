/*
 * HTTP/1.0 and 1.1 connections from clients.
 *
 *   state    event                                   next
 *   IDLE     first byte of a request                 HEAD
 *   IDLE     keep-alive time over, end, drain        CLOSED
 *   HEAD     head complete                           BUSY, exchange begins
 *   HEAD     malformed, too big, late                LINGER, after an answer
 *   BUSY     response and request complete           IDLE, or CLOSED when either side said close
 *   BUSY     response complete, request not          LINGER
 *   BUSY     101                                     TUNNEL
 *   BUSY     client gone; response cannot complete   CLOSED
 *   TUNNEL   exchange over                           CLOSED
 *   LINGER   end, time over, too many bytes          CLOSED
 *
 * One request is served at a time: what is pipelined behind it waits in `in`, bounded, and is taken
 * up when the response is complete. LINGER reads and discards after the sending side was shut, so
 * that an answer is not lost to a reset (RFC 9112 9.6).
 * Thread: the worker's.
 */
#ifndef SKEIN_NODE_PROXY_CLIENT_H
#define SKEIN_NODE_PROXY_CLIENT_H

#include "node/http/h1_body.h"
#include "node/proxy/exchange.h"
#include "node/tls/tls_lib.h"

enum client_state {
    CLIENT_CLOSED = 0,
    CLIENT_IDLE,
    CLIENT_HEAD,
    CLIENT_BUSY,
    CLIENT_TUNNEL,
    CLIENT_LINGER,
};

/* What a client needs from the first byte of a request to the end of its response; pooled. */
struct client_work {
    struct h1_scan scan;
    struct h1_body body;
    struct buf trailers;
};

/* What only TLS clients have. */
struct client_tls {
    struct tls_engine *engine;        /* the socket's */
    uint8_t policy[TLS_DIGEST_BYTES]; /* that the connection was made by */
    bool counted;                     /* among the handshakes under way */
};

/* An idle connection keeps this, so its size counts. */
struct client {
    struct sock sock;
    struct client_side side;
    struct wheel_entry timer;
    struct client *prev; /* utlist: the worker's */
    struct client *next;
    struct acceptor *acceptor; /* it came by */
    struct task resume;        /* takes up what is pipelined */
    enum client_state state;

    bool resuming : 1; /* the task is queued */
    bool free_on_resume : 1;
    bool request_done : 1; /* of the exchange under way */
    bool keep : 1;         /* another request may follow it */
    bool http10 : 1;
    bool is_head : 1;
    bool chunked : 1; /* how the response's body goes out */
    bool until_close : 1;
    bool held : 1;    /* the exchange wants no more of the request now */
    bool stuffed : 1; /* enough is pipelined */
    bool eof : 1;
    bool closing_soon : 1; /* close or linger when all is sent */
    bool linger : 1;
    bool want_finish : 1; /* tunnel: FIN when nothing waits */

    uint32_t client_ms; /* of the exchange under way, or the last one */
    uint32_t keepalive_ms;
    uint32_t tunnel_ms;
    uint32_t discarded;       /* in LINGER */
    uint64_t progress_ms;     /* see client_touch */
    uint64_t start_ns;        /* first byte of this request, or the last one; 0: none came */
    struct chunkq in;         /* an incomplete head, or what is pipelined */
    struct client_work *work; /* NULL: idle, and nothing is in `in` */
    struct addr addr;         /* the peer's, or what its PROXY header says */
    struct addr *local;       /* where it went to, as its PROXY header says; NULL: the socket's */
    struct limiter_place *place; /* among the connections of this peer */
    struct client_tls *tls;      /* NULL: it speaks in clear */
    struct fwd_peer peer;
};

/* Take the descriptor of an accepted connection. local: where it went to, as a PROXY header says;
 * NULL: where it came in. */
void client_accept(struct worker *worker, struct acceptor *acceptor, int fd,
                   const struct addr *peer, const struct addr *local);

/* Who came on a TLS listener, and where. */
struct client_origin {
    struct acceptor *acceptor;
    int fd;
    const struct addr *peer;
    const struct addr *local; /* as above */
};

/* The same of one that speaks TLS by this policy. bytes: its ClientHello, and what came with it. */
void client_accept_tls(struct worker *worker, const struct client_origin *origin,
                       struct tls_engine *engine, const struct tls_policy *policy,
                       const char *bytes, size_t len);

/* Before the next poll: read those that were accepted in this turn. */
void client_read_fresh(struct worker *worker);

/* The worker drains: close what is idle; what is busy closes after its response. */
void client_drain_all(struct worker *worker);
void client_close_all(struct worker *worker);
void client_timeout(struct client *client);

#endif
