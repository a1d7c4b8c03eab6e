/*
 * tickets_row: every field comes back; what is damaged does not.
 */
#include "tests/support/unit.h"

#include "node/app/tickets_row.h"
#include "node/base/rng.h"

static struct tickets_key sample(void)
{
    struct tickets_key key = {.epoch = 7,
                              .not_before_ms = 1790000000123,
                              .creator = 0xfedcba9876543210,
                              .life_s = 43200,
                              .flags = TICKETS_ASKED | TICKETS_REVOKE};
    rng_secret(key.name, sizeof(key.name));
    rng_secret(key.secret, sizeof(key.secret));
    return key;
}

static void test_round_trip(void **state)
{
    (void)state;
    struct tickets_key key = sample(), back;
    uint8_t form[TICKETS_FORM_BYTES];
    struct err_info err = {0};
    tickets_row_encode(&key, form);
    assert_int_equal(tickets_row_decode(form, sizeof(form), &back, &err), RC_OK);
    assert_memory_equal(back.name, key.name, sizeof(key.name));
    assert_memory_equal(back.secret, key.secret, sizeof(key.secret));
    assert_int_equal(back.epoch, key.epoch);
    assert_int_equal(back.not_before_ms, key.not_before_ms);
    assert_true(back.creator == key.creator);
    assert_int_equal(back.life_s, key.life_s);
    assert_int_equal(back.flags, key.flags);
    assert_int_equal(back.hlc, 0);
}

static void test_damage(void **state)
{
    (void)state;
    struct tickets_key key = sample(), back;
    uint8_t form[TICKETS_FORM_BYTES + 1] = {0};
    struct err_info err = {0};
    tickets_row_encode(&key, form);
    assert_int_equal(tickets_row_decode(form, 0, &back, &err), RC_CORRUPT);
    assert_int_equal(tickets_row_decode(form, sizeof(form) - 2, &back, &err), RC_CORRUPT);
    assert_int_equal(tickets_row_decode(form, sizeof(form), &back, &err), RC_CORRUPT);
    form[0] = 2;
    assert_int_equal(tickets_row_decode(form, TICKETS_FORM_BYTES, &back, &err), RC_CORRUPT);
    struct tickets_key bad = key;
    bad.epoch = 0;
    tickets_row_encode(&bad, form);
    assert_int_equal(tickets_row_decode(form, TICKETS_FORM_BYTES, &back, &err), RC_CORRUPT);
    bad = key;
    bad.not_before_ms = UINT64_MAX;
    tickets_row_encode(&bad, form);
    assert_int_equal(tickets_row_decode(form, TICKETS_FORM_BYTES, &back, &err), RC_CORRUPT);
    bad = key;
    bad.life_s = TICKET_LIFE_MAX_S + 1;
    tickets_row_encode(&bad, form);
    assert_int_equal(tickets_row_decode(form, TICKETS_FORM_BYTES, &back, &err), RC_CORRUPT);
}

static void test_ids(void **state)
{
    (void)state;
    struct tickets_key key = sample();
    char id[TICKETS_ID_LEN + 1];
    uint8_t name[TICKET_NAME_BYTES];
    tickets_row_id(key.name, id);
    assert_int_equal(strlen(id), TICKETS_ID_LEN);
    assert_int_equal(tickets_row_name(id, TICKETS_ID_LEN, name), RC_OK);
    assert_memory_equal(name, key.name, sizeof(name));
    assert_int_equal(tickets_row_name(id, TICKETS_ID_LEN - 1, name), RC_INVALID);
    id[3] = 'X';
    assert_int_equal(tickets_row_name(id, TICKETS_ID_LEN, name), RC_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
