/* Probing, help, the fallback by stream, and the retries of the dead. */
#include "tests/unit/gossip/core/rig.h"

static struct rig *with_peers(uint64_t count)
{
    struct rig *rig = rig_new(0);
    rig_start(rig);
    rig->core->in_step = true; /* no session is opened for it */
    for (uint64_t id = 1; id <= count; id++) {
        rig_hello(rig, id);
    }
    rig->out_count = 0;
    return rig;
}

/* Run until a probe is out; returns its target. */
static uint64_t next_probe(struct rig *rig)
{
    rig->out_count = 0;
    for (int i = 0; i < 1000; i++) {
        rig_pass(rig, 10);
        const struct rig_out *out = rig_sent(rig, PART_PROBE, 0);
        if (out != NULL && rig->core->probe.target == out->to_id) {
            return out->to_id;
        }
    }
    fail_msg("no probe");
    return 0;
}

static void reply(struct rig *rig, uint64_t from, uint64_t nonce)
{
    struct gossip_fact fact = rig_fact(from, 1, MEMBER_ALIVE);
    struct gossip_part part = {.kind = PART_REPLY, .nonce = nonce};
    rig_say(rig, &fact, NULL, &part, 1);
}

static void every_member_is_asked_before_one_is_asked_again(void **state)
{
    (void)state;
    struct rig *rig = with_peers(8);
    for (int round = 0; round < 3; round++) {
        unsigned seen = 0;
        for (int i = 0; i < 8; i++) {
            uint64_t target = next_probe(rig);
            reply(rig, target, rig->core->probe.nonce);
            assert_true(rig->core->probe.acked);
            assert_int_equal(seen & (1U << target), 0);
            seen |= 1U << target;
            rig_pass(rig, rig->core->probe_next_ms - rig->now.mono_ms - 1);
        }
    }
    rig_free(rig);
}

static void without_an_answer_others_and_a_stream_are_tried(void **state)
{
    (void)state;
    struct rig *rig = with_peers(5);
    rig->core->health = 0;
    rig->opened_count = 0;
    uint64_t target = next_probe(rig);
    rig_pass(rig, 210);
    assert_int_equal(rig_count(rig, PART_RELAY), 3);
    assert_int_equal(rig->opened_count, 1);
    assert_int_equal(rig->opened_to[0], target);
    assert_null(rig_sent(rig, PART_RELAY, target));

    /* The stream answers. */
    uint64_t stream = rig->opened[0];
    gossip_stream_opened(rig->core, stream, target, false, rig->now);
    const struct rig_out *ping = rig_sent(rig, PART_PROBE, 0);
    assert_int_equal(ping->stream, stream);
    struct gossip_part pong = {.kind = PART_REPLY, .nonce = ping->part.nonce};
    struct gossip_msg msg = {.parts = &pong, .part_count = 1};
    gossip_stream_msg(rig->core, stream, &msg, rig->now);
    assert_true(rig->core->probe.acked);
    assert_int_equal(rig->closed_last, stream);
    rig_pass(rig, 600);
    assert_int_equal(rig_member(rig, target)->state, MEMBER_ALIVE);
    rig_free(rig);
}

static void silence_makes_a_suspect_and_worsens_health(void **state)
{
    (void)state;
    struct rig *rig = with_peers(5);
    uint64_t target = next_probe(rig);
    rig_pass(rig, 210);
    uint64_t nonce = rig->core->probe.nonce;
    struct gossip_part miss = {.kind = PART_MISS, .nonce = nonce};
    size_t told = 0;
    for (uint64_t id = 1; id <= 5 && told < 2; id++) {
        if (rig_sent(rig, PART_RELAY, id) != NULL) {
            struct gossip_fact fact = rig_fact(id, 1, MEMBER_ALIVE);
            rig_say(rig, &fact, NULL, &miss, 1);
            told++;
        }
    }
    rig_pass(rig, 400);
    assert_int_equal(rig_member(rig, target)->state, MEMBER_SUSPECT);
    assert_int_equal(rig->core->health, 1); /* one helper of three said nothing */
    rig_free(rig);
}

static void a_helpers_answer_counts(void **state)
{
    (void)state;
    struct rig *rig = with_peers(3);
    uint64_t target = next_probe(rig);
    rig_pass(rig, 210);
    uint64_t helper = target == 1 ? 2 : 1;
    reply(rig, helper, rig->core->probe.nonce);
    rig_pass(rig, 600);
    assert_int_equal(rig_member(rig, target)->state, MEMBER_ALIVE);
    assert_int_equal(rig->core->health, 0);
    rig_free(rig);
}

static void a_suspect_is_shown_the_accusation(void **state)
{
    (void)state;
    struct rig *rig = with_peers(1);
    struct gossip_fact accused = rig_fact(1, 1, MEMBER_SUSPECT);
    accused.accuser = 50;
    rig_hello(rig, 2);
    rig_tell(rig, 2, &accused);
    rig->out_count = 0;
    probe_send(rig->core, member_find(rig->core, 1), 77);
    assert_int_equal(rig->out[0].part.kind, PART_PROBE);
    assert_int_equal(rig->out[1].part.kind, PART_FACT);
    assert_int_equal(rig->out[1].fact.state, MEMBER_SUSPECT);
    assert_int_equal(rig->out[1].fact.id, 1);
    rig_free(rig);
}

static void the_dead_are_tried_for_ever_but_seldom(void **state)
{
    (void)state;
    struct rig *rig = with_peers(0);
    rig_hello(rig, 1);
    rig_hello(rig, 2);
    struct gossip_fact dead = rig_fact(1, 1, MEMBER_DEAD);
    rig_tell(rig, 2, &dead);
    struct gossip_fact dead_too = rig_fact(2, 1, MEMBER_DEAD);
    struct gossip_fact third = rig_fact(3, 1, MEMBER_ALIVE);
    struct gossip_part part = {.kind = PART_FACT, .fact = &dead_too};
    rig_say(rig, &third, NULL, &part, 1);
    struct gossip_fact left = rig_fact(3, 2, MEMBER_LEFT);
    rig_say(rig, &left, NULL, NULL, 0);
    rig->out_count = 0;
    rig_pass(rig, 64000);
    size_t first = rig_count(rig, PART_PROBE);
    assert_in_range(first, 8, 14);             /* after 1, 3, 7, 15, 31, 63 s, twice */
    assert_null(rig_sent(rig, PART_PROBE, 3)); /* who left is not pursued */
    rig->out_count = 0;
    rig_pass(rig, 600000);
    assert_in_range(rig_count(rig, PART_PROBE), 16, 22); /* each minute */
    rig_free(rig);
}

static void round_trips_give_rtt_and_offset(void **state)
{
    (void)state;
    struct rig *rig = with_peers(1);
    (void)next_probe(rig); /* its only target is member 1 */
    rig->now.mono_ms += 20;
    rig->now.wall_ms += 20;
    struct gossip_fact fact = rig_fact(1, 1, MEMBER_ALIVE);
    struct gossip_summary summary = rig_summary(rig);
    uint64_t sent_ago = rig->now.mono_ms - member_find(rig->core, 1)->probe_sent_ms;
    summary.wall_ms = rig->now.wall_ms + 300 - sent_ago / 2;
    struct gossip_part part = {.kind = PART_REPLY, .nonce = rig->core->probe.nonce};
    rig_say(rig, &fact, &summary, &part, 1);
    assert_int_equal(rig_member(rig, 1)->clock_offset_ms, 300);
    assert_in_range(rig_member(rig, 1)->rtt_us, sent_ago * 1000, sent_ago * 1000 + 1);
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_member_is_asked_before_one_is_asked_again),
        cmocka_unit_test(without_an_answer_others_and_a_stream_are_tried),
        cmocka_unit_test(silence_makes_a_suspect_and_worsens_health),
        cmocka_unit_test(a_helpers_answer_counts),
        cmocka_unit_test(a_suspect_is_shown_the_accusation),
        cmocka_unit_test(the_dead_are_tried_for_ever_but_seldom),
        cmocka_unit_test(round_trips_give_rtt_and_offset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
