/* Sessions: who may open them, what is sent, what a cut one may not do. covers: repair.c stream.c
 */
#include "tests/unit/gossip/core/rig.h"

enum { ROWS = 600 };

static struct rig *with_peers(void)
{
    struct rig *rig = rig_new(0);
    rig_start(rig);
    rig->core->in_step = true;
    for (uint64_t id = 1; id <= 3; id++) {
        rig_hello(rig, id);
    }
    rig->out_count = 0;
    rig->opened_count = 0;
    return rig;
}

static void hear(struct rig *rig, uint64_t stream, const struct gossip_part *part)
{
    struct gossip_msg msg = {.parts = part, .part_count = 1};
    gossip_stream_msg(rig->core, stream, &msg, rig->now);
    rig_disk(rig, RC_OK);
}

/* A peer opens a session and says what it has. */
static void peer_opens(struct rig *rig, uint64_t stream, uint64_t peer, const struct dot *frontier,
                       size_t count)
{
    struct gossip_fact fact = rig_fact(peer, 1, MEMBER_ALIVE);
    struct gossip_summary summary = rig_summary(rig);
    struct gossip_part open = {
        .kind = PART_SYNC_OPEN, .frontier = frontier, .frontier_count = count, .credit = 4};
    struct gossip_msg msg = {.sender = &fact, .summary = &summary, .parts = &open, .part_count = 1};
    gossip_stream_opened(rig->core, stream, peer, true, rig->now);
    gossip_stream_msg(rig->core, stream, &msg, rig->now);
    rig_disk(rig, RC_OK);
}

static void fill(struct rig *rig, uint64_t origin, unsigned count)
{
    for (unsigned i = 1; i <= count; i++) {
        struct rig_row memory;
        char id[16];
        (void)snprintf(id, sizeof(id), "k%u", i % (ROWS / 2)); /* each key twice */
        const struct row *row = rig_row(&memory, id, origin, i, 1700000000000U + i, i % 7 == 0);
        bool changed = false;
        assert_true(apply_row(rig->core, row, false, &changed));
    }
    apply_advance(rig->core, (struct origin){origin, 1}, count);
    rig_tell(rig, 1, &(struct gossip_fact){.id = 99});
    rig->out_count = 0;
}

static void a_difference_opens_a_session_only_when_it_lasts(void **state)
{
    (void)state;
    struct rig *rig = with_peers();
    struct gossip_fact fact = rig_fact(1, 1, MEMBER_ALIVE);
    struct gossip_summary summary = rig_summary(rig);
    summary.frontier_hash ^= 1;
    rig_say(rig, &fact, &summary, NULL, 0);
    assert_int_equal(rig->opened_count, 0);
    rig_pass(rig, 100);
    rig_hello(rig, 1); /* equal again: it was news on its way */
    rig_pass(rig, 800);
    assert_int_equal(rig_counter(rig, COUNT_syncs_started), 0);
    rig_say(rig, &fact, &summary, NULL, 0);
    rig_pass(rig, 400);
    assert_int_equal(rig_counter(rig, COUNT_syncs_started), 1);
    rig_free(rig);
}

static void a_peer_that_says_pull_is_fetched_from_at_once(void **state)
{
    (void)state;
    struct rig *rig = with_peers();
    struct gossip_fact fact = rig_fact(2, 1, MEMBER_ALIVE);
    struct gossip_summary summary = rig_summary(rig);
    summary.frontier_hash ^= 1;
    summary.pull = true;
    rig_say(rig, &fact, &summary, NULL, 0);
    assert_int_equal(rig->opened_count, 1);
    assert_int_equal(rig->opened_to[0], 2);
    rig_say(rig, &fact, &summary, NULL, 0);
    assert_int_equal(rig->opened_count, 1); /* one session per peer */
    rig_free(rig);
}

static void rows_go_out_in_order_under_credit_and_the_mark_comes_last(void **state)
{
    (void)state;
    struct rig *rig = with_peers();
    fill(rig, 5, 2 * MSG_CHUNK_ROWS * 3);
    peer_opens(rig, 2, 1, NULL, 0);
    size_t chunks = rig_count(rig, PART_ROWS);
    assert_in_range(chunks, 1, 4);
    struct gossip_part credit = {.kind = PART_CREDIT, .credit = 4};
    hear(rig, 2, &credit);
    const struct rig_out *mark = rig_sent(rig, PART_MARK, 0);
    assert_non_null(mark);
    assert_int_equal(mark->part.origin.node, 5);
    assert_int_equal(mark->part.last_seq, 2 * MSG_CHUNK_ROWS * 3);
    assert_true(mark > rig_sent(rig, PART_ROWS, 0));
    assert_non_null(rig_sent(rig, PART_END, 0));
    rig_free(rig);
}

static void without_credit_nothing_more_is_sent(void **state)
{
    (void)state;
    struct rig *rig = with_peers();
    for (uint64_t origin = 1; origin <= 9; origin++) {
        fill(rig, origin + 10, 5);
    }
    peer_opens(rig, 2, 1, NULL, 0);
    assert_int_equal(rig_count(rig, PART_ROWS), 4);
    assert_null(rig_sent(rig, PART_END, 0));
    struct gossip_part credit = {.kind = PART_CREDIT, .credit = UINT32_MAX};
    hear(rig, 2, &credit);
    assert_non_null(rig_sent(rig, PART_END, 0));
    rig_free(rig);
}

static void what_the_peer_has_is_not_sent(void **state)
{
    (void)state;
    struct rig *rig = with_peers();
    fill(rig, 5, 100);
    fill(rig, 6, 50);
    struct dot has[] = {{{5, 1}, 99}, {{6, 1}, 50}, {{77, 3}, 1000}};
    peer_opens(rig, 2, 1, has, 3);
    assert_int_equal(rig_count(rig, PART_ROWS), 1);
    assert_int_equal(rig_sent(rig, PART_ROWS, 0)->part.row_count, 1);
    assert_int_equal(rig_sent(rig, PART_MARK, 0)->part.last_seq, 100);
    rig_free(rig);
}

/* The table changes while a session walks it: what was overwritten must still be met. */
static void a_row_overwritten_during_the_walk_is_sent_later(void **state)
{
    (void)state;
    struct rig *rig = with_peers();
    for (uint64_t origin = 20; origin < 24; origin++) {
        fill(rig, origin, 2); /* four chunks that use up the credit */
    }
    struct rig_row memory;
    bool changed = false;
    assert_true(apply_row(rig->core, rig_row(&memory, "late", 30, 1, 1700000000001U, false), false,
                          &changed));
    apply_advance(rig->core, (struct origin){30, 1}, 1);
    peer_opens(rig, 2, 1, NULL, 0);
    assert_int_equal(rig_count(rig, PART_ROWS), 4);
    assert_true(apply_row(rig->core, rig_row(&memory, "late", 30, 2, 1700000000002U, true), false,
                          &changed));
    struct gossip_part credit = {.kind = PART_CREDIT, .credit = 4};
    hear(rig, 2, &credit);
    const struct rig_out *rows = rig_sent(rig, PART_ROWS, 0);
    assert_string_equal(rows->id, "late");
    const struct rig_out *mark = rig_sent(rig, PART_MARK, 0);
    assert_int_equal(mark->part.origin.node, 30);
    assert_int_equal(mark->part.last_seq, 1); /* what was covered when the session began */
    rig_free(rig);
}

static void only_the_mark_moves_the_frontier(void **state)
{
    (void)state;
    struct rig *rig = with_peers();
    peer_opens(rig, 2, 1, NULL, 0);
    struct rig_row memory;
    const struct row *row = rig_row(&memory, "a", 5, 40, 1700000000000U, false);
    struct gossip_part rows = {.kind = PART_ROWS, .origin = {5, 1}, .rows = &row, .row_count = 1};
    hear(rig, 2, &rows);
    assert_non_null(rig_find(rig, "a"));
    assert_non_null(rig_sent(rig, PART_CREDIT, 0));
    assert_int_equal(gossip_frontier_of(rig->core, (struct origin){5, 1}), 0);
    gossip_stream_closed(rig->core, 2, rig->now); /* cut */
    assert_int_equal(gossip_frontier_of(rig->core, (struct origin){5, 1}), 0);

    rig_pass(rig, 2000);
    peer_opens(rig, 4, 1, NULL, 0);
    hear(rig, 4, &rows);
    struct gossip_part mark = {.kind = PART_MARK, .origin = {5, 1}, .last_seq = 44};
    hear(rig, 4, &mark);
    assert_int_equal(gossip_frontier_of(rig->core, (struct origin){5, 1}), 44);
    mark.last_seq = 30;
    hear(rig, 4, &mark);
    assert_int_equal(gossip_frontier_of(rig->core, (struct origin){5, 1}), 44);
    rig_free(rig);
}

static void in_step_needs_both_directions(void **state)
{
    (void)state;
    struct rig *rig = with_peers();
    rig->core->in_step = false;
    rig->core->syncs_out = 4; /* none of ours gets in the way */
    peer_opens(rig, 2, 1, NULL, 0);
    struct gossip_part end = {.kind = PART_END};
    struct gossip_part done = {.kind = PART_DONE};
    hear(rig, 2, &end);
    assert_non_null(rig_sent(rig, PART_DONE, 0));
    assert_false(gossip_in_step(rig->core));
    hear(rig, 2, &done);
    assert_true(gossip_in_step(rig->core));
    assert_int_equal(rig->events[GOSSIP_EVENT_IN_STEP], 1);
    rig->core->syncs_out = 0;
    rig_free(rig);
}

static void sessions_are_capped_and_silent_ones_end(void **state)
{
    (void)state;
    struct rig *rig = with_peers();
    for (uint64_t id = 10; id < 30; id++) {
        rig_hello(rig, id);
    }
    for (uint64_t id = 10; id < 30; id++) {
        peer_opens(rig, 2 * id, id, NULL, 0);
    }
    assert_int_equal(rig->core->syncs_in, SYNCS_IN_MAX);
    assert_int_equal(rig_counter(rig, COUNT_syncs_refused), 20 - SYNCS_IN_MAX);
    for (uint64_t i = 0; i < 2 * STREAMS_MAX; i++) {
        gossip_stream_opened(rig->core, 1000 + 2 * i, 1, true, rig->now); /* and says nothing */
    }
    assert_int_equal(rig->core->streams_in, STREAMS_MAX);
    rig_pass(rig, STREAM_WAIT_MS + 100);
    assert_int_equal(rig->core->streams_in, 0);
    assert_int_equal(rig->core->syncs_in, 0);
    rig_free(rig);
}

static void of_two_that_open_at_once_one_gives_way(void **state)
{
    (void)state;
    struct rig *rig = with_peers();
    struct gossip_summary summary = rig_summary(rig);
    summary.frontier_hash ^= 1;
    summary.pull = true;
    struct gossip_fact small = rig_fact(1, 1, MEMBER_ALIVE); /* its id is below ours */
    rig_say(rig, &small, &summary, NULL, 0);
    uint64_t ours = rig->opened[0];
    peer_opens(rig, 2, 1, NULL, 0);
    assert_int_equal(rig->closed_last, ours);
    assert_int_equal(member_find(rig->core, 1)->sync_stream, 2);

    rig_hello(rig, 5000);
    struct gossip_fact large = rig_fact(5000, 1, MEMBER_ALIVE);
    rig_say(rig, &large, &summary, NULL, 0);
    ours = rig->opened[1];
    peer_opens(rig, 4, 5000, NULL, 0);
    assert_int_equal(rig->closed_last, 4);
    assert_int_equal(member_find(rig->core, 5000)->sync_stream, ours);
    rig_free(rig);
}

static void parts_out_of_turn_end_the_stream(void **state)
{
    (void)state;
    const struct gossip_part wrong[] = {
        {.kind = PART_MARK, .origin = {5, 1}, .last_seq = 9},
        {.kind = PART_END},
        {.kind = PART_AUDIT},
        {.kind = PART_CREDIT, .credit = 3},
    };
    struct rig *rig = with_peers();
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        uint64_t stream = 2 * i + 2;
        gossip_stream_opened(rig->core, stream, 1, true, rig->now);
        hear(rig, stream, &wrong[i]); /* before any SYNC_OPEN */
        assert_int_equal(rig->closed_last, stream);
    }
    assert_int_equal(gossip_frontier_of(rig->core, (struct origin){5, 1}), 0);
    peer_opens(rig, 100, 1, NULL, 0);
    hear(rig, 100, &(struct gossip_part){.kind = PART_SYNC_OPEN}); /* twice */
    assert_int_equal(rig->closed_last, 100);
    peer_opens(rig, 102, 2, NULL, 0);
    struct gossip_fact liar = rig_fact(3, 1, MEMBER_ALIVE);
    struct gossip_msg msg = {.sender = &liar};
    gossip_stream_msg(rig->core, 102, &msg, rig->now); /* not whom the stream proved */
    assert_int_equal(rig->closed_last, 102);
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_difference_opens_a_session_only_when_it_lasts),
        cmocka_unit_test(a_peer_that_says_pull_is_fetched_from_at_once),
        cmocka_unit_test(rows_go_out_in_order_under_credit_and_the_mark_comes_last),
        cmocka_unit_test(without_credit_nothing_more_is_sent),
        cmocka_unit_test(what_the_peer_has_is_not_sent),
        cmocka_unit_test(a_row_overwritten_during_the_walk_is_sent_later),
        cmocka_unit_test(only_the_mark_moves_the_frontier),
        cmocka_unit_test(in_step_needs_both_directions),
        cmocka_unit_test(sessions_are_capped_and_silent_ones_end),
        cmocka_unit_test(of_two_that_open_at_once_one_gives_way),
        cmocka_unit_test(parts_out_of_turn_end_the_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
