/*
 * The one shape of every error of the API: application/problem+json (RFC 9457) with all faults.
 *
 *   {"type": "about:blank", "title": "Unprocessable Content", "status": 422,
 *    "detail": "2 faults", "errors": [{"path": "spec.to[1].weight", "message": "300 is above
 * 256"}]}
 *
 * Pure. Thread: any.
 */
#ifndef SKEIN_ADMIN_SERVER_PROBLEM_H
#define SKEIN_ADMIN_SERVER_PROBLEM_H

#include "node/base/errors.h"
#include "proto/fault.h"

#include <jansson.h>

enum { PROBLEM_ERRORS_MAX = 100 };

struct problem {
    json_t *errors; /* owned; NULL while there are none */
    size_t total;   /* those above PROBLEM_ERRORS_MAX included */
};

void problem_deinit(struct problem *problem);

/* One error. members: further members of the entry, merged in and released; may be NULL. */
void problem_add(struct problem *problem, const char *path, json_t *members, const char *fmt, ...)
    PRINTF_LIKE(4, 5);

/*
 * Every fault, its path behind "prefix: " (prefix NULL: none; a fault without path gets the prefix
 * alone). members is copied into each entry; borrowed, may be NULL.
 */
void problem_add_faults(struct problem *problem, const char *prefix, json_t *members,
                        const struct faults *faults);

/* A JSON string of any bytes: what is not UTF-8 (a text that was cut) becomes '?'. */
json_t *problem_string(const char *text);

/* The document: a new reference. detail NULL or "": the number of faults. Takes the errors. */
json_t *problem_to_json(struct problem *problem, int status, const char *detail);

/* The status that a result code of the planning or of admin_ops stands for. */
int problem_status(int rc);

#endif
