/*
 * The shown form of objects; see the header.
 */
#include "admin/server/show.h"

#include "node/base/hash.h"
#include "node/base/timesrc.h"
#include "proto/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool kind_is_backend(const struct kind *kind)
{
    return kind->descriptor == &skein__backend__descriptor;
}

bool kind_is_endpoint(const struct kind *kind)
{
    return kind->descriptor == &skein__endpoint__descriptor;
}

bool kind_is_token(const struct kind *kind)
{
    return kind->descriptor == &skein__token__descriptor;
}

const struct object *view_find(const struct view *view, const struct kind *kind, const char *id)
{
    return view->ops->find(view->ctx, kind, id);
}

struct skip {
    const char *from;
    bool (*visit)(void *arg, const struct object *object);
    void *arg;
};

static bool skip_visit(void *arg, const struct object *object)
{
    struct skip *skip = arg;
    return strcmp(object->id, skip->from) < 0 ? true : skip->visit(skip->arg, object);
}

void view_each(const struct view *view, const struct kind *kind, const char *from,
               bool (*visit)(void *arg, const struct object *object), void *arg)
{
    if (from == NULL || from[0] == '\0') {
        view->ops->each(view->ctx, kind, visit, arg);
    } else if (view->ops->each_from != NULL) {
        view->ops->each_from(view->ctx, kind, from, visit, arg);
    } else {
        struct skip skip = {.from = from, .visit = visit, .arg = arg};
        view->ops->each(view->ctx, kind, skip_visit, &skip);
    }
}

struct prefix {
    const char *text;
    size_t len;
    bool (*visit)(void *arg, const struct object *object);
    void *arg;
};

static bool prefix_visit(void *arg, const struct object *object)
{
    struct prefix *prefix = arg;
    return strncmp(object->id, prefix->text, prefix->len) == 0 &&
           prefix->visit(prefix->arg, object);
}

void view_endpoints(const struct view *view, const char *backend_id,
                    bool (*visit)(void *arg, const struct object *object), void *arg)
{
    char text[OBJECT_ID_MAX + 2];
    int len = snprintf(text, sizeof(text), "%s/", backend_id);
    struct prefix prefix = {.text = text, .len = (size_t)len, .visit = visit, .arg = arg};
    view_each(view, kind_by_name("Endpoint"), text, prefix_visit, &prefix);
}

uint64_t view_revision(const struct view *view)
{
    struct admin_member self = {0};
    size_t count = view->ops->members(view->ctx, &self, 1); /* self comes first */
    return count > 0 ? self.revision : 0;
}

json_t *show_endpoint(const Skein__EndpointSpec *spec)
{
    json_t *entry = message_to_json(&spec->base);
    (void)json_object_del(entry, "backend"); /* absent is fine */
    return entry;
}

static bool append_endpoint(void *arg, const struct object *object)
{
    const Skein__Endpoint *endpoint = (const void *)object->message;
    if (endpoint->spec != NULL) {
        (void)json_array_append_new(arg, show_endpoint(endpoint->spec));
    }
    return true;
}

/* The member of a JSON object that is an object itself, made when it is not there. Borrowed. */
static json_t *member(json_t *object, const char *name)
{
    json_t *value = json_object_get(object, name);
    if (!json_is_object(value)) {
        value = json_object();
        (void)json_object_set_new(object, name, value);
    }
    return value;
}

static void set_time(json_t *metadata, const char *name, uint64_t hlc)
{
    if (hlc != 0 && json_object_get(metadata, name) == NULL) {
        char text[TIME_TEXT_MAX];
        (void)json_object_set_new(metadata, name, json_string(time_format_wall(hlc >> 16, text)));
    }
}

/* path: "spec.key", "spec.also[].key". */
static void hide_path(json_t *object, const char *path, size_t len)
{
    enum { NAME_SIZE = 64 };
    char name[NAME_SIZE];
    const char *dot = memchr(path, '.', len);
    size_t step = dot != NULL ? (size_t)(dot - path) : len;
    bool is_list = step > 2 && memcmp(path + step - 2, "[]", 2) == 0;
    (void)snprintf(name, sizeof(name), "%.*s", (int)(is_list ? step - 2 : step), path);
    if (dot == NULL) {
        (void)json_object_del(object, name); /* absent is fine */
        return;
    }
    json_t *next = json_object_get(object, name);
    if (!is_list) {
        hide_path(next, dot + 1, len - step - 1);
        return;
    }
    size_t i;
    json_t *item;
    json_array_foreach(next, i, item)
    {
        hide_path(item, dot + 1, len - step - 1);
    }
}

void show_hide(const struct kind *kind, json_t *shown)
{
    const char *path = kind->secrets != NULL ? kind->secrets : "";
    while (*path != '\0') {
        size_t len = strcspn(path, " ");
        hide_path(shown, path, len);
        path += len + strspn(path + len, " ");
    }
}

json_t *show_object(const struct view *view, const struct object *object)
{
    json_t *shown = object_to_json(object->kind, &object->message->base);
    show_hide(object->kind, shown);
    json_t *metadata = member(shown, "metadata");
    char etag[SHOW_ETAG_MAX];
    (void)json_object_set_new(metadata, "resourceVersion",
                              json_string(show_etag(view, object, etag)));
    set_time(metadata, "created", object->created_hlc);
    set_time(metadata, "modified", object->modified_hlc);
    if (kind_is_backend(object->kind)) {
        json_t *endpoints = json_array();
        view_endpoints(view, object->id, append_endpoint, endpoints);
        (void)json_object_set_new(member(shown, "spec"), "endpoints", endpoints);
    }
    return shown;
}

void show_strip(json_t *shown)
{
    static const char *const server_set[] = {"resourceVersion", "created", "modified", "origin"};
    (void)json_object_del(shown, "status");
    json_t *metadata = json_object_get(shown, "metadata");
    for (size_t i = 0; i < ARRAY_LEN(server_set) && metadata != NULL; i++) {
        (void)json_object_del(metadata, server_set[i]);
    }
}

json_t *show_bare(const struct view *view, const struct object *object)
{
    json_t *shown = show_object(view, object);
    show_strip(shown);
    return shown;
}

struct digest {
    uint64_t key0;
    uint64_t key1;
};

static bool digest_endpoint(void *arg, const struct object *object)
{
    /* Chained, so that the order counts and nothing cancels out. */
    struct digest *digest = arg;
    digest->key0 = hash_sip64(digest->key0, digest->key1, object->id, strlen(object->id));
    digest->key1 = hash_sip64(digest->key0, digest->key1, object->etag, strlen(object->etag));
    return true;
}

const char *show_etag(const struct view *view, const struct object *object, char out[SHOW_ETAG_MAX])
{
    if (!kind_is_backend(object->kind)) {
        (void)snprintf(out, SHOW_ETAG_MAX, "%s", object->etag);
        return out;
    }
    struct digest digest = {0};
    digest.key0 = hash_sip64(0, 0, object->etag, strlen(object->etag));
    view_endpoints(view, object->id, digest_endpoint, &digest);
    (void)snprintf(out, SHOW_ETAG_MAX, "%016" PRIx64 "%016" PRIx64, digest.key0, digest.key1);
    return out;
}
