/*
 * Stored defaults, canonical forms, and the two forms of an endpoint.
 */
#include "tests/unit/proto/objects.h"

static char *normalised(const char *text)
{
    const struct kind *kind = NULL;
    struct object_message *object = object_of(text, &kind);
    object_normalise(kind, &object->base); /* a fixed point: nothing changes any more */
    json_t *value = object_to_json(kind, &object->base);
    char *out = json_text(value, 0);
    json_decref(value);
    message_free(&object->base);
    return out;
}

#define assert_normalised(text, expected)                                                          \
    do {                                                                                           \
        char *found_ = normalised(text);                                                           \
        assert_string_equal(found_, expected);                                                     \
        mem_free(found_);                                                                          \
    } while (0)

static void defaults_and_canonical_forms(void **state)
{
    (void)state;
    assert_normalised(
        "kind: Route\nmetadata: {name: a}\nspec: {host: Shop.Example.com., path: /%61/, "
        "to: [{backend: b}]}",
        "{\"kind\":\"Route\",\"metadata\":{\"namespace\":\"default\",\"name\":\"a\"},"
        "\"spec\":{\"host\":\"shop.example.com\",\"path\":\"/a\",\"to\":"
        "[{\"backend\":\"b\"}]}}");
}

static void an_exact_path_keeps_its_slash(void **state)
{
    (void)state;
    assert_normalised(
        "kind: Route\nmetadata: {name: a, namespace: ''}\nspec: {host: a.b, path: /x/, "
        "pathType: Exact, to: [{backend: b}]}",
        "{\"kind\":\"Route\",\"metadata\":{\"namespace\":\"default\",\"name\":\"a\"},"
        "\"spec\":{\"host\":\"a.b\",\"path\":\"/x/\",\"pathType\":\"Exact\",\"to\":"
        "[{\"backend\":\"b\"}]}}");
}

static void settings_have_one_name(void **state)
{
    (void)state;
    assert_normalised("kind: Settings\nspec: {dotSegments: Keep}",
                      "{\"kind\":\"Settings\",\"metadata\":{\"name\":\"default\"},\"spec\":"
                      "{\"dotSegments\":\"Keep\"}}");
}

static void an_endpoint_is_named_by_its_content(void **state)
{
    (void)state;
    static const char expected[] =
        "{\"kind\":\"Endpoint\",\"metadata\":{\"namespace\":\"shop\",\"name\":"
        "\"v1/[2001:db8::1]:80\"},\"spec\":{\"backend\":\"v1\",\"address\":\"[2001:db8::1]:80\"}}";
    assert_normalised("kind: Endpoint\nmetadata: {namespace: shop}\nspec: {backend: v1, address: "
                      "'[2001:DB8::0:1]:80'}",
                      expected);
    assert_normalised("kind: Endpoint\nmetadata: {namespace: shop, name: 'v1/[2001:DB8::0:1]:80'}",
                      expected);
    assert_normalised("kind: Endpoint\nmetadata: {namespace: shop, name: 'v1/[2001:DB8::0:1]:80'}\n"
                      "spec: {address: '[2001:db8:0::1]:80'}",
                      expected);
}

static void an_endpoint_that_contradicts_its_name_is_refused(void **state)
{
    (void)state;
    assert_faults("kind: Endpoint\nmetadata: {name: v1/10.0.0.1:80}\nspec: {address: 10.0.0.2:80}",
                  "metadata.name: \"v1/10.0.0.1:80\" is not \"v1/10.0.0.2:80\", as spec says\n");
    assert_faults("kind: Endpoint\nmetadata: {name: v1/10.0.0.1:80}\nspec: {backend: v2}",
                  "metadata.name: \"v1/10.0.0.1:80\" is not \"v2/10.0.0.1:80\", as spec says\n");
    assert_faults(
        "kind: Endpoint\nmetadata: {name: mine}\nspec: {backend: v2, address: 10.0.0.2:80}",
        "metadata.name: \"mine\" is not \"v2/10.0.0.2:80\", as spec says\n");
    assert_faults("kind: Endpoint\nmetadata: {name: mine}",
                  "spec.backend: is missing; wants the name of a Backend\n"
                  "spec.address: is missing; wants an address such as 10.1.0.4:8080\n");
    assert_faults("kind: Endpoint\nspec: {backend: V1, address: 'x:0', weight: 257}",
                  "spec.backend: \"V1\" is no name: lower-case letters, digits, '-' and '.', "
                  "starting and ending with a letter or digit\n"
                  "spec.address: \"x:0\" has no port from 1 to 65535\n"
                  "spec.weight: 257 is above 256\n");
}

static void endpoints_of_a_backend_are_objects(void **state)
{
    (void)state;
    struct object_message *object = object_of(
        "kind: Backend\nmetadata: {namespace: shop, name: v1}\nspec:\n  endpoints:\n"
        "  - {address: 'LOCALHOST:80'}\n  - {address: 10.0.0.1:80, weight: 0, state: Drain}",
        NULL);
    Skein__Backend *backend = (Skein__Backend *)object;
    Skein__Endpoint *first = endpoint_from_backend(backend, 0);
    Skein__Endpoint *second = endpoint_from_backend(backend, 1);
    assert_string_equal(first->metadata->name, "v1/localhost:80");
    assert_string_equal(first->metadata->namespace_, "shop");
    assert_int_equal(endpoint_weight(first->spec), WEIGHT_DEFAULT);
    assert_string_equal(second->metadata->name, "v1/10.0.0.1:80");
    assert_int_equal(endpoint_weight(second->spec), 0);
    assert_int_equal(second->spec->state, SKEIN__ENDPOINT_SPEC__STATE__Drain);
    struct faults faults;
    faults_init(&faults);
    object_validate(kind_by_name("Endpoint"), &second->base, &faults);
    assert_int_equal(faults.total, 0);

    json_t *before = message_to_json(&object->base);
    backend_clear_endpoints(backend);
    assert_int_equal(backend->spec->n_endpoints, 0);
    backend_clear_endpoints(backend);
    backend_show_endpoint(backend, first);
    backend_show_endpoint(backend, second);
    json_t *after = message_to_json(&object->base);
    assert_true(json_equal(before, after));
    json_decref(before);
    json_decref(after);
    message_free(&first->base);
    message_free(&second->base);
    message_free(&object->base);

    /* A Backend without spec is one, too. */
    Skein__Backend bare = SKEIN__BACKEND__INIT;
    backend_clear_endpoints(&bare);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_and_canonical_forms),
        cmocka_unit_test(an_exact_path_keeps_its_slash),
        cmocka_unit_test(settings_have_one_name),
        cmocka_unit_test(an_endpoint_is_named_by_its_content),
        cmocka_unit_test(an_endpoint_that_contradicts_its_name_is_refused),
        cmocka_unit_test(endpoints_of_a_backend_are_objects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
