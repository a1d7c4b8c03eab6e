/*
 * Keys of session tickets: what there are, and another one from now on. No secret passes here.
 */
#include "admin/server/server.h"

#include "node/base/timesrc.h"
#include "proto/manifest.h"

#include <string.h>

enum { KEYS_MAX = 64 };

static void put_time(json_t *json, const char *name, uint64_t ms)
{
    char text[TIME_TEXT_MAX];
    if (ms != 0) {
        (void)json_object_set_new(json, name, json_string(time_format_wall(ms, text)));
    }
}

static json_t *key_json(const struct admin_ticket_key *key)
{
    json_t *json = json_object();
    (void)json_object_set_new(json, "name", problem_string(key->name));
    (void)json_object_set_new(json, "state", json_string(key->state));
    (void)json_object_set_new(json, "epoch", json_integer((json_int_t)key->epoch));
    put_time(json, "created", key->created_ms);
    put_time(json, "notBefore", key->not_before_ms);
    put_time(json, "expires", key->expires_ms);
    (void)json_object_set_new(json, "creator", problem_string(key->creator));
    return json;
}

static json_t *keys_json(const struct call *call)
{
    const struct view *view = &call->admin->view;
    struct admin_ticket_key keys[KEYS_MAX];
    size_t count = MIN(view->ops->ticket_keys(view->ctx, keys, KEYS_MAX), (size_t)KEYS_MAX);
    json_t *items = json_array();
    for (size_t i = 0; i < count; i++) {
        (void)json_array_append_new(items, key_json(&keys[i]));
    }
    json_t *json = json_object();
    (void)json_object_set_new(json, "items", items);
    return json;
}

void handle_tickets(struct call *call)
{
    call_answer_json(call, 200, NULL, keys_json(call));
}

/* The body: nothing, or an object with "revoke" at most. */
static int read_revoke(const struct call *call, bool *ret_revoke, struct err_info *err)
{
    *ret_revoke = false;
    if (call->body.len == 0) {
        return RC_OK;
    }
    json_t *body;
    int rc = json_parse(call->body.data, call->body.len, &body, err);
    if (rc != RC_OK) {
        return rc;
    }
    const json_t *revoke = json_object_get(body, "revoke");
    size_t known = revoke != NULL ? 1 : 0;
    if (!json_is_object(body) || json_object_size(body) != known ||
        (revoke != NULL && !json_is_boolean(revoke))) {
        rc = err_set(err, RC_INVALID, "wants {\"revoke\": true}, or nothing");
    }
    *ret_revoke = json_is_true(revoke);
    json_decref(body);
    return rc;
}

static void on_done(void *arg, int rc, uint64_t revision, const char *text)
{
    struct call *call = arg;
    if (rc == RC_OK || rc == RC_TIMEOUT) {
        json_t *json = keys_json(call);
        (void)json_object_set_new(json, "revision", json_integer((json_int_t)revision));
        if (rc == RC_TIMEOUT) {
            (void)json_object_set_new(json, "unconfirmed", problem_string(text));
        }
        call_answer_json(call, rc == RC_OK ? 200 : 202, NULL, json);
    } else {
        struct err_info err = {0};
        (void)err_set(&err, rc, "%s", text != NULL ? text : "");
        call_answer_error(call, rc, &err);
    }
    call_release(call);
}

void handle_tickets_rotate(struct call *call)
{
    const struct view *view = &call->admin->view;
    struct err_info err = {0};
    bool revoke = false;
    const char *wait = query_find(&call->query, "wait");
    int rc = read_revoke(call, &revoke, &err);
    if (rc == RC_OK && wait != NULL && strcmp(wait, "all") != 0) {
        rc = err_set(&err, RC_INVALID, "wait: \"%.40s\" is unknown; accepted: all", wait);
    }
    if (rc != RC_OK) {
        call_answer_problem(call, 400, NULL, NULL, err.text);
        return;
    }
    call_hold(call);
    rc = view->ops->rotate_tickets(view->ctx, revoke, wait != NULL, on_done, call, &err);
    if (rc == RC_OK) {
        return; /* on_done goes on */
    }
    if (rc == RC_CONFLICT) {
        call_answer_problem(call, 409, NULL, NULL, err.text);
    } else {
        call_answer_error(call, rc, &err);
    }
    call_release(call);
}
