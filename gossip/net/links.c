/*
 * Streams of the core as channels: numbers to channels, limits on what comes in, who is told what.
 */
#include "gossip/net/net_impl.h"

#include "node/base/check.h"
#include "node/base/mem.h"

#include <inttypes.h>

enum { LINKS_IN_MAX = 128 }; /* accepted connections, those in the handshake included */

static struct link *find_link(const struct gossip_net *net, uint64_t no)
{
    struct link *link = NULL;
    HASH_FIND(hh, net->links, &no, sizeof(no), link);
    return link;
}

static struct link *add_link(struct gossip_net *net, uint64_t no)
{
    struct link *link = mem_new(sizeof(*link));
    link->no = no;
    HASH_ADD(hh, net->links, no, sizeof(link->no), link);
    net->open_parts++;
    return link;
}

/* ---- the core's ops ---- */

void link_op_open(void *ctx, uint64_t no, const struct addr *to, uint64_t to_id)
{
    struct gossip_net *net = ctx;
    if (net->state != NET_RUNNING) {
        return;
    }
    ASSERT(no % 2 == 1 && find_link(net, no) == NULL);
    struct link *link = add_link(net, no);
    link->known = true;
    net->counters.channels_out++;
    link->channel = channel_connect(&net->env, no, to, to_id);
}

void link_op_send(void *ctx, uint64_t no, const struct gossip_msg *msg)
{
    struct gossip_net *net = ctx;
    struct link *link = net->state == NET_RUNNING ? find_link(net, no) : NULL;
    if (link == NULL || !channel_is_open(link->channel)) {
        return; /* the core hears of the end, or asked for it */
    }
    uint8_t head[CHANNEL_FRAME_BYTES] = {0};
    buf_reset(&net->frame);
    if (buf_put(&net->frame, head, sizeof(head)) != RC_OK ||
        codec_encode(msg, &net->frame) != RC_OK) {
        net->counters.unencodable++;
        log_error("message does not fit", "stream=%" PRIu64, no);
        return;
    }
    channel_frame_begin((uint8_t *)net->frame.data, net->frame.len - CHANNEL_FRAME_BYTES);
    channel_send(link->channel, (const uint8_t *)net->frame.data, net->frame.len);
}

void link_op_close(void *ctx, uint64_t no)
{
    struct gossip_net *net = ctx;
    struct link *link = find_link(net, no);
    if (link != NULL) {
        link->known = false;
        channel_close(link->channel);
    }
}

/* ---- what comes in ---- */

/* Make room by ending the oldest connection that has not proved who it is. */
static bool make_room(struct gossip_net *net)
{
    for (struct link *at = net->links; at != NULL; at = at->hh.next) {
        if (channel_is_inbound(at->channel) && !channel_is_open(at->channel) &&
            !channel_has_ended(at->channel)) {
            net->counters.ends[1][CHANNEL_DEADLINE]++;
            channel_abort(at->channel);
            return true;
        }
    }
    return false;
}

void link_on_accept(void *owner, struct stream *stream)
{
    struct gossip_net *net = owner;
    if (net->state != NET_RUNNING || (net->links_in >= LINKS_IN_MAX && !make_room(net))) {
        net->counters.channels_in_refused++;
        stream_abandon(stream);
        return;
    }
    net->last_inbound += 2;
    struct link *link = add_link(net, net->last_inbound);
    net->links_in++;
    net->counters.channels_in++;
    link->channel = channel_accept(&net->env, link->no, stream);
}

/* ---- channels ---- */

static void on_open(void *owner, struct channel *channel)
{
    struct gossip_net *net = owner;
    struct link *link = find_link(net, channel_no(channel));
    if (net->state != NET_RUNNING) {
        return;
    }
    link->known = true;
    gossip_stream_opened(net->core, link->no, channel_peer_id(channel), channel_is_inbound(channel),
                         gossip_net_now());
}

static int on_msg(void *owner, struct channel *channel, const uint8_t *bytes, size_t len)
{
    struct gossip_net *net = owner;
    if (net->state != NET_RUNNING) {
        return RC_OK;
    }
    struct gossip_msg msg;
    if (codec_decode(bytes, len, &net->scratch, &msg) != RC_OK) {
        net->counters.malformed++;
        return RC_PEER;
    }
    gossip_stream_msg(net->core, channel_no(channel), &msg, gossip_net_now());
    return RC_OK;
}

static bool is_worth_a_warning(enum channel_end end)
{
    return end == CHANNEL_OTHER_KEY || end == CHANNEL_OTHER_NODE || end == CHANNEL_HANDSHAKE ||
           end == CHANNEL_PROTOCOL || end == CHANNEL_OVERFLOW;
}

static void log_end(struct gossip_net *net, const struct channel *channel, enum channel_end end,
                    const char *text)
{
    char addr[ADDR_TEXT_MAX];
    addr_format(channel_addr(channel), addr);
    const char *dir = channel_is_inbound(channel) ? "inbound" : "outbound";
    if (!is_worth_a_warning(end)) {
        log_debug("peer stream ended", "peer=%s %s reason=%s: %s", addr, dir, channel_end_name(end),
                  text);
        return;
    }
    uint32_t suppressed = 0;
    if (log_limit_pass(&net->log_channel, 5, &suppressed)) {
        log_warn(channel_is_inbound(channel) ? "peer refused" : "refused by peer",
                 "peer=%s %s reason=%s: %s (%u more)", addr, dir, channel_end_name(end), text,
                 suppressed);
    }
}

static void on_end(void *owner, struct channel *channel, enum channel_end end, const char *text)
{
    struct gossip_net *net = owner;
    struct link *link = find_link(net, channel_no(channel));
    net->counters.ends[channel_is_inbound(channel)][end]++;
    log_end(net, channel, end, text);
    if (link->known && net->state == NET_RUNNING) {
        link->known = false;
        gossip_stream_closed(net->core, link->no, gossip_net_now());
    }
}

static void on_gone(void *owner, struct channel *channel)
{
    struct gossip_net *net = owner;
    struct link *link = find_link(net, channel_no(channel));
    if (channel_is_inbound(channel)) {
        net->links_in--;
    }
    HASH_DEL(net->links, link);
    mem_free(link);
    net_part_closed(net);
}

const struct channel_ops link_channel_ops = {
    .on_open = on_open, .on_msg = on_msg, .on_end = on_end, .on_gone = on_gone};

void links_abort(struct gossip_net *net)
{
    for (struct link *at = net->links; at != NULL; at = at->hh.next) {
        channel_abort(at->channel);
    }
}
