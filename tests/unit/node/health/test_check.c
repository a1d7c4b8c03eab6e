/*
 * The vote of one observer, with virtual time.
 */
#include "node/health/check.h"
#include "tests/support/unit.h"

static const struct check_pace pace = {
    .interval_ms = 5000, .interval_down_ms = 1000, .timeout_ms = 5000, .rise = 2, .fall = 3};

/* 'g' good, 'b' bad; the votes after each, as letters. */
static void assert_votes(const char *observations, const char *votes)
{
    struct check check = {0};
    enum check_vote before = CHECK_UNKNOWN;
    for (size_t i = 0; observations[i] != '\0'; i++) {
        bool turned = check_observe(&check, &pace, observations[i] == 'g');
        assert_int_equal(turned, check.vote != before);
        assert_int_equal("?ud"[check.vote], votes[i]);
        before = check.vote;
    }
}

static void test_rise_and_fall(void **state)
{
    (void)state;
    assert_votes("g", "u");
    assert_votes("b", "d"); /* the first look decides */
    assert_votes("gbbg", "uuuu");
    assert_votes("gbbb", "uuud");
    assert_votes("gbbgbbb", "uuuuuud"); /* in a row */
    assert_votes("bgg", "ddu");
    assert_votes("bgbgg", "ddddu");
    assert_votes("bggbbgbbb", "dduuuuuud");
}

static void test_needed(void **state)
{
    (void)state;
    struct check check = {0};
    assert_int_equal(check_needed(&check, &pace), 1);
    (void)check_observe(&check, &pace, true);
    assert_int_equal(check_needed(&check, &pace), 3);
    (void)check_observe(&check, &pace, false);
    assert_int_equal(check.streak, 1);
    (void)check_observe(&check, &pace, false);
    (void)check_observe(&check, &pace, false);
    assert_int_equal(check_needed(&check, &pace), 2);
    assert_int_equal(check.streak, 0);
}

static void test_thresholds_may_fall_under_the_streak(void **state)
{
    (void)state;
    struct check check = {0};
    struct check_pace stricter = pace;
    stricter.fall = 1;
    (void)check_observe(&check, &pace, true);
    (void)check_observe(&check, &pace, false);
    (void)check_observe(&check, &pace, false);
    assert_int_equal(check.vote, CHECK_UP);
    assert_true(check_observe(&check, &stricter, false));
    assert_int_equal(check.vote, CHECK_DOWN);
}

static void test_pace(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 1);
    uint64_t low = UINT64_MAX;
    uint64_t high = 0;
    struct check check = {.vote = CHECK_UP, .spread = true};
    for (size_t i = 0; i < 1000; i++) {
        uint64_t next = check_next(&check, &pace, &rng, 100000, 100001);
        low = MIN(low, next);
        high = MAX(high, next);
    }
    assert_in_range(low, 104500, 104600);
    assert_in_range(high, 105400, 105500);
    check.streak = 1; /* something changes: look sooner */
    assert_in_range(check_next(&check, &pace, &rng, 100000, 100001), 100900, 101100);
    check = (struct check){.vote = CHECK_DOWN};
    assert_in_range(check_next(&check, &pace, &rng, 100000, 100001), 100900, 101100);
    /* A look that took longer than the interval is not followed by two at once. */
    assert_int_equal(check_next(&check, &pace, &rng, 100000, 105000), 105001);
}

static void test_first_phase_is_random(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 2);
    size_t tenths[11] = {0};
    for (size_t i = 0; i < 10000; i++) {
        struct check check = {.vote = CHECK_UP};
        uint64_t next = check_next(&check, &pace, &rng, 100000, 100001);
        assert_true(check.spread);
        assert_in_range(next, 100500, 105000);
        tenths[(next - 100000) / 500]++;
    }
    for (size_t i = 1; i < 10; i++) {
        assert_in_range(tenths[i], 900, 1350); /* 1111 each if it is even */
    }
}

static void test_tiny_intervals(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 3);
    const struct check_pace tiny = {
        .interval_ms = 1, .interval_down_ms = 1, .timeout_ms = 1, .rise = 1, .fall = 1};
    struct check check = {.vote = CHECK_UP};
    assert_in_range(check_next(&check, &tiny, &rng, 10, 10), 11, 12);
    assert_in_range(check_next(&check, &tiny, &rng, 10, 10), 11, 12);
    assert_true(check_observe(&check, &tiny, false));
    assert_true(check_observe(&check, &tiny, true));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rise_and_fall),
        cmocka_unit_test(test_needed),
        cmocka_unit_test(test_thresholds_may_fall_under_the_streak),
        cmocka_unit_test(test_pace),
        cmocka_unit_test(test_first_phase_is_random),
        cmocka_unit_test(test_tiny_intervals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
