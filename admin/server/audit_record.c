/*
 * What the audit trail says of a call: who, from where, what, and what came of it; never a value,
 * only the paths of fields.
 *
 *   {"time": "2026-01-31T10:00:00.000Z", "node": "r1", "user": "deploy", "via": "token",
 *    "from": "10.0.0.9", "method": "PUT", "path": "/v1/namespaces/shop/routes/checkout",
 *    "status": 200, "changes": [{"action": "configured", "kind": "Route", "id": "shop/checkout",
 *    "fields": ["spec.path"]}]}
 *
 * Recorded are writes with their result, and what was refused for want of a role or credential.
 * What was not carried out is recorded up to a rate, and how many were left out.
 */
#include "admin/server/auth.h"
#include "admin/server/server.h"
#include "node/base/timesrc.h"
#include "proto/json.h"

#include <string.h>

enum { REFUSED_PER_SECOND = 20 };

static bool is_of_interest(const struct call *call, int status)
{
    if (call->admin->audit == NULL || call->unrecorded) {
        return false;
    }
    if (status == 401 || status == 403) {
        return call->who.via != WHO_NOBODY || call->bad_credential;
    }
    return call->match.route != NULL && strcmp(call->match.route->method, "GET") != 0;
}

/* False: too many in this second. */
static bool gate_passes(struct audit_gate *gate, uint64_t now_s)
{
    if (gate->second != now_s) {
        gate->second = now_s;
        gate->count = 0;
    }
    if (gate->count >= REFUSED_PER_SECOND) {
        gate->left_out++;
        return false;
    }
    gate->count++;
    return true;
}

char *audit_record(struct call *call, int status)
{
    struct admin *admin = call->admin;
    if (!is_of_interest(call, status) ||
        (status >= 400 && !gate_passes(&admin->gate, time_mono_ms() / 1000))) {
        return NULL;
    }
    char time[TIME_TEXT_MAX];
    json_t *record = json_object();
    (void)json_object_set_new(record, "time", json_string(time_format_wall(time_wall_ms(), time)));
    (void)json_object_set_new(record, "node",
                              problem_string(admin->view.ops->node_name(admin->view.ctx)));
    (void)json_object_set_new(record, "user", problem_string(call->who.name));
    (void)json_object_set_new(record, "via", json_string(who_via_name(call->who.via)));
    (void)json_object_set_new(record, "from", problem_string(call->who.from));
    (void)json_object_set_new(record, "method", problem_string(call->method));
    (void)json_object_set_new(record, "path", problem_string(call->path));
    (void)json_object_set_new(record, "status", json_integer(status));
    if (call->changes != NULL) {
        (void)json_object_set(record, "changes", call->changes);
    }
    if (admin->gate.left_out > 0) {
        (void)json_object_set_new(record, "refusedLeftOut", json_integer(admin->gate.left_out));
        admin->gate.left_out = 0;
    }
    char *text = json_text(record, 0);
    json_decref(record);
    return text;
}
