/*
 * Requests and the present state to a change-set; see the header for the rules.
 */
#include "admin/server/plan.h"

#include "node/base/check.h"
#include "node/base/hashtable.h"
#include "node/base/mem.h"
#include "proto/diff.h"
#include "proto/fault.h"
#include "proto/json.h"

#include <stdio.h>
#include <string.h>

const char *plan_action_name(enum plan_action action)
{
    static const char *const names[PLAN_ACTION_COUNT] = {"unchanged", "created", "configured",
                                                         "deleted"};
    return action < PLAN_ACTION_COUNT ? names[action] : "?";
}

/* ---- look-up of requests by what they ask for ---- */

struct key {
    const struct plan_request *request;
    char *text;
    UT_hash_handle hh;
};

static char *key_text(const struct kind *kind, const char *id)
{
    return mem_printf("%u:%s", (unsigned)kind->number, id);
}

static struct key *keys_find(struct key *keys, const struct kind *kind, const char *id)
{
    char *text = key_text(kind, id);
    struct key *found = NULL;
    HASH_FIND_STR(keys, text, found);
    mem_free(text);
    return found;
}

/* False: it is there already, and *ret_first says as what. */
static bool keys_add(struct key **keys, const struct plan_request *request,
                     const struct plan_request **ret_first)
{
    struct key *known = keys_find(*keys, request->kind, request->id);
    if (known != NULL) {
        *ret_first = known->request;
        return false;
    }
    struct key *key = mem_new(sizeof(*key));
    key->request = request;
    key->text = key_text(request->kind, request->id);
    HASH_ADD_KEYPTR(hh, *keys, key->text, strlen(key->text), key);
    return true;
}

static void keys_free(struct key **keys)
{
    struct key *key, *next;
    HASH_ITER (hh, *keys, key, next) {
        HASH_DEL(*keys, key);
        mem_free(key->text);
        mem_free(key);
    }
}

bool plan_check_duplicates(const struct plan_requests *requests, struct problem *problem)
{
    struct key *keys = NULL;
    bool good = true;
    for (size_t i = 0; i < requests->count; i++) {
        const struct plan_request *first = NULL;
        if (!keys_add(&keys, &requests->items[i], &first)) {
            good = false;
            problem_add(problem, requests->items[i].label,
                        plan_request_members(&requests->items[i]),
                        "this object is in the document twice, first as %s", first->label);
        }
    }
    keys_free(&keys);
    return good;
}

/* ---- planning ---- */

struct planner {
    const struct view *view;
    struct plan *plan;
    struct problem *problem;
    struct key *keys; /* every request of this plan */
    bool with_diff;
};

static void plan_own(struct plan *plan, char *text, ProtobufCMessage *message)
{
    if ((plan->owned_count & (plan->owned_count - 1)) == 0) {
        plan->owned = mem_grow(plan->owned, plan->owned_count * 2 + 1, sizeof(*plan->owned));
    }
    plan->owned[plan->owned_count++] = (struct plan_owned){.text = text, .message = message};
}

static void add_change(struct plan *plan, const struct kind *kind, const char *id,
                       const void *message)
{
    if ((plan->change_count & (plan->change_count - 1)) == 0) {
        plan->changes = mem_grow(plan->changes, plan->change_count * 2 + 1, sizeof(*plan->changes));
    }
    plan->changes[plan->change_count++] =
        (struct admin_change){.kind = kind, .id = id, .message = message};
}

static void add_deletion(struct plan *plan, const struct kind *kind, const char *id)
{
    char *copy = mem_strdup(id); /* id may be the object's own */
    plan_own(plan, copy, NULL);
    add_change(plan, kind, copy, NULL);
}

/* Objects that are there, gathered to be merged with those that are wanted. */
struct found {
    const struct object **items;
    size_t count;
};

static bool gather(void *arg, const struct object *object)
{
    struct found *found = arg;
    if ((found->count & (found->count - 1)) == 0) {
        found->items = mem_grow(found->items, found->count * 2 + 1, sizeof(*found->items));
    }
    found->items[found->count++] = object;
    return true;
}

static bool same_spec(const Skein__Endpoint *a, const Skein__Endpoint *b)
{
    if (a->spec == NULL || b->spec == NULL) {
        return a->spec == b->spec;
    }
    json_t *left = show_endpoint(a->spec);
    json_t *right = show_endpoint(b->spec);
    bool same = json_equal(left, right) != 0;
    json_decref(left);
    json_decref(right);
    return same;
}

static const Skein__Endpoint *as_endpoint(const void *message)
{
    return message;
}

/*
 * One Endpoint of a Backend: there or not (have), wanted or not (want). Appends what is shown of it
 * afterwards. An Endpoint that the request names by itself is left to that.
 */
static void plan_endpoint(struct planner *planner, const struct plan_request *backend,
                          struct plan_result *result, const struct object *have,
                          const struct plan_endpoint *want, json_t *shown)
{
    const struct kind *kind = kind_by_name("Endpoint");
    const char *id = have != NULL ? have->id : want->id;
    const struct key *named = keys_find(planner->keys, kind, id);
    enum plan_action action = PLAN_UNCHANGED;
    const Skein__Endpoint *after = have != NULL ? as_endpoint(have->message) : NULL;
    if (named != NULL && named->request->message != NULL) {
        if (want != NULL && !same_spec(as_endpoint(named->request->message), want->message)) {
            problem_add(planner->problem, named->request->label,
                        plan_request_members(named->request),
                        "differs from spec.endpoints of %s in the same document",
                        backend->label != NULL ? backend->label : backend->id);
        }
    } else if (want == NULL && backend->sets_endpoints) {
        action = PLAN_DELETED;
        after = NULL;
        add_deletion(planner->plan, kind, id);
    } else if (have == NULL) {
        action = PLAN_CREATED;
        after = want->message;
        add_change(planner->plan, kind, id, want->message);
    } else if (want != NULL && !same_spec(as_endpoint(have->message), want->message)) {
        action = PLAN_CONFIGURED;
        after = want->message;
        /* Its labels and annotations stay; the list says nothing about them. */
        Skein__Endpoint *changed = (void *)message_copy(&have->message->base);
        message_free(changed->spec != NULL ? &changed->spec->base : NULL);
        changed->spec = (void *)message_copy(&want->message->spec->base);
        add_change(planner->plan, kind, want->id, changed);
        plan_own(planner->plan, NULL, &changed->base);
    }
    result->endpoints[action]++;
    if (shown != NULL && after != NULL && after->spec != NULL) {
        (void)json_array_append_new(shown, show_endpoint(after->spec));
    }
}

/* All Endpoints of a Backend, those that are there merged with those that are wanted. */
static void plan_endpoints(struct planner *planner, const struct plan_request *request,
                           struct plan_result *result, json_t *shown)
{
    struct found found = {0};
    view_endpoints(planner->view, request->id, gather, &found);
    size_t have = 0, want = 0;
    while (have < found.count || want < request->endpoint_count) {
        int order = have == found.count ? 1
                    : want == request->endpoint_count
                        ? -1
                        : strcmp(found.items[have]->id, request->endpoints[want].id);
        plan_endpoint(planner, request, result, order <= 0 ? found.items[have] : NULL,
                      order >= 0 ? &request->endpoints[want] : NULL, shown);
        have += order <= 0;
        want += order >= 0;
    }
    mem_free(found.items);
}

static json_t *stored_form(const struct kind *kind, const struct object_message *message)
{
    json_t *form = object_to_json(kind, &message->base);
    show_strip(form);
    show_hide(kind, form);
    return form;
}

static void set_shown_endpoints(json_t *form, json_t *endpoints)
{
    json_t *spec = json_object_get(form, "spec");
    if (!json_is_object(spec)) {
        spec = json_object();
        (void)json_object_set_new(form, "spec", spec);
    }
    (void)json_object_set_new(spec, "endpoints", endpoints);
}

/* What is to be stored: the request's message, with what it may leave out. */
static const struct object_message *
complete(struct planner *planner, const struct plan_request *request, const struct object *present)
{
    if (present == NULL || request->kind->keep_secrets == NULL) {
        return request->message;
    }
    ProtobufCMessage *copy = message_copy(&request->message->base);
    request->kind->keep_secrets(copy, &present->message->base);
    plan_own(planner->plan, NULL, copy);
    return (const struct object_message *)(const void *)copy;
}

/* Do they differ in what is never shown? The entry says where, not what. */
static void add_secret_change(const struct kind *kind, const struct object_message *before,
                              const struct object_message *after, json_t *diff)
{
    if (kind->secrets == NULL || json_array_size(diff) > 0) {
        return;
    }
    json_t *old = object_to_json(kind, &before->base);
    json_t *new = object_to_json(kind, &after->base);
    show_strip(old);
    show_strip(new);
    json_t *full = object_diff(old, new);
    size_t i;
    json_t *entry;
    json_array_foreach(full, i, entry)
    {
        json_t *bare = json_object();
        (void)json_object_set(bare, "path", json_object_get(entry, "path"));
        (void)json_object_set_new(bare, "new", json_string("(hidden)"));
        (void)json_array_append_new(diff, bare);
    }
    json_decref(full);
    json_decref(old);
    json_decref(new);
}

/* What the node says of a message that is about to be written. */
static void check_message(struct planner *planner, const struct plan_request *request,
                          const struct object_message *message)
{
    const struct admin_ops *ops = planner->view->ops;
    if (ops->check == NULL) {
        return;
    }
    struct faults faults;
    faults_init(&faults);
    ops->check(planner->view->ctx, request->kind, &message->base, &faults);
    if (faults_any(&faults)) {
        json_t *members = plan_request_members(request);
        problem_add_faults(planner->problem, request->label, members, &faults);
        json_decref(members);
    }
    faults_deinit(&faults);
}

static void plan_put(struct planner *planner, const struct plan_request *request,
                     struct plan_result *result)
{
    const struct object *present = view_find(planner->view, request->kind, request->id);
    const struct object_message *message = complete(planner, request, present);
    json_t *after = stored_form(request->kind, message);
    json_t *before = present != NULL ? stored_form(present->kind, present->message) : NULL;
    json_t *diff = object_diff(before, after);
    if (present != NULL) {
        add_secret_change(request->kind, present->message, message, diff);
    }
    result->action = present == NULL ? PLAN_CREATED : PLAN_UNCHANGED;
    if (present == NULL || json_array_size(diff) > 0) {
        result->action = present == NULL ? PLAN_CREATED : PLAN_CONFIGURED;
        check_message(planner, request, message);
        add_change(planner->plan, request->kind, request->id, message);
    }
    if (kind_is_backend(request->kind)) {
        json_t *shown = planner->with_diff ? json_array() : NULL;
        plan_endpoints(planner, request, result, shown);
        bool changed = result->endpoints[PLAN_CREATED] > 0 ||
                       result->endpoints[PLAN_CONFIGURED] > 0 ||
                       result->endpoints[PLAN_DELETED] > 0;
        if (result->action == PLAN_UNCHANGED && changed) {
            result->action = PLAN_CONFIGURED;
        }
        if (planner->with_diff) {
            json_decref(diff);
            json_decref(before);
            before = present != NULL ? show_bare(planner->view, present) : NULL;
            set_shown_endpoints(after, shown);
            diff = object_diff(before, after);
        }
    }
    result->diff = planner->with_diff ? json_incref(diff) : NULL;
    json_decref(diff);
    json_decref(before);
    json_decref(after);
}

static bool delete_endpoint(void *arg, const struct object *object)
{
    struct planner *planner = arg;
    struct plan_result *result = &planner->plan->results[planner->plan->result_count - 1];
    add_deletion(planner->plan, object->kind, object->id);
    result->endpoints[PLAN_DELETED]++;
    return true;
}

static int plan_delete(struct planner *planner, const struct plan_request *request,
                       struct plan_result *result, struct err_info *err)
{
    const struct object *present = view_find(planner->view, request->kind, request->id);
    if (present == NULL) {
        return err_set(err, RC_NOT_FOUND, "there is no %s \"%s\"", request->kind->name,
                       request->id);
    }
    result->action = PLAN_DELETED;
    if (planner->with_diff) {
        json_t *before = show_bare(planner->view, present);
        result->diff = object_diff(before, NULL);
        json_decref(before);
    }
    add_change(planner->plan, request->kind, request->id, NULL);
    if (kind_is_backend(request->kind)) {
        view_endpoints(planner->view, request->id, delete_endpoint, planner);
    }
    return RC_OK;
}

int plan_make(const struct view *view, const struct plan_requests *requests, bool with_diff,
              struct plan *ret_plan, struct problem *problem, struct err_info *err)
{
    *ret_plan = (struct plan){0};
    struct planner planner = {
        .view = view, .plan = ret_plan, .problem = problem, .with_diff = with_diff};
    for (size_t i = 0; i < requests->count; i++) {
        const struct plan_request *first;
        bool added = keys_add(&planner.keys, &requests->items[i], &first);
        ASSERT(added); /* plan_check_duplicates came first */
    }
    ret_plan->results = mem_array(requests->count + 1, sizeof(*ret_plan->results));
    int rc = RC_OK;
    for (size_t i = 0; i < requests->count && rc == RC_OK; i++) {
        const struct plan_request *request = &requests->items[i];
        struct plan_result *result = &ret_plan->results[ret_plan->result_count++];
        *result = (struct plan_result){.kind = request->kind, .id = request->id};
        if (request->message != NULL) {
            plan_put(&planner, request, result);
        } else {
            rc = plan_delete(&planner, request, result, err);
        }
    }
    keys_free(&planner.keys);
    if (rc == RC_OK && problem->total > 0) {
        rc = err_set(err, RC_INVALID, "parts of the document disagree");
    }
    return rc;
}

void plan_deinit(struct plan *plan)
{
    for (size_t i = 0; i < plan->owned_count; i++) {
        mem_free(plan->owned[i].text);
        message_free(plan->owned[i].message);
    }
    for (size_t i = 0; i < plan->result_count; i++) {
        json_decref(plan->results[i].diff);
    }
    MEM_FREE(plan->owned);
    MEM_FREE(plan->changes);
    MEM_FREE(plan->results);
    *plan = (struct plan){0};
}
