/* Repair of rows that differ under equal frontiers. */
#include "tests/unit/gossip/core/rig.h"

/* A core whose frontier covers a row that it does not hold, next to the one that does. */
static struct rig *with_table(bool complete)
{
    struct rig *rig = rig_new(0);
    struct err_info err;
    struct rig_row memory;
    for (uint64_t seq = 1; seq <= 50; seq++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "k%llu", (unsigned long long)seq);
        const struct row *row = rig_row(&memory, id, 5, seq, 1700000000000U + seq, false);
        if (complete || seq != 20) {
            assert_int_equal(gossip_load_row(rig->core, row, &err), RC_OK);
        }
    }
    struct dot dot = {{5, 1}, 50};
    assert_int_equal(gossip_load_frontier(rig->core, &dot, &err), RC_OK);
    rig_start(rig);
    rig->core->in_step = true;
    rig_hello(rig, 1);
    rig->out_count = 0;
    rig->opened_count = 0;
    return rig;
}

static void a_lasting_difference_opens_an_audit(void **state)
{
    (void)state;
    struct rig *rig = with_table(false);
    for (uint64_t i = 0; i < 14; i++) {
        struct gossip_fact fact = rig_fact(1, i + 2, MEMBER_ALIVE); /* refuting all suspicion */
        struct gossip_summary summary = rig_summary(rig);
        summary.audit_root ^= 1;
        rig_say(rig, &fact, &summary, NULL, 0);
        rig_pass(rig, 450);
        assert_int_equal(rig_counter(rig, COUNT_audits_started), i < 11 ? 0 : 1);
        if (i == 11) {
            break;
        }
    }
    rig_free(rig);
}

static void both_sides_send_what_they_hold_in_differing_buckets(void **state)
{
    (void)state;
    struct rig *lacking = with_table(false);
    struct rig *holding = with_table(true);
    assert_int_equal(gossip_frontier_hash(lacking->core), gossip_frontier_hash(holding->core));
    assert_int_not_equal(lacking->core->kv.audit_root, holding->core->kv.audit_root);

    /* The holding side accepts. */
    struct gossip_fact fact = rig_fact(1, 1, MEMBER_ALIVE);
    struct gossip_summary summary = rig_summary(holding);
    struct gossip_part open = {.kind = PART_SYNC_OPEN, .credit = 4, .audit = true};
    struct gossip_msg msg = {.sender = &fact, .summary = &summary, .parts = &open, .part_count = 1};
    gossip_stream_opened(holding->core, 2, 1, true, holding->now);
    gossip_stream_msg(holding->core, 2, &msg, holding->now);
    struct gossip_part hashes = {
        .kind = PART_AUDIT, .hashes = lacking->core->kv.buckets, .hash_count = MSG_BUCKETS};
    msg = (struct gossip_msg){.parts = &hashes, .part_count = 1};
    gossip_stream_msg(holding->core, 2, &msg, holding->now);
    const struct rig_out *named = rig_sent(holding, PART_BUCKETS, 0);
    assert_non_null(named);
    assert_int_equal(named->part.bucket_count, 1);
    const struct rig_out *rows = rig_sent(holding, PART_ROWS, 0);
    assert_int_equal(rows->part.row_count, 1);
    assert_string_equal(rows->id, "k20");
    assert_null(rig_sent(holding, PART_MARK, 0));
    assert_non_null(rig_sent(holding, PART_END, 0));

    /* The lacking side takes it, moves no frontier, and says that something was wrong. */
    struct member *member = member_find(lacking->core, 1);
    sync_start(lacking->core, member, STREAM_AUDIT);
    uint64_t stream = lacking->opened[0];
    gossip_stream_opened(lacking->core, stream, 1, false, lacking->now);
    assert_non_null(rig_sent(lacking, PART_AUDIT, 0));
    struct rig_row memory;
    const struct row *row = rig_row(&memory, "k20", 5, 20, 1700000000020U, false);
    uint32_t bucket = 3;
    const struct gossip_part answer[] = {
        open,
        {.kind = PART_BUCKETS, .buckets = &bucket, .bucket_count = 1},
        {.kind = PART_ROWS, .origin = {1, 1}, .rows = &row, .row_count = 1},
        {.kind = PART_END},
        {.kind = PART_DONE},
    };
    msg = (struct gossip_msg){.parts = answer, .part_count = ARRAY_LEN(answer)};
    gossip_stream_msg(lacking->core, stream, &msg, lacking->now);
    assert_int_equal(lacking->core->kv.audit_root, holding->core->kv.audit_root);
    assert_int_equal(gossip_frontier_of(lacking->core, (struct origin){5, 1}), 50);
    assert_int_equal(rig_counter(lacking, COUNT_audit_repairs), 1);
    assert_int_equal(lacking->events[GOSSIP_EVENT_WARNING], 1);
    rig_free(lacking);
    rig_free(holding);
}

static void a_crooked_audit_ends_the_stream(void **state)
{
    (void)state;
    struct rig *rig = with_table(true);
    struct gossip_fact fact = rig_fact(1, 1, MEMBER_ALIVE);
    struct gossip_summary summary = rig_summary(rig);
    uint64_t few[3] = {1, 2, 3};
    const struct gossip_part parts[] = {
        {.kind = PART_SYNC_OPEN, .credit = 4, .audit = true},
        {.kind = PART_AUDIT, .hashes = few, .hash_count = 3},
    };
    struct gossip_msg msg = {.sender = &fact, .summary = &summary, .parts = parts, .part_count = 2};
    gossip_stream_opened(rig->core, 2, 1, true, rig->now);
    gossip_stream_msg(rig->core, 2, &msg, rig->now);
    assert_int_equal(rig->closed_last, 2);
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lasting_difference_opens_an_audit),
        cmocka_unit_test(both_sides_send_what_they_hold_in_differing_buckets),
        cmocka_unit_test(a_crooked_audit_ends_the_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
