/*
 * Messages to JSON, and objects both ways. Reading fields is in json_read.c.
 *
 * protobuf-c keeps a field at `offset` and, at `quantifier_offset`, whether it is set (optional
 * scalars) or how many there are (repeated). Pointers (strings, messages) are unset when NULL.
 */
#include "proto/json.h"

#include "node/base/check.h"
#include "node/base/mem.h"
#include "node/base/timesrc.h"
#include "proto/fault.h"
#include "proto/json_read.h"
#include "proto/scalar.h"
#include "proto/utf8.h"
#include "proto/validate.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const char *json_field_name(const ProtobufCFieldDescriptor *field, char out[JSON_NAME_MAX])
{
    size_t used = 0;
    bool upper = false;
    for (const char *c = field->name; *c != '\0' && used < JSON_NAME_MAX - 1; c++) {
        if (*c == '_') {
            upper = true;
        } else {
            out[used++] = (char)(upper ? toupper((unsigned char)*c) : *c);
            upper = false;
        }
    }
    out[used] = '\0';
    return out;
}

/* jansson refuses text that is not UTF-8; nothing read by this unit is such text. */
static json_t *string_to_json(const char *text)
{
    json_t *value = json_string(text);
    return value != NULL ? value : json_string("(not UTF-8)");
}

static json_t *u64_to_json(uint64_t number)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)number);
    return json_string(text);
}

static json_t *i64_to_json(int64_t number)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%lld", (long long)number);
    return json_string(text);
}

static json_t *real_to_json(double number)
{
    if (isnan(number)) {
        return json_string("NaN");
    }
    if (isinf(number)) {
        return json_string(number > 0 ? "Infinity" : "-Infinity");
    }
    return json_real(number);
}

static json_t *bytes_to_json(const ProtobufCBinaryData *data)
{
    char *text = base64_encode(data->data, data->len);
    json_t *value = json_string(text);
    mem_free(text);
    return value;
}

/* A value that this version has no name for came from a newer node: its number is shown. */
static json_t *enum_to_json(const ProtobufCEnumDescriptor *descriptor, int number)
{
    const ProtobufCEnumValue *value = protobuf_c_enum_descriptor_get_value(descriptor, number);
    return value != NULL ? json_string(value->name) : json_integer(number);
}

static json_t *value_to_json(const ProtobufCFieldDescriptor *field, const void *at)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        return json_integer(*(const int32_t *)at);
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        return json_integer(*(const uint32_t *)at);
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        return i64_to_json(*(const int64_t *)at);
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        return u64_to_json(*(const uint64_t *)at);
    case PROTOBUF_C_TYPE_FLOAT:
        return real_to_json((double)*(const float *)at);
    case PROTOBUF_C_TYPE_DOUBLE:
        return real_to_json(*(const double *)at);
    case PROTOBUF_C_TYPE_BOOL:
        return json_boolean(*(const protobuf_c_boolean *)at);
    case PROTOBUF_C_TYPE_ENUM:
        return enum_to_json(field->descriptor, *(const int *)at);
    case PROTOBUF_C_TYPE_STRING:
        return string_to_json(*(char *const *)at);
    case PROTOBUF_C_TYPE_BYTES:
        return bytes_to_json(at);
    case PROTOBUF_C_TYPE_MESSAGE:
        return message_to_json(*(ProtobufCMessage *const *)at);
    }
    UNREACHABLE("field type");
}

static json_t *pairs_to_json(Skein__Pair *const *pairs, size_t count)
{
    json_t *object = json_object();
    for (size_t i = 0; i < count; i++) {
        const char *key = pairs[i]->key != NULL ? pairs[i]->key : "";
        const char *value = pairs[i]->value != NULL ? pairs[i]->value : "";
        /* Fails only for a key that is not UTF-8, which unpacking refuses. */
        (void)json_object_set_new(object, key, string_to_json(value));
    }
    return object;
}

static json_t *list_to_json(const ProtobufCFieldDescriptor *field, const char *items, size_t count)
{
    if (field->descriptor == &skein__pair__descriptor) {
        return pairs_to_json((Skein__Pair *const *)(const void *)items, count);
    }
    json_t *array = json_array();
    size_t size = json_item_size(field->type);
    for (size_t i = 0; i < count; i++) {
        (void)json_array_append_new(array, value_to_json(field, items + i * size));
    }
    return array;
}

/* NULL when the field is unset. */
static json_t *field_to_json(const ProtobufCFieldDescriptor *field, const ProtobufCMessage *message)
{
    const char *base = (const char *)message;
    const void *at = base + field->offset;
    const void *quantifier = base + field->quantifier_offset;
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        size_t count = *(const size_t *)quantifier;
        return count != 0 ? list_to_json(field, *(const char *const *)at, count) : NULL;
    }
    if (field->type == PROTOBUF_C_TYPE_STRING || field->type == PROTOBUF_C_TYPE_MESSAGE) {
        return *(const void *const *)at != NULL ? value_to_json(field, at) : NULL;
    }
    if (field->label == PROTOBUF_C_LABEL_OPTIONAL && !*(const protobuf_c_boolean *)quantifier) {
        return NULL;
    }
    return value_to_json(field, at);
}

json_t *message_to_json(const ProtobufCMessage *message)
{
    if (message->descriptor == &skein__duration__descriptor) {
        char text[DURATION_TEXT_MAX];
        return json_string(
            duration_format(((const Skein__Duration *)(const void *)message)->ms, text));
    }
    if (message->descriptor == &skein__time__descriptor) {
        char text[TIME_TEXT_MAX];
        return json_string(
            time_format_wall(((const Skein__Time *)(const void *)message)->wall_ms, text));
    }
    json_t *object = json_object();
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
        json_t *value = field_to_json(field, message);
        if (value != NULL) {
            char name[JSON_NAME_MAX];
            (void)json_object_set_new(object, json_field_name(field, name), value);
        }
    }
    return object;
}

json_t *object_to_json(const struct kind *kind, const ProtobufCMessage *message)
{
    json_t *object = json_object();
    (void)json_object_set_new(object, "kind", json_string(kind->name));
    json_t *fields = message_to_json(message);
    (void)json_object_update(object, fields);
    json_decref(fields);
    return object;
}

static const struct kind *kind_of_document(const json_t *document, const struct kind *expected,
                                           struct faults *faults)
{
    const json_t *value = json_object_get(document, "kind");
    if (value == NULL || json_is_null(value)) {
        if (expected == NULL) {
            fault_field(faults, "kind", "is missing; wants a kind such as Route");
        }
        return expected;
    }
    if (!json_is_string(value)) {
        fault_field(faults, "kind", "wants a string such as Route, not %s", json_type_name(value));
        return NULL;
    }
    const char *name = json_string_value(value);
    for (const struct kind *kind = kinds; kind->name != NULL; kind++) {
        if (strcmp(kind->name, name) == 0) {
            if (expected != NULL && kind != expected) {
                fault_field(faults, "kind", "is %s, but %s is expected here", name, expected->name);
                return NULL;
            }
            return kind;
        }
    }
    char known[256] = "";
    size_t used = 0;
    for (const struct kind *kind = kinds; kind->name != NULL && used < sizeof known; kind++) {
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", used != 0 ? ", " : "",
                                 kind->name);
    }
    fault_field(faults, "kind", "\"%.60s\" is no kind; there are %s", name, known);
    return NULL;
}

struct object_message *object_from_json(const json_t *document, const struct kind *expected,
                                        const struct kind **ret_kind, struct faults *faults)
{
    size_t before = faults->total;
    if (!json_is_object(document)) {
        fault_add(faults, "wants an object with kind, metadata and spec, not %s",
                  json_type_name(document));
        return NULL;
    }
    const struct kind *kind = kind_of_document(document, expected, faults);
    if (kind == NULL) {
        return NULL;
    }
    /* "kind" is no field of the message. The copy is shallow. */
    json_t *fields = json_object();
    (void)json_object_update(fields, unconst(document)); /* only grows in memory: cannot fail */
    (void)json_object_del(fields, "kind");
    ProtobufCMessage *message = message_from_json(kind->descriptor, fields, faults);
    json_decref(fields);

    faults_shadow(faults);
    object_normalise(kind, message);
    object_validate(kind, message, faults);
    if (faults->total != before) {
        message_free(message);
        return NULL;
    }
    *ret_kind = kind;
    return (struct object_message *)(void *)message;
}

char *json_text(const json_t *value, size_t indent)
{
    size_t flags = JSON_ENCODE_ANY | (indent != 0 ? JSON_INDENT(indent) : JSON_COMPACT);
    char *text = json_dumps(value, flags);
    ASSERT(text != NULL);
    return text;
}
