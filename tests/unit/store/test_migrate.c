#include "fixture.h"

static sqlite3 *memory_db(void)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    return db;
}

static int64_t number(sqlite3 *db, const char *sql)
{
    int64_t value = -1;
    struct err_info err = {0};
    if (sql_int(db, sql, &value, &err) != RC_OK) {
        fail_msg("%s", err.text);
    }
    return value;
}

static const char *const steps[] = {
    "CREATE TABLE a (x); INSERT INTO a VALUES (1);",
    "ALTER TABLE a ADD COLUMN y; UPDATE a SET y = x + 1;",
    "CREATE TABLE b AS SELECT y AS z FROM a; DROP TABLE a;",
};

/* Whatever version a database has, it ends at the newest with its content. */
static void test_forward_from_each(void **state)
{
    (void)state;
    for (size_t from = 0; from <= ARRAY_LEN(steps); from++) {
        sqlite3 *db = memory_db();
        struct err_info err;
        assert_int_equal(migrate(db, steps, from, &err), RC_OK);
        assert_int_equal(number(db, "PRAGMA user_version"), from);
        assert_int_equal(migrate(db, steps, ARRAY_LEN(steps), &err), RC_OK);
        assert_int_equal(number(db, "PRAGMA user_version"), ARRAY_LEN(steps));
        assert_int_equal(number(db, "SELECT z FROM b"), 2);
        sqlite3_close(db);
    }
}

static void test_failed_step_leaves_no_trace(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "CREATE TABLE a (x);",
        "INSERT INTO a VALUES (5); INSERT INTO nowhere VALUES (1);",
    };
    sqlite3 *db = memory_db();
    struct err_info err = {0};
    assert_int_not_equal(migrate(db, bad, 2, &err), RC_OK);
    assert_non_null(strstr(err.text, "version 2"));
    assert_int_equal(number(db, "PRAGMA user_version"), 1);
    assert_int_equal(number(db, "SELECT count(*) FROM a"), 0);
    sqlite3_close(db);
}

static void test_newer_is_refused(void **state)
{
    (void)state;
    sqlite3 *db = memory_db();
    struct err_info err = {0};
    assert_int_equal(migrate(db, steps, 3, &err), RC_OK);
    assert_int_equal(migrate(db, steps, 2, &err), RC_UNSUPPORTED);
    assert_non_null(strstr(err.text, "version 3"));
    sqlite3_close(db);
}

static void test_foreign_database(void **state)
{
    (void)state;
    static const char *const foreign[] = {
        "CREATE TABLE bookmarks (url)",
        "PRAGMA user_version = 1",
        "PRAGMA application_id = 7",
    };
    for (size_t i = 0; i < ARRAY_LEN(foreign); i++) {
        sqlite3 *db = memory_db();
        struct err_info err = {0};
        assert_int_equal(sql_exec(db, foreign[i], &err), RC_OK);
        assert_int_equal(migrate(db, steps, 3, &err), RC_CORRUPT);
        sqlite3_close(db);
    }
}

/* The real list builds, and its first version never changes: old databases have it. */
static void test_schema(void **state)
{
    (void)state;
    sqlite3 *db = memory_db();
    struct err_info err = {0};
    assert_int_equal(migrate(db, store_migrations, store_migration_count, &err), RC_OK);
    assert_int_equal(number(db, "SELECT count(*) FROM sqlite_schema WHERE type = 'table'"), 4);
    assert_int_equal(number(db, "PRAGMA application_id"), STORE_APPLICATION_ID);
    sqlite3_close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forward_from_each),
        cmocka_unit_test(test_failed_step_leaves_no_trace),
        cmocka_unit_test(test_newer_is_refused),
        cmocka_unit_test(test_foreign_database),
        cmocka_unit_test(test_schema),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
