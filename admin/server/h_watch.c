/*
 * GET /v1/watch: changes as they happen, one JSON object a line.
 *
 *   {"type":"start","node":"r1","since":"r1:7"}
 *   {"type":"changed","node":"r1","since":"r1:8","object":{...}}
 *   {"type":"deleted","node":"r1","since":"r1:9","object":{"kind":...,"metadata":{...}}}
 *   {"type":"heartbeat","node":"r1","since":"r1:9"}
 *
 * "since" of the last line received resumes the stream (?since=). What is shown of an object is its
 * form when the line is written: of several changes in a row the last one counts. A watcher who is
 * overtaken by the ring gets {"type":"gone"} and has to list again.
 */
#include "admin/server/server.h"

#include "node/base/mem.h"
#include "proto/json.h"

#include <stdio.h>
#include <string.h>

struct watch {
    struct admin *admin;
    const struct kind *kind; /* NULL: all */
    char prefix[80];         /* "namespace/", or "" */
    uint64_t next_seq;
    bool begun;
    uint64_t said_ms; /* last line */
};

static void watch_free(void *state)
{
    struct watch *watch = state;
    watch->admin->watchers--;
    mem_free(watch);
}

/* One line; object is taken and may be NULL. */
static void put_line(const struct watch *watch, const char *type, uint64_t resume, json_t *object,
                     struct buf *out)
{
    const struct view *view = &watch->admin->view;
    const char *node = view->ops->node_name(view->ctx);
    char token[WATCH_TOKEN_MAX];
    json_t *line = json_object();
    (void)json_object_set_new(line, "type", json_string(type));
    (void)json_object_set_new(line, "node", problem_string(node));
    (void)json_object_set_new(line, "since",
                              problem_string(watch_token_format(node, resume, token)));
    if (object != NULL) {
        (void)json_object_set_new(line, "object", object);
    }
    char *text = json_text(line, 0);
    json_decref(line);
    (void)buf_puts(out, text);
    (void)buf_putc(out, '\n');
    mem_free(text);
}

static json_t *deleted_object(const struct watch_event *event)
{
    const char *slash = event->kind->namespaced ? strchr(event->id, '/') : NULL;
    json_t *metadata = json_object();
    if (slash != NULL) {
        (void)json_object_set_new(metadata, "namespace",
                                  json_stringn(event->id, (size_t)(slash - event->id)));
    }
    (void)json_object_set_new(metadata, "name", json_string(slash != NULL ? slash + 1 : event->id));
    json_t *object = json_object();
    (void)json_object_set_new(object, "kind", json_string(event->kind->name));
    (void)json_object_set_new(object, "metadata", metadata);
    return object;
}

static void put_event(const struct watch *watch, const struct watch_event *event, struct buf *out)
{
    const struct view *view = &watch->admin->view;
    if ((watch->kind != NULL && watch->kind != event->kind) ||
        strncmp(event->id, watch->prefix, strlen(watch->prefix)) != 0) {
        return;
    }
    uint64_t resume = watch_ring_resume(&watch->admin->ring, watch->next_seq);
    if (event->deleted) {
        put_line(watch, "deleted", resume, deleted_object(event), out);
        return;
    }
    const struct object *object = view_find(view, event->kind, event->id);
    if (object != NULL) { /* else its deletion is further on in the ring */
        put_line(watch, "changed", resume, show_object(view, object), out);
    }
}

static enum part produce(struct call *call, struct buf *out)
{
    struct watch *watch = call->state;
    const struct view *view = &watch->admin->view;
    const struct watch_ring *ring = &watch->admin->ring;
    uint64_t now = uv_now(watch->admin->loop);
    uint64_t revision = view->ops->revision(view->ctx);
    size_t before = out->len;
    if (!watch->begun) {
        watch->begun = true;
        const struct watch_event *previous = watch_ring_find(ring, watch->next_seq - 1);
        uint64_t from = previous != NULL ? previous->revision : ring->base;
        bool current = watch->next_seq == ring->next_seq;
        put_line(watch, "start", current ? revision : from, NULL, out);
    }
    if (watch_ring_is_gone(ring, watch->next_seq)) {
        watch->admin->count.watchers_dropped++;
        put_line(watch, "gone", revision, NULL, out);
        return PART_LAST;
    }
    const struct watch_event *event;
    while (out->len - before < ADMIN_PART_BYTES &&
           (event = watch_ring_find(ring, watch->next_seq)) != NULL) {
        put_event(watch, event, out);
        watch->next_seq++;
    }
    if (out->len == before && now - watch->said_ms >= ADMIN_HEARTBEAT_MS) {
        put_line(watch, "heartbeat", revision, NULL, out);
    }
    if (out->len != before) {
        watch->said_ms = now;
    }
    return PART_MORE;
}

/* Fill from the query; the status to answer, 0 when all is well. */
static int read_query(const struct call *call, struct watch *watch, struct err_info *err)
{
    const struct view *view = &watch->admin->view;
    const char *kind = query_find(&call->query, "kind");
    const char *namespace_ = query_find(&call->query, "namespace");
    const char *since = query_find(&call->query, "since");
    if (kind != NULL && (watch->kind = kind_by_name(kind)) == NULL) {
        (void)err_set(err, RC_INVALID, "kind: \"%.40s\" is unknown; GET /v1 lists the kinds", kind);
        return 400;
    }
    if (access_namespace(&call->who, namespace_, &namespace_, err) != RC_OK) {
        return 403;
    }
    if (namespace_ != NULL && strlen(namespace_) > 63) {
        (void)err_set(err, RC_INVALID, "namespace: names have at most 63 characters");
        return 400;
    }
    if (namespace_ != NULL && namespace_[0] != '\0') {
        (void)snprintf(watch->prefix, sizeof(watch->prefix), "%s/", namespace_);
    }
    watch->next_seq = watch->admin->ring.next_seq;
    if (since == NULL) {
        return 0;
    }
    uint64_t revision;
    int rc = watch_token_parse(since, view->ops->node_name(view->ctx), &revision, err);
    if (rc == RC_OK) {
        rc = watch_ring_seek(&watch->admin->ring, revision, view->ops->revision(view->ctx),
                             &watch->next_seq, err);
    }
    return rc == RC_OK ? 0 : rc == RC_NOT_FOUND ? 410 : 400;
}

void handle_watch(struct call *call)
{
    struct admin *admin = call->admin;
    struct err_info err = {0};
    if (admin->watchers >= ADMIN_WATCHERS_MAX) {
        call_answer_problem(call, 503, "Retry-After: 5\r\n", NULL,
                            "as many watches are open as are served at once");
        return;
    }
    struct watch *watch = mem_new(sizeof(*watch));
    watch->admin = admin;
    watch->said_ms = uv_now(admin->loop);
    int status = read_query(call, watch, &err);
    if (status != 0) {
        mem_free(watch);
        call_answer_problem(call, status, NULL, NULL, err.text);
        return;
    }
    admin->watchers++;
    call->is_watch = true;
    call_answer_stream(call, "application/x-ndjson", produce, watch, watch_free);
}
