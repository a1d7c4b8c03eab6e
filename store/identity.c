/*
 * Who this node is: the marker file, the row in the database, and what to believe when they differ.
 *
 * The marker outlives the database. Without it, a node whose database vanished would take a new id
 * and nobody would know that its old writes are the same node's; with it, but without a new
 * generation, the node would reuse sequence numbers that its peers have already seen, and its
 * writes would be taken for known ones. Hence: when in doubt, a new generation, which costs 20
 * bytes. The marker is written before the database commits, so it never lags behind on its own.
 */
#include "store/internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <fcntl.h>
#include <unistd.h>

static const char MARKER_FORM[] = "skein identity 1\n"
                                  "node %016" PRIx64 "\n"
                                  "generation %" PRIu32 "\n"
                                  "sum %016" PRIx64 "\n";

/* Incarnations are the database's affair: the marker's sum covers id and generation alone. */
static uint64_t marker_sum(const struct store_identity *identity)
{
    struct store_identity covered = *identity;
    covered.incarnation_limit = 0;
    return identity_sum(&covered);
}

static int marker_format(const struct store_identity *identity, char out[128])
{
    return snprintf(out, 128, MARKER_FORM, identity->node, identity->generation,
                    marker_sum(identity));
}

int marker_read(const char *dir, struct store_identity *ret_identity, struct err_info *err)
{
    char path[STORE_PATH_MAX];
    int rc = path_join(dir, "identity", path, err);
    if (rc != RC_OK) {
        return rc;
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return err_set(err, errno == ENOENT ? RC_NOT_FOUND : RC_IO, "cannot open %.300s: %s", path,
                       strerror(errno));
    }
    char text[129];
    ssize_t len = read(fd, text, sizeof(text) - 1);
    int error = errno;
    (void)close(fd); /* opened for reading */
    if (len < 0) {
        return err_set(err, RC_IO, "cannot read %.300s: %s", path, strerror(error));
    }
    text[len] = '\0';

    /* Read leniently, then compare with what would have been written: nothing else is a marker. */
    struct store_identity found = {0};
    uint64_t sum = 0;
    char again[128];
    if (sscanf(text, "skein identity 1 node %" SCNx64 " generation %" SCNu32 " sum %" SCNx64,
               &found.node, &found.generation, &sum) != 3 ||
        marker_format(&found, again) != (int)len || memcmp(text, again, (size_t)len) != 0 ||
        found.node == 0 || found.generation == 0) {
        return err_set(err, RC_CORRUPT, "%.300s is damaged", path);
    }
    *ret_identity = found;
    return RC_OK;
}

int marker_write(const char *dir, const struct store_identity *identity, struct err_info *err)
{
    char text[128];
    int len = marker_format(identity, text);
    return file_replace(dir, "identity", text, (size_t)len, err);
}

int identity_load(sqlite3 *db, struct store_identity *ret_identity, struct err_info *err)
{
    static const char sql[] =
        "SELECT node, generation, incarnation_limit, sum FROM meta WHERE one = 1";
    sqlite3_stmt *stmt = NULL;
    int code = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);
    if (code == SQLITE_OK) {
        code = sqlite3_step(stmt);
    }
    int rc = RC_OK;
    if (code == SQLITE_ROW) {
        struct store_identity found = {
            .node = (uint64_t)sqlite3_column_int64(stmt, 0),
            .generation = (uint32_t)sqlite3_column_int64(stmt, 1),
            .incarnation_limit = (uint64_t)sqlite3_column_int64(stmt, 2),
        };
        if ((uint64_t)sqlite3_column_int64(stmt, 3) != identity_sum(&found) || found.node == 0 ||
            found.generation == 0) {
            rc = err_set(err, RC_CORRUPT, "the node's identity is damaged");
        } else {
            *ret_identity = found;
        }
    } else if (code == SQLITE_DONE) {
        rc = RC_NOT_FOUND;
    } else if (code == SQLITE_ERROR) { /* the text is ours: the table is missing */
        rc = err_set(err, RC_CORRUPT, "the schema is damaged: %.300s", sqlite3_errmsg(db));
    } else {
        rc = sql_fail(db, code, err, "cannot read the node's identity");
    }
    (void)sqlite3_finalize(stmt); /* repeats the error above */
    return rc;
}

bool identity_is_own(const struct store_identity *self, const struct origin *origin)
{
    return origin->node == self->node && origin->generation == self->generation;
}

/* Append to the note. */
static void note(struct store_opened *opened, const char *text)
{
    size_t len = strlen(opened->note);
    (void)snprintf(opened->note + len, sizeof(opened->note) - len, "%s%s", len > 0 ? "; " : "",
                   text); /* cut is fine */
}

int identity_decide(const struct store_identity *marker, const struct store_identity *stored,
                    uint32_t seen_generation, uint64_t fresh_node, struct store_opened *ret_opened,
                    struct err_info *err)
{
    struct store_identity *out = &ret_opened->identity;
    uint32_t known = seen_generation;
    bool lost = true;
    if (marker == NULL && stored == NULL) {
        *out = (struct store_identity){.node = fresh_node, .generation = 1};
        return RC_OK;
    }
    if (marker == NULL) {
        *out = *stored;
        known = MAX(known, stored->generation);
        note(ret_opened, "the identity file is missing, so the database may be an old copy");
    } else if (stored == NULL) {
        *out = *marker;
        known = MAX(known, marker->generation);
        note(ret_opened, "this node's database is gone");
    } else if (marker->node != stored->node) {
        *out = *marker;
        known = MAX(known, marker->generation);
        note(ret_opened, "the database is another node's; this node keeps its own identity");
    } else {
        *out = *stored;
        known = MAX(MAX(known, marker->generation), stored->generation);
        lost = known != stored->generation;
        if (lost) {
            note(ret_opened, "the database is older than the identity file");
        }
    }
    if (lost) {
        if (known == UINT32_MAX) {
            return err_set(err, RC_INVALID,
                           "node %016" PRIx64 " has used up its generations: "
                           "empty the data folder to take a new identity",
                           out->node);
        }
        out->generation = known + 1;
        ret_opened->memory_lost = true;
    }
    return RC_OK;
}
