/* Probes passed on for others. */
#include "tests/unit/gossip/core/rig.h"

static struct rig *with_peers(void)
{
    struct rig *rig = rig_new(0);
    rig_start(rig);
    for (uint64_t id = 1; id <= 3; id++) {
        rig_hello(rig, id);
    }
    rig->out_count = 0;
    return rig;
}

static void ask(struct rig *rig, uint64_t subject, uint64_t nonce)
{
    struct gossip_fact asker = rig_fact(1, 1, MEMBER_ALIVE);
    struct gossip_part part = {.kind = PART_RELAY, .nonce = nonce, .id = subject};
    rig_say(rig, &asker, NULL, &part, 1);
}

static void an_answer_is_passed_on_under_the_askers_nonce(void **state)
{
    (void)state;
    struct rig *rig = with_peers();
    ask(rig, 2, 4711);
    const struct rig_out *probe = rig_sent(rig, PART_PROBE, 2);
    assert_non_null(probe);
    assert_int_not_equal(probe->part.nonce, 4711);
    struct gossip_fact subject = rig_fact(2, 1, MEMBER_ALIVE);
    struct gossip_part reply = {.kind = PART_REPLY, .nonce = probe->part.nonce};
    rig_say(rig, &subject, NULL, &reply, 1);
    const struct rig_out *passed = rig_sent(rig, PART_REPLY, 1);
    assert_non_null(passed);
    assert_int_equal(passed->part.nonce, 4711);
    size_t count = rig_count(rig, PART_REPLY);
    rig_say(rig, &subject, NULL, &reply, 1); /* once only */
    assert_int_equal(rig_count(rig, PART_REPLY), count);
    rig_free(rig);
}

static void silence_and_strangers_are_reported_as_missed(void **state)
{
    (void)state;
    struct rig *rig = with_peers();
    ask(rig, 99, 1);
    assert_non_null(rig_sent(rig, PART_MISS, 1));
    rig->out_count = 0;
    ask(rig, 2, 2);
    rig_pass(rig, 150);
    assert_null(rig_sent(rig, PART_MISS, 1));
    rig_pass(rig, 100);
    assert_non_null(rig_sent(rig, PART_MISS, 1));
    assert_int_equal(rig_sent(rig, PART_MISS, 1)->part.nonce, 2);
    rig_free(rig);
}

static void a_flood_of_requests_stays_bounded(void **state)
{
    (void)state;
    struct rig *rig = with_peers();
    for (uint64_t i = 0; i < 3 * RELAYS_MAX; i++) {
        rig->out_count = 0;
        ask(rig, 2, i + 1);
    }
    rig->out_count = 0;
    rig_pass(rig, 5000);
    assert_true(rig_count(rig, PART_MISS) <= RELAYS_MAX);
    assert_int_equal(rig->core->relay_count, 0);
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_is_passed_on_under_the_askers_nonce),
        cmocka_unit_test(silence_and_strangers_are_reported_as_missed),
        cmocka_unit_test(a_flood_of_requests_stays_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
