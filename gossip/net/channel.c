/*
 * Channels: a stream, an engine, and the frames between them.
 *
 * An end is told in one of two ways. What is found while the loop delivers something (channel_fail)
 * is told at once. What is found within channel_send, which the core may have called, is told when
 * the stream has closed: `told` says whether that is still owed.
 */
#include "gossip/net/channel.h"

#include "gossip/net/bytes.h"
#include "gossip/net/channel_psk.h"
#include "node/base/check.h"
#include "node/base/mem.h"
#include "node/tls/tls_engine.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    HANDSHAKE_MS = 5000, /* connect and handshake together */
    IDLE_MS = 30000,     /* nothing came for so long; the core is done with a stream much earlier */
    LINGER_MS = 1000,    /* for the last bytes of an orderly end */
    WRITE_CAP = 8 << 20, /* four chunks in flight and the largest message, several times */
    CIPHER_CAP = 256 << 10,
    PLAIN_CAP = CHANNEL_FRAME_BYTES + GOSSIP_STREAM_MSG_MAX + (16 << 10),
    TEXT_MAX = 256,
};

struct channel {
    struct channel_env *env;
    uint64_t no;
    uint64_t peer_id; /* inbound: what the client claims, proved once open */
    bool inbound;
    bool open;  /* on_open was called */
    bool ended; /* nothing is delivered any more */
    bool told;  /* on_end was called, or is not wanted */
    struct addr addr;
    struct stream *stream; /* dead after on_closed */
    struct tls_engine *eng;
    struct buf plain; /* received: a part of a frame between calls */
    enum channel_end end;
    char text[TEXT_MAX];
};

static const char *const end_names[CHANNEL_END_COUNT] = {
    [CHANNEL_END_UNSET] = "none",          [CHANNEL_CLOSED] = "closed",
    [CHANNEL_PEER_CLOSED] = "peer_closed", [CHANNEL_UNREACHABLE] = "unreachable",
    [CHANNEL_OTHER_KEY] = "other_key",     [CHANNEL_OTHER_NODE] = "other_node",
    [CHANNEL_HANDSHAKE] = "handshake",     [CHANNEL_DEADLINE] = "deadline",
    [CHANNEL_PROTOCOL] = "protocol",       [CHANNEL_OVERFLOW] = "overflow",
};

const char *channel_end_name(enum channel_end end)
{
    return (unsigned)end < CHANNEL_END_COUNT ? end_names[end] : "?";
}

/* ---- keys ---- */

static void set_end(struct channel *channel, enum channel_end end, const char *text)
{
    if (channel->end == CHANNEL_END_UNSET) {
        channel->end = end;
        (void)snprintf(channel->text, sizeof(channel->text), "%s", text); /* cut text is text */
    }
}

static void on_offer(void *arg, struct tls_psk *ret_psk)
{
    struct channel *channel = arg;
    const struct channel_env *env = channel->env;
    const struct cluster_key *key = &env->keys->keys[0];
    struct psk_identity identity = {
        .key_id = key->id, .client = env->self_id, .server = channel->peer_id};
    char text[PSK_IDENTITY_LEN + 1];
    psk_identity_format(&identity, text);
    memcpy(ret_psk->identity, text, PSK_IDENTITY_LEN);
    ret_psk->identity_len = PSK_IDENTITY_LEN;
    cluster_key_pair(key, env->crypto, identity.client, identity.server, ret_psk->key);
}

static int on_find(void *arg, const uint8_t *text, size_t len, struct tls_psk *ret_psk)
{
    struct channel *channel = arg;
    const struct channel_env *env = channel->env;
    struct psk_identity identity;
    char why[TEXT_MAX];
    if (psk_identity_parse(text, len, &identity) != RC_OK) {
        set_end(channel, CHANNEL_HANDSHAKE, "it offers a key of a form that is not ours");
        return TLS_ALERT_UNKNOWN_KEY;
    }
    const struct cluster_key *key = cluster_key_find(env->keys, identity.key_id);
    if (key == NULL) {
        (void)snprintf(why, sizeof(why),
                       "it has another cluster key (%08" PRIx32 ", ours %08" PRIx32 ")",
                       identity.key_id, env->keys->keys[0].id); /* fits */
        set_end(channel, CHANNEL_OTHER_KEY, why);
        return TLS_ALERT_UNKNOWN_KEY;
    }
    if (identity.server != env->self_id || identity.client == env->self_id) {
        (void)snprintf(why, sizeof(why),
                       "node %016" PRIx64 " means node %016" PRIx64 ", this is %016" PRIx64,
                       identity.client, identity.server, env->self_id); /* fits */
        set_end(channel, CHANNEL_OTHER_NODE, why);
        return TLS_ALERT_ACCESS_DENIED;
    }
    channel->peer_id = identity.client;
    cluster_key_pair(key, env->crypto, identity.client, identity.server, ret_psk->key);
    return 0;
}

static const struct tls_psk_ops psk_ops = {.offer = on_offer, .find = on_find};

int channel_env_init(struct channel_env *env, struct err_info *err)
{
    buf_init(&env->cipher, CIPHER_CAP);
    return tls_ctx_new_psk(&psk_ops, &env->tls, err);
}

void channel_env_deinit(struct channel_env *env)
{
    buf_deinit(&env->cipher);
    tls_ctx_unref(env->tls);
    env->tls = NULL;
}

/* ---- end ---- */

/* Tell the owner, once. May lead to anything but the channel's death: that comes from the loop. */
static void tell_end(struct channel *channel)
{
    if (!channel->told) {
        channel->told = true;
        channel->env->ops->on_end(channel->env->owner, channel, channel->end, channel->text);
    }
}

/* Send what the engines' output holds. False: the channel has ended for it. */
static bool flush(struct channel *channel)
{
    struct buf *cipher = &channel->env->cipher;
    int rc = cipher->len > 0 ? stream_write(channel->stream, cipher->data, cipher->len) : RC_OK;
    buf_reset(cipher);
    if (rc == RC_FULL) {
        set_end(channel, CHANNEL_OVERFLOW, "it takes less than there is to send");
        channel->ended = true;
        stream_close(channel->stream, STREAM_LOCAL, NULL);
    }
    return rc == RC_OK;
}

/* Stop delivering; let last bytes (an alert, a close_notify) go out. */
static void wind_down(struct channel *channel)
{
    channel->ended = true;
    if (tls_engine_state(channel->eng) == TLS_OPEN || tls_engine_state(channel->eng) == TLS_ENDED) {
        tls_engine_end(channel->eng);
        (void)flush(channel); /* a channel that is over cannot end once more */
    }
    stream_finish(channel->stream, LINGER_MS);
}

static void channel_fail(struct channel *channel, enum channel_end end, const char *text)
{
    if (channel->ended) {
        return;
    }
    set_end(channel, end, text);
    wind_down(channel);
    tell_end(channel);
}

/* The engine FAILED: whose fault, in words. */
static void engine_failed(struct channel *channel)
{
    const char *error = tls_engine_error(channel->eng);
    char why[TEXT_MAX];
    (void)flush(channel); /* the alert */
    if (channel->open) {
        channel_fail(channel, CHANNEL_PROTOCOL, error);
        return;
    }
    if (channel->inbound) {
        channel_fail(channel, CHANNEL_HANDSHAKE, error); /* unless on_find knew better */
        return;
    }
    switch (tls_engine_peer_alert(channel->eng)) {
    case TLS_ALERT_UNKNOWN_KEY:
    case TLS_ALERT_DECRYPT_ERROR:
        (void)snprintf(why, sizeof(why),
                       "it refused: it has another cluster key than ours (%08" PRIx32 ")",
                       channel->env->keys->keys[0].id); /* fits */
        channel_fail(channel, CHANNEL_OTHER_KEY, why);
        return;
    case TLS_ALERT_ACCESS_DENIED:
        (void)snprintf(why, sizeof(why), "it refused: it is not node %016" PRIx64,
                       channel->peer_id); /* fits */
        channel_fail(channel, CHANNEL_OTHER_NODE, why);
        return;
    default:
        channel_fail(channel, CHANNEL_HANDSHAKE, error);
        return;
    }
}

/* ---- receiving ---- */

/* Deliver whole frames. False: the channel has ended. */
static bool deliver(struct channel *channel)
{
    struct buf *plain = &channel->plain;
    size_t at = 0;
    while (!channel->ended && plain->len - at >= CHANNEL_FRAME_BYTES) {
        const uint8_t *frame = (const uint8_t *)plain->data + at;
        size_t len = get_be32(frame);
        if (len == 0 || len > GOSSIP_STREAM_MSG_MAX) {
            channel_fail(channel, CHANNEL_PROTOCOL,
                         "it sent a frame of a length that is not allowed");
            return false;
        }
        if (plain->len - at - CHANNEL_FRAME_BYTES < len) {
            break;
        }
        at += CHANNEL_FRAME_BYTES + len;
        if (channel->env->ops->on_msg(channel->env->owner, channel, frame + CHANNEL_FRAME_BYTES,
                                      len) != RC_OK) {
            channel_fail(channel, CHANNEL_PROTOCOL, "it sent a malformed message");
        }
    }
    if (channel->ended) {
        return false;
    }
    buf_drop(plain, at);
    if (plain->len == 0) {
        buf_deinit(plain); /* an idle channel holds no buffer */
    }
    return true;
}

static void became_open(struct channel *channel)
{
    channel->open = true;
    channel->env->ops->on_open(channel->env->owner, channel);
}

static void on_data(void *owner, const uint8_t *bytes, size_t len)
{
    struct channel *channel = owner;
    int rc = RC_FULL;
    while (rc == RC_FULL && !channel->ended) {
        size_t used = 0;
        rc = tls_engine_feed(channel->eng, bytes, len, &used, &channel->plain);
        bytes += used;
        len -= used;
        if (rc == RC_PEER) {
            engine_failed(channel);
            return;
        }
        if (!flush(channel)) {
            break; /* the stream tells why when it has closed */
        }
        if (!channel->open && tls_engine_state(channel->eng) != TLS_HANDSHAKE) {
            became_open(channel);
        }
        if (channel->ended || !deliver(channel)) {
            return;
        }
    }
    if (channel->ended) {
        return;
    }
    if (rc == RC_CLOSED) {
        channel_fail(channel, CHANNEL_PEER_CLOSED, "closed by the peer");
        return;
    }
    if (channel->open) { /* the handshake's deadline stands, however slowly bytes trickle in */
        stream_deadline(channel->stream, IDLE_MS);
    }
}

static void on_connected(void *owner)
{
    struct channel *channel = owner;
    if (channel->ended) {
        return;
    }
    int rc = tls_engine_start(channel->eng);
    if (rc != RC_OK) {
        engine_failed(channel);
        return;
    }
    (void)flush(channel); /* if not, the stream tells why when it has closed */
}

/* What a stream's end means for a channel that did not end by itself. */
static enum channel_end end_of(const struct channel *channel, enum stream_reason reason)
{
    switch (reason) {
    case STREAM_CONNECT:
        return CHANNEL_UNREACHABLE;
    case STREAM_DEADLINE:
        return channel->open || channel->inbound ? CHANNEL_DEADLINE : CHANNEL_UNREACHABLE;
    case STREAM_EOF:
    case STREAM_RESET:
        return CHANNEL_PEER_CLOSED;
    case STREAM_REASON_UNSET:
    case STREAM_LOCAL:
    case STREAM_FINISHED:
    case STREAM_SHUTDOWN:
    case STREAM_REASON_COUNT:
        break;
    }
    return CHANNEL_CLOSED;
}

static void on_stream_closed(void *owner, enum stream_reason reason, const char *text)
{
    struct channel *channel = owner;
    channel->ended = true;
    channel->stream = NULL;
    set_end(channel, end_of(channel, reason), text);
    tell_end(channel);
    channel->env->ops->on_gone(channel->env->owner, channel);
    tls_engine_free(channel->eng);
    buf_deinit(&channel->plain);
    mem_free(channel);
}

static const struct stream_ops stream_ops = {
    .on_open = on_connected,
    .on_data = on_data,
    .on_closed = on_stream_closed,
    .write_cap_bytes = WRITE_CAP,
};

/* ---- life ---- */

static struct channel *channel_new(struct channel_env *env, uint64_t no, enum tls_role role)
{
    struct channel *channel = mem_new(sizeof(*channel));
    channel->env = env;
    channel->no = no;
    channel->inbound = role == TLS_SERVER;
    buf_init(&channel->plain, PLAIN_CAP);
    /* The number of channels is bounded by the core and the listener: not sized by a peer. */
    ASSERT(tls_engine_new(env->tls, role, &env->cipher, channel, &channel->eng) == RC_OK);
    return channel;
}

struct channel *channel_connect(struct channel_env *env, uint64_t no, const struct addr *to,
                                uint64_t peer_id)
{
    ASSERT(peer_id != 0);
    struct channel *channel = channel_new(env, no, TLS_CLIENT);
    channel->peer_id = peer_id;
    channel->addr = *to;
    channel->stream = stream_connect(env->loop, to, &stream_ops, channel);
    stream_deadline(channel->stream, HANDSHAKE_MS);
    return channel;
}

struct channel *channel_accept(struct channel_env *env, uint64_t no, struct stream *stream)
{
    struct channel *channel = channel_new(env, no, TLS_SERVER);
    channel->stream = stream;
    stream_adopt(stream, &stream_ops, channel);
    stream_peer_addr(stream, &channel->addr);
    stream_deadline(stream, HANDSHAKE_MS);
    return channel;
}

void channel_frame_begin(uint8_t out[CHANNEL_FRAME_BYTES], size_t len)
{
    ASSERT(len > 0 && len <= GOSSIP_STREAM_MSG_MAX);
    put_be32(out, (uint32_t)len);
}

void channel_send(struct channel *channel, const uint8_t *frame, size_t len)
{
    int rc = RC_FULL;
    while (rc == RC_FULL && !channel->ended) {
        size_t used = 0;
        rc = tls_engine_write(channel->eng, frame, len, &used);
        frame += used;
        len -= used;
        if (rc == RC_PEER || rc == RC_CLOSED) {
            buf_reset(&channel->env->cipher);
            set_end(channel, CHANNEL_PROTOCOL, "cannot be written to");
            channel->ended = true;
            stream_close(channel->stream, STREAM_LOCAL, NULL);
            return;
        }
        if (!flush(channel)) {
            return; /* told when the stream has closed */
        }
    }
}

void channel_close(struct channel *channel)
{
    channel->told = true;
    if (!channel->ended) {
        set_end(channel, CHANNEL_CLOSED, "closed");
        wind_down(channel);
    }
}

void channel_abort(struct channel *channel)
{
    channel->told = true;
    channel->ended = true;
    set_end(channel, CHANNEL_CLOSED, "closed");
    if (channel->stream != NULL) {
        stream_close(channel->stream, STREAM_SHUTDOWN, NULL);
    }
}

uint64_t channel_no(const struct channel *channel)
{
    return channel->no;
}

uint64_t channel_peer_id(const struct channel *channel)
{
    return channel->inbound && !channel->open ? 0 : channel->peer_id;
}

bool channel_is_inbound(const struct channel *channel)
{
    return channel->inbound;
}

bool channel_is_open(const struct channel *channel)
{
    return channel->open && !channel->ended;
}

bool channel_has_ended(const struct channel *channel)
{
    return channel->ended;
}

const struct addr *channel_addr(const struct channel *channel)
{
    return &channel->addr;
}
