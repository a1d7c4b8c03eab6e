/*
 * A node for tests: objects in a sorted array behind struct admin_ops.
 *
 * Commits end when the loop turns (fake->loop), or at fake_finish when there is none. What the next
 * commit says, and whether each_from is offered, can be chosen.
 */
#ifndef SKEIN_TESTS_UNIT_ADMIN_SERVER_FAKE_OPS_H
#define SKEIN_TESTS_UNIT_ADMIN_SERVER_FAKE_OPS_H

#include "admin/server/admin.h"
#include "node/base/check.h"
#include "node/base/mem.h"
#include "proto/fault.h"
#include "proto/json.h"
#include "proto/validate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FAKE_OBJECTS_MAX = 4096, FAKE_HLC_BASE = 1000 };

struct fake_commit {
    struct admin_change *changes; /* copies */
    size_t count;
    admin_done done;
    void *arg;
};

struct fake {
    uv_loop_t *loop; /* NULL: fake_finish ends commits */
    uv_timer_t timer;
    struct admin *admin; /* told of changes when set */
    struct object *objects[FAKE_OBJECTS_MAX];
    size_t count;
    uint64_t revision;
    struct fake_commit pending[64];
    size_t pending_count;
    void (*settled)(void *arg);
    void *settled_arg;

    /* choices */
    int commit_rc;     /* what commit returns at once; RC_OK: accept */
    int done_rc;       /* what done is told */
    const char *text;  /* with it */
    unsigned busy_for; /* so many commits answer RC_BUSY first */
    bool not_ready;
    unsigned commits; /* accepted */
    bool waited;      /* the last commit asked for all nodes */
    unsigned rotated; /* ticket keys */
    bool revoked;     /* with the last of them */
};

static inline int fake_find_idx(struct fake *fake, const struct kind *kind, const char *id,
                                size_t *ret_idx)
{
    for (size_t i = 0; i < fake->count; i++) {
        int order = (int)fake->objects[i]->kind->number - (int)kind->number;
        order = order != 0 ? order : strcmp(fake->objects[i]->id, id);
        if (order >= 0) {
            *ret_idx = i;
            return order == 0;
        }
    }
    *ret_idx = fake->count;
    return 0;
}

static inline void fake_free_object(struct object *object)
{
    message_free(&object->message->base);
    mem_free(unconst(object->id));
    mem_free(object);
}

/* message NULL deletes; else it is copied. */
static inline void fake_write(struct fake *fake, const struct kind *kind, const char *id,
                              const ProtobufCMessage *message)
{
    size_t idx;
    bool exists = fake_find_idx(fake, kind, id, &idx) != 0;
    struct object *object = exists ? fake->objects[idx] : NULL;
    if (message == NULL) {
        if (exists) {
            if (fake->admin != NULL) {
                admin_notify(fake->admin, object, true, fake->revision);
            }
            memmove(&fake->objects[idx], &fake->objects[idx + 1],
                    (fake->count - idx - 1) * sizeof(fake->objects[0]));
            fake->count--;
            fake_free_object(object);
        }
        return;
    }
    if (!exists) {
        ASSERT(fake->count < FAKE_OBJECTS_MAX);
        object = mem_new(sizeof(*object));
        object->kind = kind;
        object->id = mem_strdup(id);
        object->created_hlc = (FAKE_HLC_BASE + fake->revision) << 16;
        memmove(&fake->objects[idx + 1], &fake->objects[idx],
                (fake->count - idx) * sizeof(fake->objects[0]));
        fake->objects[idx] = object;
        fake->count++;
    } else {
        message_free(&object->message->base);
    }
    object->message = (struct object_message *)(void *)message_copy(message);
    object->modified_hlc = (FAKE_HLC_BASE + fake->revision) << 16;
    (void)snprintf(object->etag, sizeof(object->etag), "e%llu", (unsigned long long)fake->revision);
    if (fake->admin != NULL) {
        admin_notify(fake->admin, object, false, fake->revision);
    }
}

static inline const struct object *fake_find(void *ctx, const struct kind *kind, const char *id)
{
    struct fake *fake = ctx;
    size_t idx;
    return fake_find_idx(fake, kind, id, &idx) != 0 ? fake->objects[idx] : NULL;
}

static inline void fake_each_from(void *ctx, const struct kind *kind, const char *from,
                                  bool (*visit)(void *arg, const struct object *object), void *arg)
{
    struct fake *fake = ctx;
    for (size_t i = 0; i < fake->count; i++) {
        const struct object *object = fake->objects[i];
        if (object->kind == kind && strcmp(object->id, from) >= 0 && !visit(arg, object)) {
            return;
        }
    }
}

static inline void fake_each(void *ctx, const struct kind *kind,
                             bool (*visit)(void *arg, const struct object *object), void *arg)
{
    fake_each_from(ctx, kind, "", visit, arg);
}

/* End the oldest commit. */
static inline void fake_finish(struct fake *fake)
{
    if (fake->pending_count == 0) {
        return;
    }
    struct fake_commit commit = fake->pending[0];
    fake->pending_count--;
    memmove(&fake->pending[0], &fake->pending[1], fake->pending_count * sizeof(commit));
    if (fake->done_rc == RC_OK || fake->done_rc == RC_TIMEOUT) {
        fake->revision++;
        for (size_t i = 0; i < commit.count; i++) {
            fake_write(fake, commit.changes[i].kind, commit.changes[i].id,
                       commit.changes[i].message);
        }
    }
    for (size_t i = 0; i < commit.count; i++) {
        mem_free(unconst(commit.changes[i].id));
        message_free(unconst(commit.changes[i].message));
    }
    mem_free(commit.changes);
    commit.done(commit.arg, fake->done_rc, fake->revision, fake->text);
}

static inline void fake_on_timer(uv_timer_t *timer)
{
    struct fake *fake = timer->data;
    while (fake->pending_count > 0) {
        fake_finish(fake);
    }
    if (fake->settled != NULL) {
        void (*settled)(void *arg) = fake->settled;
        fake->settled = NULL;
        settled(fake->settled_arg);
    }
}

static inline void fake_wake(struct fake *fake)
{
    if (fake->loop != NULL) {
        (void)uv_timer_start(&fake->timer, fake_on_timer, 0, 0);
    }
}

static inline int fake_commit(void *ctx, const struct admin_change *changes, size_t count,
                              bool wait_all, admin_done done, void *arg, struct err_info *err)
{
    struct fake *fake = ctx;
    if (fake->busy_for > 0) {
        fake->busy_for--;
        return RC_BUSY;
    }
    if (fake->commit_rc != RC_OK) {
        return err_set(err, fake->commit_rc, "%s", fake->text != NULL ? fake->text : "");
    }
    ASSERT(fake->pending_count < ARRAY_LEN(fake->pending));
    struct fake_commit *commit = &fake->pending[fake->pending_count++];
    *commit = (struct fake_commit){.count = count, .done = done, .arg = arg};
    commit->changes = mem_array(count, sizeof(*commit->changes));
    for (size_t i = 0; i < count; i++) {
        commit->changes[i] = changes[i];
        commit->changes[i].id = mem_strdup(changes[i].id);
        if (changes[i].message != NULL) {
            uint8_t *bytes;
            size_t len;
            struct object_message *copy;
            ASSERT(object_pack(changes[i].kind, changes[i].message, &bytes, &len, NULL) == 0);
            ASSERT(object_unpack(changes[i].kind, bytes, len, &copy, NULL) == 0);
            mem_free(bytes);
            commit->changes[i].message = &copy->base;
        }
    }
    fake->commits++;
    fake->waited = wait_all;
    fake_wake(fake);
    return RC_OK;
}

static inline void fake_settled(void *ctx, void (*callback)(void *arg), void *arg)
{
    struct fake *fake = ctx;
    ASSERT(fake->settled == NULL);
    fake->settled = callback;
    fake->settled_arg = arg;
    fake_wake(fake);
}

static inline size_t fake_members(void *ctx, struct admin_member *ret_members, size_t cap)
{
    struct fake *fake = ctx;
    struct admin_member members[2] = {
        {.id = "00000000000000a1",
         .name = "r1",
         .address = "127.0.0.1:7946",
         .version = "0.1.0",
         .state = "alive",
         .is_self = true,
         .ready = true,
         .revision = fake->revision,
         .in_step = true},
        {.id = "00000000000000a2",
         .name = "r2",
         .address = "127.0.0.2:7946",
         .version = "0.1.0",
         .state = "dead",
         .revision = 1,
         .lag = 3,
         .heard_ms_ago = UINT64_MAX,
         .clock_offset_ms = -3600000,
         .clock_flagged = true},
    };
    for (size_t i = 0; i < cap && i < ARRAY_LEN(members); i++) {
        ret_members[i] = members[i];
    }
    return ARRAY_LEN(members);
}

/* r2 is dead and can go, r1 is alive. */
static inline int fake_forget(void *ctx, const char *member, struct err_info *err)
{
    (void)ctx;
    if (strcmp(member, "r1") == 0) {
        return err_set(err, RC_BUSY, "r1 is not dead");
    }
    return strcmp(member, "r2") == 0 ? RC_OK : err_set(err, RC_NOT_FOUND, "no member of that name");
}

static inline size_t fake_ticket_keys(void *ctx, struct admin_ticket_key *ret_keys, size_t cap)
{
    const struct admin_ticket_key key = {.name = "0a1b2c3d",
                                         .creator = "r1",
                                         .state = "Active",
                                         .epoch = 1 + ((struct fake *)ctx)->rotated,
                                         .created_ms = 1790000000000,
                                         .not_before_ms = 1790000000000};
    if (cap > 0) {
        ret_keys[0] = key;
    }
    return 1;
}

/* Ends as a commit does. */
static inline int fake_rotate_tickets(void *ctx, bool revoke, bool wait_all, admin_done done,
                                      void *arg, struct err_info *err)
{
    struct fake *fake = ctx;
    if (fake->commit_rc != RC_OK) {
        return err_set(err, fake->commit_rc, "%s", fake->text != NULL ? fake->text : "");
    }
    struct fake_commit *commit = &fake->pending[fake->pending_count++];
    *commit = (struct fake_commit){
        .changes = mem_array(1, sizeof(*commit->changes)), .done = done, .arg = arg};
    fake->rotated++;
    fake->revoked = revoke;
    fake->waited = wait_all;
    fake_wake(fake);
    return RC_OK;
}

static inline bool fake_ready(void *ctx, char *reason, size_t size)
{
    struct fake *fake = ctx;
    (void)snprintf(reason, size, "%s", "not in step with any peer");
    return !fake->not_ready;
}

static inline uint64_t fake_revision(void *ctx)
{
    return ((struct fake *)ctx)->revision;
}

static inline const char *fake_node_name(void *ctx)
{
    (void)ctx;
    return "r1";
}

static inline void fake_metrics(void *ctx, struct buf *out)
{
    (void)ctx;
    (void)buf_puts(out, "skein_fake 1\n");
}

static const struct admin_ops fake_ops UNUSED = {
    .find = fake_find,
    .each = fake_each,
    .each_from = fake_each_from,
    .commit = fake_commit,
    .settled = fake_settled,
    .members = fake_members,
    .forget = fake_forget,
    .ticket_keys = fake_ticket_keys,
    .rotate_tickets = fake_rotate_tickets,
    .ready = fake_ready,
    .revision = fake_revision,
    .node_name = fake_node_name,
    .metrics = fake_metrics,
};

/* The same without each_from: what it costs is not what it gives. */
static const struct admin_ops fake_ops_each_only UNUSED = {
    .find = fake_find,
    .each = fake_each,
    .commit = fake_commit,
    .settled = fake_settled,
    .members = fake_members,
    .forget = fake_forget,
    .ticket_keys = fake_ticket_keys,
    .rotate_tickets = fake_rotate_tickets,
    .ready = fake_ready,
    .revision = fake_revision,
    .node_name = fake_node_name,
    .metrics = fake_metrics,
};

static inline void fake_init(struct fake *fake, uv_loop_t *loop)
{
    *fake = (struct fake){.loop = loop};
    if (loop != NULL) {
        (void)uv_timer_init(loop, &fake->timer);
        fake->timer.data = fake;
    }
}

static inline void fake_deinit(struct fake *fake)
{
    for (size_t i = 0; i < fake->count; i++) {
        fake_free_object(fake->objects[i]);
    }
    fake->count = 0;
    if (fake->loop != NULL) {
        uv_close((uv_handle_t *)&fake->timer, NULL);
    }
}

/* Put an object, as JSON text, straight into the table. */
static inline void fake_put(struct fake *fake, const char *json)
{
    json_error_t error;
    json_t *document = json_loads(json, 0, &error);
    ASSERT(document != NULL);
    struct faults faults;
    faults_init(&faults);
    const struct kind *kind;
    struct object_message *message = object_from_json(document, NULL, &kind, &faults);
    ASSERT(message != NULL && !faults_any(&faults));
    char id[OBJECT_ID_MAX + 1];
    (void)object_id(kind, message->metadata, id);
    fake->revision++;
    fake_write(fake, kind, id, &message->base);
    message_free(&message->base);
    faults_deinit(&faults);
    json_decref(document);
}

#endif
