/*
 * hash: the reference vector of the SipHash paper, the spread of the hash of tables, and a
 * generator that replays from its seed.
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

/* Host names that differ in few bytes fill a table as evenly as random numbers do, in low and in
 * high bits, and lengths count. */
static void test_fold_spreads(void **state)
{
    (void)state;
    enum { NAMES = 100000, SLOTS = 65536 };
    static uint8_t low[SLOTS], high[SLOTS];
    const uint64_t key[2] = {0x0123456789abcdefU, 0xfedcba9876543210U}, other[2] = {1, 2};
    char name[64];
    size_t used_low = 0, used_high = 0;
    for (int i = 0; i < NAMES; i++) {
        size_t len = (size_t)snprintf(name, sizeof(name), "h%d.%sexample.com", i,
                                      i % 2 == 0 ? "" : "a-longer-domain-than-most.");
        uint64_t hash = hash_fold64(key, name, len);
        assert_true(hash != hash_fold64(other, name, len));
        used_low += low[hash % SLOTS]++ == 0;
        used_high += high[hash >> 48]++ == 0;
    }
    /* Random: 65,536 * (1 - e^-(100,000 / 65,536)) = 51,287 with a deviation of about 90. */
    assert_in_range(used_low, 50700, 51900);
    assert_in_range(used_high, 50700, 51900);

    static const uint8_t zeros[40];
    uint64_t seen[41];
    for (size_t len = 0; len <= 40; len++) {
        seen[len] = hash_fold64(key, zeros, len);
        for (size_t i = 0; i < len; i++) {
            assert_true(seen[i] != seen[len]);
        }
    }
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
        cmocka_unit_test(test_fold_spreads),
        cmocka_unit_test(test_rng_replays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
