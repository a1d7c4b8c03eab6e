/*
 * Looks at very many endpoints, each at its own pace, on one loop.
 *
 * Every target waits for one moment: its next look, or the time limit of the look that is under
 * way. Looks in flight are bounded, and so are starts per moment, so that a hundred thousand
 * targets make checks late, never the loop; those that wait longest go first. Targets whose last
 * look failed have at most half of the places, so that a black hole that takes all its time limit
 * does not keep others from being looked at.
 *
 * Thread: the loop's. Blocks: never.
 */
#ifndef SKEIN_NODE_HEALTH_PROBER_H
#define SKEIN_NODE_HEALTH_PROBER_H

#include "node/base/addr.h"
#include "node/base/buf.h"
#include "node/health/check_spec.h"
#include "node/health/judge.h"

#include <uv.h>

enum {
    PROBER_IN_FLIGHT_MAX = 512,
    PROBER_STARTS_PER_SLICE = 32, /* 6400 a second: about a third of one core */
    PROBER_SLICE_MS = 5,          /* about 1.5 ms of it are starts and ends of looks */
};

struct prober;
struct prober_target;

struct prober_ops {
    /* This node's vote has changed; why is "" when up, borrowed. It must not remove a target. */
    void (*on_vote)(void *owner, enum check_vote vote, const char *why);
};

struct prober_view {
    enum check_vote vote;
    uint64_t since_wall_ms; /* of the vote; 0: it has none */
    const char *why;        /* what is wrong, or was at the last look; "": nothing; borrowed */
    uint32_t streak;        /* looks in a row that speak against the vote ... */
    uint32_t needed;        /* ... of so many that change it */
};

/* ops is borrowed for ever (static). */
struct prober *prober_new(uv_loop_t *loop, const struct prober_ops *ops);

/* All targets are removed by now; memory goes when the loop has closed the timer. NULL is accepted.
 */
void prober_free(struct prober *prober);

/*
 * Look at addr from now on, the first time at once. host: what requests call it (NULL: the
 * address); copied. The target keeps a reference of its own on spec.
 */
struct prober_target *prober_add(struct prober *prober, const struct addr *addr, const char *host,
                                 struct check_spec *spec, void *owner);

/* Look by another spec from now on. The vote stays until observations change it; the next look
 * comes at once. */
void prober_change(struct prober *prober, struct prober_target *target, struct check_spec *spec);

/* No callback for it follows. NULL is accepted. */
void prober_remove(struct prober *prober, struct prober_target *target);

void prober_view(const struct prober_target *target, struct prober_view *ret_view);

size_t prober_count(const struct prober *prober);
size_t prober_in_flight(const struct prober *prober);

/* Prometheus text, appended. */
void prober_metrics(const struct prober *prober, struct buf *out);

#endif
