/*
 * The driver: datagrams in and out, the core's timer, start and stop. links.c has the streams.
 */
#include "gossip/net/gossip_net.h"

#include "gossip/net/net_impl.h"
#include "node/base/check.h"
#include "node/base/mem.h"
#include "node/base/timesrc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SENDERS_MAX = 2 * GOSSIP_MEMBERS_MAX,
    LISTENER_STREAMS_MAX = 160, /* above the limit of links, so that ending ones do not stall it */
};

struct gossip_now gossip_net_now(void)
{
    return (struct gossip_now){.mono_ms = time_mono_ms(), .wall_ms = time_wall_ms()};
}

/* ---- datagrams ---- */

static void on_emit(void *ctx, const struct addr *to, const uint8_t *bytes, size_t len)
{
    struct gossip_net *net = ctx;
    if (net->state == NET_RUNNING) {
        int rc = dgram_send(net->dgram, to, bytes, len);
        (void)rc; /* it may be lost like any other; the socket counts it */
    }
}

static void op_send(void *ctx, const struct addr *to, uint64_t to_id, const struct gossip_msg *msg)
{
    struct gossip_net *net = ctx;
    if (net->state != NET_RUNNING) {
        return;
    }
    buf_reset(&net->packet);
    if (codec_encode(msg, &net->packet) != RC_OK || net->packet.len == 0) {
        net->counters.unencodable++;
        uint32_t suppressed = 0;
        if (log_limit_pass(&net->log_size, 1, &suppressed)) {
            log_error("datagram does not fit", "parts=%zu", msg->part_count);
        }
        return;
    }
    seal_set_generation(net->seal, gossip_origin(net->core).generation);
    seal_send(net->seal, to, to_id, (const uint8_t *)net->packet.data, net->packet.len,
              time_mono_ms());
}

/* Both sides of two clusters that meet say why they do not understand each other. */
static void log_dropped(struct gossip_net *net, enum seal_result result, const struct addr *from,
                        const struct seal_opened *opened)
{
    char addr[ADDR_TEXT_MAX];
    uint32_t suppressed = 0;
    if (result == SEAL_UNKNOWN_KEY && log_limit_pass(&net->log_key, 1, &suppressed)) {
        log_warn("datagram refused: sealed with another cluster key",
                 "peer=%s key=%08" PRIx32 " ours=%s (%u more)", addr_format(from, addr),
                 opened->key_id, net->key_id, suppressed);
    } else if (result == SEAL_NOTICE && log_limit_pass(&net->log_notice, 1, &suppressed)) {
        log_warn("refused by a peer with another cluster key",
                 "peer=%s key=%08" PRIx32 " ours=%s (%u more)", addr_format(from, addr),
                 opened->key_id, net->key_id, suppressed);
    } else if (result == SEAL_SELF && log_limit_pass(&net->log_self, 1, &suppressed)) {
        log_warn("datagram under our own identity",
                 "peer=%s: does another node run on a copy of our data folder? (%u more)",
                 addr_format(from, addr), suppressed);
    }
}

static void on_datagram(void *owner, const struct addr *from, uint8_t *bytes, size_t len)
{
    struct gossip_net *net = owner;
    if (net->state != NET_RUNNING) {
        return;
    }
    if (net->test_drop_percent > 0 && rng_below(&net->test_rng, 100) < net->test_drop_percent) {
        net->counters.dropped_for_test++;
        return;
    }
    struct gossip_now now = gossip_net_now();
    struct seal_opened opened;
    enum seal_result result = seal_open(net->seal, from, bytes, len, now.mono_ms, &opened);
    if (result != SEAL_OK) {
        net->counters.dropped[result]++;
        log_dropped(net, result, from, &opened);
        return;
    }
    struct gossip_msg msg;
    if (codec_decode(opened.plain, opened.len, &net->scratch, &msg) != RC_OK) {
        net->counters.malformed++;
        return;
    }
    gossip_datagram(net->core, from, opened.from_id, &msg, now);
}

/* ---- time ---- */

static void on_timer(uv_timer_t *timer);

static void arm(struct gossip_net *net)
{
    if (net->state != NET_RUNNING) {
        return;
    }
    if (net->deadline_ms == UINT64_MAX) {
        (void)uv_timer_stop(&net->timer); /* always 0 */
        return;
    }
    uint64_t now_ms = time_mono_ms();
    uv_update_time(net->loop);
    ASSERT(uv_timer_start(&net->timer, on_timer,
                          net->deadline_ms > now_ms ? net->deadline_ms - now_ms : 0, 0) == 0);
}

static void op_schedule(void *ctx, uint64_t deadline_ms)
{
    struct gossip_net *net = ctx;
    net->deadline_ms = deadline_ms;
    arm(net);
}

static void on_timer(uv_timer_t *timer)
{
    struct gossip_net *net = timer->data;
    struct gossip_now now = gossip_net_now();
    if (now.mono_ms < net->deadline_ms) {
        arm(net); /* the loop's clock is coarser than ours */
        return;
    }
    /* What comes next is told by op_schedule, if at all other than this. */
    net->deadline_ms = UINT64_MAX;
    gossip_tick(net->core, now);
}

/* ---- the application's ops ---- */

static void op_persist(void *ctx, const struct gossip_batch *batch, uint64_t token)
{
    struct gossip_net *net = ctx;
    net->app_ops->persist(net->app_ctx, batch, token);
}

static void op_written(void *ctx, uint64_t write, int rc, uint64_t seq)
{
    struct gossip_net *net = ctx;
    net->app_ops->written(net->app_ctx, write, rc, seq);
}

static void op_applied(void *ctx, const struct row *row, const struct row *old)
{
    struct gossip_net *net = ctx;
    net->app_ops->applied(net->app_ctx, row, old);
}

static void op_event(void *ctx, enum gossip_event event, const struct gossip_member *member,
                     const char *text)
{
    struct gossip_net *net = ctx;
    net->app_ops->event(net->app_ctx, event, member, text);
}

static const struct gossip_ops driver_ops = {
    .send = op_send,
    .stream_open = link_op_open,
    .stream_send = link_op_send,
    .stream_close = link_op_close,
    .persist = op_persist,
    .written = op_written,
    .applied = op_applied,
    .event = op_event,
    .schedule = op_schedule,
};

/* ---- life ---- */

static int check_config(const struct gossip_net_config *config, struct err_info *err)
{
    char text[ADDR_TEXT_MAX];
    const struct addr *self = &config->self.addr;
    if (config->bind.sa.sa_family == AF_UNSPEC || addr_port(&config->bind) == 0) {
        return err_set(err, RC_INVALID, "cluster.bind %s: an address with a port is needed",
                       addr_format(&config->bind, text));
    }
    if (self->sa.sa_family == AF_UNSPEC || addr_port(self) == 0 || addr_is_any(self)) {
        return err_set(err, RC_INVALID,
                       "cluster.advertise %s: an address and port at which the other nodes reach "
                       "this one is needed",
                       addr_format(self, text));
    }
    return RC_OK;
}

/* SKEIN_TEST_GOSSIP_DROP: percentage of incoming datagrams to lose, for tests of whole nodes. */
static void set_up_test_drop(struct gossip_net *net)
{
    const char *text = getenv("SKEIN_TEST_GOSSIP_DROP");
    long percent = text != NULL ? strtol(text, NULL, 10) : 0;
    net->test_drop_percent = percent > 0 && percent <= 100 ? (uint32_t)percent : 0;
    rng_init(&net->test_rng, net->config.seed);
}

static void set_up_parts(struct gossip_net *net)
{
    const struct gossip_self *self = &net->config.self;
    cluster_keys_init(&net->keys, net->crypto, net->config.keys);
    net->config.keys = NULL; /* the caller's; all that is needed was derived */
    (void)snprintf(net->key_id, sizeof(net->key_id), "%08" PRIx32, net->keys.keys[0].id); /* fits */
    struct seal_config seal = {.crypto = net->crypto,
                               .keys = &net->keys,
                               .self_id = self->id,
                               .generation = self->generation,
                               .wall_ms = time_wall_ms(),
                               .senders_max = SENDERS_MAX,
                               .emit = on_emit,
                               .ctx = net};
    net->seal = seal_new(&seal);
    codec_scratch_init(&net->scratch);
    buf_init(&net->packet, SEAL_PLAIN_MAX);
    buf_init(&net->frame, CHANNEL_FRAME_BYTES + GOSSIP_STREAM_MSG_MAX);
    net->ops = driver_ops;
    net->core = gossip_new(self, &net->config.settings, &net->ops, net, net->config.seed);
}

int gossip_net_new(uv_loop_t *loop, const struct gossip_net_config *config,
                   const struct gossip_ops *app_ops, void *app_ctx, struct gossip_net **ret_net,
                   struct err_info *err)
{
    int rc = check_config(config, err);
    if (rc != RC_OK) {
        return rc;
    }
    struct gossip_net *net = mem_new(sizeof(*net));
    net->loop = loop;
    net->config = *config;
    net->config.join = config->join_count > 0
                           ? mem_dup(config->join, config->join_count * sizeof(struct addr))
                           : NULL;
    net->app_ops = app_ops;
    net->app_ctx = app_ctx;
    net->deadline_ms = UINT64_MAX;
    set_up_test_drop(net);
    rc = crypto_new(&net->crypto, err);
    if (rc == RC_OK) {
        net->env = (struct channel_env){.loop = loop,
                                        .crypto = net->crypto,
                                        .keys = &net->keys,
                                        .self_id = config->self.id,
                                        .ops = &link_channel_ops,
                                        .owner = net};
        rc = channel_env_init(&net->env, err);
    }
    if (rc != RC_OK) {
        gossip_net_free(net);
        return rc;
    }
    set_up_parts(net);
    *ret_net = net;
    return RC_OK;
}

struct gossip *gossip_net_core(struct gossip_net *net)
{
    return net->core;
}

int gossip_net_start(struct gossip_net *net, struct err_info *err)
{
    ASSERT(net->state == NET_NEW);
    net->state = NET_STOPPED; /* unless all of it succeeds */
    struct listener_config listener = {
        .streams_max = LISTENER_STREAMS_MAX, .on_accept = link_on_accept, .owner = net};
    struct dgram_config dgram = {
        .bytes_max = GOSSIP_DATAGRAM_MAX, .on_datagram = on_datagram, .owner = net};
    int rc = listener_open_tcp(net->loop, &net->config.bind, &listener, &net->listener, err);
    if (rc != RC_OK) {
        return rc;
    }
    rc = dgram_open(net->loop, &net->config.bind, &dgram, &net->dgram, err);
    if (rc != RC_OK) {
        listener_close(net->listener, NULL, NULL);
        net->listener = NULL;
        return rc;
    }
    ASSERT(uv_timer_init(net->loop, &net->timer) == 0);
    net->timer.data = net;
    net->open_parts = 3;
    net->state = NET_RUNNING;
    gossip_start(net->core, net->config.join, net->config.join_count, gossip_net_now());
    arm(net);
    return RC_OK;
}

void net_part_closed(struct gossip_net *net)
{
    ASSERT(net->open_parts > 0);
    net->open_parts--;
    if (net->open_parts == 0) {
        ASSERT(net->state == NET_STOPPING);
        net->state = NET_STOPPED;
        net->closed(net->closed_arg);
    }
}

static void on_part_closed(void *owner)
{
    net_part_closed(owner);
}

static void on_timer_closed(uv_handle_t *handle)
{
    net_part_closed(handle->data);
}

void gossip_net_stop(struct gossip_net *net, void (*closed)(void *arg), void *arg)
{
    ASSERT(net->state == NET_RUNNING);
    net->state = NET_STOPPING;
    net->closed = closed;
    net->closed_arg = arg;
    uv_close((uv_handle_t *)&net->timer, on_timer_closed);
    listener_close(net->listener, on_part_closed, net);
    net->listener = NULL;
    links_abort(net);
    /* Its counters are read no more; datagrams that wait are lost like any other. */
    dgram_close(net->dgram, on_part_closed, net);
    net->dgram = NULL;
}

void gossip_net_free(struct gossip_net *net)
{
    if (net == NULL) {
        return;
    }
    ASSERT(net->state == NET_NEW || net->state == NET_STOPPED);
    if (net->core != NULL) {
        gossip_free(net->core);
    }
    seal_free(net->seal);
    channel_env_deinit(&net->env);
    crypto_free(net->crypto);
    cluster_keys_wipe(&net->keys);
    codec_scratch_deinit(&net->scratch);
    buf_deinit(&net->packet);
    buf_deinit(&net->frame);
    mem_free(unconst(net->config.join));
    mem_free(net);
}

const char *gossip_net_key_id(const struct gossip_net *net)
{
    return net->key_id;
}
