/*
 * TCP connections of TcpRoutes: one accepted socket, one to an endpoint, and the bytes between.
 *
 *   state      event                                            next
 *   WAITING    a place at an endpoint                           CONNECTING
 *   WAITING    none, queue full or late; client gone            GONE
 *   CONNECTING connected                                        OPEN
 *   CONNECTING refused, late: another endpoint may be tried     WAITING, else GONE
 *   OPEN       both directions ended; reset; silence too long   GONE
 *
 * The endpoint is connected to at once, so a server may speak first; what the client sends before
 * that stays in the kernel but for a few kilobytes that are held, so a connect that fails is
 * repeated elsewhere without loss. An end of
 * one direction is passed on and the other goes on. A reset of one side is a reset for the other.
 *
 * A flow is one direction. Bytes are read into the worker's scratch and sent at once; what the sink
 * does not take is held in one chunk, and nothing more is read until it is gone. A flow that moves
 * much goes through a pipe inside the kernel (splice.h).
 *
 * Sockets are watched edge-triggered (tcp_poll.h). Options that matter only to connections that
 * last are set when one does: TCP_NODELAY before the second small send, keepalive at the first look
 * at its time limit.
 * Thread: the worker's.
 */
#ifndef SKEIN_NODE_PROXY_TCP_H
#define SKEIN_NODE_PROXY_TCP_H

#include "node/proxy/exchange.h"
#include "node/proxy/queue.h"
#include "node/proxy/splice.h"
#include "node/proxy/tcp_poll.h"
#include "node/proxy/tcp_port.h"

struct limiter_place;

enum tcp_state {
    TCP_GONE = 0,
    TCP_WAITING,
    TCP_CONNECTING,
    TCP_OPEN,
};

/* Limits on the number at once, in which a connection has a place. */
enum {
    TCP_PLACE_CLIENT = 0, /* Settings: per client */
    TCP_PLACE_KEY,        /* the rule's rate: by its key */
    TCP_PLACE_ROUTE,      /* the rule's own */
    TCP_PLACE_COUNT,
};

/* One of the two sockets. */
struct tcp_side {
    struct tcp_poll_item item;
    int fd; /* -1: none */
    bool watched : 1;
    bool waits_for_room : 1; /* room is told as well */
    bool readable : 1;       /* as far as is known */
    bool fin : 1;            /* the peer's end of sending has arrived: behind what can be read */
    bool urgent : 1;         /* urgent data makes short reads mean nothing */
    bool failed : 1;         /* an error waits in the socket */
    bool nodelay : 1;        /* TCP_NODELAY is set */
    bool sent : 1;           /* something was */
    bool shut : 1;           /* we sent our end */
};

struct tcp_flow {
    struct tcp_side *from;
    struct tcp_side *to;
    struct chunk *held;       /* read, but not taken by the sink */
    struct splice_pipe *pipe; /* NULL: bytes are copied */
    uint64_t bytes;           /* that the sink took */
    uint64_t counted;         /* of them, in the counters */
    uint32_t streak;          /* bytes moved in large pieces without a small one between */
    bool full : 1;            /* the sink takes nothing now */
    bool ended : 1;           /* nothing more comes from the source */
    bool done : 1;            /* and that was passed on, or the sink is of no use */
};

struct tcp {
    struct tcp_side client;
    struct tcp_side upstream;
    struct tcp_flow up;   /* client to endpoint */
    struct tcp_flow down; /* endpoint to client */
    struct worker *worker;
    struct tcp *prev; /* utlist: the worker's */
    struct tcp *next;
    enum tcp_state state;
    bool reset : 1;   /* close with a reset */
    bool logged : 1;  /* wanted in the access log */
    bool settled : 1; /* what lasts has its options */

    const struct acceptor *acceptor; /* it came by */
    struct tcp_rule *rule;           /* a reference; keeps route and backend */
    struct backend *backend;         /* of the rule */
    struct endpoint *endpoint;       /* a reference, while there is one */
    struct proxy_timeouts timeouts;
    struct wheel_entry timer;
    uint64_t active_ms; /* the last time that bytes moved */
    struct task end;    /* frees it */

    struct limiter_place *places[TCP_PLACE_COUNT];
    struct endpoint *tried[EXCHANGE_TRIED_MAX]; /* one reference each */
    uint32_t tried_count;
    uint32_t retries_left;
    enum reason failure;   /* of the last try */
    enum exchange_end why; /* it ended */
    struct waiter waiter;
    uint64_t hash; /* BALANCE_HASH: of the client */

    struct addr peer;  /* the client, or what its PROXY header says */
    struct addr local; /* where it connected to; unset: ask the socket */
    uint64_t start_ns; /* this and the next two only with an access log */
    uint64_t sent_ns;
    uint64_t connected_ns;
};

/* Take an accepted descriptor. local: where the client connected to, when that is known. */
void tcp_accept(struct worker *worker, const struct acceptor *acceptor, int fd,
                const struct addr *peer, const struct addr *local);

/* Who came on a TLS listener, and where. */
struct tcp_origin {
    const struct acceptor *acceptor;
    int fd;
    bool watched; /* by tcp_poll, for somebody who is not there any more */
    const struct addr *peer;
    const struct addr *local; /* NULL: ask the socket */
};

/* The same for one that goes on as it came, by the rule of its server name. bytes: what was read of
 * it, which goes first. */
void tcp_accept_through(struct worker *worker, const struct tcp_origin *origin,
                        struct tcp_rule *rule, const char *bytes, size_t len);

/* Close the connections of a port whose route is not this one (NULL: all). */
void tcp_cut(struct worker *worker, const struct tcp_port *port, const struct route *keep);
void tcp_close_all(struct worker *worker);
/* The wheel fired its entry. */
void tcp_timeout(struct tcp *tcp);

/* ---- tcp.c, for the other files of it ---- */

static inline struct backend_slot *tcp_slot(const struct tcp *tcp)
{
    return &tcp->backend->slots[tcp->worker->idx];
}

/* A new one with its socket and callbacks. */
struct tcp *tcp_new(struct worker *worker, const struct acceptor *acceptor, int fd);
/* One flow as far as it goes, and what follows from that. May end the connection. */
void tcp_run(struct tcp *tcp, struct tcp_flow *flow);
/* The time limit on silence, from the last time that bytes moved. May end the connection. */
void tcp_set_limit(struct tcp *tcp);
/* Give its place back; nothing when there is none. */
void tcp_leave_endpoint(struct tcp *tcp);
/* With a reset when the other side saw one: what is not complete must not look complete. */
void tcp_side_close(struct tcp_side *side, bool reset);
/* No endpoint takes it. */
void tcp_fail(struct tcp *tcp, enum reason reason);
/* Idempotent. */
void tcp_end(struct tcp *tcp, enum exchange_end why);

/* ---- tcp_connect.c ---- */

/* Find an endpoint and connect to it. */
void tcp_try(struct tcp *tcp);
/* The endpoint has taken it: let the bytes flow. False: the header could not be sent. */
MUST_CHECK bool tcp_open(struct tcp *tcp);
/* The connect came to nothing: another endpoint, or the end. */
void tcp_connect_failed(struct tcp *tcp, enum reason reason);

/* ---- tcp_flow.c: moving bytes ---- */

enum tcp_moved {
    TCP_MOVED = 0,  /* as far as it goes now */
    TCP_MOVED_MORE, /* stopped for fairness: there is more */
    TCP_FROM_RESET, /* the source failed; all that it had was passed on */
    TCP_TO_RESET,   /* the sink failed */
};

/* Move what can be moved; passes on the end of the source. */
enum tcp_moved tcp_flow_move(struct tcp *tcp, struct tcp_flow *flow);
/* Bytes that go before all that is read. */
void tcp_flow_keep(struct tcp *tcp, const char *bytes, size_t len);
/* Give back chunk and pipe. */
void tcp_flow_drop(struct tcp *tcp, struct tcp_flow *flow);

/*
 * What the client sent with its connect may go along with ours to the endpoint, which saves a
 * packet and a turn. Taken into the worker's scratch: 0 is none. Then sent right after the connect
 * was begun: on a near network that works, and 0 says that the connection is open; EAGAIN: not
 * yet; else it failed. What did not go is held, as everything is by keep, and goes with the flow.
 */
size_t tcp_take_early(struct tcp *tcp);
MUST_CHECK int tcp_send_early(struct tcp *tcp, size_t len);
void tcp_keep_early(struct tcp *tcp, size_t len);
/* The same of what was kept before; on failure it is kept on. */
MUST_CHECK int tcp_send_kept(struct tcp *tcp);

/* For the endpoint, before anything of the client. False: it failed. */
MUST_CHECK bool tcp_send_header(struct tcp *tcp, enum proxy_protocol_version version);

#endif
