#include "fixture.h"

/* After a peer's row was lost to the disk, its frontier must not cover it; our own goes on. */
static void test_frontier_is_held_back(void **state)
{
    struct store *store = open_store(*state);
    uint64_t self = store_identity(store).node;
    write_sample(store, "a", PEER, 1, 1, "v");
    struct sample s;
    sample_make(&s, "mine", self, 1, 2, "v");
    struct gossip_batch lost = sample_batch(&s);
    store_note_failed(store, &lost);
    assert_false(store_is_frontier_held(store));
    sample_make(&s, "b", PEER, 2, 2, "v");
    store_note_failed(store, &lost);
    assert_true(store_is_frontier_held(store));
    write_sample(store, "c", PEER, 3, 3, "v");
    write_sample(store, "mine", self, 2, 4, "v");
    struct held *held = held_load(store);
    assert_true(held_seq(held, PEER) == 1);
    assert_true(held_seq(held, self) == 2);
    assert_non_null(held_find(held, "c"));
    held_free(held);

    /* Written again, but not for good: still held. */
    struct err_info err;
    sample_make(&s, "b", PEER, 4, 2, "v");
    assert_int_equal(store_begin(store, &err), RC_OK);
    assert_int_equal(store_apply(store, &lost, &err), RC_OK);
    store_rollback(store);
    assert_true(store_is_frontier_held(store));
    write_sample(store, "d", PEER, 5, 3, "v");
    held = held_load(store);
    assert_true(held_seq(held, PEER) == 1);
    held_free(held);

    /* Written again with a frontier that covers it: both count at once. */
    write_batch(store, &lost);
    assert_false(store_is_frontier_held(store));
    held = held_load(store);
    assert_true(held_seq(held, PEER) == 4);
    held_free(held);

    /* Never written again: the next start begins with a frontier that is sound. */
    sample_make(&s, "e", PEER, 6, 4, "v");
    store_note_failed(store, &lost);
    write_sample(store, "f", PEER, 7, 5, "v");
    store_close(store);

    store = open_store(*state);
    assert_false(store_is_frontier_held(store));
    held = held_load(store);
    assert_true(held_seq(held, PEER) == 4);
    held_free(held);
    write_sample(store, "e", PEER, 7, 4, "v");
    held = held_load(store);
    assert_true(held_seq(held, PEER) == 7);
    held_free(held);
    store_close(store);
}

/* Beyond what is remembered by name, only the next start releases the frontier. */
static void test_too_many_to_remember(void **state)
{
    struct store *store = open_store(*state);
    struct err_info err;
    struct sample s;
    sample_make(&s, "a", PEER, 1, 1, "v");
    struct gossip_batch lost = sample_batch(&s);
    for (int i = 0; i < 100 * 1000 + 1; i++) {
        store_note_failed(store, &lost);
    }
    assert_int_equal(sql_exec(store->db, "DELETE FROM temp.missing", &err), RC_OK);
    write_batch(store, &lost);
    assert_true(store_is_frontier_held(store));
    struct held *held = held_load(store);
    assert_non_null(held_find(held, "a"));
    assert_true(held_seq(held, PEER) == 0);
    held_free(held);
    store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FOLDER_TEST(test_frontier_is_held_back),
        FOLDER_TEST(test_too_many_to_remember),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
