/*
 * Writes; see the header.
 */
#include "admin/server/write.h"

#include "node/base/mem.h"
#include "node/tls/crypto.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    ATTEMPTS_MAX = 200,            /* each waits for another write to end */
    AUDIT_FIELD_BYTES = 64 * 1024, /* paths of changed fields in one record */
    AUDIT_DIFF_MAX = 64,           /* objects of a request whose fields are compared for it */
};

static void write_try(struct write *write);

struct write *write_new(struct call *call,
                        int (*prepare)(struct write *write, struct problem *problem,
                                       struct err_info *err))
{
    struct write *write = mem_new(sizeof(*write));
    write->call = call;
    write->prepare = prepare;
    return write;
}

void write_free(struct write *write)
{
    plan_deinit(&write->plan);
    plan_requests_deinit(&write->requests);
    json_decref(write->input);
    json_decref(write->last);
    mem_free(write->lines);
    crypto_wipe(write->secret, sizeof(write->secret));
    mem_free(write);
}

int write_check_preconditions(const struct call *call, const struct object *object,
                              struct err_info *err)
{
    char etag[SHOW_ETAG_MAX];
    if (object != NULL) {
        (void)show_etag(&call->admin->view, object, etag);
    }
    const char *present = object != NULL ? etag : NULL;
    if (call->if_match != NULL && !etag_matches(call->if_match, present)) {
        return present != NULL
                   ? err_set(err, RC_CONFLICT,
                             "If-Match: the object has changed, its entity tag is \"%s\"; get it "
                             "again and repeat the change",
                             present)
                   : err_set(err, RC_CONFLICT, "If-Match: there is no such object");
    }
    if (call->if_none_match != NULL && etag_matches(call->if_none_match, present)) {
        return err_set(err, RC_CONFLICT,
                       "If-None-Match: the object exists, its entity tag is \"%s\"", present);
    }
    return RC_OK;
}

/* ---- answers ---- */

static void split_id(const struct kind *kind, const char *id, json_t *item)
{
    const char *slash = kind->namespaced ? strchr(id, '/') : NULL;
    if (slash != NULL) {
        (void)json_object_set_new(item, "namespace", json_stringn(id, (size_t)(slash - id)));
    }
    (void)json_object_set_new(item, "name", json_string(slash != NULL ? slash + 1 : id));
}

/* {"created": 2, "deleted": 1}: what the Endpoint objects of a Backend get. */
static json_t *endpoint_counts(const struct plan_result *result)
{
    json_t *counts = json_object();
    for (unsigned action = 0; action < PLAN_ACTION_COUNT; action++) {
        if (result->endpoints[action] > 0) {
            (void)json_object_set_new(counts, plan_action_name(action),
                                      json_integer(result->endpoints[action]));
        }
    }
    return counts;
}

static json_t *result_json(const struct plan_result *result, bool with_diff)
{
    json_t *item = json_object();
    (void)json_object_set_new(item, "action", json_string(plan_action_name(result->action)));
    (void)json_object_set_new(item, "kind", json_string(result->kind->name));
    split_id(result->kind, result->id, item);
    if (kind_is_backend(result->kind)) {
        (void)json_object_set_new(item, "endpoints", endpoint_counts(result));
    }
    if (with_diff && result->diff != NULL) {
        (void)json_object_set(item, "diff", result->diff);
    }
    return item;
}

/* {"confirmed": ...}: what became of ?wait=all. */
static void put_wait(const struct write *write, json_t *json, const char *unconfirmed)
{
    if (!write->wait_all || write->dry_run) {
        return;
    }
    json_t *wait = json_object();
    (void)json_object_set_new(wait, "confirmed", json_boolean(unconfirmed == NULL));
    if (unconfirmed != NULL) {
        (void)json_object_set_new(wait, "detail", problem_string(unconfirmed));
    }
    (void)json_object_set_new(json, "wait", wait);
}

static void respond_many(struct write *write, int status, uint64_t revision,
                         const char *unconfirmed)
{
    json_t *json = json_object();
    json_t *items = json_array();
    for (size_t i = 0; i < write->plan.result_count; i++) {
        (void)json_array_append_new(items, result_json(&write->plan.results[i], write->dry_run));
    }
    (void)json_object_set_new(json, "revision", json_integer((json_int_t)revision));
    (void)json_object_set_new(json, "dryRun", json_boolean(write->dry_run));
    (void)json_object_set_new(json, "items", items);
    put_wait(write, json, unconfirmed);
    call_answer_json(write->call, status, NULL, json);
}

static void respond_single(struct write *write, int status, uint64_t revision,
                           const char *unconfirmed)
{
    const struct view *view = &write->call->admin->view;
    const struct plan_result *result = &write->plan.results[0];
    char fields[SHOW_ETAG_MAX + 16] = "";
    json_t *json = NULL;
    if (result->action == PLAN_DELETED) {
        json = json_incref(write->last);
    } else {
        const struct object *object = view_find(view, result->kind, result->id);
        if (object == NULL) { /* deleted by another writer in the meantime */
            json = json_pack("{s:s}", "kind", result->kind->name);
        } else {
            char etag[SHOW_ETAG_MAX];
            json = show_object(view, object);
            (void)snprintf(fields, sizeof(fields), "ETag: \"%s\"\r\n",
                           show_etag(view, object, etag));
        }
    }
    (void)json_object_set_new(json, "revision", json_integer((json_int_t)revision));
    if (write->secret[0] != '\0') {
        (void)json_object_set_new(json, "secret", json_string(write->secret));
    }
    put_wait(write, json, unconfirmed);
    if (status == 200 && result->action == PLAN_CREATED) {
        status = 201;
    }
    call_answer_json(write->call, status, fields, json);
}

/* Paths of the fields of a result that differ, as far as `room` bytes go. */
static json_t *changed_fields(const struct plan_result *result, size_t *room)
{
    json_t *fields = json_array();
    size_t i;
    json_t *entry;
    json_array_foreach(result->diff, i, entry)
    {
        const char *path = json_string_value(json_object_get(entry, "path"));
        if (path == NULL || path[0] == '\0' || strlen(path) > *room) {
            continue;
        }
        *room -= strlen(path);
        (void)json_array_append_new(fields, problem_string(path));
    }
    return fields;
}

/* What the plan came to, for the audit trail: every object, and paths of fields, no values. */
static json_t *audit_changes(const struct plan *plan)
{
    json_t *changes = json_array();
    size_t room = AUDIT_FIELD_BYTES;
    for (size_t i = 0; i < plan->result_count; i++) {
        const struct plan_result *result = &plan->results[i];
        if (result->action == PLAN_UNCHANGED) {
            continue;
        }
        json_t *change = json_object();
        (void)json_object_set_new(change, "action", json_string(plan_action_name(result->action)));
        (void)json_object_set_new(change, "kind", json_string(result->kind->name));
        (void)json_object_set_new(change, "id", problem_string(result->id));
        if (result->action == PLAN_CONFIGURED) {
            (void)json_object_set_new(change, "fields", changed_fields(result, &room));
        }
        (void)json_array_append_new(changes, change);
    }
    return changes;
}

static void respond(struct write *write, int status, uint64_t revision, const char *unconfirmed)
{
    struct call *call = write->call;
    call->unrecorded = write->dry_run;
    json_decref(call->changes);
    call->changes = write->dry_run ? NULL : audit_changes(&write->plan);
    if (call->conn == NULL) {
        call_answer(call, status, NULL, NULL, NULL, 0); /* for the record alone */
        return;
    }
    if (write->is_single && !write->dry_run) {
        respond_single(write, status, revision, unconfirmed);
    } else {
        respond_many(write, status, revision, unconfirmed);
    }
}

/* ---- commit ---- */

static void on_done(void *arg, int rc, uint64_t revision, const char *text)
{
    struct write *write = arg;
    struct call *call = write->call;
    if (rc == RC_OK) {
        respond(write, 200, revision, NULL);
    } else if (rc == RC_TIMEOUT) {
        /* It is durable and will spread: an error would invite the client to undo or repeat it. */
        respond(write, 202, revision,
                text != NULL && text[0] != '\0' ? text : "not every live node confirmed in time");
    } else {
        struct err_info err = {0};
        (void)err_set(&err, rc, "%s", text != NULL ? text : "");
        call_answer_error(call, rc, &err);
    }
    write_free(write);
    call_release(call);
}

static void on_settled(void *arg)
{
    struct write *write = arg;
    struct call *call = write->call;
    if (call->conn == NULL) { /* nobody is waiting, and nothing was written */
        write_free(write);
    } else {
        write_try(write);
    }
    call_release(call);
}

static void commit(struct write *write)
{
    struct call *call = write->call;
    const struct view *view = &call->admin->view;
    struct err_info err = {0};
    call_hold(call);
    int rc = view->ops->commit(view->ctx, write->plan.changes, write->plan.change_count,
                               write->wait_all, on_done, write, &err);
    if (rc == RC_OK) {
        return; /* on_done goes on */
    }
    if (rc == RC_BUSY && write->attempts < ATTEMPTS_MAX) {
        view->ops->settled(view->ctx, on_settled, write);
        return;
    }
    if (rc == RC_BUSY && err.text[0] == '\0') {
        (void)err_set(&err, rc, "other writes of the same objects kept coming; try again");
    }
    call_answer_error(call, rc, &err);
    write_free(write);
    call_release(call);
}

/* Deletion answers with what is gone. */
static void keep_last(struct write *write)
{
    const struct view *view = &write->call->admin->view;
    const struct plan_result *result = &write->plan.results[0];
    const struct object *object = view_find(view, result->kind, result->id);
    json_decref(write->last);
    write->last = object != NULL ? show_object(view, object) : NULL;
}

static void write_try(struct write *write)
{
    struct call *call = write->call;
    const struct view *view = &call->admin->view;
    struct problem problem = {0};
    struct err_info err = {0};
    write->attempts++;
    plan_deinit(&write->plan);
    call->unrecorded = write->dry_run;
    int rc = write->prepare(write, &problem, &err);
    bool with_diff = write->dry_run || write->requests.count <= AUDIT_DIFF_MAX;
    if (rc == RC_OK) {
        rc = plan_make(view, &write->requests, with_diff, &write->plan, &problem, &err);
    }
    if (rc != RC_OK && problem.total > 0) {
        call_answer_problem(call, problem_status(rc), NULL, &problem, NULL);
    } else if (rc != RC_OK) {
        call_answer_error(call, rc, &err);
    } else if (write->dry_run || write->plan.change_count == 0) {
        respond(write, 200, view_revision(view), NULL);
    } else {
        if (write->is_single && write->plan.results[0].action == PLAN_DELETED) {
            keep_last(write);
        }
        commit(write);
        return;
    }
    problem_deinit(&problem);
    write_free(write);
}

void write_start(struct write *write)
{
    struct call *call = write->call;
    struct err_info err = {0};
    const char *wait = query_find(&call->query, "wait");
    int rc = query_bool(&call->query, "dryRun", &write->dry_run, &err);
    if (rc == RC_OK && wait != NULL && strcmp(wait, "all") != 0) {
        rc = err_set(&err, RC_INVALID, "wait: \"%.40s\" is unknown; accepted: all", wait);
    }
    if (rc != RC_OK) {
        call_answer_problem(call, 400, NULL, NULL, err.text);
        write_free(write);
        return;
    }
    write->wait_all = wait != NULL;
    write_try(write);
}
