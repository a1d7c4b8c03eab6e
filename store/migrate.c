/*
 * The schema, as the list of steps that lead to it.
 *
 * A step is never changed once released; a new version is a new step at the end. Each runs in one
 * transaction together with the new user_version, so a crash leaves either the old or the new
 * version. A database newer than this list is refused, for an older program would write rows that
 * the newer one has moved elsewhere.
 *
 * Whole numbers of 64 bits are stored as their signed twin. `sum` is a checksum over the other
 * columns (codec.c). `stamp` is hlc, node, generation and value hash, big-endian, so that comparing
 * bytes is comparing versions.
 */
#include "store/internal.h"

#include <stdio.h>

const char *const store_migrations[] = {
    /* 1 */
    "CREATE TABLE meta ("
    " one INTEGER PRIMARY KEY CHECK (one = 1),"
    " node INTEGER NOT NULL, generation INTEGER NOT NULL, incarnation_limit INTEGER NOT NULL,"
    " sum INTEGER NOT NULL);"
    "CREATE TABLE entry ("
    " kind INTEGER NOT NULL, id BLOB NOT NULL, stamp BLOB NOT NULL, seq INTEGER NOT NULL,"
    " created INTEGER NOT NULL, flags INTEGER NOT NULL, value BLOB, vector BLOB NOT NULL,"
    " sum INTEGER NOT NULL, PRIMARY KEY (kind, id)) WITHOUT ROWID;"
    "CREATE TABLE frontier ("
    " node INTEGER NOT NULL, generation INTEGER NOT NULL, seq INTEGER NOT NULL,"
    " sum INTEGER NOT NULL, PRIMARY KEY (node, generation)) WITHOUT ROWID;"
    "CREATE TABLE member ("
    " id INTEGER PRIMARY KEY, generation INTEGER NOT NULL, incarnation INTEGER NOT NULL,"
    " state INTEGER NOT NULL, addr BLOB NOT NULL, name TEXT NOT NULL, version TEXT NOT NULL,"
    " sum INTEGER NOT NULL);",
};
const size_t store_migration_count = ARRAY_LEN(store_migrations);

/* One step and its version number, all or nothing. */
static int migrate_step(sqlite3 *db, const char *sql, size_t version, struct err_info *err)
{
    char pragmas[128];
    (void)snprintf(pragmas, sizeof(pragmas),
                   "PRAGMA user_version = %zu; PRAGMA application_id = %d;", version,
                   STORE_APPLICATION_ID);
    int rc = sql_exec(db, "BEGIN IMMEDIATE", err);
    if (rc != RC_OK) {
        return rc;
    }
    rc = sql_exec(db, sql, err);
    if (rc == RC_OK) {
        rc = sql_exec(db, pragmas, err);
    }
    if (rc == RC_OK) {
        rc = sql_exec(db, "COMMIT", err);
    }
    if (rc != RC_OK) {
        if (!sqlite3_get_autocommit(db)) {
            /* The first error is the one to tell. */
            (void)sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
        }
        return err_prefix(err, rc, "cannot bring the database to version %zu", version);
    }
    return RC_OK;
}

int migrate(sqlite3 *db, const char *const *migrations, size_t count, struct err_info *err)
{
    int64_t version = 0;
    int64_t application = 0;
    int64_t tables = 0;
    int rc = sql_int(db, "PRAGMA user_version", &version, err);
    if (rc == RC_OK) {
        rc = sql_int(db, "PRAGMA application_id", &application, err);
    }
    if (rc == RC_OK) {
        rc = sql_int(db, "SELECT count(*) FROM sqlite_schema", &tables, err);
    }
    if (rc != RC_OK) {
        return rc;
    }
    bool fresh = version == 0 && application == 0 && tables == 0;
    if (!fresh && (application != STORE_APPLICATION_ID || version < 1)) {
        return err_set(err, RC_CORRUPT, "it is a database of another program");
    }
    if ((uint64_t)version > count) {
        return err_set(err, RC_UNSUPPORTED,
                       "the database has schema version %lld, this program knows versions up to "
                       "%zu: start the newer program again, or empty the data folder",
                       (long long)version, count);
    }
    for (size_t i = (size_t)version; i < count; i++) {
        rc = migrate_step(db, migrations[i], i + 1, err);
        if (rc != RC_OK) {
            return rc;
        }
    }
    return RC_OK;
}
