/*
 * Very many deadlines in order: a binary heap of entries that their owners embed.
 *
 * The first is found at once; setting, moving and clearing one costs O(log n). Time is whatever
 * unit the owner counts in. Pure. Thread: the owner's.
 */
#ifndef SKEIN_NODE_NET_AGENDA_H
#define SKEIN_NODE_NET_AGENDA_H

#include "node/base/defs.h"

/* All zero: in no agenda. Does not move while it is in one. */
struct agenda_entry {
    uint64_t due;
    size_t place; /* 1-based; 0: in no agenda */
};

struct agenda {
    struct agenda_entry **entries; /* a heap by due */
    size_t count;
    size_t size; /* entries allocated */
};

void agenda_init(struct agenda *agenda);
void agenda_deinit(struct agenda *agenda);

/* Put it in, or move it. An entry is in one agenda at a time. */
void agenda_set(struct agenda *agenda, struct agenda_entry *entry, uint64_t due);

/* Take it out; harmless when it is in none. */
void agenda_clear(struct agenda *agenda, struct agenda_entry *entry);

static inline bool agenda_has(const struct agenda_entry *entry)
{
    return entry->place != 0;
}

/* The earliest; NULL when there is none. */
static inline struct agenda_entry *agenda_first(const struct agenda *agenda)
{
    return agenda->count > 0 ? agenda->entries[0] : NULL;
}

/* The earliest if it is due at `now`, else NULL. */
static inline struct agenda_entry *agenda_due(const struct agenda *agenda, uint64_t now)
{
    struct agenda_entry *first = agenda_first(agenda);
    return first != NULL && first->due <= now ? first : NULL;
}

#endif
