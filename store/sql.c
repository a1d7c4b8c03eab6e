/*
 * Statements of the store and the way from SQLite's results to ours.
 *
 * Statements live as long as the connection; every one is reset right after its use, so that no
 * read snapshot stays open and the log can be folded in.
 */
#include "store/internal.h"

#include "node/base/check.h"
#include "node/base/log.h"

#include <errno.h>
#include <string.h>

/* seq is an unsigned number in a signed column: larger also means "negative against positive". */
#define UNSIGNED_ABOVE(a, b)                                                                       \
    "CASE WHEN (" a " < 0) = (" b " < 0) THEN " a " > " b " ELSE " a " < 0 END"

static const char *const statements[STMT_COUNT] = {
    [STMT_BEGIN] = "BEGIN IMMEDIATE",
    [STMT_COMMIT] = "COMMIT",
    [STMT_ROLLBACK] = "ROLLBACK",
    [STMT_SAVE] = "SAVEPOINT batch",
    [STMT_RELEASE] = "RELEASE batch",
    [STMT_UNDO] = "ROLLBACK TO batch",
    /* A staged local write may come after a remote one that already won: the stamp decides. An
     * equal stamp is the same version with more writers merged into its vector. */
    [STMT_PUT_ENTRY] =
        "INSERT INTO entry (kind, id, stamp, seq, created, flags, value, vector, sum)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"
        " ON CONFLICT (kind, id) DO UPDATE SET stamp = excluded.stamp,"
        " seq = excluded.seq, created = excluded.created, flags = excluded.flags,"
        " value = excluded.value, vector = excluded.vector, sum = excluded.sum"
        " WHERE excluded.stamp >= entry.stamp",
    [STMT_PUT_FRONTIER] =
        "INSERT INTO frontier (node, generation, seq, sum) VALUES (?1, ?2, ?3, ?4)"
        " ON CONFLICT (node, generation) DO UPDATE SET seq = excluded.seq,"
        " sum = excluded.sum"
        " WHERE " UNSIGNED_ABOVE("excluded.seq", "frontier.seq"),
    [STMT_PUT_MEMBER] = "INSERT OR REPLACE INTO member"
                        " (id, generation, incarnation, state, addr, name, version, sum)"
                        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    [STMT_DROP_MEMBER] = "DELETE FROM member WHERE id = ?1",
    [STMT_PUT_IDENTITY] = "INSERT OR REPLACE INTO meta"
                          " (one, node, generation, incarnation_limit, sum)"
                          " VALUES (1, ?1, ?2, ?3, ?4)",
    [STMT_ADD_MISSING] = "INSERT OR IGNORE INTO temp.missing (kind, id) VALUES (?1, ?2)",
    [STMT_DROP_MISSING] = "DELETE FROM temp.missing WHERE kind = ?1 AND id = ?2",
    [STMT_ANY_MISSING] = "SELECT EXISTS (SELECT 1 FROM temp.missing)",
    [STMT_ALL_ENTRIES] =
        "SELECT kind, id, stamp, seq, created, flags, value, vector, sum FROM entry",
    [STMT_ALL_FRONTIER] = "SELECT node, generation, seq, sum FROM frontier",
    [STMT_ALL_MEMBERS] =
        "SELECT id, generation, incarnation, state, addr, name, version, sum FROM member",
};

int sql_rc(int code, sqlite3 *db)
{
    switch (code & 0xff) {
    case SQLITE_OK:
    case SQLITE_ROW:
    case SQLITE_DONE:
        return RC_OK;
    case SQLITE_FULL:
        return RC_NO_SPACE;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return RC_CORRUPT;
    case SQLITE_NOMEM:
        return RC_NO_MEMORY;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return RC_BUSY;
    case SQLITE_CONSTRAINT:
    case SQLITE_TOOBIG:
    case SQLITE_MISMATCH:
        return RC_INVALID;
    default:
        break;
    }
    /* A quota, or a file that may not grow, comes as a plain I/O error, and for a failed commit
     * SQLite does not keep the system's reason: errno still has it. */
    int os_error = db != NULL ? sqlite3_system_errno(db) : 0;
    os_error = os_error != 0 ? os_error : errno;
    return os_error == ENOSPC || os_error == EDQUOT || os_error == EFBIG ? RC_NO_SPACE : RC_IO;
}

int sql_fail(sqlite3 *db, int code, struct err_info *err, const char *what)
{
    return err_set(err, sql_rc(code, db), "%.80s: %.300s (SQLite %d)", what,
                   db != NULL ? sqlite3_errmsg(db) : sqlite3_errstr(code), code);
}

int sql_exec(sqlite3 *db, const char *sql, struct err_info *err)
{
    errno = 0;
    int code = sqlite3_exec(db, sql, NULL, NULL, NULL);
    return code == SQLITE_OK ? RC_OK : sql_fail(db, code, err, sql);
}

int sql_int(sqlite3 *db, const char *sql, int64_t *ret_value, struct err_info *err)
{
    sqlite3_stmt *stmt = NULL;
    int code = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);
    if (code == SQLITE_OK) {
        code = sqlite3_step(stmt);
    }
    int rc = RC_OK;
    if (code == SQLITE_ROW) {
        *ret_value = sqlite3_column_int64(stmt, 0);
    } else if (code == SQLITE_DONE) {
        rc = err_set(err, RC_NOT_FOUND, "%.80s: no row", sql);
    } else {
        rc = sql_fail(db, code, err, sql);
    }
    (void)sqlite3_finalize(stmt); /* repeats the error above */
    return rc;
}

int sql_prepare_all(struct store *store, struct err_info *err)
{
    for (int i = 0; i < STMT_COUNT; i++) {
        int code = sqlite3_prepare_v3(store->db, statements[i], -1, SQLITE_PREPARE_PERSISTENT,
                                      &store->stmts[i], NULL);
        if (code == SQLITE_ERROR) { /* the text is ours: a table or a column is missing */
            return err_set(err, RC_CORRUPT, "the schema is damaged: %.300s",
                           sqlite3_errmsg(store->db));
        }
        if (code != SQLITE_OK) {
            return sql_fail(store->db, code, err, "cannot prepare a statement");
        }
    }
    return RC_OK;
}

void sql_finalize_all(struct store *store)
{
    for (int i = 0; i < STMT_COUNT; i++) {
        (void)sqlite3_finalize(store->stmts[i]); /* repeats an error already reported */
        store->stmts[i] = NULL;
    }
}

int sql_run(struct store *store, enum store_stmt which, struct err_info *err)
{
    sqlite3_stmt *stmt = store->stmts[which];
    errno = 0;
    int code = sqlite3_step(stmt);
    int rc = RC_OK;
    if (code != SQLITE_DONE) {
        ASSERT(code != SQLITE_ROW);
        rc = sql_fail(store->db, code, err, "cannot write to the database");
    }
    (void)sqlite3_reset(stmt);          /* repeats the error above */
    (void)sqlite3_clear_bindings(stmt); /* cannot fail */
    return rc;
}

void sql_attempt(struct store *store, enum store_stmt which)
{
    if (sql_run(store, which, NULL) != RC_OK) {
        log_debug("clean-up statement failed", "sql=%s", statements[which]);
    }
}
