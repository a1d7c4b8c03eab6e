/*
 * Backends: a name, counters, and an atomic pointer to an immutable endpoint set.
 *
 * An endpoint change replaces the set and nothing else. Workers read the pointer within one loop
 * iteration; what outlives it holds a reference on the endpoint. A backend is kept by its owner
 * (the control thread) and by each rule that targets it.
 */
#ifndef SKEIN_NODE_PROXY_BACKEND_H
#define SKEIN_NODE_PROXY_BACKEND_H

#include "node/proxy/endpoint.h"
#include "node/proxy/retry.h"
#include "node/proxy/sock.h"
#include "node/proxy/worker_mail.h"

#include <pthread.h>

struct set_entry {
    struct endpoint *endpoint; /* one reference */
    uint32_t weight;
    uint32_t weight_end; /* sum of the weights up to and with this one */
};

/* Which entry a sticky token stands for; the table is open-addressed by the token's first bytes,
 * which are as good as random. */
struct set_token {
    uint8_t token[PROXY_TOKEN_BYTES];
    uint16_t entry; /* index + 1; 0: free */
};

/* Immutable once published. */
struct endpoint_set {
    struct qsbr_node retired;
    struct backend *backend;     /* outlives it */
    struct proxy_backend policy; /* hash_name is the set's own, tls a reference */
    uint32_t count;              /* all that are configured */
    uint32_t usable_count;       /* those in front: with a weight and not draining */
    uint32_t weight_total;       /* of the usable ones */
    bool even;                   /* the usable ones weigh the same */
    uint32_t schedule_len;       /* round robin: order of turns, indices into entries */
    uint16_t *schedule;
    uint64_t *identities; /* BALANCE_HASH: of the usable ones, close together */
    uint32_t token_mask;
    struct set_token *tokens; /* NULL: none has one */
    struct set_entry entries[];
};

/* What one worker has with the backend. */
struct backend_slot {
    _Alignas(CACHE_LINE) uint64_t turn; /* round robin */
    struct traffic traffic;
    struct counter connect_errors;
    struct counter response_errors;
    struct counter reused;
    struct counter retries;
    struct counter retries_refused; /* the budget was used up */
    struct counter queued;
    struct counter queue_refused;  /* it was full */
    struct counter queue_timeouts; /* waited in vain */
    struct counter raced;          /* connects that were raced by another */
    struct counter tls_full;       /* handshakes with endpoints, by how they ended */
    struct counter tls_resumed;
    struct counter tls_failed;
    struct retry_budget budget;

    /* Who is called on this worker, and its task or mail; guarded by the queue's lock. */
    struct waiter *called;
    bool call_due;
    struct task call_task;
    struct worker_mail call_mail;
    struct backend *backend;               /* of this slot */
    _Atomic(struct backend_times *) times; /* NULL: nothing to tell yet */
};

/* How long things took, on one worker. */
struct backend_times {
    struct histogram connect;
    struct histogram response; /* request sent to response head */
};

/* Who waits for a place; see queue.h. */
struct queue {
    struct waiter *waiting; /* utlist, by rank */
    uint64_t last_rank;
    _Atomic uint32_t ahead;  /* those for whom any endpoint will do; called ones included */
    _Atomic uint32_t length; /* all */
};

struct catalog;

struct backend {
    struct qsbr_node retired;
    struct backend *prev; /* registry of the catalog, control thread */
    struct backend *next;
    struct catalog *catalog;
    char *name;
    struct refcnt refs;
    _Atomic(struct endpoint_set *) set; /* never NULL */
    _Atomic bool panic;                 /* so few are available that all are used */
    pthread_mutex_t lock;               /* a leaf: the queue, ejection, `panic` */
    struct queue queue;
    struct counter ejections; /* written under the lock */
    unsigned series_share;    /* enum series_share (catalog.h) */
    _Atomic bool touched;     /* it was asked for; else there is nothing to sum up */
    size_t slot_count;
    struct backend_slot slots[];
};

struct backend *backend_make(struct catalog *catalog, const char *name);
void backend_ref(struct backend *backend);
/* Any thread: the last one posts it to the control thread. NULL is accepted. */
void backend_put(struct backend *backend);

/* At the end of the catalog, whoever still refers to it. */
void backend_destroy(struct backend *backend);

/* As backend_set of proxy.h. An address given twice counts once, as it was given first. Control
 * thread. */
MUST_CHECK int backend_replace(struct backend *backend, const struct proxy_backend *policy,
                               const struct proxy_endpoint *endpoints, size_t count,
                               struct err_info *err);

/* The endpoint that a token stands for, with its weight or without; NULL: none. */
struct endpoint *set_find_token(const struct endpoint_set *set,
                                const uint8_t token[PROXY_TOKEN_BYTES]);

/* ---- backend_live.c: who is available ---- */

/* A connect failed, a response was a 5xx or never came. May eject the endpoint. A worker, online.
 */
void backend_failed(struct backend *backend, struct endpoint *endpoint, uint64_t now_ms);
/* Clear what is over; returns what holds. A worker, online. */
uint32_t backend_check_flags(struct backend *backend, struct endpoint *endpoint, uint64_t now_ms);
/* Control thread. */
void backend_set_health(struct backend *backend, const struct addr *addr, enum proxy_health health,
                        uint64_t now_ms);
/* Find `panic` anew: after the set or a flag changed. */
void backend_recount(struct backend *backend);
/* So few are available that all are used. */
static inline bool backend_panics(const struct backend *backend)
{
    return atomic_load_explicit(&backend->panic, memory_order_relaxed);
}
/* Usable endpoints, and how many of them are neither down nor ejected. Control thread. */
void backend_availability(const struct backend *backend, uint32_t *ret_usable,
                          uint32_t *ret_available);

/* Something is counted. Any thread. */
static inline void backend_touch(struct backend *backend)
{
    if (UNLIKELY(!atomic_load_explicit(&backend->touched, memory_order_relaxed))) {
        atomic_store_explicit(&backend->touched, true, memory_order_relaxed);
    }
}

/* Made at the first use. Thread: worker idx. */
struct backend_times *backend_times_make(struct backend *backend, size_t idx);
static inline struct backend_times *backend_times(struct backend *backend, size_t idx)
{
    struct backend_times *times =
        atomic_load_explicit(&backend->slots[idx].times, memory_order_relaxed);
    return LIKELY(times != NULL) ? times : backend_times_make(backend, idx);
}

/* Valid for the rest of this loop iteration; the worker is online (qsbr.h). */
static inline const struct endpoint_set *backend_endpoints(const struct backend *backend)
{
    return atomic_load_explicit(&backend->set, memory_order_seq_cst);
}

#endif
