/*
 * Documents to requests, requests to a change-set; see the header for the rules.
 */
#include "admin/server/plan.h"

#include "node/base/check.h"
#include "node/base/mem.h"
#include "proto/diff.h"
#include "proto/json.h"
#include "proto/validate.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <uthash.h>

const char *plan_action_name(enum plan_action action)
{
    static const char *const names[PLAN_ACTION_COUNT] = {"unchanged", "created", "configured",
                                                         "deleted"};
    return action < PLAN_ACTION_COUNT ? names[action] : "?";
}

/* ---- reading documents ---- */

static const char *text_member(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

/* "[2] Route shop/checkout", as well as the document says. */
static char *make_label(const json_t *document, const struct plan_place *place)
{
    const char *kind_name = text_member(document, "kind");
    const struct kind *kind = kind_name != NULL ? kind_by_name(kind_name) : NULL;
    const json_t *metadata = json_object_get(document, "metadata");
    const char *name = text_member(metadata, "name");
    const char *namespace_ = text_member(metadata, "namespace");
    bool namespaced = kind == NULL ? namespace_ != NULL : kind->namespaced;
    return mem_printf("[%zu] %.40s %s%.64s%s%.255s", place->idx,
                      kind_name != NULL ? kind_name : "object", "",
                      !namespaced          ? ""
                      : namespace_ != NULL ? namespace_
                                           : "default",
                      namespaced ? "/" : "", name != NULL ? name : "(no name)");
}

/* The document must say `value` at this member, or nothing. */
static void fill_member(json_t *object, const char *name, const char *value, const char *path,
                        struct faults *faults)
{
    json_t *present = json_object_get(object, name);
    if (present == NULL || json_is_null(present)) {
        (void)json_object_set_new(object, name, json_string(value));
    } else if (json_is_string(present) && strcasecmp(json_string_value(present), value) != 0) {
        fault_field(faults, path, "\"%.80s\" is not \"%.260s\", which the request's path names",
                    json_string_value(present), value);
    }
}

static void fill_identity(json_t *document, const struct kind *kind, const char *id,
                          struct faults *faults)
{
    json_t *metadata = json_object_get(document, "metadata");
    if (metadata == NULL || json_is_null(metadata)) {
        metadata = json_object();
        (void)json_object_set_new(document, "metadata", metadata);
    }
    fill_member(document, "kind", kind->name, "kind", faults);
    if (!json_is_object(metadata)) {
        return; /* reading names the wrong type */
    }
    const char *name = id;
    if (kind->namespaced) {
        const char *slash = strchr(id, '/');
        char namespace_[OBJECT_ID_MAX + 1];
        (void)snprintf(namespace_, sizeof(namespace_), "%.*s", (int)(slash - id), id);
        fill_member(metadata, "namespace", namespace_, "metadata.namespace", faults);
        name = slash + 1;
    }
    fill_member(metadata, "name", name, "metadata.name", faults);
}

static int compare_endpoints(const void *a, const void *b)
{
    const struct plan_endpoint *left = a, *right = b;
    return strcmp(left->id, right->id);
}

/* Move spec.endpoints out of the message into Endpoint objects of the request. */
static void take_endpoints(struct plan_request *request, struct faults *faults)
{
    Skein__Backend *backend = (void *)request->message;
    size_t count = backend->spec != NULL ? backend->spec->n_endpoints : 0;
    request->endpoints = count > 0 ? mem_array(count, sizeof(*request->endpoints)) : NULL;
    for (size_t i = 0; i < count; i++) {
        char id[OBJECT_ID_MAX + 1];
        Skein__Endpoint *endpoint = endpoint_from_backend(backend, i);
        (void)object_id(kind_by_name("Endpoint"), endpoint->metadata, id);
        request->endpoints[i] = (struct plan_endpoint){.message = endpoint, .id = mem_strdup(id)};
        request->endpoint_count++;
    }
    backend_clear_endpoints(backend);
    if (count > 1) {
        qsort(request->endpoints, count, sizeof(*request->endpoints), compare_endpoints);
    }
    for (size_t i = 1; i < count; i++) {
        if (strcmp(request->endpoints[i - 1].id, request->endpoints[i].id) == 0) {
            fault_field(faults, "spec.endpoints", "%s is there twice",
                        request->endpoints[i].message->spec->address);
        }
    }
}

static void request_deinit(struct plan_request *request)
{
    for (size_t i = 0; i < request->endpoint_count; i++) {
        message_free(&request->endpoints[i].message->base);
        mem_free(request->endpoints[i].id);
    }
    MEM_FREE(request->endpoints);
    MEM_FREE(request->id);
    MEM_FREE(request->label);
    message_free(request->message != NULL ? &request->message->base : NULL);
    request->message = NULL;
}

void plan_requests_deinit(struct plan_requests *requests)
{
    for (size_t i = 0; i < requests->count; i++) {
        request_deinit(&requests->items[i]);
    }
    MEM_FREE(requests->items);
    requests->count = 0;
}

static void append_request(struct plan_requests *requests, const struct plan_request *request)
{
    if ((requests->count & (requests->count - 1)) == 0) { /* 0 and powers of two: grow */
        requests->items =
            mem_grow(requests->items, requests->count * 2 + 1, sizeof(*requests->items));
    }
    requests->items[requests->count++] = *request;
}

/* What an answer carries and a document need not: ignored, so that answers can be sent back. */
static json_t *strip_answer(const json_t *document)
{
    json_t *bare = json_deep_copy(document); /* jansson's only const-correct way to own it */
    show_strip(bare);
    (void)json_object_del(bare, "revision");
    (void)json_object_del(bare, "wait");
    return bare;
}

static void read_request(const json_t *document, const struct kind *expected, const char *id,
                         struct plan_request *request, struct faults *faults)
{
    json_t *bare = strip_answer(document);
    if (expected != NULL) {
        fill_identity(bare, expected, id, faults);
    }
    request->message = object_from_json(bare, expected, &request->kind, faults);
    const json_t *endpoints = json_object_get(json_object_get(bare, "spec"), "endpoints");
    request->sets_endpoints = endpoints != NULL && !json_is_null(endpoints);
    json_decref(bare);
    if (request->message == NULL || faults_any(faults)) {
        return;
    }
    char canonical[OBJECT_ID_MAX + 1];
    (void)object_id(request->kind, request->message->metadata, canonical);
    request->id = mem_strdup(canonical);
    if (id != NULL && strcmp(id, canonical) != 0) {
        fault_field(faults, "metadata.name",
                    "the request's path names \"%.200s\", whose canonical "
                    "form is \"%.200s\"; use that",
                    id, canonical);
    }
    request->sets_endpoints &= kind_is_backend(request->kind);
    if (kind_is_backend(request->kind)) {
        take_endpoints(request, faults);
    }
}

/* Where in a document of many objects a fault is: a new reference. */
static json_t *place_members(size_t idx, size_t line)
{
    json_t *members = json_object();
    (void)json_object_set_new(members, "index", json_integer((json_int_t)idx));
    if (line != 0) {
        (void)json_object_set_new(members, "line", json_integer((json_int_t)line));
    }
    return members;
}

/* A fault of a whole request of an apply. */
static json_t *request_members(const struct plan_request *request)
{
    return request->label != NULL ? place_members(request->idx, request->line) : NULL;
}

bool plan_read(const json_t *document, const struct kind *expected, const char *id,
               const struct plan_place *place, struct plan_requests *requests,
               struct problem *problem)
{
    struct faults faults;
    faults_init(&faults);
    struct plan_request request = {.kind = expected,
                                   .idx = place != NULL ? place->idx : 0,
                                   .line = place != NULL ? place->line : 0};
    if (!json_is_object(document)) {
        fault_add(&faults, "this is no object; accepted: a mapping with kind, metadata and spec");
    } else {
        read_request(document, expected, id, &request, &faults);
    }
    request.label = place != NULL ? make_label(document, place) : NULL;
    bool good = !faults_any(&faults);
    if (good) {
        append_request(requests, &request);
    } else {
        json_t *members = place != NULL ? place_members(place->idx, place->line) : NULL;
        problem_add_faults(problem, request.label, members, &faults);
        json_decref(members);
        request_deinit(&request);
    }
    faults_deinit(&faults);
    return good;
}

void plan_read_delete(const struct kind *kind, const char *id, struct plan_requests *requests)
{
    struct plan_request request = {.kind = kind, .id = mem_strdup(id)};
    append_request(requests, &request);
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
            problem_add(problem, requests->items[i].label, request_members(&requests->items[i]),
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
            problem_add(planner->problem, named->request->label, request_members(named->request),
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

static void plan_put(struct planner *planner, const struct plan_request *request,
                     struct plan_result *result)
{
    const struct object *present = view_find(planner->view, request->kind, request->id);
    json_t *after = stored_form(request->kind, request->message);
    json_t *before = present != NULL ? stored_form(present->kind, present->message) : NULL;
    json_t *diff = object_diff(before, after);
    result->action = present == NULL ? PLAN_CREATED : PLAN_UNCHANGED;
    if (present == NULL || json_array_size(diff) > 0) {
        result->action = present == NULL ? PLAN_CREATED : PLAN_CONFIGURED;
        add_change(planner->plan, request->kind, request->id, request->message);
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
