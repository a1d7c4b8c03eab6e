/*
 * A stream of messages between two nodes: TLS 1.3 under their pairwise key over TCP, messages
 * framed by four bytes of length.
 *
 * Who opens it names a key, itself and the node that it means ("skein-1 key client server"); both
 * sides prove the key, so both ids are proved. Bounds: a message has at most GOSSIP_STREAM_MSG_MAX
 * bytes, what waits to be sent is capped (exceeding it ends the channel: the core asks for credit
 * and never needs that much), handshake and silence have deadlines.
 *
 *   CONNECTING/HANDSHAKE --> OPEN --> ENDED --> gone
 *
 * Callbacks come from the loop, never from within channel_send or channel_close.
 * Thread: the loop's. Source: clustering notes 7, RFC 8446, RFC 9257.
 */
#ifndef SKEIN_GOSSIP_NET_CHANNEL_H
#define SKEIN_GOSSIP_NET_CHANNEL_H

#include "gossip/core/gossip.h"
#include "gossip/net/cluster_key.h"
#include "node/base/buf.h"
#include "node/net/stream.h"
#include "node/tls/tls_ctx.h"

enum channel_end {
    CHANNEL_END_UNSET = 0,
    CHANNEL_CLOSED,      /* by channel_close */
    CHANNEL_PEER_CLOSED, /* in order, or cut */
    CHANNEL_UNREACHABLE, /* no connection */
    CHANNEL_OTHER_KEY,   /* one side has another cluster key */
    CHANNEL_OTHER_NODE,  /* the address is not (or no longer) the node that was meant */
    CHANNEL_HANDSHAKE,   /* TLS failed otherwise */
    CHANNEL_DEADLINE,    /* handshake too slow, or silent for too long */
    CHANNEL_PROTOCOL,    /* broken record, frame or message */
    CHANNEL_OVERFLOW,    /* the peer takes too little for what we have to send */
    CHANNEL_END_COUNT
};

/* "other_key", ...: the reason label of the counter. Static. */
const char *channel_end_name(enum channel_end end);

struct channel;

struct channel_ops {
    /* Both sides are proved: channel_peer_id says who. Once. */
    void (*on_open)(void *owner, struct channel *channel);

    /* One message, borrowed for the call. RC_PEER: it is malformed, the channel ends. */
    int (*on_msg)(void *owner, struct channel *channel, const uint8_t *bytes, size_t len);

    /* No on_open or on_msg any more. Once, unless channel_close came first; text says why. */
    void (*on_end)(void *owner, struct channel *channel, enum channel_end end, const char *text);

    /* The last call: the pointer is dead after it. Always. */
    void (*on_gone)(void *owner, struct channel *channel);
};

/* What all channels of a node share; outlives them. */
struct channel_env {
    uv_loop_t *loop;
    const struct crypto *crypto;
    const struct cluster_keys *keys;
    struct tls_ctx *tls;
    uint64_t self_id;
    struct buf cipher; /* output of all engines; empty between calls */
    const struct channel_ops *ops;
    void *owner;
};

/* RC_UNSUPPORTED: OpenSSL refused. Fill the rest of env first. */
MUST_CHECK int channel_env_init(struct channel_env *env, struct err_info *err);
void channel_env_deinit(struct channel_env *env);

/* Open a channel; trouble arrives as on_end. no: the owner's number. peer_id must not be 0. */
struct channel *channel_connect(struct channel_env *env, uint64_t no, const struct addr *to,
                                uint64_t peer_id);

/* Serve a stream that a listener handed out. */
struct channel *channel_accept(struct channel_env *env, uint64_t no, struct stream *stream);

/*
 * Send one frame: four bytes of length, as channel_frame_begin left them, then the message.
 * Ignored when the channel has ended. Exceeding the bound ends it (on_end comes from the loop).
 */
void channel_send(struct channel *channel, const uint8_t *frame, size_t len);

enum { CHANNEL_FRAME_BYTES = 4 };

/* Write the length of a message that follows. */
void channel_frame_begin(uint8_t out[CHANNEL_FRAME_BYTES], size_t len);

/* End it in order: what was sent still goes out. No callback but on_gone follows. Idempotent. */
void channel_close(struct channel *channel);

/* End it at once, likewise. */
void channel_abort(struct channel *channel);

uint64_t channel_no(const struct channel *channel);
uint64_t channel_peer_id(const struct channel *channel); /* 0: inbound and not proved yet */
bool channel_is_inbound(const struct channel *channel);
bool channel_is_open(const struct channel *channel); /* proved and not ended */
bool channel_has_ended(const struct channel *channel);
const struct addr *channel_addr(const struct channel *channel);

#endif
