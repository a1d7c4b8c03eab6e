/*
 * GET /openapi.json: the API as an OpenAPI 3.1 document, made of the table of endpoints, the table
 * of kinds and the descriptors of objects.proto, so that it cannot say anything else than they do.
 *
 * Rows of the table with {kinds} become one path for each kind that fits. Each operation says its
 * least role as "x-role"; those that ask for no credential have an empty "security".
 */
#include "admin/server/server.h"
#include "node/base/mem.h"
#include "proto/json.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { NAME_MAX_LEN = 160, PATH_MAX_LEN = 256 };

/* Messages that are not objects in JSON. */
static const struct {
    const ProtobufCMessageDescriptor *descriptor;
    const char *format;
    const char *example;
} scalars[] = {
    {&skein__duration__descriptor, "duration", "1h30m"},
    {&skein__time__descriptor, "date-time", "2026-01-31T10:00:00.000Z"},
};

static void set_text(json_t *object, const char *name, const char *text)
{
    (void)json_object_set_new(object, name, json_string(text));
}

static json_t *typed(const char *type)
{
    json_t *schema = json_object();
    set_text(schema, "type", type);
    return schema;
}

static json_t *reference(const char *name)
{
    char text[NAME_MAX_LEN];
    json_t *schema = json_object();
    (void)snprintf(text, sizeof(text), "#/components/schemas/%s", name);
    set_text(schema, "$ref", text);
    return schema;
}

/* ---- schemas of messages ---- */

/* "skein.RouteTls" -> "RouteTls" */
static const char *schema_name(const ProtobufCMessageDescriptor *descriptor)
{
    const char *dot = strchr(descriptor->name, '.');
    return dot != NULL ? dot + 1 : descriptor->name;
}

static json_t *message_schema(const ProtobufCMessageDescriptor *descriptor, json_t *schemas);

static json_t *message_reference(const ProtobufCMessageDescriptor *descriptor, json_t *schemas)
{
    for (size_t i = 0; i < ARRAY_LEN(scalars); i++) {
        if (scalars[i].descriptor == descriptor) {
            json_t *schema = typed("string");
            set_text(schema, "format", scalars[i].format);
            set_text(schema, "example", scalars[i].example);
            return schema;
        }
    }
    const char *name = schema_name(descriptor);
    if (json_object_get(schemas, name) == NULL) {
        (void)json_object_set_new(schemas, name, json_object()); /* ends recursion */
        (void)json_object_set_new(schemas, name, message_schema(descriptor, schemas));
    }
    return reference(name);
}

static json_t *enum_schema(const ProtobufCEnumDescriptor *descriptor)
{
    json_t *schema = typed("string");
    json_t *values = json_array();
    for (unsigned i = 0; i < descriptor->n_value_names; i++) {
        (void)json_array_append_new(values, json_string(descriptor->values_by_name[i].name));
    }
    (void)json_object_set_new(schema, "enum", values);
    return schema;
}

static json_t *value_schema(const ProtobufCFieldDescriptor *field, json_t *schemas)
{
    json_t *schema;
    switch (field->type) {
    case PROTOBUF_C_TYPE_MESSAGE:
        return message_reference(field->descriptor, schemas);
    case PROTOBUF_C_TYPE_ENUM:
        return enum_schema(field->descriptor);
    case PROTOBUF_C_TYPE_BOOL:
        return typed("boolean");
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_DOUBLE:
        return typed("number");
    case PROTOBUF_C_TYPE_BYTES:
        schema = typed("string");
        set_text(schema, "contentEncoding", "base64");
        return schema;
    case PROTOBUF_C_TYPE_STRING:
        return typed("string");
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        schema = typed("string"); /* numbers of 64 bits are text in JSON */
        set_text(schema, "pattern", "^-?[0-9]+$");
        return schema;
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        break;
    }
    return typed("integer");
}

/* What goes in and never comes out; a Token's hash does not even go in. */
static bool is_write_only(const ProtobufCMessageDescriptor *descriptor, const char *field)
{
    return strcmp(field, "key") == 0 && (descriptor == &skein__certificate_spec__descriptor ||
                                         descriptor == &skein__certificate_pair__descriptor);
}

static json_t *field_schema(const ProtobufCFieldDescriptor *field, json_t *schemas)
{
    if (field->label != PROTOBUF_C_LABEL_REPEATED) {
        return value_schema(field, schemas);
    }
    if (field->descriptor == &skein__pair__descriptor) {
        json_t *map = typed("object");
        (void)json_object_set_new(map, "additionalProperties", typed("string"));
        return map;
    }
    json_t *list = typed("array");
    (void)json_object_set_new(list, "items", value_schema(field, schemas));
    return list;
}

static json_t *message_schema(const ProtobufCMessageDescriptor *descriptor, json_t *schemas)
{
    json_t *schema = typed("object");
    json_t *properties = json_object();
    for (unsigned i = 0; i < descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &descriptor->fields[i];
        char name[JSON_NAME_MAX];
        (void)json_field_name(field, name);
        if (descriptor == &skein__token_spec__descriptor && strcmp(name, "hash") == 0) {
            continue;
        }
        json_t *value = field_schema(field, schemas);
        if (is_write_only(descriptor, name)) {
            (void)json_object_set_new(value, "writeOnly", json_true());
        }
        (void)json_object_set_new(properties, name, value);
    }
    (void)json_object_set_new(schema, "properties", properties);
    return schema;
}

static void add_kinds(json_t *schemas)
{
    for (const struct kind *kind = kinds; kind->name != NULL; kind++) {
        json_t *schema = message_schema(kind->descriptor, schemas);
        json_t *name = typed("string");
        set_text(name, "const", kind->name);
        (void)json_object_set_new(json_object_get(schema, "properties"), "kind", name);
        (void)json_object_set_new(schemas, kind->name, schema);
    }
}

static json_t *problem_schema(void)
{
    json_t *schema = json_pack(
        "{s:s, s:{s:{s:s}, s:{s:s}, s:{s:s}, s:{s:s}, s:{s:s, s:{s:s, s:{s:{s:s}, s:{s:s}}}}}}",
        "type", "object", "properties", "type", "type", "string", "title", "type", "string",
        "status", "type", "integer", "detail", "type", "string", "errors", "type", "array", "items",
        "type", "object", "properties", "path", "type", "string", "message", "type", "string");
    return schema != NULL ? schema : typed("object");
}

/* ---- operations ---- */

static void add_parameter(json_t *parameters, const char *name, const char *in)
{
    json_t *parameter = json_object();
    set_text(parameter, "name", name);
    set_text(parameter, "in", in);
    (void)json_object_set_new(parameter, "required", json_boolean(strcmp(in, "path") == 0));
    (void)json_object_set_new(parameter, "schema", typed("string"));
    (void)json_array_append_new(parameters, parameter);
}

static json_t *parameters_of(const struct route *route, const char *path)
{
    json_t *parameters = json_array();
    char name[64];
    for (const char *at = path; (at = strchr(at, '{')) != NULL; at++) {
        (void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(at + 1, "}"), at + 1);
        add_parameter(parameters, name, "path");
    }
    for (const char *at = route->params; *at != '\0'; at += strspn(at, " ")) {
        size_t len = strcspn(at, " ");
        (void)snprintf(name, sizeof(name), "%.*s", (int)len, at);
        add_parameter(parameters, name, "query");
        at += len;
    }
    return parameters;
}

static json_t *content(const char *type, json_t *schema)
{
    json_t *media = json_object(), *body = json_object(), *all = json_object();
    (void)json_object_set_new(media, "schema", schema);
    (void)json_object_set_new(body, type, media);
    (void)json_object_set_new(all, "content", body);
    return all;
}

static json_t *response(const char *description, const char *type, json_t *schema)
{
    json_t *answer = content(type, schema);
    set_text(answer, "description", description);
    return answer;
}

static json_t *answers_of(const struct route *route, const struct kind *kind)
{
    json_t *answers = json_object();
    bool is_list = kind != NULL && strstr(route->path, "{name}") == NULL;
    json_t *schema = kind != NULL ? reference(kind->name) : json_object();
    if (is_list) {
        json_t *items = typed("array"), *properties = json_object();
        (void)json_object_set_new(items, "items", schema);
        (void)json_object_set_new(properties, "items", items);
        schema = typed("object");
        (void)json_object_set_new(schema, "properties", properties);
    }
    (void)json_object_set_new(answers, "2XX", response("done", "application/json", schema));
    (void)json_object_set_new(
        answers, "default",
        response("refused, and why", "application/problem+json", reference("Problem")));
    return answers;
}

static json_t *operation(const struct route *route, const char *path, const struct kind *kind)
{
    json_t *json = json_object();
    set_text(json, "summary", route->doc);
    set_text(json, "x-role", access_name(route->least));
    (void)json_object_set_new(json, "parameters", parameters_of(route, path));
    if (strcmp(route->method, "PUT") == 0 || strcmp(route->method, "POST") == 0) {
        json_t *schema = kind != NULL ? reference(kind->name) : json_object();
        (void)json_object_set_new(json, "requestBody", content("application/json", schema));
    } else if (strcmp(route->method, "PATCH") == 0) {
        (void)json_object_set_new(json, "requestBody",
                                  content("application/merge-patch+json", typed("object")));
    }
    (void)json_object_set_new(json, "responses", answers_of(route, kind));
    if (route->least == ACCESS_OPEN) {
        (void)json_object_set_new(json, "security", json_array());
    }
    return json;
}

static void add_operation(json_t *paths, const struct route *route, const char *path,
                          const struct kind *kind)
{
    json_t *item = json_object_get(paths, path);
    if (item == NULL) {
        item = json_object();
        (void)json_object_set_new(paths, path, item);
    }
    char method[16];
    size_t len = 0;
    for (; route->method[len] != '\0' && len + 1 < sizeof(method); len++) {
        method[len] = (char)tolower((unsigned char)route->method[len]);
    }
    method[len] = '\0';
    (void)json_object_set_new(item, method, operation(route, path, kind));
}

/* One row for all kinds becomes one path for each that fits its shape. */
static void add_route(json_t *paths, const struct route *route)
{
    const char *place = strstr(route->path, "{kinds}");
    if (place == NULL) {
        add_operation(paths, route, route->path, NULL);
        return;
    }
    bool in_namespace = strstr(route->path, "{namespace}") != NULL;
    bool is_list = strstr(route->path, "{name}") == NULL;
    for (const struct kind *kind = kinds; kind->name != NULL; kind++) {
        bool fits = kind->namespaced ? in_namespace || is_list : !in_namespace;
        bool replaces = strcmp(route->method, "PUT") == 0 || strcmp(route->method, "PATCH") == 0;
        if (!fits || (replaces && kind_is_token(kind))) {
            continue; /* tokens are made by POST and never changed */
        }
        char path[PATH_MAX_LEN];
        (void)snprintf(path, sizeof(path), "%.*s%s%s", (int)(place - route->path), route->path,
                       kind->plural, place + strlen("{kinds}"));
        add_operation(paths, route, path, kind);
    }
}

void handle_openapi(struct call *call)
{
    json_t *schemas = json_object(), *paths = json_object();
    add_kinds(schemas);
    (void)json_object_set_new(schemas, "Problem", problem_schema());
    for (const struct route *route = routes; route->method != NULL; route++) {
        add_route(paths, route);
    }
    json_t *document = json_pack(
        "{s:s, s:{s:s, s:s}, s:{s:{s:{s:s, s:s}, s:{s:s}}, s:o}, s:[{s:[]}, {s:[]}], s:o}",
        "openapi", "3.1.0", "info", "title", "Skein", "version", SKEIN_VERSION, "components",
        "securitySchemes", "token", "type", "http", "scheme", "bearer", "clientCertificate", "type",
        "mutualTLS", "schemas", schemas, "security", "token", "clientCertificate", "paths", paths);
    call_answer_json(call, 200, NULL, document);
}
