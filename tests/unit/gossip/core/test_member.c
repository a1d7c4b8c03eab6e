/* What is believed of members, and what is said about it. */
#include "tests/unit/gossip/core/rig.h"

static struct rig *with_peers(void)
{
    struct rig *rig = rig_new(0);
    rig_start(rig);
    rig_hello(rig, 1);
    rig_hello(rig, 2);
    return rig;
}

static void facts_are_ordered_by_generation_incarnation_state(void **state)
{
    (void)state;
    struct rig *rig = with_peers();
    const struct {
        uint32_t generation;
        uint64_t incarnation;
        enum member_state said;
        enum member_state then;
    } steps[] = {
        {1, 5, MEMBER_ALIVE, MEMBER_ALIVE},   {1, 5, MEMBER_SUSPECT, MEMBER_SUSPECT},
        {1, 5, MEMBER_ALIVE, MEMBER_SUSPECT}, {1, 4, MEMBER_DEAD, MEMBER_SUSPECT},
        {1, 6, MEMBER_ALIVE, MEMBER_ALIVE},   {1, 6, MEMBER_DEAD, MEMBER_DEAD},
        {1, 6, MEMBER_SUSPECT, MEMBER_DEAD},  {1, 6, MEMBER_LEFT, MEMBER_LEFT},
        {1, 6, MEMBER_DEAD, MEMBER_LEFT},     {1, 7, MEMBER_ALIVE, MEMBER_ALIVE},
        {1, 900, MEMBER_DEAD, MEMBER_DEAD},   {2, 0, MEMBER_ALIVE, MEMBER_ALIVE},
        {1, 9000, MEMBER_DEAD, MEMBER_ALIVE},
    };
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        struct gossip_fact fact = rig_fact(9, steps[i].incarnation, steps[i].said);
        fact.generation = steps[i].generation;
        fact.accuser = 1;
        rig_tell(rig, 1, &fact);
        assert_int_equal(rig_member(rig, 9)->state, steps[i].then);
    }
    rig_free(rig);
}

static void an_accusation_is_answered_with_a_new_incarnation(void **state)
{
    (void)state;
    struct rig *rig = with_peers();
    struct gossip_fact fact = rig_fact(RIG_ID, 0, MEMBER_SUSPECT);
    rig_tell(rig, 1, &fact);
    assert_int_equal(rig->core->self->pub.incarnation, 1);
    rig_tell(rig, 1, &fact); /* an old one */
    assert_int_equal(rig->core->self->pub.incarnation, 1);
    fact.incarnation = 41;
    fact.state = MEMBER_DEAD;
    rig_tell(rig, 2, &fact);
    assert_int_equal(rig->core->self->pub.incarnation, 42);
    assert_int_equal(rig->core->health, 2);
    rig_pass(rig, 300);
    const struct rig_out *out = &rig->out[rig->out_count - 1];
    assert_int_equal(out->sender.incarnation, 42);
    assert_int_equal(out->sender.state, MEMBER_ALIVE);
    rig_free(rig);
}

static void incarnations_are_reserved_on_disk_in_steps(void **state)
{
    (void)state;
    struct rig *rig = rig_new(3000);
    rig_start(rig);
    assert_int_equal(rig->last_limit, 4000);
    rig_hello(rig, 1);
    struct gossip_fact fact = rig_fact(RIG_ID, 4100, MEMBER_DEAD);
    rig_tell(rig, 1, &fact);
    assert_int_equal(rig->core->self->pub.incarnation, 4101);
    assert_int_equal(rig->core->incarnation_limit, 5101);
    fact.incarnation = UINT64_MAX; /* would overflow */
    rig_tell(rig, 1, &fact);
    assert_int_equal(rig->core->self->pub.incarnation, 4101);
    rig_free(rig);
}

static void whoever_repeats_something_stale_is_told(void **state)
{
    (void)state;
    struct rig *rig = with_peers();
    struct gossip_fact dead = rig_fact(2, 1, MEMBER_DEAD);
    rig_tell(rig, 1, &dead);
    rig_pass(rig, 5000);
    rig->out_count = 0;
    rig_hello(rig, 2); /* alive, as it believes, with the incarnation that was declared dead */
    assert_int_equal(rig_member(rig, 2)->state, MEMBER_DEAD);
    const struct rig_out *out = rig_sent(rig, PART_FACT, 2);
    assert_non_null(out);
    assert_int_equal(out->fact.state, MEMBER_DEAD);
    assert_int_equal(out->fact.id, 2);
    size_t said = rig_count(rig, PART_FACT);
    rig_hello(rig, 2);
    assert_int_equal(rig_count(rig, PART_FACT), said); /* not a flood */

    rig_pass(rig, 2000);
    rig->out_count = 0;
    struct gossip_fact alive = rig_fact(2, 1, MEMBER_ALIVE);
    rig_tell(rig, 1, &alive); /* somebody else counts on it */
    out = rig_sent(rig, PART_FACT, 1);
    assert_non_null(out);
    assert_int_equal(out->fact.state, MEMBER_DEAD);

    struct gossip_fact again = rig_fact(2, 2, MEMBER_ALIVE);
    rig_say(rig, &again, NULL, NULL, 0);
    assert_int_equal(rig_member(rig, 2)->state, MEMBER_ALIVE);
    rig_free(rig);
}

static void a_new_identity_takes_the_address(void **state)
{
    (void)state;
    struct rig *rig = with_peers();
    struct gossip_fact wiped = rig_fact(77, 0, MEMBER_ALIVE);
    wiped.addr = rig_addr(2);
    rig_tell(rig, 1, &wiped); /* hearsay decides nothing */
    assert_int_equal(rig_member(rig, 2)->state, MEMBER_ALIVE);
    wiped.incarnation = 1;
    rig_say(rig, &wiped, NULL, NULL, 0);
    assert_int_equal(rig_member(rig, 2)->state, MEMBER_DEAD);
    assert_int_equal(rig_member(rig, 77)->state, MEMBER_ALIVE);

    struct gossip_fact before_us = rig_fact(88, 3, MEMBER_ALIVE);
    before_us.addr = rig_addr(RIG_ID); /* we are the one that was wiped */
    rig_tell(rig, 1, &before_us);
    assert_int_equal(rig_member(rig, 88)->state, MEMBER_DEAD);
    rig_free(rig);
}

static void the_newcomer_learns_that_its_name_is_taken(void **state)
{
    (void)state;
    struct rig *rig = with_peers();
    struct gossip_fact same = rig_fact(2000, 1, MEMBER_ALIVE);
    (void)snprintf(same.name, sizeof(same.name), "self");
    rig_tell(rig, 1, &same); /* it may be long gone: only an answer counts */
    assert_int_equal(rig->events[GOSSIP_EVENT_NAME_TAKEN], 0);
    struct gossip_summary summary = rig_summary(rig);
    rig_say(rig, &same, &summary, NULL,
            0); /* as new as we are, and its id is larger: it gives way */
    assert_int_equal(rig->events[GOSSIP_EVENT_NAME_TAKEN], 0);
    summary.ready = true;
    rig_say(rig, &same, &summary, NULL, 0);
    rig_say(rig, &same, &summary, NULL, 0);
    assert_int_equal(rig->events[GOSSIP_EVENT_NAME_TAKEN], 1);
    assert_non_null(strstr(rig->text, "10.0.7.208:7946"));
    rig_free(rig);

    rig = with_peers();
    gossip_set_ready(rig->core, true, rig->now);
    summary.ready = false;
    rig_say(rig, &same, &summary, NULL, 0); /* here we are the elder */
    assert_int_equal(rig->events[GOSSIP_EVENT_NAME_TAKEN], 0);
    rig_free(rig);
}

static void leaving_is_said_and_not_taken_back(void **state)
{
    (void)state;
    struct rig *rig = with_peers();
    rig->out_count = 0;
    gossip_leave(rig->core, rig->now);
    assert_int_equal(rig->out_count, 2);
    assert_int_equal(rig->out[0].sender.state, MEMBER_LEFT);
    struct gossip_fact dead = rig_fact(RIG_ID, 0, MEMBER_DEAD);
    rig_tell(rig, 1, &dead);
    assert_int_equal(rig->core->self->pub.state, MEMBER_LEFT);
    rig->out_count = 0;
    struct gossip_fact peer = rig_fact(1, 1, MEMBER_ALIVE);
    struct gossip_part probe = {.kind = PART_PROBE, .nonce = 5, .id = RIG_ID};
    rig_say(rig, &peer, NULL, &probe, 1);
    assert_non_null(rig_sent(rig, PART_REPLY, 1)); /* still answering */
    rig->out_count = 0;
    rig_pass(rig, 3000);
    assert_int_equal(rig_count(rig, PART_PROBE), 0);
    rig_free(rig);
}

static void lists_have_us_first_and_the_rest_by_id(void **state)
{
    (void)state;
    struct rig *rig = rig_new(0);
    rig_start(rig);
    rig_hello(rig, 30);
    rig_hello(rig, 10);
    rig_hello(rig, 20);
    assert_int_equal(gossip_member_count(rig->core), 4);
    const uint64_t ids[] = {RIG_ID, 10, 20, 30};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(gossip_member_at(rig->core, i)->id, ids[i]);
    }
    assert_null(gossip_member_at(rig->core, 4));
    rig_free(rig);
}

static void the_table_of_members_is_bounded(void **state)
{
    (void)state;
    struct rig *rig = rig_new(0);
    rig_start(rig);
    for (uint64_t id = 1; id < GOSSIP_MEMBERS_MAX + 100; id++) {
        struct gossip_fact fact = rig_fact(id == RIG_ID ? 500000 : id, 1, MEMBER_ALIVE);
        fact.addr = rig_addr(id);
        struct gossip_msg msg = {.sender = &fact};
        struct gossip_summary summary = rig_summary(rig);
        msg.summary = &summary;
        rig->out_count = 0;
        rig->opened_count = 0;
        gossip_datagram(rig->core, &fact.addr, fact.id, &msg, rig->now);
    }
    assert_int_equal(gossip_member_count(rig->core), GOSSIP_MEMBERS_MAX);
    rig_free(rig);
}

static void foreign_datagrams_are_refused(void **state)
{
    (void)state;
    struct rig *rig = with_peers();
    struct gossip_fact fact = rig_fact(9, 1, MEMBER_ALIVE);
    struct gossip_summary summary = rig_summary(rig);
    struct gossip_msg msg = {.sender = &fact, .summary = &summary};
    gossip_datagram(rig->core, &fact.addr, 8, &msg, rig->now); /* sealed by another */
    assert_null(rig_member(rig, 9));
    msg.summary = NULL;
    gossip_datagram(rig->core, &fact.addr, 9, &msg, rig->now);
    assert_null(rig_member(rig, 9));
    assert_int_equal(rig_counter(rig, COUNT_datagrams_refused), 2);
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(facts_are_ordered_by_generation_incarnation_state),
        cmocka_unit_test(an_accusation_is_answered_with_a_new_incarnation),
        cmocka_unit_test(incarnations_are_reserved_on_disk_in_steps),
        cmocka_unit_test(whoever_repeats_something_stale_is_told),
        cmocka_unit_test(a_new_identity_takes_the_address),
        cmocka_unit_test(the_newcomer_learns_that_its_name_is_taken),
        cmocka_unit_test(leaving_is_said_and_not_taken_back),
        cmocka_unit_test(lists_have_us_first_and_the_rest_by_id),
        cmocka_unit_test(the_table_of_members_is_bounded),
        cmocka_unit_test(foreign_datagrams_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
