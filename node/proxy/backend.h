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
#include "node/proxy/proxy.h"

struct set_entry {
    struct endpoint *endpoint; /* one reference */
    uint32_t weight;
    uint32_t weight_end; /* sum of the weights up to and with this one */
};

/* Immutable once published. */
struct endpoint_set {
    struct qsbr_node retired;
    enum balance balance;
    uint32_t count;        /* all that are configured */
    uint32_t usable_count; /* those in front: with a weight and not draining */
    uint32_t weight_total; /* of the usable ones */
    uint32_t schedule_len; /* round robin: order of turns, indices into entries */
    uint16_t *schedule;
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

/* Valid for the rest of this loop iteration; the worker is online (qsbr.h). */
static inline const struct endpoint_set *backend_endpoints(const struct backend *backend)
{
    return atomic_load_explicit(&backend->set, memory_order_seq_cst);
}

#endif
