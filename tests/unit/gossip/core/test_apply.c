/* Others' writes, and how they reach the disk. covers: persist.c */
#include "tests/unit/gossip/core/rig.h"

static struct rig *with_peers(void)
{
    struct rig *rig = rig_new(0);
    rig_start(rig);
    rig->core->in_step = true;
    rig_hello(rig, 1);
    rig_hello(rig, 2);
    rig->out_count = 0;
    return rig;
}

static void change_set(struct rig *rig, uint64_t from, const char *id, uint64_t first,
                       uint64_t last)
{
    struct rig_row memory;
    const struct row *row = rig_row(&memory, id, 1, last, 1700000000000U + last, false);
    struct gossip_part part = {.kind = PART_CHANGE_SET,
                               .origin = {1, 1},
                               .first_seq = first,
                               .last_seq = last,
                               .rows = &row,
                               .row_count = 1};
    struct gossip_fact sender = rig_fact(from, 1, MEMBER_ALIVE);
    rig_say(rig, &sender, NULL, &part, 1);
}

static uint64_t frontier(const struct rig *rig)
{
    return gossip_frontier_of(rig->core, (struct origin){1, 1});
}

static void a_gap_is_merged_but_moves_no_frontier(void **state)
{
    (void)state;
    struct rig *rig = with_peers();
    change_set(rig, 1, "a", 1, 1);
    assert_int_equal(frontier(rig), 1);
    change_set(rig, 1, "c", 3, 3);
    assert_non_null(rig_find(rig, "c"));
    assert_int_equal(frontier(rig), 1);
    change_set(rig, 2, "b", 2, 2);
    assert_int_equal(frontier(rig), 2);
    change_set(rig, 2, "d", 2, 4); /* overlaps what we have, reaches beyond it */
    assert_int_equal(frontier(rig), 4);
    change_set(rig, 2, "d", 2, 4);
    assert_int_equal(rig->applied, 4);
    rig_free(rig);
}

static void malformed_change_sets_are_refused_whole(void **state)
{
    (void)state;
    struct rig *rig = with_peers();
    change_set(rig, 1, "a", 0, 1);
    change_set(rig, 1, "a", 2, 1);
    struct rig_row memory;
    const struct row *row = rig_row(&memory, "a", 1, 9, 1700000000000U, false);
    struct gossip_part part = {.kind = PART_CHANGE_SET,
                               .origin = {1, 1},
                               .first_seq = 1,
                               .last_seq = 3,
                               .rows = &row,
                               .row_count = 1};
    struct gossip_fact sender = rig_fact(1, 1, MEMBER_ALIVE);
    rig_say(rig, &sender, NULL, &part, 1); /* the row is not of that range */
    part.origin.node = 2;
    part.last_seq = 9;
    rig_say(rig, &sender, NULL, &part, 1); /* nor of that origin */
    assert_null(rig_find(rig, "a"));
    assert_int_equal(rig->applied, 0);
    rig_free(rig);
}

static void the_origin_is_told_and_the_rest_hears_of_it(void **state)
{
    (void)state;
    struct rig *rig = with_peers();
    change_set(rig, 2, "a", 1, 1); /* forwarded by 2; the origin is 1 */
    const struct rig_out *ack = &rig->out[rig->out_count - 1];
    assert_int_equal(ack->to_id, 1);
    assert_int_equal(ack->summary.acked_seq, 1);
    assert_int_equal(ack->summary.acked_generation, 1);
    size_t sent = rig->out_count;
    change_set(rig, 2, "b", 2, 2);
    change_set(rig, 2, "c", 3, 3);
    assert_int_equal(rig->out_count, sent); /* acknowledgements are cumulative and spaced */
    rig_pass(rig, 250);
    ack = rig_sent(rig, PART_UNSET, 1);
    assert_int_equal(ack->summary.acked_seq, 3);
    assert_non_null(rig_sent(rig, PART_CHANGE_SET, 2));
    assert_null(rig_sent(rig, PART_CHANGE_SET, 1)); /* not back to where it comes from */
    rig_free(rig);
}

static void one_batch_at_a_time_and_the_frontier_last(void **state)
{
    (void)state;
    struct rig *rig = with_peers();
    size_t before = rig->persists;
    change_set(rig, 1, "a", 1, 1);
    assert_int_equal(rig->persists, before + 1);
    assert_int_equal(rig->last_rows, 1);
    assert_int_equal(rig->last_frontier, 1);
    for (uint64_t seq = 2; seq <= 1500; seq++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "k%llu", (unsigned long long)seq);
        change_set(rig, 1, id, seq, seq);
        rig->out_count = 0;
    }
    assert_int_equal(rig->persists, before + 1); /* the first is not answered yet */
    rig_answer(rig, RC_OK);
    assert_int_equal(rig->last_rows, 1000);
    assert_int_equal(rig->last_frontier, 0); /* rows that it speaks of are not in yet */
    rig_answer(rig, RC_OK);
    assert_int_equal(rig->last_rows, 499);
    assert_int_equal(rig->last_frontier, 1);
    assert_int_equal(rig->last_dot.seq, 1500);
    rig_free(rig);
}

static void a_failed_batch_is_made_again(void **state)
{
    (void)state;
    struct rig *rig = with_peers();
    change_set(rig, 1, "a", 1, 1);
    rig_answer(rig, RC_NO_SPACE);
    assert_int_equal(rig->events[GOSSIP_EVENT_WARNING], 1);
    size_t before = rig->persists;
    change_set(rig, 1, "b", 2, 2);
    assert_non_null(rig_find(rig, "b")); /* serving goes on from memory */
    assert_int_equal(rig->persists, before);
    rig_pass(rig, 1100);
    assert_int_equal(rig->persists, before + 1);
    assert_int_equal(rig->last_rows, 2);
    assert_int_equal(rig->last_dot.seq, 2);
    rig_free(rig);
}

static void a_date_in_the_future_is_kept_and_reported(void **state)
{
    (void)state;
    struct rig *rig = with_peers();
    struct rig_row memory;
    const struct row *row = rig_row(&memory, "a", 1, 1, rig->now.wall_ms + 60000, false);
    struct gossip_part part = {.kind = PART_CHANGE_SET,
                               .origin = {1, 1},
                               .first_seq = 1,
                               .last_seq = 1,
                               .rows = &row,
                               .row_count = 1};
    struct gossip_fact sender = rig_fact(1, 1, MEMBER_ALIVE);
    rig_say(rig, &sender, NULL, &part, 1);
    assert_int_equal(rig_find(rig, "a")->hlc, row->hlc);
    assert_int_equal(rig->events[GOSSIP_EVENT_WARNING], 1);
    assert_true(rig->core->hlc < row->hlc);
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gap_is_merged_but_moves_no_frontier),
        cmocka_unit_test(malformed_change_sets_are_refused_whole),
        cmocka_unit_test(the_origin_is_told_and_the_rest_hears_of_it),
        cmocka_unit_test(one_batch_at_a_time_and_the_frontier_last),
        cmocka_unit_test(a_failed_batch_is_made_again),
        cmocka_unit_test(a_date_in_the_future_is_kept_and_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
