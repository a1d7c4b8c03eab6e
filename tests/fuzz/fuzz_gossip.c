/* unit: gossip_net */
/*
 * What a peer with the key may say: bytes through the codec into a running core.
 *
 * The input is a script of steps (op, length, bytes): datagrams, streams that open, speak and
 * close, time that passes, a disk that answers or fails. Whatever the core says in return must
 * encode within its bounds and be understood again; no step may break an invariant.
 */
#include "gossip/core/core.h"
#include "gossip/net/codec.h"
#include "node/base/check.h"
#include "node/base/mem.h"

#include <string.h>

enum {
    STEPS_MAX = 64,
    TOKENS_MAX = 4096,
    SELF = 1000,
};

enum op {
    OP_DATAGRAM = 0,
    OP_STREAM_OPEN,
    OP_STREAM_MSG,
    OP_STREAM_CLOSE,
    OP_OPENED, /* one that the core opened */
    OP_PASS,
    OP_DISK,
    OP_DISK_FAILS,
    OP_WRITE,
    OP_COUNT,
};

struct world {
    struct gossip *core;
    struct gossip_now now;
    struct codec_scratch in;
    struct codec_scratch back;
    uint64_t deadline_ms;
    uint64_t tokens[TOKENS_MAX];
    size_t token_count;
    uint64_t opened; /* last stream that the core opened */
    uint64_t opened_to;
    bool inbound[256]; /* even numbers in use, halved */
};

static void check_said(struct world *world, const struct gossip_msg *msg, size_t cap)
{
    struct buf out;
    buf_init(&out, cap);
    int rc = codec_encode(msg, &out);
    ASSERT(rc == RC_OK && out.len <= msg_size(msg));
    struct gossip_msg back;
    rc = codec_decode((const uint8_t *)out.data, out.len, &world->back, &back);
    ASSERT(rc == RC_OK && back.part_count == msg->part_count);
    buf_deinit(&out);
}

static void on_send(void *ctx, const struct addr *to, uint64_t to_id, const struct gossip_msg *msg)
{
    (void)to;
    (void)to_id;
    check_said(ctx, msg, GOSSIP_DATAGRAM_MAX - GOSSIP_SEAL_MAX);
}

static void on_stream_open(void *ctx, uint64_t stream, const struct addr *to, uint64_t to_id)
{
    struct world *world = ctx;
    (void)to;
    ASSERT(stream % 2 == 1);
    world->opened = stream;
    world->opened_to = to_id;
}

static void on_stream_send(void *ctx, uint64_t stream, const struct gossip_msg *msg)
{
    (void)stream;
    check_said(ctx, msg, GOSSIP_STREAM_MSG_MAX);
}

static void on_stream_close(void *ctx, uint64_t stream)
{
    struct world *world = ctx;
    if (stream % 2 == 0) {
        ASSERT(world->inbound[stream / 2]);
        world->inbound[stream / 2] = false;
    }
}

static void on_persist(void *ctx, const struct gossip_batch *batch, uint64_t token)
{
    struct world *world = ctx;
    for (size_t i = 0; i < batch->row_count; i++) {
        ASSERT(row_check(batch->rows[i], NULL) == RC_OK);
    }
    ASSERT(world->token_count < TOKENS_MAX);
    world->tokens[world->token_count++] = token;
}

static void on_written(void *ctx, uint64_t write, int rc, uint64_t seq)
{
    (void)ctx;
    (void)write;
    (void)rc;
    (void)seq;
}

static void on_applied(void *ctx, const struct row *row, const struct row *old)
{
    (void)ctx;
    ASSERT(row_check(row, NULL) == RC_OK);
    ASSERT(old == NULL || row_compare(row, old) > 0);
}

static void on_event(void *ctx, enum gossip_event event, const struct gossip_member *member,
                     const char *text)
{
    (void)ctx;
    (void)event;
    (void)member;
    ASSERT(strlen(text) < 256);
}

static void on_schedule(void *ctx, uint64_t deadline_ms)
{
    ((struct world *)ctx)->deadline_ms = deadline_ms;
}

static const struct gossip_ops ops = {
    .send = on_send,
    .stream_open = on_stream_open,
    .stream_send = on_stream_send,
    .stream_close = on_stream_close,
    .persist = on_persist,
    .written = on_written,
    .applied = on_applied,
    .event = on_event,
    .schedule = on_schedule,
};

static void disk(struct world *world, int rc)
{
    while (world->token_count != 0) {
        uint64_t token = world->tokens[0];
        world->token_count--;
        memmove(world->tokens, world->tokens + 1, world->token_count * sizeof(uint64_t));
        gossip_persisted(world->core, token, rc, world->now);
        if (rc != RC_OK) {
            break; /* or it would fail and retry for ever */
        }
    }
}

static void pass(struct world *world, uint64_t ms)
{
    uint64_t end = world->now.mono_ms + ms;
    int turns = 0;
    while (world->deadline_ms <= end) {
        ASSERT(++turns < 10000); /* the core spins */
        uint64_t step = MAX(world->deadline_ms, world->now.mono_ms) - world->now.mono_ms;
        world->now.mono_ms += step;
        world->now.wall_ms += step;
        world->deadline_ms = NEVER;
        gossip_tick(world->core, world->now);
        disk(world, RC_OK);
    }
    world->now.wall_ms += end - world->now.mono_ms;
    world->now.mono_ms = end;
}

static void datagram(struct world *world, const uint8_t *bytes, size_t len)
{
    struct gossip_msg msg;
    if (codec_decode(bytes, len, &world->in, &msg) == RC_OK) {
        struct addr from = {.in4 = {.sin_family = AF_INET, .sin_port = htons(7946)}};
        gossip_datagram(world->core, &from, msg.sender != NULL ? msg.sender->id : 1, &msg,
                        world->now);
    }
}

static void stream_step(struct world *world, enum op op, const uint8_t *bytes, size_t len)
{
    uint64_t half = len != 0 ? bytes[0] : 0;
    uint64_t stream = half * 2;
    struct gossip_msg msg;
    if (op == OP_STREAM_OPEN && half != 0 && !world->inbound[half]) {
        world->inbound[half] = true;
        gossip_stream_opened(world->core, stream, 1 + half % 8, true, world->now);
    } else if (op == OP_STREAM_CLOSE && world->inbound[half]) {
        world->inbound[half] = false;
        gossip_stream_closed(world->core, stream, world->now);
    } else if (op == OP_OPENED && world->opened != 0) {
        gossip_stream_opened(world->core, world->opened, world->opened_to, false, world->now);
    } else if (op == OP_STREAM_MSG && len > 1 &&
               codec_decode(bytes + 1, len - 1, &world->in, &msg) == RC_OK) {
        gossip_stream_msg(world->core, half == 0 ? world->opened : stream, &msg, world->now);
    }
}

static void write_something(struct world *world, const uint8_t *bytes, size_t len)
{
    struct gossip_change change = {
        .kind = 1,
        .flags = len % 3 == 0 ? ROW_TOMBSTONE : 0,
        .id = "shop/checkout",
        .id_len = 13,
        .value = bytes,
        .value_len = len,
    };
    uint64_t write = 0;
    struct err_info err = {.text = ""};
    int rc = gossip_write(world->core, &change, 1, world->now, &write, &err);
    ASSERT(rc == RC_OK || err.text[0] != '\0'); /* refused with a reason */
}

static void step(struct world *world, enum op op, const uint8_t *bytes, size_t len)
{
    switch (op) {
    case OP_DATAGRAM:
        datagram(world, bytes, len);
        break;
    case OP_STREAM_OPEN:
    case OP_STREAM_MSG:
    case OP_STREAM_CLOSE:
    case OP_OPENED:
        stream_step(world, op, bytes, len);
        break;
    case OP_PASS:
        pass(world, len != 0 ? 20U * bytes[0] : 1);
        break;
    case OP_DISK:
        disk(world, RC_OK);
        break;
    case OP_DISK_FAILS:
        disk(world, RC_NO_SPACE);
        break;
    case OP_WRITE:
        write_something(world, bytes, len);
        break;
    case OP_COUNT:
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct world *world = mem_new(sizeof(*world));
    world->now = (struct gossip_now){.mono_ms = 1000, .wall_ms = 1700000000000U};
    world->deadline_ms = NEVER;
    codec_scratch_init(&world->in);
    codec_scratch_init(&world->back);
    struct gossip_self self = {
        .id = SELF,
        .generation = 1,
        .name = "self",
        .addr = {.in4 = {.sin_family = AF_INET, .sin_port = htons(7946)}},
    };
    struct gossip_settings settings = {0};
    world->core = gossip_new(&self, &settings, &ops, world, 1);
    gossip_start(world->core, NULL, 0, world->now);

    for (int steps = 0; len >= 3 && steps < STEPS_MAX; steps++) {
        enum op op = (enum op)(bytes[0] % OP_COUNT);
        size_t want = (size_t)bytes[1] << 8 | bytes[2];
        size_t take = MIN(want, len - 3);
        step(world, op, bytes + 3, take);
        bytes += 3 + take;
        len -= 3 + take;
    }
    pass(world, 3000);
    gossip_free(world->core);
    codec_scratch_deinit(&world->in);
    codec_scratch_deinit(&world->back);
    mem_free(world);
    return 0;
}
