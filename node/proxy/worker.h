/*
 * One data-plane thread: its loop, listeners, connections, pools and counters.
 *
 * Everything in struct worker is the worker's own but for `stats`, which others read. Each callback
 * from libuv ends with worker_settle: sends what was staged and runs what was deferred.
 *
 * RUNNING --drain--> DRAINING --stop--> STOPPING (everything closes) --loop empty--> thread ends
 *        `---------------------stop------^
 */
#ifndef SKEIN_NODE_PROXY_WORKER_H
#define SKEIN_NODE_PROXY_WORKER_H

#include "node/base/log.h"
#include "node/base/rng.h"
#include "node/http/h1_head.h"
#include "node/http/status.h"
#include "node/proxy/acceptor.h"
#include "node/proxy/catalog.h"
#include "node/proxy/pool.h"
#include "node/proxy/sock.h"
#include "node/proxy/splice.h"
#include "node/proxy/tcp_poll.h"
#include "node/proxy/wheel.h"
#include "node/proxy/worker_mail.h"

#include <uv.h>

enum {
    WORKER_SCRATCH_BYTES = 65536,
    WORKER_FIELDS_MAX = 512,
    WORKER_LINES_MAX = 60000,     /* that policies add to a head, or keep of it */
    WORKER_HEAD_OUT_MAX = 130000, /* an outgoing head: the largest incoming one and what is added */
};

struct client;
struct upstream;
struct tls_lib;
struct utls;
struct access_ring;
struct greet;
struct hello;
struct tcp;
struct tcp_mail;
struct proxy;

struct worker {
    /* set before the thread starts, then constant */
    struct proxy *proxy;
    struct catalog *catalog;
    size_t idx;
    uint64_t clients_max;
    uint64_t idle_max; /* pooled upstream connections, of all endpoints */
    const char *node_name;
    struct access_ring *access; /* NULL: no access log */

    uv_loop_t loop;
    uv_thread_t thread;
    struct mailbox box;
    uv_timer_t ticker; /* runs while the wheel holds something */
    uv_prepare_t prepare;
    uint64_t turn;       /* of the loop */
    uint64_t turn_ns;    /* see worker_turn_ns */
    uint64_t turn_ns_of; /* 1 + the turn that turn_ns is of; 0: none */
    bool ticking;
    bool draining;
    bool stopping;

    struct qsbr_reader *reader;
    struct wheel wheel;
    struct rng rng;
    struct http_date date;
    struct chunk_pool chunks;
    struct pool client_pool;
    struct pool work_pool; /* of clients that are busy */
    struct pool wait_pool; /* of sockets that are full */
    struct pool upstream_pool;
    struct pool exchange_pool;
    struct pool tcp_pool;
    struct acceptor *acceptors; /* for HTTP */
    size_t acceptor_count;
    struct acceptor *listening;  /* utlist: all that accept, those of TCP ports too */
    bool accepting_paused;       /* some of them are paused */
    struct client *clients;      /* utlist: all that are open */
    struct upstream *upstreams;  /* utlist: all that are open */
    struct tcp *tcps;            /* utlist: all that are open */
    struct greet *greets;        /* utlist: all that are open */
    struct hello *hellos;        /* utlist: all that are open */
    struct exchange *connecting; /* utlist: that may be raced (race.h) */
    struct race *races;          /* utlist: second connects under way */
    uv_timer_t race_timer;       /* runs while something is connecting */
    struct tcp_poll tcp_poll;
    struct splice_pool pipes;
    uint64_t client_count; /* of all kinds */
    uint64_t idle_count;
    struct utls *utls_kept; /* utlist: sessions with endpoints, without a connection (utls.h) */
    size_t utls_kept_count;
    struct log_limit upstream_tls_log;
    struct sock *late;  /* utlist: to be watched from the next tick on */
    struct sock *fresh; /* utlist: to be read for the first time before the next poll */
    struct sock *dirty; /* to be sent at the end of this event */
    struct task *tasks; /* to be run at the end of this event, in order */
    struct task **tasks_end;

    /* Parsing and building happen in these, within one event. */
    struct h1_head request;
    struct h1_head response;
    struct h1_field request_fields[WORKER_FIELDS_MAX];
    struct h1_field response_fields[WORKER_FIELDS_MAX];
    struct tls_lib *tls; /* its OpenSSL */
    struct buf cipher;   /* what engines put out, emptied at once */
    struct buf plain;    /* what a TLS connection has decrypted last */
    struct buf head_out;
    struct buf lines; /* that policies add to a head */
    struct buf value; /* of a variable or target that has to be put together */
    char path[WORKER_SCRATCH_BYTES];
    char scratch[WORKER_SCRATCH_BYTES]; /* what was read last */

    struct stats stats;
};

enum { WORKER_MAILS_MAX = 65536 };

/* Make the loop and take over the listening descriptors. */
void worker_init(struct worker *worker);
/* RC_IO: the system gives no thread. */
MUST_CHECK int worker_start(struct worker *worker);

/* Any thread; the message is taken. When the mailbox is full the message is dropped: for a gone
 * endpoint that means its idle connections end by their time limit. DRAIN and STOP wait for room.
 */
void worker_post_mt(struct worker *worker, enum worker_mail_kind kind, struct endpoint *endpoint);

/* The same for a port; it takes the message and waits for room. */
void worker_post_tcp_mt(struct worker *worker, struct tcp_mail *message);

/* Wait for the thread after WORKER_MAIL_STOP. */
void worker_join(struct worker *worker);
/* After worker_join, or instead of worker_start. */
void worker_deinit(struct worker *worker);

/* End of every callback. */
void worker_settle(struct worker *worker);

/* Run the task at the end of the event, in order of deferral. A task may be queued once. */
void worker_defer(struct worker *worker, struct task *task, void (*run)(struct task *task));

/* Now in ms, as of the beginning of this event: uv_now without the call, of which an exchange would
 * make a dozen. */
static inline uint64_t worker_now(const struct worker *worker)
{
    return worker->loop.time;
}

/* uv_hrtime, read once in a turn of the loop: for when something came. What waits behind others of
 * its turn was there by then. */
static inline uint64_t worker_turn_ns(struct worker *worker)
{
    if (worker->turn_ns_of != worker->turn + 1) {
        worker->turn_ns_of = worker->turn + 1;
        worker->turn_ns = uv_hrtime();
    }
    return worker->turn_ns;
}

/* Have the ticker running. */
void worker_tick_soon(struct worker *worker);

void worker_deadline_set(struct worker *worker, struct wheel_entry *entry, uint64_t deadline_ms);

static inline void worker_deadline(struct worker *worker, struct wheel_entry *entry,
                                   uint64_t delay_ms)
{
    uint64_t deadline_ms = worker_now(worker) + MAX(delay_ms, (uint64_t)1);
    if (UNLIKELY(!wheel_move(entry, deadline_ms))) {
        worker_deadline_set(worker, entry, deadline_ms);
    }
}

/* Before looking anything up in the catalog. */
static inline void worker_online(struct worker *worker)
{
    qsbr_online(&worker->catalog->qsbr, worker->reader);
}

/* One more connection of a client, or one less: at the limit accepting pauses. */
static inline void worker_client_opened(struct worker *worker)
{
    worker->client_count++;
    counter_set(&worker->stats.clients, worker->client_count);
}
void worker_accept_again(struct worker *worker);
static inline void worker_client_closed(struct worker *worker)
{
    worker->client_count--;
    counter_set(&worker->stats.clients, worker->client_count);
    if (UNLIKELY(worker->accepting_paused)) {
        worker_accept_again(worker);
    }
}

const char *worker_date(struct worker *worker);

/* Settings for what starts now; valid for this iteration. */
const struct proxy_defaults *worker_defaults(struct worker *worker);

#endif
