/*
 * GET /v1/audit: the last records of this node's audit trail, oldest first.
 *
 * ?since= a moment (RFC 3339) or a span before now ("1h"); ?user= a token's name, a certificate's
 * subject, "uid 1000"; ?limit=. The files are read on the audit thread.
 */
#include "admin/server/server.h"
#include "node/base/mem.h"
#include "node/base/timesrc.h"
#include "proto/json.h"
#include "proto/manifest.h"
#include "proto/scalar.h"

#include <stdio.h>
#include <string.h>

static int read_since(const char *text, struct audit_query *query, struct err_info *err)
{
    uint64_t moment, span, now = time_wall_ms();
    struct err_info ignored = {0};
    if (text == NULL) {
        return RC_OK;
    }
    if (duration_parse(text, &span, &ignored) == RC_OK) {
        moment = now - MIN(span, now);
    } else if (wall_parse(text, &moment, &ignored) != RC_OK) {
        return err_set(err, RC_INVALID,
                       "since: \"%.60s\" is neither a moment (2026-01-31T10:00:00Z) nor a span "
                       "(30m, 2h, 1d)",
                       text);
    }
    (void)time_format_wall(moment, query->since);
    return RC_OK;
}

static void on_read(void *arg, int rc, char *text)
{
    struct call *call = arg;
    (void)rc;
    if (call->conn != NULL) {
        const struct view *view = &call->admin->view;
        json_t *json = json_object();
        struct err_info err = {0};
        json_t *items = NULL;
        if (json_parse(text, strlen(text), &items, &err) != RC_OK) {
            items = json_array();
        }
        (void)json_object_set_new(json, "node", problem_string(view->ops->node_name(view->ctx)));
        (void)json_object_set_new(json, "items", items);
        call_answer_json(call, 200, NULL, json);
    }
    mem_free(text);
    call_release(call);
}

void handle_audit(struct call *call)
{
    struct err_info err = {0};
    struct audit_query query = {.limit = AUDIT_LIMIT_DEFAULT};
    uint64_t limit = AUDIT_LIMIT_DEFAULT;
    const char *user = query_find(&call->query, "user");
    int rc = query_number(&call->query, "limit", 1, AUDIT_LIMIT_MAX, &limit, &err);
    rc = rc != RC_OK ? rc : read_since(query_find(&call->query, "since"), &query, &err);
    if (rc != RC_OK) {
        call_answer_problem(call, 400, NULL, NULL, err.text);
        return;
    }
    if (call->admin->audit == NULL) {
        call_answer_problem(call, 404, NULL, NULL, "no audit trail is kept here");
        return;
    }
    query.limit = (size_t)limit;
    (void)snprintf(query.user, sizeof(query.user), "%s", user != NULL ? user : "");
    call_hold(call);
    audit_read(call->admin->audit, &query, on_read, call);
}
