/*
 * Differences of two objects, field by field.
 *
 * Lists whose elements are objects with names of their own are matched by name, in O(n) by an index
 * of the other side; the rest is matched by position.
 */
#include "proto/diff.h"

#include "node/base/mem.h"
#include "proto/fault.h"

#include <string.h>

struct differ {
    json_t *entries;
    struct faults where; /* only its path is used */
};

static void compare(struct differ *differ, const json_t *before, const json_t *after);

static void add_entry(struct differ *differ, const json_t *before, const json_t *after)
{
    json_t *entry = json_object();
    (void)json_object_set_new(entry, "path", json_string(differ->where.path));
    if (before != NULL) {
        (void)json_object_set(entry, "old", unconst(before));
    }
    if (after != NULL) {
        (void)json_object_set(entry, "new", unconst(after));
    }
    (void)json_array_append_new(differ->entries, entry);
}

static void compare_objects(struct differ *differ, const json_t *before, const json_t *after)
{
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach(unconst(before), key, value)
    {
        size_t mark = faults_enter_key(&differ->where, key);
        compare(differ, value, json_object_get(after, key));
        faults_leave(&differ->where, mark);
    }
    json_object_foreach(unconst(after), key, value)
    {
        if (json_object_get(before, key) == NULL) {
            size_t mark = faults_enter_key(&differ->where, key);
            compare(differ, NULL, value);
            faults_leave(&differ->where, mark);
        }
    }
}

static void compare_by_position(struct differ *differ, const json_t *before, const json_t *after)
{
    size_t count = MAX(json_array_size(before), json_array_size(after));
    for (size_t i = 0; i < count; i++) {
        size_t mark = faults_enter_idx(&differ->where, i);
        compare(differ, json_array_get(before, i),
                json_array_get(after, i)); /* NULL past the end */
        faults_leave(&differ->where, mark);
    }
}

/* The field by which all elements of both lists have different names, or NULL. */
static const char *naming_field(const json_t *list)
{
    static const char *const fields[] = {"backend", "address", "name"};
    for (size_t f = 0; f < ARRAY_LEN(fields); f++) {
        json_t *seen = json_object();
        size_t i = 0;
        while (i < json_array_size(list)) {
            const json_t *name = json_object_get(json_array_get(list, i), fields[f]);
            if (!json_is_string(name) || json_object_get(seen, json_string_value(name)) != NULL) {
                break;
            }
            (void)json_object_set_new(seen, json_string_value(name), json_true());
            i++;
        }
        json_decref(seen);
        if (i != 0 && i == json_array_size(list)) {
            return fields[f];
        }
    }
    return NULL;
}

static json_t *index_by(const json_t *list, const char *field)
{
    json_t *index = json_object();
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *name = json_object_get(json_array_get(list, i), field);
        (void)json_object_set_new(index, json_string_value(name), json_integer((json_int_t)i));
    }
    return index;
}

/* Paths carry positions of the new list; those of the old one for what was removed. */
static void compare_by_name(struct differ *differ, const json_t *before, const json_t *after,
                            const char *field)
{
    size_t found = json_array_size(differ->entries);
    json_t *old_index = index_by(before, field);
    json_t *new_index = index_by(after, field);
    for (size_t i = 0; i < json_array_size(before); i++) {
        const json_t *item = json_array_get(before, i);
        const char *name = json_string_value(json_object_get(item, field));
        if (json_object_get(new_index, name) == NULL) {
            size_t mark = faults_enter_idx(&differ->where, i);
            add_entry(differ, item, NULL);
            faults_leave(&differ->where, mark);
        }
    }
    for (size_t i = 0; i < json_array_size(after); i++) {
        const json_t *item = json_array_get(after, i);
        const char *name = json_string_value(json_object_get(item, field));
        const json_t *old_at = json_object_get(old_index, name);
        const json_t *old_item =
            old_at != NULL ? json_array_get(before, (size_t)json_integer_value(old_at)) : NULL;
        size_t mark = faults_enter_idx(&differ->where, i);
        compare(differ, old_item, item);
        faults_leave(&differ->where, mark);
    }
    json_decref(old_index);
    json_decref(new_index);
    if (json_array_size(differ->entries) == found && !json_equal(before, after)) {
        add_entry(differ, before, after); /* only the order differs */
    }
}

static void compare_lists(struct differ *differ, const json_t *before, const json_t *after)
{
    const char *field = naming_field(before);
    const char *other = naming_field(after);
    if (field != NULL && other != NULL && strcmp(field, other) == 0) {
        compare_by_name(differ, before, after, field);
    } else {
        compare_by_position(differ, before, after);
    }
}

static void compare(struct differ *differ, const json_t *before, const json_t *after)
{
    if (json_is_object(before) && json_is_object(after)) {
        compare_objects(differ, before, after);
    } else if (json_is_array(before) && json_is_array(after)) {
        compare_lists(differ, before, after);
    } else if (before == NULL || after == NULL || !json_equal(before, after)) {
        add_entry(differ, before, after);
    }
}

/* Shallow copies without what the server computes. */
static json_t *without_computed(const json_t *object)
{
    static const char *const server_set[] = {"resourceVersion", "created", "modified", "origin"};
    json_t *bare = json_copy(unconst(object));
    (void)json_object_del(bare, "status");
    json_t *metadata = json_copy(json_object_get(bare, "metadata"));
    for (size_t i = 0; i < ARRAY_LEN(server_set); i++) {
        (void)json_object_del(metadata, server_set[i]); /* NULL, or not there: nothing to do */
    }
    if (metadata != NULL) {
        (void)json_object_set_new(bare, "metadata", metadata);
    }
    return bare;
}

json_t *object_diff(const json_t *old_object, const json_t *new_object)
{
    struct differ differ = {.entries = json_array()};
    json_t *before = old_object != NULL ? without_computed(old_object) : NULL;
    json_t *after = new_object != NULL ? without_computed(new_object) : NULL;
    if (before != NULL || after != NULL) {
        compare(&differ, before, after);
    }
    json_decref(before);
    json_decref(after);
    return differ.entries;
}
