/*
 * Kinds of TLS connections to an endpoint, and their sessions; see utls.h.
 */
#include "node/proxy/utls.h"

#include "node/base/mem.h"
#include "node/proxy/worker.h"

#include <string.h>
#include <utlist.h>

static struct endpoint_slot *slot_of(const struct worker *worker, struct endpoint *endpoint)
{
    return &endpoint->slots[worker->idx];
}

static void utls_free(struct worker *worker, struct utls *utls)
{
    ASSERT(utls->users == 0);
    struct endpoint_slot *slot = slot_of(worker, utls->endpoint);
    DL_DELETE(slot->tls, utls);
    tls_resume_clear(&utls->resume);
    tls_target_unref(utls->target);
    endpoint_unref(utls->endpoint);
    mem_free(utls);
}

static void leave_kept(struct worker *worker, struct utls *utls)
{
    DL_DELETE2(worker->utls_kept, utls, kept_prev, kept_next);
    worker->utls_kept_count--;
}

static void drop_kept(struct worker *worker, struct utls *utls)
{
    leave_kept(worker, utls);
    utls_free(worker, utls);
}

/* The configuration was made anew and asks for the same: the next look goes by the pointer. */
static void use_pointer(struct utls *utls, struct tls_target *target)
{
    tls_target_ref(target);
    tls_target_unref(utls->target);
    utls->target = target;
}

struct utls *utls_find(struct worker *worker, struct endpoint *endpoint, struct tls_target *target)
{
    struct utls *first = slot_of(worker, endpoint)->tls;
    struct utls *utls;
    DL_FOREACH (first, utls) {
        if (utls->target == target) {
            return utls;
        }
    }
    DL_FOREACH (first, utls) {
        if (memcmp(tls_target_digest(utls->target), tls_target_digest(target), TLS_DIGEST_BYTES) ==
            0) {
            use_pointer(utls, target);
            return utls;
        }
    }
    return NULL;
}

bool utls_is_stale(const struct utls *utls, uint64_t now_ms)
{
    return now_ms - utls->verified_ms > UTLS_VERIFY_MS;
}

struct utls *utls_take(struct worker *worker, struct endpoint *endpoint, struct tls_target *target)
{
    struct utls *utls = utls_find(worker, endpoint, target);
    if (utls == NULL) {
        utls = mem_new(sizeof(*utls));
        tls_target_ref(target);
        utls->target = target;
        endpoint_ref(endpoint);
        utls->endpoint = endpoint;
        utls->verified_ms = worker_now(worker); /* it has no session yet */
        struct endpoint_slot *slot = slot_of(worker, endpoint);
        DL_PREPEND(slot->tls, utls);
    } else if (utls->users == 0) {
        leave_kept(worker, utls);
    }
    if (utls_is_stale(utls, worker_now(worker))) {
        tls_resume_clear(&utls->resume);
    }
    utls->users++;
    return utls;
}

void utls_put(struct worker *worker, struct utls *utls)
{
    ASSERT(utls->users != 0);
    if (--utls->users != 0) {
        return;
    }
    if (worker->stopping || endpoint_is_gone(utls->endpoint)) {
        utls_free(worker, utls);
        return;
    }
    if (worker->utls_kept_count >= UTLS_KEPT_MAX) {
        drop_kept(worker, worker->utls_kept);
    }
    DL_APPEND2(worker->utls_kept, utls, kept_prev, kept_next);
    worker->utls_kept_count++;
}

void utls_flush(struct worker *worker, struct endpoint *endpoint)
{
    struct utls *utls, *next;
    DL_FOREACH_SAFE (slot_of(worker, endpoint)->tls, utls, next) {
        if (utls->users == 0) {
            drop_kept(worker, utls);
        }
    }
}

void utls_stop(struct worker *worker)
{
    while (worker->utls_kept != NULL) {
        drop_kept(worker, worker->utls_kept);
    }
}
