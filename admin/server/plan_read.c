/*
 * Documents to requests; see plan.h for the rules.
 */
#include "admin/server/plan.h"

#include "node/base/mem.h"
#include "proto/json.h"
#include "proto/offered.h"
#include "proto/validate.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

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
    object_check_offered(request->kind, &request->message->base, faults);
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

json_t *plan_request_members(const struct plan_request *request)
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
    if (request.message != NULL && kind_is_token(request.kind) && !requests->makes_tokens) {
        fault_add(&faults, "a Token is made by POST /v1/tokens (skeinctl token create) and cannot "
                           "be changed; delete it to revoke it");
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
