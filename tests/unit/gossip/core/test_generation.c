/* When a node may write in its own name. */
#include "tests/unit/gossip/core/rig.h"

static struct rig *restarted(uint64_t own_seq, enum member_state third)
{
    struct rig *rig = rig_new(1000);
    struct err_info err;
    struct dot own = {{RIG_ID, 1}, own_seq};
    assert_int_equal(gossip_load_frontier(rig->core, &own, &err), RC_OK);
    for (uint64_t id = 1; id <= 3; id++) {
        struct gossip_member member = {.id = id,
                                       .generation = 1,
                                       .incarnation = 1,
                                       .addr = rig_addr(id),
                                       .state = id == 3 ? third : MEMBER_ALIVE};
        (void)snprintf(member.name, sizeof(member.name), "n%llu", (unsigned long long)id);
        assert_int_equal(gossip_load_member(rig->core, &member, &err), RC_OK);
    }
    rig_start(rig);
    return rig;
}

static void told(struct rig *rig, uint64_t id, uint32_t generation, uint64_t acked, uint64_t known)
{
    struct gossip_fact fact = rig_fact(id, 1, MEMBER_ALIVE);
    struct gossip_summary summary = rig_summary(rig);
    summary.acked_generation = generation;
    summary.acked_seq = acked;
    summary.known_seq = known;
    rig_say(rig, &fact, &summary, NULL, 0);
    rig_disk(rig, RC_OK);
}

static int try_write(struct rig *rig)
{
    struct err_info err;
    int rc = rig_write(rig, "a", "x", &err);
    rig_disk(rig, RC_OK);
    return rc;
}

static void the_first_node_writes_at_once(void **state)
{
    (void)state;
    struct rig *rig = rig_new(0);
    rig_start(rig);
    assert_int_equal(try_write(rig), RC_OK);
    rig_free(rig);
}

static void a_restarted_node_asks_before_it_writes(void **state)
{
    (void)state;
    struct rig *rig = restarted(10, MEMBER_LEFT);
    assert_non_null(rig_sent(rig, PART_PROBE, 1));
    assert_non_null(rig_sent(rig, PART_PROBE, 2));
    assert_int_equal(try_write(rig), RC_BUSY);
    assert_false(gossip_writable(rig->core));
    told(rig, 1, 1, 10, 0);
    assert_int_equal(try_write(rig), RC_BUSY);
    told(rig, 2, 1, 7, 0);
    assert_int_equal(try_write(rig), RC_BUSY); /* others may be unknown to this disk */
    rig->core->in_step = true;
    told(rig, 2, 1, 7, 0);
    assert_int_equal(try_write(rig), RC_OK);
    assert_int_equal(rig->written_seq, 11);
    assert_true(gossip_writable(rig->core));
    assert_int_equal(gossip_origin(rig->core).generation, 1);
    rig_free(rig);
}

static void a_peer_that_knows_more_means_lost_memory(void **state)
{
    (void)state;
    struct rig *rig = restarted(10, MEMBER_LEFT);
    told(rig, 1, 1, 10, 12); /* 11 and 12 came out of order there */
    assert_int_equal(rig->events[GOSSIP_EVENT_GENERATION], 1);
    uint32_t generation = gossip_origin(rig->core).generation;
    assert_true(generation > 1);
    assert_int_equal(rig->last_generation, generation);
    assert_int_equal(try_write(rig), RC_OK);
    assert_int_equal(rig->written_seq, 1);
    assert_int_equal(rig_find(rig, "a")->dot.origin.generation, generation);
    rig_free(rig);
}

static void nothing_is_written_before_the_generation_is_durable(void **state)
{
    (void)state;
    struct rig *rig = restarted(10, MEMBER_LEFT);
    struct gossip_fact fact = rig_fact(1, 1, MEMBER_ALIVE);
    struct gossip_summary summary = rig_summary(rig);
    summary.acked_seq = 99;
    rig_say(rig, &fact, &summary, NULL, 0);
    assert_int_equal(gossip_origin(rig->core).generation, 1);
    struct err_info err;
    assert_int_equal(rig_write(rig, "a", "x", &err), RC_BUSY);
    assert_non_null(strstr(err.text, "new generation"));
    rig_answer(rig, RC_NO_SPACE);
    assert_int_equal(rig_write(rig, "a", "x", &err), RC_BUSY);
    rig_pass(rig, 1100); /* tried again */
    assert_int_equal(rig_write(rig, "a", "x", &err), RC_OK);
    rig_free(rig);
}

static void silence_means_a_new_generation(void **state)
{
    (void)state;
    struct rig *rig = restarted(10, MEMBER_LEFT);
    told(rig, 1, 1, 10, 0);
    rig->core->in_step = true;
    rig_pass(rig, 2500);
    assert_int_equal(try_write(rig), RC_BUSY);
    rig_pass(rig, 700);
    assert_int_equal(try_write(rig), RC_OK);
    assert_true(gossip_origin(rig->core).generation > 1);
    rig_free(rig);
}

static void the_dead_cannot_be_asked_either(void **state)
{
    (void)state;
    struct rig *rig = restarted(10, MEMBER_DEAD);
    rig->core->in_step = true;
    told(rig, 1, 1, 10, 0);
    told(rig, 2, 1, 10, 0);
    assert_int_equal(try_write(rig), RC_BUSY);
    rig_pass(rig, 1100);
    assert_int_equal(try_write(rig), RC_OK);
    assert_true(gossip_origin(rig->core).generation > 1);
    rig_free(rig);
}

static void a_later_generation_known_elsewhere_is_passed(void **state)
{
    (void)state;
    struct rig *rig = restarted(10, MEMBER_LEFT);
    struct gossip_fact self = rig_fact(RIG_ID, 5000, MEMBER_ALIVE);
    self.generation = 700;
    rig_tell(rig, 1, &self);
    assert_true(gossip_origin(rig->core).generation > 700);
    rig_free(rig);
}

static void own_rows_that_come_from_elsewhere_betray_it_too(void **state)
{
    (void)state;
    struct rig *rig = restarted(10, MEMBER_LEFT);
    struct rig_row memory;
    const struct row *row = rig_row(&memory, "a", RIG_ID, 11, 1700000000000U, false);
    struct gossip_part part = {.kind = PART_CHANGE_SET,
                               .origin = {RIG_ID, 1},
                               .first_seq = 11,
                               .last_seq = 11,
                               .rows = &row,
                               .row_count = 1};
    struct gossip_fact sender = rig_fact(2, 1, MEMBER_ALIVE);
    rig_say(rig, &sender, NULL, &part, 1);
    rig_disk(rig, RC_OK);
    assert_non_null(rig_find(rig, "a"));
    assert_true(gossip_origin(rig->core).generation > 1);
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_node_writes_at_once),
        cmocka_unit_test(a_restarted_node_asks_before_it_writes),
        cmocka_unit_test(a_peer_that_knows_more_means_lost_memory),
        cmocka_unit_test(nothing_is_written_before_the_generation_is_durable),
        cmocka_unit_test(silence_means_a_new_generation),
        cmocka_unit_test(the_dead_cannot_be_asked_either),
        cmocka_unit_test(a_later_generation_known_elsewhere_is_passed),
        cmocka_unit_test(own_rows_that_come_from_elsewhere_betray_it_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
