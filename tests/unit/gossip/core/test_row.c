/* Order, checks and copies of rows. */
#include "gossip/core/row.h"
#include "node/base/mem.h"
#include "node/base/rng.h"
#include "tests/support/unit.h"

static struct dot vector[] = {{{7, 1}, 3}, {{8, 2}, 9}};

static struct row sample(void)
{
    return (struct row){
        .kind = 4,
        .id = "shop/checkout",
        .id_len = 13,
        .value = (const uint8_t *)"value",
        .value_len = 5,
        .hlc = 1234567,
        .created_hlc = 1234500,
        .dot = {{7, 1}, 3},
        .vector = vector,
        .vector_len = 2,
    };
}

static void the_stamp_orders_as_compare_does(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 1);
    const char *values[] = {"a", "b", "c"};
    for (int i = 0; i < 5000; i++) {
        struct row rows[2];
        for (int k = 0; k < 2; k++) {
            rows[k] = sample();
            rows[k].hlc = 1 + rng_below(&rng, 3) * 0x100000000U;
            rows[k].dot.origin.node = 1 + rng_below(&rng, 2) * 0x8000000000000000U;
            rows[k].dot.origin.generation = 1 + (uint32_t)rng_below(&rng, 3) * 300;
            rows[k].value = (const uint8_t *)values[rng_below(&rng, 3)];
            rows[k].value_len = 1;
        }
        uint8_t a[ROW_STAMP_LEN];
        uint8_t b[ROW_STAMP_LEN];
        row_stamp(&rows[0], a);
        row_stamp(&rows[1], b);
        int by_bytes = memcmp(a, b, sizeof(a));
        int by_fields = row_compare(&rows[0], &rows[1]);
        assert_int_equal((by_bytes > 0) - (by_bytes < 0), (by_fields > 0) - (by_fields < 0));
        assert_int_equal(row_compare(&rows[1], &rows[0]), -by_fields);
    }
}

static void a_deletion_and_an_empty_value_are_two_versions(void **state)
{
    (void)state;
    struct row empty = sample();
    empty.value = NULL;
    empty.value_len = 0;
    struct row deleted = empty;
    deleted.flags = ROW_TOMBSTONE;
    assert_int_not_equal(row_compare(&empty, &deleted), 0);
}

static void damage_is_named(void **state)
{
    (void)state;
    struct err_info err;
    struct row row = sample();
    assert_int_equal(row_check(&row, &err), RC_OK);

    row.kind = 0;
    assert_int_equal(row_check(&row, &err), RC_INVALID);
    row = sample();
    row.kind = 256;
    assert_int_equal(row_check(&row, &err), RC_INVALID);
    row = sample();
    row.id_len = 0;
    assert_int_equal(row_check(&row, &err), RC_INVALID);
    row = sample();
    row.value_len = ROW_VALUE_MAX + 1;
    assert_int_equal(row_check(&row, &err), RC_INVALID);
    assert_non_null(strstr(err.text, "262144"));
    row = sample();
    row.flags = ROW_TOMBSTONE; /* with a value */
    assert_int_equal(row_check(&row, &err), RC_INVALID);
    row = sample();
    row.hlc = UINT64_MAX; /* nothing could ever win over it */
    assert_int_equal(row_check(&row, &err), RC_INVALID);
    row = sample();
    row.dot.seq = 4; /* the vector knows only 3 */
    assert_int_equal(row_check(&row, &err), RC_INVALID);
    row = sample();
    row.vector_len = ROW_VECTOR_MAX + 1;
    assert_int_equal(row_check(&row, &err), RC_INVALID);
    struct dot twice[] = {{{7, 1}, 3}, {{7, 1}, 4}};
    row = sample();
    row.vector = twice;
    assert_int_equal(row_check(&row, &err), RC_INVALID);
}

static void a_copy_shares_nothing(void **state)
{
    (void)state;
    char id[] = "shop/checkout";
    uint8_t value[] = "value";
    struct row row = sample();
    row.id = id;
    row.value = value;
    struct row *copy = row_copy(&row, NULL, 0);
    memset(id, 'x', 13);
    memset(value, 'y', 5);
    assert_memory_equal(copy->id, "shop/checkout", 13);
    assert_memory_equal(copy->value, "value", 5);
    assert_int_equal(copy->vector_len, 2);
    assert_ptr_not_equal(copy->vector, vector);
    mem_free(copy);

    copy = row_copy(&row, vector, 1);
    assert_int_equal(copy->vector_len, 1);
    mem_free(copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_stamp_orders_as_compare_does),
        cmocka_unit_test(a_deletion_and_an_empty_value_are_two_versions),
        cmocka_unit_test(damage_is_named),
        cmocka_unit_test(a_copy_shares_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
