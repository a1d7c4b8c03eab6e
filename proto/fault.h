/*
 * Everything that is wrong with an object, each with the path of the field.
 *
 * Checks walk an object and say where they are (faults_enter, faults_leave), so that a fault knows
 * its path without being told. The list is bounded: after FAULTS_MAX further ones are only counted.
 * Texts say what was found and what would be accepted ("300 is above 256"); control bytes in them
 * are replaced and long ones cut between characters, so they are safe to print and to encode.
 * Thread: the owner's.
 */
#ifndef SKEIN_PROTO_FAULT_H
#define SKEIN_PROTO_FAULT_H

#include "node/base/buf.h"
#include "node/base/defs.h"
#include "node/base/errors.h"

enum {
    FAULTS_MAX = 100,
    FAULT_PATH_MAX = 512, /* bytes, NUL included; longer paths are cut */
    FAULT_TEXT_MAX = 400,
};

struct fault {
    char *path; /* "spec.to[1].weight"; "" for the object as a whole; owned */
    char *text; /* one line; owned */
};

struct faults {
    struct fault *items;
    size_t count;  /* items that are there */
    size_t total;  /* faults found, those above FAULTS_MAX included */
    size_t shadow; /* see faults_shadow */
    char path[FAULT_PATH_MAX];
    size_t path_len;
};

void faults_init(struct faults *faults);
void faults_deinit(struct faults *faults);

/* Step into a field, an element of a list, or an entry of a map. The result undoes it. */
size_t faults_enter(struct faults *faults, const char *field);
size_t faults_enter_idx(struct faults *faults, size_t idx);
size_t faults_enter_key(struct faults *faults, const char *key);
size_t faults_enter_item(struct faults *faults, const char *field, size_t idx);
void faults_leave(struct faults *faults, size_t mark);

/* A fault of the place where the walk is, or of a field of it (NULL: of the place itself). */
void fault_add(struct faults *faults, const char *fmt, ...) PRINTF_LIKE(2, 3);
void fault_field(struct faults *faults, const char *field, const char *fmt, ...) PRINTF_LIKE(3, 4);

/*
 * From now on a fault at, or below, the place of one that is already there is left out: it would
 * follow from it (a field of the wrong type is also missing). Between reading and validating.
 */
void faults_shadow(struct faults *faults);

static inline bool faults_any(const struct faults *faults)
{
    return faults->total != 0;
}

/* One line per fault, "path: text\n", and "and N more\n" when there were too many. Appended. */
void faults_format(const struct faults *faults, struct buf *out);

/* The first fault, and how many more there are, into err. Returns rc. Needs faults_any. */
int faults_err(const struct faults *faults, int rc, struct err_info *err);

#endif
