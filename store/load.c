/*
 * Reading everything back: for the visitor of store_load, and once at every start to see that each
 * entry still is what was written.
 */
#include "store/internal.h"

#include <string.h>

/* Borrowed until the next step. */
struct column {
    const uint8_t *bytes;
    size_t len;
};

static struct column column_bytes(sqlite3_stmt *stmt, int idx)
{
    struct column column = {.bytes = sqlite3_column_blob(stmt, idx)};
    column.len = (size_t)sqlite3_column_bytes(stmt, idx);
    return column;
}

static uint64_t column_u64(sqlite3_stmt *stmt, int idx)
{
    return (uint64_t)sqlite3_column_int64(stmt, idx);
}

static int damaged(struct err_info *err, const char *what)
{
    return err_set(err, RC_CORRUPT, "%s of the database is damaged", what);
}

static int visit_entry(sqlite3_stmt *stmt, const struct store_visitor *visitor, void *ctx,
                       struct err_info *err)
{
    static const char what[] = "an entry";
    struct dot dots[ROW_VECTOR_MAX];
    struct column id = column_bytes(stmt, 1);
    struct column stamp = column_bytes(stmt, 2);
    struct column value = column_bytes(stmt, 6);
    struct column vector = column_bytes(stmt, 7);
    int kind = sqlite3_column_int(stmt, 0);
    if (kind < 1 || kind > UINT16_MAX || id.len < 1 || id.len > ROW_ID_MAX ||
        stamp.len != ROW_STAMP_LEN || value.len > ROW_VALUE_MAX) {
        return damaged(err, what);
    }
    struct row row = {
        .kind = (uint16_t)kind,
        .id_len = (uint16_t)id.len,
        .value_len = (uint32_t)value.len,
        .flags = (uint32_t)column_u64(stmt, 5),
        .hlc = get_be64(stamp.bytes),
        .created_hlc = column_u64(stmt, 4),
        .dot = {.origin = {.node = get_be64(stamp.bytes + 8),
                           .generation = (uint32_t)get_be64(stamp.bytes + 16)},
                .seq = column_u64(stmt, 3)},
        .id = (const char *)id.bytes,
        .value = value.len > 0 ? value.bytes : NULL,
        .vector = dots,
    };
    if (vector_decode(vector.bytes, vector.len, dots, &row.vector_len) != RC_OK ||
        entry_sum(&row, stamp.bytes, vector.bytes, vector.len) != column_u64(stmt, 8)) {
        return damaged(err, what);
    }
    return visitor != NULL ? visitor->row(ctx, &row, err) : RC_OK;
}

static int visit_frontier(sqlite3_stmt *stmt, const struct store_visitor *visitor, void *ctx,
                          struct err_info *err)
{
    struct dot dot = {
        .origin = {.node = column_u64(stmt, 0), .generation = (uint32_t)column_u64(stmt, 1)},
        .seq = column_u64(stmt, 2)};
    if (frontier_sum(&dot) != column_u64(stmt, 3)) {
        return damaged(err, "the frontier");
    }
    return visitor != NULL ? visitor->frontier(ctx, &dot, err) : RC_OK;
}

static bool copy_text(struct column column, char *out, size_t size)
{
    if (column.len >= size) {
        return false;
    }
    if (column.len > 0) {
        memcpy(out, column.bytes, column.len);
    }
    out[column.len] = '\0';
    return true;
}

static int visit_member(sqlite3_stmt *stmt, const struct store_visitor *visitor, void *ctx,
                        struct err_info *err)
{
    struct gossip_member member = {
        .id = column_u64(stmt, 0),
        .generation = (uint32_t)column_u64(stmt, 1),
        .incarnation = column_u64(stmt, 2),
    };
    uint64_t state = column_u64(stmt, 3);
    struct column addr = column_bytes(stmt, 4);
    if (state > MEMBER_LEFT || addr_decode(addr.bytes, addr.len, &member.addr) != RC_OK ||
        !copy_text(column_bytes(stmt, 5), member.name, sizeof(member.name)) ||
        !copy_text(column_bytes(stmt, 6), member.version, sizeof(member.version))) {
        return damaged(err, "a member");
    }
    member.state = (enum member_state)state;
    if (member_sum(&member) != column_u64(stmt, 7)) {
        return damaged(err, "a member");
    }
    return visitor != NULL ? visitor->member(ctx, &member, err) : RC_OK;
}

typedef int (*visit_fn)(sqlite3_stmt *stmt, const struct store_visitor *visitor, void *ctx,
                        struct err_info *err);

static int visit_all(struct store *store, enum store_stmt which, visit_fn visit,
                     const struct store_visitor *visitor, void *ctx, struct err_info *err)
{
    sqlite3_stmt *stmt = store->stmts[which];
    int rc = RC_OK;
    int code = SQLITE_DONE;
    while (rc == RC_OK && (code = sqlite3_step(stmt)) == SQLITE_ROW) {
        rc = visit(stmt, visitor, ctx, err);
    }
    if (rc == RC_OK && code != SQLITE_DONE) {
        rc = sql_fail(store->db, code, err, "cannot read the database");
    }
    (void)sqlite3_reset(stmt); /* repeats the error above */
    return rc;
}

/* visitor NULL: decode only. */
static int visit_everything(struct store *store, const struct store_visitor *visitor, void *ctx,
                            struct err_info *err)
{
    int rc = visit_all(store, STMT_ALL_MEMBERS, visit_member, visitor, ctx, err);
    if (rc == RC_OK) {
        rc = visit_all(store, STMT_ALL_ENTRIES, visit_entry, visitor, ctx, err);
    }
    if (rc == RC_OK) {
        rc = visit_all(store, STMT_ALL_FRONTIER, visit_frontier, visitor, ctx, err);
    }
    return rc;
}

int store_load(struct store *store, const struct store_visitor *visitor, void *ctx,
               struct err_info *err)
{
    return visit_everything(store, visitor, ctx, err);
}

int store_verify(struct store *store, struct err_info *err)
{
    return visit_everything(store, NULL, NULL, err);
}
