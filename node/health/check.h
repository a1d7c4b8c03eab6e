/*
 * What one node makes of its observations of one endpoint: its vote, and when to look again.
 *
 *   vote     | observation | after                    | vote
 *   UNKNOWN  | good        | 1                        | UP
 *   UNKNOWN  | bad         | 1                        | DOWN
 *   UP       | bad         | `fall` in a row          | DOWN
 *   DOWN     | good        | `rise` in a row          | UP
 *
 * An endpoint that nobody has looked at is used (UNKNOWN), and the first look decides, as HAProxy
 * does: a new endpoint that is dead serves for one interval of its check at most.
 *
 * The vote is this node's own opinion and nothing more. Who turns votes into a verdict is the
 * owner: alone, it takes its vote as it is; in a cluster it can hear those of other observers.
 * Pure: time is passed in. Thread: the owner's.
 */
#ifndef SKEIN_NODE_HEALTH_CHECK_H
#define SKEIN_NODE_HEALTH_CHECK_H

#include "node/base/defs.h"
#include "node/base/rng.h"

enum check_vote {
    CHECK_UNKNOWN = 0,
    CHECK_UP,
    CHECK_DOWN,
};

/* How often, and how sure. All above 0. */
struct check_pace {
    uint32_t interval_ms;      /* from the start of one look to the start of the next */
    uint32_t interval_down_ms; /* the same while down, or while observations speak against the vote
                                */
    uint32_t timeout_ms;       /* of one look */
    uint32_t rise;
    uint32_t fall;
};

struct check {
    enum check_vote vote;
    uint32_t streak; /* observations in a row that speak against the vote */
    bool spread;     /* its phase is random by now */
};

/* All zero is a new one. True: the vote has changed. */
bool check_observe(struct check *check, const struct check_pace *pace, bool good);

/* Observations in a row so far, and how many it takes, for people; 0 of 0 when none contradicts. */
uint32_t check_needed(const struct check *check, const struct check_pace *pace);

/*
 * When to look again, in ms: from the start of the last look, with 10 % of jitter either way, and
 * not before its end. The first time that all is well the phase becomes random, so that checks that
 * began together spread over the interval.
 */
uint64_t check_next(struct check *check, const struct check_pace *pace, struct rng *rng,
                    uint64_t started_ms, uint64_t ended_ms);

#endif
