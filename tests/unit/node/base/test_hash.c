/*
 * hash: the reference vector of the SipHash paper, and a generator that replays from its seed.
 */
#include "tests/support/unit.h"

#include "node/base/hash.h"
#include "node/base/rng.h"

static void test_siphash_vector(void **state)
{
    (void)state;
    uint8_t in[15];
    for (size_t i = 0; i < sizeof(in); i++) {
        in[i] = (uint8_t)i;
    }
    /* Appendix A of the paper: key 00..0f, message 00..0e. */
    assert_true(hash_sip64(0x0706050403020100U, 0x0f0e0d0c0b0a0908U, in, sizeof(in)) ==
                0xa129ca6149be45e5U);
    uint64_t out[2];
    hash_sip128(0x0706050403020100U, 0x0f0e0d0c0b0a0908U, in, 0, out);
    /* First vector of the reference implementation's 128-bit table: a3817f04ba25a8e6... */
    assert_true(out[0] == 0xe6a825ba047f81a3U);
}

static void test_rng_replays(void **state)
{
    (void)state;
    struct rng a, b;
    rng_init(&a, 7);
    rng_init(&b, 7);
    uint64_t below[10] = {0};
    for (int i = 0; i < 10000; i++) {
        uint64_t x = rng_below(&a, 10);
        assert_true(x == rng_below(&b, 10));
        below[x]++;
    }
    for (int i = 0; i < 10; i++) {
        assert_in_range(below[i], 800, 1200);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_siphash_vector),
        cmocka_unit_test(test_rng_replays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
