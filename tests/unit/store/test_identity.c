#include "fixture.h"

static void test_marker_round_trip(void **state)
{
    struct store_identity out = {.node = 0xfedcba9876543210U, .generation = 4000000000U};
    struct store_identity in = {0};
    struct err_info err;
    assert_int_equal(marker_read(*state, &in, &err), RC_NOT_FOUND);
    assert_int_equal(marker_write(*state, &out, &err), RC_OK);
    assert_int_equal(marker_read(*state, &in, &err), RC_OK);
    assert_true(in.node == out.node && in.generation == out.generation);
    out.generation = 1;
    assert_int_equal(marker_write(*state, &out, &err), RC_OK);
    assert_int_equal(marker_read(*state, &in, &err), RC_OK);
    assert_int_equal(in.generation, 1);
}

/* Each single changed byte is noticed, and so is a short or long file. */
static void test_marker_damage(void **state)
{
    struct store_identity identity = {.node = 0x1122334455667788U, .generation = 7};
    struct err_info err;
    char path[STORE_PATH_MAX];
    char text[256];
    assert_int_equal(marker_write(*state, &identity, &err), RC_OK);
    snprintf(path, sizeof(path), "%s/identity", (char *)*state);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t len = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    for (size_t i = 0; i < len; i++) {
        text[i] ^= 1;
        write_file(*state, "identity", text, len);
        assert_int_equal(marker_read(*state, &identity, &err), RC_CORRUPT);
        text[i] ^= 1;
    }
    for (size_t i = 0; i < len; i++) {
        write_file(*state, "identity", text, i);
        assert_int_equal(marker_read(*state, &identity, &err), RC_CORRUPT);
    }
    text[len] = '\n';
    write_file(*state, "identity", text, len + 1);
    assert_int_equal(marker_read(*state, &identity, &err), RC_CORRUPT);
    assert_int_equal(identity.generation, 7);
}

/* The table of store.h, row by row. */
static void test_decide(void **state)
{
    (void)state;
    static const struct {
        struct store_identity marker; /* node 0: none */
        struct store_identity stored;
        uint32_t seen;
        uint64_t want_node;
        uint32_t want_generation;
        bool want_lost;
    } rows[] = {
        {{0}, {0}, 0, 9, 1, false},
        {{.node = 5, .generation = 3}, {0}, 0, 5, 4, true},
        {{.node = 5, .generation = 3}, {.node = 5, .generation = 3}, 0, 5, 3, false},
        {{.node = 5, .generation = 3}, {.node = 5, .generation = 3}, 3, 5, 3, false},
        {{.node = 5, .generation = 3}, {.node = 5, .generation = 2}, 0, 5, 4, true},
        {{.node = 5, .generation = 2}, {.node = 5, .generation = 3}, 0, 5, 3, false},
        {{.node = 5, .generation = 3}, {.node = 6, .generation = 8}, 0, 5, 4, true},
        {{.node = 5, .generation = 3}, {.node = 6, .generation = 8}, 7, 5, 8, true},
        {{.node = 5, .generation = 3}, {.node = 5, .generation = 3}, 9, 5, 10, true},
        {{0}, {.node = 6, .generation = 8}, 0, 6, 9, true},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct store_opened opened = {0};
        struct err_info err;
        assert_int_equal(identity_decide(rows[i].marker.node != 0 ? &rows[i].marker : NULL,
                                         rows[i].stored.node != 0 ? &rows[i].stored : NULL,
                                         rows[i].seen, 9, &opened, &err),
                         RC_OK);
        assert_true(opened.identity.node == rows[i].want_node);
        assert_int_equal(opened.identity.generation, rows[i].want_generation);
        assert_int_equal(opened.memory_lost, rows[i].want_lost);
        assert_int_equal(opened.note[0] != '\0', rows[i].want_lost);
    }
}

static void test_generations_end(void **state)
{
    (void)state;
    struct store_identity marker = {.node = 5, .generation = UINT32_MAX};
    struct store_opened opened = {0};
    struct err_info err;
    assert_int_equal(identity_decide(&marker, NULL, 0, 9, &opened, &err), RC_INVALID);
    assert_non_null(strstr(err.text, "empty the data folder"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FOLDER_TEST(test_marker_round_trip),
        FOLDER_TEST(test_marker_damage),
        cmocka_unit_test(test_decide),
        cmocka_unit_test(test_generations_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
