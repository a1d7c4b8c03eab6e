/*
 * What the node says of itself and of the cluster: members, health, counters, the API's table.
 */
#include "admin/server/server.h"

#include "node/base/mem.h"

#include <stdio.h>
#include <string.h>

enum { MEMBERS_MAX = 4096, REASON_MAX = 512, METRICS_BYTES_MAX = ADMIN_ANSWER_BYTES_MAX };

static json_t *member_json(const struct admin_member *member)
{
    json_t *json = json_object();
    (void)json_object_set_new(json, "id", problem_string(member->id));
    (void)json_object_set_new(json, "name", problem_string(member->name));
    (void)json_object_set_new(json, "self", json_boolean(member->is_self));
    (void)json_object_set_new(json, "state", json_string(member->state));
    (void)json_object_set_new(json, "ready", json_boolean(member->ready));
    (void)json_object_set_new(json, "address", problem_string(member->address));
    (void)json_object_set_new(json, "version", problem_string(member->version));
    (void)json_object_set_new(json, "revision", json_integer((json_int_t)member->revision));
    (void)json_object_set_new(json, "lag", json_integer((json_int_t)member->lag));
    (void)json_object_set_new(json, "inStep", json_boolean(member->in_step));
    (void)json_object_set_new(json, "clockOffsetMs", json_integer(member->clock_offset_ms));
    (void)json_object_set_new(json, "clockFlagged", json_boolean(member->clock_flagged));
    (void)json_object_set_new(json, "rttUs", json_integer(member->rtt_us));
    (void)json_object_set_new(json, "heardMsAgo",
                              member->heard_ms_ago == UINT64_MAX
                                  ? json_null()
                                  : json_integer((json_int_t)member->heard_ms_ago));
    return json;
}

void handle_cluster(struct call *call)
{
    const struct view *view = &call->admin->view;
    size_t count = MIN(view->ops->members(view->ctx, NULL, 0), (size_t)MEMBERS_MAX);
    struct admin_member *members = mem_array(count + 1, sizeof(*members));
    count = MIN(view->ops->members(view->ctx, members, count), count);
    json_t *list = json_array();
    bool in_step = true;
    for (size_t i = 0; i < count; i++) {
        (void)json_array_append_new(list, member_json(&members[i]));
        bool counts = strcmp(members[i].state, "alive") == 0 && !members[i].is_self;
        in_step = in_step && (!counts || members[i].in_step);
    }
    mem_free(members);
    char reason[REASON_MAX] = "";
    bool ready = view->ops->ready(view->ctx, reason, sizeof(reason));
    json_t *json = json_object();
    (void)json_object_set_new(json, "node", problem_string(view->ops->node_name(view->ctx)));
    (void)json_object_set_new(json, "version", json_string(SKEIN_VERSION));
    (void)json_object_set_new(json, "revision", json_integer((json_int_t)view_revision(view)));
    (void)json_object_set_new(json, "ready", json_boolean(ready));
    if (!ready) {
        (void)json_object_set_new(json, "reason", problem_string(reason));
    }
    (void)json_object_set_new(json, "inStep", json_boolean(in_step));
    (void)json_object_set_new(json, "members", list);
    call_answer_json(call, 200, NULL, json);
}

void handle_forget(struct call *call)
{
    const struct view *view = &call->admin->view;
    struct err_info err = {0};
    int rc = view->ops->forget(view->ctx, call->match.id, &err);
    if (rc != RC_OK) {
        /* The state of the member is in the way, not the load of the node. */
        int status = rc == RC_BUSY ? 409 : problem_status(rc);
        call_answer_problem(call, status, NULL, NULL, err.text);
        return;
    }
    json_t *json = json_object();
    (void)json_object_set_new(json, "forgotten", problem_string(call->match.id));
    call_answer_json(call, 200, NULL, json);
}

void handle_metrics(struct call *call)
{
    struct buf out;
    buf_init(&out, METRICS_BYTES_MAX);
    call->admin->view.ops->metrics(call->admin->view.ctx, &out);
    if (out.full) {
        call_answer_problem(call, 500, NULL, NULL, "the metrics are too large");
    } else {
        call_answer(call, 200, "text/plain; version=0.0.4; charset=utf-8", NULL, out.data, out.len);
    }
    buf_deinit(&out);
}

void handle_healthz(struct call *call)
{
    static const char text[] = "ok\n";
    call_answer(call, 200, "text/plain; charset=utf-8", NULL, text, sizeof(text) - 1);
}

void handle_readyz(struct call *call)
{
    static const char text[] = "ready\n";
    char reason[REASON_MAX] = "";
    if (call->admin->view.ops->ready(call->admin->view.ctx, reason, sizeof(reason))) {
        call_answer(call, 200, "text/plain; charset=utf-8", NULL, text, sizeof(text) - 1);
    } else {
        call_answer_problem(call, 503, "Retry-After: 1\r\n", NULL,
                            reason[0] != '\0' ? reason : "not ready");
    }
}

void handle_index(struct call *call)
{
    json_t *list = json_array();
    for (const struct route *route = routes; route->method != NULL; route++) {
        json_t *row = json_object();
        (void)json_object_set_new(row, "method", json_string(route->method));
        (void)json_object_set_new(row, "path", json_string(route->path));
        (void)json_object_set_new(row, "parameters", json_string(route->params));
        (void)json_object_set_new(row, "doc", json_string(route->doc));
        (void)json_object_set_new(row, "role", json_string(access_name(route->least)));
        (void)json_array_append_new(list, row);
    }
    json_t *kind_list = json_array();
    for (const struct kind *kind = kinds; kind->name != NULL; kind++) {
        json_t *row = json_object();
        (void)json_object_set_new(row, "kind", json_string(kind->name));
        (void)json_object_set_new(row, "path", json_string(kind->plural));
        (void)json_object_set_new(row, "namespaced", json_boolean(kind->namespaced));
        (void)json_array_append_new(kind_list, row);
    }
    json_t *json = json_object();
    (void)json_object_set_new(json, "version", json_string(SKEIN_VERSION));
    (void)json_object_set_new(json, "endpoints", list);
    (void)json_object_set_new(json, "kinds", kind_list);
    call_answer_json(call, 200, NULL, json);
}
