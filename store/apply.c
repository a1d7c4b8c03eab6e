/*
 * Transactions and what goes into them.
 *
 * begin -> apply* -> commit | rollback. A batch that breaks a limit is undone by its savepoint and
 * the others go on; any other failure (disk full, I/O) ends the transaction, because SQLite itself
 * may have rolled it back. pending follows the open transaction, identity the last commit.
 */
#include "store/internal.h"

#include "node/base/check.h"

#include <string.h>

bool store_is_open_transaction(const struct store *store)
{
    return sqlite3_get_autocommit(store->db) == 0;
}

int store_begin(struct store *store, struct err_info *err)
{
    ASSERT(!store_is_open_transaction(store));
    store->pending = store->identity;
    return sql_run(store, STMT_BEGIN, err);
}

void store_rollback(struct store *store)
{
    store->pending = store->identity;
    if (store_is_open_transaction(store)) {
        sql_attempt(store, STMT_ROLLBACK);
    }
}

int store_commit(struct store *store, struct err_info *err)
{
    ASSERT(store_is_open_transaction(store));
    int rc = sql_run(store, STMT_COMMIT, err);
    if (rc != RC_OK) {
        store_rollback(store);
        return rc;
    }
    store->identity = store->pending;
    held_committed(store);
    return RC_OK;
}

/* Bind results are not looked at one by one: a failed bind leaves NULL, which NOT NULL refuses. */
static void bind_u64(sqlite3_stmt *stmt, int idx, uint64_t value)
{
    (void)sqlite3_bind_int64(stmt, idx, (int64_t)value);
}

/* Borrowed until the statement is reset; never NULL, so that an empty value is not "no value". */
static void bind_bytes(sqlite3_stmt *stmt, int idx, const void *bytes, size_t len)
{
    (void)sqlite3_bind_blob64(stmt, idx, len > 0 ? bytes : "", len, SQLITE_STATIC);
}

static int put_entry(struct store *store, const struct row *row, struct err_info *err)
{
    uint8_t stamp[ROW_STAMP_LEN];
    uint8_t vector[ROW_VECTOR_MAX * STORE_DOT_LEN];
    size_t vector_len = (size_t)row->vector_len * STORE_DOT_LEN;
    row_stamp(row, stamp);
    vector_encode(row->vector, row->vector_len, vector);

    sqlite3_stmt *stmt = store->stmts[STMT_PUT_ENTRY];
    (void)sqlite3_bind_int(stmt, 1, row->kind);
    bind_bytes(stmt, 2, row->id, row->id_len);
    bind_bytes(stmt, 3, stamp, sizeof(stamp));
    bind_u64(stmt, 4, row->dot.seq);
    bind_u64(stmt, 5, row->created_hlc);
    bind_u64(stmt, 6, row->flags);
    bind_bytes(stmt, 7, row->value, row->value_len);
    bind_bytes(stmt, 8, vector, vector_len);
    bind_u64(stmt, 9, entry_sum(row, stamp, vector, vector_len));
    return sql_run(store, STMT_PUT_ENTRY, err);
}

static int put_frontier(struct store *store, const struct dot *dot, struct err_info *err)
{
    if (!identity_is_own(&store->pending, &dot->origin) && held_now(store)) {
        return RC_OK;
    }
    sqlite3_stmt *stmt = store->stmts[STMT_PUT_FRONTIER];
    bind_u64(stmt, 1, dot->origin.node);
    bind_u64(stmt, 2, dot->origin.generation);
    bind_u64(stmt, 3, dot->seq);
    bind_u64(stmt, 4, frontier_sum(dot));
    return sql_run(store, STMT_PUT_FRONTIER, err);
}

static int put_member(struct store *store, const struct gossip_member *member, struct err_info *err)
{
    uint8_t addr[STORE_ADDR_LEN];
    addr_encode(&member->addr, addr);
    sqlite3_stmt *stmt = store->stmts[STMT_PUT_MEMBER];
    bind_u64(stmt, 1, member->id);
    bind_u64(stmt, 2, member->generation);
    bind_u64(stmt, 3, member->incarnation);
    bind_u64(stmt, 4, (uint64_t)member->state);
    bind_bytes(stmt, 5, addr, sizeof(addr));
    (void)sqlite3_bind_text(stmt, 6, member->name, (int)strnlen(member->name, sizeof(member->name)),
                            SQLITE_STATIC);
    (void)sqlite3_bind_text(stmt, 7, member->version,
                            (int)strnlen(member->version, sizeof(member->version)), SQLITE_STATIC);
    bind_u64(stmt, 8, member_sum(member));
    return sql_run(store, STMT_PUT_MEMBER, err);
}

static int put_identity(struct store *store, const struct gossip_batch *batch, struct err_info *err)
{
    struct store_identity *pending = &store->pending;
    bool reborn = batch->generation > pending->generation;
    if (!reborn && batch->incarnation_limit <= pending->incarnation_limit) {
        return RC_OK; /* both only grow */
    }
    pending->incarnation_limit = MAX(pending->incarnation_limit, batch->incarnation_limit);
    if (reborn) {
        /* The marker first: one that is ahead costs a generation, one behind would reuse one. */
        pending->generation = batch->generation;
        int rc = marker_write(store->dir, pending, err);
        if (rc != RC_OK) {
            return rc;
        }
    }
    sqlite3_stmt *stmt = store->stmts[STMT_PUT_IDENTITY];
    bind_u64(stmt, 1, pending->node);
    bind_u64(stmt, 2, pending->generation);
    bind_u64(stmt, 3, pending->incarnation_limit);
    bind_u64(stmt, 4, identity_sum(pending));
    return sql_run(store, STMT_PUT_IDENTITY, err);
}

static int check_batch(const struct gossip_batch *batch, struct err_info *err)
{
    int rc = RC_OK;
    for (size_t i = 0; rc == RC_OK && i < batch->row_count; i++) {
        rc = row_check(batch->rows[i], err);
    }
    return rc;
}

static int apply_parts(struct store *store, const struct gossip_batch *batch, struct err_info *err)
{
    int rc = put_identity(store, batch, err);
    for (size_t i = 0; rc == RC_OK && i < batch->row_count; i++) {
        rc = put_entry(store, batch->rows[i], err);
        if (rc == RC_OK) {
            rc = held_row_written(store, batch->rows[i], err);
        }
    }
    for (size_t i = 0; rc == RC_OK && i < batch->frontier_count; i++) {
        rc = put_frontier(store, &batch->frontier[i], err);
    }
    for (size_t i = 0; rc == RC_OK && i < batch->member_count; i++) {
        rc = put_member(store, &batch->members[i], err);
    }
    for (size_t i = 0; rc == RC_OK && i < batch->forgotten_count; i++) {
        bind_u64(store->stmts[STMT_DROP_MEMBER], 1, batch->forgotten[i]);
        rc = sql_run(store, STMT_DROP_MEMBER, err);
    }
    return rc;
}

int store_apply(struct store *store, const struct gossip_batch *batch, struct err_info *err)
{
    ASSERT(store_is_open_transaction(store));
    int rc = check_batch(batch, err);
    if (rc != RC_OK) {
        return rc;
    }
    struct store_identity before = store->pending;
    rc = sql_run(store, STMT_SAVE, err);
    if (rc == RC_OK) {
        rc = apply_parts(store, batch, err);
    }
    if (rc == RC_OK) {
        rc = sql_run(store, STMT_RELEASE, err);
    }
    if (rc == RC_OK) {
        return RC_OK;
    }
    if (rc == RC_INVALID && store_is_open_transaction(store) &&
        sql_run(store, STMT_UNDO, NULL) == RC_OK && sql_run(store, STMT_RELEASE, NULL) == RC_OK) {
        store->pending = before;
        return rc;
    }
    store_rollback(store);
    return rc;
}
