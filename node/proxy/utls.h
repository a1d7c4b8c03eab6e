/*
 * What the TLS connections of one worker to one endpoint have in common when they are made by the
 * same target: who of them may stand in for whom, and the session that the next one resumes.
 *
 * A connection is used again only by who demands the same of the endpoint: authorities, name,
 * client certificate, profile. Targets are the same when their digests are; the last pointer that
 * was seen spares the comparison. An entry with connections stays; one without is kept for its
 * session, until its endpoint is gone or UTLS_KEPT_MAX others of the worker were used later.
 * Thread: the worker's.
 */
#ifndef SKEIN_NODE_PROXY_UTLS_H
#define SKEIN_NODE_PROXY_UTLS_H

#include "node/proxy/endpoint.h"
#include "node/tls/tls_lib.h"

enum {
    UTLS_KEPT_MAX = 1024,     /* a session is a few kilobytes, the endpoint's chain included */
    UTLS_VERIFY_MS = 3600000, /* who resumes shows no certificate: for so long that is taken */
};

struct worker;

struct utls {
    struct tls_target *target; /* a reference */
    struct tls_resume resume;
    struct endpoint *endpoint; /* a reference */
    uint32_t users;            /* connections */
    uint64_t verified_ms;      /* when the endpoint last showed its certificate */
    struct utls *prev;         /* utlist: the slot's */
    struct utls *next;
    struct utls *kept_prev; /* utlist: the worker's, while it has no users; last used last */
    struct utls *kept_next;
};

/* NULL: no connection of this kind was made, or it was forgotten. */
struct utls *utls_find(struct worker *worker, struct endpoint *endpoint, struct tls_target *target);

/* Its sessions go back to a certificate that was looked at too long ago. */
bool utls_is_stale(const struct utls *utls, uint64_t now_ms);

/* Find or make; one user more, who is to be connected. */
struct utls *utls_take(struct worker *worker, struct endpoint *endpoint, struct tls_target *target);
/* One user less, whose engine is gone. */
void utls_put(struct worker *worker, struct utls *utls);

/* The endpoint is gone: entries without users are of no use. */
void utls_flush(struct worker *worker, struct endpoint *endpoint);
/* The worker stops; those that have users go with them. */
void utls_stop(struct worker *worker);

#endif
