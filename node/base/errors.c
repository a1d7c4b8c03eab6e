/*
 * Names and texts of result codes; formatting of human text. Pure, any thread.
 */
#include "node/base/errors.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    const char *text;
} rc_table[] = {
    [0] = {"RC_OK", "ok"},
    [1] = {"RC_INVALID", "invalid input"},
    [2] = {"RC_NOT_FOUND", "not found"},
    [3] = {"RC_EXISTS", "already exists"},
    [4] = {"RC_CONFLICT", "conflicts with the present state"},
    [5] = {"RC_FULL", "full"},
    [6] = {"RC_TOO_BIG", "too large"},
    [7] = {"RC_NO_MEMORY", "out of memory"},
    [8] = {"RC_NO_SPACE", "no space left on the disk"},
    [9] = {"RC_IO", "input/output error"},
    [10] = {"RC_PEER", "protocol error of the peer"},
    [11] = {"RC_AUTH", "not authenticated"},
    [12] = {"RC_TIMEOUT", "timed out"},
    [13] = {"RC_CLOSED", "closed"},
    [14] = {"RC_AGAIN", "needs more"},
    [15] = {"RC_UNSUPPORTED", "not supported"},
    [16] = {"RC_BUSY", "in use"},
    [17] = {"RC_CORRUPT", "damaged data"},
    [18] = {"RC_CLOCK", "clock is off"},
};

const char *rc_name(int rc)
{
    size_t idx = rc <= 0 ? (size_t)-rc : ARRAY_LEN(rc_table);
    return idx < ARRAY_LEN(rc_table) ? rc_table[idx].name : "RC_?";
}

const char *rc_text(int rc)
{
    size_t idx = rc <= 0 ? (size_t)-rc : ARRAY_LEN(rc_table);
    return idx < ARRAY_LEN(rc_table) ? rc_table[idx].text : "unknown error";
}

int err_set(struct err_info *err, int rc, const char *fmt, ...)
{
    if (err != NULL) {
        va_list args;
        va_start(args, fmt);
        (void)vsnprintf(err->text, sizeof(err->text), fmt, args); /* cut text is still text */
        va_end(args);
    }
    return rc;
}

int err_prefix(struct err_info *err, int rc, const char *fmt, ...)
{
    if (err != NULL) {
        char old[sizeof(err->text)];
        memcpy(old, err->text, sizeof(old));
        va_list args;
        va_start(args, fmt);
        int len = vsnprintf(err->text, sizeof(err->text), fmt, args);
        va_end(args);
        if (len >= 0 && (size_t)len < sizeof(err->text)) {
            (void)snprintf(err->text + len, sizeof(err->text) - (size_t)len, ": %.*s",
                           (int)(sizeof(old) - 1), old);
        }
    }
    return rc;
}
