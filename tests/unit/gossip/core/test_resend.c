/* The origin sends its writes to whom the rumours have missed. */
#include "tests/unit/gossip/core/rig.h"

static struct rig *with_peers(uint64_t count)
{
    struct rig *rig = rig_new(0);
    rig_start(rig);
    rig->core->in_step = true;
    for (uint64_t id = 1; id <= count; id++) {
        rig_hello(rig, id);
    }
    struct err_info err;
    assert_int_equal(rig_write(rig, "a", "one", &err), RC_OK);
    rig_disk(rig, RC_OK);
    rig->out_count = 0;
    return rig;
}

static void ack(struct rig *rig, uint64_t id, uint64_t incarnation)
{
    struct gossip_fact fact = rig_fact(id, incarnation, MEMBER_ALIVE);
    struct gossip_summary summary = rig_summary(rig);
    summary.acked_seq = 1;
    rig_say(rig, &fact, &summary, NULL, 0);
}

static void who_has_not_acknowledged_gets_it_again(void **state)
{
    (void)state;
    struct rig *rig = with_peers(6);
    for (uint64_t id = 1; id <= 5; id++) {
        ack(rig, id, 1);
    }
    rig_pass(rig, 1000);
    assert_true(rig_counter(rig, COUNT_rumours_resent) >= 1);
    assert_non_null(rig_sent(rig, PART_CHANGE_SET, 6));
    ack(rig, 6, 1);
    uint64_t resent = rig_counter(rig, COUNT_rumours_resent);
    rig_pass(rig, 1500);
    assert_int_equal(rig_counter(rig, COUNT_rumours_resent), resent);
    rig_pass(rig, 4000);
    assert_int_equal(rig->core->rumour_count, 0);
    rig_free(rig);
}

static void it_gives_up_in_time(void **state)
{
    (void)state;
    struct rig *rig = with_peers(2);
    for (uint64_t round = 2; round < 20; round++) { /* alive, but it never says that it has it */
        struct gossip_fact fact = rig_fact(1, round, MEMBER_ALIVE);
        struct gossip_summary summary = rig_summary(rig);
        summary.acked_seq = 0;
        rig_say(rig, &fact, &summary, NULL, 0);
        rig_pass(rig, 400);
    }
    uint64_t resent = rig_counter(rig, COUNT_rumours_resent);
    assert_in_range(resent, 5, 40);
    assert_int_equal(rig->core->rumour_count, 0);
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_has_not_acknowledged_gets_it_again),
        cmocka_unit_test(it_gives_up_in_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
