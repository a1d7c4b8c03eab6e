/* Starting, loading, joining, and what the facade promises. covers: join.c */
#include "tests/unit/gossip/core/rig.h"

static void damaged_memory_is_refused(void **state)
{
    (void)state;
    struct rig *rig = rig_new(0);
    struct err_info err;
    struct rig_row memory;
    struct row row = *rig_row(&memory, "a", 1, 1, 5, false);
    row.vector_len = 0;
    assert_int_equal(gossip_load_row(rig->core, &row, &err), RC_INVALID);
    struct dot dot = {{0, 1}, 5};
    assert_int_equal(gossip_load_frontier(rig->core, &dot, &err), RC_INVALID);
    struct gossip_member member = {.id = 4};
    assert_int_equal(gossip_load_member(rig->core, &member, &err), RC_INVALID);
    memset(member.name, 'x', sizeof(member.name));
    member.generation = 1;
    member.addr = rig_addr(4);
    assert_int_equal(gossip_load_member(rig->core, &member, &err), RC_INVALID);
    assert_int_equal(gossip_member_count(rig->core), 1);
    rig_free(rig);
}

static void what_was_loaded_is_there_and_announced(void **state)
{
    (void)state;
    struct rig *rig = rig_new(0);
    struct err_info err;
    struct rig_row memory;
    assert_int_equal(gossip_load_row(rig->core, rig_row(&memory, "a", 1, 1, 5, false), &err),
                     RC_OK);
    assert_int_equal(gossip_load_row(rig->core, rig_row(&memory, "b", 1, 2, 6, true), &err), RC_OK);
    assert_int_equal(rig->applied, 2);
    assert_int_equal(gossip_row_count(rig->core), 1);
    assert_false(row_is_live(rig_find(rig, "b")));
    struct dot dot = {{1, 1}, 2};
    assert_int_equal(gossip_load_frontier(rig->core, &dot, &err), RC_OK);
    assert_int_equal(gossip_revision(rig->core), 2);
    rig_start(rig);
    assert_int_equal(rig->last_rows, 0); /* it is on disk already */
    rig_free(rig);
}

static void addresses_are_asked_until_one_answers(void **state)
{
    (void)state;
    struct rig *rig = rig_new(0);
    struct addr join[3] = {rig_addr(1), rig_addr(RIG_ID), rig_addr(2)};
    gossip_start(rig->core, join, 3, rig->now);
    rig_disk(rig, RC_OK);
    assert_int_equal(rig_count(rig, PART_JOIN), 2); /* not ourselves */
    assert_int_equal(rig->out[0].to_id, 0);
    rig_pass(rig, 20000);
    size_t asked = rig_count(rig, PART_JOIN);
    assert_in_range(asked, 16, 32);
    struct gossip_fact granter = rig_fact(1, 1, MEMBER_ALIVE);
    struct gossip_fact other = rig_fact(2, 1, MEMBER_ALIVE);
    struct gossip_part parts[2] = {
        {.kind = PART_GRANT, .nonce = rig->core->join_nonce, .generation = 1},
        {.kind = PART_FACT, .fact = &other},
    };
    rig_say(rig, &granter, NULL, parts, 2);
    assert_int_equal(gossip_member_count(rig->core), 3);
    assert_int_equal(rig->opened_count, 1); /* in step as soon as possible */
    rig_pass(rig, 1000);
    assert_int_equal(rig_count(rig, PART_JOIN), asked);
    /* Alone again: the addresses are the way back. */
    rig_pass(rig, 30000);
    assert_true(rig_count(rig, PART_JOIN) > asked);
    rig_free(rig);
}

static void who_asks_is_told_who_is_there(void **state)
{
    (void)state;
    struct rig *rig = rig_new(0);
    rig_start(rig);
    for (uint64_t id = 1; id <= 30; id++) {
        rig_hello(rig, id);
    }
    rig->out_count = 0;
    struct gossip_fact asker = rig_fact(500, 0, MEMBER_ALIVE);
    struct gossip_part ask = {.kind = PART_JOIN, .nonce = 9};
    rig_say(rig, &asker, NULL, &ask, 1);
    const struct rig_out *grant = rig_sent(rig, PART_GRANT, 500);
    assert_non_null(grant);
    assert_int_equal(grant->part.nonce, 9);
    assert_true(rig_count(rig, PART_FACT) >= 4); /* as many as fit */
    assert_non_null(rig_member(rig, 500));
    rig_free(rig);
}

static void readiness_is_told_at_once(void **state)
{
    (void)state;
    struct rig *rig = rig_new(0);
    rig_start(rig);
    rig_hello(rig, 1);
    rig->out_count = 0;
    gossip_set_ready(rig->core, true, rig->now);
    assert_int_equal(rig->out_count, 1);
    assert_true(rig->out[0].summary.ready);
    struct gossip_fact peer = rig_fact(1, 1, MEMBER_ALIVE);
    struct gossip_summary summary = rig_summary(rig);
    summary.ready = true;
    summary.revision = 77;
    rig_say(rig, &peer, &summary, NULL, 0);
    assert_true(rig_member(rig, 1)->ready);
    assert_int_equal(rig_member(rig, 1)->revision, 77);
    rig_free(rig);
}

static void a_quiet_core_rests(void **state)
{
    (void)state;
    struct rig *rig = rig_new(0);
    rig_start(rig);
    rig->core->in_step = true;
    rig_pass(rig, 10000);
    uint64_t before = rig->now.mono_ms;
    int ticks = 0;
    while (rig->now.mono_ms < before + 10000) {
        rig->now.mono_ms = MAX(rig->deadline_ms, rig->now.mono_ms);
        rig->deadline_ms = NEVER;
        gossip_tick(rig->core, rig->now);
        ticks++;
    }
    assert_in_range(ticks, 1, 60); /* probe and session timers only */
    rig_free(rig);
}

static void counters_have_names(void **state)
{
    (void)state;
    struct rig *rig = rig_new(0);
    rig_start(rig);
    const struct gossip_counter *counters = NULL;
    size_t count = gossip_counters(rig->core, &counters);
    assert_true(count > 20);
    assert_string_equal(counters[0].name, "datagrams_sent");
    for (size_t i = 0; i < count; i++) {
        assert_true(strlen(counters[i].name) > 3);
    }
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damaged_memory_is_refused),
        cmocka_unit_test(what_was_loaded_is_there_and_announced),
        cmocka_unit_test(addresses_are_asked_until_one_answers),
        cmocka_unit_test(who_asks_is_told_who_is_there),
        cmocka_unit_test(readiness_is_told_at_once),
        cmocka_unit_test(a_quiet_core_rests),
        cmocka_unit_test(counters_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
