/*
 * The audit trail of this node: one JSON object a line, appended to a file by a thread of its own.
 *
 * An answer that stands for a write is sent when its record is in the file (audit_append calls
 * back), so that no crash of the process loses the record of a write that was acknowledged. The
 * file is brought to the disk once a second: a loss of power may take the last second's records,
 * never the writes. At file_max bytes PATH is renamed to PATH.1, the one before is dropped.
 *
 *   control thread --jobs--> audit thread: write(2), rotation, reading --mail--> control thread
 *
 * Thread: all functions are for the loop's thread; callbacks come from the loop.
 */
#ifndef SKEIN_ADMIN_SERVER_AUDIT_H
#define SKEIN_ADMIN_SERVER_AUDIT_H

#include "node/base/defs.h"
#include "node/base/errors.h"

#include <uv.h>

struct audit;

enum {
    AUDIT_FILE_BYTES = 16 << 20,
    AUDIT_LIMIT_DEFAULT = 100,
    AUDIT_LIMIT_MAX = 10000,
    AUDIT_ANSWER_BYTES_MAX = 8 << 20, /* of one audit_read; older records are left out above it */
};

/* file_max 0: AUDIT_FILE_BYTES. RC_IO: the file cannot be appended to. */
MUST_CHECK int audit_open(uv_loop_t *loop, const char *path, size_t file_max,
                          struct audit **ret_audit, struct err_info *err);

/* After the last callback; ends the thread, then calls closed from the loop. */
void audit_close(struct audit *audit, void (*closed)(void *arg), void *arg);

/* line: without a newline; taken (mem_free). done may be NULL. RC_IO, RC_NO_SPACE: it is not in the
 * file; counted, and told in the log. */
void audit_append(struct audit *audit, char *line, void (*done)(void *arg, int rc), void *arg);

struct audit_query {
    char since[32]; /* RFC 3339 with milliseconds, UTC: records from then on; "": all */
    char user[512]; /* "": all */
    size_t limit;   /* the last ones, 1 to AUDIT_LIMIT_MAX */
};

/* text (mem_free): "[record,record...]", oldest first; NULL when rc is not RC_OK. */
void audit_read(struct audit *audit, const struct audit_query *query,
                void (*done)(void *arg, int rc, char *text), void *arg);

/* Records that could not be written since the start. */
uint64_t audit_lost(const struct audit *audit);

/* For audit.c: the last records of both files that fit the query; blocks. A new text. */
char *audit_select(const char *path, const struct audit_query *query);

#endif
