/*
 * Failed authentications per source: a bucket of THROTTLE_BURST that gets one back every
 * THROTTLE_REFILL_MS.
 *
 * Only failures are held back: a good credential is always served, so that nobody can lock out a
 * neighbour behind the same address. (A secret of 256 random bits is not guessed; what the limit
 * protects is the log, the audit trail and the processor.) The table is of fixed size; when the
 * rows of a set are taken, the source that is nearest to being forgiven is forgotten.
 * Pure. Thread: the owner's.
 */
#ifndef SKEIN_ADMIN_SERVER_THROTTLE_H
#define SKEIN_ADMIN_SERVER_THROTTLE_H

#include "node/base/addr.h"

enum {
    THROTTLE_BURST = 10,
    THROTTLE_REFILL_MS = 6000,
    THROTTLE_SETS = 256,
    THROTTLE_WAYS = 4,
};

struct throttle {
    uint64_t key[2]; /* so that nobody chooses who shares a set */
    struct throttle_row {
        uint8_t source[16]; /* an IPv4 address, mapped; of an IPv6 address the network, 64 bits */
        uint64_t full_ms;   /* when the bucket is full again; in the past: the row is free */
    } rows[THROTTLE_SETS][THROTTLE_WAYS];
};

void throttle_init(struct throttle *throttle);

/* A failure from there (unset: the unix socket). 0: answer it; else the seconds to wait, from 1. */
uint32_t throttle_fail(struct throttle *throttle, const struct addr *from, uint64_t now_ms);

#endif
