/*
 * Open: folder and lock, the database with its checks, identity; and close.
 *
 * A database that is damaged is told apart from a system that refuses: only SQLite's own verdict
 * (not a database, malformed), a failed check or an entry that does not decode move it aside.
 * Permissions, a full disk or a newer version leave it alone.
 */
#include "store/internal.h"

#include "node/base/mem.h"
#include "node/base/rng.h"
#include "node/base/timesrc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Above this the check that skips index content is used: 46 MB hold 100,000 routes. */
enum { FULL_CHECK_BYTES_MAX = 64 << 20 };

/* The first column of the first row must be this text. */
static int expect_text(sqlite3 *db, const char *sql, const char *text, int otherwise,
                       struct err_info *err)
{
    sqlite3_stmt *stmt = NULL;
    int code = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);
    if (code == SQLITE_OK) {
        code = sqlite3_step(stmt);
    }
    int rc = RC_OK;
    if (code != SQLITE_ROW) {
        rc = sql_fail(db, code, err, sql);
    } else {
        const unsigned char *found = sqlite3_column_text(stmt, 0);
        if (found == NULL || strcmp((const char *)found, text) != 0) {
            rc = err_set(err, otherwise, "%.80s says: %.300s", sql,
                         found != NULL ? (const char *)found : "nothing");
        }
    }
    (void)sqlite3_finalize(stmt); /* repeats the error above */
    return rc;
}

static int configure(sqlite3 *db, struct err_info *err)
{
    static const char pragmas[] = "PRAGMA synchronous = FULL;"
                                  "PRAGMA foreign_keys = ON;"
                                  "PRAGMA secure_delete = ON;"
                                  "PRAGMA trusted_schema = OFF;"
                                  "PRAGMA cell_size_check = ON;"
                                  "PRAGMA temp_store = MEMORY;"
                                  "PRAGMA cache_size = -16384;" /* KiB */
                                  "PRAGMA journal_size_limit = 67108864;";
    (void)sqlite3_extended_result_codes(db, 1);    /* fails only without a connection */
    (void)sqlite3_busy_timeout(db, STORE_BUSY_MS); /* the same */
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL); /* the same */
    int rc = expect_text(db, "PRAGMA journal_mode = WAL", "wal", RC_UNSUPPORTED, err);
    if (rc == RC_UNSUPPORTED) {
        return err_prefix(err, rc, "the file system offers no write-ahead log");
    }
    return rc == RC_OK ? sql_exec(db, pragmas, err) : rc;
}

/* The database file was empty; a log with content beside it means that the file itself vanished. */
static int check_no_orphan_log(const char *dir, struct err_info *err)
{
    char path[STORE_PATH_MAX];
    struct stat st;
    int rc = path_join(dir, "skein.db-wal", path, err);
    if (rc == RC_OK && stat(path, &st) == 0 && st.st_size > 0) {
        rc = err_set(err, RC_CORRUPT, "the database file is gone or empty, but its log is not");
    }
    return rc;
}

static int check_integrity(const char *path, sqlite3 *db, struct err_info *err)
{
    struct stat st;
    bool big = stat(path, &st) == 0 && st.st_size > FULL_CHECK_BYTES_MAX;
    return expect_text(db, big ? "PRAGMA quick_check(1)" : "PRAGMA integrity_check(1)", "ok",
                       RC_CORRUPT, err);
}

/* SKEIN_TEST_STORE_MAX_PAGES (tests only) bounds the database, as a full disk would. */
static int apply_test_limit(sqlite3 *db, struct err_info *err)
{
    const char *text = getenv("SKEIN_TEST_STORE_MAX_PAGES");
    if (text == NULL) {
        return RC_OK;
    }
    char sql[64];
    (void)snprintf(sql, sizeof(sql), "PRAGMA max_page_count = %ld", strtol(text, NULL, 10));
    return sql_exec(db, sql, err);
}

/* Entries without an identity were not left by us. */
static int load_identity(struct store *store, struct store_identity *ret_stored, bool *ret_fresh,
                         struct err_info *err)
{
    int rc = identity_load(store->db, ret_stored, err);
    *ret_fresh = rc == RC_NOT_FOUND;
    if (rc != RC_NOT_FOUND) {
        return rc;
    }
    int64_t filled = 0;
    rc =
        sql_int(store->db, "SELECT EXISTS (SELECT 1 FROM entry) OR EXISTS (SELECT 1 FROM frontier)",
                &filled, err);
    return rc == RC_OK && filled != 0
               ? err_set(err, RC_CORRUPT, "the database has entries but no identity")
               : rc;
}

static int database_open(struct store *store, struct store_identity *ret_stored, bool *ret_fresh,
                         struct err_info *err)
{
    char path[STORE_PATH_MAX];
    bool empty = false;
    int rc = path_join(store->dir, "skein.db", path, err);
    if (rc == RC_OK) {
        rc = file_make_private(store->dir, "skein.db", &empty, err);
    }
    if (rc == RC_OK && empty) {
        rc = check_no_orphan_log(store->dir, err);
    }
    if (rc != RC_OK) {
        return rc;
    }
    int code = sqlite3_open_v2(path, &store->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (code != SQLITE_OK) {
        return sql_fail(store->db, code, err, "cannot open the database");
    }
    rc = configure(store->db, err);
    if (rc == RC_OK) {
        rc = check_integrity(path, store->db, err);
    }
    if (rc == RC_OK) {
        rc = migrate(store->db, store_migrations, store_migration_count, err);
    }
    if (rc == RC_OK) {
        rc = held_create_table(store->db, err);
    }
    if (rc == RC_OK) {
        rc = sql_prepare_all(store, err);
    }
    if (rc == RC_OK) {
        rc = load_identity(store, ret_stored, ret_fresh, err);
    }
    if (rc == RC_OK) {
        rc = store_verify(store, err);
    }
    if (rc == RC_OK) {
        rc = apply_test_limit(store->db, err);
    }
    return rc;
}

static void database_close(struct store *store)
{
    if (store->db == NULL) {
        return;
    }
    sql_finalize_all(store);
    /* Best effort: a log that stays is folded in at the next start. */
    (void)sqlite3_wal_checkpoint_v2(store->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    (void)sqlite3_close(store->db); /* refuses only with statements left, and there are none */
    store->db = NULL;
}

/* The highest generation that the frontier has of a node; 0: none. */
static int seen_generation(struct store *store, uint64_t node, uint32_t *ret_generation,
                           struct err_info *err)
{
    char sql[128];
    int64_t highest = 0;
    (void)snprintf(sql, sizeof(sql),
                   "SELECT coalesce(max(generation), 0) FROM frontier WHERE node = %lld",
                   (long long)node);
    int rc = sql_int(store->db, sql, &highest, err);
    *ret_generation = (uint32_t)highest;
    return rc;
}

static int write_identity(struct store *store, struct err_info *err)
{
    int rc = marker_write(store->dir, &store->identity, err);
    if (rc == RC_OK) {
        rc = sql_run(store, STMT_BEGIN, err);
    }
    if (rc != RC_OK) {
        return rc;
    }
    sqlite3_stmt *stmt = store->stmts[STMT_PUT_IDENTITY];
    (void)sqlite3_bind_int64(stmt, 1, (int64_t)store->identity.node);
    (void)sqlite3_bind_int64(stmt, 2, store->identity.generation);
    (void)sqlite3_bind_int64(stmt, 3, (int64_t)store->identity.incarnation_limit);
    (void)sqlite3_bind_int64(stmt, 4, (int64_t)identity_sum(&store->identity));
    rc = sql_run(store, STMT_PUT_IDENTITY, err);
    if (rc == RC_OK) {
        rc = sql_run(store, STMT_COMMIT, err);
    }
    if (rc != RC_OK && store_is_open_transaction(store)) {
        sql_attempt(store, STMT_ROLLBACK);
    }
    return rc;
}

/* Decide who we are, and write it down in both places if it is not there already. */
static int settle_identity(struct store *store, const struct store_identity *stored,
                           struct store_opened *opened, struct err_info *err)
{
    struct store_identity marker = {0};
    int marker_rc = marker_read(store->dir, &marker, err);
    if (marker_rc != RC_OK && marker_rc != RC_NOT_FOUND && marker_rc != RC_CORRUPT) {
        return marker_rc;
    }
    uint64_t node = marker_rc == RC_OK ? marker.node : stored != NULL ? stored->node : 0;
    uint32_t seen = 0;
    int rc = seen_generation(store, node, &seen, err);
    if (rc == RC_OK) {
        rc = identity_decide(marker_rc == RC_OK ? &marker : NULL, stored, seen,
                             rng_secret_u64() | 1, opened, err);
    }
    if (rc != RC_OK) {
        return rc;
    }
    store->identity = opened->identity;
    store->pending = opened->identity;
    bool settled = marker_rc == RC_OK && stored != NULL && stored->node == store->identity.node &&
                   marker.node == store->identity.node &&
                   stored->generation == store->identity.generation &&
                   marker.generation == store->identity.generation;
    return settled ? RC_OK : write_identity(store, err);
}

static int set_aside(struct store *store, const char *reason, struct store_opened *opened,
                     struct err_info *err)
{
    char name[128];
    int rc = database_set_aside(store->dir, time_wall_ms(), name, err);
    if (rc == RC_OK) {
        opened->set_aside = true;
        (void)snprintf(opened->note, sizeof(opened->note),
                       "the database was damaged (%.200s) and is kept as %s; starting with an "
                       "empty one",
                       reason, name); /* cut is fine */
    }
    return rc;
}

/* Open what is there, or an empty one in its place; `condemned` is a reason not to try. */
static int open_any(struct store *store, const char *condemned, struct store_opened *ret_opened,
                    struct err_info *err)
{
    struct store_opened opened = {0};
    struct store_identity stored = {0};
    struct err_info reason = {0};
    int rc = condemned != NULL ? err_set(&reason, RC_CORRUPT, "%s", condemned)
                               : database_open(store, &stored, &opened.created, &reason);
    if (rc == RC_CORRUPT) {
        database_close(store);
        rc = set_aside(store, reason.text, &opened, &reason);
        if (rc == RC_OK) {
            rc = database_open(store, &stored, &opened.created, &reason);
        }
    }
    if (rc == RC_OK && opened.created) {
        rc = folder_sync(store->dir, &reason);
    }
    if (rc == RC_OK) {
        rc = settle_identity(store, opened.created ? NULL : &stored, &opened, &reason);
    }
    if (rc != RC_OK) {
        return err_set(err, rc, "the data folder %.200s cannot be used: %s", store->dir,
                       reason.text);
    }
    *ret_opened = opened;
    return RC_OK;
}

int store_open(const char *dir, struct store **ret_store, struct store_opened *ret_opened,
               struct err_info *err)
{
    struct store *store = mem_new(sizeof(*store));
    store->lock_fd = -1;
    store->dir = mem_strdup(dir);
    int rc = folder_lock(dir, &store->lock_fd, err);
    if (rc == RC_OK) {
        rc = open_any(store, NULL, ret_opened, err);
    }
    if (rc != RC_OK) {
        store_close(store);
        return rc;
    }
    *ret_store = store;
    return RC_OK;
}

int store_restart_empty(struct store *store, const char *reason, struct store_opened *ret_opened,
                        struct err_info *err)
{
    database_close(store);
    store->frontier_held = false;
    store->held_for_good = false;
    store->missing_adds = 0;
    return open_any(store, reason, ret_opened, err);
}

void store_close(struct store *store)
{
    if (store == NULL) {
        return;
    }
    database_close(store);
    if (store->lock_fd >= 0) {
        (void)close(store->lock_fd); /* releases the lock; nothing of worth is written there */
    }
    MEM_FREE(store->dir);
    mem_free(store);
}

struct store_identity store_identity(const struct store *store)
{
    return store->identity;
}
