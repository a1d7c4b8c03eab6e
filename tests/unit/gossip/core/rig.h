/*
 * One core on a bench: the test plays the driver, the disk and every peer.
 *
 * What the core does is recorded as flat copies; time moves only when the test says so.
 */
#ifndef SKEIN_TESTS_UNIT_GOSSIP_CORE_RIG_H
#define SKEIN_TESTS_UNIT_GOSSIP_CORE_RIG_H

#include "gossip/core/core.h"
#include "node/base/mem.h"
#include "tests/support/unit.h"

enum {
    RIG_OUT_MAX = 4096,
    RIG_ID = 1000,
};

/* One part (or, with kind PART_UNSET, one datagram without parts) that the core sent. */
struct rig_out {
    uint64_t to_id;
    uint64_t stream;         /* 0: datagram */
    struct gossip_part part; /* pointers are not kept */
    struct gossip_fact fact;
    struct gossip_summary summary;
    struct gossip_fact sender;
    struct addr to;
    char id[64]; /* of the first row */
};

struct rig {
    struct gossip *core;
    struct gossip_now now;
    struct rig_out out[RIG_OUT_MAX];
    size_t out_count;
    uint64_t deadline_ms;
    uint64_t token;      /* of the last persist */
    uint64_t tokens[64]; /* not answered by rig_disk */
    size_t token_count;
    size_t persists;
    size_t last_rows;
    size_t last_frontier;
    struct dot last_dot;
    size_t last_members;
    size_t last_forgotten;
    uint64_t last_limit;
    uint32_t last_generation;
    uint64_t written;
    int written_rc;
    uint64_t written_seq;
    size_t writes_done;
    size_t applied;
    size_t events[16];
    char text[256];
    uint64_t opened[64]; /* streams that the core opened */
    uint64_t opened_to[64];
    size_t opened_count;
    size_t closed_count;
    uint64_t closed_last;
};

static inline void rig_record(struct rig *rig, const struct addr *to, uint64_t to_id,
                              uint64_t stream, const struct gossip_msg *msg)
{
    for (size_t i = 0; i == 0 || i < msg->part_count; i++) {
        assert_true(rig->out_count < RIG_OUT_MAX);
        struct rig_out *out = &rig->out[rig->out_count++];
        *out = (struct rig_out){.to_id = to_id, .stream = stream};
        if (to != NULL) {
            out->to = *to;
        }
        if (msg->summary != NULL) {
            out->summary = *msg->summary;
        }
        if (msg->sender != NULL) {
            out->sender = *msg->sender;
        }
        if (i < msg->part_count) {
            out->part = msg->parts[i];
            if (msg->parts[i].fact != NULL) {
                out->fact = *msg->parts[i].fact;
            }
            if (msg->parts[i].row_count != 0) {
                const struct row *row = msg->parts[i].rows[0];
                memcpy(out->id, row->id, MIN((size_t)row->id_len, sizeof(out->id) - 1));
            }
        }
    }
}

static inline void rig_send(void *ctx, const struct addr *to, uint64_t to_id,
                            const struct gossip_msg *msg)
{
    assert_true(msg_size(msg) <= GOSSIP_DATAGRAM_MAX - GOSSIP_SEAL_MAX);
    rig_record(ctx, to, to_id, 0, msg);
}

static inline void rig_stream_open(void *ctx, uint64_t stream, const struct addr *to,
                                   uint64_t to_id)
{
    struct rig *rig = ctx;
    (void)to;
    assert_true(rig->opened_count < 64);
    rig->opened_to[rig->opened_count] = to_id;
    rig->opened[rig->opened_count++] = stream;
}

static inline void rig_stream_send(void *ctx, uint64_t stream, const struct gossip_msg *msg)
{
    rig_record(ctx, NULL, 0, stream, msg);
}

static inline void rig_stream_close(void *ctx, uint64_t stream)
{
    struct rig *rig = ctx;
    rig->closed_count++;
    rig->closed_last = stream;
}

static inline void rig_persist(void *ctx, const struct gossip_batch *batch, uint64_t token)
{
    struct rig *rig = ctx;
    rig->token = token;
    assert_true(rig->token_count < ARRAY_LEN(rig->tokens));
    rig->tokens[rig->token_count++] = token;
    rig->persists++;
    rig->last_rows = batch->row_count;
    rig->last_frontier = batch->frontier_count;
    rig->last_dot = batch->frontier_count != 0 ? batch->frontier[0] : (struct dot){{0, 0}, 0};
    rig->last_members = batch->member_count;
    rig->last_forgotten = batch->forgotten_count;
    rig->last_limit = batch->incarnation_limit;
    rig->last_generation = batch->generation;
}

static inline void rig_written(void *ctx, uint64_t write, int rc, uint64_t seq)
{
    struct rig *rig = ctx;
    rig->written = write;
    rig->written_rc = rc;
    rig->written_seq = seq;
    rig->writes_done++;
}

static inline void rig_applied(void *ctx, const struct row *row, const struct row *old)
{
    struct rig *rig = ctx;
    assert_true(old == NULL || row_compare(row, old) > 0);
    rig->applied++;
}

static inline void rig_event(void *ctx, enum gossip_event event, const struct gossip_member *member,
                             const char *text)
{
    struct rig *rig = ctx;
    (void)member;
    rig->events[event]++;
    (void)snprintf(rig->text, sizeof(rig->text), "%s", text);
}

static inline void rig_schedule(void *ctx, uint64_t deadline_ms)
{
    ((struct rig *)ctx)->deadline_ms = deadline_ms;
}

static const struct gossip_ops rig_ops = {
    .send = rig_send,
    .stream_open = rig_stream_open,
    .stream_send = rig_stream_send,
    .stream_close = rig_stream_close,
    .persist = rig_persist,
    .written = rig_written,
    .applied = rig_applied,
    .event = rig_event,
    .schedule = rig_schedule,
};

static inline struct addr rig_addr(uint64_t id)
{
    struct addr addr = {0};
    addr.in4.sin_family = AF_INET;
    addr.in4.sin_addr.s_addr = htonl(0x0a000000U + (uint32_t)id);
    addr.in4.sin_port = htons(7946);
    return addr;
}

/* Not started yet, so that the test can load what the disk holds. */
static inline struct rig *rig_new(uint64_t incarnation)
{
    struct rig *rig = mem_new(sizeof(*rig));
    rig->now = (struct gossip_now){.mono_ms = 5000, .wall_ms = 1700000000000U};
    rig->deadline_ms = NEVER;
    struct gossip_self self = {.id = RIG_ID,
                               .generation = 1,
                               .incarnation = incarnation,
                               .name = "self",
                               .version = "1",
                               .addr = rig_addr(RIG_ID)};
    struct gossip_settings settings = {0};
    rig->core = gossip_new(&self, &settings, &rig_ops, rig, 7);
    return rig;
}

static inline void rig_free(struct rig *rig)
{
    gossip_free(rig->core);
    mem_free(rig);
}

/* Answer the oldest persist that was not answered. */
static inline void rig_answer(struct rig *rig, int rc)
{
    assert_true(rig->token_count != 0);
    uint64_t token = rig->tokens[0];
    rig->token_count--;
    memmove(rig->tokens, rig->tokens + 1, rig->token_count * sizeof(rig->tokens[0]));
    gossip_persisted(rig->core, token, rc, rig->now);
}

/* Answer all, and those that follow from the answers. */
static inline void rig_disk(struct rig *rig, int rc)
{
    while (rig->token_count != 0) {
        rig_answer(rig, rc);
    }
}

static inline void rig_start(struct rig *rig)
{
    gossip_start(rig->core, NULL, 0, rig->now);
    rig_disk(rig, RC_OK);
}

/* Let time pass, ticking whenever the core asked for it; the disk is quick. */
static inline void rig_pass(struct rig *rig, uint64_t ms)
{
    uint64_t end = rig->now.mono_ms + ms;
    uint64_t wall = rig->now.wall_ms - rig->now.mono_ms;
    int turns = 0;
    while (rig->deadline_ms <= end) {
        assert_true(++turns < 100000); /* the core must not spin */
        rig->now.mono_ms = MAX(rig->now.mono_ms, rig->deadline_ms);
        rig->now.wall_ms = wall + rig->now.mono_ms;
        rig->deadline_ms = NEVER;
        gossip_tick(rig->core, rig->now);
        rig_disk(rig, RC_OK);
    }
    rig->now.mono_ms = end;
    rig->now.wall_ms = wall + end;
}

static inline struct gossip_fact rig_fact(uint64_t id, uint64_t incarnation,
                                          enum member_state state)
{
    struct gossip_fact fact = {
        .id = id,
        .generation = 1,
        .incarnation = incarnation,
        .state = state,
        .addr = rig_addr(id),
    };
    (void)snprintf(fact.name, sizeof(fact.name), "n%llu", (unsigned long long)id);
    return fact;
}

/* A peer in step with us: what it says by default in every summary. */
static inline struct gossip_summary rig_summary(struct rig *rig)
{
    return (struct gossip_summary){
        .frontier_hash = rig->core->kv.frontier_hash,
        .audit_root = rig->core->kv.audit_root,
        .member_hash = member_table_hash(rig->core),
        .wall_ms = rig->now.wall_ms,
        .acked_generation = rig->core->self->pub.generation,
        .acked_seq = rig->core->last_seq,
    };
}

static inline void rig_say(struct rig *rig, const struct gossip_fact *sender,
                           const struct gossip_summary *summary, const struct gossip_part *parts,
                           size_t count)
{
    struct gossip_summary usual = rig_summary(rig);
    struct gossip_msg msg = {
        .sender = sender,
        .summary = summary != NULL ? summary : &usual,
        .parts = parts,
        .part_count = count,
    };
    gossip_datagram(rig->core, &sender->addr, sender->id, &msg, rig->now);
}

/* A member that says hello, alive. */
static inline void rig_hello(struct rig *rig, uint64_t id)
{
    struct gossip_fact fact = rig_fact(id, 1, MEMBER_ALIVE);
    rig_say(rig, &fact, NULL, NULL, 0);
    rig_disk(rig, RC_OK);
}

/* What one member says of another. */
static inline void rig_tell(struct rig *rig, uint64_t from, const struct gossip_fact *about)
{
    struct gossip_fact sender = rig_fact(from, 1, MEMBER_ALIVE);
    struct gossip_part part = {.kind = PART_FACT, .fact = about};
    rig_say(rig, &sender, NULL, &part, 1);
    rig_disk(rig, RC_OK);
}

static inline const struct gossip_member *rig_member(const struct rig *rig, uint64_t id)
{
    const struct member *member = member_find(rig->core, id);
    return member != NULL ? &member->pub : NULL;
}

/* The last part of that kind that was sent to `to_id` (0: anybody), since `from`. */
static inline const struct rig_out *rig_sent(const struct rig *rig, enum gossip_part_kind kind,
                                             uint64_t to_id)
{
    for (size_t i = rig->out_count; i > 0; i--) {
        const struct rig_out *out = &rig->out[i - 1];
        if (out->part.kind == kind && (to_id == 0 || out->to_id == to_id)) {
            return out;
        }
    }
    return NULL;
}

static inline size_t rig_count(const struct rig *rig, enum gossip_part_kind kind)
{
    size_t count = 0;
    for (size_t i = 0; i < rig->out_count; i++) {
        count += rig->out[i].part.kind == kind ? 1 : 0;
    }
    return count;
}

static inline uint64_t rig_counter(const struct rig *rig, enum core_counter counter)
{
    return rig->core->counters[counter].value;
}

/* A row of another origin; memory is static per call site's buffer. */
struct rig_row {
    struct row row;
    struct dot vector[2];
    char id[32];
    uint8_t value[32];
};

static inline const struct row *rig_row(struct rig_row *memory, const char *id, uint64_t origin,
                                        uint64_t seq, uint64_t hlc_ms, bool deleted)
{
    *memory = (struct rig_row){.vector = {{{origin, 1}, seq}}};
    (void)snprintf(memory->id, sizeof(memory->id), "%s", id);
    memory->value[0] = (uint8_t)seq;
    memory->row = (struct row){
        .kind = 1,
        .id = memory->id,
        .id_len = (uint16_t)strlen(memory->id),
        .flags = deleted ? ROW_TOMBSTONE : 0,
        .value = deleted ? NULL : memory->value,
        .value_len = deleted ? 0 : 4,
        .hlc = hlc_ms << 16,
        .created_hlc = hlc_ms << 16,
        .dot = {{origin, 1}, seq},
        .vector = memory->vector,
        .vector_len = 1,
    };
    return &memory->row;
}

static inline const struct row *rig_find(const struct rig *rig, const char *id)
{
    return gossip_find(rig->core, 1, id, strlen(id));
}

static inline int rig_write(struct rig *rig, const char *id, const char *value,
                            struct err_info *err)
{
    struct gossip_change change = {
        .kind = 1,
        .id = id,
        .id_len = strlen(id),
        .flags = value == NULL ? ROW_TOMBSTONE : 0,
        .value = value,
        .value_len = value != NULL ? strlen(value) : 0,
    };
    uint64_t write = 0;
    return gossip_write(rig->core, &change, 1, rig->now, &write, err);
}

#endif
