/*
 * Places at endpoints, and who waits for one; see queue.h.
 *
 * A waiter is in one list at a time: of the backend, of the endpoint it wants, or of those who are
 * called on its worker. It is counted from the moment it queues until it leaves, also while it is
 * called, so that nobody overtakes it. Between who frees a place and who begins to wait: the one
 * counts down what is in flight and then looks whether anybody waits, the other counts itself and
 * then looks for a place once more; both are sequentially consistent, so one of them sees the
 * other.
 */
#include "node/proxy/queue.h"

#include "node/proxy/balance.h"
#include "node/proxy/worker.h"

#include <utlist.h>

static struct backend_slot *slot_of(const struct waiter *waiter)
{
    return &waiter->backend->slots[waiter->worker->idx];
}

static _Atomic uint32_t *counted_in(const struct waiter *waiter)
{
    return waiter->wanted != NULL ? &waiter->wanted->waiting : &waiter->backend->queue.ahead;
}

static uint32_t count_of(const _Atomic uint32_t *count)
{
    return atomic_load_explicit(count, memory_order_seq_cst);
}

uint32_t place_waiting(const struct backend *backend)
{
    return atomic_load_explicit(&backend->queue.length, memory_order_relaxed);
}

/* ---- lists; all under the lock ---- */

static void unlink_locked(struct waiter *waiter)
{
    if (waiter->list != NULL) {
        DL_DELETE(*waiter->list, waiter);
        waiter->list = NULL;
    }
}

static void link_locked(struct waiter *waiter)
{
    struct waiter **list = &waiter->backend->queue.waiting;
    struct waiter *behind = *list;
    if (behind == NULL || behind->prev->rank < waiter->rank) {
        DL_APPEND(*list, waiter); /* the ordinary case: a newcomer */
    } else {
        while (behind->rank < waiter->rank) {
            behind = behind->next;
        }
        DL_PREPEND_ELEM(*list, behind, waiter);
    }
    waiter->list = list;
}

/* Its worker will run it. True: the worker has to be told. */
static bool call_locked(struct waiter *waiter, struct endpoint *place)
{
    struct backend_slot *slot = slot_of(waiter);
    unlink_locked(waiter);
    if (place != NULL) {
        endpoint_ref(place);
        waiter->place = place;
    }
    DL_APPEND(slot->called, waiter);
    waiter->list = &slot->called;
    bool tell = !slot->call_due;
    slot->call_due = true;
    if (tell) {
        backend_ref(slot->backend); /* for the task or mail */
    }
    return tell;
}

/* The oldest of those whom this place suits, beyond a rank. */
static struct waiter *next_for(const struct backend *backend, const struct endpoint *place,
                               uint64_t beyond)
{
    struct waiter *waiter = backend->queue.waiting;
    while (waiter != NULL &&
           (waiter->rank <= beyond || (waiter->wanted != NULL && waiter->wanted != place))) {
        waiter = waiter->next;
    }
    return waiter;
}

/* ---- telling workers ---- */

static void run_called(struct backend_slot *slot)
{
    struct backend *backend = slot->backend;
    (void)pthread_mutex_lock(&backend->lock);
    slot->call_due = false;
    while (slot->called != NULL) {
        struct waiter *waiter = slot->called;
        unlink_locked(waiter);
        (void)pthread_mutex_unlock(&backend->lock);
        waiter->on_turn(waiter);
        (void)pthread_mutex_lock(&backend->lock);
    }
    (void)pthread_mutex_unlock(&backend->lock);
    backend_put(backend);
}

static void on_call_task(struct task *task)
{
    run_called(CONTAINER_OF(task, struct backend_slot, call_task));
}

void place_mail(struct worker_mail *mail)
{
    run_called(CONTAINER_OF(mail, struct backend_slot, call_mail));
}

/* from: the worker whose thread this is; NULL: another thread. */
static void tell(struct worker *from, struct worker *to, struct backend *backend)
{
    struct backend_slot *slot = &backend->slots[to->idx];
    if (from == to) {
        worker_defer(to, &slot->call_task, on_call_task);
        return;
    }
    if (mailbox_post_mt(&to->box, &slot->call_mail.mail) != RC_OK) {
        /* It has stopped, or is drowned in mail: they look again when their time is over. */
        (void)pthread_mutex_lock(&backend->lock);
        slot->call_due = false;
        (void)pthread_mutex_unlock(&backend->lock);
        backend_put(backend);
    }
}

/* Somebody may have this place; beyond: rank of the one who passes it on, or 0. */
static void call_next(struct worker *from, struct backend *backend, struct endpoint *place,
                      uint64_t beyond)
{
    struct worker *to = NULL;
    (void)pthread_mutex_lock(&backend->lock);
    struct waiter *waiter = next_for(backend, place, beyond);
    if (waiter != NULL && call_locked(waiter, place)) {
        to = waiter->worker;
    }
    (void)pthread_mutex_unlock(&backend->lock);
    if (to != NULL) {
        tell(from, to, backend);
    }
}

void place_call_all_mt(struct backend *backend)
{
    if (count_of(&backend->queue.length) == 0) {
        return;
    }
    struct worker *workers[PROXY_WORKERS_MAX] = {NULL};
    (void)pthread_mutex_lock(&backend->lock);
    while (backend->queue.waiting != NULL) {
        struct worker *worker = backend->queue.waiting->worker;
        if (call_locked(backend->queue.waiting, NULL)) {
            workers[worker->idx] = worker;
        }
    }
    (void)pthread_mutex_unlock(&backend->lock);
    for (size_t i = 0; i < PROXY_WORKERS_MAX; i++) {
        if (workers[i] != NULL) {
            tell(NULL, workers[i], backend);
        }
    }
}

/* ---- waiting ---- */

/* It waits no more. taken: the place that it got; NULL: none. */
static void leave(struct waiter *waiter, struct endpoint *taken)
{
    struct backend *backend = waiter->backend;
    (void)pthread_mutex_lock(&backend->lock);
    unlink_locked(waiter);
    struct endpoint *place = waiter->place; /* whoever was about to call it has done so */
    (void)atomic_fetch_sub_explicit(counted_in(waiter), 1, memory_order_seq_cst);
    (void)atomic_fetch_sub_explicit(&backend->queue.length, 1, memory_order_seq_cst);
    (void)pthread_mutex_unlock(&backend->lock);
    waiter->rank = 0;
    waiter->place = NULL;
    wheel_clear(&waiter->worker->wheel, &waiter->timer);
    if (place != NULL) {
        if (place != taken) {
            call_next(waiter->worker, backend, place, 0);
        }
        endpoint_unref(place);
    }
}

void place_cancel(struct waiter *waiter)
{
    if (waiter->rank != 0) {
        leave(waiter, NULL);
    }
}

/* Into the queue, behind all others; false: it is full. */
static bool begin_waiting(struct worker *worker, const struct place_ask *ask, struct waiter *waiter,
                          struct endpoint *wanted)
{
    struct backend *backend = ask->backend;
    const struct proxy_backend *policy = &backend_endpoints(backend)->policy;
    bool fits = false;
    (void)pthread_mutex_lock(&backend->lock);
    if (place_waiting(backend) < policy->queue_max) {
        fits = true;
        waiter->rank = ++backend->queue.last_rank;
        waiter->worker = worker;
        waiter->backend = backend;
        waiter->wanted = wanted;
        waiter->place = NULL;
        link_locked(waiter);
        (void)atomic_fetch_add_explicit(counted_in(waiter), 1, memory_order_seq_cst);
        (void)atomic_fetch_add_explicit(&backend->queue.length, 1, memory_order_seq_cst);
    }
    (void)pthread_mutex_unlock(&backend->lock);
    if (fits) {
        uint32_t wait_ms = policy->queue_ms != 0 ? policy->queue_ms : ask->queue_ms;
        waiter->deadline_ms = worker_now(worker) + wait_ms;
        waiter->timer = (struct wheel_entry){.kind = WHEEL_WAITER};
        worker_deadline(worker, &waiter->timer, wait_ms);
    }
    return fits;
}

/* Called in vain: back to where it was, and whoever else the place may suit is called. */
static void wait_on(struct waiter *waiter, struct endpoint *wanted, bool pass_on)
{
    struct backend *backend = waiter->backend;
    struct endpoint *place = waiter->place;
    waiter->place = NULL;
    (void)pthread_mutex_lock(&backend->lock);
    unlink_locked(waiter);
    if (waiter->wanted != wanted) { /* the one it wanted cannot serve any more */
        (void)atomic_fetch_sub_explicit(counted_in(waiter), 1, memory_order_seq_cst);
        waiter->wanted = wanted;
        (void)atomic_fetch_add_explicit(counted_in(waiter), 1, memory_order_seq_cst);
    }
    link_locked(waiter);
    (void)pthread_mutex_unlock(&backend->lock);
    if (place != NULL) {
        if (pass_on) {
            call_next(waiter->worker, backend, place, waiter->rank);
        }
        endpoint_unref(place);
    }
}

/* ---- places ---- */

struct look {
    const struct endpoint_set *set;
    struct balance_ask how;
    struct endpoint *wanted; /* it can serve; NULL: any */
};

/* Take a place now: TAKEN, FULL or NONE. */
static inline __attribute__((always_inline)) enum place take_now(const struct look *look,
                                                                 struct endpoint **ret_endpoint)
{
    uint32_t limit = look->set->policy.connections_per_endpoint_max;
    if (look->wanted != NULL) {
        *ret_endpoint = look->wanted;
        return endpoint_begin_within(look->wanted, limit) ? PLACE_TAKEN : PLACE_FULL;
    }
    for (;;) {
        bool full = false;
        struct endpoint *endpoint = balance_pick(look->set, &look->how, &full);
        if (endpoint == NULL) {
            return full ? PLACE_FULL : PLACE_NONE;
        }
        if (endpoint_begin_within(endpoint, limit)) {
            *ret_endpoint = endpoint;
            return PLACE_TAKEN;
        } /* another worker was faster; it is full now */
    }
}

/* Somebody came before and still waits for the same. */
static bool must_queue(const struct look *look, const struct backend *backend)
{
    const _Atomic uint32_t *ahead =
        look->wanted != NULL ? &look->wanted->waiting : &backend->queue.ahead;
    return count_of(ahead) != 0;
}

static __attribute__((noinline)) enum place
seek_again(const struct look *look, struct waiter *waiter, struct endpoint **ret_endpoint)
{
    enum place place = take_now(look, ret_endpoint);
    if (place != PLACE_FULL) {
        leave(waiter, place == PLACE_TAKEN ? *ret_endpoint : NULL);
        return place;
    }
    if (look->how.now_ms >= waiter->deadline_ms) {
        counter_add(&slot_of(waiter)->queue_timeouts, 1);
        leave(waiter, NULL);
        return PLACE_LATE;
    }
    /* Not for this one: it has tried the endpoint, or only holders may go there (drain). */
    bool suits_others =
        waiter->place != NULL &&
        !endpoint_is_full(waiter->place, look->set->policy.connections_per_endpoint_max);
    wait_on(waiter, look->wanted, suits_others);
    return PLACE_WAITING;
}

static enum place seek_first(const struct look *look, const struct place_ask *ask,
                             struct worker *worker, struct waiter *waiter,
                             struct endpoint **ret_endpoint)
{
    struct backend_slot *slot = &ask->backend->slots[worker->idx];
    bool behind =
        look->set->policy.connections_per_endpoint_max != 0 && must_queue(look, ask->backend);
    enum place place = behind ? PLACE_FULL : take_now(look, ret_endpoint);
    if (place != PLACE_FULL) {
        return place;
    }
    if (!begin_waiting(worker, ask, waiter, look->wanted)) {
        counter_add(&slot->queue_refused, 1);
        return PLACE_FULL;
    }
    counter_add(&slot->queued, 1);
    if (behind) {
        return PLACE_WAITING; /* they are called first */
    }
    place = take_now(look, ret_endpoint); /* one may have become free meanwhile */
    if (place == PLACE_FULL) {
        return PLACE_WAITING;
    }
    leave(waiter, place == PLACE_TAKEN ? *ret_endpoint : NULL);
    return place;
}

static inline __attribute__((always_inline)) struct look look_at(struct worker *worker,
                                                                 const struct place_ask *ask)
{
    worker_online(worker);
    struct look look = {
        .set = backend_endpoints(ask->backend),
        .how = {.rng = &worker->rng,
                .turn = &ask->backend->slots[worker->idx].turn,
                .now_ms = worker_now(worker),
                .hash = ask->hash,
                .tried = ask->tried,
                .tried_count = ask->tried_count},
    };
    if (ask->wanted != NULL && balance_can_hold(look.set, ask->wanted, &look.how)) {
        look.wanted = ask->wanted;
    }
    return look;
}

enum place place_seek(struct worker *worker, const struct place_ask *ask, struct waiter *waiter,
                      struct endpoint **ret_endpoint)
{
    const struct look look = look_at(worker, ask);
    return UNLIKELY(waiter->rank != 0) ? seek_again(&look, waiter, ret_endpoint)
                                       : seek_first(&look, ask, worker, waiter, ret_endpoint);
}

enum place place_take(struct worker *worker, const struct place_ask *ask,
                      struct endpoint **ret_endpoint)
{
    const struct look look = look_at(worker, ask);
    if (look.set->policy.connections_per_endpoint_max != 0 && must_queue(&look, ask->backend)) {
        return PLACE_FULL;
    }
    return take_now(&look, ret_endpoint);
}

bool place_is_there(struct worker *worker, const struct place_ask *ask)
{
    const struct look look = look_at(worker, ask);
    bool full = false;
    return look.wanted != NULL
               ? !endpoint_is_full(look.wanted, look.set->policy.connections_per_endpoint_max)
               : balance_pick(look.set, &look.how, &full) != NULL;
}

void place_late(struct waiter *waiter)
{
    /* Another worker may be calling it. */
    (void)pthread_mutex_lock(&waiter->backend->lock);
    bool waits = waiter->list != NULL;
    unlink_locked(waiter);
    (void)pthread_mutex_unlock(&waiter->backend->lock);
    if (waits) { /* else its turn has come in this very event */
        waiter->on_turn(waiter);
    }
}

void place_give_back(struct worker *worker, struct backend *backend, struct endpoint *endpoint)
{
    endpoint_end(endpoint);
    if (UNLIKELY(count_of(&backend->queue.length) != 0)) {
        call_next(worker, backend, endpoint, 0);
    }
}
