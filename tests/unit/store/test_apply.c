#include "fixture.h"

static void check_value(struct store *store, const char *id, const char *value)
{
    struct held *held = held_load(store);
    const struct row *row = held_find(held, id);
    assert_non_null(row);
    assert_int_equal(row->value_len, strlen(value));
    assert_memory_equal(row->value, value, strlen(value));
    held_free(held);
}

/* Whatever order two versions of one key come in, the larger stamp stays. */
static void test_larger_stamp_wins(void **state)
{
    struct store *store = open_store(*state);
    write_sample(store, "a", 1, 1, 1000, "first");
    write_sample(store, "a", 2, 1, 2000, "newer");
    check_value(store, "a", "newer");
    write_sample(store, "a", 1, 2, 1500, "late");
    check_value(store, "a", "newer");
    /* One clock reading: the larger node id wins. */
    write_sample(store, "a", 1, 3, 2000, "smaller node");
    check_value(store, "a", "newer");
    write_sample(store, "a", 3, 1, 2000, "larger node");
    check_value(store, "a", "larger node");
    /* Numbers beyond the signed range order as what they are. */
    write_sample(store, "a", UINT64_MAX, 1, 2000, "largest node");
    check_value(store, "a", "largest node");
    write_sample(store, "a", 1, 4, ((uint64_t)1 << 63) + 1, "far future");
    check_value(store, "a", "far future");
    struct held *held = held_load(store);
    assert_int_equal(held->row_count, 1);
    held_free(held);
    store_close(store);
}

/* An equal stamp is the same version with a merged vector: that is stored. */
static void test_equal_stamp_updates_vector(void **state)
{
    struct store *store = open_store(*state);
    struct sample s;
    sample_make(&s, "a", 1, 1, 1000, "v");
    struct gossip_batch batch = sample_batch(&s);
    write_batch(store, &batch);
    struct dot both[2] = {s.dot, {.origin = {.node = 2, .generation = 1}, .seq = 9}};
    s.row.vector = both;
    s.row.vector_len = 2;
    write_batch(store, &batch);
    struct held *held = held_load(store);
    assert_int_equal(held->rows[0]->vector_len, 2);
    assert_true(held->rows[0]->vector[1].seq == 9);
    held_free(held);
    store_close(store);
}

static void test_tombstone_beats_value(void **state)
{
    struct store *store = open_store(*state);
    write_sample(store, "a", 1, 1, 1000, "value");
    struct sample s;
    sample_make(&s, "a", 1, 2, 1001, "");
    s.row.flags = ROW_TOMBSTONE;
    s.row.value = NULL;
    struct gossip_batch batch = sample_batch(&s);
    write_batch(store, &batch);
    write_sample(store, "a", 1, 1, 1000, "value");
    struct held *held = held_load(store);
    assert_int_equal(held->rows[0]->flags, ROW_TOMBSTONE);
    assert_int_equal(held->rows[0]->value_len, 0);
    held_free(held);
    store_close(store);
}

static void test_frontier_only_grows(void **state)
{
    struct store *store = open_store(*state);
    static const uint64_t seqs[] = {5, 3, 9, 8, UINT64_MAX, 10};
    static const uint64_t want[] = {5, 5, 9, 9, UINT64_MAX, UINT64_MAX};
    for (size_t i = 0; i < ARRAY_LEN(seqs); i++) {
        struct dot dot = {.origin = {.node = PEER, .generation = 1}, .seq = seqs[i]};
        struct gossip_batch batch = {.frontier = &dot, .frontier_count = 1};
        write_batch(store, &batch);
        struct held *held = held_load(store);
        assert_true(held_seq(held, PEER) == want[i]);
        held_free(held);
    }
    store_close(store);
}

static void test_members(void **state)
{
    struct store *store = open_store(*state);
    struct gossip_member members[2] = {
        {.id = UINT64_MAX,
         .generation = 3,
         .incarnation = 1000,
         .state = MEMBER_SUSPECT,
         .name = "r2",
         .version = "0.1.0"},
        {.id = 4, .generation = 1, .name = "r3"},
    };
    struct err_info err;
    assert_int_equal(addr_parse("[::1]:7946", &members[0].addr, &err), RC_OK);
    memset(members[1].name, 'n', GOSSIP_NAME_MAX - 1);
    struct gossip_batch batch = {.members = members, .member_count = 2};
    write_batch(store, &batch);
    members[0].state = MEMBER_DEAD;
    write_batch(store, &batch);
    store_close(store);

    store = open_store(*state);
    struct held *held = held_load(store);
    assert_int_equal(held->member_count, 2);
    const struct gossip_member *first = &held->members[held->members[0].id == 4 ? 1 : 0];
    const struct gossip_member *second = &held->members[held->members[0].id == 4 ? 0 : 1];
    assert_true(first->id == UINT64_MAX);
    assert_int_equal(first->generation, 3);
    assert_true(first->incarnation == 1000);
    assert_int_equal(first->state, MEMBER_DEAD);
    assert_int_equal(addr_compare(&first->addr, &members[0].addr), 0);
    assert_string_equal(first->name, "r2");
    assert_string_equal(first->version, "0.1.0");
    assert_string_equal(second->name, members[1].name);
    held_free(held);

    uint64_t gone = UINT64_MAX;
    batch = (struct gossip_batch){.forgotten = &gone, .forgotten_count = 1};
    write_batch(store, &batch);
    held = held_load(store);
    assert_int_equal(held->member_count, 1);
    assert_true(held->members[0].id == 4);
    held_free(held);
    store_close(store);
}

/* Incarnations and generations only grow, reach the marker, and a rollback takes them back. */
static void test_identity(void **state)
{
    struct store *store = open_store(*state);
    struct store_identity begun = store_identity(store);
    struct err_info err;
    assert_int_equal(store_begin(store, &err), RC_OK);
    struct gossip_batch batch = {.incarnation_limit = 1000};
    assert_int_equal(store_apply(store, &batch, &err), RC_OK);
    store_rollback(store);
    assert_true(store_identity(store).incarnation_limit == 0);

    write_batch(store, &batch);
    batch = (struct gossip_batch){.incarnation_limit = 500, .generation = 1};
    write_batch(store, &batch);
    assert_true(store_identity(store).incarnation_limit == 1000);
    batch = (struct gossip_batch){.generation = 6};
    write_batch(store, &batch);
    struct store_identity marker;
    assert_int_equal(marker_read(*state, &marker, &err), RC_OK);
    assert_int_equal(marker.generation, 6);
    store_close(store);

    struct store_opened opened;
    store = open_noting(*state, &opened);
    assert_true(opened.identity.node == begun.node);
    assert_int_equal(opened.identity.generation, 6);
    assert_true(opened.identity.incarnation_limit == 1000);
    assert_false(opened.memory_lost);
    store_close(store);
}

/* One bad batch is left out; those before and after it, in the same transaction, stay. */
static void test_bad_batch_alone_fails(void **state)
{
    struct store *store = open_store(*state);
    struct err_info err = {0};
    struct sample good;
    struct sample bad[2];
    const struct row *rows[2] = {&bad[0].row, &bad[1].row};
    sample_make(&bad[0], "half", 1, 2, 1, "v");
    sample_make(&bad[1], "bad", 1, 3, 1, "v");
    bad[1].row.id_len = 0;
    struct gossip_batch bad_batch = {
        .rows = rows, .row_count = 2, .frontier = &bad[1].dot, .frontier_count = 1};
    sample_make(&good, "good", 1, 1, 1, "v");
    struct gossip_batch batch = sample_batch(&good);
    assert_int_equal(store_begin(store, &err), RC_OK);
    assert_int_equal(store_apply(store, &batch, &err), RC_OK);
    assert_int_equal(store_apply(store, &bad_batch, &err), RC_INVALID);
    assert_true(store_is_open_transaction(store));
    sample_make(&good, "after", 1, 4, 1, "v");
    assert_int_equal(store_apply(store, &batch, &err), RC_OK);
    assert_int_equal(store_commit(store, &err), RC_OK);
    struct held *held = held_load(store);
    assert_int_equal(held->row_count, 2);
    assert_null(held_find(held, "half"));
    assert_non_null(held_find(held, "after"));
    held_free(held);
    store_close(store);
}

/* A statement that fails inside the savepoint takes back what its batch had done before. */
static void test_constraint_undoes_the_batch(void **state)
{
    struct store *store = open_store(*state);
    struct err_info err = {0};
    assert_int_equal(sql_exec(store->db,
                              "CREATE TRIGGER no_dots BEFORE INSERT ON frontier"
                              " WHEN NEW.seq = 13 BEGIN SELECT RAISE(ABORT, 'no'); END",
                              &err),
                     RC_OK);
    struct sample s;
    sample_make(&s, "a", 1, 13, 1, "v");
    struct gossip_batch batch = sample_batch(&s);
    batch.incarnation_limit = 7000;
    assert_int_equal(store_begin(store, &err), RC_OK);
    assert_int_equal(store_apply(store, &batch, &err), RC_INVALID);
    assert_true(store_is_open_transaction(store));
    assert_int_equal(store_commit(store, &err), RC_OK);
    assert_true(store_identity(store).incarnation_limit == 0);
    struct held *held = held_load(store);
    assert_int_equal(held->row_count, 0);
    held_free(held);
    store_close(store);
}

static void test_full_disk(void **state)
{
    struct store *store = open_store(*state);
    struct err_info err = {0};
    write_sample(store, "before", 1, 1, 1, "v");
    assert_int_equal(sql_exec(store->db, "PRAGMA max_page_count = 1", &err), RC_OK);
    int rc = RC_OK;
    uint64_t seq = 2;
    for (; rc == RC_OK && seq < 1000; seq++) {
        struct sample s;
        char id[32];
        snprintf(id, sizeof(id), "row-%04u", (unsigned)seq);
        sample_make(&s, id, 1, seq, seq, "some value of a few bytes");
        struct gossip_batch batch = sample_batch(&s);
        rc = try_write(store, &batch);
    }
    assert_int_equal(rc, RC_NO_SPACE);
    assert_false(store_is_open_transaction(store));
    struct held *held = held_load(store);
    assert_int_equal(held->row_count, seq - 2);
    assert_true(held_seq(held, 1) == seq - 2);
    held_free(held);
    assert_int_equal(sql_exec(store->db, "PRAGMA max_page_count = 100000", &err), RC_OK);
    write_sample(store, "after", 1, seq, seq, "v");
    store_close(store);
    store = open_store(*state);
    held = held_load(store);
    assert_non_null(held_find(held, "after"));
    held_free(held);
    store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FOLDER_TEST(test_larger_stamp_wins),
        FOLDER_TEST(test_equal_stamp_updates_vector),
        FOLDER_TEST(test_tombstone_beats_value),
        FOLDER_TEST(test_frontier_only_grows),
        FOLDER_TEST(test_members),
        FOLDER_TEST(test_identity),
        FOLDER_TEST(test_bad_batch_alone_fails),
        FOLDER_TEST(test_constraint_undoes_the_batch),
        FOLDER_TEST(test_full_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
