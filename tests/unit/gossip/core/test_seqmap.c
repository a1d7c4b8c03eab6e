/* The ordered map against a plain array. */
#include "gossip/core/seqmap.h"
#include "node/base/rng.h"
#include "tests/support/unit.h"

enum { SEQS = 200, TIES = 3 };

static bool held[SEQS][TIES];

static void check_above(const struct seqmap *map, uint64_t seq, uint64_t tie)
{
    const struct seqmap_node *node = seqmap_above(map, seq, tie);
    for (uint64_t s = seq; s < SEQS; s++) {
        for (uint64_t t = 0; t < TIES; t++) {
            if (held[s][t] && (s > seq || t > tie)) {
                assert_non_null(node);
                assert_int_equal(node->seq, s);
                assert_int_equal(node->tie, t);
                return;
            }
        }
    }
    assert_null(node);
}

static void it_answers_as_an_array_does(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 3);
    struct seqmap map;
    seqmap_init(&map, 99);
    size_t count = 0;
    for (int i = 0; i < 20000; i++) {
        uint64_t seq = rng_below(&rng, SEQS);
        uint64_t tie = rng_below(&rng, TIES);
        if (rng_chance(&rng, 0.5) && !held[seq][tie]) {
            seqmap_put(&map, seq, tie, &held[seq][tie]);
            held[seq][tie] = true;
            count++;
        } else {
            seqmap_remove(&map, seq, tie);
            count -= held[seq][tie] ? 1 : 0;
            held[seq][tie] = false;
        }
        assert_int_equal(map.count, count);
        check_above(&map, rng_below(&rng, SEQS), rng_below(&rng, TIES));
    }
    uint64_t max = 0;
    for (uint64_t s = 0; s < SEQS; s++) {
        max = held[s][0] || held[s][1] || held[s][2] ? s : max;
    }
    assert_int_equal(seqmap_max(&map), max);
    seqmap_deinit(&map);
}

static void a_walk_meets_everything_in_order(void **state)
{
    (void)state;
    struct seqmap map;
    seqmap_init(&map, 5);
    assert_null(seqmap_above(&map, 0, 0));
    assert_int_equal(seqmap_max(&map), 0);
    for (uint64_t i = 100000; i > 0; i--) {
        seqmap_put(&map, i, 0, &map);
    }
    uint64_t expect = 0;
    const struct seqmap_node *node = NULL;
    while ((node = seqmap_above(&map, expect, UINT64_MAX)) != NULL) {
        assert_int_equal(node->seq, ++expect);
    }
    assert_int_equal(expect, 100000);
    seqmap_deinit(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_answers_as_an_array_does),
        cmocka_unit_test(a_walk_meets_everything_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
