/*
 * What the core's files offer each other. Private to gossip/core and its tests.
 *
 * How they share the work: core.c takes events and distributes them; member.c owns the table of
 * members and what is believed of them; probe.c asks them whether they live; rumour.c spreads news;
 * write.c makes local writes, apply.c takes remote ones, persist.c brings the latter to the disk;
 * stream.c, sync.c and audit.c repair over streams. Nobody acts on time by himself: a *_tick
 * function is called when time has passed and names its next deadline through core_wake.
 */
#ifndef SKEIN_GOSSIP_CORE_CORE_H
#define SKEIN_GOSSIP_CORE_CORE_H

#include "gossip/core/state.h"

/* ---- core.c ---- */

static inline void core_count(struct gossip *core, enum core_counter counter)
{
    core->counters[counter].value++;
}

/* Make sure that gossip_tick is called at `at` or before. */
void core_wake(struct gossip *core, uint64_t at_ms);

void core_event(struct gossip *core, enum gossip_event event, const struct member *member,
                const char *fmt, ...) PRINTF_LIKE(4, 5);

/* What a peer says that it holds, by datagram or stream. */
void core_summary(struct gossip *core, struct member *member, const struct gossip_summary *summary);

/* What every event ends with: what changed goes to the disk. */
void core_finish(struct gossip *core);

/* Milliseconds of the gap between clocks, for people: "3600.0 s". */
double core_seconds(int64_t ms);

static inline struct origin core_origin(const struct gossip *core)
{
    return (struct origin){core->self->pub.id, core->self->pub.generation};
}

/* ---- send.c ---- */

/* A datagram being filled. */
struct bundle {
    struct gossip_part parts[BUNDLE_PARTS_MAX];
    struct gossip_fact facts[BUNDLE_PARTS_MAX];
    size_t part_count;
    size_t fact_count;
    size_t size;
    struct gossip_fact sender;
    bool pull;
};

void fact_from_member(const struct member *member, struct gossip_fact *ret_fact);
void summary_make(struct gossip *core, const struct member *to, struct gossip_summary *ret_summary);

void bundle_init(struct gossip *core, struct bundle *bundle);
/* False: no room. The part is copied, what it points to is borrowed. */
bool bundle_add(struct bundle *bundle, const struct gossip_part *part);
bool bundle_add_fact(struct bundle *bundle, const struct gossip_fact *fact);
/* `to` may be NULL when the receiver's identity is not known yet. */
void bundle_send(struct gossip *core, struct bundle *bundle, const struct addr *addr,
                 const struct member *to);

/* Parts without rumours to one member, at its address or where it wrote from. */
void send_part(struct gossip *core, const struct member *to, const struct addr *addr,
               const struct gossip_part *part);
void send_summary(struct gossip *core, const struct member *to, bool pull);

/* ---- member.c ---- */

struct member *member_find(const struct gossip *core, uint64_t id);
static inline bool member_is_up(const struct member *member)
{
    return member->pub.state == MEMBER_ALIVE || member->pub.state == MEMBER_SUSPECT;
}

/* Members that count: alive and suspect ones, us included. */
size_t member_up_count(const struct gossip *core);

/* Up to `max` distinct random members that are up, without us and `except`. */
size_t member_pick(struct gossip *core, uint64_t except, struct member **ret_members, size_t max);

/* How a fact came: by the member itself; in a datagram of another; in a sync, where both sides tell
 * everything anyway. */
enum heard {
    HEARD_DIRECT,
    HEARD_DATAGRAM,
    HEARD_STREAM,
};

/* from: who said it (NULL for HEARD_DIRECT); addr: where an answer goes. */
void member_hear(struct gossip *core, const struct gossip_fact *fact, enum heard how,
                 struct member *from, const struct addr *addr);
/* After its summary is known: does a living member have our name? */
void member_check_name(struct gossip *core, struct member *member);

/* Our own belief changes. */
void member_suspect(struct gossip *core, struct member *member);
void member_kill(struct gossip *core, struct member *member, const char *why);

/* NULL: too many. */
struct member *member_add(struct gossip *core, const struct gossip_member *pub);
void member_drop(struct gossip *core, struct member *member);
void member_tick(struct gossip *core);
uint64_t member_table_hash(struct gossip *core);
void member_changed(struct gossip *core, struct member *member);
void member_set_state(struct gossip *core, struct member *member, enum member_state state,
                      const char *why);
/* Take an incarnation above `above` and tell everybody. */
void member_refute(struct gossip *core, uint64_t above, const char *why);
/* Tell `to` what we hold against `member`; at most once a second per member. */
void member_accuse(struct gossip *core, struct member *member, const struct member *to,
                   const struct addr *addr);

/* ---- forget.c ---- */

struct forgotten *forgotten_find(struct gossip *core, uint64_t id);
void forgotten_add(struct gossip *core, uint64_t id, uint32_t generation, uint64_t incarnation);
void forgotten_remove(struct gossip *core, uint64_t id);
void forgotten_fact(const struct forgotten *gone, struct gossip_fact *ret_fact);
void forget_hear(struct gossip *core, const struct gossip_fact *fact);

/* ---- suspect.c ---- */

/* Lifeguard: how long a suspicion lasts with so many confirmations, in a cluster of `up`. Pure. */
uint32_t suspect_timeout_ms(const struct gossip_settings *settings, size_t up, uint32_t confirmed);
void suspect_begin(struct gossip *core, struct member *member, uint64_t accuser);
/* True when the accuser is new and matters. */
bool suspect_confirm(struct gossip *core, struct member *member, uint64_t accuser);

/* ---- probe.c, join.c, relay.c ---- */

void probe_start(struct gossip *core);
void probe_tick(struct gossip *core);
void probe_on_reply(struct gossip *core, struct member *from, uint64_t nonce,
                    uint64_t peer_wall_ms);
void probe_on_miss(struct gossip *core, uint64_t nonce);
void probe_stream_opened(struct gossip *core, struct stream *stream);
void probe_stream_replied(struct gossip *core, struct stream *stream, uint64_t nonce);
void probe_member_gone(struct gossip *core, uint64_t id);
void probe_send(struct gossip *core, struct member *to, uint64_t nonce);

void relay_start(struct gossip *core, const struct gossip_part *part, struct member *asker,
                 const struct addr *from);
/* True when the nonce belonged to a relayed probe. */
bool relay_on_reply(struct gossip *core, uint64_t nonce);
void relay_tick(struct gossip *core);

void join_tick(struct gossip *core);
void join_on_ask(struct gossip *core, struct member *from, const struct addr *addr, uint64_t nonce);
void join_on_grant(struct gossip *core, struct member *from, const struct addr *addr,
                   const struct gossip_part *part, uint64_t peer_wall_ms);

/* ---- clock.c ---- */

/* Own clock minus the median of the peers'. */
int64_t clock_offset_ms(const struct gossip *core, size_t *ret_peers);
void clock_sample(struct gossip *core, struct member *member, uint64_t peer_wall_ms,
                  uint64_t rtt_ms);
/* At the start of every event. */
void clock_event(struct gossip *core);
uint64_t hlc_next(struct gossip *core, const struct row *over);
void hlc_observe(struct gossip *core, uint64_t hlc, const struct origin *origin);

/* ---- rumour.c ---- */

void rumour_fact(struct gossip *core, struct member *member);
/* False: it fits no datagram, or must not be in one. */
bool rumour_change_set(struct gossip *core, const struct gossip_part *part, bool local);
/* Fill what room is left; counts as sent. */
void rumour_fill(struct gossip *core, struct bundle *bundle, uint64_t to);
/* Our own change-set, to some peers, now. */
void rumour_send_now(struct gossip *core, const struct gossip_part *part);
void rumour_tick(struct gossip *core);
/* Tell the origin soon that we have its writes. */
void rumour_ack(struct gossip *core, struct origin origin);
void rumour_send_acks(struct gossip *core);
void rumour_deinit(struct gossip *core);

/* ---- resend.c ---- */

/* The largest of our writes that all who are up have; UINT64_MAX: nobody is. */
uint64_t resend_acked_by_all(const struct gossip *core);
/* Still needed although its rumours are sent. */
bool resend_wants(const struct gossip *core, const struct rumour *rumour, uint64_t acked_by_all);
void resend_round(struct gossip *core);

/* ---- apply.c ---- */

/* One checked row from a peer or from disk into the table. False: refused (table full). */
bool apply_row(struct gossip *core, const struct row *row, bool persist, bool *ret_changed);
void apply_change_set(struct gossip *core, const struct gossip_part *part, struct member *from);
void apply_advance(struct gossip *core, struct origin origin, uint64_t seq);

/* ---- write.c, generation.c ---- */

void write_deinit(struct gossip *core);
/* True when the token was a write's. */
bool write_persisted(struct gossip *core, uint64_t token, int rc);

void generation_start(struct gossip *core);
void generation_tick(struct gossip *core);
/* Open the gate if nobody is left to ask. */
void generation_consider(struct gossip *core);
/* A peer says up to which number it knows writes of ours (in that generation). */
void generation_told(struct gossip *core, struct member *from, uint32_t generation, uint64_t seq);
/* Proof that writes of ours exist which we do not know. */
void generation_lost(struct gossip *core, uint32_t generation, const char *why);
bool generation_persisted(struct gossip *core, uint64_t token, int rc);

/* ---- persist.c ---- */

void persist_flush(struct gossip *core);
void persist_tick(struct gossip *core);
bool persist_done(struct gossip *core, uint64_t token, int rc);
void persist_deinit(struct gossip *core);

/* ---- stream.c, sync.c, audit.c ---- */

struct stream *stream_find(const struct gossip *core, uint64_t no);
struct stream *stream_start(struct gossip *core, struct member *peer, enum stream_use use,
                            uint64_t deadline_ms);
void stream_parts(struct gossip *core, struct stream *stream, const struct gossip_part *parts,
                  size_t count);
/* Close it (tell: the driver does not know yet) and free it. */
void stream_end(struct gossip *core, struct stream *stream, bool tell);
void stream_tick(struct gossip *core);
void stream_deinit(struct gossip *core);

/* repair.c: when to open a session; that a change-set before this one is missing. */
void sync_gap(struct gossip *core);
void sync_consider(struct gossip *core, struct member *member,
                   const struct gossip_summary *summary);
void sync_tick(struct gossip *core);
void sync_start(struct gossip *core, struct member *member, enum stream_use use);
void sync_opened(struct gossip *core, struct stream *stream);
void sync_part(struct gossip *core, struct stream *stream, const struct gossip_part *part);
void sync_grant(struct gossip *core);
void sync_cut(struct gossip *core, struct stream *stream);
void sync_pump(struct gossip *core, struct stream *stream);
void sync_plan(struct gossip *core, struct stream *stream, const struct gossip_part *open);
/* Room for one chunk; true when `row` still fits into it. */
struct chunk {
    const struct row *rows[MSG_CHUNK_ROWS];
    size_t row_count;
    size_t bytes;
};
bool chunk_add(struct chunk *chunk, const struct row *row);
void chunk_send(struct gossip *core, struct stream *stream, struct chunk *chunk,
                struct origin origin);

void audit_ask(struct gossip *core, struct stream *stream);
void audit_on_hashes(struct gossip *core, struct stream *stream, const struct gossip_part *part);
void audit_on_buckets(struct gossip *core, struct stream *stream, const struct gossip_part *part);
bool audit_pump(struct gossip *core, struct stream *stream);

#endif
