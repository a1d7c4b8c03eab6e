/*
 * Rows of peers that the cluster's memory has and the disk has not, because writing them failed.
 *
 * While there is one, the frontier on disk stays where it is for all origins but our own: after a
 * crash, a frontier that covers a missing row would make the peers never send it again. The list
 * is a table in SQLite's temporary (memory only) schema, so that it follows the transaction and its
 * savepoints by itself: a row written again leaves the list exactly when it is durable.
 */
#include "store/internal.h"

#include "node/base/log.h"

enum { MISSING_MAX = 100 * 1000 /* rows remembered by name, about 10 MB */ };

int held_create_table(sqlite3 *db, struct err_info *err)
{
    return sql_exec(db,
                    "CREATE TEMP TABLE missing (kind INTEGER NOT NULL, id BLOB NOT NULL,"
                    " PRIMARY KEY (kind, id)) WITHOUT ROWID",
                    err);
}

static int run_for_row(struct store *store, enum store_stmt which, const struct row *row,
                       struct err_info *err)
{
    (void)sqlite3_bind_int(store->stmts[which], 1, row->kind); /* NULL matches and adds nothing */
    (void)sqlite3_bind_blob64(store->stmts[which], 2, row->id, row->id_len, SQLITE_STATIC);
    return sql_run(store, which, err);
}

static bool is_any_missing(struct store *store)
{
    sqlite3_stmt *stmt = store->stmts[STMT_ANY_MISSING];
    bool any = true; /* when it cannot be told: hold */
    if (sqlite3_step(stmt) == SQLITE_ROW) {
        any = sqlite3_column_int(stmt, 0) != 0;
    }
    (void)sqlite3_reset(stmt); /* repeats the error above */
    return any;
}

bool held_now(struct store *store)
{
    return store->frontier_held && (store->held_for_good || is_any_missing(store));
}

int held_row_written(struct store *store, const struct row *row, struct err_info *err)
{
    return store->frontier_held ? run_for_row(store, STMT_DROP_MISSING, row, err) : RC_OK;
}

void held_committed(struct store *store)
{
    if (store->frontier_held && !held_now(store)) {
        store->frontier_held = false;
        store->missing_adds = 0;
        log_info("the rows of peers that were missing on disk are there now",
                 "what=its frontier follows again");
    }
}

void store_note_failed(struct store *store, const struct gossip_batch *batch)
{
    bool before = store->frontier_held;
    for (size_t i = 0; i < batch->row_count && !store->held_for_good; i++) {
        const struct row *row = batch->rows[i];
        /* A failed write of our own was never shown to anybody, so nothing can be missing. */
        if (identity_is_own(&store->identity, &row->dot.origin)) {
            continue;
        }
        store->frontier_held = true;
        if (++store->missing_adds > MISSING_MAX ||
            run_for_row(store, STMT_ADD_MISSING, row, NULL) != RC_OK) {
            store->held_for_good = true;
        }
    }
    if (store->frontier_held && !before) {
        log_warn("rows of peers did not reach the disk",
                 "what=if they are not written again, the next start takes them from the peers");
    }
}

bool store_is_frontier_held(const struct store *store)
{
    return store->frontier_held;
}
