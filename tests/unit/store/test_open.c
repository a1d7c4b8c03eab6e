#include "fixture.h"

static void database_path(void *folder, char out[STORE_PATH_MAX])
{
    snprintf(out, STORE_PATH_MAX, "%s/skein.db", (char *)folder);
}

/* A database of some pages, closed. Returns who it belongs to. */
static struct store_identity make_database(void *folder)
{
    struct store *store = open_store(folder);
    for (unsigned i = 0; i < 200; i++) {
        char id[32];
        snprintf(id, sizeof(id), "shop/route-%u", i);
        write_sample(store, id, PEER, i + 1, i + 1, "a value that takes some room on its page");
    }
    struct store_identity identity = store_identity(store);
    store_close(store);
    return identity;
}

/* The damaged file is kept, the node is itself with a new generation, and everything works. */
static void expect_set_aside(void *folder, struct store_identity before)
{
    char path[STORE_PATH_MAX];
    struct store_opened opened;
    struct store *store = open_noting(folder, &opened);
    assert_true(opened.set_aside && opened.created && opened.memory_lost);
    assert_non_null(strstr(opened.note, "skein.db.damaged-"));
    assert_true(find_file(folder, "skein.db.damaged-", path));
    assert_true(opened.identity.node == before.node);
    assert_int_equal(opened.identity.generation, before.generation + 1);
    struct held *held = held_load(store);
    assert_int_equal(held->row_count + held->frontier_count + held->member_count, 0);
    held_free(held);
    write_sample(store, "a", PEER, 1, 1, "v");
    store_close(store);
    store = open_noting(folder, &opened);
    assert_false(opened.set_aside || opened.created || opened.memory_lost);
    assert_string_equal(opened.note, "");
    store_close(store);
}

static void test_first_and_second_start(void **state)
{
    struct store_opened opened;
    struct store *store = open_noting(*state, &opened);
    assert_true(opened.created);
    assert_false(opened.set_aside || opened.memory_lost);
    assert_true(opened.identity.node != 0);
    assert_int_equal(opened.identity.generation, 1);
    assert_string_equal(opened.note, "");
    uint64_t node = opened.identity.node;
    write_sample(store, "a", PEER, 1, 1, "v");
    int64_t value = 0;
    struct err_info err;
    assert_int_equal(sql_int(store->db, "PRAGMA synchronous", &value, &err), RC_OK);
    assert_int_equal(value, 2);
    assert_int_equal(sql_int(store->db, "PRAGMA foreign_keys", &value, &err), RC_OK);
    assert_int_equal(value, 1);
    assert_int_equal(sql_int(store->db, "PRAGMA secure_delete", &value, &err), RC_OK);
    assert_int_equal(value, 1);
    assert_int_equal(sql_int(store->db, "PRAGMA trusted_schema", &value, &err), RC_OK);
    assert_int_equal(value, 0);
    static const char *const files[] = {"skein.db", "skein.db-wal", "skein.db-shm", "identity",
                                        "lock"};
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        char path[STORE_PATH_MAX];
        struct stat st;
        snprintf(path, sizeof(path), "%s/%s", (char *)*state, files[i]);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
    }
    store_close(store);
    char path[STORE_PATH_MAX];
    assert_false(find_file(*state, "skein.db-wal", path)); /* folded in at close */

    store = open_noting(*state, &opened);
    assert_false(opened.created || opened.set_aside || opened.memory_lost);
    assert_true(opened.identity.node == node);
    struct held *held = held_load(store);
    assert_non_null(held_find(held, "a"));
    held_free(held);
    store_close(store);
}

static void test_second_process_is_refused(void **state)
{
    struct store *store = open_store(*state);
    struct store *other = NULL;
    struct store_opened opened;
    struct err_info err = {0};
    assert_int_equal(store_open(*state, &other, &opened, &err), RC_BUSY);
    assert_non_null(strstr(err.text, *state));
    assert_null(other);
    store_close(store);
    store_close(open_store(*state));
}

static void test_overwritten_in_the_middle(void **state)
{
    struct store_identity before = make_database(*state);
    char path[STORE_PATH_MAX];
    database_path(*state, path);
    FILE *file = fopen(path, "r+");
    fseek(file, 4096 * 3, SEEK_SET);
    for (int i = 0; i < 5000; i++) {
        fputc(0x5a, file);
    }
    fclose(file);
    expect_set_aside(*state, before);
}

/* One flipped bit inside a value: SQLite does not see it, the checksum does. */
static void test_flipped_bit(void **state)
{
    struct store_identity before = make_database(*state);
    char path[STORE_PATH_MAX];
    database_path(*state, path);
    FILE *file = fopen(path, "r+");
    static char bytes[200000];
    size_t len = fread(bytes, 1, sizeof(bytes), file);
    char *spot = memmem(bytes, len, "takes some room", 15);
    assert_non_null(spot);
    fseek(file, spot - bytes, SEEK_SET);
    fputc('T', file);
    fclose(file);
    expect_set_aside(*state, before);
}

static void test_truncated(void **state)
{
    struct store_identity before = make_database(*state);
    char path[STORE_PATH_MAX];
    database_path(*state, path);
    assert_int_equal(truncate(path, 4096 + 2000), 0);
    expect_set_aside(*state, before);
}

static void test_random_file(void **state)
{
    struct store_identity before = make_database(*state);
    char bytes[10000];
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (char)(i * 2654435761U >> 7);
    }
    write_file(*state, "skein.db", bytes, sizeof(bytes));
    expect_set_aside(*state, before);
}

static void change_database(void *folder, const char *sql)
{
    char path[STORE_PATH_MAX];
    sqlite3 *db = NULL;
    struct err_info err = {0};
    database_path(folder, path);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sql_exec(db, sql, &err) != RC_OK) {
        fail_msg("%s", err.text);
    }
    sqlite3_close(db);
}

static void test_missing_table(void **state)
{
    struct store_identity before = make_database(*state);
    change_database(*state, "DROP TABLE frontier");
    expect_set_aside(*state, before);
}

static void test_missing_identity(void **state)
{
    struct store_identity before = make_database(*state);
    change_database(*state, "DELETE FROM meta");
    expect_set_aside(*state, before);
}

static void test_another_programs_database(void **state)
{
    struct store_identity before = make_database(*state);
    remove_file(*state, "skein.db");
    change_database(*state, "CREATE TABLE bookmarks (url)");
    expect_set_aside(*state, before);
}

static void test_newer_schema_is_left_alone(void **state)
{
    make_database(*state);
    change_database(*state, "PRAGMA user_version = 99");
    struct store *store = NULL;
    struct store_opened opened;
    struct err_info err = {0};
    char path[STORE_PATH_MAX];
    assert_int_equal(store_open(*state, &store, &opened, &err), RC_UNSUPPORTED);
    assert_non_null(strstr(err.text, "99"));
    assert_false(find_file(*state, "skein.db.damaged-", path));
    change_database(*state, "PRAGMA user_version = 1");
    store = open_noting(*state, &opened);
    struct held *held = held_load(store);
    assert_int_equal(held->row_count, 200);
    held_free(held);
    store_close(store);
}

/* The marker alone remembers the node: same id, next generation. */
static void test_database_vanished(void **state)
{
    struct store_identity before = make_database(*state);
    for (uint32_t i = 1; i <= 3; i++) {
        remove_file(*state, "skein.db");
        struct store_opened opened;
        struct store *store = open_noting(*state, &opened);
        assert_true(opened.created && opened.memory_lost);
        assert_false(opened.set_aside);
        assert_true(opened.identity.node == before.node);
        assert_int_equal(opened.identity.generation, before.generation + i);
        store_close(store);
    }
}

/* The log of a vanished database must not be taken into the new one. */
static void test_orphan_log(void **state)
{
    char bytes[40960];
    struct store *store = open_store(*state);
    write_sample(store, "ghost", PEER, 1, 1, "v");
    char path[STORE_PATH_MAX];
    snprintf(path, sizeof(path), "%s/skein.db-wal", (char *)*state);
    FILE *file = fopen(path, "r");
    size_t len = fread(bytes, 1, sizeof(bytes), file);
    fclose(file);
    assert_true(len > 0);
    struct store_identity before = store_identity(store);
    store_close(store);
    remove_file(*state, "skein.db");
    write_file(*state, "skein.db-wal", bytes, len);
    expect_set_aside(*state, before);
}

static void test_marker_vanished(void **state)
{
    struct store_identity before = make_database(*state);
    remove_file(*state, "identity");
    struct store_opened opened;
    struct store *store = open_noting(*state, &opened);
    assert_true(opened.memory_lost);
    assert_false(opened.created);
    assert_true(opened.identity.node == before.node);
    assert_int_equal(opened.identity.generation, before.generation + 1);
    struct held *held = held_load(store);
    assert_int_equal(held->row_count, 200);
    held_free(held);
    store_close(store);
    store = open_noting(*state, &opened);
    assert_false(opened.memory_lost);
    store_close(store);
}

static void test_old_copy_put_back(void **state)
{
    struct store_identity before = make_database(*state);
    struct store_identity ahead = {.node = before.node, .generation = 5};
    struct err_info err;
    assert_int_equal(marker_write(*state, &ahead, &err), RC_OK);
    struct store_opened opened;
    struct store *store = open_noting(*state, &opened);
    assert_true(opened.memory_lost);
    assert_true(opened.identity.node == before.node);
    assert_int_equal(opened.identity.generation, 6);
    store_close(store);
}

static void test_restart_empty(void **state)
{
    struct store_identity before = make_database(*state);
    struct store_opened opened;
    struct err_info err = {0};
    struct store *store = open_noting(*state, &opened);
    assert_int_equal(store_restart_empty(store, "row 7 makes no sense", &opened, &err), RC_OK);
    assert_true(opened.set_aside && opened.memory_lost);
    assert_non_null(strstr(opened.note, "row 7 makes no sense"));
    assert_int_equal(opened.identity.generation, before.generation + 1);
    struct held *held = held_load(store);
    assert_int_equal(held->row_count, 0);
    held_free(held);
    write_sample(store, "a", PEER, 1, 1, "v");
    store_close(store);
}

static void test_folder_that_cannot_be(void **state)
{
    struct store *store = NULL;
    struct store_opened opened;
    struct err_info err = {0};
    char path[STORE_PATH_MAX];
    snprintf(path, sizeof(path), "%s/a/b", (char *)*state);
    assert_int_equal(store_open(path, &store, &opened, &err), RC_IO);
    assert_non_null(strstr(err.text, path));
    /* A folder in the place of the database is not damage. */
    snprintf(path, sizeof(path), "%s/skein.db", (char *)*state);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(store_open(*state, &store, &opened, &err), RC_IO);
    assert_int_equal(rmdir(path), 0);
}

static void test_page_limit_of_tests(void **state)
{
    setenv("SKEIN_TEST_STORE_MAX_PAGES", "20", 1);
    struct store *store = open_store(*state);
    unsetenv("SKEIN_TEST_STORE_MAX_PAGES");
    int rc = RC_OK;
    for (unsigned i = 0; rc == RC_OK && i < 2000; i++) {
        struct sample s;
        char id[32];
        snprintf(id, sizeof(id), "row-%u", i);
        sample_make(&s, id, 1, i + 1, i + 1, "a value that takes some room on its page");
        struct gossip_batch batch = sample_batch(&s);
        rc = try_write(store, &batch);
    }
    assert_int_equal(rc, RC_NO_SPACE);
    store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FOLDER_TEST(test_first_and_second_start),
        FOLDER_TEST(test_second_process_is_refused),
        FOLDER_TEST(test_overwritten_in_the_middle),
        FOLDER_TEST(test_flipped_bit),
        FOLDER_TEST(test_truncated),
        FOLDER_TEST(test_random_file),
        FOLDER_TEST(test_missing_table),
        FOLDER_TEST(test_missing_identity),
        FOLDER_TEST(test_another_programs_database),
        FOLDER_TEST(test_newer_schema_is_left_alone),
        FOLDER_TEST(test_database_vanished),
        FOLDER_TEST(test_orphan_log),
        FOLDER_TEST(test_marker_vanished),
        FOLDER_TEST(test_old_copy_put_back),
        FOLDER_TEST(test_restart_empty),
        FOLDER_TEST(test_folder_that_cannot_be),
        FOLDER_TEST(test_page_limit_of_tests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
