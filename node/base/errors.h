/*
 * The one enum of result codes and the carrier of human text.
 *
 * Fallible functions return 0 or a negative RC_*; predicates return bool; look-ups return a
 * pointer. Text for people travels in struct err_info: what was wrong, where, what would be
 * accepted.
 */
#ifndef SKEIN_NODE_BASE_ERRORS_H
#define SKEIN_NODE_BASE_ERRORS_H

#include "node/base/defs.h"

enum rc {
    RC_OK = 0,
    RC_INVALID = -1,      /* input does not have the required form */
    RC_NOT_FOUND = -2,    /* no such thing */
    RC_EXISTS = -3,       /* already there */
    RC_CONFLICT = -4,     /* a precondition (If-Match, version) does not hold */
    RC_FULL = -5,         /* a bounded buffer or queue is full; drain it and call again */
    RC_TOO_BIG = -6,      /* above a cap; calling again does not help */
    RC_NO_MEMORY = -7,    /* a try_ allocation failed */
    RC_NO_SPACE = -8,     /* the disk is full */
    RC_IO = -9,           /* the operating system refused */
    RC_PEER = -10,        /* the other side broke its protocol */
    RC_AUTH = -11,        /* wrong key, token or identity */
    RC_TIMEOUT = -12,     /* not in time */
    RC_CLOSED = -13,      /* the other side, or we, ended it */
    RC_AGAIN = -14,       /* needs more input, or not now */
    RC_UNSUPPORTED = -15, /* understood, but not offered */
    RC_BUSY = -16,        /* in use by another (port, name, lock) */
    RC_CORRUPT = -17,     /* stored data is damaged */
    RC_CLOCK = -18,       /* this node's clock is too far off */
};

struct err_info {
    char text[512]; /* NUL-terminated, "" when unset; no trailing newline or full stop */
};

/* The code's short name ("RC_INVALID"), for logs. Static storage. Any thread. */
const char *rc_name(int rc);

/* A person's words for the code ("not found"). Static storage. Any thread. */
const char *rc_text(int rc);

/* Format into err (NULL is ignored) and return rc, so that `return err_set(...)` reads well. */
int err_set(struct err_info *err, int rc, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Put "prefix: " before the text that err already has (NULL is ignored). Returns rc. */
int err_prefix(struct err_info *err, int rc, const char *fmt, ...) PRINTF_LIKE(3, 4);

#endif
