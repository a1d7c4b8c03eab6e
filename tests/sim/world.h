/*
 * A small world for many cores: virtual time, a hostile network, disks, crashes; all from one seed.
 *
 * One queue of events ordered by (time, number). Datagrams are lost, doubled, delayed and so
 * reordered; streams keep order, stall with loss and break now and then; every message goes through
 * the real codec. A crash loses memory and what the disk has not committed. Nothing depends on
 * addresses or on real time, so a seed and its options replay exactly.
 */
#ifndef SKEIN_TESTS_SIM_WORLD_H
#define SKEIN_TESTS_SIM_WORLD_H

#include "gossip/core/message.h"
#include "gossip/net/codec.h"
#include "node/base/rng.h"
#include "tests/sim/disk.h"
#include "tests/sim/oracle.h"

enum {
    SIM_NODES_MAX = 128,
    SIM_SPREAD_MS = 10,        /* one step of the histogram */
    SIM_SPREAD_FROM_MS = 5000, /* by then all have started */
    SIM_SPREAD_STEPS = 1000,   /* the last one: that or longer */
};

struct sim_options {
    uint64_t seed;
    size_t nodes;
    double loss;         /* of datagrams, all the time */
    double faults;       /* crashes, partitions and the like per second and 5 nodes */
    uint32_t keys;       /* that clients write to */
    uint32_t writes;     /* per second, all nodes together */
    uint64_t hostile_ms; /* how long faults and writes go on */
    uint64_t settle_ms;  /* how long the cluster may take to agree afterwards */
    bool plain;          /* only writes that fit a datagram */
    bool verbose;
};

struct sim_result {
    bool ok;
    char fault[512];
    uint64_t trace;      /* hash of everything that happened */
    uint64_t settled_ms; /* from the end of faults to agreement */
    uint64_t datagrams;
    uint64_t acknowledged;
    uint64_t refused;
    uint64_t crashes;
    uint64_t cuts;         /* sessions that broke */
    uint64_t syncs;        /* sessions that completed */
    uint64_t repairs;      /* by audit */
    uint64_t generations;  /* begun */
    uint64_t false_deaths; /* living members declared dead */
    /* Without faults: from durable at the origin to held by every node. */
    uint32_t spread[SIM_SPREAD_STEPS];
};

void sim_run(const struct sim_options *options, struct sim_result *ret_result);

/* ---- inside ---- */

enum event_kind {
    EVENT_TICK = 1,
    EVENT_DATAGRAM,
    EVENT_ACCEPT, /* a stream reaches its other end */
    EVENT_OPENED, /* and is known to be open at ours */
    EVENT_DATA,
    EVENT_CLOSED,
    EVENT_DISK,
    EVENT_CLIENT,
    EVENT_FAULT,
    EVENT_RESTART, /* a node that is down */
    EVENT_STOP,    /* a node that has left */
    EVENT_MEND,    /* a network cut ends */
    EVENT_CHECK,
    EVENT_HEAL, /* all faults end */
};

struct link;

struct event {
    uint64_t at;
    uint64_t no;
    enum event_kind kind;
    uint32_t epoch; /* of the node; other epochs ignore it */
    size_t node;
    size_t from;
    uint64_t id; /* DATAGRAM: sender, to_id; MEND: number of the cut */
    uint64_t to_id;
    struct link *link;
    unsigned side;  /* of the link that the event reaches */
    uint8_t *bytes; /* owned */
    size_t len;
};

struct link {
    struct link *prev;
    struct link *next;
    struct {
        size_t node;
        uint32_t epoch;
        uint64_t stream;
        uint64_t last_at; /* data towards this side keeps order */
        bool open;
    } side[2]; /* 0: opener */
    uint64_t to_id;
    size_t refs; /* events in the queue */
    bool broken;
};

struct disk_op {
    struct disk_op *prev;
    struct disk_op *next;
    struct disk_batch *batch;
    uint64_t token;
};

struct node {
    struct world *world;
    size_t slot;
    char name[16];
    struct addr addr;
    struct gossip *core; /* NULL: down */
    uint32_t epoch;
    bool gone; /* for good */
    bool leaving;
    uint64_t paused_until;
    uint64_t tick_at;
    uint64_t next_stream; /* inbound numbers */
    int64_t clock_ms;     /* its wall clock minus the true one */
    struct disk disk;
    struct disk backup;
    bool has_backup;
    struct disk_op *ops; /* not committed yet */
    uint64_t disk_free_at;
    uint64_t disk_slow_until;
    uint64_t disk_full_until;
};

struct world {
    struct sim_options options;
    struct sim_result *result;
    struct rng rng;
    uint64_t now;
    uint64_t last_no;
    struct event **heap; /* owned array of owned events */
    size_t heap_count;
    size_t heap_size;
    struct node nodes[SIM_NODES_MAX];
    bool cut[SIM_NODES_MAX][SIM_NODES_MAX]; /* from, to */
    uint64_t cut_no;                        /* the present cut */
    struct link *links;
    struct codec_scratch scratch;
    struct buf out;
    struct oracle oracle;
    bool calm; /* faults are over */
    uint64_t heal_at;
    uint64_t last_id; /* identities given */
};

struct gossip_now node_now(const struct node *node);

/* events.c */
struct event *world_push(struct world *world, uint64_t at, enum event_kind kind);
struct event *world_pop(struct world *world);
void world_clear(struct world *world);

/* net.c */
uint64_t net_delay(struct world *world);
void net_send(void *ctx, const struct addr *to, uint64_t to_id, const struct gossip_msg *msg);
void net_stream_open(void *ctx, uint64_t stream, const struct addr *to, uint64_t to_id);
void net_stream_send(void *ctx, uint64_t stream, const struct gossip_msg *msg);
void net_stream_close(void *ctx, uint64_t stream);
void net_event(struct world *world, struct event *event);
void net_node_died(struct world *world, const struct node *node);
void net_link_unref(struct world *world, struct link *link);

/* node.c */
void node_start(struct node *node);
void node_crash(struct node *node, bool lose_disk);
void node_disk_event(struct node *node);
void node_require_held(struct world *world);

/* faults.c */
void fault_strike(struct world *world);
void fault_client(struct world *world);

#endif
