/*
 * Hashed timing wheel; see wheel.h.
 */
#include "node/proxy/wheel.h"

#include "node/base/check.h"

void wheel_init(struct wheel *wheel, uint64_t now_ms)
{
    for (size_t i = 0; i < WHEEL_SLOTS; i++) {
        struct wheel_entry *head = &wheel->slots[i];
        *head = (struct wheel_entry){.prev = head, .next = head};
    }
    wheel->tick = now_ms / WHEEL_TICK_MS + 1;
    wheel->count = 0;
}

void wheel_restart(struct wheel *wheel, uint64_t now_ms)
{
    ASSERT(wheel->count == 0);
    wheel->tick = now_ms / WHEEL_TICK_MS + 1;
}

static void entry_link(struct wheel *wheel, struct wheel_entry *entry, uint64_t tick)
{
    tick = MIN(MAX(tick, wheel->tick), wheel->tick + WHEEL_SLOTS - 1);
    struct wheel_entry *head = &wheel->slots[tick % WHEEL_SLOTS];
    entry->tick = tick;
    entry->prev = head->prev;
    entry->next = head;
    head->prev->next = entry;
    head->prev = entry;
    wheel->count++;
}

static void entry_unlink(struct wheel *wheel, struct wheel_entry *entry)
{
    entry->prev->next = entry->next;
    entry->next->prev = entry->prev;
    entry->prev = NULL;
    entry->next = NULL;
    wheel->count--;
}

/* The first tick at which now_ms >= deadline. */
static uint64_t tick_of(uint64_t deadline_ms)
{
    return (deadline_ms + WHEEL_TICK_MS - 1) / WHEEL_TICK_MS;
}

void wheel_set(struct wheel *wheel, struct wheel_entry *entry, uint64_t deadline_ms)
{
    ASSERT(deadline_ms != 0);
    entry->deadline_ms = deadline_ms;
    uint64_t tick = tick_of(deadline_ms);
    if (entry->prev != NULL) {
        if (entry->tick <= tick) {
            return;
        }
        entry_unlink(wheel, entry);
    }
    entry_link(wheel, entry, tick);
}

void wheel_clear(struct wheel *wheel, struct wheel_entry *entry)
{
    entry->deadline_ms = 0;
    if (entry->prev != NULL) {
        entry_unlink(wheel, entry);
    }
}

void wheel_advance(struct wheel *wheel, uint64_t now_ms, wheel_fire_fn fire, void *ctx)
{
    uint64_t last = now_ms / WHEEL_TICK_MS;
    if (last >= wheel->tick + WHEEL_SLOTS) {
        /* A long sleep: one turn sees every slot. */
        wheel->tick = last - WHEEL_SLOTS + 1;
    }
    while (wheel->tick <= last) {
        struct wheel_entry *head = &wheel->slots[wheel->tick % WHEEL_SLOTS];
        /* Advance first: an entry set by a callback never lands in the slot being emptied. */
        wheel->tick++;
        /* The list is moved aside, so an entry queued one whole turn ahead is not seen twice. */
        struct wheel_entry due = {.prev = &due, .next = &due};
        if (head->next != head) {
            due.next = head->next;
            due.prev = head->prev;
            due.next->prev = &due;
            due.prev->next = &due;
            head->next = head;
            head->prev = head;
        }
        while (due.next != &due) {
            struct wheel_entry *entry = due.next;
            entry_unlink(wheel, entry);
            if (entry->deadline_ms == 0) {
                continue;
            }
            if (entry->deadline_ms > now_ms) {
                entry_link(wheel, entry, tick_of(entry->deadline_ms));
                continue;
            }
            entry->deadline_ms = 0;
            fire(ctx, entry);
        }
    }
}
