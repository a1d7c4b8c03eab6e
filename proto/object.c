/*
 * What can be done with any object: identity, packing, unpacking, copying, freeing.
 *
 * Messages live in plain malloc memory throughout, so that one free function serves those that were
 * unpacked, copied, read from JSON or built by hand. Unpacking spends from a budget: bytes of a
 * peer cannot make us allocate more than a fixed multiple of what an object may weigh.
 */
#include "proto/object.h"

#include "node/base/check.h"
#include "node/base/mem.h"
#include "proto/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* All allocations of one unpack together, freed ones included. The densest object that
     * validation accepts (labels of a byte each) needs about 15 times its packed size. */
    UNPACK_BUDGET_BYTES = 32 * OBJECT_PACKED_MAX
};

size_t object_id(const struct kind *kind, const Skein__Metadata *metadata,
                 char out[OBJECT_ID_MAX + 1])
{
    int len = 0;
    if (kind->namespaced) {
        len = snprintf(out, OBJECT_ID_MAX + 1, "%s/%s", metadata->namespace_, metadata->name);
    } else {
        len = snprintf(out, OBJECT_ID_MAX + 1, "%s", metadata->name);
    }
    /* Validation bounds both names. */
    ASSERT(len > 0 && len <= OBJECT_ID_MAX);
    return (size_t)len;
}

int object_pack(const struct kind *kind, const ProtobufCMessage *message, uint8_t **ret_bytes,
                size_t *ret_len, struct err_info *err)
{
    ASSERT(message->descriptor == kind->descriptor);

    /* Shallow copies without what is not stored; the parts stay the caller's. */
    struct object_message *bare = mem_dup(message, kind->descriptor->sizeof_message);
    Skein__Metadata metadata = SKEIN__METADATA__INIT;
    if (bare->metadata != NULL) {
        metadata = *bare->metadata;
        metadata.resource_version = NULL;
        metadata.created = NULL;
        metadata.modified = NULL;
        metadata.origin = NULL;
        bare->metadata = &metadata;
    }
    bare->status = NULL;

    int rc = RC_OK;
    size_t len = protobuf_c_message_get_packed_size(&bare->base);
    if (len > OBJECT_PACKED_MAX) {
        rc = err_set(err, RC_TOO_BIG, "the %s is %zu bytes packed; at most %d are accepted",
                     kind->name, len, OBJECT_PACKED_MAX);
        goto out;
    }
    uint8_t *bytes = mem_new(len);
    size_t packed = protobuf_c_message_pack(&bare->base, bytes);
    ASSERT(packed == len);
    *ret_bytes = bytes;
    *ret_len = len;
out:
    mem_free(bare);
    return rc;
}

static void *budget_alloc(void *allocator_data, size_t size)
{
    size_t *left = allocator_data;
    if (size > *left) {
        return NULL;
    }
    *left -= size;
    return malloc(size != 0 ? size : 1);
}

static void budget_free(void *allocator_data, void *ptr)
{
    (void)allocator_data; /* what was spent stays spent: it bounds work as well as memory */
    free(ptr);
}

/*
 * What protobuf-c lets through and we do not. Strings may be any bytes to it (a NUL inside cuts
 * them, harmlessly). An unknown field with the number 0, written in two bytes, is taken and packed
 * again in one, which then is refused: it would make an object that can be read once.
 */
static bool is_sound(const ProtobufCMessage *message)
{
    const ProtobufCMessageDescriptor *descriptor = message->descriptor;
    for (unsigned i = 0; i < message->n_unknown_fields; i++) {
        if (message->unknown_fields[i].tag == 0) {
            return false;
        }
    }
    for (unsigned i = 0; i < descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &descriptor->fields[i];
        if (field->type != PROTOBUF_C_TYPE_STRING && field->type != PROTOBUF_C_TYPE_MESSAGE) {
            continue;
        }
        const char *base = (const char *)message;
        size_t count = 1;
        const void *const *items = (const void *const *)(const void *)(base + field->offset);
        if (field->label == PROTOBUF_C_LABEL_REPEATED) {
            count = *(const size_t *)(const void *)(base + field->quantifier_offset);
            items = *(const void *const *const *)(const void *)(base + field->offset);
        }
        for (size_t j = 0; j < count; j++) {
            if (items[j] == NULL) {
                continue;
            }
            bool good = field->type == PROTOBUF_C_TYPE_STRING
                            ? utf8_is_valid(items[j], strlen(items[j]))
                            : is_sound(items[j]);
            if (!good) {
                return false;
            }
        }
    }
    return true;
}

void object_ensure_spec(struct object_message *object)
{
    if (object->spec == NULL) {
        /* Fields are in the order of their numbers: metadata, spec, status. */
        const ProtobufCMessageDescriptor *descriptor =
            object->base.descriptor->fields[1].descriptor;
        object->spec = mem_new(descriptor->sizeof_message);
        descriptor->message_init(object->spec);
    }
}

/* Everybody who holds an object reads these without asking. */
static bool is_named(const struct kind *kind, const Skein__Metadata *metadata)
{
    if (metadata == NULL || metadata->name == NULL || metadata->name[0] == '\0') {
        return false;
    }
    bool has_namespace = metadata->namespace_ != NULL && metadata->namespace_[0] != '\0';
    size_t len = strlen(metadata->name) + (has_namespace ? strlen(metadata->namespace_) + 1 : 0);
    return has_namespace == kind->namespaced && len <= OBJECT_ID_MAX;
}

int object_unpack(const struct kind *kind, const uint8_t *bytes, size_t len,
                  struct object_message **ret_message, struct err_info *err)
{
    if (len > OBJECT_PACKED_MAX) {
        return err_set(err, RC_CORRUPT, "a %s of %zu bytes; at most %d are accepted", kind->name,
                       len, OBJECT_PACKED_MAX);
    }
    size_t left = UNPACK_BUDGET_BYTES;
    ProtobufCAllocator allocator = {
        .alloc = budget_alloc, .free = budget_free, .allocator_data = &left};
    ProtobufCMessage *message = protobuf_c_message_unpack(kind->descriptor, &allocator, len, bytes);
    if (message == NULL) {
        return err_set(err, RC_CORRUPT, "%zu bytes are no packed %s", len, kind->name);
    }
    if (!is_sound(message)) {
        message_free(message);
        return err_set(err, RC_CORRUPT,
                       "a packed %s has a string that is not UTF-8, or a field numbered 0",
                       kind->name);
    }
    struct object_message *object = (struct object_message *)(void *)message;
    if (!is_named(kind, object->metadata)) {
        message_free(message);
        return err_set(err, RC_CORRUPT, "a packed %s has no name, or a bad one", kind->name);
    }
    object_ensure_spec(object);
    *ret_message = object;
    return RC_OK;
}

void message_free(ProtobufCMessage *message)
{
    if (message != NULL) {
        protobuf_c_message_free_unpacked(message, NULL);
    }
}

ProtobufCMessage *message_copy(const ProtobufCMessage *message)
{
    /* By way of the wire: unknown fields come along, and there is no second walk to maintain. */
    size_t len = protobuf_c_message_get_packed_size(message);
    uint8_t *bytes = mem_new(len);
    (void)protobuf_c_message_pack(message, bytes); /* its result is len, by contract */
    ProtobufCMessage *copy = protobuf_c_message_unpack(message->descriptor, NULL, len, bytes);
    mem_free(bytes);
    ASSERT(copy != NULL);
    return copy;
}
