/*
 * A slow connect is raced by one to another endpoint; the first that stands gets the request.
 *
 * Connecting has no side effects, so this is sound for every method: nothing of the request has
 * left the machine. It bounds what an endpoint costs whose packets vanish: tens of milliseconds
 * instead of the whole connect limit, and for the first requests only, since the loser is passed
 * over for a second. A connect is slow after four times what it took before, and at least
 * RACE_TICK_MS. The connection that comes second goes to the pool. With TLS it is the connects that
 * are raced: the handshake follows on the one that stands first, and the second one is closed.
 *
 * An exchange is watched from the beginning of its connect; one timer of the worker looks at all
 * that are, and stands still when there are none. Who wants one endpoint only (a holder of its
 * cookie) is never raced. Thread: the worker's.
 */
#ifndef SKEIN_NODE_PROXY_RACE_H
#define SKEIN_NODE_PROXY_RACE_H

#include "node/base/defs.h"

enum { RACE_TICK_MS = 10 };

struct exchange;
struct race;
struct wheel_entry;
struct worker;

void race_init(struct worker *worker);
/* The worker stops; all exchanges are over. */
void race_stop(struct worker *worker);

/* The exchange has just begun a connect to exchange->endpoint. */
void race_watch(struct exchange *exchange);

/* The connect stands or failed, or the exchange is over. Idempotent. */
void race_forget(struct exchange *exchange);

/* The wheel fired the entry of a race. */
void race_timeout(struct wheel_entry *entry);

#endif
