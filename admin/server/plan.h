/*
 * From what a request asks for to what has to be written: documents to requests, requests and the
 * present state to a change-set with one result per request.
 *
 * Rules that are made here:
 *   - status and server-set metadata of a document are ignored, so that what was shown can be sent;
 *   - an object that would not change is not written;
 *   - one document asks for one object; the same object twice is a fault;
 *   - a Backend with spec.endpoints (even empty) gets exactly those Endpoint objects, plus what the
 *     same request names as Endpoint objects; without the key its endpoints stay. An Endpoint that
 *     exists keeps its labels and annotations when its Backend's list names it;
 *   - deleting a Backend deletes its Endpoint objects.
 *
 * Pure against struct admin_ops, and repeatable: after RC_BUSY the same requests are planned again.
 * Thread: the control thread.
 */
#ifndef SKEIN_ADMIN_SERVER_PLAN_H
#define SKEIN_ADMIN_SERVER_PLAN_H

#include "admin/server/problem.h"
#include "admin/server/show.h"

enum plan_action {
    PLAN_UNCHANGED = 0,
    PLAN_CREATED,
    PLAN_CONFIGURED,
    PLAN_DELETED,
    PLAN_ACTION_COUNT
};

struct plan_endpoint {
    Skein__Endpoint *message; /* owned */
    char *id;                 /* owned */
};

struct plan_request {
    const struct kind *kind;
    char *id;                       /* owned */
    struct object_message *message; /* owned, as it is to be stored; NULL deletes */
    char *label;                    /* "[2] Route shop/checkout", for faults; owned; may be NULL */
    size_t idx;                     /* as plan_place has them */
    size_t line;

    /* A Backend whose document has spec.endpoints: these, in ascending order of id. */
    bool sets_endpoints;
    struct plan_endpoint *endpoints;
    size_t endpoint_count;
};

/* Zeroed is empty. */
struct plan_requests {
    struct plan_request *items;
    size_t count;
    bool makes_tokens; /* Token objects are accepted: with a hash that the server sets */
};

struct plan_result {
    enum plan_action action;
    const struct kind *kind;
    const char *id; /* borrowed from the request */
    json_t *diff;   /* as object_diff gives it, of the shown forms; NULL unless asked for */
    unsigned endpoints[PLAN_ACTION_COUNT]; /* Endpoint objects of a Backend, by what they get */
};

/* Borrows from the requests: free it first. Zeroed is empty. */
struct plan {
    struct admin_change *changes;
    size_t change_count;
    struct plan_result *results; /* one per request, in their order */
    size_t result_count;

    /* private: what was made here and the changes point to; one of the two is set */
    struct plan_owned {
        char *text;
        ProtobufCMessage *message;
    } * owned;
    size_t owned_count;
};

const char *plan_action_name(enum plan_action action); /* "created" */

struct plan_place {
    size_t idx;  /* of the document among all, from 0 */
    size_t line; /* where it starts; 0: not known */
};

/*
 * Read one document into a request and append it. expected and id NULL: any kind, any id; else the
 * document's kind, namespace and name must be these or absent, and are filled in.
 * False: it has faults, which are added to `problem`: with a place under "[idx] Kind id: path" and
 * with members "index" and "line", with place NULL under their plain path.
 */
bool plan_read(const json_t *document, const struct kind *expected, const char *id,
               const struct plan_place *place, struct plan_requests *requests,
               struct problem *problem);

/* Members for a fault of the request as a whole; NULL when it has no place. A new reference. */
json_t *plan_request_members(const struct plan_request *request);

/* Append a deletion. */
void plan_read_delete(const struct kind *kind, const char *id, struct plan_requests *requests);

/* Add a fault for every object that is named twice. False: there was one. */
bool plan_check_duplicates(const struct plan_requests *requests, struct problem *problem);

void plan_requests_deinit(struct plan_requests *requests);

/*
 * What to write. with_diff fills results[].diff.
 * RC_INVALID: faults were added to problem (an Endpoint and its Backend's list disagree).
 * RC_NOT_FOUND: a deletion of what is not there; err names it.
 * Free with plan_deinit in every case.
 */
MUST_CHECK int plan_make(const struct view *view, const struct plan_requests *requests,
                         bool with_diff, struct plan *ret_plan, struct problem *problem,
                         struct err_info *err);
void plan_deinit(struct plan *plan);

#endif
