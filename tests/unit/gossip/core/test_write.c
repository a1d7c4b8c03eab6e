/* Local writes: refused, staged, durable, spread. covers: rumour.c send.c */
#include "tests/unit/gossip/core/rig.h"

static struct rig *with_peers(void)
{
    struct rig *rig = rig_new(0);
    rig_start(rig);
    rig->core->in_step = true;
    for (uint64_t id = 1; id <= 3; id++) {
        rig_hello(rig, id);
    }
    rig->out_count = 0;
    return rig;
}

static void nothing_is_visible_before_it_is_durable(void **state)
{
    (void)state;
    struct rig *rig = with_peers();
    struct err_info err;
    assert_int_equal(rig_write(rig, "a", "one", &err), RC_OK);
    assert_int_equal(rig->last_rows, 1);
    assert_int_equal(rig->last_dot.seq, 1);
    assert_null(rig_find(rig, "a"));
    assert_int_equal(rig->out_count, 0);
    assert_int_equal(gossip_revision(rig->core), 0);
    rig_disk(rig, RC_OK);
    assert_int_equal(rig->writes_done, 1);
    assert_int_equal(rig->written_seq, 1);
    assert_memory_equal(rig_find(rig, "a")->value, "one", 3);
    assert_int_equal(rig_count(rig, PART_CHANGE_SET), 3); /* to all three at once */
    assert_int_equal(gossip_revision(rig->core), 1);
    rig_free(rig);
}

static void a_failed_write_leaves_no_hole(void **state)
{
    (void)state;
    struct rig *rig = with_peers();
    struct err_info err;
    assert_int_equal(rig_write(rig, "a", "one", &err), RC_OK);
    assert_int_equal(rig_write(rig, "b", "two", &err), RC_OK);
    rig_answer(rig, RC_NO_SPACE);
    assert_int_equal(rig->written_rc, RC_NO_SPACE);
    assert_null(rig_find(rig, "a"));
    rig_answer(rig, RC_OK);
    assert_int_equal(rig->written_seq, 2);
    const struct rig_out *out = rig_sent(rig, PART_CHANGE_SET, 0);
    assert_int_equal(out->part.first_seq, 1);
    assert_int_equal(out->part.last_seq, 2);
    assert_int_equal(gossip_frontier_of(rig->core, gossip_origin(rig->core)), 2);
    assert_int_equal(rig_write(rig, "a", "again", &err), RC_OK); /* the key is free again */
    assert_int_equal(rig->last_dot.seq, 3);
    rig_free(rig);
}

static void a_key_takes_one_write_at_a_time(void **state)
{
    (void)state;
    struct rig *rig = with_peers();
    struct err_info err;
    assert_int_equal(rig_write(rig, "a", "one", &err), RC_OK);
    assert_int_equal(rig_write(rig, "a", "two", &err), RC_BUSY);
    assert_non_null(strstr(err.text, "\"a\""));
    struct gossip_change changes[2] = {
        {.kind = 1, .id = "b", .id_len = 1, .value = "x", .value_len = 1},
        {.kind = 1, .id = "b", .id_len = 1, .value = "y", .value_len = 1},
    };
    uint64_t write = 0;
    assert_int_equal(gossip_write(rig->core, changes, 2, rig->now, &write, &err), RC_INVALID);
    changes[1].kind = 2; /* another key */
    assert_int_equal(gossip_write(rig->core, changes, 2, rig->now, &write, &err), RC_OK);
    rig_free(rig);
}

static void limits_are_said(void **state)
{
    (void)state;
    struct rig *rig = with_peers();
    struct err_info err;
    uint64_t write = 0;
    struct gossip_change change = {.kind = 1, .id = "a", .id_len = 1};
    assert_int_equal(gossip_write(rig->core, &change, 0, rig->now, &write, &err), RC_INVALID);
    change.id_len = 0;
    assert_int_equal(gossip_write(rig->core, &change, 1, rig->now, &write, &err), RC_INVALID);
    change.id_len = ROW_ID_MAX + 1;
    assert_int_equal(gossip_write(rig->core, &change, 1, rig->now, &write, &err), RC_INVALID);
    static char big[ROW_VALUE_MAX + 1];
    change = (struct gossip_change){
        .kind = 1, .id = "a", .id_len = 1, .value = big, .value_len = sizeof(big)};
    assert_int_equal(gossip_write(rig->core, &change, 1, rig->now, &write, &err), RC_TOO_BIG);
    static struct gossip_change many[CHANGE_SET_ROWS_MAX + 1];
    assert_int_equal(gossip_write(rig->core, many, ARRAY_LEN(many), rig->now, &write, &err),
                     RC_TOO_BIG);
    assert_non_null(strstr(err.text, "1000"));
    change.value_len = ROW_VALUE_MAX;
    static struct gossip_change heavy[17];
    static char ids[17];
    for (size_t i = 0; i < ARRAY_LEN(heavy); i++) {
        ids[i] = (char)('a' + i);
        heavy[i] = change;
        heavy[i].id = &ids[i];
    }
    assert_int_equal(gossip_write(rig->core, heavy, 17, rig->now, &write, &err), RC_TOO_BIG);
    assert_int_equal(gossip_write(rig->core, heavy, 16, rig->now, &write, &err), RC_OK);
    rig_free(rig);
}

static void a_wrong_clock_is_refused_with_its_size(void **state)
{
    (void)state;
    struct rig *rig = with_peers();
    struct err_info err;
    for (uint64_t id = 1; id <= 2; id++) {
        clock_sample(rig->core, member_find(rig->core, id), rig->now.wall_ms - 3600000, 2);
    }
    assert_int_equal(gossip_clock_offset_ms(rig->core), 3599999);
    assert_int_equal(rig_write(rig, "a", "one", &err), RC_CLOCK);
    assert_string_equal(err.text, "this node's clock is 3600.0 s ahead of the median of 2 peers; "
                                  "writes are refused above 0.5 s");
    assert_int_equal(rig->events[GOSSIP_EVENT_CLOCK], 1);
    rig->now.wall_ms -= 3600000; /* set right: known at once */
    assert_int_equal(rig_write(rig, "a", "one", &err), RC_OK);
    rig_free(rig);
}

static void a_write_that_saw_a_row_beats_it_whatever_the_clocks(void **state)
{
    (void)state;
    struct rig *rig = with_peers();
    struct rig_row memory;
    const struct row *future = rig_row(&memory, "a", 1, 1, rig->now.wall_ms + 3600000, false);
    struct gossip_part part = {.kind = PART_CHANGE_SET,
                               .origin = {1, 1},
                               .first_seq = 1,
                               .last_seq = 1,
                               .rows = &future,
                               .row_count = 1};
    struct gossip_fact sender = rig_fact(1, 1, MEMBER_ALIVE);
    rig_say(rig, &sender, NULL, &part, 1);
    rig_disk(rig, RC_OK);
    struct err_info err;
    assert_int_equal(rig_write(rig, "a", NULL, &err), RC_OK);
    rig_disk(rig, RC_OK);
    const struct row *row = rig_find(rig, "a");
    assert_false(row_is_live(row));
    assert_int_equal(row->dot.origin.node, RIG_ID);
    assert_int_equal(row->vector_len, 2);
    /* Our own clock was not pulled along. */
    assert_int_equal(rig_write(rig, "b", "x", &err), RC_OK);
    rig_disk(rig, RC_OK);
    assert_int_equal(hlc_wall_ms(rig_find(rig, "b")->hlc), rig->now.wall_ms);
    rig_free(rig);
}

static void creation_is_kept_over_updates_and_new_after_deletion(void **state)
{
    (void)state;
    struct rig *rig = with_peers();
    struct err_info err;
    assert_int_equal(rig_write(rig, "a", "one", &err), RC_OK);
    rig_disk(rig, RC_OK);
    uint64_t created = rig_find(rig, "a")->created_hlc;
    assert_int_equal(rig_write(rig, "a", "two", &err), RC_OK);
    rig_disk(rig, RC_OK);
    assert_int_equal(rig_find(rig, "a")->created_hlc, created);
    assert_true(rig_find(rig, "a")->hlc > created);
    assert_int_equal(rig_write(rig, "a", NULL, &err), RC_OK);
    rig_disk(rig, RC_OK);
    assert_int_equal(gossip_row_count(rig->core), 0);
    assert_int_equal(rig_write(rig, "a", "three", &err), RC_OK);
    rig_disk(rig, RC_OK);
    assert_true(rig_find(rig, "a")->created_hlc > created);
    rig_free(rig);
}

static void what_fits_no_datagram_is_announced_only(void **state)
{
    (void)state;
    struct rig *rig = with_peers();
    struct err_info err;
    static char big[5000];
    memset(big, 'x', sizeof(big) - 1);
    assert_int_equal(rig_write(rig, "a", big, &err), RC_OK);
    rig_disk(rig, RC_OK);
    assert_int_equal(rig_count(rig, PART_CHANGE_SET), 0);
    assert_int_equal(rig->out_count, 3);
    assert_true(rig->out[0].summary.pull);
    rig->out_count = 0;
    struct gossip_change secret = {.kind = 1,
                                   .flags = ROW_SECRET,
                                   .id = "key",
                                   .id_len = 3,
                                   .value = "s3cret",
                                   .value_len = 6};
    uint64_t write = 0;
    assert_int_equal(gossip_write(rig->core, &secret, 1, rig->now, &write, &err), RC_OK);
    rig_disk(rig, RC_OK);
    rig_pass(rig, 3000);
    assert_int_equal(rig_count(rig, PART_CHANGE_SET), 0);
    rig_free(rig);
}

static void rumours_stop_after_their_share(void **state)
{
    (void)state;
    struct rig *rig = with_peers();
    struct err_info err;
    assert_int_equal(rig_write(rig, "a", "one", &err), RC_OK);
    rig_disk(rig, RC_OK);
    for (uint64_t id = 1; id <= 3; id++) {
        rig_hello(rig, id); /* and it has the write */
    }
    rig_pass(rig, 5000);
    assert_int_equal(rig_count(rig, PART_CHANGE_SET), 4); /* 4 * ceil(log10(4 + 1)) */
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_visible_before_it_is_durable),
        cmocka_unit_test(a_failed_write_leaves_no_hole),
        cmocka_unit_test(a_key_takes_one_write_at_a_time),
        cmocka_unit_test(limits_are_said),
        cmocka_unit_test(a_wrong_clock_is_refused_with_its_size),
        cmocka_unit_test(a_write_that_saw_a_row_beats_it_whatever_the_clocks),
        cmocka_unit_test(creation_is_kept_over_updates_and_new_after_deletion),
        cmocka_unit_test(what_fits_no_datagram_is_announced_only),
        cmocka_unit_test(rumours_stop_after_their_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
