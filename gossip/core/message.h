/*
 * What nodes say to each other, as plain structs.
 *
 * One shape serves datagrams and streams: who speaks, a summary of what it holds, and parts. The
 * codec (gossip/net/codec.h) turns it into bytes and back; the core never sees bytes. Everything in
 * a message is borrowed: from the core while an op runs, from the codec's scratch while an event is
 * handled. Counts and lengths of a decoded message are within the limits below.
 * Thread: pure data. Source: clustering notes 9.1.
 */
#ifndef SKEIN_GOSSIP_CORE_MESSAGE_H
#define SKEIN_GOSSIP_CORE_MESSAGE_H

#include "gossip/core/gossip.h"

enum {
    MSG_PARTS_MAX = 256,        /* parts of one message */
    MSG_ROWS_MAX = 1024,        /* rows of one part (a change-set never has more) */
    MSG_FRONTIER_MAX = 4096,    /* origins of one SYNC_OPEN, and of a table */
    MSG_BUCKETS = 4096,         /* audit buckets */
    MSG_CHUNK_BYTES = 64 << 10, /* a chunk of rows closes at this size (one row may exceed it) */
    MSG_CHUNK_ROWS = 256,       /* or at this many rows */
};

/* What is said about a member. Facts about one id are ordered by (generation, incarnation, state).
 */
struct gossip_fact {
    uint64_t id;
    uint32_t generation;
    uint64_t incarnation;
    enum member_state state;
    bool forget;      /* an operator removed it: drop it unless something newer is known */
    uint64_t accuser; /* who first-hand says suspect or dead; 0: nobody */
    struct addr addr;
    char name[GOSSIP_NAME_MAX];
    char version[GOSSIP_VERSION_MAX];
};

/* What the sender holds. Equal hashes: nothing to do. */
struct gossip_summary {
    uint64_t frontier_hash;
    uint64_t audit_root;
    uint64_t member_hash;
    uint64_t row_count; /* live rows */
    uint64_t revision;  /* sum of the frontier */
    uint64_t wall_ms;
    uint64_t acked_seq;        /* the sender's frontier for the receiver's origin */
    uint64_t known_seq;        /* largest one seen of it at all, gaps or not; 0: acked_seq */
    uint32_t acked_generation; /* of that origin; 0: the receiver is not known */
    uint8_t health;            /* Lifeguard's local health, 0 (good) to 8 */
    bool ready;
    bool pull; /* fetch by stream now: what is new fits no datagram */
};

enum gossip_part_kind {
    PART_UNSET = 0,
    /* datagrams; PROBE and REPLY also on streams, as the fallback probe */
    PART_PROBE,      /* nonce, id: answer if you are `id` */
    PART_REPLY,      /* nonce: of the probe */
    PART_RELAY,      /* nonce, id, addr: probe that member and pass its answer on */
    PART_MISS,       /* nonce: of the RELAY; the member did not answer me either */
    PART_JOIN,       /* nonce: tell me who is there */
    PART_GRANT,      /* nonce, generation: highest one known of you; facts follow */
    PART_FACT,       /* fact */
    PART_CHANGE_SET, /* origin, first_seq, last_seq, rows: all writes of that range */
    /* streams */
    PART_SYNC_OPEN, /* frontier, credit, audit: what I have, how many chunks you may send */
    PART_ROWS,      /* origin, rows: one chunk, ascending writes of origin, current winners */
    PART_MARK,      /* origin, last_seq: you now have the origin's writes up to here */
    PART_CREDIT,    /* credit: so many more chunks */
    PART_END,       /* all rows and marks were sent */
    PART_DONE,      /* everything up to your END is applied */
    PART_AUDIT,     /* hashes: one per bucket */
    PART_BUCKETS,   /* buckets: numbers of those that differ */
    PART_KIND_COUNT,
};

/* One part; which fields count is said at its kind. Others are zero. */
struct gossip_part {
    enum gossip_part_kind kind;
    uint64_t nonce;
    uint64_t id;
    uint32_t generation;
    uint32_t credit;
    bool audit;
    struct addr addr;
    struct origin origin;
    uint64_t first_seq;
    uint64_t last_seq;
    const struct gossip_fact *fact;
    const struct row *const *rows;
    size_t row_count;
    const struct dot *frontier;
    size_t frontier_count;
    const uint64_t *hashes;
    size_t hash_count;
    const uint32_t *buckets;
    size_t bucket_count;
};

struct gossip_msg {
    const struct gossip_fact *sender;     /* in every datagram, first on every stream */
    const struct gossip_summary *summary; /* in every datagram; NULL: not said */
    const struct gossip_part *parts;
    size_t part_count;
};

/*
 * Upper bounds of encoded sizes, so that the core can fill a datagram without encoding it. The
 * codec's test holds it to them.
 */
size_t msg_fact_size(const struct gossip_fact *fact);
size_t msg_row_size(const struct row *row);
size_t msg_part_size(const struct gossip_part *part);
size_t msg_size(const struct gossip_msg *msg);

#endif
