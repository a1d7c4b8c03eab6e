/* Members that an operator removed. */
#include "tests/unit/gossip/core/rig.h"

static struct rig *with_a_dead_member(void)
{
    struct rig *rig = rig_new(0);
    rig_start(rig);
    rig_hello(rig, 1);
    rig_hello(rig, 2);
    struct gossip_fact dead = rig_fact(2, 1, MEMBER_DEAD);
    rig_tell(rig, 1, &dead);
    return rig;
}

static void only_the_dead_are_forgotten(void **state)
{
    (void)state;
    struct rig *rig = with_a_dead_member();
    assert_int_equal(gossip_forget(rig->core, 1, rig->now), RC_BUSY);
    assert_int_equal(gossip_forget(rig->core, RIG_ID, rig->now), RC_BUSY);
    assert_int_equal(gossip_forget(rig->core, 9, rig->now), RC_NOT_FOUND);
    assert_int_equal(gossip_forget(rig->core, 2, rig->now), RC_OK);
    assert_null(rig_member(rig, 2));
    assert_int_equal(rig->last_forgotten, 1);
    rig_disk(rig, RC_OK);
    assert_int_equal(rig->core->forgets_dirty_count, 0);
    rig_pass(rig, 300);
    const struct rig_out *out = rig_sent(rig, PART_FACT, 1);
    assert_non_null(out);
    assert_true(out->fact.forget);
    rig_free(rig);
}

static void others_do_not_bring_it_back_but_itself_does(void **state)
{
    (void)state;
    struct rig *rig = with_a_dead_member();
    assert_int_equal(gossip_forget(rig->core, 2, rig->now), RC_OK);
    rig_disk(rig, RC_OK);
    rig->out_count = 0;
    struct gossip_fact dead = rig_fact(2, 1, MEMBER_DEAD);
    rig_tell(rig, 1, &dead);
    assert_null(rig_member(rig, 2));
    const struct rig_out *out = rig_sent(rig, PART_FACT, 1);
    assert_non_null(out);
    assert_true(out->fact.forget); /* it was away: told */
    struct gossip_fact alive = rig_fact(2, 1, MEMBER_ALIVE);
    rig_tell(rig, 1, &alive);
    assert_null(rig_member(rig, 2));
    rig_hello(rig, 2);
    assert_non_null(rig_member(rig, 2));
    rig_free(rig);
}

static void a_rumour_of_it_is_obeyed_and_passed_on_once(void **state)
{
    (void)state;
    struct rig *rig = with_a_dead_member();
    struct gossip_fact gone = rig_fact(2, 1, MEMBER_LEFT);
    gone.forget = true;
    rig_tell(rig, 1, &gone);
    assert_null(rig_member(rig, 2));
    rig_tell(rig, 1, &gone);
    struct gossip_fact alive = rig_fact(1, 1, MEMBER_LEFT);
    alive.forget = true; /* a member that is up is not dropped by hearsay */
    rig_tell(rig, 1, &alive);
    assert_non_null(rig_member(rig, 1));
    struct gossip_fact self = rig_fact(RIG_ID, 0, MEMBER_LEFT);
    self.forget = true;
    rig_tell(rig, 1, &self);
    assert_int_equal(rig->core->self->pub.incarnation, 1); /* we object */
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_dead_are_forgotten),
        cmocka_unit_test(others_do_not_bring_it_back_but_itself_does),
        cmocka_unit_test(a_rumour_of_it_is_obeyed_and_passed_on_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
