/*
 * The queue of events: a binary heap by (time, number).
 */
#include "node/base/mem.h"
#include "tests/sim/world.h"

static bool is_before(const struct event *a, const struct event *b)
{
    return a->at < b->at || (a->at == b->at && a->no < b->no);
}

struct event *world_push(struct world *world, uint64_t at, enum event_kind kind)
{
    if (world->heap_count == world->heap_size) {
        world->heap_size = MAX(world->heap_size * 2, (size_t)1024);
        world->heap = mem_grow(world->heap, world->heap_size, sizeof(struct event *));
    }
    struct event *event = mem_new(sizeof(*event));
    event->at = MAX(at, world->now);
    event->no = ++world->last_no;
    event->kind = kind;
    size_t at_idx = world->heap_count++;
    while (at_idx > 0 && is_before(event, world->heap[(at_idx - 1) / 2])) {
        world->heap[at_idx] = world->heap[(at_idx - 1) / 2];
        at_idx = (at_idx - 1) / 2;
    }
    world->heap[at_idx] = event;
    return event;
}

struct event *world_pop(struct world *world)
{
    if (world->heap_count == 0) {
        return NULL;
    }
    struct event *top = world->heap[0];
    struct event *last = world->heap[--world->heap_count];
    size_t hole = 0;
    for (;;) {
        size_t child = 2 * hole + 1;
        if (child >= world->heap_count) {
            break;
        }
        if (child + 1 < world->heap_count &&
            is_before(world->heap[child + 1], world->heap[child])) {
            child++;
        }
        if (!is_before(world->heap[child], last)) {
            break;
        }
        world->heap[hole] = world->heap[child];
        hole = child;
    }
    world->heap[hole] = last;
    return top;
}

void world_clear(struct world *world)
{
    struct event *event = NULL;
    while ((event = world_pop(world)) != NULL) {
        if (event->link != NULL) {
            net_link_unref(world, event->link);
        }
        mem_free(event->bytes);
        mem_free(event);
    }
    MEM_FREE(world->heap);
}
