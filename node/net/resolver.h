/*
 * Keeps DNS names resolved: each name once, however many ask for it, again at an interval.
 *
 * Names are looked up with getaddrinfo on a few threads of this unit, so neither a loop nor
 * anything else waits for them. Names that failed last time have at most half of the threads: those
 * of a dead server do not keep others from being looked up. What was found stays while look-ups
 * fail, for as long as the watcher wants to hold it.
 *
 *   look-up   | next one
 *   succeeded | after the shortest interval that its watchers asked for, 10 % of jitter either way
 *   failed    | after 1 s, doubling up to that interval, with the same jitter
 *
 * libuv's own pool is not used: it runs two look-ups at a time, which two dead names take up, and
 * the end of the process waits for it.
 * Thread: the loop's. Blocks: never. resolver_free does not wait for look-ups that are under way.
 */
#ifndef SKEIN_NODE_NET_RESOLVER_H
#define SKEIN_NODE_NET_RESOLVER_H

#include "node/base/addr.h"
#include "node/base/buf.h"
#include "node/base/errors.h"

#include <uv.h>

enum {
    RESOLVER_ADDRS_MAX = 64, /* of one name; the lowest ones count */
    RESOLVER_THREADS_MAX = 8,
    RESOLVER_RETRY_MS = 1000,
};

struct resolver;
struct resolver_watch;

struct resolver_ops {
    /*
     * Find the addresses of host, in any order and with duplicates; ports are ignored. Blocks; runs
     * on several threads at once. RC_OK with count > 0, or any other code with a text for people.
     */
    int (*lookup)(void *ctx, const char *host, struct addr *ret_addrs, size_t cap,
                  size_t *ret_count, struct err_info *err);
};

/* getaddrinfo: DNS, the hosts file and whatever else the machine is set up for; A and AAAA, AAAA
 * only where the machine has IPv6. */
extern const struct resolver_ops resolver_system;

/* ops is borrowed for ever (static), ctx until the last look-up returns. */
struct resolver *resolver_new(uv_loop_t *loop, const struct resolver_ops *ops, void *ctx);

/* All watches are closed by now; memory goes when the loop has closed the handles and the threads
 * have ended. NULL is accepted. */
void resolver_free(struct resolver *resolver);

/*
 * Watch a name. interval_ms > 0. hold_ms: how long old addresses are good for when look-ups fail
 * (UINT64_MAX: for ever). changed is called from the loop, never from within a call, when what
 * resolver_view says has changed; it may open and close watches.
 */
struct resolver_watch *resolver_watch(struct resolver *resolver, const char *host,
                                      uint64_t interval_ms, uint64_t hold_ms,
                                      void (*changed)(void *arg), void *arg);

/* Other times, as in resolver_watch. Nothing is looked up at once because of it. */
void resolver_watch_times(struct resolver_watch *watch, uint64_t interval_ms, uint64_t hold_ms);

/* NULL is accepted. */
void resolver_unwatch(struct resolver_watch *watch);

struct resolver_view {
    bool pending;             /* no look-up has ended yet */
    const struct addr *addrs; /* sorted, without duplicates, port 0; borrowed until the next turn */
    size_t count;
    const char *error; /* why the last look-up failed; NULL: it did not; borrowed */
};

void resolver_view(const struct resolver_watch *watch, struct resolver_view *ret_view);

size_t resolver_names(const struct resolver *resolver);

/* Prometheus text, appended. */
void resolver_metrics(const struct resolver *resolver, struct buf *out);

#endif
