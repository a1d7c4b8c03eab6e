/*
 * How often and how many at once: one table per node for all limits, shared by the workers.
 *
 * Rates are token buckets in their time form (GCRA, ITU-T I.371): per key one number, the time at
 * which its bucket would be full again. `requests` per window spread evenly, `burst` at once.
 * Counts are words of a tag and a number. Both tables are set-associative with keys hashed under a
 * secret, so a look-up costs the same whatever the number of keys (RATE_SLOTS and COUNT_SLOTS of
 * them); when all places of a key's set are taken, the rate that was idle the longest is forgotten,
 * while a count is never forgotten: who finds no place for it is refused.
 *
 * What a limit knows is found by its id alone, so that it survives every change that keeps the id.
 * It is this node's; one for the cluster can stand behind the same calls.
 * Thread: any for take, enter and leave, which take no lock; the rest is for the control thread.
 */
#ifndef SKEIN_NODE_PROXY_LIMITER_H
#define SKEIN_NODE_PROXY_LIMITER_H

#include "node/base/addr.h"

struct limiter;

/* What is allowed for each key. */
struct limit {
    uint64_t id;          /* limit_id: seeds the keys */
    uint64_t interval_ns; /* between two at the steady rate; 0: no limit on the rate */
    uint64_t slack_ns;    /* how far ahead of the steady rate a burst may be */
    uint32_t at_once;     /* 0: no limit on the number */
};

/* requests 0: no limit on the rate; burst 0: as requests; at_once 0: none. */
void limit_init(struct limit *limit, uint64_t id, uint32_t requests, uint32_t window_ms,
                uint32_t burst, uint32_t at_once);

/* The same for the same bytes on this node and in this run. */
uint64_t limit_id(const struct limiter *limiter, const char *bytes, size_t len);

struct limiter *limiter_new(void);
void limiter_free(struct limiter *limiter); /* NULL is accepted; nobody is inside any more */

/* Of whom: an address (IPv6 by its /64), bytes such as a header's value, or everybody. */
uint64_t limiter_key_addr(const struct limiter *limiter, const struct limit *limit,
                          const struct addr *addr);
uint64_t limiter_key_bytes(const struct limiter *limiter, const struct limit *limit,
                           const char *bytes, size_t len);
uint64_t limiter_key_all(const struct limiter *limiter, const struct limit *limit);

/* One more at this time (monotonic). False: too many; *ret_wait_ns is how long until the next one
 * is admitted, and nothing was counted. */
bool limiter_take(struct limiter *limiter, const struct limit *limit, uint64_t key, uint64_t now_ns,
                  uint64_t *ret_wait_ns);

/* A place among those that are at once; NULL: none is free. */
struct limiter_place;
struct limiter_place *limiter_enter(struct limiter *limiter, const struct limit *limit,
                                    uint64_t key);
void limiter_leave(struct limiter_place *place); /* NULL is accepted */

#endif
