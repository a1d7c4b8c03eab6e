/*
 * JSON both ways: every type, every fault. covers: json.c json_read.c
 */
#include "tests/unit/proto/objects.h"

static json_t *json_of(const char *text)
{
    json_t *value = NULL;
    assert_int_equal(json_parse(text, strlen(text), &value, NULL), RC_OK);
    return value;
}

/* Read as a Route's spec; the faults as text; mem_free. */
static char *spec_faults(const char *text)
{
    struct faults faults;
    faults_init(&faults);
    json_t *value = json_of(text);
    ProtobufCMessage *spec = message_from_json(&skein__route_spec__descriptor, value, &faults);
    message_free(spec);
    json_decref(value);
    struct buf out;
    buf_init(&out, 1 << 16);
    faults_format(&faults, &out);
    faults_deinit(&faults);
    return buf_take(&out, NULL);
}

#define assert_spec_faults(text, expected)                                                         \
    do {                                                                                           \
        char *found_ = spec_faults(text);                                                          \
        assert_string_equal(found_, expected);                                                     \
        mem_free(found_);                                                                          \
    } while (0)

static void a_document_goes_both_ways(void **state)
{
    (void)state;
    static const char text[] =
        "{\"kind\":\"Route\",\"metadata\":{\"namespace\":\"shop\",\"name\":\"checkout\","
        "\"labels\":{\"tier\":\"gold\",\"example.com/team\":\"web\"}},"
        "\"spec\":{\"host\":\"shop.example.com\",\"path\":\"/checkout\",\"pathType\":\"Exact\","
        "\"to\":[{\"backend\":\"v1\",\"weight\":0},{\"backend\":\"v2\"}],"
        "\"timeouts\":{\"server\":\"30s\",\"tunnel\":\"1h\"},"
        "\"limits\":{\"bodyBytes\":\"18446744073709551615\"},"
        "\"retries\":{\"on\":[\"ConnectFailure\",\"Status\"],\"statuses\":[503,504]},"
        "\"accessLog\":false}}";
    const struct kind *kind = NULL;
    struct object_message *object = object_of(text, &kind);
    const Skein__RouteSpec *spec = ((Skein__Route *)object)->spec;
    assert_string_equal(kind->name, "Route");
    assert_true(spec->to[0]->has_weight);
    assert_int_equal(spec->to[0]->weight, 0);
    assert_false(spec->to[1]->has_weight);
    assert_int_equal(target_weight(spec->to[0]), 0);
    assert_int_equal(target_weight(spec->to[1]), WEIGHT_DEFAULT);
    assert_int_equal(duration_ms(spec->timeouts->server, 7), 30000);
    assert_int_equal(duration_ms(spec->timeouts->client, 7), 7);
    assert_true(spec->limits->body_bytes == UINT64_MAX);
    assert_true(spec->has_access_log);

    json_t *again = object_to_json(kind, &object->base);
    char *written = json_text(again, 0);
    assert_string_equal(written, text);
    mem_free(written);
    json_decref(again);
    message_free(&object->base);
}

static void null_means_unset(void **state)
{
    (void)state;
    struct object_message *object =
        object_of("{\"kind\":\"Backend\",\"metadata\":{\"name\":\"a\",\"labels\":null},"
                  "\"spec\":{\"balance\":null,\"endpoints\":null,\"healthCheck\":null},"
                  "\"status\":null}",
                  NULL);
    const Skein__BackendSpec *spec = ((Skein__Backend *)object)->spec;
    assert_false(spec->has_balance);
    assert_int_equal(spec->n_endpoints, 0);
    assert_null(spec->health_check);
    assert_null(object->status);
    message_free(&object->base);
}

static void wrong_types_are_named(void **state)
{
    (void)state;
    assert_spec_faults("5", "wants an object, not a number\n");
    assert_spec_faults("{\"host\":10,\"path\":true,\"pathType\":1,\"tls\":[],\"to\":{},"
                       "\"timeouts\":{\"server\":30,\"client\":\"30\"},\"accessLog\":\"yes\","
                       "\"allowFrom\":[\"10.0.0.0/8\",5,null]}",
                       "host: wants a string, not a number; put it in quotes\n"
                       "path: wants a string, not true; put it in quotes\n"
                       "pathType: wants one of Prefix, Exact, not a number\n"
                       "tls: wants an object, not a list\n"
                       "to: wants a list, not an object\n"
                       "timeouts.server: wants a duration such as 500ms, 30s, 1h30m or 2d, not a "
                       "number; put it in "
                       "quotes\n"
                       "timeouts.client: \"30\" is no duration such as 500ms, 30s, 1h30m or 2d\n"
                       "accessLog: wants true or false, not a string\n"
                       "allowFrom[1]: wants a string, not a number; put it in quotes\n"
                       "allowFrom[2]: null is no element of a list\n");
    assert_spec_faults("{\"to\":[{\"backend\":\"a\",\"weight\":\"5\"},{\"weight\":-1},"
                       "{\"weight\":4294967296},{\"weight\":1.5},5,[]]}",
                       "to[0].weight: wants a whole number, not a string\n"
                       "to[1].weight: -1 is below 0\n"
                       "to[2].weight: 4294967296 is above 4294967295\n"
                       "to[3].weight: wants a whole number, not a fraction\n"
                       "to[4]: wants an object, not a number\n"
                       "to[5]: wants an object, not a list\n");
    assert_spec_faults("{\"pathType\":\"prefix\"}",
                       "pathType: \"prefix\" is not one of Prefix, Exact\n");
}

static void numbers_of_64_bits_come_in_two_forms(void **state)
{
    (void)state;
    assert_spec_faults("{\"limits\":{\"bodyBytes\":5}}", "");
    assert_spec_faults("{\"limits\":{\"bodyBytes\":\"5\"}}", "");
    assert_spec_faults("{\"limits\":{\"bodyBytes\":-5}}", "limits.bodyBytes: -5 is below 0\n");
    assert_spec_faults("{\"limits\":{\"bodyBytes\":\"18446744073709551616\"}}",
                       "limits.bodyBytes: \"18446744073709551616\" is no whole number from 0 to "
                       "18446744073709551615\n");
    assert_spec_faults("{\"limits\":{\"bodyBytes\":\" 5\"}}",
                       "limits.bodyBytes: \" 5\" is no whole number from 0 to "
                       "18446744073709551615\n");
}

static void unknown_fields_are_named_with_their_path(void **state)
{
    (void)state;
    assert_spec_faults(
        "{\"to\":[{\"backend\":\"a\",\"wait\":5}],\"path_type\":\"Exact\"}",
        "to[0].wait: is not known; the fields here are backend, weight\n"
        "path_type: is not known; the fields here are host, path, pathType, tls, to, "
        "timeouts, forwarded, rewrite, redirect, headers, hsts, cors, allowFrom, "
        "denyFrom, rateLimit, limits, sticky, retries, accessLog, captures, "
        "errorPages, compression, adjustHeaderCase\n");
}

static void maps_are_objects_of_strings(void **state)
{
    (void)state;
    assert_faults("{\"kind\":\"Namespace\",\"metadata\":{\"name\":\"a\",\"labels\":[]}}",
                  "metadata.labels: wants an object of strings, not a list\n");
    assert_faults("{\"kind\":\"Namespace\",\"metadata\":{\"name\":\"a\",\"labels\":{\"n\":1,"
                  "\"a.b/c\":{}}}}",
                  "metadata.labels.n: wants a string, not a number; put it in quotes\n"
                  "metadata.labels[\"a.b/c\"]: wants a string, not an object\n");
}

static void the_kind_is_looked_up(void **state)
{
    (void)state;
    assert_faults("{\"metadata\":{\"name\":\"a\"}}",
                  "kind: is missing; wants a kind such as Route\n");
    assert_faults("{\"kind\":5}", "kind: wants a string such as Route, not a number\n");
    assert_faults("{\"kind\":\"route\"}",
                  "kind: \"route\" is no kind; there are Namespace, Route, Backend, Endpoint, "
                  "Settings, Node, TcpRoute, Certificate, Token\n");
    assert_faults("[[1]]", "wants an object with kind, metadata and spec, not a list\n");
    assert_faults("{\"kind\":\"Backend\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\"}}",
                  "apiVersion: is not known; the fields here are metadata, spec, status\n");

    struct faults faults;
    faults_init(&faults);
    const struct kind *kind = NULL;
    json_t *document = json_of("{\"kind\":\"Backend\",\"metadata\":{\"name\":\"a\"}}");
    assert_null(object_from_json(document, kind_by_name("Route"), &kind, &faults));
    assert_string_equal(faults.items[0].text, "is Backend, but Route is expected here");
    faults_deinit(&faults);
    faults_init(&faults);
    (void)json_object_del(document, "kind");
    struct object_message *object =
        object_from_json(document, kind_by_name("backends"), &kind, &faults);
    assert_non_null(object);
    assert_string_equal(kind->name, "Backend");
    message_free(&object->base);
    json_decref(document);
    faults_deinit(&faults);
}

static void faults_of_reading_and_of_checking_come_together(void **state)
{
    (void)state;
    assert_faults(
        "{\"kind\":\"Route\",\"metadata\":{\"name\":\"A\"},\"spec\":{\"host\":5,"
        "\"to\":[{\"backend\":\"a\",\"weight\":300}],\"nope\":1}}",
        "spec.host: wants a string, not a number; put it in quotes\n"
        "spec.nope: is not known; the fields here are host, path, pathType, tls, to, "
        "timeouts, forwarded, rewrite, redirect, headers, hsts, cors, allowFrom, denyFrom, "
        "rateLimit, limits, sticky, retries, accessLog, captures, errorPages, compression, "
        "adjustHeaderCase\n"
        "metadata.name: \"A\" is no name: lower-case letters, digits, '-' and '.', "
        "starting and ending with a letter or digit\n"
        "spec.to[0].weight: 300 is above 256\n");
    assert_faults("{\"kind\":\"Route\",\"metadata\":5,\"spec\":[]}",
                  "metadata: wants an object, not a number\nspec: wants an object, not a list\n");
}

static void what_the_server_set_may_come_back(void **state)
{
    (void)state;
    struct object_message *object =
        object_of("{\"kind\":\"Backend\",\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"abc\","
                  "\"created\":\"2026-01-31T10:00:00.000Z\",\"modified\":\"2026-01-31T10:00:00Z\","
                  "\"origin\":\"r1\"},\"status\":{\"endpoints\":2,\"ready\":1}}",
                  NULL);
    assert_int_equal(object->metadata->created->wall_ms, 1769853600000);
    message_free(&object->base);
    assert_faults("{\"kind\":\"Backend\",\"metadata\":{\"name\":\"a\",\"created\":\"today\"}}",
                  "metadata.created: \"today\" is no time such as 2026-01-31T10:00:00Z\n");
}

static void values_of_a_newer_version_are_shown_as_numbers(void **state)
{
    (void)state;
    Skein__BackendSpec spec = SKEIN__BACKEND_SPEC__INIT;
    spec.has_balance = true;
    spec.balance = (Skein__BackendSpec__Balance)99;
    json_t *value = message_to_json(&spec.base);
    char *text = json_text(value, 0);
    assert_string_equal(text, "{\"balance\":99}");
    mem_free(text);
    json_decref(value);
}

/* The schema has no such fields yet; the walk serves all of protobuf. */
struct all_types {
    ProtobufCMessage base;
    int32_t i32;
    protobuf_c_boolean has_i64;
    int64_t i64;
    double real;
    float small;
    ProtobufCBinaryData bytes;
    size_t n_reals;
    double *reals;
};

#define ALL_FIELD(name_, id_, label_, type_, quantifier_)                                          \
    {                                                                                              \
        .name = #name_, .id = (id_), .label = PROTOBUF_C_LABEL_##label_,                           \
        .type = PROTOBUF_C_TYPE_##type_, .quantifier_offset = (quantifier_),                       \
        .offset = offsetof(struct all_types, name_)                                                \
    }
static const ProtobufCFieldDescriptor all_fields[] = {
    ALL_FIELD(i32, 1, REQUIRED, SINT32, 0),
    ALL_FIELD(i64, 2, OPTIONAL, SFIXED64, offsetof(struct all_types, has_i64)),
    ALL_FIELD(real, 3, REQUIRED, DOUBLE, 0),
    ALL_FIELD(small, 4, REQUIRED, FLOAT, 0),
    ALL_FIELD(bytes, 5, REQUIRED, BYTES, 0),
    ALL_FIELD(reals, 6, REPEATED, DOUBLE, offsetof(struct all_types, n_reals)),
};

static void all_types_init(ProtobufCMessage *message);

static const ProtobufCMessageDescriptor all_descriptor = {
    .magic = PROTOBUF_C__MESSAGE_DESCRIPTOR_MAGIC,
    .name = "test.AllTypes",
    .sizeof_message = sizeof(struct all_types),
    .n_fields = ARRAY_LEN(all_fields),
    .fields = all_fields,
    .message_init = all_types_init,
};

static void all_types_init(ProtobufCMessage *message)
{
    memset(message, 0, sizeof(struct all_types));
    message->descriptor = &all_descriptor;
}

static void every_type_goes_both_ways(void **state)
{
    (void)state;
    static const char text[] = "{\"i32\":-5,\"i64\":\"-9223372036854775808\",\"real\":0.5,"
                               "\"small\":2.0,\"bytes\":\"Zm9v\",\"reals\":[1.5,2.0]}";
    struct faults faults;
    faults_init(&faults);
    json_t *value = json_of(text);
    ProtobufCMessage *message = message_from_json(&all_descriptor, value, &faults);
    assert_int_equal(faults.total, 0);
    json_decref(value);
    value = message_to_json(message);
    char *written = json_text(value, 0);
    assert_string_equal(written, text);
    mem_free(written);
    json_decref(value);
    message_free(message);

    value = json_of("{\"i32\":-2147483649,\"i64\":\"-9223372036854775809\",\"real\":\"x\","
                    "\"bytes\":\"*\",\"reals\":5}");
    message = message_from_json(&all_descriptor, value, &faults);
    struct buf out;
    buf_init(&out, 4096);
    faults_format(&faults, &out);
    assert_string_equal(out.data, "i32: -2147483649 is below -2147483648\n"
                                  "i64: \"-9223372036854775809\" is no whole number of 64 bits\n"
                                  "real: wants a number, not a string\n"
                                  "bytes: is no base64 text\n"
                                  "reals: wants a list, not a number\n");
    buf_deinit(&out);
    message_free(message);
    json_decref(value);
    faults_deinit(&faults);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_document_goes_both_ways),
        cmocka_unit_test(null_means_unset),
        cmocka_unit_test(wrong_types_are_named),
        cmocka_unit_test(numbers_of_64_bits_come_in_two_forms),
        cmocka_unit_test(unknown_fields_are_named_with_their_path),
        cmocka_unit_test(maps_are_objects_of_strings),
        cmocka_unit_test(the_kind_is_looked_up),
        cmocka_unit_test(faults_of_reading_and_of_checking_come_together),
        cmocka_unit_test(what_the_server_set_may_come_back),
        cmocka_unit_test(values_of_a_newer_version_are_shown_as_numbers),
        cmocka_unit_test(every_type_goes_both_ways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
