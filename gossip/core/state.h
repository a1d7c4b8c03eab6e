/*
 * Everything a core knows, as plain structs. Private to gossip/core and its tests; core.h has what
 * the files do with it.
 */
#ifndef SKEIN_GOSSIP_CORE_STATE_H
#define SKEIN_GOSSIP_CORE_STATE_H

#include "gossip/core/counters.h"
#include "gossip/core/gossip.h"
#include "gossip/core/kv.h"
#include "gossip/core/message.h"
#include "gossip/core/mutant.h"
#include "node/base/rng.h"

enum {
    DATAGRAM_ROOM = GOSSIP_DATAGRAM_MAX - GOSSIP_SEAL_MAX,
    BUNDLE_PARTS_MAX = 48,
    JOIN_MAX = 64, /* addresses to ask */
    PULL_ROUNDS = 3,
    RUMOURS_MAX = 1024,   /* change-sets on their way; the oldest goes first, sync covers it */
    RELAYS_MAX = 256,     /* probes passed on for others */
    RELAY_COUNT = 3,      /* members asked to probe for us */
    FORGOTTEN_MAX = 1024, /* ids that an operator removed */
    SYNCS_IN_MAX = 8,     /* sessions that others opened */
    SYNCS_OUT_MAX = 4,
    STREAMS_MAX = 64,  /* all inbound streams, fallback probes included */
    SYNC_CREDIT = 4,   /* chunks in flight */
    WRITES_MAX = 4096, /* local writes waiting for the disk */
    CONFIRM_MAX = 8,   /* accusers remembered per suspicion */
    HEALTH_MAX = 8,
    INCARNATION_STEP = 1000,
    RETRY_MAX_MS = 60000,   /* between attempts to reach a dead member */
    STREAM_WAIT_MS = 10000, /* longest silence on a stream */
    LEAVE_MS = 3000,
    FRONTIER_WAIT_MS = 3000, /* how long a node that restarts asks what is known of its writes */
    HLC_AHEAD_MAX_MS = 10000,
    AUDIT_MS = 5000,  /* equal frontiers with different rows for so long is a fault */
    ACK_GAP_MS = 100, /* between two acknowledgements to one origin */
};

#define NEVER UINT64_MAX

/* ---- members (member.c, suspect.c) ---- */

struct member {
    UT_hash_handle hh;
    struct gossip_member pub;
    uint64_t accuser;
    bool dirty;       /* waits to be persisted */
    bool told;        /* said what it has of our writes, since we started */
    bool loaded_dead; /* was dead on disk */
    bool loaded;      /* known from disk when we started */
    bool rumoured;    /* a fact about it is in the queue of rumours */
    uint32_t rumour_sends;
    uint64_t rumour_no; /* order among facts: larger is newer */

    /* suspicion: suspect.c */
    uint64_t suspect_since_ms;
    uint64_t suspect_deadline_ms;
    uint64_t accusers[CONFIRM_MAX];
    uint32_t accuser_count;

    /* dead: next attempt and how long to wait after it */
    uint64_t retry_ms;
    uint32_t retry_wait_ms;

    uint64_t accused_ms; /* when we last answered it, or for it, with an accusation */

    /* last probe sent to it, for whatever reason */
    uint64_t probe_nonce;
    uint64_t probe_sent_ms;

    /* sync */
    uint64_t differ_since_ms;         /* frontiers differ all the time since; 0: no */
    uint64_t differ_at_ms;            /* when it last said so */
    uint64_t members_differ_since_ms; /* 0: no */
    uint64_t audit_since_ms;          /* equal frontiers, different rows; 0: no */
    uint64_t sync_after_ms;           /* no new session before */
    bool pull;                        /* it asked to be fetched from */
    uint64_t sync_stream;             /* session with it; 0: none */

    uint64_t resent_ms; /* our own change-sets, to it alone */
    bool ack_due;
    uint64_t ack_sent_ms;

    bool clock_flagged;
    bool name_flagged;
    uint64_t offset_rtt_ms; /* round trip of the sample that clock_offset_ms came from */
    uint64_t offset_at_ms;  /* 0: none yet */
};

struct forgotten {
    uint64_t id;
    uint32_t generation;
    uint64_t incarnation;
    uint32_t rumour_sends;
};

/* ---- probes (probe.c) ---- */

struct probe {
    uint64_t target; /* 0: none running */
    uint64_t nonce;
    uint64_t started_ms;
    uint64_t relay_ms; /* when to ask others; NEVER: done */
    uint32_t misses_due;
    uint32_t misses;
    uint64_t stream; /* fallback; 0: none */
    uint64_t stream_sent_ms;
    bool acked;
};

struct relay {
    uint64_t nonce; /* ours, towards the subject; 0: slot is free */
    uint64_t asker;
    uint64_t asker_nonce;
    uint64_t miss_ms;
    uint64_t end_ms;
    struct addr asker_addr;
};

/* ---- rumours (rumour.c) ---- */

struct rumour {
    struct rumour *prev;
    struct rumour *next;
    bool local;
    uint32_t sends;
    uint64_t born_ms;
    uint64_t round_no;       /* it went out in last */
    struct gossip_part part; /* change-set; rows are owned copies */
};

/* ---- local writes (write.c) ---- */

/* A key with a local write that is not durable yet. */
struct pending_key {
    UT_hash_handle hh;
    uint64_t token; /* of the write */
    uint8_t key[];  /* kind (2 bytes) and id */
};

struct write {
    struct write *prev;
    struct write *next;
    uint64_t token;
    struct origin origin;
    uint64_t last_seq;
    struct row **rows; /* owned */
    size_t row_count;
    size_t bytes;
    struct pending_key **keys; /* owned array of owned keys, one per row */
};

enum write_gate {
    GATE_OPEN = 0,
    GATE_ASKING,  /* peers have yet to say what they have of our writes */
    GATE_BUMPING, /* a new generation is on its way to the disk */
};

/* ---- streams (sync.c, audit.c, probe.c) ---- */

struct sync_range {
    struct kv_origin *origin;
    uint64_t seq; /* cursor: last entry sent */
    uint64_t tie;
    uint64_t target; /* what the mark says */
};

enum stream_use {
    STREAM_UNKNOWN = 0, /* inbound, nothing said yet */
    STREAM_PROBE,
    STREAM_SYNC,
    STREAM_AUDIT,
};

struct stream {
    UT_hash_handle hh;
    uint64_t no;
    uint64_t peer;
    bool inbound;
    enum stream_use use;
    uint64_t deadline_ms;

    bool open_sent; /* our first message went out */
    bool opened;    /* the peer's SYNC_OPEN came */
    bool complete;
    bool planned; /* the peer's open came and what to send is known */
    bool end_sent;
    bool end_got;
    bool done_got;
    bool pulled;               /* the peer said that it has what no datagram carries */
    bool bulk;                 /* and we got it: others need telling too */
    uint32_t credit;           /* chunks we may send */
    uint32_t owed;             /* chunks we may grant again */
    struct sync_range *ranges; /* owned */
    size_t range_count;
    size_t range_next; /* round-robin */

    struct kv_entry **entries; /* audit: owned array of rows to send */
    size_t entry_count;
    size_t entry_next;
    uint32_t repairs;
};

/* ---- all of it ---- */

struct gossip {
    const struct gossip_ops *ops;
    void *ctx;
    struct gossip_settings settings;
    struct gossip_now now;
    struct rng rng;
    bool started;
    uint64_t deadline_ms;      /* when gossip_tick has work */
    uint64_t told_deadline_ms; /* what ops.schedule was told last */
    uint64_t last_token;
    struct gossip_counter counters[COUNTERS_COUNT];

    /* members; members[0] is us, the rest in order of ids */
    struct member *self;
    struct member *by_id;
    struct member **members;
    size_t member_count;
    size_t member_size;
    uint64_t incarnation_limit; /* on disk, or on its way there */
    bool limit_dirty;
    bool leaving;
    bool members_dirty;
    uint64_t leave_end_ms;
    bool member_hash_stale;
    uint64_t member_hash;
    struct forgotten forgotten[FORGOTTEN_MAX];
    size_t forgotten_count;
    uint64_t forgets_dirty[FORGOTTEN_MAX];
    size_t forgets_dirty_count;

    /* joining */
    struct addr join[JOIN_MAX];
    size_t join_count;
    bool join_answered[JOIN_MAX]; /* since we were last alone */
    uint64_t join_ms;
    uint32_t join_wait_ms;
    uint64_t join_nonce;
    uint64_t join_sent_ms;

    /* probing */
    struct probe probe;
    uint64_t probe_next_ms;
    uint64_t *probe_order; /* owned: ids, shuffled */
    size_t probe_order_count;
    size_t probe_order_next;
    uint32_t health;
    struct relay relays[RELAYS_MAX];
    size_t relay_next;
    size_t relay_count; /* slots in use, at most */

    /* spreading */
    struct rumour *local_rumours;
    struct rumour *other_rumours;
    size_t rumour_count;
    uint64_t fact_no;
    size_t fact_rumours; /* members with `rumoured` */
    uint64_t gossip_next_ms;
    uint32_t pull_rounds; /* how often yet to tell some peers to fetch from us */
    uint64_t round_no;    /* of sending to one peer */
    bool acks_due;
    uint64_t acks_ms; /* not before */

    /* table */
    struct kv kv;
    uint64_t hlc;
    uint64_t warned_hlc_ms;
    int64_t wall_minus_mono; /* of the last event; a jump is a step of our own clock */
    bool in_step;
    uint64_t sync_next_ms;
    uint64_t sync_last_ms;
    uint64_t seen_hash; /* our frontier hash when last looked at */
    uint64_t quiet_ms;  /* when it last changed */
    bool gap_found;     /* by the last look */
    uint64_t busy_ms;   /* last session opened although news was still moving */
    struct stream *streams;
    uint64_t last_stream;
    size_t streams_in; /* inbound, any use */
    size_t syncs_in;
    size_t syncs_out;

    /* writing */
    uint64_t last_seq; /* assigned in this generation */
    struct write *writes;
    size_t write_count;
    size_t write_bytes;
    struct pending_key *pending_keys;
    enum write_gate gate;
    uint64_t gate_deadline_ms;
    uint64_t doubt_ms;
    uint64_t ask_next_ms;
    bool fresh; /* the first start: nothing came from disk */
    uint32_t wanted_generation;
    uint64_t bump_token; /* 0: not at the disk */
    uint64_t bump_retry_ms;
    char bump_why[160];

    /* persisting what came from others */
    uint64_t batch_token; /* 0: none at the disk */
    uint64_t batch_retry_ms;
    uint32_t batch_wait_ms;
    struct kv_entry **batch_entries; /* owned array: rows in the batch */
    size_t batch_entry_count;
    struct origin *batch_origins;
    size_t batch_origin_count;
    uint64_t *batch_members;
    size_t batch_member_count;
    bool batch_limit;
    uint64_t batch_forgets;
};

#endif
