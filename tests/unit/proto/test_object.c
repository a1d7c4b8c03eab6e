/*
 * The table of kinds; packing and unpacking of what cannot be trusted; fields of newer versions.
 * covers: object.c kinds.c unknown.c
 */
#include "tests/unit/proto/objects.h"

static const char route_text[] =
    "kind: Route\n"
    "metadata: {namespace: shop, name: checkout, labels: {tier: gold}}\n"
    "spec: {host: shop.example.com, path: /checkout, to: [{backend: v1, weight: 0}]}\n";

static void kinds_are_found(void **state)
{
    (void)state;
    assert_string_equal(kind_by_name("Route")->name, "Route");
    assert_string_equal(kind_by_name("routes")->name, "Route");
    assert_string_equal(kind_by_name("ROUTE")->name, "Route");
    assert_string_equal(kind_by_name("be")->name, "Backend");
    assert_string_equal(kind_by_name("settings")->name, "Settings");
    assert_null(kind_by_name("Ro"));
    assert_null(kind_by_name(""));
    assert_string_equal(kind_by_number(4)->name, "Endpoint");
    assert_null(kind_by_number(0));
    assert_null(kind_by_number(9));
}

/* Numbers are on disks and wires: this list may grow, and nothing in it may change. */
static void numbers_never_change(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint16_t number;
    } known[] = {{"Namespace", 1}, {"Route", 2}, {"Backend", 3}, {"Endpoint", 4},
                 {"Settings", 5},  {"Node", 6},  {"TcpRoute", 7}};
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        assert_int_equal(kind_by_name(known[i].name)->number, known[i].number);
    }
    for (const struct kind *a = kinds; a->name != NULL; a++) {
        assert_in_range(a->number, 1, 31);
        assert_non_null(a->validate);
        for (const struct kind *b = kinds; b < a; b++) {
            assert_int_not_equal(a->number, b->number);
        }
    }
}

/* Columns are paths into the JSON form: hold them to the descriptors. */
static void columns_name_fields(void **state)
{
    (void)state;
    for (const struct kind *kind = kinds; kind->name != NULL; kind++) {
        char *columns = mem_strdup(kind->columns);
        char *rest = columns;
        for (char *word = strsep(&rest, " "); word != NULL; word = strsep(&rest, " ")) {
            char *path = strchr(word, '=') + 1;
            const ProtobufCMessageDescriptor *descriptor = kind->descriptor;
            for (char *part = strsep(&path, "."); part != NULL; part = strsep(&path, ".")) {
                part[strcspn(part, "[")] = '\0';
                const ProtobufCFieldDescriptor *found = NULL;
                for (unsigned i = 0; i < descriptor->n_fields; i++) {
                    char name[JSON_NAME_MAX];
                    if (strcmp(json_field_name(&descriptor->fields[i], name), part) == 0) {
                        found = &descriptor->fields[i];
                    }
                }
                assert_non_null(found);
                if (found->type == PROTOBUF_C_TYPE_MESSAGE) {
                    descriptor = found->descriptor;
                }
            }
        }
        mem_free(columns);
    }
}

static void ids_follow_the_kind(void **state)
{
    (void)state;
    char id[OBJECT_ID_MAX + 1];
    char ns[] = "shop";
    char name[] = "v1/10.1.0.4:8080";
    Skein__Metadata metadata = SKEIN__METADATA__INIT;
    metadata.namespace_ = ns;
    metadata.name = name;
    assert_int_equal(object_id(kind_by_name("Endpoint"), &metadata, id), 21);
    assert_string_equal(id, "shop/v1/10.1.0.4:8080");
    object_id(kind_by_name("Node"), &metadata, id);
    assert_string_equal(id, "v1/10.1.0.4:8080");
}

/* The longest names that validation accepts make an id that fits. */
static void the_longest_id_fits(void **state)
{
    (void)state;
    char ns[NAME_MAX_BYTES + 1];
    char backend[NAME_MAX_BYTES + 1];
    char host[NAME_LONG_MAX_BYTES + 1];
    memset(ns, 'n', sizeof ns - 1);
    memset(backend, 'b', sizeof backend - 1);
    for (size_t i = 0; i < sizeof host; i++) {
        host[i] = i % 50 == 49 ? '.' : 'h';
    }
    ns[NAME_MAX_BYTES] = backend[NAME_MAX_BYTES] = host[NAME_LONG_MAX_BYTES] = '\0';
    char *text = mem_printf("{\"kind\":\"Endpoint\",\"metadata\":{\"namespace\":\"%s\"},\"spec\":"
                            "{\"backend\":\"%s\",\"address\":\"%s:65535\"}}",
                            ns, backend, host);
    const struct kind *kind = NULL;
    struct object_message *object = object_of(text, &kind);
    char id[OBJECT_ID_MAX + 1];
    assert_int_equal(object_id(kind, object->metadata, id), 63 + 1 + 63 + 1 + 253 + 6);
    message_free(&object->base);
    mem_free(text);
}

static void packing_leaves_out_what_is_not_stored(void **state)
{
    (void)state;
    const struct kind *kind = NULL;
    struct object_message *object = object_of(route_text, &kind);
    uint8_t *plain = NULL;
    size_t plain_len = 0;
    assert_int_equal(object_pack(kind, &object->base, &plain, &plain_len, NULL), RC_OK);

    object->metadata->resource_version = mem_strdup("abc");
    object->metadata->origin = mem_strdup("r1");
    object->metadata->created = mem_new(sizeof(Skein__Time));
    skein__time__init(object->metadata->created);
    Skein__RouteStatus *status = mem_new(sizeof *status);
    skein__route_status__init(status);
    status->has_admitted = true;
    object->status = &status->base;

    uint8_t *full = NULL;
    size_t full_len = 0;
    assert_int_equal(object_pack(kind, &object->base, &full, &full_len, NULL), RC_OK);
    assert_int_equal(full_len, plain_len);
    assert_memory_equal(full, plain, plain_len);
    assert_string_equal(object->metadata->resource_version, "abc"); /* the message is untouched */
    assert_non_null(object->status);

    struct object_message *back = NULL;
    assert_int_equal(object_unpack(kind, plain, plain_len, &back, NULL), RC_OK);
    assert_null(back->status);
    const Skein__RouteSpec *spec = ((Skein__Route *)back)->spec;
    assert_true(spec->to[0]->has_weight);
    assert_int_equal(spec->to[0]->weight, 0);
    assert_string_equal(back->metadata->labels[0]->value, "gold");
    message_free(&back->base);
    message_free(&object->base);
    mem_free(plain);
    mem_free(full);
}

static void objects_have_a_size(void **state)
{
    (void)state;
    const struct kind *kind = kind_by_name("Namespace");
    Skein__Namespace object = SKEIN__NAMESPACE__INIT;
    Skein__NamespaceSpec spec = SKEIN__NAMESPACE_SPEC__INIT;
    spec.description = mem_new(OBJECT_PACKED_MAX + 1);
    memset(spec.description, 'x', OBJECT_PACKED_MAX);
    object.spec = &spec;
    uint8_t *bytes = NULL;
    size_t len = 0;
    struct err_info err = {""};
    assert_int_equal(object_pack(kind, &object.base, &bytes, &len, &err), RC_TOO_BIG);
    assert_null(bytes);
    assert_true(err.text[0] != '\0');
    mem_free(spec.description);

    struct object_message *message = NULL;
    bytes = mem_new(OBJECT_PACKED_MAX + 1);
    assert_int_equal(object_unpack(kind, bytes, OBJECT_PACKED_MAX + 1, &message, &err), RC_CORRUPT);
    mem_free(bytes);
}

static void damaged_bytes_are_refused(void **state)
{
    (void)state;
    const struct kind *kind = NULL;
    struct object_message *object = object_of(route_text, &kind);
    uint8_t *bytes = NULL;
    size_t len = 0;
    assert_int_equal(object_pack(kind, &object->base, &bytes, &len, NULL), RC_OK);
    message_free(&object->base);
    /* Cut and flipped at every place: an error or a message, and memory is right either way. */
    for (size_t i = 0; i < len; i++) {
        struct object_message *back = NULL;
        if (object_unpack(kind, bytes, i, &back, NULL) == RC_OK) {
            message_free(&back->base);
        }
        bytes[i] ^= 0x80;
        if (object_unpack(kind, bytes, len, &back, NULL) == RC_OK) {
            message_free(&back->base);
        }
        bytes[i] ^= 0x80;
    }
    mem_free(bytes);

    static const uint8_t bad_utf8[] = {0x0a, 0x03, 0x12, 0x01, 0xff};
    struct object_message *back = NULL;
    struct err_info err = {""};
    assert_int_equal(object_unpack(kind, bad_utf8, sizeof bad_utf8, &back, &err), RC_CORRUPT);
    assert_non_null(strstr(err.text, "UTF-8"));
    /* The same inside a list of strings: spec.allowFrom. */
    static const uint8_t bad_item[] = {0x12, 0x03, 0x6a, 0x01, 0xc0};
    assert_int_equal(object_unpack(kind, bad_item, sizeof bad_item, &back, &err), RC_CORRUPT);
    /* A field numbered 0, in a form that protobuf-c reads but would not read again. */
    static const uint8_t zero_field[] = {0x12, 0x03, 0x80, 0x00, 0x07};
    assert_int_equal(object_unpack(kind, zero_field, sizeof zero_field, &back, &err), RC_CORRUPT);
}

static int unpack_rc(const char *kind, const char *bytes, size_t len)
{
    struct object_message *back = NULL;
    int rc = object_unpack(kind_by_name(kind), (const uint8_t *)bytes, len, &back, NULL);
    if (rc == RC_OK) {
        assert_non_null(back->metadata);
        assert_non_null(back->spec);
        message_free(&back->base);
    }
    return rc;
}

static void unpacked_objects_have_a_name_and_a_spec(void **state)
{
    (void)state;
    assert_int_equal(unpack_rc("Node", "", 0), RC_CORRUPT);
    assert_int_equal(unpack_rc("Node", "\x0a\x00", 2), RC_CORRUPT);
    assert_int_equal(unpack_rc("Node", "\x0a\x02\x12\x00", 4), RC_CORRUPT);
    assert_int_equal(unpack_rc("Node",
                               "\x0a\x03\x12\x01"
                               "a",
                               5),
                     RC_OK);
    assert_int_equal(unpack_rc("Route",
                               "\x0a\x03\x12\x01"
                               "a",
                               5),
                     RC_CORRUPT);
    assert_int_equal(unpack_rc("Node",
                               "\x0a\x06\x0a\x01"
                               "n\x12\x01"
                               "a",
                               8),
                     RC_CORRUPT);
    assert_int_equal(unpack_rc("Route",
                               "\x0a\x06\x0a\x01"
                               "n\x12\x01"
                               "a",
                               8),
                     RC_OK);
    char long_name[6 + OBJECT_ID_MAX + 1];
    memset(long_name, 'a', sizeof long_name);
    memcpy(long_name, "\x0a\xa8\x03\x12\xa5\x03", 6); /* a name of 421 bytes */
    assert_int_equal(unpack_rc("Node", long_name, sizeof long_name), RC_CORRUPT);
    memcpy(long_name, "\x0a\xa7\x03\x12\xa4\x03", 6); /* and of 420 */
    assert_int_equal(unpack_rc("Node", long_name, sizeof long_name - 1), RC_OK);
}

/* Two bytes make an empty header action of 40: the budget bounds what many of them may cost. */
static void unpacking_has_a_budget(void **state)
{
    (void)state;
    const struct kind *kind = kind_by_name("Route");
    struct buf spec;
    buf_init(&spec, OBJECT_PACKED_MAX);
    while (buf_put(&spec, "\x2a\x00", 2) == RC_OK && spec.len < OBJECT_PACKED_MAX - 16) {
        /* RouteSpec.to, empty */
    }
    struct buf bytes;
    buf_init(&bytes, OBJECT_PACKED_MAX);
    uint8_t head[4] = {0x12, (uint8_t)(0x80 | (spec.len & 0x7f)),
                       (uint8_t)(0x80 | (spec.len >> 7 & 0x7f)), (uint8_t)(spec.len >> 14)};
    assert_int_equal(buf_put(&bytes, head, sizeof head), RC_OK);
    assert_int_equal(buf_put(&bytes, spec.data, spec.len), RC_OK);
    struct object_message *message = NULL;
    struct err_info err = {""};
    int rc = object_unpack(kind, (const uint8_t *)bytes.data, bytes.len, &message, &err);
    assert_int_equal(rc, RC_CORRUPT);
    assert_non_null(strstr(err.text, "bytes are no packed Route"));
    buf_deinit(&spec);
    buf_deinit(&bytes);
}

static void dense_but_legal_objects_fit_the_budget(void **state)
{
    (void)state;
    const struct kind *kind = kind_by_name("Backend");
    Skein__Backend backend = SKEIN__BACKEND__INIT;
    Skein__BackendSpec spec = SKEIN__BACKEND_SPEC__INIT;
    static Skein__BackendEndpoint items[ENDPOINTS_MAX];
    static Skein__BackendEndpoint *pointers[ENDPOINTS_MAX];
    char address[] = "10.0.0.1:80";
    for (size_t i = 0; i < ENDPOINTS_MAX; i++) {
        skein__backend_endpoint__init(&items[i]);
        items[i].address = address;
        pointers[i] = &items[i];
    }
    spec.endpoints = pointers;
    spec.n_endpoints = ENDPOINTS_MAX;
    backend.spec = &spec;
    char name[] = "b";
    Skein__Metadata metadata = SKEIN__METADATA__INIT;
    metadata.name = name;
    metadata.namespace_ = name;
    backend.metadata = &metadata;
    uint8_t *bytes = NULL;
    size_t len = 0;
    assert_int_equal(object_pack(kind, &backend.base, &bytes, &len, NULL), RC_OK);
    struct object_message *back = NULL;
    assert_int_equal(object_unpack(kind, bytes, len, &back, NULL), RC_OK);
    message_free(&back->base);
    mem_free(bytes);
}

/* {metadata: {name: "a", 2000: 7}, spec: {description: "b", 2000: 7}, 2000: 7} of a Namespace */
static const uint8_t newer[] = {0x0a, 0x06, 0x12, 0x01, 'a',  0x80, 0x7d, 0x07, 0x12, 0x06,
                                0x0a, 0x01, 'b',  0x80, 0x7d, 0x07, 0x80, 0x7d, 0x07};

static void fields_of_a_newer_version_survive(void **state)
{
    (void)state;
    const struct kind *kind = kind_by_name("Namespace");
    struct object_message *object = NULL;
    assert_int_equal(object_unpack(kind, newer, sizeof newer, &object, NULL), RC_OK);
    assert_true(message_has_unknown(&object->base));
    uint8_t *bytes = NULL;
    size_t len = 0;
    assert_int_equal(object_pack(kind, &object->base, &bytes, &len, NULL), RC_OK);
    assert_int_equal(len, sizeof newer);
    assert_memory_equal(bytes, newer, len);
    mem_free(bytes);

    ProtobufCMessage *copy = message_copy(&object->base);
    assert_true(message_has_unknown(copy));
    message_free(copy);

    /* A change through JSON would drop them; keeping them is one call. */
    json_t *value = object_to_json(kind, &object->base);
    struct faults faults;
    faults_init(&faults);
    struct object_message *edited = object_from_json(value, kind, &kind, &faults);
    assert_non_null(edited);
    assert_false(message_has_unknown(&edited->base));
    message_keep_unknown(&edited->base, &object->base);
    assert_int_equal(object_pack(kind, &edited->base, &bytes, &len, NULL), RC_OK);
    assert_int_equal(len, sizeof newer);
    assert_memory_equal(bytes, newer, len);
    mem_free(bytes);
    faults_deinit(&faults);
    json_decref(value);
    message_free(&edited->base);
    message_free(&object->base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_are_found),
        cmocka_unit_test(numbers_never_change),
        cmocka_unit_test(columns_name_fields),
        cmocka_unit_test(ids_follow_the_kind),
        cmocka_unit_test(the_longest_id_fits),
        cmocka_unit_test(packing_leaves_out_what_is_not_stored),
        cmocka_unit_test(objects_have_a_size),
        cmocka_unit_test(damaged_bytes_are_refused),
        cmocka_unit_test(unpacked_objects_have_a_name_and_a_spec),
        cmocka_unit_test(unpacking_has_a_budget),
        cmocka_unit_test(dense_but_legal_objects_fit_the_budget),
        cmocka_unit_test(fields_of_a_newer_version_survive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
