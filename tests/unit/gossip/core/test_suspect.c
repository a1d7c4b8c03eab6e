/* How long a suspicion lasts. */
#include "tests/unit/gossip/core/rig.h"

static const struct gossip_settings settings = {
    .probe_interval_ms = 500,
    .suspicion_mult = 4,
    .suspicion_max_mult = 6,
};

static void tiny_clusters_do_not_wait_for_confirmation(void **state)
{
    (void)state;
    assert_int_equal(suspect_timeout_ms(&settings, 2, 0), 2000);
    assert_int_equal(suspect_timeout_ms(&settings, 3, 0), 2000);
}

static void confirmations_shrink_the_timer_to_its_floor(void **state)
{
    (void)state;
    uint32_t none = suspect_timeout_ms(&settings, 10, 0);
    uint32_t one = suspect_timeout_ms(&settings, 10, 1);
    uint32_t two = suspect_timeout_ms(&settings, 10, 2);
    assert_int_equal(none, 12000);
    assert_true(one < none && one > two);
    assert_int_equal(two, 2000);
    assert_int_equal(suspect_timeout_ms(&settings, 10, 7), 2000);
    assert_int_equal(suspect_timeout_ms(&settings, 100, 2), 4000);
}

static void only_different_accusers_count(void **state)
{
    (void)state;
    struct rig *rig = rig_new(0);
    rig_start(rig);
    for (uint64_t id = 1; id <= 6; id++) {
        rig_hello(rig, id);
    }
    struct gossip_fact fact = rig_fact(6, 1, MEMBER_SUSPECT);
    fact.accuser = 1;
    rig_tell(rig, 1, &fact);
    const struct member *member = member_find(rig->core, 6);
    assert_int_equal(member->pub.state, MEMBER_SUSPECT);
    uint64_t first = member->suspect_deadline_ms;
    rig_tell(rig, 2, &fact); /* the same accuser by another way */
    assert_int_equal(member->suspect_deadline_ms, first);
    fact.accuser = 2;
    rig_tell(rig, 2, &fact);
    assert_true(member->suspect_deadline_ms < first);
    rig_free(rig);
}

static void an_unanswered_suspicion_ends_in_death(void **state)
{
    (void)state;
    struct rig *rig = rig_new(0);
    rig_start(rig);
    rig_hello(rig, 1);
    struct gossip_fact fact = rig_fact(1, 1, MEMBER_SUSPECT);
    fact.accuser = 2;
    rig_hello(rig, 2);
    rig_tell(rig, 2, &fact);
    rig_pass(rig, 1900);
    assert_int_equal(rig_member(rig, 1)->state, MEMBER_SUSPECT);
    rig_pass(rig, 200);
    assert_int_equal(rig_member(rig, 1)->state, MEMBER_DEAD);
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiny_clusters_do_not_wait_for_confirmation),
        cmocka_unit_test(confirmations_shrink_the_timer_to_its_floor),
        cmocka_unit_test(only_different_accusers_count),
        cmocka_unit_test(an_unanswered_suspicion_ends_in_death),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
