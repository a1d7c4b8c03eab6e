/*
 * Fields of a newer version: protobuf-c keeps them as raw bytes when it unpacks, and writes them
 * again when it packs. What is here carries them over a change that went by way of JSON.
 */
#include "proto/object.h"

#include "node/base/check.h"
#include "node/base/mem.h"

#include <string.h>

/* The messages in a field: one or none, or those of a list. */
static ProtobufCMessage *const *children(const ProtobufCMessage *message,
                                         const ProtobufCFieldDescriptor *field, size_t *ret_count)
{
    const char *base = (const char *)message;
    const void *at = base + field->offset;
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        *ret_count = *(const size_t *)(const void *)(base + field->quantifier_offset);
        return *(ProtobufCMessage *const *const *)at;
    }
    *ret_count = *(ProtobufCMessage *const *)at != NULL ? 1 : 0;
    return at;
}

bool message_has_unknown(const ProtobufCMessage *message)
{
    if (message->n_unknown_fields != 0) {
        return true;
    }
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
        if (field->type != PROTOBUF_C_TYPE_MESSAGE) {
            continue;
        }
        size_t count = 0;
        ProtobufCMessage *const *items = children(message, field, &count);
        for (size_t j = 0; j < count; j++) {
            if (message_has_unknown(items[j])) {
                return true;
            }
        }
    }
    return false;
}

static void append_unknown(ProtobufCMessage *to, const ProtobufCMessage *from)
{
    if (from->n_unknown_fields == 0) {
        return;
    }
    to->unknown_fields = mem_grow(to->unknown_fields, to->n_unknown_fields + from->n_unknown_fields,
                                  sizeof *to->unknown_fields);
    for (unsigned i = 0; i < from->n_unknown_fields; i++) {
        ProtobufCMessageUnknownField *copy = &to->unknown_fields[to->n_unknown_fields++];
        *copy = from->unknown_fields[i];
        copy->data = mem_dup(copy->data, copy->len);
    }
}

void message_keep_unknown(ProtobufCMessage *to, const ProtobufCMessage *from)
{
    ASSERT(to->descriptor == from->descriptor);
    append_unknown(to, from);
    for (unsigned i = 0; i < to->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &to->descriptor->fields[i];
        if (field->type != PROTOBUF_C_TYPE_MESSAGE || field->label == PROTOBUF_C_LABEL_REPEATED) {
            continue;
        }
        size_t to_count = 0;
        size_t from_count = 0;
        ProtobufCMessage *const *to_child = children(to, field, &to_count);
        ProtobufCMessage *const *from_child = children(from, field, &from_count);
        if (to_count != 0 && from_count != 0) {
            message_keep_unknown(*to_child, *from_child);
        }
    }
}
