/*
 * The driver with real cores on loopback: joining, replicating by datagram and by stream, nodes
 * that start again, other keys, noise, ports in use, stopping from anywhere.
 *
 * covers: links.c net_metrics.c
 */
#include "gossip/net/gossip_net.h"
#include "node/base/check.h"
#include "node/base/mem.h"
#include "node/base/timesrc.h"
#include "node/net/loop.h"
#include "tests/support/unit.h"

#include <unistd.h>
#include <utlist.h>

enum { NODES_MAX = 3, WAIT_MS = 20000 };

/* A batch that is "on its way to the disk": answered between two turns of the loop. */
struct pending {
    uint64_t token;
    struct pending *next;
};

struct node {
    struct world *world;
    struct gossip_net *net;
    uint64_t id;
    struct addr addr;
    struct pending *pending;
    unsigned applied;
    unsigned written;
    int written_rc;
    uint64_t incarnation;
    bool stop_on_apply;
    bool closed;
};

struct world {
    uv_loop_t loop;
    struct key_ring ring;
    struct node nodes[NODES_MAX];
    size_t count;
    bool (*goal)(struct world *world);
};

/* ---- the application's side ---- */

static void op_persist(void *ctx, const struct gossip_batch *batch, uint64_t token)
{
    struct node *node = ctx;
    struct pending *pending = mem_new(sizeof(*pending));
    pending->token = token;
    LL_APPEND(node->pending, pending);
    if (batch->incarnation_limit > node->incarnation) {
        node->incarnation = batch->incarnation_limit;
    }
}

static void op_written(void *ctx, uint64_t write, int rc, uint64_t seq)
{
    struct node *node = ctx;
    (void)write;
    (void)seq;
    node->written++;
    node->written_rc = rc;
}

static void on_stopped(void *arg)
{
    ((struct node *)arg)->closed = true;
}

static void op_applied(void *ctx, const struct row *row, const struct row *old)
{
    struct node *node = ctx;
    (void)row;
    (void)old;
    node->applied++;
    if (node->stop_on_apply) {
        node->stop_on_apply = false;
        gossip_net_stop(node->net, on_stopped, node);
    }
}

static void op_event(void *ctx, enum gossip_event event, const struct gossip_member *member,
                     const char *text)
{
    (void)ctx;
    (void)event;
    (void)member;
    (void)text;
}

static const struct gossip_ops app_ops = {
    .persist = op_persist, .written = op_written, .applied = op_applied, .event = op_event};

/* ---- the world ---- */

/* A port that nobody uses for TCP or UDP at this moment. */
static void free_port(struct addr *ret_addr)
{
    for (;;) {
        assert_int_equal(addr_parse("127.0.0.1:0", ret_addr, NULL), RC_OK);
        int tcp = socket(AF_INET, SOCK_STREAM, 0);
        int udp = socket(AF_INET, SOCK_DGRAM, 0);
        socklen_t len = sizeof(ret_addr->in4);
        assert_int_equal(bind(tcp, &ret_addr->sa, len), 0);
        assert_int_equal(getsockname(tcp, &ret_addr->sa, &len), 0);
        bool both = bind(udp, &ret_addr->sa, len) == 0;
        close(tcp);
        close(udp);
        if (both) {
            return;
        }
    }
}

static int make_node(struct world *world, struct node *node, const struct key_ring *ring,
                     const struct addr *join, size_t join_count, struct err_info *err)
{
    struct gossip_net_config config = {.bind = node->addr,
                                       .self = {.id = node->id,
                                                .generation = 1,
                                                .incarnation = node->incarnation,
                                                .version = "1",
                                                .addr = node->addr},
                                       .keys = ring,
                                       .settings = {.probe_interval_ms = 100,
                                                    .probe_timeout_ms = 50,
                                                    .gossip_interval_ms = 20,
                                                    .sync_interval_ms = 50},
                                       .join = join,
                                       .join_count = join_count,
                                       .seed = node->id};
    snprintf(config.self.name, sizeof(config.self.name), "n%u", (unsigned)node->id);
    node->world = world;
    node->closed = false;
    assert_int_equal(gossip_net_new(&world->loop, &config, &app_ops, node, &node->net, err), RC_OK);
    return gossip_net_start(node->net, err);
}

static void world_init(struct world *world)
{
    *world = (struct world){0};
    loop_init(&world->loop);
    world->ring.count = 1;
    key_generate(world->ring.keys[0]);
}

static struct node *add_node(struct world *world, const struct key_ring *ring)
{
    struct node *node = &world->nodes[world->count];
    node->id = ++world->count;
    node->incarnation = 1;
    free_port(&node->addr);
    const struct addr *join = world->count > 1 ? &world->nodes[0].addr : NULL;
    assert_int_equal(make_node(world, node, ring, join, join != NULL ? 1 : 0, NULL), RC_OK);
    return node;
}

static void answer_disks(struct world *world)
{
    for (size_t i = 0; i < world->count; i++) {
        struct node *node = &world->nodes[i];
        while (node->pending != NULL) {
            struct pending *pending = node->pending;
            LL_DELETE(node->pending, pending);
            if (node->net != NULL && !node->closed) {
                gossip_persisted(gossip_net_core(node->net), pending->token, 0, gossip_net_now());
            }
            mem_free(pending);
        }
    }
}

static bool step(void *arg)
{
    struct world *world = arg;
    answer_disks(world);
    return world->goal(world);
}

static bool reach(struct world *world, bool (*goal)(struct world *world))
{
    world->goal = goal;
    return loop_run_until(&world->loop, step, world, WAIT_MS);
}

static bool all_closed(struct world *world)
{
    for (size_t i = 0; i < world->count; i++) {
        if (world->nodes[i].net != NULL && !world->nodes[i].closed) {
            return false;
        }
    }
    return true;
}

static void stop_node(struct world *world, struct node *node)
{
    if (!node->closed) {
        gossip_net_stop(node->net, on_stopped, node);
    }
    while (!node->closed) {
        (void)uv_run(&world->loop, UV_RUN_ONCE);
    }
    answer_disks(world);
    gossip_net_free(node->net);
    node->net = NULL;
}

static void world_end(struct world *world)
{
    for (size_t i = 0; i < world->count; i++) {
        struct node *node = &world->nodes[i];
        if (node->net != NULL && !node->closed) {
            gossip_net_stop(node->net, on_stopped, node);
        }
    }
    assert_true(reach(world, all_closed));
    answer_disks(world);
    loop_close_clean(&world->loop);
    for (size_t i = 0; i < world->count; i++) {
        gossip_net_free(world->nodes[i].net);
    }
    gossip_net_free(NULL);
}

static size_t alive(const struct node *node)
{
    struct gossip *core = gossip_net_core(node->net);
    size_t count = 0;
    for (size_t i = 0; i < gossip_member_count(core); i++) {
        count += gossip_member_at(core, i)->state == MEMBER_ALIVE;
    }
    return count;
}

static bool all_joined(struct world *world)
{
    for (size_t i = 0; i < world->count; i++) {
        if (alive(&world->nodes[i]) != world->count ||
            (world->count > 1 && !gossip_in_step(gossip_net_core(world->nodes[i].net)))) {
            return false;
        }
    }
    return true;
}

static bool same_frontier(struct world *world)
{
    for (size_t i = 0; i < world->count; i++) {
        struct gossip *core = gossip_net_core(world->nodes[i].net);
        if (gossip_revision(core) == 0 ||
            gossip_frontier_hash(core) !=
                gossip_frontier_hash(gossip_net_core(world->nodes[0].net))) {
            return false;
        }
    }
    return true;
}

/* A node that has just started asks its peers what they know of it before it takes writes. */
static void write_row(struct node *node, const char *id, size_t value_len, uint32_t flags)
{
    uint8_t *value = mem_new(value_len);
    memset(value, 'v', value_len);
    struct gossip_change change = {.kind = 1,
                                   .flags = flags,
                                   .id = id,
                                   .id_len = strlen(id),
                                   .value = value,
                                   .value_len = value_len};
    uint64_t write = 0;
    struct err_info err = {{0}};
    int rc = RC_BUSY;
    for (;;) {
        rc = gossip_write(gossip_net_core(node->net), &change, 1, gossip_net_now(), &write, &err);
        if (rc != RC_BUSY) {
            break;
        }
        (void)uv_run(&node->world->loop, UV_RUN_ONCE);
        answer_disks(node->world);
    }
    if (rc != RC_OK) {
        fail_msg("write: %s: %s", rc_name(rc), err.text);
    }
    mem_free(value);
}

static void expect_row(const struct node *node, const char *id, size_t value_len)
{
    const struct row *row = gossip_find(gossip_net_core(node->net), 1, id, strlen(id));
    assert_non_null(row);
    assert_int_equal(row->value_len, value_len);
}

/* The number after `name` in the metrics text. */
static uint64_t metric(const struct node *node, const char *name)
{
    struct buf out;
    buf_init(&out, 1 << 20);
    gossip_net_metrics(node->net, &out);
    assert_false(out.full);
    char line[200];
    snprintf(line, sizeof(line), "\n%s ", name);
    const char *at = strstr(out.data, line);
    if (at == NULL) {
        fail_msg("no metric %s in:\n%s", name, out.data);
    }
    uint64_t value = strtoull(at + strlen(line), NULL, 10);
    buf_deinit(&out);
    return value;
}

/* ---- tests ---- */

static bool all_have_three(struct world *world)
{
    return same_frontier(world) && gossip_revision(gossip_net_core(world->nodes[0].net)) == 3;
}

static void join_and_replicate(void **state)
{
    (void)state;
    struct world world;
    world_init(&world);
    for (int i = 0; i < 3; i++) {
        add_node(&world, &world.ring);
    }
    assert_true(reach(&world, all_joined));
    write_row(&world.nodes[1], "small", 100, 0);
    assert_true(reach(&world, same_frontier));
    write_row(&world.nodes[2], "large", 200000, 0);
    write_row(&world.nodes[0], "secret", 50, ROW_SECRET); /* never in a datagram */
    assert_true(reach(&world, all_have_three));
    assert_int_equal(world.nodes[2].written_rc, 0);
    for (int i = 0; i < 3; i++) {
        expect_row(&world.nodes[i], "small", 100);
        expect_row(&world.nodes[i], "large", 200000);
        expect_row(&world.nodes[i], "secret", 50);
        assert_true(metric(&world.nodes[i], "skein_gossip_datagrams_sent_total") > 0);
        assert_int_equal(
            metric(&world.nodes[i], "skein_gossip_datagrams_dropped_total{reason=\"broken_seal\"}"),
            0);
        assert_int_equal(metric(&world.nodes[i], "skein_gossip_unencodable_total"), 0);
        assert_string_equal(gossip_net_key_id(world.nodes[i].net),
                            gossip_net_key_id(world.nodes[0].net));
    }
    assert_true(metric(&world.nodes[0], "skein_gossip_streams_total{direction=\"in\"}") +
                    metric(&world.nodes[0], "skein_gossip_streams_total{direction=\"out\"}") >
                0);
    world_end(&world);
}

static bool two_has_all(struct world *world)
{
    struct gossip *core = gossip_net_core(world->nodes[1].net);
    return gossip_in_step(core) && gossip_find(core, 1, "kept", 4) != NULL;
}

/* The same node again, with its identity and without its rows: the seal lets it in, the core fills
 * it. */
static void start_again(void **state)
{
    (void)state;
    struct world world;
    world_init(&world);
    add_node(&world, &world.ring);
    struct node *again = add_node(&world, &world.ring);
    assert_true(reach(&world, all_joined));
    write_row(&world.nodes[0], "kept", 1000, 0);
    assert_true(reach(&world, two_has_all));
    for (int round = 0; round < 3; round++) {
        stop_node(&world, again);
        again->applied = 0;
        assert_int_equal(make_node(&world, again, &world.ring, &world.nodes[0].addr, 1, NULL),
                         RC_OK);
        assert_true(reach(&world, two_has_all));
        assert_true(again->applied > 0);
    }
    assert_true(metric(&world.nodes[0], "skein_gossip_challenges_sent_total") >= 4);
    world_end(&world);
}

static bool both_know_why(struct world *world)
{
    return metric(&world->nodes[0],
                  "skein_gossip_datagrams_dropped_total{reason=\"unknown_key\"}") > 1 &&
           metric(&world->nodes[1], "skein_gossip_datagrams_dropped_total{reason=\"notice\"}") > 1;
}

static void other_key_is_refused(void **state)
{
    (void)state;
    struct world world;
    world_init(&world);
    add_node(&world, &world.ring);
    struct key_ring ring = {.count = 1};
    key_generate(ring.keys[0]);
    add_node(&world, &ring);
    assert_true(reach(&world, both_know_why));
    assert_int_equal(alive(&world.nodes[0]), 1);
    assert_int_equal(alive(&world.nodes[1]), 1);
    assert_string_not_equal(gossip_net_key_id(world.nodes[0].net),
                            gossip_net_key_id(world.nodes[1].net));
    world_end(&world);
}

static bool noise_was_counted(struct world *world)
{
    return metric(&world->nodes[0], "skein_gossip_datagrams_dropped_total{reason=\"malformed\"}") >=
               30 &&
           metric(&world->nodes[0], "skein_gossip_datagrams_dropped_total{reason=\"too_big\"}") >=
               1;
}

static void noise(void **state)
{
    (void)state;
    struct world world;
    world_init(&world);
    add_node(&world, &world.ring);
    add_node(&world, &world.ring);
    assert_true(reach(&world, all_joined));
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    uint8_t bytes[2000];
    memset(bytes, 0x42, sizeof(bytes));
    const struct addr *to = &world.nodes[0].addr;
    for (size_t i = 0; i < 40; i++) {
        size_t len = i * 30;
        assert_int_equal(sendto(fd, bytes, len, 0, &to->sa, addr_len(to)), (ssize_t)len);
    }
    assert_int_equal(sendto(fd, bytes, 2000, 0, &to->sa, addr_len(to)), 2000);
    close(fd);
    assert_true(reach(&world, noise_was_counted));
    write_row(&world.nodes[1], "after", 10, 0);
    assert_true(reach(&world, same_frontier));
    world_end(&world);
}

static void port_in_use(void **state)
{
    (void)state;
    struct world world;
    world_init(&world);
    struct node *node = add_node(&world, &world.ring);
    char text[ADDR_TEXT_MAX];
    addr_format(&node->addr, text);
    struct err_info err = {{0}};
    struct node second = {.id = 9, .incarnation = 1, .addr = node->addr};
    assert_int_equal(make_node(&world, &second, &world.ring, NULL, 0, &err), RC_BUSY);
    assert_non_null(strstr(err.text, text));
    gossip_net_free(second.net);

    /* UDP alone is taken. */
    struct node third = {.id = 10, .incarnation = 1};
    free_port(&third.addr);
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    assert_int_equal(bind(fd, &third.addr.sa, addr_len(&third.addr)), 0);
    assert_int_equal(make_node(&world, &third, &world.ring, NULL, 0, &err), RC_BUSY);
    assert_non_null(strstr(err.text, "UDP"));
    gossip_net_free(third.net);
    close(fd);
    world_end(&world);
}

static void bad_addresses(void **state)
{
    (void)state;
    struct world world;
    world_init(&world);
    struct gossip_net *net = NULL;
    struct err_info err = {{0}};
    struct gossip_net_config config = {.self = {.id = 1, .generation = 1}, .keys = &world.ring};
    assert_int_equal(gossip_net_new(&world.loop, &config, &app_ops, NULL, &net, &err), RC_INVALID);
    assert_int_equal(addr_parse("0.0.0.0:7946", &config.bind, NULL), RC_OK);
    config.self.addr = config.bind;
    assert_int_equal(gossip_net_new(&world.loop, &config, &app_ops, NULL, &net, &err), RC_INVALID);
    assert_non_null(strstr(err.text, "0.0.0.0:7946"));
    assert_null(net);
    loop_close_clean(&world.loop);
}

static bool limit_was_reached(struct world *world)
{
    return metric(&world->nodes[0],
                  "skein_gossip_streams_ended_total{direction=\"in\",reason=\"deadline\"}") >= 40;
}

static bool large_arrived(struct world *world)
{
    return gossip_find(gossip_net_core(world->nodes[1].net), 1, "large", 5) != NULL;
}

/* Strangers who connect and say nothing take each other's places, not those of peers. */
static void silent_strangers(void **state)
{
    (void)state;
    enum { STRANGERS = 170 };
    struct world world;
    world_init(&world);
    add_node(&world, &world.ring);
    int fds[STRANGERS];
    const struct addr *to = &world.nodes[0].addr;
    for (int i = 0; i < STRANGERS; i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM, 0);
        assert_int_equal(connect(fds[i], &to->sa, addr_len(to)), 0);
        (void)uv_run(&world.loop, UV_RUN_NOWAIT);
        answer_disks(&world);
    }
    assert_true(reach(&world, limit_was_reached));
    assert_true(metric(&world.nodes[0], "skein_gossip_streams") <= 160);
    add_node(&world, &world.ring);
    write_row(&world.nodes[0], "large", 100000, 0); /* travels by stream */
    assert_true(reach(&world, large_arrived));
    for (int i = 0; i < STRANGERS; i++) {
        close(fds[i]);
    }
    world_end(&world);
}

static bool second_closed(struct world *world)
{
    return world->nodes[1].closed;
}

/* Stopped from within an op, in the middle of what a message led to. */
static void stop_within_op(void **state)
{
    (void)state;
    struct world world;
    world_init(&world);
    add_node(&world, &world.ring);
    add_node(&world, &world.ring);
    assert_true(reach(&world, all_joined));
    world.nodes[1].stop_on_apply = true;
    write_row(&world.nodes[0], "last", 100000, 0); /* by stream */
    assert_true(reach(&world, second_closed));
    world_end(&world);
}

static void lossy(void **state)
{
    (void)state;
    assert_int_equal(setenv("SKEIN_TEST_GOSSIP_DROP", "30", 1), 0);
    struct world world;
    world_init(&world);
    for (int i = 0; i < 3; i++) {
        add_node(&world, &world.ring);
    }
    assert_int_equal(unsetenv("SKEIN_TEST_GOSSIP_DROP"), 0);
    write_row(&world.nodes[0], "a", 100, 0);
    assert_true(reach(&world, same_frontier));
    write_row(&world.nodes[2], "b", 100, 0);
    write_row(&world.nodes[1], "c", 100, 0);
    assert_true(reach(&world, all_have_three));
    assert_true(metric(&world.nodes[0], "skein_gossip_datagrams_dropped_total{reason=\"test\"}") >
                0);
    world_end(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(join_and_replicate),
        cmocka_unit_test(start_again),
        cmocka_unit_test(other_key_is_refused),
        cmocka_unit_test(noise),
        cmocka_unit_test(port_in_use),
        cmocka_unit_test(bad_addresses),
        cmocka_unit_test(silent_strangers),
        cmocka_unit_test(stop_within_op),
        cmocka_unit_test(lossy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
