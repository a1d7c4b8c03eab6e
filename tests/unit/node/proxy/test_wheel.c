/*
 * The timing wheel against a list that is searched: same deadlines, same order of ticks.
 */
#include "node/base/rng.h"
#include "node/proxy/wheel.h"
#include "tests/support/unit.h"

enum { ENTRIES = 400 };

struct item {
    struct wheel_entry entry;
    uint64_t want_ms; /* 0: none */
    int fired;
};

struct world {
    struct wheel wheel;
    struct item items[ENTRIES];
    uint64_t now_ms;
    int fired;
};

static void on_fire(void *ctx, struct wheel_entry *entry)
{
    struct world *world = ctx;
    struct item *item = CONTAINER_OF(entry, struct item, entry);
    assert_true(item->want_ms != 0 && item->want_ms <= world->now_ms);
    /* At most one tick late. */
    assert_true(world->now_ms - item->want_ms < 2 * WHEEL_TICK_MS + 1000);
    item->want_ms = 0;
    item->fired++;
    world->fired++;
}

static void advance(struct world *world, uint64_t by_ms)
{
    world->now_ms += by_ms;
    wheel_advance(&world->wheel, world->now_ms, on_fire, world);
}

static void test_fires_when_due(void **state)
{
    (void)state;
    static struct world world;
    world = (struct world){.now_ms = 1000000};
    wheel_init(&world.wheel, world.now_ms);
    struct item *item = &world.items[0];
    item->want_ms = world.now_ms + 120;
    wheel_set(&world.wheel, &item->entry, item->want_ms);
    advance(&world, 119);
    assert_int_equal(world.fired, 0);
    advance(&world, WHEEL_TICK_MS + 1);
    assert_int_equal(world.fired, 1);
    assert_int_equal(world.wheel.count, 0);
}

static void test_later_is_a_store_and_earlier_moves(void **state)
{
    (void)state;
    static struct world world;
    world = (struct world){.now_ms = 5000};
    wheel_init(&world.wheel, world.now_ms);
    struct item *item = &world.items[0];
    item->want_ms = world.now_ms + 1000;
    wheel_set(&world.wheel, &item->entry, item->want_ms);
    uint64_t tick = item->entry.tick;
    item->want_ms = world.now_ms + 60000; /* beyond a turn of the wheel */
    wheel_set(&world.wheel, &item->entry, item->want_ms);
    assert_int_equal(item->entry.tick, tick);
    advance(&world, 59000);
    assert_int_equal(world.fired, 0);
    item->want_ms = world.now_ms + 100;
    wheel_set(&world.wheel, &item->entry, item->want_ms);
    advance(&world, 100 + WHEEL_TICK_MS);
    assert_int_equal(world.fired, 1);
    /* Cleared and relaxed ones do not fire. */
    item->want_ms = world.now_ms + 100;
    wheel_set(&world.wheel, &item->entry, item->want_ms);
    wheel_relax(&item->entry);
    wheel_set(&world.wheel, &world.items[1].entry, world.now_ms + 100);
    wheel_clear(&world.wheel, &world.items[1].entry);
    wheel_clear(&world.wheel, &world.items[1].entry);
    advance(&world, 1000);
    assert_int_equal(world.fired, 1);
    assert_int_equal(world.wheel.count, 0);
}

static void on_fire_again(void *ctx, struct wheel_entry *entry)
{
    struct world *world = ctx;
    struct item *item = CONTAINER_OF(entry, struct item, entry);
    world->fired++;
    /* Sets itself into the past and clears its neighbour, which was due as well. */
    if (item->fired++ < 3) {
        wheel_set(&world->wheel, entry, 1);
    }
    wheel_clear(&world->wheel, &world->items[1].entry);
}

static void test_callbacks_may_change_the_wheel(void **state)
{
    (void)state;
    static struct world world;
    world = (struct world){.now_ms = 5000};
    wheel_init(&world.wheel, world.now_ms);
    wheel_set(&world.wheel, &world.items[0].entry, world.now_ms + 10);
    wheel_set(&world.wheel, &world.items[1].entry, world.now_ms + 10);
    for (int i = 0; i < 10; i++) {
        world.now_ms += WHEEL_TICK_MS;
        wheel_advance(&world.wheel, world.now_ms, on_fire_again, &world);
    }
    assert_int_equal(world.fired, 4);
    assert_int_equal(world.wheel.count, 0);
}

static void test_random_against_a_list(void **state)
{
    (void)state;
    static struct world world;
    struct rng rng;
    rng_init(&rng, 11);
    world = (struct world){.now_ms = 123456};
    wheel_init(&world.wheel, world.now_ms);
    for (int step = 0; step < 20000; step++) {
        struct item *item = &world.items[rng_below(&rng, ENTRIES)];
        switch (rng_below(&rng, 4)) {
        case 0:
            wheel_clear(&world.wheel, &item->entry);
            item->want_ms = 0;
            break;
        case 1:
            advance(&world, rng_below(&rng, 120));
            break;
        default:
            item->want_ms =
                world.now_ms + 1 + rng_below(&rng, rng_chance(&rng, 0.2) ? 200000 : 900);
            wheel_set(&world.wheel, &item->entry, item->want_ms);
            break;
        }
        if (step % 100 == 0) {
            for (size_t i = 0; i < ENTRIES; i++) {
                uint64_t want = world.items[i].want_ms;
                assert_true(want == 0 || want + WHEEL_TICK_MS >= world.now_ms);
            }
        }
    }
    advance(&world, 999); /* a long sleep, in one step */
    assert_true(world.fired > 1000);
}

static void test_a_very_long_sleep(void **state)
{
    (void)state;
    static struct world world;
    world = (struct world){.now_ms = 1000};
    wheel_init(&world.wheel, world.now_ms);
    for (size_t i = 0; i < ENTRIES; i++) {
        wheel_set(&world.wheel, &world.items[i].entry, world.now_ms + 1 + i * 300);
    }
    world.now_ms += 3600000;
    wheel_advance(&world.wheel, world.now_ms, on_fire_again, &world);
    world.now_ms += WHEEL_TICK_MS * WHEEL_SLOTS;
    wheel_advance(&world.wheel, world.now_ms, on_fire_again, &world);
    assert_true(world.fired >= ENTRIES - 1);
    for (size_t i = 0; i < ENTRIES; i++) {
        wheel_clear(&world.wheel, &world.items[i].entry);
    }
    assert_int_equal(world.wheel.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fires_when_due),
        cmocka_unit_test(test_later_is_a_store_and_earlier_moves),
        cmocka_unit_test(test_callbacks_may_change_the_wheel),
        cmocka_unit_test(test_random_against_a_list),
        cmocka_unit_test(test_a_very_long_sleep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
