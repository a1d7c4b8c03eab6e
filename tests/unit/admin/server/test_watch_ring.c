/*
 * The ring of changes: what is kept, where a watch resumes, whose tokens are taken.
 */
#include "tests/support/unit.h"

#include "admin/server/watch_ring.h"

static void add(struct watch_ring *ring, const char *id, uint64_t revision)
{
    watch_ring_add(ring, kind_by_name("Route"), id, false, revision);
}

static void test_events_are_found_in_order(void **state)
{
    (void)state;
    struct watch_ring ring;
    watch_ring_init(&ring, 4, 100);
    assert_null(watch_ring_find(&ring, 0));
    assert_null(watch_ring_find(&ring, 1));
    add(&ring, "a/1", 101);
    watch_ring_add(&ring, kind_by_name("Backend"), "a/2", true, 102);
    assert_string_equal(watch_ring_find(&ring, 1)->id, "a/1");
    assert_true(watch_ring_find(&ring, 2)->deleted);
    assert_ptr_equal(watch_ring_find(&ring, 2)->kind, kind_by_name("Backend"));
    assert_null(watch_ring_find(&ring, 3));
    watch_ring_deinit(&ring);
}

static void test_old_events_are_forgotten(void **state)
{
    (void)state;
    struct watch_ring ring;
    struct err_info err;
    uint64_t seq = 0;
    watch_ring_init(&ring, 4, 100);
    for (uint64_t i = 1; i <= 6; i++) {
        add(&ring, "a/x", 100 + i);
    }
    assert_true(watch_ring_is_gone(&ring, 2));
    assert_false(watch_ring_is_gone(&ring, 3));
    assert_null(watch_ring_find(&ring, 2));
    assert_int_equal(watch_ring_find(&ring, 3)->revision, 103);
    assert_int_equal(ring.base, 102);
    assert_int_equal(watch_ring_seek(&ring, 101, 106, &seq, &err), RC_NOT_FOUND);
    assert_non_null(strstr(err.text, "too old"));
    assert_int_equal(watch_ring_seek(&ring, 102, 106, &seq, &err), RC_OK);
    assert_int_equal(seq, 3);
    assert_int_equal(watch_ring_seek(&ring, 104, 106, &seq, &err), RC_OK);
    assert_int_equal(seq, 5);
    assert_int_equal(watch_ring_seek(&ring, 106, 106, &seq, &err), RC_OK);
    assert_int_equal(seq, 7);
    assert_int_equal(watch_ring_seek(&ring, 107, 106, &seq, &err), RC_NOT_FOUND);
    assert_non_null(strstr(err.text, "ahead"));
    watch_ring_deinit(&ring);
}

static void test_seek_in_an_empty_ring(void **state)
{
    (void)state;
    struct watch_ring ring;
    struct err_info err;
    uint64_t seq = 0;
    watch_ring_init(&ring, 4, 100);
    assert_int_equal(watch_ring_seek(&ring, 100, 100, &seq, &err), RC_OK);
    assert_int_equal(seq, 1);
    assert_int_equal(watch_ring_seek(&ring, 99, 100, &seq, &err), RC_NOT_FOUND);
    watch_ring_deinit(&ring);
}

/* Several events of one revision: only the last may be resumed behind. */
static void test_resume_never_splits_a_revision(void **state)
{
    (void)state;
    struct watch_ring ring;
    struct err_info err;
    uint64_t seq;
    watch_ring_init(&ring, 8, 100);
    add(&ring, "a/1", 101);
    add(&ring, "a/2", 105);
    add(&ring, "a/3", 105);
    add(&ring, "a/4", 105);
    add(&ring, "a/5", 106);
    assert_int_equal(watch_ring_resume(&ring, 1), 101);
    assert_int_equal(watch_ring_resume(&ring, 2), 101);
    assert_int_equal(watch_ring_resume(&ring, 3), 101);
    assert_int_equal(watch_ring_resume(&ring, 4), 105);
    assert_int_equal(watch_ring_resume(&ring, 5), 106);
    assert_int_equal(watch_ring_seek(&ring, watch_ring_resume(&ring, 3), 106, &seq, &err), RC_OK);
    assert_int_equal(seq, 2); /* repeats, loses nothing */
    watch_ring_deinit(&ring);
}

static void test_first_revision_split(void **state)
{
    (void)state;
    struct watch_ring ring;
    watch_ring_init(&ring, 8, 100);
    add(&ring, "a/1", 101);
    add(&ring, "a/2", 101);
    assert_int_equal(watch_ring_resume(&ring, 1), 100);
    assert_int_equal(watch_ring_resume(&ring, 2), 101);
    watch_ring_deinit(&ring);
}

static void test_revisions_never_fall(void **state)
{
    (void)state;
    struct watch_ring ring;
    watch_ring_init(&ring, 4, 100);
    add(&ring, "a/1", 50);
    assert_int_equal(watch_ring_find(&ring, 1)->revision, 100);
    add(&ring, "a/2", 103);
    add(&ring, "a/3", 102);
    assert_int_equal(watch_ring_find(&ring, 3)->revision, 103);
    watch_ring_deinit(&ring);
}

static void test_tokens(void **state)
{
    (void)state;
    struct err_info err;
    uint64_t revision = 0;
    char token[WATCH_TOKEN_MAX];
    assert_string_equal(watch_token_format("r1", 42, token), "r1:42");
    assert_int_equal(watch_token_parse("r1:42", "r1", &revision, &err), RC_OK);
    assert_int_equal(revision, 42);
    assert_int_equal(watch_token_parse("43", "r1", &revision, &err), RC_OK);
    assert_int_equal(revision, 43);
    assert_int_equal(watch_token_parse("r2:42", "r1", &revision, &err), RC_NOT_FOUND);
    assert_non_null(strstr(err.text, "\"r2\""));
    assert_non_null(strstr(err.text, "\"r1\""));
    assert_int_equal(watch_token_parse("r11:1", "r1", &revision, &err), RC_NOT_FOUND);
    static const char *const bad[] = {"", "r1:", "x", "r1:4x", "-1", "9999999999999999999"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(watch_token_parse(bad[i], "r1", &revision, &err), RC_INVALID);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events_are_found_in_order),
        cmocka_unit_test(test_old_events_are_forgotten),
        cmocka_unit_test(test_seek_in_an_empty_ring),
        cmocka_unit_test(test_resume_never_splits_a_revision),
        cmocka_unit_test(test_first_revision_split),
        cmocka_unit_test(test_revisions_never_fall),
        cmocka_unit_test(test_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
