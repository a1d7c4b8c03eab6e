/*
 * Lists and exports: objects in the order of their ids, rendered a part at a time, so that a
 * hundred thousand of them neither stall the loop nor stand in memory at once.
 *
 * A list is one moment while it fits into one part; a longer one shows each object as it is when
 * its part is rendered, and "since" is the moment of the beginning: a watch from there on misses
 * nothing. An export has nothing of the node in it: equal objects give equal bytes.
 */
#include "admin/server/server.h"

#include "node/base/mem.h"
#include "proto/json.h"
#include "proto/manifest.h"
#include "proto/selector.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { LIMIT_MAX = 100000 };

struct listing {
    struct call *call;
    const struct kind *kind;       /* that comes next */
    char after[OBJECT_ID_MAX + 1]; /* last id that was looked at; "" before the first */
    struct selector *selector;
    char prefix[OBJECT_ID_MAX + 2]; /* "namespace/", or "" for all */
    uint64_t limit;                 /* UINT64_MAX: none */
    uint64_t count;
    bool export;
    bool yaml;
    bool begun;
    bool paused;   /* this part is full, or the limit is reached */
    bool has_more; /* the limit was reached before the end */
    struct buf *out;
    size_t part_end;
};

static void listing_free(void *state)
{
    struct listing *listing = state;
    selector_free(listing->selector);
    mem_free(listing);
}

/* An Endpoint of a Backend stands in the Backend's list, unless it says more than that can hold. */
static bool is_told_by_backend(const struct view *view, const struct object *object)
{
    const Skein__Endpoint *endpoint = (const void *)object->message;
    if (!kind_is_endpoint(object->kind) || endpoint->spec == NULL ||
        endpoint->spec->backend == NULL || endpoint->metadata == NULL ||
        endpoint->metadata->n_labels > 0 || endpoint->metadata->n_annotations > 0) {
        return false;
    }
    char id[OBJECT_ID_MAX + 1];
    (void)snprintf(id, sizeof(id), "%s/%s", endpoint->metadata->namespace_,
                   endpoint->spec->backend);
    return view_find(view, kind_by_name("Backend"), id) != NULL;
}

static void put_object(struct listing *listing, const struct object *object)
{
    const struct view *view = &listing->call->admin->view;
    json_t *json = listing->export ? show_bare(view, object) : show_object(view, object);
    if (listing->yaml) {
        (void)buf_puts(listing->out, "---\n");
        yaml_emit(json, listing->out);
    } else {
        char *text = json_text(json, listing->call->pretty ? 2 : 0);
        (void)buf_printf(listing->out, "%s\n", listing->count > 0 ? "," : "");
        (void)buf_puts(listing->out, text);
        mem_free(text);
    }
    json_decref(json);
    listing->count++;
}

static bool is_wanted(const struct listing *listing, const struct object *object)
{
    const Skein__Metadata *metadata = object->message->metadata;
    size_t prefix_len = strlen(listing->prefix);
    if (strncmp(object->id, listing->prefix, prefix_len) != 0 ||
        (listing->export && is_told_by_backend(&listing->call->admin->view, object))) {
        return false;
    }
    return listing->selector == NULL ||
           selector_matches(listing->selector, metadata != NULL ? metadata->labels : NULL,
                            metadata != NULL ? metadata->n_labels : 0);
}

static bool visit(void *arg, const struct object *object)
{
    struct listing *listing = arg;
    if (strcmp(object->id, listing->after) <= 0) {
        return true;
    }
    /* Ids are in order: what sorts behind the namespace ends it. */
    size_t prefix_len = strlen(listing->prefix);
    if (strncmp(object->id, listing->prefix, prefix_len) > 0) {
        return false;
    }
    if (is_wanted(listing, object)) {
        if (listing->count == listing->limit) {
            listing->has_more = true;
            listing->paused = true;
            return false;
        }
        put_object(listing, object);
    }
    (void)snprintf(listing->after, sizeof(listing->after), "%s", object->id);
    listing->paused = listing->out->len >= listing->part_end;
    return !listing->paused;
}

static void put_begin(struct listing *listing)
{
    const struct view *view = &listing->call->admin->view;
    if (listing->yaml) {
        (void)buf_puts(listing->out, "# All objects; skeinctl apply takes them back.\n");
    } else if (listing->export) {
        (void)buf_puts(listing->out, "{\"items\":[");
    } else {
        char token[WATCH_TOKEN_MAX];
        json_t *json = problem_string(watch_token_format(view->ops->node_name(view->ctx),
                                                         view->ops->revision(view->ctx), token));
        char *text = json_text(json, 0);
        (void)buf_printf(listing->out, "{\"since\":%s,\"items\":[", text);
        mem_free(text);
        json_decref(json);
    }
}

static void put_end(struct listing *listing)
{
    if (listing->yaml) {
        return;
    }
    (void)buf_puts(listing->out, listing->count > 0 ? "\n]" : "]");
    if (listing->has_more) {
        json_t *token = json_string(listing->after);
        char *text = json_text(token, 0);
        (void)buf_printf(listing->out, ",\"continue\":%s", text);
        mem_free(text);
        json_decref(token);
    }
    (void)buf_puts(listing->out, "}\n");
}

/* Export goes on with the next kind; a list has one. NULL: that was the last. Tokens are left out:
 * without their hashes they could not be taken back. */
static const struct kind *next_kind(const struct listing *listing, const struct kind *kind)
{
    do {
        kind++;
    } while (kind->name != NULL &&
             (kind_is_token(kind) || (listing->prefix[0] != '\0' && !kind->namespaced)));
    return listing->export && kind->name != NULL ? kind : NULL;
}

static enum part produce(struct call *call, struct buf *out)
{
    struct listing *listing = call->state;
    listing->out = out;
    listing->part_end = out->len + ADMIN_PART_BYTES;
    listing->paused = false;
    if (!listing->begun) {
        listing->begun = true;
        put_begin(listing);
    }
    while (listing->kind != NULL && !listing->paused) {
        const char *from = listing->after[0] != '\0' ? listing->after : listing->prefix;
        view_each(&call->admin->view, listing->kind, from, visit, listing);
        if (listing->has_more) {
            listing->kind = NULL;
        } else if (!listing->paused) {
            listing->kind = next_kind(listing, listing->kind);
            listing->after[0] = '\0';
        }
    }
    if (listing->kind == NULL) {
        put_end(listing);
        return PART_LAST;
    }
    return PART_MORE;
}

static bool set_namespace(struct listing *listing, const char *name, struct err_info *err)
{
    if (access_namespace(&listing->call->who, name, &name, err) != RC_OK) {
        return false;
    }
    if (name == NULL || name[0] == '\0') {
        return true;
    }
    if (listing->kind != NULL && !listing->kind->namespaced) {
        (void)err_set(err, RC_INVALID, "namespace: %s are of the whole cluster",
                      listing->kind->plural);
        return false;
    }
    if (strlen(name) > 63) {
        (void)err_set(err, RC_INVALID, "namespace: names have at most 63 characters");
        return false;
    }
    (void)snprintf(listing->prefix, sizeof(listing->prefix), "%s/", name);
    return true;
}

/* The query is wrong, or names what the user may not see. */
static void answer_bad(struct call *call, const struct err_info *err)
{
    const char *unused;
    struct err_info ignored = {0};
    int rc = access_namespace(&call->who, query_find(&call->query, "namespace"), &unused, &ignored);
    call_answer_problem(call, rc == RC_OK ? 400 : 403, NULL, NULL, err->text);
}

void handle_list(struct call *call)
{
    struct err_info err = {0};
    struct listing *listing = mem_new(sizeof(*listing));
    listing->call = call;
    listing->kind = call->match.kind;
    listing->limit = UINT64_MAX;
    const char *namespace_ = call->match.namespace_[0] != '\0'
                                 ? call->match.namespace_
                                 : query_find(&call->query, "namespace");
    const char *selector = query_find(&call->query, "selector");
    const char *token = query_find(&call->query, "continue");
    bool good = set_namespace(listing, namespace_, &err) &&
                query_number(&call->query, "limit", 1, LIMIT_MAX, &listing->limit, &err) == RC_OK;
    if (good && token != NULL && strlen(token) > OBJECT_ID_MAX) {
        good = false;
        (void)err_set(&err, RC_INVALID, "continue: this was not given out by a list");
    }
    if (good && selector != NULL && selector_parse(selector, &listing->selector, &err) != RC_OK) {
        good = false;
        (void)err_prefix(&err, RC_INVALID, "selector");
    }
    if (!good) {
        listing_free(listing);
        answer_bad(call, &err);
        return;
    }
    if (token != NULL) {
        (void)snprintf(listing->after, sizeof(listing->after), "%s", token);
    }
    call_answer_stream(call, "application/json", produce, listing, listing_free);
}

/* ?format= wins over Accept. */
static bool choose_format(const struct call *call, bool *ret_yaml)
{
    const char *format = query_find(&call->query, "format");
    *ret_yaml = false;
    if (format != NULL) {
        *ret_yaml = strcmp(format, "yaml") == 0;
        return *ret_yaml || strcmp(format, "json") == 0;
    }
    if (call->accept != NULL && strcasestr(call->accept, "yaml") != NULL) {
        const char *json = strcasestr(call->accept, "json");
        *ret_yaml = json == NULL || json > strcasestr(call->accept, "yaml");
    }
    return true;
}

void handle_export(struct call *call)
{
    struct err_info err = {0};
    struct listing *listing = mem_new(sizeof(*listing));
    listing->call = call;
    listing->limit = UINT64_MAX;
    listing->export = true;
    if (!choose_format(call, &listing->yaml)) {
        (void)err_set(&err, RC_INVALID, "format: accepted are json and yaml");
    } else if (set_namespace(listing, query_find(&call->query, "namespace"), &err)) {
        listing->kind = kinds;
        if (listing->prefix[0] != '\0' && !kinds[0].namespaced) {
            listing->kind = next_kind(listing, kinds);
        }
        call_answer_stream(call, listing->yaml ? "application/yaml" : "application/json", produce,
                           listing, listing_free);
        return;
    }
    listing_free(listing);
    answer_bad(call, &err);
}
