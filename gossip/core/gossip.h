/*
 * Membership and replication as one pure state machine.
 *
 * Events and time go in, calls of the ops table come out, all on the caller's thread. No socket,
 * clock, thread or file is touched; every random choice comes from the seed. The same code runs in
 * skeind and, a hundred copies at once, in tests/sim.
 *
 * Ops are called from within the functions below and must not call back into the core, except for
 * the read-only functions of the last section. Pointers handed to an op are valid for that call.
 *
 * Membership is SWIM with Lifeguard's additions, replication an exact per-origin frontier with
 * last-writer-wins rows (clustering notes 1 and 2).
 */
#ifndef SKEIN_GOSSIP_CORE_GOSSIP_H
#define SKEIN_GOSSIP_CORE_GOSSIP_H

#include "gossip/core/row.h"
#include "node/base/addr.h"
#include "node/base/errors.h"

enum {
    GOSSIP_NAME_MAX = 64,            /* bytes of a node's name, NUL included */
    GOSSIP_VERSION_MAX = 32,         /* bytes of a version text, NUL included */
    GOSSIP_DATAGRAM_MAX = 1200,      /* bytes on the wire, sealing included */
    GOSSIP_SEAL_MAX = 64,            /* of which the seal may take */
    GOSSIP_STREAM_MSG_MAX = 1 << 20, /* bytes of one encoded stream message */
    GOSSIP_MEMBERS_MAX = 1024,       /* members remembered, dead ones included */
};

struct gossip;
struct gossip_msg; /* gossip/core/message.h */

/* Rising "badness" at equal (generation, incarnation). */
enum member_state {
    MEMBER_ALIVE = 0,
    MEMBER_SUSPECT,
    MEMBER_DEAD,
    MEMBER_LEFT,
};

struct gossip_member {
    uint64_t id;
    uint32_t generation;
    uint64_t incarnation;
    enum member_state state;
    struct addr addr; /* where its datagrams and streams arrive */
    char name[GOSSIP_NAME_MAX];
    char version[GOSSIP_VERSION_MAX];

    /* Heard from the member itself, not persisted. */
    bool is_self;
    bool ready;              /* it says that it serves */
    uint64_t state_since_ms; /* monotonic */
    uint64_t heard_ms;       /* monotonic; 0: never */
    uint32_t rtt_us;         /* smoothed; 0: unknown */
    int64_t clock_offset_ms; /* its wall clock minus ours */
    uint64_t revision;       /* writes that it has: the sum of its frontier */
    uint64_t frontier_hash;  /* equal to ours: it has the same writes */
    uint64_t acked_seq;      /* it has our own writes up to here */
};

/* What must reach the disk in one transaction. */
struct gossip_batch {
    const struct row *const *rows; /* insert, or replace unless the stamp is smaller (an equal one
                                    * may bring a longer vector) */
    size_t row_count;
    const struct dot *frontier; /* origin and its new exact seq */
    size_t frontier_count;
    const struct gossip_member *members; /* insert or replace by id */
    size_t member_count;
    const uint64_t *forgotten; /* member ids to remove */
    size_t forgotten_count;
    uint64_t incarnation_limit; /* incarnations below this may be in use; 0: unchanged */
    uint32_t generation;        /* own generation; 0: unchanged */
};

enum gossip_event {
    GOSSIP_EVENT_MEMBER = 1, /* a member's state changed */
    GOSSIP_EVENT_IN_STEP,    /* first full exchange with a peer since the start is done */
    GOSSIP_EVENT_NAME_TAKEN, /* an answering member with another identity has our name */
    GOSSIP_EVENT_GENERATION, /* we lost our memory: a new generation was begun */
    GOSSIP_EVENT_CLOCK,      /* a member's clock went out of, or back into, the limit */
    GOSSIP_EVENT_WARNING,    /* anything else that an operator should read */
};

struct gossip_ops {
    /* Send one datagram. May be lost. The encoded form fits GOSSIP_DATAGRAM_MAX - GOSSIP_SEAL_MAX.
     */
    void (*send)(void *ctx, const struct addr *to, uint64_t to_id, const struct gossip_msg *msg);

    /* Open a reliable ordered stream under the number `stream` (odd: ours; the driver numbers
     * inbound ones even). Answered later by gossip_stream_opened or gossip_stream_closed. */
    void (*stream_open)(void *ctx, uint64_t stream, const struct addr *to, uint64_t to_id);
    void (*stream_send)(void *ctx, uint64_t stream, const struct gossip_msg *msg);
    void (*stream_close)(void *ctx, uint64_t stream); /* no gossip_stream_closed follows */

    /* Make durable; answer with gossip_persisted(token), in the order of the calls. Copy what is
     * kept. */
    void (*persist)(void *ctx, const struct gossip_batch *batch, uint64_t token);

    /* A gossip_write ended: rc is 0 when it is durable and applied, else what persisting said. */
    void (*written)(void *ctx, uint64_t write, int rc, uint64_t seq);

    /* The table changed: `row` is now what the key holds (maybe a tombstone), `old` what it held
     * (NULL: nothing). Called for local and remote writes alike, also while loading. */
    void (*applied)(void *ctx, const struct row *row, const struct row *old);

    /* `member` may be NULL; `text` is one line for people. */
    void (*event)(void *ctx, enum gossip_event event, const struct gossip_member *member,
                  const char *text);

    /* The earliest time (monotonic ms) at which gossip_tick has work; called when it changes. */
    void (*schedule)(void *ctx, uint64_t deadline_ms);
};

/* Zero means the default in brackets. */
struct gossip_settings {
    uint32_t probe_interval_ms;  /* [500] */
    uint32_t probe_timeout_ms;   /* [200] */
    uint32_t gossip_interval_ms; /* [200] */
    uint32_t sync_interval_ms;   /* [1000] with one random peer */
    uint32_t suspicion_mult;     /* [4] */
    uint32_t suspicion_max_mult; /* [6] */
    uint32_t fanout;             /* [3] */
    uint32_t clock_limit_ms;     /* [500] own offset from the median of peers before writes stop */
    uint64_t tombstone_ms;       /* [90 days] */
};

struct gossip_self {
    uint64_t id;          /* persisted random identity, never 0 */
    uint32_t generation;  /* persisted, from 1 */
    uint64_t incarnation; /* first one that was never used: the persisted limit */
    char name[GOSSIP_NAME_MAX];
    char version[GOSSIP_VERSION_MAX];
    struct addr addr;
};

/* Both clocks, taken together by the caller. */
struct gossip_now {
    uint64_t mono_ms;
    uint64_t wall_ms;
};

/* ---- life ---- */

/* ops and ctx are borrowed until gossip_free. Never NULL. */
struct gossip *gossip_new(const struct gossip_self *self, const struct gossip_settings *settings,
                          const struct gossip_ops *ops, void *ctx, uint64_t seed);
void gossip_free(struct gossip *core);

/* Before gossip_start: what the disk holds. Copied. RC_INVALID: damaged (text in err), nothing
 * taken. */
MUST_CHECK int gossip_load_row(struct gossip *core, const struct row *row, struct err_info *err);
MUST_CHECK int gossip_load_frontier(struct gossip *core, const struct dot *dot,
                                    struct err_info *err);
MUST_CHECK int gossip_load_member(struct gossip *core, const struct gossip_member *member,
                                  struct err_info *err);

/* Begin. `join` are addresses to ask, again and again until one answers; known members are tried
 * too. */
void gossip_start(struct gossip *core, const struct addr *join, size_t join_count,
                  struct gossip_now now);

/* Announce that we leave; keep ticking and answering for about 3 s after it. Irrevocable. */
void gossip_leave(struct gossip *core, struct gossip_now now);

/* Remove a member that is dead or left, here and (by rumour) elsewhere. RC_NOT_FOUND, RC_BUSY:
 * alive. */
MUST_CHECK int gossip_forget(struct gossip *core, uint64_t id, struct gossip_now now);

/* What we tell others about our own readiness. */
void gossip_set_ready(struct gossip *core, bool ready, struct gossip_now now);

/* ---- events ---- */

void gossip_tick(struct gossip *core, struct gossip_now now);

/* An authenticated, decoded datagram. from_id is what the seal proved. */
void gossip_datagram(struct gossip *core, const struct addr *from, uint64_t from_id,
                     const struct gossip_msg *msg, struct gossip_now now);

/* inbound: the driver chose an even number; peer_id is what the stream's key exchange proved. */
void gossip_stream_opened(struct gossip *core, uint64_t stream, uint64_t peer_id, bool inbound,
                          struct gossip_now now);
void gossip_stream_msg(struct gossip *core, uint64_t stream, const struct gossip_msg *msg,
                       struct gossip_now now);
void gossip_stream_closed(struct gossip *core, uint64_t stream, struct gossip_now now);

/* Answer to persist. rc != 0: nothing of that batch reached the disk. */
void gossip_persisted(struct gossip *core, uint64_t token, int rc, struct gossip_now now);

/* ---- writing ---- */

struct gossip_change {
    uint16_t kind;
    uint32_t flags; /* ROW_TOMBSTONE deletes; ROW_SECRET keeps it off datagrams */
    const char *id;
    size_t id_len;
    const void *value; /* copied; ignored for a tombstone */
    size_t value_len;
};

/*
 * Write all changes or none, as one change-set. Durable and visible only when ops.written says so.
 *
 * RC_BUSY     a key of it has a write that is not durable yet: again after the next ops.written;
 *             or gossip_writable says no; or too many writes wait for the disk
 * RC_CLOCK    this node's clock is off by more than the limit; err says by how much
 * RC_TOO_BIG  more rows or bytes than a change-set may have, or a value above ROW_VALUE_MAX
 * RC_INVALID  two changes of one key, a kind outside 1..255, or an empty or overlong id
 */
MUST_CHECK int gossip_write(struct gossip *core, const struct gossip_change *changes, size_t count,
                            struct gossip_now now, uint64_t *ret_write, struct err_info *err);

/*
 * False for up to some seconds after a start with a past, while peers are asked which of this
 * node's writes they know, and while a new generation (GOSSIP_EVENT_GENERATION) is on its way to
 * the disk.
 */
bool gossip_writable(const struct gossip *core);

/* ---- reading (also from within ops) ---- */

/* NULL when the key was never seen. May be a tombstone. Valid until the key changes. */
const struct row *gossip_find(const struct gossip *core, uint16_t kind, const char *id,
                              size_t id_len);

/* All rows, tombstones included, in no particular order; stop when visit returns false. */
void gossip_each_row(const struct gossip *core, bool (*visit)(void *arg, const struct row *row),
                     void *arg);

/* Self first, then by id. Pointers valid until the next event. */
size_t gossip_member_count(const struct gossip *core);
const struct gossip_member *gossip_member_at(const struct gossip *core, size_t idx);

uint64_t gossip_revision(const struct gossip *core); /* sum of the frontier */
uint64_t gossip_frontier_hash(const struct gossip *core);
uint64_t gossip_frontier_of(const struct gossip *core, struct origin origin);
uint64_t gossip_row_count(const struct gossip *core); /* live rows */
bool gossip_in_step(const struct gossip *core);       /* see GOSSIP_EVENT_IN_STEP */
struct origin gossip_origin(const struct gossip *core);

/* Own wall clock minus the median of the peers' (0 with no peer heard). */
int64_t gossip_clock_offset_ms(const struct gossip *core);

/* Monotone counters for /metrics; names are stable. Static count. */
struct gossip_counter {
    const char *name; /* "probes_sent", "rumours_received", ... */
    uint64_t value;
};
size_t gossip_counters(const struct gossip *core, const struct gossip_counter **ret_counters);

#endif
