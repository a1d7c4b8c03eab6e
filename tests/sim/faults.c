/*
 * What befalls the world: crashes, lost and restored disks, cuts, stalls, slow and full disks,
 * wrong clocks, nodes that leave; and the clients that write meanwhile.
 */
#include "node/base/check.h"
#include "node/base/mem.h"
#include "tests/sim/world.h"

#include <stdio.h>
#include <string.h>

static void note(const struct world *world, const struct node *node, const char *what)
{
    if (world->options.verbose) {
        (void)printf("%9.3f * %s: %s\n", (double)world->now / 1000.0,
                     node != NULL ? node->name : "network", what);
    }
}

static uint64_t soon(struct world *world, uint64_t min_ms, uint64_t max_ms)
{
    return world->now + min_ms + rng_below(&world->rng, max_ms - min_ms);
}

static struct node *random_node(struct world *world)
{
    return &world->nodes[rng_below(&world->rng, world->options.nodes)];
}

/* ---- faults ---- */

static void restart_later(struct node *node)
{
    struct event *event = world_push(node->world, soon(node->world, 500, 12000), EVENT_RESTART);
    event->node = node->slot;
    event->epoch = node->epoch;
}

static void strike_crash(struct world *world, struct node *node)
{
    note(world, node, "crash");
    world->result->crashes++;
    node_crash(node, false);
    restart_later(node);
}

static void strike_wipe(struct world *world, struct node *node)
{
    note(world, node, "crash with loss of the disk");
    world->result->crashes++;
    node_crash(node, true);
    disk_deinit(&node->backup);
    node->has_backup = false;
    restart_later(node);
}

/* Take a backup, or crash and come back with the one taken earlier. */
static void strike_backup(struct world *world, struct node *node)
{
    if (!node->has_backup) {
        if (node->disk.incarnation != 0) {
            disk_copy(&node->disk, &node->backup);
            node->has_backup = true;
        }
        return;
    }
    note(world, node, "crash, an old backup is restored");
    world->result->crashes++;
    node_crash(node, false);
    disk_deinit(&node->disk);
    node->disk = node->backup;
    node->has_backup = false;
    node->backup = (struct disk){0};
    node_require_held(world);
    restart_later(node);
}

static void strike_partition(struct world *world)
{
    note(world, NULL, "partition");
    size_t count = world->options.nodes;
    bool left[SIM_NODES_MAX];
    bool one_way = rng_chance(&world->rng, 0.3);
    for (size_t i = 0; i < count; i++) {
        left[i] = rng_chance(&world->rng, 0.5);
    }
    for (size_t a = 0; a < count; a++) {
        for (size_t b = 0; b < count; b++) {
            world->cut[a][b] = left[a] != left[b] && (!one_way || left[a]);
        }
    }
    struct event *event = world_push(world, soon(world, 1000, 15000), EVENT_MEND);
    event->id = ++world->cut_no;
}

static void strike_pair(struct world *world)
{
    size_t a = random_node(world)->slot;
    size_t b = random_node(world)->slot;
    note(world, &world->nodes[a], "cut from one other");
    world->cut[a][b] = true;
    world->cut[b][a] = world->cut[b][a] || rng_chance(&world->rng, 0.5);
    struct event *event = world_push(world, soon(world, 1000, 10000), EVENT_MEND);
    event->id = ++world->cut_no;
}

static void strike_leave(struct world *world, struct node *node)
{
    if (!node->leaving) {
        note(world, node, "leaves");
        node->leaving = true;
        gossip_leave(node->core, node_now(node));
        struct event *event = world_push(world, world->now + 3200, EVENT_STOP);
        event->node = node->slot;
        event->epoch = node->epoch;
    }
}

void fault_strike(struct world *world)
{
    struct node *node = random_node(world);
    if (node->core == NULL) {
        return;
    }
    uint64_t dice = rng_below(&world->rng, 100);
    if (dice < 30) {
        strike_crash(world, node);
    } else if (dice < 36) {
        strike_wipe(world, node);
    } else if (dice < 50) {
        strike_backup(world, node);
    } else if (dice < 60) {
        strike_partition(world);
    } else if (dice < 70) {
        strike_pair(world);
    } else if (dice < 76) {
        strike_leave(world, node);
    } else if (dice < 84) {
        note(world, node, "stalls");
        node->paused_until = soon(world, 100, 6000);
    } else if (dice < 90) {
        note(world, node, "slow disk");
        node->disk_slow_until = soon(world, 1000, 8000);
    } else if (dice < 95) {
        note(world, node, "full disk");
        node->disk_full_until = soon(world, 1000, 8000);
    } else {
        note(world, node, "clock step");
        bool wild = rng_chance(&world->rng, 0.3);
        node->clock_ms = wild ? 3600000 : (int64_t)rng_below(&world->rng, 400) - 200;
    }
}

/* ---- clients ---- */

struct client_change {
    char id[32];
    uint8_t value[6000];
};

static void make_change(struct world *world, struct client_change *memory,
                        struct gossip_change *change)
{
    uint64_t key = rng_below(&world->rng, world->options.keys);
    int id_len = snprintf(memory->id, sizeof(memory->id), "shop/key-%u", (unsigned)key);
    *change = (struct gossip_change){
        .kind = (uint16_t)(1 + key % 3),
        .id = memory->id,
        .id_len = (size_t)id_len,
    };
    if (rng_chance(&world->rng, 0.35)) {
        change->flags = ROW_TOMBSTONE;
        return;
    }
    size_t len = (size_t)rng_below(&world->rng, 200);
    bool odd = !world->options.plain;
    if (odd && rng_chance(&world->rng, 0.05)) {
        len = (size_t)rng_below(&world->rng, sizeof(memory->value)); /* fits no datagram */
    }
    for (size_t i = 0; i < len; i++) {
        memory->value[i] = (uint8_t)rng_next(&world->rng);
    }
    change->flags = odd && rng_chance(&world->rng, 0.05) ? ROW_SECRET : 0;
    change->value = memory->value;
    change->value_len = len;
}

void fault_client(struct world *world)
{
    struct node *node = random_node(world);
    if (node->core == NULL || node->leaving || world->now < node->paused_until) {
        return;
    }
    struct client_change memory[3];
    struct gossip_change changes[3];
    size_t count = 1 + (size_t)rng_below(&world->rng, 3);
    for (size_t i = 0; i < count; i++) {
        make_change(world, &memory[i], &changes[i]);
    }
    struct err_info err = {.text = ""};
    uint64_t write = 0;
    int rc = gossip_write(node->core, changes, count, node_now(node), &write, &err);
    if (rc != RC_OK) {
        /* One of the three keys may have been drawn twice; the disk or the start may be busy. */
        if (rc != RC_BUSY && rc != RC_CLOCK && rc != RC_INVALID) {
            oracle_fail(&world->oracle, "%s refused a write: %s", node->name, err.text);
        }
        world->result->refused++;
    }
}
