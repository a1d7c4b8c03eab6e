#include "fixture.h"

/* Largest id, value and vector, and bytes that no text would have. */
static void test_round_trip_at_the_limits(void **state)
{
    struct store *store = open_store(*state);
    char *id = mem_new(ROW_ID_MAX);
    uint8_t *value = mem_new(ROW_VALUE_MAX);
    struct dot vector[ROW_VECTOR_MAX];
    for (size_t i = 0; i < ROW_ID_MAX; i++) {
        id[i] = (char)i;
    }
    for (size_t i = 0; i < ROW_VALUE_MAX; i++) {
        value[i] = (uint8_t)(i * 31);
    }
    for (size_t i = 0; i < ROW_VECTOR_MAX; i++) {
        vector[i] = (struct dot){.origin = {.node = i + 1, .generation = 2}, .seq = i + 100};
    }
    struct row row = {
        .kind = 255,
        .id_len = ROW_ID_MAX,
        .value_len = ROW_VALUE_MAX,
        .flags = ROW_SECRET,
        .vector_len = ROW_VECTOR_MAX,
        .hlc = (uint64_t)1 << 63,
        .created_hlc = UINT64_MAX,
        .dot = vector[7],
        .id = id,
        .value = value,
        .vector = vector,
    };
    const struct row *list = &row;
    struct gossip_batch batch = {.rows = &list, .row_count = 1};
    write_batch(store, &batch);
    store_close(store);

    store = open_store(*state);
    struct held *held = held_load(store);
    assert_int_equal(held->row_count, 1);
    const struct row *back = held->rows[0];
    assert_int_equal(back->kind, 255);
    assert_int_equal(back->flags, ROW_SECRET);
    assert_true(back->hlc == row.hlc && back->created_hlc == row.created_hlc);
    assert_true(back->dot.seq == 107 && back->dot.origin.node == 8);
    assert_int_equal(back->dot.origin.generation, 2);
    assert_int_equal(back->id_len, ROW_ID_MAX);
    assert_memory_equal(back->id, id, ROW_ID_MAX);
    assert_int_equal(back->value_len, ROW_VALUE_MAX);
    assert_memory_equal(back->value, value, ROW_VALUE_MAX);
    assert_int_equal(back->vector_len, ROW_VECTOR_MAX);
    assert_true(back->vector[63].seq == 163);
    assert_int_equal(row_compare(back, &row), 0);
    held_free(held);
    store_close(store);
    mem_free(id);
    mem_free(value);
}

/* Each changed column of each table is found by its checksum. */
static void test_damaged_content_is_found(void **state)
{
    static const char *const changes[] = {
        "UPDATE entry SET kind = 3",
        "UPDATE entry SET kind = 0",
        "UPDATE entry SET id = x'62'",
        "UPDATE entry SET id = x''",
        "UPDATE entry SET stamp = x'00'",
        "UPDATE entry SET stamp = zeroblob(32)",
        "UPDATE entry SET seq = seq + 1",
        "UPDATE entry SET created = 0",
        "UPDATE entry SET flags = 1",
        "UPDATE entry SET value = x'77'",
        "UPDATE entry SET value = NULL",
        "UPDATE entry SET value = zeroblob(262145)",
        "UPDATE entry SET vector = zeroblob(20)",
        "UPDATE entry SET vector = zeroblob(1300)",
        "UPDATE entry SET vector = x''",
        "UPDATE entry SET sum = 0",
        "UPDATE frontier SET seq = seq + 1",
        "UPDATE frontier SET node = node + 1",
        "UPDATE member SET state = 4",
        "UPDATE member SET state = 2",
        "UPDATE member SET addr = x'04'",
        "UPDATE member SET name = 'another'",
        "UPDATE member SET version = zeroblob(400)",
    };
    struct store *store = open_store(*state);
    write_sample(store, "a", PEER, 1, 1, "v");
    struct gossip_member member = {.id = 4, .generation = 1, .name = "r3"};
    struct gossip_batch batch = {.members = &member, .member_count = 1};
    write_batch(store, &batch);
    struct err_info err = {0};
    assert_int_equal(store_verify(store, &err), RC_OK);
    for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
        assert_int_equal(sql_exec(store->db, "BEGIN", &err), RC_OK);
        assert_int_equal(sql_exec(store->db, changes[i], &err), RC_OK);
        if (store_verify(store, &err) != RC_CORRUPT) {
            fail_msg("not noticed: %s", changes[i]);
        }
        assert_int_equal(sql_exec(store->db, "ROLLBACK", &err), RC_OK);
    }
    assert_int_equal(store_verify(store, &err), RC_OK);
    store_close(store);
}

static int refuse_row(void *ctx, const struct row *row, struct err_info *err)
{
    (void)row;
    ++*(int *)ctx;
    return err_set(err, RC_INVALID, "not this one");
}

/* The visitor's refusal ends the load, and the store stays usable. */
static void test_visitor_may_stop(void **state)
{
    static const struct store_visitor visitor = {refuse_row, held_frontier, held_member};
    struct store *store = open_store(*state);
    write_sample(store, "a", PEER, 1, 1, "v");
    write_sample(store, "b", PEER, 2, 1, "v");
    int calls = 0;
    struct err_info err = {0};
    assert_int_equal(store_load(store, &visitor, &calls, &err), RC_INVALID);
    assert_int_equal(calls, 1);
    assert_string_equal(err.text, "not this one");
    write_sample(store, "c", PEER, 3, 1, "v");
    store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FOLDER_TEST(test_round_trip_at_the_limits),
        FOLDER_TEST(test_damaged_content_is_found),
        FOLDER_TEST(test_visitor_may_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
