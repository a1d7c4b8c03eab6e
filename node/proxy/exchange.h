/*
 * One request and its response, from the parsed head to the last byte: routing, endpoint choice,
 * retries, time limits, back-pressure, accounting. It knows no protocol version: the two sides are
 * codecs behind client_ops and upstream_ops.
 *
 * Heads travel in the parsed HTTP/1 form (struct h1_head and the bytes it points into); another
 * version translates at its edge. Bodies travel as data spans without framing.
 *
 * State of the two directions, which run independently of each other:
 *
 *   request   OPEN --exchange_request_end--> DONE
 *   response  NONE --_response_head--> OPEN --_response_end--> exchange over
 *                `--upgraded (101)--> TUNNEL --both ends or an error--> exchange over
 *
 *   event                      NONE                          OPEN, TUNNEL
 *   client gone                upstream closed, over         the same
 *   upstream lost              retry, else answer, over      client cut, over
 *   request faulty, late       upstream closed, answer, over upstream closed, client cut, over
 *
 * "Over" means: both codecs are detached (their exchange pointer is NULL) and the object is freed;
 * every function that may end it says so by returning nothing, and callers do not touch it after.
 * Thread: the worker's.
 */
#ifndef SKEIN_NODE_PROXY_EXCHANGE_H
#define SKEIN_NODE_PROXY_EXCHANGE_H

#include "node/http/h1_write.h"
#include "node/proxy/queue.h"
#include "node/proxy/worker.h"

struct exchange;
struct limiter_place;
struct policy;
struct policy_base;
struct uri_path;

/* An answer of our own. Borrowed for the call. */
struct exchange_answer {
    enum reason reason;
    uint16_t status;   /* 0: the reason's */
    const char *lines; /* whole field lines ("Location: /b\r\n"); NULL: none */
    size_t lines_len;
    const char *content_type; /* with body: instead of the built-in page */
    const char *body;         /* NULL: the built-in page, or none where it has none */
    size_t body_len;
};

/* The side that a request came from. Embedded in a codec's object. */
struct client_side {
    const struct client_ops *ops;
    struct exchange *exchange; /* NULL: none under way */
};

struct client_ops {
    /* An interim response (1xx but 101). */
    void (*interim)(struct client_side *side, const struct h1_head *head, const char *bytes);
    /* The final head. With head->upgrade (101) both directions are raw bytes from here on. */
    /* lines: whole field lines that the router adds. */
    void (*head)(struct client_side *side, const struct h1_head *head, const char *bytes,
                 const char *lines, size_t lines_len);
    void (*data)(struct client_side *side, const char *bytes, size_t len);
    /* The response is complete; trailers are whole lines or empty. The exchange is over. */
    void (*end)(struct client_side *side, const char *trailers, size_t len);
    /* A whole response of our own; the exchange is over. */
    void (*answer)(struct client_side *side, const struct exchange_answer *answer);
    /* The response cannot be completed: make the client see that. The exchange is over. */
    void (*cut)(struct client_side *side);
    /* Stop or go on delivering the request. */
    void (*hold)(struct client_side *side, bool hold);
    /* Where the client connected to; unset when that is not known. */
    void (*local)(const struct client_side *side, struct addr *ret_local);
    /* Tunnel: no more bytes will come for the client. */
    void (*finish)(struct client_side *side);
    /* Where body bytes may go without framing and past data(), which counts as progress; NULL: not
     * to this client. What waits there goes first. */
    struct sock *(*raw)(struct client_side *side);
};

/* The side that the request goes to. */
struct upstream_side {
    const struct upstream_ops *ops;
    struct exchange *exchange;
};

struct upstream_request {
    struct chunk *head; /* borrowed; begins with what h1_write_request wrote, head_len bytes */
    size_t head_len;
    bool head_is_new;        /* never sent: the chunk may be shared */
    enum h1_framing framing; /* of the body that follows through data() */
    enum h1_method method;
    bool upgrade;
};

struct upstream_ops {
    void (*request)(struct upstream_side *side, const struct upstream_request *request);
    void (*data)(struct upstream_side *side, const char *bytes, size_t len);
    void (*end)(struct upstream_side *side, const char *trailers, size_t len);
    void (*hold)(struct upstream_side *side, bool hold);
    /* Tunnel: no more bytes will come for the endpoint. */
    void (*finish)(struct upstream_side *side);
    /* Bytes of this request that left the machine. */
    uint64_t (*sent)(const struct upstream_side *side);
    /* The response is complete: keep the connection if it is fit, else close. */
    void (*release)(struct upstream_side *side);
    /* The exchange has no more use for it: close. */
    void (*abandon)(struct upstream_side *side);
};

/* Why an upstream was lost. */
enum lost {
    LOST_CONNECT = 0, /* refused, unreachable: nothing was sent */
    LOST_CONNECT_TIMEOUT,
    LOST_CLOSED,      /* by the endpoint, before the response was complete */
    LOST_GARBLED,     /* malformed response */
    LOST_TIMEOUT,     /* no progress in time */
    LOST_TLS,         /* no TLS connection came about: nothing of the request was understood */
    LOST_CERTIFICATE, /* the same, because of the endpoint's certificate */
};

/* Who ended an exchange, and in what phase; for the access log. */
enum exchange_end {
    EXCHANGE_END_NONE = 0, /* both sides are done */
    EXCHANGE_END_CLIENT,   /* the client went away */
    EXCHANGE_END_ENDPOINT, /* the endpoint did, or answered nonsense */
    EXCHANGE_END_PROXY,    /* refused here: limits, access, no route */
    EXCHANGE_END_TIME,     /* a time limit */
    EXCHANGE_END_RESOURCE, /* no connection, descriptor or place in the queue */
};

enum {
    EXCHANGE_TRIED_MAX = 9,        /* first and retries */
    EXCHANGE_REPLAY_BYTES = 16384, /* body kept for a repetition once some of it was sent */
    EXCHANGE_ID_MAX = 128,         /* of a request id; longer ones are cut */
};

struct exchange {
    struct worker *worker;
    struct client_side *client;     /* NULL once over */
    struct upstream_side *upstream; /* NULL while there is none */

    struct host *host;         /* a reference; keeps rule, route and backend */
    const struct rule *rule;   /* of host */
    struct backend *backend;   /* of rule */
    struct endpoint *endpoint; /* its in-flight count; kept by the upstream connection */

    const struct policy *policy;     /* of rule; NULL: it asks for nothing */
    struct policy_base *base;        /* a reference; NULL: Settings ask for nothing of responses */
    struct chunk *kept;              /* of the request, for the response; exchange_shape.c */
    struct limiter_place *places[2]; /* among those that are at once */
    uint64_t body_bytes_max;         /* 0: no limit */

    uint32_t retries_left;
    unsigned retry_on;       /* proxy_retry_on bits */
    uint32_t per_try_ms;     /* until the response head; 0: no limit */
    uint64_t hash;           /* BALANCE_HASH: of the key; set once backend is known */
    struct endpoint *wanted; /* of the sticky cookie; a reference */
    struct race *race;       /* a second connect under way (race.h) */

    struct chunk *head; /* outgoing request head, kept while a repetition is possible */
    uint32_t head_len;  /* behind it in the chunk there may be what was sent with it */
    struct chunkq body; /* and the body so far */
    enum h1_framing framing;
    enum h1_method method;

    uint32_t tried_count; /* in tried */
    enum reason failure;  /* of the last try, for the answer when no other is left */

    /* uv_hrtime; 0: not yet, or not known (exchange_account.c) */
    uint64_t start_ns;     /* first byte of the request */
    uint64_t routed_ns;    /* head read */
    uint64_t sent_ns;      /* to the endpoint that answers, after queue and failed tries */
    uint64_t connected_ns; /* to it; 0 on a kept connection */
    uint64_t head_ns;      /* of its response */
    uint64_t head_turn;    /* the loop's at head_ns */
    uint64_t bytes_in;
    uint64_t bytes_out;
    uint16_t status; /* 0: none was sent */
    enum reason reason;
    enum exchange_end end; /* NONE with a reason: by the reason's status */
    struct chunk *log;     /* draft of its record in the access log; NULL: none is wanted */
    uint8_t minor;         /* HTTP/1.minor of the request; with log */

    bool secure : 1;       /* the client speaks TLS, to us or to a trusted proxy; with a policy */
    bool peer_trusted : 1; /* a proxy of Settings.trustedProxies */
    bool peer_foreign : 1; /* such are named, and the peer is none */
    bool idempotent : 1;
    bool upgrade : 1;      /* asked for */
    bool tunnel : 1;       /* and granted */
    bool request_done : 1; /* the client sent all of it */
    bool response_begun : 1;
    bool stale_retried : 1; /* a dead pooled connection was replaced once */
    bool fresh_only : 1;    /* no pooled connection for the next try */
    bool head_sent : 1;     /* once at least */
    bool replayable : 1;    /* head and body hold everything that was sent */
    bool timed : 1;         /* timer runs */
    bool watched : 1;       /* connecting, in the worker's list */
    bool token_is_old : 1;  /* of a key that is being replaced: set the cookie anew */
    bool interim_sent : 1;  /* the client has seen an interim response */
    bool queued : 1;        /* waited for a place */
    bool reused : 1;        /* sent on a kept connection */
    bool client_finished : 1;
    bool upstream_finished : 1;

    uint8_t request_id_len; /* 0: none was made */
    char request_id[EXCHANGE_ID_MAX];

    /* Not zeroed; valid as said. */
    struct addr client_addr;        /* who asks: the peer, or whom trusted proxies name */
    struct proxy_timeouts timeouts; /* none is 0, but for request_ms; from exchange_route on */
    struct buf trailers;            /* of the request, empty but for chunked ones */
    struct endpoint *tried[EXCHANGE_TRIED_MAX]; /* tried_count: one reference each */
    struct waiter waiter;                       /* rank: always */
    struct wheel_entry timer;                   /* timed: for the whole exchange */
    struct exchange *race_prev;                 /* watched: utlist, the worker's */
    struct exchange *race_next;
    uint32_t status_count; /* with PROXY_RETRY_STATUS */
    uint16_t statuses[PROXY_RETRY_STATUSES_MAX];
};

/* What the client's codec knows of a request. */
struct exchange_request {
    struct h1_head *head; /* borrowed for the call, as are the bytes; fields may be marked to go */
    const char *bytes;
    const struct fwd_peer *peer;
    const struct addr *client;    /* the peer's address, or what its PROXY header says */
    const char *listener;         /* "0.0.0.0:80" */
    uint64_t start_ns;            /* first byte */
    uint64_t routed_ns;           /* all of the head; start_ns when it came in one piece */
    const struct client_tls *tls; /* NULL: the client speaks in clear (client.h) */
};

/* A request that never became an exchange. */
struct exchange_refusal {
    const struct addr *client;
    const char *listener;
    uint64_t start_ns;  /* first byte; 0: not a byte came */
    enum reason reason; /* REASON_NONE: the client went away, nothing was answered */
};

/* Begin; side->exchange is set. It may be over on return (side->exchange is NULL again). */
void exchange_start(struct worker *worker, struct client_side *side,
                    const struct exchange_request *request);

/* An answer of our own without an exchange (the head could not be read), or none: counted and
 * logged. */
void exchange_refused(struct worker *worker, const struct exchange_refusal *refusal);

/* For exchange_route.c: find rule and backend and build the outgoing head; REASON_NONE: done. Else
 * the answer, whose lines, status and body may have been set. */
enum reason exchange_route(struct exchange *exchange, const struct exchange_request *request,
                           struct exchange_answer *answer);
/* For exchange_head.c: build it. path: as rules are matched on it. */
enum reason exchange_build_head(struct exchange *exchange, const struct exchange_request *request,
                                const struct uri_path *path, struct policy_base *base,
                                enum forwarded_policy policy);
/* For exchange_try.c: send the request to some endpoint, or answer that none is left. May end it.
 */
void exchange_try(struct exchange *exchange);
/* What may be repeated, as the rule says or else the defaults. */
void exchange_set_retries(struct exchange *exchange, const struct proxy_retries *rule,
                          const struct proxy_defaults *defaults);
/* A second connect, to another endpoint, stands first; the exchange has a place there. */
void exchange_race_won(struct exchange *exchange, struct upstream_side *upstream,
                       struct endpoint *endpoint);
/* A response head has come: true: it is dropped, and another endpoint is asked. */
bool exchange_retry_status(struct exchange *exchange, uint16_t status);
void exchange_answer(struct exchange *exchange, enum reason reason);
/* The same with lines, status or body of its own, as exchange_route has them. */
void exchange_answer_with(struct exchange *exchange, const struct exchange_answer *answer);
void exchange_forget_replay(struct exchange *exchange);
/* The wheel fired the exchange's own entry: it has taken too long as a whole. */
void exchange_timeout(struct exchange *exchange);

/* ---- exchange_account.c: time, counters, access log ---- */

/* The request goes to an endpoint now. reused: on a kept connection. */
void exchange_note_sent(struct exchange *exchange, bool reused);
/* A connection that was opened for it is there. */
void exchange_note_connected(struct exchange *exchange);
/* The final response head has come. */
void exchange_note_head(struct exchange *exchange, const struct h1_head *head, const char *bytes);
/* TLS with an endpoint failed, and why: told if no other one serves it. */
void exchange_note_tls_failure(struct exchange *exchange, const char *why);
/* It is over; both sides are still attached. */
void exchange_account(struct exchange *exchange);

/* From the client's codec. */
void exchange_request_data(struct exchange *exchange, const char *bytes, size_t len);
void exchange_request_end(struct exchange *exchange, const char *trailers, size_t len);
void exchange_request_fault(struct exchange *exchange, enum reason reason);
void exchange_client_gone(struct exchange *exchange);
void exchange_client_full(struct exchange *exchange, bool full);
void exchange_client_finished(struct exchange *exchange); /* tunnel: end of input */

/* From the upstream's codec. */
void exchange_interim(struct exchange *exchange, const struct h1_head *head, const char *bytes);
void exchange_response_head(struct exchange *exchange, struct h1_head *head, const char *bytes);
void exchange_response_data(struct exchange *exchange, const char *bytes, size_t len);
void exchange_response_end(struct exchange *exchange, const char *trailers, size_t len);
void exchange_upstream_full(struct exchange *exchange, bool full);
void exchange_upstream_finished(struct exchange *exchange); /* tunnel: end of input */
/* reused: the connection had served before. any_byte: some of the response had come. The upstream
 * is closed by its codec. */
void exchange_upstream_lost(struct exchange *exchange, enum lost lost, bool reused, bool any_byte);

#endif
