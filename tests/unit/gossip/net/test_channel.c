/*
 * Channels over loopback: messages of all sizes, refusals that both sides can explain, broken
 * frames, a peer that takes nothing, every way to end.
 */
#include "gossip/net/channel.h"
#include "node/base/check.h"
#include "node/base/mem.h"
#include "node/net/listener.h"
#include "node/net/loop.h"
#include "tests/support/unit.h"

enum { SERVER = 0, CLIENT = 1, SERVER_ID = 100, CLIENT_ID = 200 };

struct side {
    struct channel_env env;
    struct cluster_keys keys;
    struct channel *channel; /* NULL: none, or gone */
    unsigned opened;
    unsigned ended;
    unsigned gone;
    enum channel_end end;
    char text[300];
    size_t messages;
    size_t bytes;
    uint8_t first;
    bool close_on_msg;
    bool refuse_msg;
    bool echo;
};

struct world {
    uv_loop_t loop;
    struct crypto *crypto;
    struct key_ring ring;
    struct side sides[2];
    struct listener *listener;
    struct addr addr;
};

static void on_open(void *owner, struct channel *channel)
{
    struct side *side = owner;
    side->opened++;
    side->channel = channel;
    assert_true(channel_is_open(channel));
}

static void send_text(struct channel *channel, uint8_t fill, size_t len)
{
    uint8_t *frame = mem_new(CHANNEL_FRAME_BYTES + len);
    channel_frame_begin(frame, len);
    memset(frame + CHANNEL_FRAME_BYTES, fill, len);
    channel_send(channel, frame, CHANNEL_FRAME_BYTES + len);
    mem_free(frame);
}

static int on_msg(void *owner, struct channel *channel, const uint8_t *bytes, size_t len)
{
    struct side *side = owner;
    assert_int_equal(side->ended, 0);
    side->messages++;
    side->bytes += len;
    side->first = bytes[0];
    assert_int_equal(bytes[0], bytes[len - 1]);
    if (side->echo) {
        send_text(channel, bytes[0], len);
    }
    if (side->close_on_msg) {
        channel_close(channel);
    }
    return side->refuse_msg ? RC_PEER : RC_OK;
}

static void on_end(void *owner, struct channel *channel, enum channel_end end, const char *text)
{
    struct side *side = owner;
    assert_true(channel_has_ended(channel));
    assert_int_equal(side->gone, 0);
    side->ended++;
    side->end = end;
    snprintf(side->text, sizeof(side->text), "%s", text);
}

static void on_gone(void *owner, struct channel *channel)
{
    struct side *side = owner;
    (void)channel;
    side->gone++;
    side->channel = NULL;
}

static const struct channel_ops ops = {
    .on_open = on_open, .on_msg = on_msg, .on_end = on_end, .on_gone = on_gone};

static void on_accept(void *owner, struct stream *stream)
{
    struct world *world = owner;
    struct side *side = &world->sides[SERVER];
    if (side->channel != NULL) {
        stream_abandon(stream);
        return;
    }
    side->channel = channel_accept(&side->env, 2, stream);
    assert_true(channel_is_inbound(side->channel));
    assert_int_equal(channel_peer_id(side->channel), 0);
}

static void world_open(struct world *world)
{
    *world = (struct world){0};
    loop_init(&world->loop);
    assert_int_equal(crypto_new(&world->crypto, NULL), RC_OK);
    world->ring.count = 2;
    key_generate(world->ring.keys[0]);
    key_generate(world->ring.keys[1]);
    for (int i = 0; i < 2; i++) {
        struct side *side = &world->sides[i];
        cluster_keys_init(&side->keys, world->crypto, &world->ring);
        side->env = (struct channel_env){.loop = &world->loop,
                                         .crypto = world->crypto,
                                         .keys = &side->keys,
                                         .self_id = i == SERVER ? SERVER_ID : CLIENT_ID,
                                         .ops = &ops,
                                         .owner = side};
        assert_int_equal(channel_env_init(&side->env, NULL), RC_OK);
    }
    struct addr any;
    assert_int_equal(addr_parse("127.0.0.1:0", &any, NULL), RC_OK);
    struct listener_config config = {.on_accept = on_accept, .owner = world};
    assert_int_equal(listener_open_tcp(&world->loop, &any, &config, &world->listener, NULL), RC_OK);
    listener_addr(world->listener, &world->addr);
}

static void world_connect(struct world *world, uint64_t peer_id)
{
    struct side *client = &world->sides[CLIENT];
    client->channel = channel_connect(&client->env, 1, &world->addr, peer_id);
}

static bool both_open(void *arg)
{
    struct world *world = arg;
    return world->sides[0].opened > 0 && world->sides[1].opened > 0;
}

static bool both_gone(void *arg)
{
    struct world *world = arg;
    return world->sides[0].gone > 0 && world->sides[1].gone > 0;
}

static void world_ready(struct world *world)
{
    world_open(world);
    world_connect(world, SERVER_ID);
    assert_true(loop_run_until(&world->loop, both_open, world, 10000));
    assert_int_equal(channel_peer_id(world->sides[SERVER].channel), CLIENT_ID);
    assert_int_equal(channel_peer_id(world->sides[CLIENT].channel), SERVER_ID);
}

static void world_close(struct world *world)
{
    listener_close(world->listener, NULL, NULL);
    for (int i = 0; i < 2; i++) {
        if (world->sides[i].channel != NULL) {
            channel_abort(world->sides[i].channel);
        }
    }
    loop_close_clean(&world->loop);
    for (int i = 0; i < 2; i++) {
        assert_null(world->sides[i].channel);
        assert_true(world->sides[i].ended <= 1);
        channel_env_deinit(&world->sides[i].env);
    }
    crypto_free(world->crypto);
}

static bool three_echoed(void *arg)
{
    return ((struct world *)arg)->sides[CLIENT].messages == 3;
}

static void messages(void **state)
{
    (void)state;
    struct world world;
    world_ready(&world);
    world.sides[SERVER].echo = true;
    send_text(world.sides[CLIENT].channel, 'a', 1);
    send_text(world.sides[CLIENT].channel, 'b', 70000);
    send_text(world.sides[CLIENT].channel, 'c', GOSSIP_STREAM_MSG_MAX);
    assert_true(loop_run_until(&world.loop, three_echoed, &world, 10000));
    assert_int_equal(world.sides[CLIENT].bytes, 1 + 70000 + GOSSIP_STREAM_MSG_MAX);
    assert_int_equal(world.sides[CLIENT].first, 'c');
    assert_int_equal(channel_no(world.sides[SERVER].channel), 2);
    world_close(&world);
    assert_int_equal(world.sides[CLIENT].ended, 0); /* aborted by its owner: nobody to tell */
}

/* What was sent before an orderly end arrives. */
static void close_keeps_what_was_sent(void **state)
{
    (void)state;
    struct world world;
    world_ready(&world);
    send_text(world.sides[CLIENT].channel, 'x', 1000000);
    send_text(world.sides[CLIENT].channel, 'y', 10);
    channel_close(world.sides[CLIENT].channel);
    channel_close(world.sides[CLIENT].channel);
    send_text(world.sides[CLIENT].channel, 'z', 10); /* ignored */
    assert_true(loop_run_until(&world.loop, both_gone, &world, 10000));
    assert_int_equal(world.sides[SERVER].messages, 2);
    assert_int_equal(world.sides[SERVER].first, 'y');
    assert_int_equal(world.sides[SERVER].end, CHANNEL_PEER_CLOSED);
    assert_int_equal(world.sides[CLIENT].ended, 0);
    world_close(&world);
}

static void close_within_message(void **state)
{
    (void)state;
    struct world world;
    world_ready(&world);
    world.sides[SERVER].close_on_msg = true;
    send_text(world.sides[CLIENT].channel, 'x', 10);
    send_text(world.sides[CLIENT].channel, 'y', 10);
    assert_true(loop_run_until(&world.loop, both_gone, &world, 10000));
    assert_int_equal(world.sides[SERVER].messages, 1);
    assert_int_equal(world.sides[SERVER].ended, 0);
    assert_int_equal(world.sides[CLIENT].end, CHANNEL_PEER_CLOSED);
    world_close(&world);
}

static void malformed_message(void **state)
{
    (void)state;
    struct world world;
    world_ready(&world);
    world.sides[SERVER].refuse_msg = true;
    send_text(world.sides[CLIENT].channel, 'x', 10);
    assert_true(loop_run_until(&world.loop, both_gone, &world, 10000));
    assert_int_equal(world.sides[SERVER].end, CHANNEL_PROTOCOL);
    assert_int_equal(world.sides[CLIENT].end, CHANNEL_PEER_CLOSED);
    world_close(&world);
}

static void bad_lengths(void **state)
{
    (void)state;
    static const uint8_t frames[][5] = {
        {0, 0, 0, 0, 'x'}, {0, 0x10, 0, 1, 'x'}, {0xff, 0xff, 0xff, 0xff, 'x'}};
    for (size_t i = 0; i < ARRAY_LEN(frames); i++) {
        struct world world;
        world_ready(&world);
        channel_send(world.sides[CLIENT].channel, frames[i], 5);
        assert_true(loop_run_until(&world.loop, both_gone, &world, 10000));
        assert_int_equal(world.sides[SERVER].end, CHANNEL_PROTOCOL);
        assert_int_equal(world.sides[SERVER].messages, 0);
        world_close(&world);
    }
}

static void other_key(void **state)
{
    (void)state;
    struct world world;
    world_open(&world);
    struct key_ring ring = {.count = 1};
    key_generate(ring.keys[0]);
    cluster_keys_init(&world.sides[SERVER].keys, world.crypto, &ring);
    world_connect(&world, SERVER_ID);
    assert_true(loop_run_until(&world.loop, both_gone, &world, 10000));
    assert_int_equal(world.sides[SERVER].end, CHANNEL_OTHER_KEY);
    assert_int_equal(world.sides[CLIENT].end, CHANNEL_OTHER_KEY);
    char id[16];
    snprintf(id, sizeof(id), "%08x", world.sides[CLIENT].keys.keys[0].id);
    assert_non_null(strstr(world.sides[SERVER].text, id)); /* both sides name the key */
    assert_non_null(strstr(world.sides[CLIENT].text, id));
    assert_int_equal(world.sides[SERVER].opened + world.sides[CLIENT].opened, 0);
    world_close(&world);
}

/* One id, two secrets: only the proof tells. */
static void same_id_other_secret(void **state)
{
    (void)state;
    struct world world;
    world_open(&world);
    world.sides[SERVER].keys.keys[0].secret[0] ^= 1;
    world_connect(&world, SERVER_ID);
    assert_true(loop_run_until(&world.loop, both_gone, &world, 10000));
    assert_int_equal(world.sides[SERVER].end, CHANNEL_HANDSHAKE);
    assert_true(world.sides[CLIENT].end == CHANNEL_OTHER_KEY ||
                world.sides[CLIENT].end == CHANNEL_HANDSHAKE);
    assert_int_equal(world.sides[SERVER].opened + world.sides[CLIENT].opened, 0);
    world_close(&world);
}

static void other_node(void **state)
{
    (void)state;
    struct world world;
    world_open(&world);
    world_connect(&world, SERVER_ID + 1);
    assert_true(loop_run_until(&world.loop, both_gone, &world, 10000));
    assert_int_equal(world.sides[SERVER].end, CHANNEL_OTHER_NODE);
    assert_int_equal(world.sides[CLIENT].end, CHANNEL_OTHER_NODE);
    world_close(&world);
}

static void second_key(void **state)
{
    (void)state;
    struct world world;
    world_open(&world);
    struct cluster_key first = world.sides[SERVER].keys.keys[0]; /* it has rotated already */
    world.sides[SERVER].keys.keys[0] = world.sides[SERVER].keys.keys[1];
    world.sides[SERVER].keys.keys[1] = first;
    world_connect(&world, SERVER_ID);
    assert_true(loop_run_until(&world.loop, both_open, &world, 10000));
    world_close(&world);
}

static bool client_gone(void *arg)
{
    return ((struct world *)arg)->sides[CLIENT].gone > 0;
}

static bool server_gone(void *arg)
{
    return ((struct world *)arg)->sides[SERVER].gone > 0;
}

static void unreachable(void **state)
{
    (void)state;
    struct world world;
    world_open(&world);
    listener_close(world.listener, NULL, NULL);
    world.listener = NULL;
    (void)uv_run(&world.loop, UV_RUN_NOWAIT);
    world_connect(&world, SERVER_ID);
    assert_true(loop_run_until(&world.loop, client_gone, &world, 10000));
    assert_int_equal(world.sides[CLIENT].end, CHANNEL_UNREACHABLE);
    assert_non_null(strstr(world.sides[CLIENT].text, "refused"));
    /* Closed before the loop could even try. */
    world.sides[CLIENT].gone = 0;
    world.sides[CLIENT].ended = 0;
    world_connect(&world, SERVER_ID);
    channel_close(world.sides[CLIENT].channel);
    assert_true(loop_run_until(&world.loop, client_gone, &world, 10000));
    assert_int_equal(world.sides[CLIENT].ended, 0);
    world_close(&world);
}

/* A stranger who speaks something else. */
struct stranger {
    struct stream *stream;
    const uint8_t *bytes;
    size_t len;
    bool closed;
};

static void stranger_open(void *owner)
{
    struct stranger *stranger = owner;
    assert_int_equal(stream_write(stranger->stream, stranger->bytes, stranger->len), RC_OK);
}

static void stranger_data(void *owner, const uint8_t *bytes, size_t len)
{
    (void)owner;
    (void)bytes;
    (void)len;
}

static void stranger_closed(void *owner, enum stream_reason reason, const char *text)
{
    struct stranger *stranger = owner;
    (void)reason;
    (void)text;
    stranger->closed = true;
}

static const struct stream_ops stranger_ops = {.on_open = stranger_open,
                                               .on_data = stranger_data,
                                               .on_closed = stranger_closed,
                                               .write_cap_bytes = 65536};

static void stranger(void **state)
{
    (void)state;
    static const char *const words[] = {"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
                                        "\x16\x03\x01\x00\x05hello", "\x15\x03\x03"};
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        struct world world;
        world_open(&world);
        struct stranger who = {.bytes = (const uint8_t *)words[i], .len = strlen(words[i])};
        who.len = i == 1 ? 10 : who.len;
        who.stream = stream_connect(&world.loop, &world.addr, &stranger_ops, &who);
        if (i == 2) { /* goes away in the middle of the handshake */
            (void)uv_run(&world.loop, UV_RUN_ONCE);
            (void)uv_run(&world.loop, UV_RUN_ONCE);
            stream_close(who.stream, STREAM_LOCAL, NULL);
        }
        assert_true(loop_run_until(&world.loop, server_gone, &world, 10000));
        assert_int_equal(world.sides[SERVER].end, i == 2 ? CHANNEL_PEER_CLOSED : CHANNEL_HANDSHAKE);
        assert_int_equal(world.sides[SERVER].opened, 0);
        if (!who.closed && i != 2) {
            stream_abandon(who.stream);
        }
        world_close(&world);
    }
}

/* The server never reads: what waits is bounded and its end is told from the loop. */
static void overflow(void **state)
{
    (void)state;
    struct world world;
    world_ready(&world);
    struct side *client = &world.sides[CLIENT];
    for (int i = 0; i < 100 && !channel_has_ended(client->channel); i++) {
        send_text(client->channel, 'x', GOSSIP_STREAM_MSG_MAX); /* the loop does not run */
        assert_int_equal(client->ended, 0);
    }
    assert_true(channel_has_ended(client->channel));
    assert_true(loop_run_until(&world.loop, client_gone, &world, 10000));
    assert_int_equal(client->ended, 1);
    assert_int_equal(client->end, CHANNEL_OVERFLOW);
    world_close(&world);
    for (int i = 0; i < CHANNEL_END_COUNT; i++) {
        assert_true(strlen(channel_end_name((enum channel_end)i)) > 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages),
        cmocka_unit_test(close_keeps_what_was_sent),
        cmocka_unit_test(close_within_message),
        cmocka_unit_test(malformed_message),
        cmocka_unit_test(bad_lengths),
        cmocka_unit_test(other_key),
        cmocka_unit_test(same_id_other_secret),
        cmocka_unit_test(other_node),
        cmocka_unit_test(second_key),
        cmocka_unit_test(unreachable),
        cmocka_unit_test(stranger),
        cmocka_unit_test(overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
