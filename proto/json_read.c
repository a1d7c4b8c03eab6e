/*
 * Messages from JSON. Every fault is reported; reading goes on after each, so that a user sees them
 * all at once.
 *
 * Memory is proportional to the JSON that is there already. Recursion is bounded by the schema, and
 * by READ_DEPTH_MAX should a schema ever recurse.
 */
#include "proto/json_read.h"
#include "node/base/check.h"
#include "node/base/mem.h"
#include "proto/fault.h"
#include "proto/json.h"
#include "proto/scalar.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { READ_DEPTH_MAX = 16 };

static ProtobufCMessage *read_message(const ProtobufCMessageDescriptor *descriptor,
                                      const json_t *value, unsigned depth, struct faults *faults);

const char *json_type_name(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "a list";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
    case JSON_REAL:
        return "a number";
    case JSON_TRUE:
        return "true";
    case JSON_FALSE:
        return "false";
    case JSON_NULL:
        return "null";
    }
    UNREACHABLE("JSON type");
}

size_t json_item_size(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
        return 4;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return 8;
    case PROTOBUF_C_TYPE_BOOL:
        return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_ENUM:
        return sizeof(int);
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    }
    UNREACHABLE("field type");
}

static bool read_text(const json_t *value, const char *wanted, const char **ret_text,
                      struct faults *faults)
{
    if (!json_is_string(value)) {
        bool scalar = json_is_number(value) || json_is_boolean(value);
        fault_add(faults, "wants %s, not %s%s", wanted, json_type_name(value),
                  scalar ? "; put it in quotes" : "");
        return false;
    }
    if (strlen(json_string_value(value)) != json_string_length(value)) {
        fault_add(faults, "has a NUL byte");
        return false;
    }
    *ret_text = json_string_value(value);
    return true;
}

static bool read_signed(const json_t *value, int64_t low, int64_t high, int64_t *ret_number,
                        struct faults *faults)
{
    if (!json_is_integer(value)) {
        fault_add(faults, "wants a whole number, not %s",
                  json_is_real(value) ? "a fraction" : json_type_name(value));
        return false;
    }
    int64_t number = json_integer_value(value);
    if (number < low) {
        fault_add(faults, "%lld is below %lld", (long long)number, (long long)low);
        return false;
    }
    if (number > high) {
        fault_add(faults, "%lld is above %lld", (long long)number, (long long)high);
        return false;
    }
    *ret_number = number;
    return true;
}

/* 64-bit numbers may stand in quotes, since many JSON readers lose bits above 53. */
static bool read_i64(const json_t *value, int64_t *ret_number, struct faults *faults)
{
    if (!json_is_string(value)) {
        return read_signed(value, INT64_MIN, INT64_MAX, ret_number, faults);
    }
    const char *text = json_string_value(value);
    bool negative = *text == '-';
    uint64_t limit = (uint64_t)INT64_MAX + (negative ? 1 : 0);
    uint64_t magnitude = 0;
    if (!u64_parse(text + negative, strlen(text + negative), &magnitude) || magnitude > limit) {
        fault_add(faults, "\"%.40s\" is no whole number of 64 bits", text);
        return false;
    }
    *ret_number = negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
    return true;
}

static bool read_u64(const json_t *value, uint64_t *ret_number, struct faults *faults)
{
    if (!json_is_string(value)) {
        int64_t number = 0;
        if (!read_signed(value, 0, INT64_MAX, &number, faults)) {
            return false;
        }
        *ret_number = (uint64_t)number;
        return true;
    }
    if (!u64_parse(json_string_value(value), json_string_length(value), ret_number)) {
        fault_add(faults, "\"%.40s\" is no whole number from 0 to 18446744073709551615",
                  json_string_value(value));
        return false;
    }
    return true;
}

static bool read_real(const json_t *value, double *ret_number, struct faults *faults)
{
    if (!json_is_number(value)) {
        fault_add(faults, "wants a number, not %s", json_type_name(value));
        return false;
    }
    *ret_number = json_number_value(value);
    return true;
}

static bool read_bool(const json_t *value, protobuf_c_boolean *ret_value, struct faults *faults)
{
    if (!json_is_boolean(value)) {
        fault_add(faults, "wants true or false, not %s", json_type_name(value));
        return false;
    }
    *ret_value = json_is_true(value);
    return true;
}

static void enum_names(const ProtobufCEnumDescriptor *descriptor, char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (unsigned i = 0; i < descriptor->n_values && used < size; i++) {
        used += (size_t)snprintf(out + used, size - used, "%s%s", i != 0 ? ", " : "",
                                 descriptor->values[i].name);
    }
}

static bool read_enum(const ProtobufCEnumDescriptor *descriptor, const json_t *value,
                      int *ret_number, struct faults *faults)
{
    char names[256];
    if (!json_is_string(value)) {
        enum_names(descriptor, names, sizeof names);
        fault_add(faults, "wants one of %s, not %s", names, json_type_name(value));
        return false;
    }
    const ProtobufCEnumValue *found =
        protobuf_c_enum_descriptor_get_value_by_name(descriptor, json_string_value(value));
    if (found == NULL) {
        enum_names(descriptor, names, sizeof names);
        fault_add(faults, "\"%.60s\" is not one of %s", json_string_value(value), names);
        return false;
    }
    *ret_number = found->value;
    return true;
}

static bool read_bytes(const json_t *value, ProtobufCBinaryData *ret_data, struct faults *faults)
{
    const char *text = NULL;
    if (!read_text(value, "base64 text", &text, faults)) {
        return false;
    }
    if (base64_decode(text, strlen(text), &ret_data->data, &ret_data->len) != RC_OK) {
        fault_add(faults, "is no base64 text");
        return false;
    }
    return true;
}

static bool read_string(const json_t *value, char **ret_text, struct faults *faults)
{
    const char *text = NULL;
    if (!read_text(value, "a string", &text, faults)) {
        return false;
    }
    *ret_text = mem_strdup(text);
    return true;
}

/* 32-bit fields of either sign: the bounds fit both, the bits are stored as they are. */
static bool read_32(const json_t *value, bool is_signed, uint32_t *ret_bits, struct faults *faults)
{
    int64_t number = 0;
    int64_t low = is_signed ? INT32_MIN : 0;
    int64_t high = is_signed ? INT32_MAX : UINT32_MAX;
    if (!read_signed(value, low, high, &number, faults)) {
        return false;
    }
    *ret_bits = (uint32_t)(uint64_t)number;
    return true;
}

/* at is the field's place in its message, or an element of a list. */
static bool read_value(const ProtobufCFieldDescriptor *field, const json_t *value, void *at,
                       unsigned depth, struct faults *faults)
{
    double real = 0;
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        return read_32(value, true, at, faults);
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        return read_32(value, false, at, faults);
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        return read_i64(value, at, faults);
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        return read_u64(value, at, faults);
    case PROTOBUF_C_TYPE_FLOAT:
        if (!read_real(value, &real, faults)) {
            return false;
        }
        *(float *)at = (float)real;
        return true;
    case PROTOBUF_C_TYPE_DOUBLE:
        return read_real(value, at, faults);
    case PROTOBUF_C_TYPE_BOOL:
        return read_bool(value, at, faults);
    case PROTOBUF_C_TYPE_ENUM:
        return read_enum(field->descriptor, value, at, faults);
    case PROTOBUF_C_TYPE_STRING:
        return read_string(value, at, faults);
    case PROTOBUF_C_TYPE_BYTES:
        return read_bytes(value, at, faults);
    case PROTOBUF_C_TYPE_MESSAGE:
        *(ProtobufCMessage **)at = read_message(field->descriptor, value, depth + 1, faults);
        return true;
    }
    UNREACHABLE("field type");
}

static Skein__Pair **read_pairs(const json_t *value, size_t *ret_count, struct faults *faults)
{
    *ret_count = 0;
    if (!json_is_object(value)) {
        fault_add(faults, "wants an object of strings, not %s", json_type_name(value));
        return NULL;
    }
    Skein__Pair **pairs = mem_array(json_object_size(value), sizeof *pairs);
    const char *key = NULL;
    json_t *item = NULL;
    json_object_foreach(unconst(value), key, item)
    {
        size_t mark = faults_enter_key(faults, key);
        Skein__Pair *pair = mem_new(sizeof *pair);
        skein__pair__init(pair);
        pair->key = mem_strdup(key);
        (void)read_string(item, &pair->value, faults); /* a fault is in the list already */
        pairs[(*ret_count)++] = pair;
        faults_leave(faults, mark);
    }
    return pairs;
}

/* An element that could not be read is still something that can be freed. */
static void fill_item(const ProtobufCFieldDescriptor *field, void *at)
{
    if (field->type == PROTOBUF_C_TYPE_STRING) {
        *(char **)at = mem_strdup("");
    } else if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
        const ProtobufCMessageDescriptor *descriptor = field->descriptor;
        ProtobufCMessage *message = mem_new(descriptor->sizeof_message);
        descriptor->message_init(message);
        *(ProtobufCMessage **)at = message;
    }
}

static void read_list(const ProtobufCFieldDescriptor *field, const json_t *value,
                      ProtobufCMessage *message, unsigned depth, struct faults *faults)
{
    char *base = (char *)message;
    size_t *count = (size_t *)(void *)(base + field->quantifier_offset);
    void **ret_items = (void **)(void *)(base + field->offset);
    if (field->descriptor == &skein__pair__descriptor) {
        *ret_items = read_pairs(value, count, faults);
        return;
    }
    if (!json_is_array(value)) {
        fault_add(faults, "wants a list, not %s", json_type_name(value));
        return;
    }
    size_t size = json_item_size(field->type);
    char *items = mem_array(json_array_size(value), size);
    *ret_items = items;
    *count = json_array_size(value);
    for (size_t i = 0; i < *count; i++) {
        size_t mark = faults_enter_idx(faults, i);
        const json_t *item = json_array_get(value, i);
        void *at = items + i * size;
        bool good = false;
        if (json_is_null(item)) {
            fault_add(faults, "null is no element of a list");
        } else {
            good = read_value(field, item, at, depth, faults);
        }
        if (!good) {
            fill_item(field, at);
        }
        faults_leave(faults, mark);
    }
}

static void read_field(const ProtobufCFieldDescriptor *field, const json_t *value,
                       ProtobufCMessage *message, unsigned depth, struct faults *faults)
{
    if (json_is_null(value)) {
        return;
    }
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        read_list(field, value, message, depth, faults);
        return;
    }
    char *base = (char *)message;
    bool pointer = field->type == PROTOBUF_C_TYPE_STRING || field->type == PROTOBUF_C_TYPE_MESSAGE;
    if (read_value(field, value, base + field->offset, depth, faults) && !pointer &&
        field->label == PROTOBUF_C_LABEL_OPTIONAL) {
        *(protobuf_c_boolean *)(void *)(base + field->quantifier_offset) = true;
    }
}

static const ProtobufCFieldDescriptor *find_field(const ProtobufCMessageDescriptor *descriptor,
                                                  const char *key)
{
    char name[JSON_NAME_MAX];
    for (unsigned i = 0; i < descriptor->n_fields; i++) {
        if (strcmp(json_field_name(&descriptor->fields[i], name), key) == 0) {
            return &descriptor->fields[i];
        }
    }
    return NULL;
}

static void add_unknown_field(const ProtobufCMessageDescriptor *descriptor, struct faults *faults)
{
    char known[320] = "";
    size_t used = 0;
    for (unsigned i = 0; i < descriptor->n_fields && used < sizeof known; i++) {
        char name[JSON_NAME_MAX];
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i != 0 ? ", " : "",
                                 json_field_name(&descriptor->fields[i], name));
    }
    if (descriptor->n_fields == 0) {
        fault_add(faults, "is not known; there are no fields here");
    } else {
        fault_add(faults, "is not known; the fields here are %s", known);
    }
}

/* Duration and Time are strings in JSON. False: an ordinary message. */
static bool read_text_message(ProtobufCMessage *message, const json_t *value, struct faults *faults)
{
    struct err_info err = {""};
    const char *text = NULL;
    if (message->descriptor == &skein__duration__descriptor) {
        Skein__Duration *duration = (Skein__Duration *)(void *)message;
        if (read_text(value, "a duration such as 500ms, 30s, 1h30m or 2d", &text, faults)) {
            duration->has_ms = duration_parse(text, &duration->ms, &err) == RC_OK;
        }
    } else if (message->descriptor == &skein__time__descriptor) {
        Skein__Time *moment = (Skein__Time *)(void *)message;
        if (read_text(value, "a time such as 2026-01-31T10:00:00Z", &text, faults)) {
            moment->has_wall_ms = wall_parse(text, &moment->wall_ms, &err) == RC_OK;
        }
    } else {
        return false;
    }
    if (err.text[0] != '\0') {
        fault_add(faults, "%s", err.text);
    }
    return true;
}

static ProtobufCMessage *read_message(const ProtobufCMessageDescriptor *descriptor,
                                      const json_t *value, unsigned depth, struct faults *faults)
{
    ProtobufCMessage *message = mem_new(descriptor->sizeof_message);
    descriptor->message_init(message);
    if (depth > READ_DEPTH_MAX) {
        fault_add(faults, "is nested too deeply");
        return message;
    }
    if (read_text_message(message, value, faults)) {
        return message;
    }
    if (!json_is_object(value)) {
        fault_add(faults, "wants an object, not %s", json_type_name(value));
        return message;
    }
    const char *key = NULL;
    json_t *item = NULL;
    json_object_foreach(unconst(value), key, item)
    {
        const ProtobufCFieldDescriptor *field = find_field(descriptor, key);
        size_t mark = faults_enter_key(faults, key);
        if (field == NULL) {
            add_unknown_field(descriptor, faults);
        } else {
            read_field(field, item, message, depth, faults);
        }
        faults_leave(faults, mark);
    }
    return message;
}

ProtobufCMessage *message_from_json(const ProtobufCMessageDescriptor *descriptor,
                                    const json_t *value, struct faults *faults)
{
    return read_message(descriptor, value, 0, faults);
}
