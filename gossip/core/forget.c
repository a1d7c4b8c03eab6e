/*
 * Members that an operator removed.
 *
 * A forgotten id is remembered for as long as there is room, with how far it had come, so that
 * peers who were away do not bring it back as a dead member; the member itself comes back by
 * speaking.
 */
#include "gossip/core/core.h"

#include <string.h>

struct forgotten *forgotten_find(struct gossip *core, uint64_t id)
{
    for (size_t i = 0; i < core->forgotten_count; i++) {
        if (core->forgotten[i].id == id) {
            return &core->forgotten[i];
        }
    }
    return NULL;
}

static void remove_at(struct gossip *core, size_t at)
{
    core->forgotten_count--;
    memmove(&core->forgotten[at], &core->forgotten[at + 1],
            (core->forgotten_count - at) * sizeof(core->forgotten[0]));
}

void forgotten_remove(struct gossip *core, uint64_t id)
{
    struct forgotten *gone = forgotten_find(core, id);
    if (gone != NULL) {
        remove_at(core, (size_t)(gone - core->forgotten));
    }
}

void forgotten_add(struct gossip *core, uint64_t id, uint32_t generation, uint64_t incarnation)
{
    struct forgotten *gone = forgotten_find(core, id);
    if (gone == NULL) {
        if (core->forgotten_count == FORGOTTEN_MAX) {
            remove_at(core, 0);
        }
        gone = &core->forgotten[core->forgotten_count++];
        *gone = (struct forgotten){.id = id};
    }
    gone->generation = generation;
    gone->incarnation = incarnation;
    gone->rumour_sends = 0;
    core_wake(core, core->gossip_next_ms);
}

void forgotten_fact(const struct forgotten *gone, struct gossip_fact *ret_fact)
{
    *ret_fact = (struct gossip_fact){
        .id = gone->id,
        .generation = gone->generation,
        .incarnation = gone->incarnation,
        .state = MEMBER_LEFT,
        .forget = true,
    };
}

static void forget(struct gossip *core, struct member *member, const char *why)
{
    core_event(core, GOSSIP_EVENT_MEMBER, member, "%s is forgotten: %s", member->pub.name, why);
    forgotten_add(core, member->pub.id, member->pub.generation, member->pub.incarnation);
    if (core->forgets_dirty_count < FORGOTTEN_MAX) {
        core->forgets_dirty[core->forgets_dirty_count++] = member->pub.id;
    }
    member_drop(core, member);
}

void forget_hear(struct gossip *core, const struct gossip_fact *fact)
{
    struct member *member = member_find(core, fact->id);
    if (member == NULL) {
        /* Nothing to drop; remembered without passing it on, or it would circle for ever. */
        if (forgotten_find(core, fact->id) == NULL) {
            forgotten_add(core, fact->id, fact->generation, fact->incarnation);
        }
        return;
    }
    bool covers =
        fact->generation > member->pub.generation || (fact->generation == member->pub.generation &&
                                                      fact->incarnation >= member->pub.incarnation);
    if (covers && !member_is_up(member)) {
        forget(core, member, "removed by an operator on another node");
    }
}

int gossip_forget(struct gossip *core, uint64_t id, struct gossip_now now)
{
    core->now = now;
    struct member *member = member_find(core, id);
    if (member == NULL) {
        return RC_NOT_FOUND;
    }
    if (member == core->self || member_is_up(member)) {
        return RC_BUSY;
    }
    forget(core, member, "removed by an operator");
    core_finish(core);
    return RC_OK;
}
