/* The codec: round trips, size bounds, and everything that must be refused. */
#include "gossip/net/codec.h"
#include "node/base/mem.h"
#include "node/base/rng.h"
#include "proto/gossip.pb-c.h"
#include "tests/support/unit.h"

enum { ROWS_MAX = 6 };

/* A random message and the memory that it points into. */
struct sample {
    struct gossip_fact sender;
    struct gossip_summary summary;
    struct gossip_fact facts[8];
    struct row rows[8][ROWS_MAX];
    const struct row *row_list[8][ROWS_MAX];
    struct dot vectors[8][ROWS_MAX][ROW_VECTOR_MAX];
    struct dot frontier[20];
    uint64_t hashes[50];
    uint32_t buckets[50];
    char id[ROW_ID_MAX];
    uint8_t value[3000];
    struct gossip_part parts[8];
    struct gossip_msg msg;
};

/* Small and huge numbers alike: varints have many lengths. */
static uint64_t number(struct rng *rng)
{
    return rng_next(rng) >> rng_below(rng, 64);
}

static uint64_t positive(struct rng *rng)
{
    return number(rng) | 1;
}

static struct addr address(struct rng *rng)
{
    struct addr addr = {0};
    if (rng_chance(rng, 0.5)) {
        addr.in4.sin_family = AF_INET;
        addr.in4.sin_addr.s_addr = (uint32_t)rng_next(rng);
    } else {
        addr.in6.sin6_family = AF_INET6;
        uint64_t words[2] = {rng_next(rng), rng_next(rng)};
        memcpy(&addr.in6.sin6_addr, words, sizeof(words));
    }
    addr_set_port(&addr, (uint16_t)rng_next(rng));
    return addr;
}

static void text(struct rng *rng, char *out, size_t size)
{
    size_t len = (size_t)rng_below(rng, size);
    for (size_t i = 0; i < len; i++) {
        out[i] = (char)(' ' + rng_below(rng, 94));
    }
    out[len] = '\0';
}

static void make_fact(struct rng *rng, struct gossip_fact *fact)
{
    *fact = (struct gossip_fact){
        .id = positive(rng),
        .generation = (uint32_t)positive(rng),
        .incarnation = number(rng),
        .state = (enum member_state)rng_below(rng, 4),
        .forget = rng_chance(rng, 0.2),
        .accuser = rng_chance(rng, 0.5) ? number(rng) : 0,
        .addr = address(rng),
    };
    text(rng, fact->name, sizeof(fact->name));
    text(rng, fact->version, sizeof(fact->version));
}

static struct dot make_dot(struct rng *rng)
{
    return (struct dot){{positive(rng), (uint32_t)positive(rng)}, positive(rng)};
}

static void make_row(struct rng *rng, struct sample *sample, struct row *row, struct dot *vector)
{
    size_t count = 1 + (size_t)(rng_chance(rng, 0.1) ? ROW_VECTOR_MAX - 1 : rng_below(rng, 3));
    for (size_t i = 0; i < count; i++) {
        vector[i] = make_dot(rng);
        vector[i].origin.node = (vector[i].origin.node & ~(uint64_t)127) + i + 1; /* distinct */
    }
    struct dot dot = vector[count - 1];
    if (rng_chance(rng, 0.1) && dot.seq > 1) {
        dot.seq--; /* a later write of the same origin lost */
    }
    bool deleted = rng_chance(rng, 0.3);
    size_t value_len = deleted ? 0 : (size_t)rng_below(rng, sizeof(sample->value));
    *row = (struct row){
        .kind = (uint16_t)(1 + rng_below(rng, 255)),
        .id = sample->id,
        .id_len = (uint16_t)(1 + rng_below(rng, ROW_ID_MAX)),
        .value = value_len != 0 ? sample->value : NULL,
        .value_len = (uint32_t)value_len,
        .flags = deleted ? ROW_TOMBSTONE : (rng_chance(rng, 0.5) ? ROW_SECRET : 0),
        .hlc = 1 + rng_below(rng, 0xffff000000000000U - 1),
        .created_hlc = number(rng),
        .dot = dot,
        .vector = vector,
        .vector_len = (uint32_t)count,
    };
    assert_int_equal(row_check(row, NULL), RC_OK);
}

static void make_part(struct rng *rng, struct sample *sample, size_t i)
{
    struct gossip_part *part = &sample->parts[i];
    *part = (struct gossip_part){
        .kind = (enum gossip_part_kind)(1 + rng_below(rng, PART_KIND_COUNT - 1))};
    if (part->kind <= PART_GRANT) {
        part->nonce = number(rng);
        part->id = number(rng);
        part->generation = (uint32_t)number(rng);
        if (rng_chance(rng, 0.5)) {
            part->addr = address(rng);
        }
    } else if (part->kind == PART_FACT) {
        make_fact(rng, &sample->facts[i]);
        part->fact = &sample->facts[i];
    } else if (part->kind == PART_CHANGE_SET || part->kind == PART_ROWS) {
        part->origin = make_dot(rng).origin;
        part->first_seq = part->kind == PART_CHANGE_SET ? number(rng) : 0;
        part->last_seq = part->kind == PART_CHANGE_SET ? number(rng) : 0;
        part->row_count = (size_t)rng_below(rng, ROWS_MAX + 1);
        for (size_t k = 0; k < part->row_count; k++) {
            make_row(rng, sample, &sample->rows[i][k], sample->vectors[i][k]);
            sample->row_list[i][k] = &sample->rows[i][k];
        }
        part->rows = sample->row_list[i];
    } else if (part->kind == PART_SYNC_OPEN) {
        part->frontier = sample->frontier;
        part->frontier_count = (size_t)rng_below(rng, 20);
        part->credit = (uint32_t)number(rng);
        part->audit = rng_chance(rng, 0.5);
    } else if (part->kind == PART_MARK) {
        part->origin = make_dot(rng).origin;
        part->last_seq = number(rng);
    } else if (part->kind == PART_CREDIT) {
        part->credit = (uint32_t)number(rng);
    } else if (part->kind == PART_AUDIT) {
        part->hashes = sample->hashes;
        part->hash_count = (size_t)rng_below(rng, 50);
    } else if (part->kind == PART_BUCKETS) {
        part->buckets = sample->buckets;
        part->bucket_count = (size_t)rng_below(rng, 50);
    }
}

static void make(struct rng *rng, struct sample *sample)
{
    make_fact(rng, &sample->sender);
    sample->summary = (struct gossip_summary){
        .frontier_hash = number(rng),
        .audit_root = number(rng),
        .member_hash = number(rng),
        .row_count = number(rng),
        .revision = number(rng),
        .wall_ms = number(rng),
        .acked_seq = number(rng),
        .known_seq = number(rng),
        .acked_generation = (uint32_t)number(rng),
        .health = (uint8_t)rng_below(rng, 9),
        .ready = rng_chance(rng, 0.5),
        .pull = rng_chance(rng, 0.5),
    };
    for (size_t i = 0; i < ARRAY_LEN(sample->frontier); i++) {
        sample->frontier[i] = make_dot(rng);
    }
    for (size_t i = 0; i < ARRAY_LEN(sample->hashes); i++) {
        sample->hashes[i] = rng_next(rng);
        sample->buckets[i] = (uint32_t)number(rng);
    }
    for (size_t i = 0; i < sizeof(sample->id); i++) {
        sample->id[i] = (char)rng_next(rng);
    }
    for (size_t i = 0; i < sizeof(sample->value); i++) {
        sample->value[i] = (uint8_t)rng_next(rng);
    }
    size_t count = (size_t)rng_below(rng, ARRAY_LEN(sample->parts) + 1);
    for (size_t i = 0; i < count; i++) {
        make_part(rng, sample, i);
    }
    sample->msg = (struct gossip_msg){
        .sender = rng_chance(rng, 0.8) ? &sample->sender : NULL,
        .summary = rng_chance(rng, 0.8) ? &sample->summary : NULL,
        .parts = sample->parts,
        .part_count = count,
    };
}

static void check_fact(const struct gossip_fact *a, const struct gossip_fact *b)
{
    assert_int_equal(a->id, b->id);
    assert_int_equal(a->generation, b->generation);
    assert_int_equal(a->incarnation, b->incarnation);
    assert_int_equal(a->state, b->state);
    assert_int_equal(a->forget, b->forget);
    assert_int_equal(a->accuser, b->accuser);
    assert_int_equal(addr_compare(&a->addr, &b->addr), 0);
    assert_string_equal(a->name, b->name);
    assert_string_equal(a->version, b->version);
}

static bool has_dot(const struct row *row, const struct dot *dot)
{
    for (uint32_t i = 0; i < row->vector_len; i++) {
        if (row->vector[i].seq == dot->seq &&
            origin_compare(row->vector[i].origin, dot->origin) == 0) {
            return true;
        }
    }
    return false;
}

static void check_row(const struct row *a, const struct row *b)
{
    assert_int_equal(row_compare(a, b), 0);
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->flags, b->flags);
    assert_int_equal(a->created_hlc, b->created_hlc);
    assert_int_equal(a->dot.seq, b->dot.seq);
    assert_int_equal(a->id_len, b->id_len);
    assert_memory_equal(a->id, b->id, a->id_len);
    assert_int_equal(a->value_len, b->value_len);
    assert_int_equal(a->vector_len, b->vector_len);
    for (uint32_t i = 0; i < a->vector_len; i++) {
        assert_true(has_dot(b, &a->vector[i]));
    }
}

static void check_part(const struct gossip_part *a, const struct gossip_part *b)
{
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->nonce, b->nonce);
    assert_int_equal(a->id, b->id);
    assert_int_equal(a->generation, b->generation);
    assert_int_equal(a->credit, b->credit);
    assert_int_equal(a->audit, b->audit);
    assert_int_equal(addr_compare(&a->addr, &b->addr), 0);
    assert_int_equal(origin_compare(a->origin, b->origin), 0);
    assert_int_equal(a->first_seq, b->first_seq);
    assert_int_equal(a->last_seq, b->last_seq);
    assert_int_equal(a->row_count, b->row_count);
    assert_int_equal(a->frontier_count, b->frontier_count);
    assert_int_equal(a->hash_count, b->hash_count);
    assert_int_equal(a->bucket_count, b->bucket_count);
    for (size_t i = 0; i < a->row_count; i++) {
        check_row(a->rows[i], b->rows[i]);
    }
    for (size_t i = 0; i < a->frontier_count; i++) {
        assert_int_equal(a->frontier[i].seq, b->frontier[i].seq);
        assert_int_equal(origin_compare(a->frontier[i].origin, b->frontier[i].origin), 0);
    }
    if (a->hash_count != 0) {
        assert_memory_equal(a->hashes, b->hashes, a->hash_count * sizeof(uint64_t));
    }
    if (a->bucket_count != 0) {
        assert_memory_equal(a->buckets, b->buckets, a->bucket_count * sizeof(uint32_t));
    }
    if (a->fact != NULL) {
        check_fact(a->fact, b->fact);
    }
}

static void whatever_is_said_is_understood_and_within_its_bound(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 1);
    struct sample *sample = mem_new(sizeof(*sample));
    struct codec_scratch scratch;
    codec_scratch_init(&scratch);
    struct buf out;
    buf_init(&out, GOSSIP_STREAM_MSG_MAX);
    for (int round = 0; round < 3000; round++) {
        make(&rng, sample);
        buf_reset(&out);
        assert_int_equal(codec_encode(&sample->msg, &out), RC_OK);
        assert_true(out.len <= msg_size(&sample->msg));
        struct gossip_msg back;
        assert_int_equal(codec_decode((const uint8_t *)out.data, out.len, &scratch, &back), RC_OK);
        assert_int_equal(back.sender != NULL, sample->msg.sender != NULL);
        assert_int_equal(back.summary != NULL, sample->msg.summary != NULL);
        if (back.sender != NULL) {
            check_fact(back.sender, &sample->sender);
        }
        if (back.summary != NULL) {
            assert_memory_equal(back.summary, &sample->summary, /* without padding */
                                offsetof(struct gossip_summary, pull) + sizeof(bool));
        }
        assert_int_equal(back.part_count, sample->msg.part_count);
        for (size_t i = 0; i < back.part_count; i++) {
            check_part(&sample->msg.parts[i], &back.parts[i]);
        }
    }
    buf_deinit(&out);
    codec_scratch_deinit(&scratch);
    mem_free(sample);
}

static void damaged_bytes_never_pass_a_limit(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 2);
    struct sample *sample = mem_new(sizeof(*sample));
    struct codec_scratch scratch;
    codec_scratch_init(&scratch);
    struct buf out;
    buf_init(&out, GOSSIP_STREAM_MSG_MAX);
    unsigned accepted = 0;
    for (int round = 0; round < 4000; round++) {
        make(&rng, sample);
        buf_reset(&out);
        assert_int_equal(codec_encode(&sample->msg, &out), RC_OK);
        size_t len = out.len;
        if (rng_chance(&rng, 0.3)) {
            len = (size_t)rng_below(&rng, out.len + 1);
        }
        for (int i = 0; len != 0 && i < 3; i++) {
            out.data[rng_below(&rng, len)] = (char)rng_next(&rng);
        }
        struct gossip_msg back = {0};
        int rc = codec_decode((const uint8_t *)out.data, len, &scratch, &back);
        assert_true(rc == RC_OK || rc == RC_PEER);
        accepted += rc == RC_OK ? 1 : 0;
        for (size_t i = 0; rc == RC_OK && i < back.part_count; i++) {
            for (size_t k = 0; k < back.parts[i].row_count; k++) {
                assert_int_equal(row_check(back.parts[i].rows[k], NULL), RC_OK);
            }
        }
    }
    assert_in_range(accepted, 1, 3999);
    buf_deinit(&out);
    codec_scratch_deinit(&scratch);
    mem_free(sample);
}

static int decode_wire(const Skein__Gossip__Message *message)
{
    size_t len = skein__gossip__message__get_packed_size(message);
    uint8_t *bytes = mem_new(len);
    (void)skein__gossip__message__pack(message, bytes);
    struct codec_scratch scratch;
    codec_scratch_init(&scratch);
    struct gossip_msg msg = {0};
    int rc = codec_decode(bytes, len, &scratch, &msg);
    codec_scratch_deinit(&scratch);
    mem_free(bytes);
    return rc;
}

static int decode_fact(Skein__Gossip__Fact *fact)
{
    Skein__Gossip__Message message = SKEIN__GOSSIP__MESSAGE__INIT;
    message.sender = fact;
    return decode_wire(&message);
}

static void facts_out_of_shape_are_refused(void **state)
{
    (void)state;
    uint8_t bytes[200];
    memset(bytes, 'a', sizeof(bytes));
    Skein__Gossip__Address address = SKEIN__GOSSIP__ADDRESS__INIT;
    Skein__Gossip__Fact good = SKEIN__GOSSIP__FACT__INIT;
    good.has_id = good.has_generation = good.has_state = good.has_name = 1;
    good.id = 1;
    good.generation = 1;
    good.name.data = bytes;
    good.name.len = 5;
    assert_int_equal(decode_fact(&good), RC_OK);

    Skein__Gossip__Fact fact = good;
    fact.id = 0;
    assert_int_equal(decode_fact(&fact), RC_PEER);
    fact = good;
    fact.generation = 0;
    assert_int_equal(decode_fact(&fact), RC_PEER);
    fact = good;
    fact.state = 4;
    assert_int_equal(decode_fact(&fact), RC_PEER);
    fact = good;
    fact.name.len = GOSSIP_NAME_MAX;
    assert_int_equal(decode_fact(&fact), RC_PEER);
    fact.name.len = GOSSIP_NAME_MAX - 1;
    assert_int_equal(decode_fact(&fact), RC_OK);
    bytes[2] = '\n'; /* would forge a line of a log */
    assert_int_equal(decode_fact(&fact), RC_PEER);
    bytes[2] = '\0';
    assert_int_equal(decode_fact(&fact), RC_PEER);
    bytes[2] = 'a';
    fact = good;
    fact.address = &address;
    address.has_ip = address.has_port = 1;
    address.ip.data = bytes;
    address.ip.len = 5;
    assert_int_equal(decode_fact(&fact), RC_PEER);
    address.ip.len = 4;
    address.port = 65536;
    assert_int_equal(decode_fact(&fact), RC_PEER);
    address.port = 65535;
    assert_int_equal(decode_fact(&fact), RC_OK);
}

static void counts_are_capped(void **state)
{
    (void)state;
    static Skein__Gossip__Part parts[MSG_PARTS_MAX + 1];
    static Skein__Gossip__Part *list[MSG_PARTS_MAX + 1];
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        skein__gossip__part__init(&parts[i]);
        parts[i].has_kind = 1;
        parts[i].kind = PART_END;
        list[i] = &parts[i];
    }
    Skein__Gossip__Message message = SKEIN__GOSSIP__MESSAGE__INIT;
    message.parts = list;
    message.n_parts = MSG_PARTS_MAX;
    assert_int_equal(decode_wire(&message), RC_OK);
    message.n_parts = MSG_PARTS_MAX + 1;
    assert_int_equal(decode_wire(&message), RC_PEER);

    static uint64_t hashes[MSG_BUCKETS + 1];
    Skein__Gossip__Audit audit = SKEIN__GOSSIP__AUDIT__INIT;
    audit.hashes = hashes;
    audit.n_hashes = MSG_BUCKETS;
    parts[0].kind = PART_AUDIT;
    parts[0].audit = &audit;
    message.n_parts = 1;
    assert_int_equal(decode_wire(&message), RC_OK);
    audit.n_hashes = MSG_BUCKETS + 1;
    assert_int_equal(decode_wire(&message), RC_PEER);

    static Skein__Gossip__Dot dot;
    static Skein__Gossip__Dot *dots[MSG_FRONTIER_MAX + 1];
    skein__gossip__dot__init(&dot);
    for (size_t i = 0; i < ARRAY_LEN(dots); i++) {
        dots[i] = &dot;
    }
    Skein__Gossip__SyncOpen open = SKEIN__GOSSIP__SYNC_OPEN__INIT;
    open.frontier = dots;
    open.n_frontier = MSG_FRONTIER_MAX + 1;
    parts[0].kind = PART_SYNC_OPEN;
    parts[0].sync_open = &open;
    assert_int_equal(decode_wire(&message), RC_PEER);
}

static void parts_without_their_content_are_refused_and_unknown_ones_skipped(void **state)
{
    (void)state;
    Skein__Gossip__Part part = SKEIN__GOSSIP__PART__INIT;
    Skein__Gossip__Part *list[] = {&part};
    Skein__Gossip__Message message = SKEIN__GOSSIP__MESSAGE__INIT;
    message.parts = list;
    message.n_parts = 1;
    part.has_kind = 1;
    for (unsigned kind = PART_PROBE; kind < PART_KIND_COUNT; kind++) {
        part.kind = kind;
        bool bare = kind == PART_END || kind == PART_DONE || kind == PART_CREDIT;
        assert_int_equal(decode_wire(&message), bare ? RC_OK : RC_PEER);
    }
    part.kind = 4000;
    assert_int_equal(decode_wire(&message), RC_OK);
    part.kind = 0;
    assert_int_equal(decode_wire(&message), RC_OK);
}

static void memory_grows_with_the_input_only(void **state)
{
    (void)state;
    /* Empty parts cost two bytes each on the wire and far more in memory. */
    static uint8_t bytes[200000];
    for (size_t i = 0; i + 1 < sizeof(bytes); i += 2) {
        bytes[i] = (3 << 3) | 2; /* field 3, a message */
        bytes[i + 1] = 0;
    }
    struct codec_scratch scratch;
    codec_scratch_init(&scratch);
    struct gossip_msg msg = {0};
    assert_int_equal(codec_decode(bytes, sizeof(bytes), &scratch, &msg), RC_PEER);
    assert_true(scratch.used_bytes <= (64 << 10) + 32 * sizeof(bytes));
    codec_scratch_deinit(&scratch);
}

static void a_full_buffer_is_said(void **state)
{
    (void)state;
    struct gossip_fact sender = {.id = 1, .generation = 1};
    struct gossip_msg msg = {.sender = &sender};
    struct buf out;
    buf_init(&out, 5);
    assert_int_equal(codec_encode(&msg, &out), RC_FULL);
    assert_int_equal(out.len, 0);
    assert_true(out.full);
    buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whatever_is_said_is_understood_and_within_its_bound),
        cmocka_unit_test(damaged_bytes_never_pass_a_limit),
        cmocka_unit_test(facts_out_of_shape_are_refused),
        cmocka_unit_test(counts_are_capped),
        cmocka_unit_test(parts_without_their_content_are_refused_and_unknown_ones_skipped),
        cmocka_unit_test(memory_grows_with_the_input_only),
        cmocka_unit_test(a_full_buffer_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
