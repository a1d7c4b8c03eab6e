/*
 * One hash and one ordered array per kind. The array is sorted when somebody reads it in order, so
 * that loading 100,000 rows costs one sort; a removed element leaves a hole until then.
 */
#include "node/app/objects.h"

#include "node/app/row_seal.h"
#include "node/base/check.h"
#include "node/base/hashtable.h"
#include "node/base/log.h"
#include "node/base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KIND_NUMBERS = 256 };

struct entry {
    struct object object; /* first: entries are handed out as objects */
    char *id;
    size_t position; /* in ordered */
    UT_hash_handle hh;
};

struct kind_table {
    struct entry *by_id;
    struct entry **ordered; /* holes are NULL */
    size_t used;            /* elements of ordered, holes included */
    size_t size;
    bool sorted;
};

struct objects {
    struct kind_table kinds[KIND_NUMBERS];
    struct row_seal *seal; /* NULL: nothing is sealed */
    uint64_t damaged;
};

struct objects *objects_new(void)
{
    return mem_new(sizeof(struct objects));
}

void objects_use_seal(struct objects *objects, struct row_seal *seal)
{
    objects->seal = seal;
}

static void entry_free(struct entry *entry)
{
    message_free((ProtobufCMessage *)entry->object.message);
    mem_free(entry->id);
    mem_free(entry);
}

void objects_free(struct objects *objects)
{
    if (objects == NULL) {
        return;
    }
    for (size_t i = 0; i < KIND_NUMBERS; i++) {
        struct kind_table *table = &objects->kinds[i];
        struct entry *entry, *next;
        HASH_ITER (hh, table->by_id, entry, next) {
            HASH_DEL(table->by_id, entry);
            entry_free(entry);
        }
        MEM_FREE(table->ordered);
    }
    mem_free(objects);
}

void objects_etag(const struct row *row, char ret_etag[40])
{
    (void)snprintf(ret_etag, 40, "%016llx-%016llx", (unsigned long long)row->hlc,
                   (unsigned long long)row->dot.origin.node);
}

static void set_text(char **field, const char *text)
{
    mem_free(*field);
    *field = mem_strdup(text);
}

static void set_time(Skein__Time **field, uint64_t wall_ms)
{
    if (*field == NULL) {
        *field = mem_new(sizeof(**field));
        skein__time__init(*field);
    }
    (*field)->has_wall_ms = true;
    (*field)->wall_ms = wall_ms;
}

/* The fields of metadata that the server sets follow from the row. */
static void set_server_fields(struct object *object, const struct row *row)
{
    Skein__Metadata *metadata = object->message->metadata;
    char origin[20];
    (void)snprintf(origin, sizeof(origin), "%016llx", (unsigned long long)row->dot.origin.node);
    set_text(&metadata->resource_version, object->etag);
    set_text(&metadata->origin, origin);
    set_time(&metadata->created, hlc_wall_ms(row->created_hlc));
    set_time(&metadata->modified, hlc_wall_ms(row->hlc));
}

/* The message in a row, out of its seal when its kind is secret. */
static int unpack(const struct objects *objects, const struct kind *kind, const struct row *row,
                  struct object_message **ret_message, struct err_info *err)
{
    if (objects->seal == NULL || kind->secrets == NULL) {
        return object_unpack(kind, row->value, row->value_len, ret_message, err);
    }
    uint8_t *plain = mem_new(MAX(row->value_len, (size_t)1));
    const struct seal_row whose = {.kind = row->kind, .id = row->id, .id_len = row->id_len};
    int rc = row_seal_open(objects->seal, &whose, row->value, row->value_len, plain, err);
    if (rc == RC_OK) {
        rc = object_unpack(kind, plain, row->value_len - SEAL_OVERHEAD, ret_message, err);
    }
    crypto_wipe(plain, row->value_len);
    mem_free(plain);
    return rc;
}

/* NULL when the row does not unpack to an object of its id. */
static struct entry *entry_new(struct objects *objects, const struct kind *kind,
                               const struct row *row)
{
    struct err_info err = {0};
    struct object_message *message = NULL;
    int rc = unpack(objects, kind, row, &message, &err);
    char id[OBJECT_ID_MAX + 1];
    if (rc == RC_OK && (object_id(kind, message->metadata, id) != row->id_len ||
                        memcmp(id, row->id, row->id_len) != 0)) {
        message_free(&message->base);
        rc = err_set(&err, RC_CORRUPT, "its metadata names another object");
    }
    if (rc != RC_OK) {
        objects->damaged++;
        log_error("a replicated object cannot be read and is ignored",
                  "kind=%s id=%.*s written_by=%016llx reason=\"%s\"", kind->name, (int)row->id_len,
                  row->id, (unsigned long long)row->dot.origin.node, err.text);
        return NULL;
    }
    struct entry *entry = mem_new(sizeof(*entry));
    entry->id = mem_strndup(row->id, row->id_len);
    entry->object = (struct object){
        .kind = kind,
        .message = message,
        .id = entry->id,
        .created_hlc = row->created_hlc,
        .modified_hlc = row->hlc,
    };
    objects_etag(row, entry->object.etag);
    set_server_fields(&entry->object, row);
    return entry;
}

static void table_add(struct kind_table *table, struct entry *entry)
{
    HASH_ADD_KEYPTR(hh, table->by_id, entry->id, strlen(entry->id), entry);
    if (table->used == table->size) {
        table->size = MAX(table->size * 2, (size_t)64);
        table->ordered = mem_grow(table->ordered, table->size, sizeof(struct entry *));
    }
    bool in_order =
        table->used == 0 || (table->sorted && table->ordered[table->used - 1] != NULL &&
                             strcmp(table->ordered[table->used - 1]->id, entry->id) < 0);
    table->sorted = in_order;
    entry->position = table->used;
    table->ordered[table->used++] = entry;
}

static void table_remove(struct kind_table *table, struct entry *entry)
{
    HASH_DEL(table->by_id, entry);
    table->ordered[entry->position] = NULL;
    table->sorted = false;
}

static int compare_entries(const void *a, const void *b)
{
    const struct entry *const *left = a;
    const struct entry *const *right = b;
    return strcmp((*left)->id, (*right)->id);
}

static void table_sort(struct kind_table *table)
{
    if (table->sorted) {
        return;
    }
    size_t kept = 0;
    for (size_t i = 0; i < table->used; i++) {
        if (table->ordered[i] != NULL) {
            table->ordered[kept++] = table->ordered[i];
        }
    }
    table->used = kept;
    if (kept > 1) {
        qsort(table->ordered, kept, sizeof(struct entry *), compare_entries);
    }
    for (size_t i = 0; i < kept; i++) {
        table->ordered[i]->position = i;
    }
    table->sorted = true;
}

static struct entry *table_find(const struct kind_table *table, const char *id, size_t len)
{
    struct entry *entry = NULL;
    HASH_FIND(hh, table->by_id, id, len, entry);
    return entry;
}

void objects_apply(struct objects *objects, const struct row *row,
                   struct objects_change *ret_change)
{
    *ret_change = (struct objects_change){0};
    const struct kind *kind = kind_by_number(row->kind);
    if (kind == NULL || row->kind >= KIND_NUMBERS) {
        return; /* a newer node's kind: replicated, not understood */
    }
    struct kind_table *table = &objects->kinds[row->kind];
    struct entry *before = table_find(table, row->id, row->id_len);
    struct entry *now = (row->flags & ROW_TOMBSTONE) != 0 ? NULL : entry_new(objects, kind, row);
    if (before != NULL && now != NULL) {
        /* The place in the order stays. */
        now->position = before->position;
        table->ordered[now->position] = now;
        HASH_DEL(table->by_id, before);
        HASH_ADD_KEYPTR(hh, table->by_id, now->id, strlen(now->id), now);
    } else if (before != NULL) {
        table_remove(table, before);
    } else if (now != NULL) {
        table_add(table, now);
    }
    ret_change->now = now != NULL ? &now->object : NULL;
    ret_change->before = before != NULL ? &before->object : NULL;
}

void objects_change_done(struct objects_change *change)
{
    if (change->before != NULL) {
        entry_free(CONTAINER_OF(change->before, struct entry, object));
        change->before = NULL;
    }
}

const struct object *objects_find(const struct objects *objects, const struct kind *kind,
                                  const char *id)
{
    struct entry *entry = table_find(&objects->kinds[kind->number], id, strlen(id));
    return entry != NULL ? &entry->object : NULL;
}

void objects_each(struct objects *objects, const struct kind *kind, const char *from,
                  bool (*visit)(void *arg, const struct object *object), void *arg)
{
    struct kind_table *table = &objects->kinds[kind->number];
    table_sort(table);
    size_t low = 0;
    size_t high = from != NULL ? table->used : 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(table->ordered[middle]->id, from) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    for (size_t i = low; i < table->used; i++) {
        if (!visit(arg, &table->ordered[i]->object)) {
            return;
        }
    }
}

size_t objects_count(const struct objects *objects, const struct kind *kind)
{
    return HASH_COUNT(objects->kinds[kind->number].by_id);
}

uint64_t objects_damaged(const struct objects *objects)
{
    return objects->damaged;
}
