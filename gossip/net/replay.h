/*
 * Which counters of one sender were seen: the highest, and a window of 1024 below it.
 * Pure. Source: RFC 6479 in spirit.
 */
#ifndef SKEIN_GOSSIP_NET_REPLAY_H
#define SKEIN_GOSSIP_NET_REPLAY_H

#include "node/base/defs.h"

enum { REPLAY_WINDOW = 1024 };

struct replay {
    uint64_t highest;
    uint64_t seen[REPLAY_WINDOW / 64]; /* bit counter % REPLAY_WINDOW */
};

/* Nothing up to and including `counter` is accepted from here on. */
void replay_begin(struct replay *replay, uint64_t counter);

/* True, once for each counter: new. False: seen, or too old to tell. */
bool replay_accept(struct replay *replay, uint64_t counter);

#endif
