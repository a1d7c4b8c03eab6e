/*
 * The network: datagrams that are lost, doubled and reordered; streams that keep order, slow down
 * with loss, and break.
 */
#include "node/base/check.h"
#include "node/base/mem.h"
#include "tests/sim/world.h"

#include <utlist.h>

enum {
    CONNECT_TIMEOUT_MS = 3000,
    BREAK_MS = 2000, /* until both ends notice that a path is cut */
};

/* 1 to 6 ms mostly, now and then a lot more: that is what reorders. */
uint64_t net_delay(struct world *world)
{
    uint64_t delay = 1 + rng_below(&world->rng, 6);
    return rng_chance(&world->rng, 0.05) ? delay + rng_below(&world->rng, 60) : delay;
}

static size_t node_at(const struct addr *addr)
{
    return (size_t)(ntohl(addr->in4.sin_addr.s_addr) & 0xffff);
}

/* ---- datagrams ---- */

void net_send(void *ctx, const struct addr *to, uint64_t to_id, const struct gossip_msg *msg)
{
    struct node *node = ctx;
    struct world *world = node->world;
    buf_reset(&world->out);
    int rc = codec_encode(msg, &world->out);
    ASSERT(rc == RC_OK);
    ASSERT(world->out.len <= msg_size(msg));
    ASSERT(world->out.len <= GOSSIP_DATAGRAM_MAX - GOSSIP_SEAL_MAX);
    world->result->datagrams++;

    size_t target = node_at(to);
    if (target >= world->options.nodes || world->cut[node->slot][target]) {
        return;
    }
    int copies = rng_chance(&world->rng, 0.02) ? 2 : 1;
    for (int i = 0; i < copies; i++) {
        if (rng_chance(&world->rng, world->options.loss)) {
            continue;
        }
        struct event *event = world_push(world, world->now + net_delay(world), EVENT_DATAGRAM);
        event->node = target;
        event->epoch = 0; /* whoever is there then */
        event->from = node->slot;
        event->id = node->disk.id;
        event->to_id = to_id;
        event->bytes = mem_dup(world->out.data, world->out.len);
        event->len = world->out.len;
    }
}

static void datagram_arrived(struct world *world, const struct event *event)
{
    struct node *node = &world->nodes[event->node];
    if (node->core == NULL || (event->to_id != 0 && event->to_id != node->disk.id)) {
        return; /* sealed for another identity */
    }
    struct gossip_msg msg;
    int rc = codec_decode(event->bytes, event->len, &world->scratch, &msg);
    ASSERT(rc == RC_OK);
    gossip_datagram(node->core, &world->nodes[event->from].addr, event->id, &msg, node_now(node));
}

/* ---- streams ---- */

static bool is_cut(const struct world *world, size_t a, size_t b)
{
    return world->cut[a][b] || world->cut[b][a];
}

void net_link_unref(struct world *world, struct link *link)
{
    link->refs--;
    if (link->refs == 0 && !link->side[0].open && !link->side[1].open) {
        DL_DELETE(world->links, link);
        mem_free(link);
    }
}

static void push_link(struct world *world, struct link *link, unsigned side, uint64_t at,
                      enum event_kind kind, uint8_t *bytes, size_t len)
{
    struct event *event = world_push(world, at, kind);
    event->node = link->side[side].node;
    event->epoch = link->side[side].epoch;
    event->link = link;
    event->side = side;
    event->bytes = bytes;
    event->len = len;
    link->refs++;
}

static struct link *link_find(const struct world *world, const struct node *node, uint64_t stream,
                              unsigned *ret_side)
{
    struct link *link = NULL;
    DL_FOREACH (world->links, link) {
        for (unsigned side = 0; side < 2; side++) {
            if (link->side[side].node == node->slot && link->side[side].stream == stream &&
                link->side[side].epoch == node->epoch && link->side[side].open) {
                *ret_side = side;
                return link;
            }
        }
    }
    return NULL;
}

static void link_break(struct world *world, struct link *link, uint64_t after_ms)
{
    if (link->broken) {
        return;
    }
    link->broken = true;
    for (unsigned side = 0; side < 2; side++) {
        if (link->side[side].open) {
            push_link(world, link, side, world->now + after_ms + net_delay(world), EVENT_CLOSED,
                      NULL, 0);
        }
    }
}

void net_stream_open(void *ctx, uint64_t stream, const struct addr *to, uint64_t to_id)
{
    struct node *node = ctx;
    struct world *world = node->world;
    size_t target = node_at(to);
    ASSERT(stream % 2 == 1 && target < world->options.nodes);
    struct link *link = mem_new(sizeof(*link));
    link->to_id = to_id;
    link->side[0].node = node->slot;
    link->side[0].epoch = node->epoch;
    link->side[0].stream = stream;
    link->side[0].open = true;
    link->side[1].node = target;
    DL_APPEND(world->links, link);
    if (is_cut(world, node->slot, target)) {
        link->broken = true;
        push_link(world, link, 0, world->now + CONNECT_TIMEOUT_MS, EVENT_CLOSED, NULL, 0);
    } else {
        uint64_t at = world->now + net_delay(world) + net_delay(world) + net_delay(world);
        push_link(world, link, 1, at, EVENT_ACCEPT, NULL, 0);
    }
}

static void accept_link(struct world *world, struct link *link)
{
    struct node *node = &world->nodes[link->side[1].node];
    size_t opener = link->side[0].node;
    if (!link->side[0].open) {
        return;
    }
    if (node->core == NULL || node->disk.id != link->to_id || is_cut(world, opener, node->slot) ||
        world->nodes[opener].epoch != link->side[0].epoch) {
        link_break(world, link, 0);
        return;
    }
    node->next_stream += 2;
    link->side[1].stream = node->next_stream;
    link->side[1].epoch = node->epoch;
    link->side[1].open = true;
    link->side[0].last_at = world->now + net_delay(world);
    push_link(world, link, 0, link->side[0].last_at, EVENT_OPENED, NULL, 0);
    gossip_stream_opened(node->core, link->side[1].stream, world->nodes[opener].disk.id, true,
                         node_now(node));
}

void net_stream_send(void *ctx, uint64_t stream, const struct gossip_msg *msg)
{
    struct node *node = ctx;
    struct world *world = node->world;
    unsigned side = 0;
    struct link *link = link_find(world, node, stream, &side);
    if (link == NULL) {
        return; /* broken, and the core is about to hear of it */
    }
    struct buf out;
    buf_init(&out, GOSSIP_STREAM_MSG_MAX);
    int rc = codec_encode(msg, &out);
    ASSERT(rc == RC_OK && out.len <= msg_size(msg));
    unsigned other = 1 - side;
    if (is_cut(world, node->slot, link->side[other].node)) {
        link_break(world, link, BREAK_MS);
    } else if (!world->calm && rng_chance(&world->rng, 0.01)) {
        link_break(world, link, 0);
    }
    uint64_t delay = net_delay(world);
    if (rng_chance(&world->rng, world->options.loss)) {
        delay += 200; /* a retransmission */
    }
    uint64_t at = MAX(world->now + delay, link->side[other].last_at);
    link->side[other].last_at = at;
    size_t len = 0;
    uint8_t *bytes = (uint8_t *)buf_take(&out, &len);
    push_link(world, link, other, at, EVENT_DATA, bytes, len);
}

void net_stream_close(void *ctx, uint64_t stream)
{
    struct node *node = ctx;
    struct world *world = node->world;
    unsigned side = 0;
    struct link *link = link_find(world, node, stream, &side);
    if (link == NULL) {
        return;
    }
    unsigned other = 1 - side;
    link->side[side].open = false;
    if (link->side[other].open) {
        /* What was sent before the close still arrives before it. */
        uint64_t at = MAX(world->now + net_delay(world), link->side[other].last_at);
        push_link(world, link, other, at, EVENT_CLOSED, NULL, 0);
    } else {
        link->refs++;
        net_link_unref(world, link);
    }
}

static void link_event(struct world *world, const struct event *event)
{
    struct link *link = event->link;
    if (event->kind == EVENT_ACCEPT) {
        accept_link(world, link);
        return;
    }
    struct node *node = &world->nodes[event->node];
    if (node->core == NULL || node->epoch != event->epoch || !link->side[event->side].open) {
        return;
    }
    uint64_t stream = link->side[event->side].stream;
    if (event->kind == EVENT_CLOSED) {
        link->side[event->side].open = false;
        gossip_stream_closed(node->core, stream, node_now(node));
    } else if (event->kind == EVENT_OPENED) {
        gossip_stream_opened(node->core, stream, link->to_id, false, node_now(node));
    } else if (!link->broken) {
        struct gossip_msg msg;
        int rc = codec_decode(event->bytes, event->len, &world->scratch, &msg);
        ASSERT(rc == RC_OK);
        gossip_stream_msg(node->core, stream, &msg, node_now(node));
    }
}

void net_node_died(struct world *world, const struct node *node)
{
    struct link *link = NULL;
    struct link *next = NULL;
    DL_FOREACH_SAFE (world->links, link, next) {
        for (unsigned side = 0; side < 2; side++) {
            if (link->side[side].node == node->slot && link->side[side].open) {
                link->side[side].open = false;
                link_break(world, link, rng_chance(&world->rng, 0.5) ? 0 : BREAK_MS);
            }
        }
        link->refs++;
        net_link_unref(world, link);
    }
}

void net_event(struct world *world, struct event *event)
{
    if (event->kind == EVENT_DATAGRAM) {
        datagram_arrived(world, event);
    } else {
        link_event(world, event);
        net_link_unref(world, event->link);
        event->link = NULL;
    }
}
