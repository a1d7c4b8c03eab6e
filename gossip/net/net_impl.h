/*
 * The driver's state. For gossip/net only.
 */
#ifndef SKEIN_GOSSIP_NET_NET_IMPL_H
#define SKEIN_GOSSIP_NET_NET_IMPL_H

#include "gossip/net/channel.h"
#include "gossip/net/cluster_key.h"
#include "gossip/net/codec.h"
#include "gossip/net/gossip_net.h"
#include "gossip/net/seal.h"
#include "node/base/hashtable.h"
#include "node/base/log.h"
#include "node/base/rng.h"
#include "node/net/dgram.h"
#include "node/net/listener.h"

/* A channel and what the driver knows of it; every channel that is not gone has one. */
struct link {
    UT_hash_handle hh; /* of links, by no */
    uint64_t no;
    struct channel *channel;
    bool known; /* the core was told that it is open, or asked for it: it hears of the end */
};

enum net_state {
    NET_NEW = 0,
    NET_RUNNING,
    NET_STOPPING,
    NET_STOPPED, /* or start failed */
};

/* Counters beside those of the parts. */
struct net_counters {
    uint64_t dropped[SEAL_RESULT_COUNT]; /* incoming datagrams by what was wrong */
    uint64_t malformed;                  /* good seal, but no message of ours */
    uint64_t dropped_for_test;
    uint64_t unencodable; /* messages that did not fit: bugs */
    uint64_t channels_out;
    uint64_t channels_in;
    uint64_t channels_in_refused;        /* at the limit of connections */
    uint64_t ends[2][CHANNEL_END_COUNT]; /* outbound, inbound */
};

struct gossip_net {
    uv_loop_t *loop;
    struct gossip_net_config config; /* keys is NULL, join is our copy */
    const struct gossip_ops *app_ops;
    void *app_ctx;
    struct gossip_ops ops; /* what the core calls */

    struct crypto *crypto;
    struct cluster_keys keys;
    char key_id[12];
    struct seal *seal;
    struct channel_env env;
    struct gossip *core;

    enum net_state state;
    struct dgram *dgram;
    struct listener *listener;
    uv_timer_t timer;
    uint64_t deadline_ms; /* of the core; UINT64_MAX: none */
    unsigned open_parts;  /* dgram, listener, timer, and each link */
    void (*closed)(void *arg);
    void *closed_arg;

    struct link *links; /* uthash, oldest first */
    size_t links_in;
    uint64_t last_inbound; /* even numbers */

    struct codec_scratch scratch;
    struct buf packet; /* one encoded datagram */
    struct buf frame;  /* one encoded stream message with its length */
    struct rng test_rng;
    uint32_t test_drop_percent;
    struct net_counters counters;

    /* What a peer can make us say. */
    struct log_limit log_key;
    struct log_limit log_notice;
    struct log_limit log_self;
    struct log_limit log_channel;
    struct log_limit log_size;
};

/* ---- links.c ---- */

extern const struct channel_ops link_channel_ops;

/* Ops of the core; ctx is the driver. */
void link_op_open(void *ctx, uint64_t no, const struct addr *to, uint64_t to_id);
void link_op_send(void *ctx, uint64_t no, const struct gossip_msg *msg);
void link_op_close(void *ctx, uint64_t no);

/* The listener's. */
void link_on_accept(void *owner, struct stream *stream);

void links_abort(struct gossip_net *net);

/* ---- gossip_net.c ---- */

/* One handle or link less on the loop. */
void net_part_closed(struct gossip_net *net);

#endif
