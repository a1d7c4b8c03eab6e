/*
 * What the files of this unit share; nobody outside includes it, except for its own unit tests.
 *
 * open.c uses files.c (data folder), sql.c (statements, errors), migrate.c (schema) and identity.c
 * (marker); apply.c and load.c share codec.c. Thread: the store's user.
 */
#ifndef SKEIN_STORE_INTERNAL_H
#define SKEIN_STORE_INTERNAL_H

#include "store/store.h"

#include <sqlite3.h>

enum {
    STORE_PATH_MAX = 4096,
    STORE_DOT_LEN = 20,                /* node 8, generation 4, seq 8, big-endian */
    STORE_ADDR_LEN = 23,               /* family 1, port 2, scope 4, address 16 */
    STORE_BUSY_MS = 5000,              /* wait for another program that holds the database */
    STORE_APPLICATION_ID = 0x534b4549, /* "SKEI" in the database header */
};

enum store_stmt {
    STMT_BEGIN = 0,
    STMT_COMMIT,
    STMT_ROLLBACK,
    STMT_SAVE,
    STMT_RELEASE,
    STMT_UNDO,
    STMT_PUT_ENTRY,
    STMT_PUT_FRONTIER,
    STMT_PUT_MEMBER,
    STMT_DROP_MEMBER,
    STMT_PUT_IDENTITY,
    STMT_ADD_MISSING,
    STMT_DROP_MISSING,
    STMT_ANY_MISSING,
    STMT_ALL_ENTRIES,
    STMT_ALL_FRONTIER,
    STMT_ALL_MEMBERS,
    STMT_COUNT,
};

struct store {
    char *dir;
    int lock_fd;
    sqlite3 *db;
    sqlite3_stmt *stmts[STMT_COUNT];
    struct store_identity identity; /* as committed */
    struct store_identity pending;  /* as the open transaction has it */
    bool frontier_held;             /* rows of peers are missing on disk: held.c */
    uint32_t missing_adds;          /* rows remembered by held.c since it began to hold */
    bool held_for_good;             /* and they are not all known by name: until the next start */
};

/* ---- files.c: the data folder ---- */

/* "<dir>/<name>" into out; RC_TOO_BIG when it does not fit. */
MUST_CHECK int path_join(const char *dir, const char *name, char out[STORE_PATH_MAX],
                         struct err_info *err);

/* Create the folder if it is missing and take the exclusive lock. RC_BUSY names the holder. */
MUST_CHECK int folder_lock(const char *dir, int *ret_fd, struct err_info *err);

/* The file exists afterwards with mode 0600; *ret_created tells whether it was missing or empty. */
MUST_CHECK int file_make_private(const char *dir, const char *name, bool *ret_created,
                                 struct err_info *err);

/* Replace the file's content in one step that survives a power cut. */
MUST_CHECK int file_replace(const char *dir, const char *name, const char *text, size_t len,
                            struct err_info *err);

/* Make the folder's entries durable. */
MUST_CHECK int folder_sync(const char *dir, struct err_info *err);

/* Rename skein.db, -wal and -shm; the new name of the database into ret_name. */
MUST_CHECK int database_set_aside(const char *dir, uint64_t wall_ms, char ret_name[128],
                                  struct err_info *err);

/* ---- sql.c: statements and errors ---- */

/* Map a result of SQLite to RC_*; db (may be NULL) and errno, which the caller has set to 0 before
 * the call that failed, add what the operating system said. */
int sql_rc(int code, sqlite3 *db);

/* Set err from the connection's last error and return its RC_*. */
int sql_fail(sqlite3 *db, int code, struct err_info *err, const char *what);

MUST_CHECK int sql_exec(sqlite3 *db, const char *sql, struct err_info *err);

/* First column of the first row. RC_NOT_FOUND: no row. */
MUST_CHECK int sql_int(sqlite3 *db, const char *sql, int64_t *ret_value, struct err_info *err);

/* Prepare all statements of enum store_stmt. RC_CORRUPT: the schema is not what it should be. */
MUST_CHECK int sql_prepare_all(struct store *store, struct err_info *err);
void sql_finalize_all(struct store *store);

/* Step a statement that yields no row, and reset it. */
MUST_CHECK int sql_run(struct store *store, enum store_stmt which, struct err_info *err);

/* The same while cleaning up, where the error that led there is the one to tell. */
void sql_attempt(struct store *store, enum store_stmt which);

/* ---- migrate.c: schema ---- */

extern const char *const store_migrations[]; /* [i] leads from version i to i + 1 */
extern const size_t store_migration_count;

/*
 * Bring the database to version `count`, each step in a transaction of its own.
 * RC_UNSUPPORTED: it is newer. RC_CORRUPT: it belongs to another application.
 */
MUST_CHECK int migrate(sqlite3 *db, const char *const *migrations, size_t count,
                       struct err_info *err);

/* ---- identity.c: the marker and the decision ---- */

/* RC_NOT_FOUND, RC_CORRUPT (not a marker), RC_IO. */
MUST_CHECK int marker_read(const char *dir, struct store_identity *ret_identity,
                           struct err_info *err);
MUST_CHECK int marker_write(const char *dir, const struct store_identity *identity,
                            struct err_info *err);

/*
 * The table of store.h. marker and stored are NULL when there is none; seen_generation is the
 * highest one that the stored frontier has of this node (0: none). A new random id is taken from
 * fresh_node. Pure. RC_INVALID: no generation is left.
 */
MUST_CHECK int identity_decide(const struct store_identity *marker,
                               const struct store_identity *stored, uint32_t seen_generation,
                               uint64_t fresh_node, struct store_opened *ret_opened,
                               struct err_info *err);

bool identity_is_own(const struct store_identity *self, const struct origin *origin);

/* Read the identity row; RC_NOT_FOUND in a fresh database, RC_CORRUPT. */
MUST_CHECK int identity_load(sqlite3 *db, struct store_identity *ret_identity,
                             struct err_info *err);

/* ---- codec.c: bytes of columns ---- */

void put_be16(uint8_t *out, uint16_t value);
void put_be32(uint8_t *out, uint32_t value);
void put_be64(uint8_t *out, uint64_t value);
uint16_t get_be16(const uint8_t *in);
uint32_t get_be32(const uint8_t *in);
uint64_t get_be64(const uint8_t *in);

/* Checksums: SQLite's check sees broken structure, these see flipped bits in content. */
uint64_t entry_sum(const struct row *row, const uint8_t stamp[ROW_STAMP_LEN], const uint8_t *vector,
                   size_t vector_len);
uint64_t frontier_sum(const struct dot *dot);
uint64_t member_sum(const struct gossip_member *member);
uint64_t identity_sum(const struct store_identity *identity);

/* vector holds row->vector_len * STORE_DOT_LEN bytes. */
void vector_encode(const struct dot *dots, size_t count, uint8_t *out);
/* RC_CORRUPT: the length is not that of 1 to ROW_VECTOR_MAX dots. */
MUST_CHECK int vector_decode(const uint8_t *bytes, size_t len, struct dot out[ROW_VECTOR_MAX],
                             uint32_t *ret_count);

void addr_encode(const struct addr *addr, uint8_t out[STORE_ADDR_LEN]);
MUST_CHECK int addr_decode(const uint8_t *bytes, size_t len, struct addr *ret_addr);

/* ---- held.c: see store_note_failed ---- */

/* Before sql_prepare_all. */
MUST_CHECK int held_create_table(sqlite3 *db, struct err_info *err);

/* May a peer's frontier not be written, as the open transaction stands? */
bool held_now(struct store *store);

MUST_CHECK int held_row_written(struct store *store, const struct row *row, struct err_info *err);
void held_committed(struct store *store);

/* ---- load.c ---- */

/* Decode everything and throw it away: RC_CORRUPT when an entry is damaged. */
MUST_CHECK int store_verify(struct store *store, struct err_info *err);

#endif
