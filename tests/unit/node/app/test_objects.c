/*
 * objects: the table follows the rows, keeps its order over changes, and survives rows that lie.
 */
#include "tests/support/unit.h"

#include "node/app/objects.h"
#include "node/base/mem.h"
#include "node/base/rng.h"

/* A Namespace row "name"; description makes versions differ. */
static void apply(struct objects *objects, const char *name, uint64_t hlc, const char *description,
                  const char *claimed_name)
{
    Skein__Metadata metadata = SKEIN__METADATA__INIT;
    Skein__NamespaceSpec spec = SKEIN__NAMESPACE_SPEC__INIT;
    Skein__Namespace message = SKEIN__NAMESPACE__INIT;
    metadata.name = unconst(claimed_name);
    spec.description = unconst(description);
    message.metadata = &metadata;
    message.spec = &spec;
    const struct kind *kind = kind_by_name("Namespace");
    uint8_t *bytes = NULL;
    size_t len = 0;
    if (description != NULL) {
        assert_int_equal(object_pack(kind, &message.base, &bytes, &len, NULL), RC_OK);
    }
    struct row row = {
        .kind = kind->number,
        .id = name,
        .id_len = (uint16_t)strlen(name),
        .hlc = hlc,
        .created_hlc = 65536,
        .dot = {{7, 1}, hlc},
        .flags = description == NULL ? ROW_TOMBSTONE : 0,
        .value = bytes,
        .value_len = (uint32_t)len,
    };
    struct objects_change change;
    objects_apply(objects, &row, &change);
    objects_change_done(&change);
    mem_free(bytes);
}

struct order_check {
    char last[64];
    size_t count;
};

static bool check_order(void *arg, const struct object *object)
{
    struct order_check *check = arg;
    assert_true(strcmp(check->last, object->id) < 0);
    (void)snprintf(check->last, sizeof(check->last), "%s", object->id);
    check->count++;
    return true;
}

static void test_order(void **state)
{
    (void)state;
    struct objects *objects = objects_new();
    const struct kind *kind = kind_by_name("Namespace");
    bool there[100] = {false};
    struct rng rng;
    rng_init(&rng, 3);
    for (uint64_t step = 1; step < 2000; step++) {
        size_t at = (size_t)rng_below(&rng, ARRAY_LEN(there));
        char name[16];
        (void)snprintf(name, sizeof(name), "n%02zu", at);
        there[at] = !rng_chance(&rng, 0.4);
        apply(objects, name, step, there[at] ? "text" : NULL, name);
        if (step % 50 == 0) {
            size_t expected = 0;
            for (size_t i = 0; i < ARRAY_LEN(there); i++) {
                expected += there[i];
            }
            struct order_check check = {0};
            objects_each(objects, kind, NULL, check_order, &check);
            assert_int_equal(check.count, expected);
            assert_int_equal(objects_count(objects, kind), expected);
            struct order_check half = {.last = "n49~"};
            objects_each(objects, kind, "n50", check_order, &half);
            assert_true(half.count <= 50);
        }
    }
    objects_free(objects);
}

static void test_server_fields(void **state)
{
    (void)state;
    struct objects *objects = objects_new();
    const struct kind *kind = kind_by_name("Namespace");
    apply(objects, "shop", (uint64_t)2000 << 16, "first", "shop");
    const struct object *object = objects_find(objects, kind, "shop");
    assert_non_null(object);
    char etag[40];
    memcpy(etag, object->etag, sizeof(etag));
    assert_string_equal(object->message->metadata->resource_version, etag);
    assert_int_equal(object->message->metadata->created->wall_ms, 1);
    assert_int_equal(object->message->metadata->modified->wall_ms, 2000);
    apply(objects, "shop", (uint64_t)3000 << 16, "second", "shop");
    object = objects_find(objects, kind, "shop");
    assert_string_not_equal(object->etag, etag);
    objects_free(objects);
}

static void test_lying_rows(void **state)
{
    (void)state;
    struct objects *objects = objects_new();
    const struct kind *kind = kind_by_name("Namespace");
    apply(objects, "shop", 1, "text", "another");
    assert_null(objects_find(objects, kind, "shop"));
    assert_int_equal(objects_damaged(objects), 1);
    static const uint8_t garbage[] = {0xff, 0xff, 0xff, 0xff, 0x0f, 0x01};
    struct row row = {.kind = kind->number,
                      .id = "x",
                      .id_len = 1,
                      .hlc = 1,
                      .value = garbage,
                      .value_len = sizeof(garbage)};
    struct objects_change change;
    objects_apply(objects, &row, &change);
    assert_null(change.now);
    objects_change_done(&change);
    row.kind = 250; /* a kind of the future */
    objects_apply(objects, &row, &change);
    assert_null(change.now);
    objects_change_done(&change);
    objects_free(objects);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_server_fields),
        cmocka_unit_test(test_lying_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
