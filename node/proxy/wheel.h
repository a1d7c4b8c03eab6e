/*
 * Hashed timing wheel: very many deadlines, one timer handle per worker.
 *
 * An entry sits in the slot of the tick at which it is looked at, which is never later than its
 * deadline. Moving a deadline later (every exchange does) is one store: the entry is found early in
 * its old slot and queued again. Moving it before the queued tick relinks it. Deadlines fire up to
 * one tick late, never early.
 * Pure: time is passed in. Thread: the owner's.
 */
#ifndef SKEIN_NODE_PROXY_WHEEL_H
#define SKEIN_NODE_PROXY_WHEEL_H

#include "node/base/defs.h"

enum {
    WHEEL_TICK_MS = 50,
    WHEEL_SLOTS = 1024, /* 51 s; what lies further is looked at once a turn */
};

/* Whose deadline it is, for the one who is told. */
enum wheel_kind {
    WHEEL_CLIENT = 0,
    WHEEL_UPSTREAM,
    WHEEL_WAITER,   /* for a place at an endpoint */
    WHEEL_EXCHANGE, /* the whole of it */
    WHEEL_TCP,
    WHEEL_GREET,
    WHEEL_HELLO,
    WHEEL_RACE, /* a second connect (race.h) */
};

struct wheel_entry {
    struct wheel_entry *prev; /* NULL: not queued */
    struct wheel_entry *next;
    uint64_t deadline_ms; /* 0: none */
    uint64_t tick;        /* when its slot comes up */
    enum wheel_kind kind;
};

struct wheel {
    struct wheel_entry slots[WHEEL_SLOTS]; /* list heads */
    uint64_t tick;                         /* the next to be looked at */
    size_t count;                          /* entries queued */
};

/* Called for an entry whose deadline has passed; it is not queued and its deadline is 0. It may
 * set, clear and free any entry. */
typedef void (*wheel_fire_fn)(void *ctx, struct wheel_entry *entry);

void wheel_init(struct wheel *wheel, uint64_t now_ms);

/* The wheel is empty and was not advanced for a while. */
void wheel_restart(struct wheel *wheel, uint64_t now_ms);

/* deadline_ms > 0. A zeroed entry is ready for use. */
void wheel_set(struct wheel *wheel, struct wheel_entry *entry, uint64_t deadline_ms);

/* True: the deadline was moved by one store, since the entry is queued early enough, as nearly
 * always. False: nothing was done. */
static inline bool wheel_move(struct wheel_entry *entry, uint64_t deadline_ms)
{
    if (entry->prev == NULL || entry->tick * WHEEL_TICK_MS > deadline_ms) {
        return false;
    }
    entry->deadline_ms = deadline_ms;
    return true;
}

/* Forget the deadline but leave the entry where it is: for one that will be set again soon. */
static inline void wheel_relax(struct wheel_entry *entry)
{
    entry->deadline_ms = 0;
}

/* Take the entry out; needed before its memory goes. */
void wheel_clear(struct wheel *wheel, struct wheel_entry *entry);

/* Fire everything that is due at now_ms. */
void wheel_advance(struct wheel *wheel, uint64_t now_ms, wheel_fire_fn fire, void *ctx);

#endif
