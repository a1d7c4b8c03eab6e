/*
 * The replay window against a plain list of what was seen.
 */
#include "gossip/net/replay.h"
#include "node/base/rng.h"
#include "tests/support/unit.h"

static void edges(void **state)
{
    (void)state;
    struct replay replay;
    replay_begin(&replay, 5000);
    assert_false(replay_accept(&replay, 5000));
    assert_false(replay_accept(&replay, 4999));
    assert_false(replay_accept(&replay, 1));
    assert_true(replay_accept(&replay, 5001));
    assert_false(replay_accept(&replay, 5001));
    assert_true(replay_accept(&replay, 6025)); /* the window is 5002..6025 */
    assert_false(replay_accept(&replay, 5001));
    assert_true(replay_accept(&replay, 5002));
    assert_false(replay_accept(&replay, 5002));
    assert_true(replay_accept(&replay, UINT64_MAX));
    assert_false(replay_accept(&replay, UINT64_MAX));
    assert_true(replay_accept(&replay, UINT64_MAX - 1023));
    assert_false(replay_accept(&replay, UINT64_MAX - 1024));
    assert_false(replay_accept(&replay, 6025));
}

static void random_order(void **state)
{
    (void)state;
    enum { COUNTERS = 20000 };
    static bool seen[COUNTERS + 1];
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct rng rng;
        struct replay replay;
        memset(seen, 0, sizeof(seen));
        rng_init(&rng, seed);
        replay_begin(&replay, 0);
        uint64_t highest = 0;
        uint64_t base = 0;
        for (int i = 0; i < 60000; i++) {
            base += rng_below(&rng, 3) == 0;
            uint64_t jump = rng_below(&rng, 100) == 0 ? rng_below(&rng, 2500) : 0;
            uint64_t back = rng_below(&rng, 1200);
            uint64_t counter = base + 1100 + jump > back ? base + 1100 + jump - back : 1;
            if (counter > COUNTERS) {
                break;
            }
            bool expected = counter > 0 && !seen[counter] &&
                            (counter > highest || highest - counter < REPLAY_WINDOW);
            assert_int_equal(replay_accept(&replay, counter), expected);
            seen[counter] = seen[counter] || expected;
            highest = counter > highest ? counter : highest;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edges),
        cmocka_unit_test(random_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
