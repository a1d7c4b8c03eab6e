/*
 * One write: preconditions, plan, commit, answer; planned again while a key of it is being written.
 *
 *   prepare --faults--> 4xx
 *      |  plan: nothing to write, or ?dryRun=true --> 200
 *      v
 *   commit --RC_BUSY--> wait for settled, prepare again
 *      |  refused --> 413, 503, 507 ...
 *      v
 *   done --> 200, 201; with ?wait=all and a node that did not confirm: 202
 *
 * Between prepare and commit control does not return to the loop, so what was checked still holds.
 * Thread: the control thread.
 */
#ifndef SKEIN_ADMIN_SERVER_WRITE_H
#define SKEIN_ADMIN_SERVER_WRITE_H

#include "admin/server/auth.h"
#include "admin/server/plan.h"
#include "admin/server/server.h"

struct write {
    struct call *call;
    json_t *input;  /* what the client sent, parsed; NULL for DELETE; owned */
    size_t *lines;  /* of a document with many objects; owned; may be NULL */
    bool is_single; /* answered with the object, else with one item per request */

    /*
     * Check preconditions and fill `requests` (already filled from an earlier attempt, or empty).
     * Faults go to problem, or to err. Called at every attempt.
     */
    int (*prepare)(struct write *write, struct problem *problem, struct err_info *err);

    /* private */
    struct plan_requests requests;
    struct plan plan;
    bool wait_all;
    bool dry_run;

    json_t *last;                     /* a deleted object as it was */
    char secret[AUTH_SECRET_LEN + 1]; /* of a token that is made; "": none */
    unsigned attempts;
};

/* Takes the write (from write_new) and answers the call, now or later. */
struct write *write_new(struct call *call,
                        int (*prepare)(struct write *write, struct problem *problem,
                                       struct err_info *err));
/* For a write that is not started. */
void write_free(struct write *write);
void write_start(struct write *write);

/* RC_CONFLICT when If-Match or If-None-Match of the call do not hold for the object (NULL: there is
 * none). */
MUST_CHECK int write_check_preconditions(const struct call *call, const struct object *object,
                                         struct err_info *err);

#endif
