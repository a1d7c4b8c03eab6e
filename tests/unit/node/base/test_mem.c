/*
 * mem and timesrc: fresh memory is zero, copies end in NUL, and texts of time are those of RFC
 * 3339. covers: mem.c, timesrc.c, rng.c
 */
#include "tests/support/unit.h"

#include "node/base/mem.h"
#include "node/base/rng.h"
#include "node/base/timesrc.h"

static void test_copies(void **state)
{
    (void)state;
    char *text = mem_strndup("abcdef", 3);
    assert_string_equal(text, "abc");
    mem_free(text);
    text = mem_printf("%d-%s", 7, "x");
    assert_string_equal(text, "7-x");
    MEM_FREE(text);
    assert_null(text);
    uint64_t *numbers = mem_array(100, sizeof(*numbers));
    for (int i = 0; i < 100; i++) {
        assert_true(numbers[i] == 0);
    }
    numbers = mem_grow(numbers, 200, sizeof(*numbers));
    mem_free(numbers);
}

static void test_time(void **state)
{
    (void)state;
    char text[TIME_TEXT_MAX];
    assert_string_equal(time_format_wall(0, text), "1970-01-01T00:00:00.000Z");
    assert_string_equal(time_format_wall(1798713296789U, text), "2026-12-31T10:34:56.789Z");
    uint64_t before = time_mono_ns();
    assert_true(time_mono_ns() >= before);
    assert_true(time_wall_ms() > 1700000000000U);
}

static void test_secrets_differ(void **state)
{
    (void)state;
    assert_true(rng_secret_u64() != rng_secret_u64());
    uint8_t bytes[1000] = {0};
    rng_secret(bytes, sizeof(bytes));
    unsigned ones = 0;
    for (size_t i = 0; i < sizeof(bytes); i++) {
        ones += (unsigned)__builtin_popcount(bytes[i]);
    }
    assert_in_range(ones, 3600, 4400);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_time),
        cmocka_unit_test(test_secrets_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
