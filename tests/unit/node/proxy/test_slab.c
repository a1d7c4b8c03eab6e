/*
 * The slab: objects that do not overlap, recycling, and both sizes of slabs.
 */
#include "node/proxy/slab.h"
#include "tests/support/unit.h"

enum { SIZE = 100, OBJECTS = 30000 }; /* more than the small slabs hold */

static void test_objects_are_apart(void **state)
{
    (void)state;
    static unsigned char *taken[OBJECTS];
    struct slab slab;
    slab_init(&slab, SIZE);
    for (size_t i = 0; i < OBJECTS; i++) {
        taken[i] = slab_take(&slab);
        assert_int_equal((uintptr_t)taken[i] % CACHE_LINE, 0);
        for (size_t j = 0; j < SIZE; j++) {
            assert_int_equal(taken[i][j], 0);
        }
        memset(taken[i], (int)(i % 255) + 1, SIZE);
    }
    for (size_t i = 0; i < OBJECTS; i++) {
        assert_int_equal(taken[i][0], i % 255 + 1);
        assert_int_equal(taken[i][SIZE - 1], i % 255 + 1);
        slab_put(&slab, taken[i]);
    }
    slab_deinit(&slab);
}

static void test_what_is_put_back_is_taken_again(void **state)
{
    (void)state;
    struct slab slab;
    slab_init(&slab, SIZE);
    for (size_t i = 0; i < OBJECTS; i++) {
        unsigned char *object = slab_take(&slab);
        assert_int_equal(object[SIZE - 1], 0);
        memset(object, 1, SIZE);
        slab_put(&slab, object);
    }
    assert_true(slab.count <= 1);
    slab_deinit(&slab);
    slab_deinit(&slab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_objects_are_apart),
        cmocka_unit_test(test_what_is_put_back_is_taken_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
