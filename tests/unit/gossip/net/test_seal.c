/*
 * Sealed datagrams between two seals in memory: round trip, proofs of new starts, tampering at
 * every byte, truncation at every length, repetition, other keys, reflection.
 */
#include "gossip/net/seal.h"
#include "node/base/rng.h"
#include "tests/support/unit.h"

enum { FLIGHT_MAX = 128 };

struct packet {
    struct addr to;
    size_t len;
    uint8_t bytes[GOSSIP_DATAGRAM_MAX];
};

struct node {
    struct seal *seal;
    struct addr addr;
    struct packet out[FLIGHT_MAX];
    size_t out_count;
    unsigned delivered;
    uint8_t last[SEAL_PLAIN_MAX];
    size_t last_len;
    uint64_t last_from;
    unsigned results[SEAL_RESULT_COUNT];
    uint32_t noticed_key;
};

struct world {
    struct crypto *crypto;
    struct cluster_keys keys;
    struct cluster_keys other;
    struct node a;
    struct node b;
    uint64_t now_ms;
};

static void emit(void *ctx, const struct addr *to, const uint8_t *bytes, size_t len)
{
    struct node *node = ctx;
    assert_true(node->out_count < FLIGHT_MAX);
    assert_true(len <= GOSSIP_DATAGRAM_MAX);
    struct packet *packet = &node->out[node->out_count++];
    packet->to = *to;
    packet->len = len;
    memcpy(packet->bytes, bytes, len);
}

static void start_node(struct world *world, struct node *node, uint64_t id,
                       const struct cluster_keys *keys)
{
    seal_free(node->seal);
    struct addr addr = node->addr;
    *node = (struct node){.addr = addr};
    struct seal_config config = {.crypto = world->crypto,
                                 .keys = keys,
                                 .self_id = id,
                                 .generation = 1,
                                 .wall_ms = 1700000000000U,
                                 .senders_max = 16,
                                 .emit = emit,
                                 .ctx = node};
    node->seal = seal_new(&config);
}

static void world_open(struct world *world)
{
    *world = (struct world){.now_ms = 5000};
    assert_int_equal(crypto_new(&world->crypto, NULL), RC_OK);
    struct key_ring ring = {.count = 2};
    key_generate(ring.keys[0]);
    key_generate(ring.keys[1]);
    cluster_keys_init(&world->keys, world->crypto, &ring);
    key_generate(ring.keys[0]);
    key_generate(ring.keys[1]);
    cluster_keys_init(&world->other, world->crypto, &ring);
    assert_int_equal(addr_parse("10.0.0.1:7946", &world->a.addr, NULL), RC_OK);
    assert_int_equal(addr_parse("10.0.0.2:7946", &world->b.addr, NULL), RC_OK);
    start_node(world, &world->a, 1, &world->keys);
    start_node(world, &world->b, 2, &world->keys);
}

static void world_close(struct world *world)
{
    seal_free(world->a.seal);
    seal_free(world->b.seal);
    seal_free(NULL);
    crypto_free(world->crypto);
}

static enum seal_result receive(struct world *world, struct node *to, const struct node *from,
                                const struct packet *packet)
{
    uint8_t bytes[GOSSIP_DATAGRAM_MAX];
    memcpy(bytes, packet->bytes, packet->len);
    struct seal_opened opened;
    enum seal_result result =
        seal_open(to->seal, &from->addr, bytes, packet->len, world->now_ms, &opened);
    to->results[result]++;
    if (result == SEAL_OK) {
        to->delivered++;
        to->last_len = opened.len;
        to->last_from = opened.from_id;
        memcpy(to->last, opened.plain, opened.len);
    }
    if (result == SEAL_NOTICE) {
        to->noticed_key = opened.key_id;
    }
    return result;
}

/* Carry everything both ways until nothing is left. */
static void settle(struct world *world)
{
    while (world->a.out_count + world->b.out_count > 0) {
        for (int dir = 0; dir < 2; dir++) {
            struct node *from = dir == 0 ? &world->a : &world->b;
            struct node *to = dir == 0 ? &world->b : &world->a;
            static struct packet flight[FLIGHT_MAX];
            size_t count = from->out_count;
            memcpy(flight, from->out, sizeof(flight[0]) * count);
            from->out_count = 0;
            for (size_t i = 0; i < count; i++) {
                (void)receive(world, to, from, &flight[i]);
            }
        }
    }
}

static void say(struct world *world, struct node *from, struct node *to, uint64_t to_id,
                const char *text)
{
    seal_send(from->seal, &to->addr, to_id, (const uint8_t *)text, strlen(text), world->now_ms);
}

static void expect_last(const struct node *node, const char *text, uint64_t from)
{
    assert_int_equal(node->last_len, strlen(text));
    assert_memory_equal(node->last, text, strlen(text));
    assert_int_equal(node->last_from, from);
}

/* Both know each other's start. */
static void acquaint(struct world *world)
{
    say(world, &world->a, &world->b, 2, "hello b");
    say(world, &world->b, &world->a, 1, "hello a");
    settle(world);
    assert_int_equal(world->a.delivered, 1);
    assert_int_equal(world->b.delivered, 1);
}

static void first_contact_loses_nothing(void **state)
{
    (void)state;
    struct world world;
    world_open(&world);
    say(&world, &world.a, &world.b, 0, "join"); /* the receiver's identity is not known */
    say(&world, &world.a, &world.b, 0, "again");
    settle(&world);
    assert_int_equal(world.b.delivered, 2);
    expect_last(&world.b, "again", 1);
    assert_int_equal(world.b.results[SEAL_UNPROVEN], 2);
    assert_int_equal(seal_counters(world.b.seal)->challenges, 1); /* one for the burst */
    assert_int_equal(seal_counters(world.a.seal)->proofs, 2);
    say(&world, &world.b, &world.a, 1, "grant");
    settle(&world);
    expect_last(&world.a, "grant", 2);
    say(&world, &world.a, &world.b, 2, "thanks");
    settle(&world);
    expect_last(&world.b, "thanks", 1);
    assert_int_equal(world.b.results[SEAL_UNPROVEN], 2); /* only at first */
    world_close(&world);
}

static void sizes(void **state)
{
    (void)state;
    struct world world;
    world_open(&world);
    acquaint(&world);
    start_node(&world, &world.a, 1, &world.keys);
    uint8_t large[SEAL_PLAIN_MAX];
    memset(large, 0xa5, sizeof(large));
    /* The proof that carries the largest message fits too. */
    seal_send(world.a.seal, &world.b.addr, 2, large, sizeof(large), world.now_ms);
    settle(&world);
    assert_int_equal(world.b.last_len, sizeof(large));
    assert_memory_equal(world.b.last, large, sizeof(large));
    /* Nothing recent: the proof comes bare. */
    start_node(&world, &world.b, 2, &world.keys);
    say(&world, &world.a, &world.b, 2, "old");
    struct packet packet = world.a.out[0];
    world.a.out_count = 0;
    world.now_ms += 5000;
    assert_int_equal(receive(&world, &world.b, &world.a, &packet), SEAL_UNPROVEN);
    settle(&world);
    assert_int_equal(world.b.delivered, 0);
    assert_int_equal(world.b.results[SEAL_CONTROL], 1);
    say(&world, &world.a, &world.b, 2, "new");
    settle(&world);
    expect_last(&world.b, "new", 1);
    assert_int_equal(world.b.results[SEAL_UNPROVEN], 1);
    world_close(&world);
}

static void replayed(void **state)
{
    (void)state;
    struct world world;
    world_open(&world);
    acquaint(&world);
    struct packet kept[3];
    for (int i = 0; i < 3; i++) {
        say(&world, &world.a, &world.b, 2, "x");
        kept[i] = world.a.out[0];
        world.a.out_count = 0;
    }
    assert_int_equal(receive(&world, &world.b, &world.a, &kept[2]), SEAL_OK); /* out of order */
    assert_int_equal(receive(&world, &world.b, &world.a, &kept[0]), SEAL_OK);
    assert_int_equal(receive(&world, &world.b, &world.a, &kept[0]), SEAL_REPLAY);
    for (int i = 0; i < 1100; i++) {
        say(&world, &world.a, &world.b, 2, "y");
        settle(&world);
    }
    assert_int_equal(receive(&world, &world.b, &world.a, &kept[1]), SEAL_REPLAY); /* too old */
    world_close(&world);
}

/* What an earlier start sent is worth nothing after a later one was seen, nor to a receiver that
 * forgot everything. */
static void replayed_starts(void **state)
{
    (void)state;
    struct world world;
    world_open(&world);
    acquaint(&world);
    say(&world, &world.a, &world.b, 2, "from the first start");
    struct packet old = world.a.out[0];
    settle(&world);

    start_node(&world, &world.a, 1, &world.keys); /* the clock even stands still */
    say(&world, &world.a, &world.b, 2, "second start");
    struct packet proof;
    while (world.a.results[SEAL_CONTROL] == 0) { /* until A was challenged */
        struct packet packet = world.a.out[0];
        world.a.out_count = 0;
        assert_int_equal(receive(&world, &world.b, &world.a, &packet), SEAL_UNPROVEN);
        assert_int_equal(world.b.out_count, 1);
        packet = world.b.out[0];
        world.b.out_count = 0;
        assert_int_equal(receive(&world, &world.a, &world.b, &packet), SEAL_CONTROL);
    }
    proof = world.a.out[0];
    settle(&world);
    expect_last(&world.b, "second start", 1);
    unsigned delivered = world.b.delivered;
    assert_int_equal(receive(&world, &world.b, &world.a, &old), SEAL_UNPROVEN);
    assert_int_equal(receive(&world, &world.b, &world.a, &proof), SEAL_REPLAY);
    settle(&world); /* A does not answer for a start that is not its own */
    assert_int_equal(world.b.delivered, delivered);
    say(&world, &world.a, &world.b, 2, "still the second");
    settle(&world);
    expect_last(&world.b, "still the second", 1);

    start_node(&world, &world.b, 2, &world.keys); /* forgets windows and challenges */
    assert_int_equal(receive(&world, &world.b, &world.a, &old), SEAL_UNPROVEN);
    assert_int_equal(receive(&world, &world.b, &world.a, &proof), SEAL_UNPROVEN);
    world.b.out_count = 0;
    assert_int_equal(world.b.delivered, 0);
    world_close(&world);
}

static void restored_backup_and_clock_set_back(void **state)
{
    (void)state;
    struct world world;
    world_open(&world);
    seal_set_generation(world.a.seal, 7);
    acquaint(&world);
    start_node(&world, &world.a, 1, &world.keys); /* generation 1 again */
    say(&world, &world.a, &world.b, 2, "lost my memory");
    settle(&world);
    expect_last(&world.b, "lost my memory", 1);
    seal_set_generation(world.a.seal, 8);
    seal_set_generation(world.a.seal, 8);
    say(&world, &world.a, &world.b, 2, "new generation");
    settle(&world);
    expect_last(&world.b, "new generation", 1);
    world_close(&world);
}

static void tampered(void **state)
{
    (void)state;
    struct world world;
    world_open(&world);
    acquaint(&world);
    say(&world, &world.a, &world.b, 2, "do not touch");
    struct packet good = world.a.out[0];
    world.a.out_count = 0;
    for (size_t at = 0; at < good.len; at++) {
        for (int bit = 0; bit < 8; bit++) {
            struct packet bad = good;
            bad.bytes[at] ^= (uint8_t)(1 << bit);
            enum seal_result result = receive(&world, &world.b, &world.a, &bad);
            assert_true(result != SEAL_OK && result != SEAL_CONTROL && result != SEAL_UNPROVEN &&
                        result != SEAL_REPLAY);
        }
    }
    for (size_t len = 0; len < good.len; len++) {
        struct packet bad = good;
        bad.len = len;
        enum seal_result result = receive(&world, &world.b, &world.a, &bad);
        assert_true(result == SEAL_MALFORMED || result == SEAL_BROKEN);
    }
    world.b.out_count = 0;
    assert_int_equal(receive(&world, &world.b, &world.a, &good), SEAL_OK); /* none of it counted */
    world_close(&world);
}

static void noise(void **state)
{
    (void)state;
    struct world world;
    world_open(&world);
    acquaint(&world);
    struct rng rng;
    rng_init(&rng, 7);
    for (int i = 0; i < 20000; i++) {
        struct packet packet = {.len = rng_below(&rng, GOSSIP_DATAGRAM_MAX + 1)};
        for (size_t at = 0; at < packet.len; at++) {
            packet.bytes[at] = (uint8_t)rng_next(&rng);
        }
        if (i % 2) {
            packet.bytes[0] = (uint8_t)(0xa1 + i / 2 % 2);
            packet.bytes[1] = (uint8_t)(i / 4 % 4);
        }
        enum seal_result result = receive(&world, &world.b, &world.a, &packet);
        assert_true(result != SEAL_OK && result != SEAL_CONTROL && result != SEAL_NOTICE);
        world.b.out_count = 0; /* notices, at most 50 a second */
    }
    assert_true(seal_counters(world.b.seal)->notices <= 50);
    world_close(&world);
}

static void other_key_is_told(void **state)
{
    (void)state;
    struct world world;
    world_open(&world);
    start_node(&world, &world.b, 2, &world.other);
    say(&world, &world.a, &world.b, 0, "join");
    struct packet join = world.a.out[0];
    world.a.out_count = 0;
    assert_int_equal(receive(&world, &world.b, &world.a, &join), SEAL_UNKNOWN_KEY);
    assert_int_equal(world.b.out_count, 1);
    struct packet told = world.b.out[0];
    assert_true(told.len < join.len);
    settle(&world);
    assert_int_equal(world.a.results[SEAL_NOTICE], 1);
    assert_int_equal(world.a.noticed_key, world.other.keys[0].id);

    /* A notice about a datagram that we never sent is not believed. */
    told.bytes[13] ^= 1;
    assert_int_equal(receive(&world, &world.a, &world.b, &told), SEAL_MALFORMED);
    told.bytes[13] ^= 1;
    told.bytes[9] ^= 1;
    assert_int_equal(receive(&world, &world.a, &world.b, &told), SEAL_MALFORMED);
    world_close(&world);
}

static void second_key_opens(void **state)
{
    (void)state;
    struct world world;
    world_open(&world);
    struct cluster_keys swapped = world.keys; /* the other node has rotated already */
    swapped.keys[0] = world.keys.keys[1];
    swapped.keys[1] = world.keys.keys[0];
    start_node(&world, &world.b, 2, &swapped);
    acquaint(&world);
    /* B goes back to the first key without a new start: what is cached follows. */
    struct cluster_key first = swapped.keys[0];
    swapped.keys[0] = swapped.keys[1];
    swapped.keys[1] = first;
    seal_set_generation(world.b.seal, 2);
    say(&world, &world.b, &world.a, 1, "back");
    settle(&world);
    expect_last(&world.a, "back", 2);
    world_close(&world);
}

static void misdirected(void **state)
{
    (void)state;
    struct world world;
    world_open(&world);
    acquaint(&world);
    say(&world, &world.a, &world.b, 3, "for the node that was here");
    struct packet packet = world.a.out[0];
    world.a.out_count = 0;
    assert_int_equal(receive(&world, &world.b, &world.a, &packet), SEAL_MISADDRESSED);
    assert_int_equal(receive(&world, &world.a, &world.a, &packet), SEAL_MISADDRESSED);
    say(&world, &world.a, &world.b, 0, "reflected");
    packet = world.a.out[0];
    world.a.out_count = 0;
    assert_int_equal(receive(&world, &world.a, &world.b, &packet), SEAL_SELF);
    world_close(&world);
}

/* Members that send under ever new identities push each other out, nothing grows. */
static void many_senders(void **state)
{
    (void)state;
    struct world world;
    world_open(&world);
    for (uint64_t id = 10; id < 60; id++) {
        world.now_ms += 100;
        start_node(&world, &world.a, id, &world.keys);
        say(&world, &world.a, &world.b, 2, "hello");
        settle(&world);
        assert_int_equal(world.b.delivered, id - 9);
    }
    start_node(&world, &world.a, 10, &world.keys);
    say(&world, &world.a, &world.b, 2, "hello");
    settle(&world);
    assert_int_equal(world.b.last_from, 10);
    for (int i = 0; i < SEAL_RESULT_COUNT; i++) {
        assert_true(strlen(seal_result_name((enum seal_result)i)) > 1);
    }
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_contact_loses_nothing),
        cmocka_unit_test(sizes),
        cmocka_unit_test(replayed),
        cmocka_unit_test(replayed_starts),
        cmocka_unit_test(restored_backup_and_clock_set_back),
        cmocka_unit_test(tampered),
        cmocka_unit_test(noise),
        cmocka_unit_test(other_key_is_told),
        cmocka_unit_test(second_key_opens),
        cmocka_unit_test(misdirected),
        cmocka_unit_test(many_senders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
