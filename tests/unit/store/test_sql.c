#include "fixture.h"

#include <errno.h>

static void test_result_codes(void **state)
{
    (void)state;
    errno = 0;
    assert_int_equal(sql_rc(SQLITE_OK, NULL), RC_OK);
    assert_int_equal(sql_rc(SQLITE_DONE, NULL), RC_OK);
    assert_int_equal(sql_rc(SQLITE_FULL, NULL), RC_NO_SPACE);
    assert_int_equal(sql_rc(SQLITE_CORRUPT_INDEX, NULL), RC_CORRUPT);
    assert_int_equal(sql_rc(SQLITE_NOTADB, NULL), RC_CORRUPT);
    assert_int_equal(sql_rc(SQLITE_IOERR_FSYNC, NULL), RC_IO);
    assert_int_equal(sql_rc(SQLITE_CONSTRAINT_NOTNULL, NULL), RC_INVALID);
    assert_int_equal(sql_rc(SQLITE_BUSY_SNAPSHOT, NULL), RC_BUSY);
    assert_int_equal(sql_rc(SQLITE_NOMEM, NULL), RC_NO_MEMORY);
    errno = EDQUOT;
    assert_int_equal(sql_rc(SQLITE_IOERR_WRITE, NULL), RC_NO_SPACE);
    errno = EIO;
    assert_int_equal(sql_rc(SQLITE_IOERR_WRITE, NULL), RC_IO);
}

static void test_int_and_errors(void **state)
{
    (void)state;
    sqlite3 *db = NULL;
    int64_t value = 0;
    struct err_info err = {0};
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    assert_int_equal(sql_int(db, "SELECT 41 + 1", &value, &err), RC_OK);
    assert_int_equal(value, 42);
    assert_int_equal(sql_int(db, "SELECT 1 WHERE 0", &value, &err), RC_NOT_FOUND);
    assert_int_equal(sql_int(db, "SELECT * FROM nowhere", &value, &err), RC_IO);
    assert_non_null(strstr(err.text, "no such table"));
    assert_int_equal(sql_exec(db, "CREATE TABLE t (x NOT NULL)", &err), RC_OK);
    assert_int_equal(sql_exec(db, "INSERT INTO t VALUES (NULL)", &err), RC_INVALID);
    sqlite3_close(db);
}

static void test_missing_table_is_damage(void **state)
{
    (void)state;
    struct store store = {.lock_fd = -1};
    struct err_info err = {0};
    assert_int_equal(sqlite3_open(":memory:", &store.db), SQLITE_OK);
    assert_int_equal(sql_prepare_all(&store, &err), RC_CORRUPT);
    assert_non_null(strstr(err.text, "entry"));
    sql_finalize_all(&store);
    assert_int_equal(sqlite3_close(store.db), SQLITE_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_result_codes),
        cmocka_unit_test(test_int_and_errors),
        cmocka_unit_test(test_missing_table_is_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
