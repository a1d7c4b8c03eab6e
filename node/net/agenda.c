/*
 * A binary min-heap of pointers; each entry knows its place, so that it can be moved and taken out.
 */
#include "node/net/agenda.h"

#include "node/base/check.h"
#include "node/base/mem.h"

enum { AGENDA_SIZE_MIN = 16 };

void agenda_init(struct agenda *agenda)
{
    *agenda = (struct agenda){0};
}

void agenda_deinit(struct agenda *agenda)
{
    ASSERT(agenda->count == 0);
    MEM_FREE(agenda->entries);
    agenda->size = 0;
}

static void put_at(struct agenda *agenda, size_t idx, struct agenda_entry *entry)
{
    agenda->entries[idx] = entry;
    entry->place = idx + 1;
}

/* Bring the entry at idx to where it belongs, towards the top or towards the leaves. */
static void settle(struct agenda *agenda, size_t idx)
{
    struct agenda_entry *entry = agenda->entries[idx];
    while (idx > 0 && entry->due < agenda->entries[(idx - 1) / 2]->due) {
        put_at(agenda, idx, agenda->entries[(idx - 1) / 2]);
        idx = (idx - 1) / 2;
    }
    for (;;) {
        size_t child = 2 * idx + 1;
        if (child + 1 < agenda->count &&
            agenda->entries[child + 1]->due < agenda->entries[child]->due) {
            child++;
        }
        if (child >= agenda->count || agenda->entries[child]->due >= entry->due) {
            break;
        }
        put_at(agenda, idx, agenda->entries[child]);
        idx = child;
    }
    put_at(agenda, idx, entry);
}

void agenda_set(struct agenda *agenda, struct agenda_entry *entry, uint64_t due)
{
    entry->due = due;
    if (entry->place == 0) {
        if (agenda->count == agenda->size) {
            agenda->size = MAX(agenda->size * 2, (size_t)AGENDA_SIZE_MIN);
            agenda->entries = mem_grow(agenda->entries, agenda->size, sizeof(*agenda->entries));
        }
        put_at(agenda, agenda->count++, entry);
    }
    ASSERT(entry->place <= agenda->count && agenda->entries[entry->place - 1] == entry);
    settle(agenda, entry->place - 1);
}

void agenda_clear(struct agenda *agenda, struct agenda_entry *entry)
{
    if (entry->place == 0) {
        return;
    }
    size_t idx = entry->place - 1;
    ASSERT(idx < agenda->count && agenda->entries[idx] == entry);
    entry->place = 0;
    struct agenda_entry *last = agenda->entries[--agenda->count];
    if (last != entry) {
        put_at(agenda, idx, last);
        settle(agenda, idx);
    }
}
