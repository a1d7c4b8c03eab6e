/*
 * One simulated node: a core over a simulated disk and network, started and crashed at will.
 */
#include "gossip/core/core.h"
#include "node/base/check.h"
#include "node/base/mem.h"
#include "tests/sim/world.h"

#include <stdio.h>
#include <string.h>
#include <utlist.h>

/* Virtual time zero, for wall clocks. */
static const uint64_t wall_start_ms = 1700000000000U;

struct gossip_now node_now(const struct node *node)
{
    uint64_t now = node->world->now;
    return (struct gossip_now){
        .mono_ms = now + 1000 + 10 * node->slot, /* clocks that start anywhere */
        .wall_ms = (uint64_t)((int64_t)(wall_start_ms + now) + node->clock_ms),
    };
}

/* ---- ops ---- */

static void on_persist(void *ctx, const struct gossip_batch *batch, uint64_t token)
{
    struct node *node = ctx;
    struct world *world = node->world;
    struct disk_op *op = mem_new(sizeof(*op));
    op->batch = disk_batch_new(batch);
    op->token = token;
    DL_APPEND(node->ops, op);
    uint64_t cost = 1 + rng_below(&world->rng, 8);
    if (world->now < node->disk_slow_until) {
        cost += 200 + rng_below(&world->rng, 800);
    }
    node->disk_free_at = MAX(node->disk_free_at, world->now) + cost;
    struct event *event = world_push(world, node->disk_free_at, EVENT_DISK);
    event->node = node->slot;
    event->epoch = node->epoch;
}

static void on_written(void *ctx, uint64_t write, int rc, uint64_t seq)
{
    struct node *node = ctx;
    (void)write;
    (void)seq;
    node->world->result->acknowledged += rc == RC_OK ? 1 : 0;
}

static void on_applied(void *ctx, const struct row *row, const struct row *old)
{
    struct node *node = ctx;
    if (old != NULL && row_compare(row, old) <= 0) {
        oracle_fail(&node->world->oracle, "%s went back to an older version of %.*s", node->name,
                    row->id_len, row->id);
    }
    struct oracle_write *write = oracle_find(&node->world->oracle, &row->dot);
    if (write != NULL && ++write->holders == node->world->options.nodes &&
        node->world->options.faults <= 0 && write->durable_ms > SIM_SPREAD_FROM_MS) {
        uint64_t step = (node->world->now - write->durable_ms) / SIM_SPREAD_MS;
        node->world->result->spread[MIN(step, (uint64_t)SIM_SPREAD_STEPS - 1)]++;
    }
}

static void on_event(void *ctx, enum gossip_event event, const struct gossip_member *member,
                     const char *text)
{
    struct node *node = ctx;
    struct world *world = node->world;
    if (event == GOSSIP_EVENT_MEMBER && member->state == MEMBER_DEAD) {
        for (size_t i = 0; i < world->options.nodes; i++) {
            const struct node *other = &world->nodes[i];
            if (other->core != NULL && other->disk.id == member->id &&
                (world->calm || world->options.faults <= 0)) {
                world->result->false_deaths++;
            }
        }
    }
    if (world->options.verbose) {
        (void)printf("%9.3f %s: %s\n", (double)world->now / 1000.0, node->name, text);
    }
}

static void on_schedule(void *ctx, uint64_t deadline_ms)
{
    struct node *node = ctx;
    uint64_t offset = 1000 + 10 * node->slot;
    if (deadline_ms == UINT64_MAX) {
        return;
    }
    node->tick_at = MAX(deadline_ms - MIN(offset, deadline_ms), node->world->now);
    struct event *event = world_push(node->world, node->tick_at, EVENT_TICK);
    event->node = node->slot;
    event->epoch = node->epoch;
}

static const struct gossip_ops ops = {
    .send = net_send,
    .stream_open = net_stream_open,
    .stream_send = net_stream_send,
    .stream_close = net_stream_close,
    .persist = on_persist,
    .written = on_written,
    .applied = on_applied,
    .event = on_event,
    .schedule = on_schedule,
};

/* ---- disk ---- */

/* Does anybody else count a write of this number as seen? */
static bool is_known(const struct node *node, const struct dot *dot)
{
    for (size_t i = 0; i < node->world->options.nodes; i++) {
        const struct node *other = &node->world->nodes[i];
        if (other == node) {
            continue;
        }
        const struct kv_origin *origin =
            other->core != NULL ? kv_find_origin(&other->core->kv, dot->origin) : NULL;
        if (disk_frontier(&other->disk, dot->origin) >= dot->seq ||
            (origin != NULL && MAX(origin->frontier, seqmap_max(&origin->writes)) >= dot->seq)) {
            return true;
        }
    }
    return false;
}

static void commit(struct node *node, const struct disk_op *op)
{
    disk_commit(&node->disk, op->batch);
    for (size_t i = 0; i < op->batch->row_count; i++) {
        if (op->batch->rows[i]->dot.origin.node == node->disk.id) {
            const struct row *row = op->batch->rows[i];
            oracle_durable(&node->world->oracle, row, is_known(node, &row->dot));
            oracle_find(&node->world->oracle, &row->dot)->durable_ms = node->world->now;
        }
    }
}

void node_disk_event(struct node *node)
{
    struct disk_op *op = node->ops;
    ASSERT(op != NULL);
    DL_DELETE(node->ops, op);
    bool full = node->world->now < node->disk_full_until;
    if (!full) {
        commit(node, op);
    }
    /* A batch of the node's own rows alone is a local write: it is acknowledged by this answer. */
    bool own = op->batch->frontier_count == 1 &&
               op->batch->frontier[0].origin.node == node->disk.id && op->batch->row_count != 0;
    for (size_t i = 0; own && !full && i < op->batch->row_count; i++) {
        own = op->batch->rows[i]->dot.origin.node == node->disk.id;
    }
    for (size_t i = 0; own && !full && i < op->batch->row_count; i++) {
        oracle_acknowledged(&node->world->oracle, op->batch->rows[i]);
    }
    gossip_persisted(node->core, op->token, full ? RC_NO_SPACE : RC_OK, node_now(node));
    disk_batch_free(op->batch);
    mem_free(op);
}

/* ---- life ---- */

void node_start(struct node *node)
{
    struct world *world = node->world;
    ASSERT(node->core == NULL && !node->gone);
    node->epoch++;
    node->leaving = false;
    node->paused_until = 0;
    node->tick_at = UINT64_MAX;
    node->disk_free_at = world->now;
    struct gossip_self self = {
        .id = node->disk.id,
        .generation = node->disk.generation,
        .incarnation = node->disk.incarnation,
        .addr = node->addr,
        .version = "sim",
    };
    (void)snprintf(self.name, sizeof(self.name), "%s", node->name); /* names are short */
    struct gossip_settings settings = {0};
    node->core = gossip_new(&self, &settings, &ops, node, rng_next(&world->rng));
    disk_load(&node->disk, node->core);
    /* A ring of introductions stays connected when one node is gone; one more at random. */
    size_t count = world->options.nodes;
    struct addr join[3] = {
        world->nodes[(node->slot + count - 1) % count].addr,
        world->nodes[(node->slot + 1) % count].addr,
        world->nodes[rng_below(&world->rng, count)].addr,
    };
    gossip_start(node->core, join, ARRAY_LEN(join), node_now(node));
}

void node_require_held(struct world *world)
{
    struct oracle_key *key = NULL;
    for (key = world->oracle.keys; key != NULL; key = key->hh.next) {
        uint8_t best[ROW_STAMP_LEN] = {0};
        for (size_t i = 0; i < world->options.nodes; i++) {
            struct node *node = &world->nodes[i];
            if (!node->gone) {
                oracle_better(best, disk_find(&node->disk, key->kind, key->id, key->id_len));
            }
            if (node->core != NULL) {
                oracle_better(best, gossip_find(node->core, key->kind, key->id, key->id_len));
            }
        }
        if (memcmp(best, key->required, sizeof(best)) < 0) {
            memcpy(key->required, best, sizeof(best));
        }
    }
}

static void count_up(struct node *node)
{
    const struct gossip_counter *counters = NULL;
    size_t count = gossip_counters(node->core, &counters);
    struct sim_result *result = node->world->result;
    for (size_t i = 0; i < count; i++) {
        const char *name = counters[i].name;
        result->cuts += strcmp(name, "syncs_cut") == 0 ? counters[i].value : 0;
        result->syncs += strcmp(name, "syncs_completed") == 0 ? counters[i].value : 0;
        result->repairs += strcmp(name, "audit_repairs") == 0 ? counters[i].value : 0;
        result->generations += strcmp(name, "generations_begun") == 0 ? counters[i].value : 0;
    }
}

void node_crash(struct node *node, bool lose_disk)
{
    struct world *world = node->world;
    if (node->core == NULL) {
        return;
    }
    count_up(node);
    /* The disk may have finished the batch at hand without the node hearing of it. */
    bool torn = rng_chance(&world->rng, 0.5);
    struct disk_op *op = NULL;
    struct disk_op *next = NULL;
    DL_FOREACH_SAFE (node->ops, op, next) {
        if (torn && op == node->ops && world->now >= node->disk_full_until) {
            commit(node, op);
            torn = false;
        }
        DL_DELETE(node->ops, op);
        disk_batch_free(op->batch);
        mem_free(op);
    }
    gossip_free(node->core);
    node->core = NULL;
    net_node_died(world, node);
    node->epoch++;
    if (lose_disk) {
        disk_deinit(&node->disk);
        disk_init(&node->disk, ++world->last_id * 0x9e3779b97f4a7c15U);
    }
    node_require_held(world);
}
