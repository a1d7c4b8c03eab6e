/*
 * A place at an endpoint: found by the backend's policy and taken, or waited for.
 *
 * A backend may limit what is in flight at each endpoint. The count is exact over all workers: a
 * place is taken by compare-and-swap and held until it is given back. Who finds every endpoint full
 * waits in one queue of the backend, of all workers, oldest first; some want one endpoint only
 * (holders of its sticky cookie). A place that is given back calls the oldest of those whom it
 * suits: by a task on the same worker, by mail on another. The called one looks again itself,
 * keeping its rank, and passes the call on when it cannot use the place. Nobody who comes later
 * goes first: as long as somebody waits for the same, a newcomer queues.
 *
 * Whoever wants places (an exchange, a TCP connection) embeds a struct waiter. Backends without a
 * limit never touch the queue.
 *
 * The lock guards the lists only, never a callback; it is taken by who waits, is called or gives
 * back a place while somebody waits. Thread: a worker, unless a function says otherwise.
 */
#ifndef SKEIN_NODE_PROXY_QUEUE_H
#define SKEIN_NODE_PROXY_QUEUE_H

#include "node/proxy/backend.h"
#include "node/proxy/wheel.h"

struct worker;
struct worker_mail;

enum place {
    PLACE_TAKEN = 0, /* give it back with place_give_back */
    PLACE_WAITING,   /* on_turn comes, or place_cancel */
    PLACE_FULL,      /* all are busy and the queue has no room: 503 */
    PLACE_LATE,      /* it waited as long as it may: 503 */
    PLACE_NONE,      /* no endpoint is left that could be asked */
};

/* What is looked for. Borrowed for the call, but wanted: as long as it waits. */
struct place_ask {
    struct backend *backend; /* kept by the caller as long as it waits or has a place */
    uint64_t hash;           /* BALANCE_HASH */
    struct endpoint *wanted; /* this one, when it can serve at all; NULL: any */
    struct endpoint *const *tried;
    size_t tried_count;
    uint32_t queue_ms; /* how long it may wait; the backend's own limit goes first */
};

struct waiter {
    /* Look again with place_seek. May be called after the time is over: PLACE_LATE then. Set by the
     * owner. */
    void (*on_turn)(struct waiter *waiter);
    uint64_t rank; /* 0: does not wait. Zero before the first use; all else is private. */

    struct waiter *prev; /* utlist: the queue's, or of those called on its worker */
    struct waiter *next;
    struct waiter **list; /* which; NULL: none, its turn has come */
    struct worker *worker;
    struct backend *backend;
    struct endpoint *wanted; /* counted there; NULL: counted in the backend's queue */
    struct endpoint *place;  /* that called it; a reference */
    uint64_t deadline_ms;
    struct wheel_entry timer;
};

/*
 * Find an endpoint and take a place at it.
 *
 * waiter  on_turn set, and rank 0 or left from the last call: the same ask goes on
 * PLACE_TAKEN: *ret_endpoint is valid for this loop iteration; what lasts longer takes a reference.
 * With every result but PLACE_WAITING the waiter waits no more.
 */
enum place place_seek(struct worker *worker, const struct place_ask *ask, struct waiter *waiter,
                      struct endpoint **ret_endpoint);

/* The same without waiting: TAKEN, FULL (also when others wait) or NONE. */
enum place place_take(struct worker *worker, const struct place_ask *ask,
                      struct endpoint **ret_endpoint);

/* Would place_take find one? Nothing is taken. */
bool place_is_there(struct worker *worker, const struct place_ask *ask);

/* It goes away. Idempotent. */
void place_cancel(struct waiter *waiter);

/* The exchange or connection at the endpoint is over; who waits for it is called. */
void place_give_back(struct worker *worker, struct backend *backend, struct endpoint *endpoint);

/* ---- for the worker and the backend ---- */

/* The wheel fired this waiter's entry: its time is over. */
void place_late(struct waiter *waiter);
/* Mail of kind WORKER_MAIL_PLACE. */
void place_mail(struct worker_mail *mail);
/* What may be taken has changed (configuration, health): all who wait look again. Any thread. */
void place_call_all_mt(struct backend *backend);
/* How many wait. Any thread. */
uint32_t place_waiting(const struct backend *backend);

#endif
