/* Offsets of clocks and the order of writes. */
#include "tests/unit/gossip/core/rig.h"

static void sample(struct rig *rig, uint64_t id, int64_t off_ms)
{
    clock_sample(rig->core, member_find(rig->core, id),
                 (uint64_t)((int64_t)rig->now.wall_ms + off_ms), 0);
}

static void of_three_nodes_only_the_wrong_one_finds_itself_wrong(void **state)
{
    (void)state;
    struct rig *rig = rig_new(0);
    rig_start(rig);
    assert_int_equal(gossip_clock_offset_ms(rig->core), 0);
    rig_hello(rig, 1);
    rig_hello(rig, 2);
    sample(rig, 1, 3600000);
    sample(rig, 2, 10);
    assert_int_equal(gossip_clock_offset_ms(rig->core), -10);
    assert_true(member_find(rig->core, 1)->clock_flagged);
    assert_false(rig->core->self->clock_flagged);
    sample(rig, 2, 3600010); /* both others agree: it is us */
    assert_int_equal(gossip_clock_offset_ms(rig->core), -3600000);
    assert_true(rig->core->self->clock_flagged);
    rig_free(rig);
}

static void a_slow_answer_says_too_little(void **state)
{
    (void)state;
    struct rig *rig = rig_new(0);
    rig_start(rig);
    rig_hello(rig, 1);
    clock_sample(rig->core, member_find(rig->core, 1), rig->now.wall_ms + 9000, 800);
    assert_int_equal(gossip_clock_offset_ms(rig->core), 0);
    sample(rig, 1, 100);
    clock_sample(rig->core, member_find(rig->core, 1), rig->now.wall_ms + 400, 300);
    assert_int_equal(gossip_clock_offset_ms(rig->core), -100); /* the quicker one is kept */
    rig->now.mono_ms += 11000;
    rig->now.wall_ms += 11000;
    gossip_tick(rig->core, rig->now);
    clock_sample(rig->core, member_find(rig->core, 1), rig->now.wall_ms + 50, 300);
    assert_int_equal(gossip_clock_offset_ms(rig->core), -200); /* but not for ever */
    rig_free(rig);
}

static void later_writes_have_later_times_even_when_the_wall_stands(void **state)
{
    (void)state;
    struct rig *rig = rig_new(0);
    rig_start(rig);
    uint64_t last = 0;
    for (int i = 0; i < 100; i++) {
        uint64_t hlc = hlc_next(rig->core, NULL);
        assert_true(hlc > last);
        last = hlc;
    }
    assert_int_equal(hlc_wall_ms(last), rig->now.wall_ms);
    struct origin origin = {1, 1};
    hlc_observe(rig->core, (rig->now.wall_ms + 5000) << 16, &origin);
    assert_true(hlc_next(rig->core, NULL) > (rig->now.wall_ms + 5000) << 16);
    hlc_observe(rig->core, (rig->now.wall_ms + 50000) << 16, &origin);
    assert_true(hlc_next(rig->core, NULL) < (rig->now.wall_ms + 50000) << 16);
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_three_nodes_only_the_wrong_one_finds_itself_wrong),
        cmocka_unit_test(a_slow_answer_says_too_little),
        cmocka_unit_test(later_writes_have_later_times_even_when_the_wall_stands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
