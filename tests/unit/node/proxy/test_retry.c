/*
 * The budget for repetitions: a fifth of what is asked and a few more, over a sliding window.
 */
#include "node/proxy/retry.h"

#include "tests/support/unit.h"

enum { START_MS = 100 * RETRY_WINDOW_MS, FLOOR = RETRY_FLOOR_PER_SECOND * RETRY_WINDOW_MS / 1000 };

static uint32_t take_all(struct retry_budget *budget, uint64_t now_ms)
{
    uint32_t count = 0;
    while (retry_take(budget, now_ms)) {
        count++;
    }
    return count;
}

static void test_a_share_and_a_floor(void **state)
{
    (void)state;
    struct retry_budget budget = {0};
    assert_int_equal(take_all(&budget, START_MS), FLOOR);
    for (int i = 0; i < 1000; i++) {
        retry_count_request(&budget, START_MS + 1);
    }
    assert_int_equal(take_all(&budget, START_MS + 1), 200);
    assert_false(retry_take(&budget, START_MS + RETRY_WINDOW_MS - 1));
}

/* Steady traffic of which everything fails: a fifth is repeated, whatever the moment. */
static void test_the_window_slides(void **state)
{
    (void)state;
    struct retry_budget budget = {0};
    uint32_t taken = 0;
    for (uint64_t ms = 0; ms < 10 * RETRY_WINDOW_MS; ms++) { /* one a millisecond */
        retry_count_request(&budget, START_MS + ms);
        taken += retry_take(&budget, START_MS + ms);
    }
    uint32_t most = 10 * RETRY_WINDOW_MS * RETRY_PERCENT / 100;
    assert_in_range(taken, most * 9 / 10, most + 11 * FLOOR);
    /* Half a window on, half of what was used is forgotten. */
    struct retry_budget quiet = {0};
    assert_int_equal(take_all(&quiet, START_MS), FLOOR);
    uint32_t half = take_all(&quiet, START_MS + RETRY_WINDOW_MS + RETRY_WINDOW_MS / 2);
    assert_in_range(half, FLOOR / 2 - 1, FLOOR / 2 + 1);
    assert_int_equal(take_all(&quiet, START_MS + 5 * RETRY_WINDOW_MS), FLOOR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_share_and_a_floor),
        cmocka_unit_test(test_the_window_slides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
