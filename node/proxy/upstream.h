/*
 * HTTP/1.1 connections to endpoints, and the pool of idle ones.
 *
 *   state      event                            next
 *   BUSY       response complete, fit           IDLE (pooled)
 *   BUSY       response complete, unfit         CLOSED
 *   BUSY       error, end, abandoned, late      CLOSED
 *   BUSY       101                              TUNNEL
 *   IDLE       taken for a request              BUSY
 *   IDLE       bytes, end, error, time, gone    CLOSED
 *   TUNNEL     both ends, error, late           CLOSED
 *
 * BUSY and TUNNEL have an exchange and are in no pool; IDLE is the reverse; CLOSED has neither and
 * waits for its handle. A connection is fit for another request when the whole request was sent,
 * the whole response was read, not a byte more came, both sides allow it, and the endpoint is still
 * offered.
 * Thread: the worker's.
 */
#ifndef SKEIN_NODE_PROXY_UPSTREAM_H
#define SKEIN_NODE_PROXY_UPSTREAM_H

#include "node/http/h1_body.h"
#include "node/proxy/exchange.h"

enum upstream_state {
    UPSTREAM_CLOSED = 0,
    UPSTREAM_BUSY,
    UPSTREAM_IDLE,
    UPSTREAM_TUNNEL,
};

enum {
    UPSTREAM_HEAD_BYTES_MAX = 65535,
    UPSTREAM_TRAILER_BYTES_MAX = 8192,
    UPSTREAM_INTERIMS_MAX = 64,
    UPSTREAM_SPLICE_READ = 16384, /* a read of this size tells of a body worth splicing */
    UPSTREAM_FLUSH_MS = 5000,     /* a tunnel that ended: for its last bytes */
};

struct utls;

struct upstream {
    struct sock sock;
    struct upstream_side side;
    struct wheel_entry timer;
    struct endpoint *endpoint; /* a reference */
    struct utls *tls;          /* what it is to the endpoint over TLS; NULL: it is plain */
    struct upstream *prev;     /* utlist: the worker's, all that are open */
    struct upstream *next;
    struct upstream *idle_prev; /* utlist: the slot's, while IDLE */
    struct upstream *idle_next;
    enum upstream_state state;

    bool reused : 1;       /* served a request before this one */
    bool chunked : 1;      /* the request's body */
    bool upgrade : 1;      /* the request asks for it */
    bool request_done : 1; /* all of it was staged */
    bool head_done : 1;    /* the final response head was read */
    bool any_byte : 1;     /* of this response */
    bool keep : 1;         /* both sides allow another request */
    bool held : 1;
    bool eof : 1;
    bool write_told : 1;  /* that it takes no more */
    bool want_finish : 1; /* tunnel: FIN when nothing waits */
    bool introduced : 1;  /* it began with a PROXY header: for this client only */

    enum h1_method method;
    uint32_t interims; /* heads before the final one */
    uint32_t idle_ms;  /* told by Keep-Alive; 0: as the slot learned */
    uint64_t idle_since_ms;
    uint64_t sent_before;     /* sock.sent when this request began */
    uint64_t try_until_ms;    /* limit for the response head of this try; 0: none */
    uint32_t requests;        /* that it was used for */
    struct splice_pipe *pipe; /* the body goes through it; NULL: is copied */
    struct chunkq in;         /* an incomplete head */
    struct h1_scan scan;
    struct h1_body body;
    struct buf trailers;
};

/*
 * A connection to the endpoint for this exchange: pooled when there is one that is fit for it, else
 * a new one. *ret_error: errno of a connect that failed at once; NULL is returned then.
 */
struct upstream_side *upstream_get(struct exchange *exchange, struct endpoint *endpoint,
                                   int *ret_error);

/* One for this exchange made of a connected descriptor, which is taken in every case. A TLS
 * handshake is still ahead of it; NULL: there is no memory for one. */
struct upstream_side *upstream_adopt(struct exchange *exchange, struct endpoint *endpoint, int fd);
/* The same for nobody: a plain one, into the pool. */
void upstream_spare(struct worker *worker, struct endpoint *endpoint, int fd);
/* Does the exchange, whose rule and backend are known, want TLS? */
bool upstream_wants_tls(const struct exchange *exchange);
/* Has the endpoint not accepted the connection yet? */
bool upstream_is_connecting(const struct upstream_side *side);
/* Would a request leave at once: connected, and the handshake, if any, is done? */
bool upstream_is_ready(const struct upstream_side *side);

bool upstream_is_reused(const struct upstream_side *side);

/* Idempotent. The exchange was told, or tells itself. */
void upstream_close(struct upstream *upstream);

/* Close all idle connections to an endpoint that is gone. */
void upstream_flush(struct worker *worker, struct endpoint *endpoint);
/* Close everything: the worker stops. */
void upstream_close_all(struct worker *worker);
/* The wheel fired this entry. */
void upstream_timeout(struct upstream *upstream);

#endif
