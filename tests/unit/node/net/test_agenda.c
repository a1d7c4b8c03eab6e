/*
 * The agenda against a plain array: order, moves, removals from anywhere.
 */
#include "node/base/rng.h"
#include "node/net/agenda.h"
#include "tests/support/unit.h"

enum { ENTRIES = 500, STEPS = 20000 };

static uint64_t lowest(const struct agenda_entry *entries)
{
    uint64_t due = UINT64_MAX;
    for (size_t i = 0; i < ENTRIES; i++) {
        if (agenda_has(&entries[i]) && entries[i].due < due) {
            due = entries[i].due;
        }
    }
    return due;
}

static void test_against_array(void **state)
{
    (void)state;
    static struct agenda_entry entries[ENTRIES];
    struct agenda agenda;
    struct rng rng;
    agenda_init(&agenda);
    rng_init(&rng, 7);
    assert_null(agenda_first(&agenda));
    for (size_t step = 0; step < STEPS; step++) {
        struct agenda_entry *entry = &entries[rng_below(&rng, ENTRIES)];
        if (rng_below(&rng, 3) == 0) {
            agenda_clear(&agenda, entry);
            assert_false(agenda_has(entry));
        } else {
            agenda_set(&agenda, entry, rng_below(&rng, 1000));
        }
        const struct agenda_entry *first = agenda_first(&agenda);
        assert_int_equal(first != NULL ? first->due : UINT64_MAX, lowest(entries));
    }
    uint64_t last = 0;
    struct agenda_entry *entry;
    while ((entry = agenda_due(&agenda, 1000)) != NULL) {
        assert_true(entry->due >= last);
        last = entry->due;
        agenda_clear(&agenda, entry);
    }
    assert_int_equal(agenda.count, 0);
    agenda_deinit(&agenda);
}

static void test_due(void **state)
{
    (void)state;
    struct agenda agenda;
    struct agenda_entry one = {0};
    agenda_init(&agenda);
    agenda_clear(&agenda, &one); /* harmless */
    agenda_set(&agenda, &one, 5);
    assert_null(agenda_due(&agenda, 4));
    assert_ptr_equal(agenda_due(&agenda, 5), &one);
    agenda_set(&agenda, &one, 9);
    assert_null(agenda_due(&agenda, 5));
    agenda_clear(&agenda, &one);
    agenda_deinit(&agenda);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_array),
        cmocka_unit_test(test_due),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
