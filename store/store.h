/*
 * Durable memory of a node: the replicated entries, the frontier, the members and who we are, in
 * one SQLite database under the node's data folder.
 *
 * Everything here is synchronous and may block on the disk. A store is used by one thread at a
 * time: by the thread that opened it until store_writer_start (store/writer.h), then by the store
 * thread alone until store_writer_stop. Nothing calls back except the visitor of store_load.
 *
 * Files in the data folder, all mode 0600:
 *   skein.db, -wal, -shm        the database (WAL, synchronous=FULL)
 *   identity                    start marker: node id and generation, outside the database
 *   lock                        held with flock(2) while a process uses the folder
 *   skein.db.damaged-<time>...  a database that failed its check, kept for people to look at
 */
#ifndef SKEIN_STORE_STORE_H
#define SKEIN_STORE_STORE_H

#include "gossip/core/gossip.h"
#include "gossip/core/row.h"
#include "node/base/errors.h"

struct store;

/* Who this node is. Never a name or an address: those may change. */
struct store_identity {
    uint64_t node;              /* random, made at the first start, never 0 */
    uint32_t generation;        /* from 1; grows whenever memory was, or may have been, lost */
    uint64_t incarnation_limit; /* incarnations below this may have been used */
};

/* What store_open found. */
struct store_opened {
    struct store_identity identity;
    bool created;     /* the database is new and empty */
    bool set_aside;   /* a damaged database was moved away */
    bool memory_lost; /* this node existed before and its database is gone, older or not its own:
                         the generation is a new one */
    char note[512];   /* one line for the log that tells what happened; "" at an ordinary start */
};

/*
 * Open the data folder `dir`, creating it (not its parents) and what is missing inside.
 *
 * The database passes SQLite's own check and the checksum of every entry, or it is renamed to
 * skein.db.damaged-<time> and a new empty one takes its place (ret_opened tells).
 *
 * Identity, with the marker file deciding what the database alone cannot know:
 *
 *   marker   database            node id      generation
 *   none     fresh               new random   1
 *   present  fresh               marker's     marker's + 1          memory lost
 *   present  same, as new        marker's     unchanged             the ordinary start
 *   present  same, but older     marker's     marker's + 1          memory lost (old copy put back)
 *   present  another node's      marker's     highest known + 1     memory lost
 *   none     present             database's   database's + 1        memory lost (a copy, maybe old)
 *
 * RC_BUSY         another process uses the folder; err names it
 * RC_UNSUPPORTED  the database was written by a newer version; nothing was touched
 * RC_IO, RC_NO_SPACE, RC_NO_MEMORY  the system refused; err names the file
 */
MUST_CHECK int store_open(const char *dir, struct store **ret_store,
                          struct store_opened *ret_opened, struct err_info *err);

/*
 * Move the database aside for a reason that only the caller can know (an entry that it cannot
 * load) and go on with an empty one, as after damage. On failure the store is only good for
 * store_close. Errors as store_open.
 */
MUST_CHECK int store_restart_empty(struct store *store, const char *reason,
                                   struct store_opened *ret_opened, struct err_info *err);

/* Fold the write-ahead log into the database, close, release the folder. NULL is accepted. */
void store_close(struct store *store);

/* As of the last commit. */
struct store_identity store_identity(const struct store *store);

/* Pointers are valid for the call. A result other than 0 ends the load and is returned. */
struct store_visitor {
    int (*row)(void *ctx, const struct row *row, struct err_info *err);
    int (*frontier)(void *ctx, const struct dot *dot, struct err_info *err);
    int (*member)(void *ctx, const struct gossip_member *member, struct err_info *err);
};

/* Visit all members, then all rows, then the frontier. RC_CORRUPT: an entry does not decode. */
MUST_CHECK int store_load(struct store *store, const struct store_visitor *visitor, void *ctx,
                          struct err_info *err);

/* ---- writing: begin, any number of apply, then commit or rollback ---- */

/* RC_BUSY: another program holds the database for more than five seconds. */
MUST_CHECK int store_begin(struct store *store, struct err_info *err);

/*
 * Put one batch into the open transaction, all of it or nothing. An entry is replaced only by one
 * with a larger or equal stamp; a frontier only grows.
 *
 * RC_INVALID  a row breaks the limits of gossip/core/row.h: only this batch is left out
 * other       the transaction is lost (store_is_open_transaction is false): all its batches failed
 */
MUST_CHECK int store_apply(struct store *store, const struct gossip_batch *batch,
                           struct err_info *err);
bool store_is_open_transaction(const struct store *store);

/* Durable when it returns 0. Otherwise nothing of the transaction is kept. */
MUST_CHECK int store_commit(struct store *store, struct err_info *err);
void store_rollback(struct store *store);

/*
 * This batch did not reach the disk. Until its rows of other origins do (the core writes them
 * again), the frontier on disk stops growing for all origins but our own: a frontier that covers a
 * row which is not there would lose that row for good, a frontier that lags only costs one more
 * transfer after the next start. Only keys and dots of the rows are read. Not in a transaction.
 */
void store_note_failed(struct store *store, const struct gossip_batch *batch);
bool store_is_frontier_held(const struct store *store);

#endif
