/*
 * One object: get, put, patch, delete. And apply: many objects in one change.
 */
#include "admin/server/server.h"
#include "admin/server/write.h"
#include "node/base/mem.h"
#include "proto/manifest.h"
#include "proto/merge.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static const struct object *find_object(const struct call *call)
{
    return view_find(&call->admin->view, call->match.kind, call->match.id);
}

static void answer_missing(struct call *call)
{
    struct err_info err;
    (void)err_set(&err, RC_NOT_FOUND, "there is no %s \"%s\"", call->match.kind->name,
                  call->match.id);
    call_answer_error(call, RC_NOT_FOUND, &err);
}

void handle_get(struct call *call)
{
    const struct object *object = find_object(call);
    if (object == NULL) {
        answer_missing(call);
        return;
    }
    char etag[SHOW_ETAG_MAX], fields[SHOW_ETAG_MAX + 16];
    (void)show_etag(&call->admin->view, object, etag);
    (void)snprintf(fields, sizeof(fields), "ETag: \"%s\"\r\n", etag);
    if (call->if_match != NULL && !etag_matches(call->if_match, etag)) {
        call_answer_problem(call, 412, fields, NULL, "If-Match: the object has changed");
    } else if (call->if_none_match != NULL && etag_matches(call->if_none_match, etag)) {
        call_answer(call, 304, NULL, fields, NULL, 0);
    } else {
        call_answer_json(call, 200, fields, show_object(&call->admin->view, object));
    }
}

/* ---- request bodies ---- */

enum body_form { BODY_ANY = 0, BODY_JSON, BODY_YAML, BODY_REFUSED };

static bool type_is(const char *content_type, const char *name)
{
    size_t len = strlen(name);
    return strncasecmp(content_type, name, len) == 0 &&
           (content_type[len] == '\0' || content_type[len] == ';' || content_type[len] == ' ');
}

/* What the Content-Type promises. Types that clients set unasked promise nothing. */
static enum body_form body_form(const char *content_type)
{
    static const struct {
        const char *name;
        enum body_form form;
    } types[] = {
        {"application/json", BODY_JSON},
        {"text/json", BODY_JSON},
        {"application/yaml", BODY_YAML},
        {"application/x-yaml", BODY_YAML},
        {"text/yaml", BODY_YAML},
        {"text/x-yaml", BODY_YAML},
        {"application/x-www-form-urlencoded", BODY_ANY},
        {"application/octet-stream", BODY_ANY},
        {"text/plain", BODY_ANY},
    };
    if (content_type == NULL || content_type[0] == '\0') {
        return BODY_ANY;
    }
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        if (type_is(content_type, types[i].name)) {
            return types[i].form;
        }
    }
    return BODY_REFUSED;
}

/* Strictly JSON: faults are told as JSON's, and what is only YAML is one. */
static int check_json(const char *text, size_t len, struct err_info *err)
{
    json_t *value = NULL;
    int rc = json_parse(text, len, &value, err);
    json_decref(value);
    return rc;
}

/* Documents of the body, or an answer that says why there are none. */
static bool read_documents(struct call *call, json_t **ret_documents, size_t **ret_lines)
{
    enum body_form form = body_form(call->content_type);
    struct err_info err = {0};
    if (form == BODY_REFUSED) {
        call_answer_problem(call, 415, NULL, NULL,
                            "Content-Type: accepted are application/json and application/yaml");
        return false;
    }
    const char *text = call->body.data != NULL ? call->body.data : "";
    int rc = form == BODY_JSON ? check_json(text, call->body.len, &err) : RC_OK;
    if (rc == RC_OK) {
        rc = manifest_parse(text, call->body.len, ret_documents, ret_lines, &err);
        const char *first = text + strspn(text, " \t\r\n");
        if (rc == RC_INVALID && *first != '\0' && strchr("{[", *first) != NULL &&
            strstr(text, "\n---") == NULL) {
            (void)check_json(text, call->body.len, &err); /* it was meant as JSON: say its fault */
        }
    }
    if (rc == RC_OK && json_array_size(*ret_documents) == 0) {
        json_decref(*ret_documents);
        mem_free(*ret_lines);
        rc = err_set(&err, RC_INVALID, "the body has no objects");
    }
    if (rc != RC_OK) {
        call_answer_problem(call, rc == RC_TOO_BIG ? 413 : 400, NULL, NULL, err.text);
    }
    return rc == RC_OK;
}

/* ---- put ---- */

static int read_single(struct write *write, const json_t *document, struct problem *problem)
{
    const struct call *call = write->call;
    plan_requests_deinit(&write->requests);
    return plan_read(document, call->match.kind, call->match.id, NULL, &write->requests, problem)
               ? RC_OK
               : RC_INVALID;
}

static int prepare_put(struct write *write, struct problem *problem, struct err_info *err)
{
    int rc = write_check_preconditions(write->call, find_object(write->call), err);
    if (rc != RC_OK || write->requests.count > 0) {
        return rc;
    }
    return read_single(write, json_array_get(write->input, 0), problem);
}

void handle_put(struct call *call)
{
    json_t *documents;
    size_t *lines;
    if (!read_documents(call, &documents, &lines)) {
        return;
    }
    struct write *write = write_new(call, prepare_put);
    write->input = documents;
    write->lines = lines;
    write->is_single = true;
    if (json_array_size(documents) == 1) {
        write_start(write);
        return;
    }
    write_free(write);
    call_answer_problem(call, 400, NULL, NULL,
                        "the body has several objects; send them to /v1/apply");
}

/* ---- patch ---- */

/* The form that the patch applies to is the shown one: a Backend with its endpoints. */
static int prepare_patch(struct write *write, struct problem *problem, struct err_info *err)
{
    const struct call *call = write->call;
    const struct object *object = find_object(call);
    if (object == NULL) {
        return err_set(err, RC_NOT_FOUND, "there is no %s \"%s\"; PUT creates it",
                       call->match.kind->name, call->match.id);
    }
    int rc = write_check_preconditions(call, object, err);
    if (rc != RC_OK) {
        return rc;
    }
    json_t *shown = show_bare(&call->admin->view, object);
    json_t *merged = json_merge_patch(shown, write->input);
    json_t *spec = json_object_get(merged, "spec");
    if (kind_is_backend(call->match.kind) && json_is_object(merged)) {
        /* A patch that removes the list means none, where a document without it means as before. */
        if (!json_is_object(spec) && (spec == NULL || json_is_null(spec))) {
            spec = json_object();
            (void)json_object_set_new(merged, "spec", spec);
        }
        if (json_is_object(spec) && json_object_get(spec, "endpoints") == NULL) {
            (void)json_object_set_new(spec, "endpoints", json_array());
        }
    }
    rc = read_single(write, merged, problem);
    json_decref(merged);
    json_decref(shown);
    return rc;
}

void handle_patch(struct call *call)
{
    struct err_info err = {0};
    const char *type = call->content_type;
    if (type != NULL && !type_is(type, "application/merge-patch+json") &&
        body_form(type) != BODY_JSON && body_form(type) != BODY_ANY) {
        call_answer_problem(call, 415, "Accept-Patch: application/merge-patch+json\r\n", NULL,
                            "Content-Type: accepted is application/merge-patch+json");
        return;
    }
    json_t *patch;
    const char *text = call->body.data != NULL ? call->body.data : "";
    int rc = json_parse(text, call->body.len, &patch, &err);
    if (rc == RC_OK && !json_is_object(patch)) {
        json_decref(patch);
        rc = err_set(&err, RC_INVALID, "a merge patch is a JSON object");
    }
    if (rc != RC_OK) {
        call_answer_problem(call, rc == RC_TOO_BIG ? 413 : 400, NULL, NULL, err.text);
        return;
    }
    struct write *write = write_new(call, prepare_patch);
    write->input = patch;
    write->is_single = true;
    write_start(write);
}

/* ---- delete ---- */

static int prepare_delete(struct write *write, struct problem *problem, struct err_info *err)
{
    (void)problem; /* nothing was sent that could be at fault */
    const struct call *call = write->call;
    const struct object *object = find_object(call);
    if (object == NULL) {
        return err_set(err, RC_NOT_FOUND, "there is no %s \"%s\"", call->match.kind->name,
                       call->match.id);
    }
    int rc = write_check_preconditions(call, object, err);
    if (rc == RC_OK && write->requests.count == 0) {
        plan_read_delete(call->match.kind, call->match.id, &write->requests);
    }
    return rc;
}

void handle_delete(struct call *call)
{
    struct write *write = write_new(call, prepare_delete);
    write->is_single = true;
    write_start(write);
}

/* ---- apply ---- */

static int prepare_apply(struct write *write, struct problem *problem, struct err_info *err)
{
    (void)err;
    if (write->requests.count > 0) {
        return RC_OK; /* an earlier attempt read it */
    }
    size_t count = json_array_size(write->input);
    for (size_t i = 0; i < count; i++) {
        struct plan_place place = {.idx = i, .line = write->lines != NULL ? write->lines[i] : 0};
        (void)plan_read(json_array_get(write->input, i), NULL, NULL, &place, &write->requests,
                        problem); /* all faults of all objects: counted in problem */
    }
    bool unique = plan_check_duplicates(&write->requests, problem);
    if (!unique || problem->total > 0) {
        return RC_INVALID;
    }
    for (size_t i = 0; i < write->requests.count; i++) {
        const struct plan_request *request = &write->requests.items[i];
        struct err_info why = {0};
        if (access_check_write(&write->call->who, request->kind, request->id, &why) != RC_OK) {
            problem_add(problem, request->label, plan_request_members(request), "%s", why.text);
        }
    }
    write->call->admin->count.forbidden += problem->total > 0;
    return problem->total == 0 ? RC_OK : RC_AUTH;
}

void handle_apply(struct call *call)
{
    json_t *documents;
    size_t *lines;
    if (!read_documents(call, &documents, &lines)) {
        return;
    }
    struct write *write = write_new(call, prepare_apply);
    write->input = documents;
    write->lines = lines;
    write_start(write);
}
