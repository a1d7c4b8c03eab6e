/*
 * One run: start, hostility, healing, agreement.
 */
#include "tests/sim/world.h"

#include "gossip/core/core.h"
#include "node/base/check.h"
#include "node/base/hash.h"
#include "node/base/mem.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    CHECK_MS = 500,
    SOUNDNESS_EVERY = 10, /* checks */
};

/* ---- agreement ---- */

static bool knows_others(struct world *world, const struct node *node, char *why, size_t size)
{
    for (size_t i = 0; i < world->options.nodes; i++) {
        const struct node *other = &world->nodes[i];
        const struct member *member = member_find(node->core, other->disk.id);
        bool up = other->core != NULL;
        if ((up && (member == NULL || member->pub.state != MEMBER_ALIVE)) ||
            (!up && member != NULL && member_is_up(member))) {
            (void)snprintf(why, size, "%s believes %s to be %s", node->name, other->name,
                           member == NULL ? "unknown"
                           : up           ? "not alive"
                                          : "alive");
            return false;
        }
    }
    for (size_t i = 0; i < gossip_member_count(node->core); i++) {
        const struct gossip_member *member = gossip_member_at(node->core, i);
        bool found = member->state != MEMBER_ALIVE && member->state != MEMBER_SUSPECT;
        for (size_t k = 0; k < world->options.nodes && !found; k++) {
            found = world->nodes[k].core != NULL && world->nodes[k].disk.id == member->id;
        }
        if (!found) {
            (void)snprintf(why, size, "%s counts on %s (%llx), which is gone", node->name,
                           member->name, (unsigned long long)member->id);
            return false;
        }
    }
    return true;
}

static bool agree(struct world *world, char *why, size_t size)
{
    const struct node *first = NULL;
    for (size_t i = 0; i < world->options.nodes; i++) {
        struct node *node = &world->nodes[i];
        if (node->core == NULL) {
            continue;
        }
        if (first == NULL) {
            first = node;
        }
        if (!gossip_in_step(node->core) && world->options.nodes > 1) {
            (void)snprintf(why, size, "%s is not in step", node->name);
            return false;
        }
        if (gossip_frontier_hash(node->core) != gossip_frontier_hash(first->core)) {
            (void)snprintf(why, size, "%s and %s have different writes", node->name, first->name);
            return false;
        }
        if (node->core->kv.audit_root != first->core->kv.audit_root ||
            HASH_COUNT(node->core->kv.entries) != HASH_COUNT(first->core->kv.entries)) {
            (void)snprintf(why, size, "%s and %s have different rows", node->name, first->name);
            return false;
        }
        if (node->core->gate != GATE_OPEN) {
            (void)snprintf(why, size, "%s takes no writes", node->name);
            return false;
        }
        if (!knows_others(world, node, why, size)) {
            return false;
        }
    }
    return true;
}

static void check_all(struct world *world, bool final)
{
    for (size_t i = 0; i < world->options.nodes; i++) {
        const struct node *node = &world->nodes[i];
        if (node->core != NULL) {
            oracle_check_frontier(&world->oracle, node->core, node->name);
            if (final) {
                oracle_check_required(&world->oracle, node->core, node->name);
            }
        }
    }
}

/* True: the run is over. */
static bool on_check(struct world *world)
{
    world_push(world, world->now + CHECK_MS, EVENT_CHECK);
    if (!world->calm) {
        if (world->now / CHECK_MS % SOUNDNESS_EVERY == 0) {
            check_all(world, false);
        }
        return world->oracle.fault[0] != '\0';
    }
    char why[200] = "";
    if (agree(world, why, sizeof(why))) {
        world->result->settled_ms = world->now - world->heal_at;
        check_all(world, true);
        return true;
    }
    if (world->now > world->heal_at + world->options.settle_ms) {
        oracle_fail(&world->oracle, "no agreement %llu s after the last fault: %s",
                    (unsigned long long)world->options.settle_ms / 1000, why);
        return true;
    }
    return world->oracle.fault[0] != '\0';
}

/* ---- phases ---- */

static void heal(struct world *world)
{
    world->calm = true;
    world->heal_at = world->now;
    memset(world->cut, 0, sizeof(world->cut));
    /* In a third of the runs one node never comes back. */
    size_t lost = rng_chance(&world->rng, 0.33) && world->options.nodes > 3
                      ? (size_t)rng_below(&world->rng, world->options.nodes)
                      : SIM_NODES_MAX;
    for (size_t i = 0; i < world->options.nodes; i++) {
        struct node *node = &world->nodes[i];
        node->paused_until = 0;
        node->disk_slow_until = 0;
        node->disk_full_until = 0;
        node->clock_ms = MAX(MIN(node->clock_ms, (int64_t)200), (int64_t)-200);
        if (i == lost) {
            node_crash(node, false);
            node->gone = true;
            node_require_held(world);
        } else if (node->leaving) {
            node_crash(node, false);
        }
        if (node->core == NULL && !node->gone) {
            node_start(node);
        }
    }
}

static uint64_t wait_ms(struct world *world, double per_s)
{
    /* Exponential gaps, from bits: the same on every machine as far as the library's log is. */
    double u = ((double)(rng_next(&world->rng) >> 11) + 1.0) * 0x1.0p-53;
    return 1 + (uint64_t)(-log(u) * 1000.0 / per_s);
}

static void on_node_event(struct world *world, struct event *event)
{
    struct node *node = &world->nodes[event->node];
    if (event->kind == EVENT_RESTART) {
        if (node->core == NULL && !node->gone && node->epoch == event->epoch) {
            node_start(node);
        }
        return;
    }
    if (node->core == NULL || node->epoch != event->epoch) {
        return;
    }
    if (event->kind == EVENT_TICK) {
        if (node->tick_at == event->at) {
            node->tick_at = UINT64_MAX;
            gossip_tick(node->core, node_now(node));
        }
    } else if (event->kind == EVENT_DISK) {
        node_disk_event(node);
    } else if (event->kind == EVENT_STOP) {
        node_crash(node, false);
        struct event *restart =
            world_push(world, world->now + 500 + rng_below(&world->rng, 8000), EVENT_RESTART);
        restart->node = node->slot;
        restart->epoch = node->epoch;
    }
}

/* An event for a stalled node waits until it goes on. */
static bool is_stalled(struct world *world, const struct event *event)
{
    switch (event->kind) {
    case EVENT_TICK:
    case EVENT_DATAGRAM:
    case EVENT_ACCEPT:
    case EVENT_OPENED:
    case EVENT_DATA:
    case EVENT_CLOSED:
    case EVENT_DISK:
        return world->now < world->nodes[event->node].paused_until;
    case EVENT_CLIENT:
    case EVENT_FAULT:
    case EVENT_RESTART:
    case EVENT_STOP:
    case EVENT_MEND:
    case EVENT_CHECK:
    case EVENT_HEAL:
        break;
    }
    return false;
}

static void postpone(struct world *world, struct event *event)
{
    struct node *node = &world->nodes[event->node];
    struct event *later = world_push(world, node->paused_until, event->kind);
    uint64_t no = later->no;
    uint64_t at = later->at;
    *later = *event;
    later->no = no;
    later->at = at;
    if (event->kind == EVENT_TICK && node->tick_at == event->at) {
        node->tick_at = at;
    }
    event->bytes = NULL;
    event->link = NULL;
}

static bool dispatch(struct world *world, struct event *event)
{
    switch (event->kind) {
    case EVENT_DATAGRAM:
    case EVENT_ACCEPT:
    case EVENT_OPENED:
    case EVENT_DATA:
    case EVENT_CLOSED:
        net_event(world, event);
        break;
    case EVENT_TICK:
    case EVENT_DISK:
    case EVENT_RESTART:
    case EVENT_STOP:
        on_node_event(world, event);
        break;
    case EVENT_CLIENT:
        if (!world->calm) {
            fault_client(world);
            world_push(world, world->now + wait_ms(world, world->options.writes), EVENT_CLIENT);
        }
        break;
    case EVENT_FAULT:
        if (!world->calm) {
            fault_strike(world);
            double per_s = world->options.faults * (double)world->options.nodes / 5.0;
            world_push(world, world->now + wait_ms(world, per_s), EVENT_FAULT);
        }
        break;
    case EVENT_MEND:
        if (event->id == world->cut_no) {
            memset(world->cut, 0, sizeof(world->cut));
        }
        break;
    case EVENT_HEAL:
        heal(world);
        break;
    case EVENT_CHECK:
        return on_check(world);
    }
    return false;
}

static void trace(struct world *world, const struct event *event)
{
    uint64_t words[4] = {event->at, ((uint64_t)event->kind << 32) | event->node, event->len,
                         world->result->trace};
    uint64_t hash = hash_sip64(1, 2, words, sizeof(words));
    world->result->trace = event->len != 0 ? hash_sip64(hash, 3, event->bytes, event->len) : hash;
}

static void start(struct world *world)
{
    for (size_t i = 0; i < world->options.nodes; i++) {
        struct node *node = &world->nodes[i];
        node->world = world;
        node->slot = i;
        (void)snprintf(node->name, sizeof(node->name), "n%zu", i); /* fits */
        node->addr.in4.sin_family = AF_INET;
        node->addr.in4.sin_addr.s_addr = htonl(0x0a000000U | (uint32_t)i);
        node->addr.in4.sin_port = htons(7946);
        node->clock_ms = (int64_t)rng_below(&world->rng, 300) - 150;
        disk_init(&node->disk, ++world->last_id * 0x9e3779b97f4a7c15U);
        struct event *event = world_push(world, rng_below(&world->rng, 2000), EVENT_RESTART);
        event->node = i;
    }
    world_push(world, 1000, EVENT_CLIENT);
    if (world->options.faults > 0) {
        world_push(world, 4000, EVENT_FAULT);
    }
    world_push(world, CHECK_MS, EVENT_CHECK);
    world_push(world, world->options.hostile_ms, EVENT_HEAL);
}

static void finish(struct world *world)
{
    for (size_t i = 0; i < world->options.nodes; i++) {
        struct node *node = &world->nodes[i];
        node_crash(node, false);
        disk_deinit(&node->disk);
        disk_deinit(&node->backup);
    }
    world_clear(world);
    ASSERT(world->links == NULL);
    oracle_deinit(&world->oracle);
    codec_scratch_deinit(&world->scratch);
    buf_deinit(&world->out);
    mem_free(world);
}

void sim_run(const struct sim_options *options, struct sim_result *ret_result)
{
    ASSERT(options->nodes > 0 && options->nodes <= SIM_NODES_MAX);
    struct world *world = mem_new(sizeof(*world));
    world->options = *options;
    world->result = ret_result;
    *ret_result = (struct sim_result){.fault = ""};
    rng_init(&world->rng, options->seed);
    oracle_init(&world->oracle);
    codec_scratch_init(&world->scratch);
    buf_init(&world->out, 64 << 10);
    start(world);
    bool over = false;
    struct event *event = NULL;
    while (!over && (event = world_pop(world)) != NULL) {
        world->now = event->at;
        if (is_stalled(world, event)) {
            postpone(world, event);
        } else {
            trace(world, event);
            over = dispatch(world, event);
        }
        if (event->link != NULL) {
            net_link_unref(world, event->link);
        }
        mem_free(event->bytes);
        mem_free(event);
    }
    memcpy(ret_result->fault, world->oracle.fault, sizeof(ret_result->fault));
    ret_result->ok = ret_result->fault[0] == '\0';
    finish(world);
}
