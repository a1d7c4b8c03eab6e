/*
 * Streams: data both ways, bounded writes, every order of closing, deadlines, a graceful end.
 */
#include "node/base/buf.h"
#include "node/base/check.h"
#include "node/base/mem.h"
#include "node/net/listener.h"
#include "node/net/loop.h"
#include "node/net/stream.h"
#include "tests/support/unit.h"

#include <unistd.h>

enum { CAP = 1 << 20 };

struct side {
    struct stream *stream; /* NULL when there is none */
    struct buf got;
    bool open;
    bool eof;
    bool keep_on_eof;
    unsigned drained;
    unsigned closed;
    enum stream_reason reason;
    char text[200];
    bool close_on_data;
    bool pause_on_data;
    bool echo;
};

struct world {
    uv_loop_t loop;
    struct listener *listener;
    struct addr addr;
    struct side client;
    struct side server;
};

static void on_open(void *owner)
{
    ((struct side *)owner)->open = true;
}

static void on_data(void *owner, const uint8_t *bytes, size_t len)
{
    struct side *side = owner;
    assert_int_equal(side->closed, 0);
    assert_int_equal(buf_put(&side->got, bytes, len), RC_OK);
    if (side->pause_on_data) {
        stream_pause(side->stream);
    }
    if (side->echo) {
        assert_int_equal(stream_write(side->stream, bytes, len), RC_OK);
    }
    if (side->close_on_data) {
        stream_close(side->stream, STREAM_LOCAL, NULL);
        stream_close(side->stream, STREAM_RESET, "later reasons do not count");
        assert_int_equal(stream_write(side->stream, "x", 1), RC_CLOSED);
        assert_false(stream_is_open(side->stream));
    }
}

static void on_eof(void *owner)
{
    struct side *side = owner;
    side->eof = true;
    if (!side->keep_on_eof) {
        stream_close(side->stream, STREAM_EOF, NULL);
    }
}

static void on_drained(void *owner)
{
    ((struct side *)owner)->drained++;
}

static void on_closed(void *owner, enum stream_reason reason, const char *text)
{
    struct side *side = owner;
    side->closed++;
    side->reason = reason;
    snprintf(side->text, sizeof(side->text), "%s", text);
    side->stream = NULL;
}

static const struct stream_ops ops = {.on_open = on_open,
                                      .on_data = on_data,
                                      .on_eof = on_eof,
                                      .on_drained = on_drained,
                                      .on_closed = on_closed,
                                      .write_cap_bytes = CAP};

static const struct stream_ops ops_no_eof = {
    .on_data = on_data, .on_closed = on_closed, .write_cap_bytes = CAP};

static void on_accept(void *owner, struct stream *stream)
{
    struct world *world = owner;
    if (world->server.stream != NULL || world->server.closed > 0) {
        stream_abandon(stream);
        return;
    }
    world->server.stream = stream;
    stream_adopt(stream, &ops, &world->server);
}

static bool both_open(void *arg)
{
    struct world *world = arg;
    return world->client.open && world->server.stream != NULL;
}

static bool both_closed(void *arg)
{
    struct world *world = arg;
    return world->client.closed > 0 && world->server.closed > 0;
}

static void world_open(struct world *world)
{
    *world = (struct world){0};
    loop_init(&world->loop);
    buf_init(&world->client.got, 64 << 20);
    buf_init(&world->server.got, 64 << 20);
    struct addr any;
    assert_int_equal(addr_parse("127.0.0.1:0", &any, NULL), RC_OK);
    struct listener_config config = {.on_accept = on_accept, .owner = world};
    assert_int_equal(listener_open_tcp(&world->loop, &any, &config, &world->listener, NULL), RC_OK);
    listener_addr(world->listener, &world->addr);
}

static void world_connect(struct world *world)
{
    world_open(world);
    world->client.stream = stream_connect(&world->loop, &world->addr, &ops, &world->client);
    assert_true(loop_run_until(&world->loop, both_open, world, 10000));
}

static void world_end(struct world *world)
{
    listener_close(world->listener, NULL, NULL);
    stream_abandon(world->client.stream);
    stream_abandon(world->server.stream);
    loop_close_clean(&world->loop);
    buf_deinit(&world->client.got);
    buf_deinit(&world->server.got);
}

static bool server_got_64k(void *arg)
{
    return ((struct world *)arg)->server.got.len >= 65536;
}

static bool client_got_64k(void *arg)
{
    return ((struct world *)arg)->client.got.len >= 65536;
}

static void echo(void **state)
{
    (void)state;
    struct world world;
    world_connect(&world);
    world.server.echo = true;
    uint8_t bytes[65536];
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (uint8_t)(i * 7);
    }
    for (size_t at = 0; at < sizeof(bytes); at += 256) {
        assert_int_equal(stream_write(world.client.stream, bytes + at, 256), RC_OK);
    }
    assert_true(loop_run_until(&world.loop, client_got_64k, &world, 10000));
    assert_memory_equal(world.client.got.data, bytes, sizeof(bytes));
    struct addr peer;
    stream_peer_addr(world.client.stream, &peer);
    assert_int_equal(addr_compare(&peer, &world.addr), 0);
    stream_local_addr(world.server.stream, &peer);
    assert_int_equal(addr_compare(&peer, &world.addr), 0);
    world_end(&world);
    assert_int_equal(world.client.closed, 0); /* abandoned: no callback */
}

static bool server_paused(void *arg)
{
    return ((struct world *)arg)->server.got.len > 0;
}

static bool client_drained(void *arg)
{
    return ((struct world *)arg)->client.drained > 0;
}

static void backpressure(void **state)
{
    (void)state;
    struct world world;
    world_connect(&world);
    world.server.pause_on_data = true;
    static uint8_t block[128 * 1024];
    size_t total = 0;
    int rc = RC_OK;
    for (int i = 0; i < 1000 && rc == RC_OK; i++) { /* the kernel takes some megabytes */
        rc = stream_write(world.client.stream, block, sizeof(block));
        total += rc == RC_OK ? sizeof(block) : 0;
    }
    assert_int_equal(rc, RC_FULL);
    assert_true(stream_queued(world.client.stream) <= CAP);
    assert_true(stream_is_congested(world.client.stream));
    assert_int_equal(stream_write(world.client.stream, block, CAP + 1), RC_FULL);
    assert_true(loop_run_until(&world.loop, server_paused, &world, 10000));
    assert_int_equal(world.client.drained, 0);
    world.server.pause_on_data = false;
    stream_resume(world.server.stream);
    assert_true(loop_run_until(&world.loop, client_drained, &world, 10000));
    stream_finish(world.client.stream, 10000);
    assert_int_equal(stream_write(world.client.stream, block, 1), RC_CLOSED);
    assert_true(loop_run_until(&world.loop, both_closed, &world, 10000));
    assert_int_equal(world.server.got.len, total);
    assert_int_equal(world.client.reason, STREAM_FINISHED);
    assert_int_equal(world.server.reason, STREAM_EOF);
    assert_int_equal(world.client.drained, 1);
    world_end(&world);
}

static void close_within_data(void **state)
{
    (void)state;
    struct world world;
    world_connect(&world);
    world.server.close_on_data = true;
    assert_int_equal(stream_write(world.client.stream, "x", 1), RC_OK);
    assert_true(loop_run_until(&world.loop, both_closed, &world, 10000));
    assert_int_equal(world.server.reason, STREAM_LOCAL);
    assert_string_equal(world.server.text, stream_reason_text(STREAM_LOCAL));
    assert_int_equal(world.client.reason, STREAM_EOF);
    world_end(&world);
}

static void close_with_writes_in_flight(void **state)
{
    (void)state;
    struct world world;
    world_connect(&world);
    stream_pause(world.server.stream);
    static uint8_t block[CAP / 2];
    while (stream_queued(world.client.stream) == 0) {
        assert_int_equal(stream_write(world.client.stream, block, sizeof(block)), RC_OK);
    }
    stream_close(world.client.stream, STREAM_SHUTDOWN, "stopping");
    assert_int_equal(world.client.closed, 0); /* never from within */
    stream_resume(world.server.stream);
    assert_true(loop_run_until(&world.loop, both_closed, &world, 10000));
    assert_int_equal(world.client.closed, 1);
    assert_int_equal(world.client.reason, STREAM_SHUTDOWN);
    assert_string_equal(world.client.text, "stopping");
    world_end(&world);
}

static bool client_closed(void *arg)
{
    return ((struct world *)arg)->client.closed > 0;
}

static void refused(void **state)
{
    (void)state;
    struct world world;
    world_open(&world);
    listener_close(world.listener, NULL, NULL);
    world.listener = NULL;
    (void)uv_run(&world.loop, UV_RUN_NOWAIT);
    world.client.stream = stream_connect(&world.loop, &world.addr, &ops, &world.client);
    assert_int_equal(stream_write(world.client.stream, "x", 1), RC_OK); /* queued */
    assert_true(loop_run_until(&world.loop, client_closed, &world, 10000));
    assert_int_equal(world.client.reason, STREAM_CONNECT);
    char text[ADDR_TEXT_MAX];
    assert_non_null(strstr(world.client.text, addr_format(&world.addr, text)));
    assert_non_null(strstr(world.client.text, "refused"));
    assert_false(world.client.open);
    world_end(&world);
}

static void close_while_connecting(void **state)
{
    (void)state;
    struct world world;
    world_open(&world);
    world.client.stream = stream_connect(&world.loop, &world.addr, &ops, &world.client);
    stream_deadline(world.client.stream, 1000);
    stream_finish(world.client.stream, 1000);
    assert_true(loop_run_until(&world.loop, client_closed, &world, 10000));
    assert_int_equal(world.client.reason, STREAM_LOCAL);
    assert_false(world.client.open);
    world_end(&world);
}

static void deadline(void **state)
{
    (void)state;
    struct world world;
    world_connect(&world);
    stream_deadline(world.server.stream, 60000);
    stream_deadline(world.server.stream, 0); /* taken away */
    stream_deadline(world.client.stream, 60000);
    stream_deadline(world.client.stream, 1); /* replaced */
    assert_true(loop_run_until(&world.loop, both_closed, &world, 10000));
    assert_int_equal(world.client.reason, STREAM_DEADLINE);
    assert_int_equal(world.server.reason, STREAM_EOF);
    world_end(&world);
}

static bool server_closed(void *arg)
{
    return ((struct world *)arg)->server.closed > 0;
}

/* An answer sent while the other side still writes arrives whole, without a reset. */
static void finish_lingers(void **state)
{
    (void)state;
    struct world world;
    world_connect(&world);
    world.client.keep_on_eof = true;
    assert_int_equal(stream_write(world.server.stream, "answer", 6), RC_OK);
    stream_finish(world.server.stream, 10000);
    stream_finish(world.server.stream, 10000);
    static uint8_t block[65536];
    for (int i = 0; i < 64; i++) {
        int rc = stream_write(world.client.stream, block, sizeof(block));
        assert_true(rc == RC_OK || rc == RC_FULL);
        (void)uv_run(&world.loop, UV_RUN_NOWAIT);
    }
    assert_true(world.client.eof);
    assert_int_equal(world.client.got.len, 6);
    assert_int_equal(world.server.closed, 0);
    stream_finish(world.client.stream, 10000); /* input has ended: closes once flushed */
    assert_true(loop_run_until(&world.loop, both_closed, &world, 10000));
    assert_int_equal(world.server.reason, STREAM_FINISHED);
    assert_int_equal(world.client.reason, STREAM_FINISHED);
    world_end(&world);
}

static void finish_gives_up(void **state)
{
    (void)state;
    struct world world;
    world_connect(&world);
    stream_pause(world.client.stream); /* never ends its side */
    stream_finish(world.server.stream, 2);
    assert_true(loop_run_until(&world.loop, server_closed, &world, 10000));
    assert_int_equal(world.server.reason, STREAM_FINISHED);
    world_end(&world);
}

static void no_eof_callback(void **state)
{
    (void)state;
    struct world world;
    world_open(&world);
    world.client.stream = stream_connect(&world.loop, &world.addr, &ops_no_eof, &world.client);
    world.client.open = true;
    assert_true(loop_run_until(&world.loop, both_open, &world, 10000));
    stream_close(world.server.stream, STREAM_LOCAL, NULL);
    assert_true(loop_run_until(&world.loop, both_closed, &world, 10000));
    assert_int_equal(world.client.reason, STREAM_EOF);
    world_end(&world);
}

static void large_both_ways(void **state)
{
    (void)state;
    struct world world;
    world_connect(&world);
    static uint8_t block[65536];
    assert_int_equal(stream_write(world.client.stream, block, sizeof(block)), RC_OK);
    assert_int_equal(stream_write(world.server.stream, block, sizeof(block)), RC_OK);
    assert_true(loop_run_until(&world.loop, server_got_64k, &world, 10000));
    assert_true(loop_run_until(&world.loop, client_got_64k, &world, 10000));
    /* Both close in one turn. */
    stream_close(world.client.stream, STREAM_LOCAL, NULL);
    stream_close(world.server.stream, STREAM_LOCAL, NULL);
    assert_true(loop_run_until(&world.loop, both_closed, &world, 10000));
    world_end(&world);
    stream_abandon(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(echo),
        cmocka_unit_test(backpressure),
        cmocka_unit_test(close_within_data),
        cmocka_unit_test(close_with_writes_in_flight),
        cmocka_unit_test(refused),
        cmocka_unit_test(close_while_connecting),
        cmocka_unit_test(deadline),
        cmocka_unit_test(finish_lingers),
        cmocka_unit_test(finish_gives_up),
        cmocka_unit_test(no_eof_callback),
        cmocka_unit_test(large_both_ways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
