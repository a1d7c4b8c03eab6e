/*
 * Plans: what documents ask for against what is there, with the endpoints of Backends.
 * covers: plan_read.c show.c
 */
#include "tests/support/unit.h"

#include "admin/server/plan.h"
#include "proto/manifest.h"
#include "tests/unit/admin/server/fake_ops.h"

static struct fake fake;
static struct view view;
static struct plan_requests requests;
static struct plan plan;
static struct problem problem;
static struct err_info err;

static int set_up(void **state)
{
    (void)state;
    fake_init(&fake, NULL);
    view = (struct view){.ops = &fake_ops, .ctx = &fake};
    memset(&requests, 0, sizeof(requests));
    memset(&plan, 0, sizeof(plan));
    memset(&problem, 0, sizeof(problem));
    memset(&err, 0, sizeof(err));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    plan_deinit(&plan);
    plan_requests_deinit(&requests);
    problem_deinit(&problem);
    fake_deinit(&fake);
    return 0;
}

/* Read every document of the text; true when all were good. */
static bool read_all(const char *text)
{
    json_t *documents = NULL;
    size_t *lines = NULL;
    assert_int_equal(manifest_parse(text, strlen(text), &documents, &lines, &err), 0);
    bool good = true;
    for (size_t i = 0; i < json_array_size(documents); i++) {
        struct plan_place place = {.idx = i, .line = lines[i]};
        good &= plan_read(json_array_get(documents, i), NULL, NULL, &place, &requests, &problem);
    }
    good &= plan_check_duplicates(&requests, &problem);
    json_decref(documents);
    mem_free(lines);
    return good;
}

static void make(const char *text)
{
    assert_true(read_all(text));
    assert_int_equal(plan_make(&view, &requests, true, &plan, &problem, &err), 0);
}

/* Write the plan into the fake node and forget it. */
static void carry_out(void)
{
    fake.revision++;
    for (size_t i = 0; i < plan.change_count; i++) {
        fake_write(&fake, plan.changes[i].kind, plan.changes[i].id, plan.changes[i].message);
    }
    plan_deinit(&plan);
    plan_requests_deinit(&requests);
}

static const struct admin_change *change_of(const char *kind, const char *id)
{
    for (size_t i = 0; i < plan.change_count; i++) {
        if (plan.changes[i].kind == kind_by_name(kind) && strcmp(plan.changes[i].id, id) == 0) {
            return &plan.changes[i];
        }
    }
    return NULL;
}

static const char *error_path(size_t idx)
{
    return json_string_value(json_object_get(json_array_get(problem.errors, idx), "path"));
}

static const char *error_text(size_t idx)
{
    return json_string_value(json_object_get(json_array_get(problem.errors, idx), "message"));
}

#define WEB                                                                                        \
    "kind: Backend\nmetadata: {namespace: shop, name: web}\n"                                      \
    "spec: {balance: RoundRobin, endpoints: [{address: 10.0.0.1:80}, {address: 10.0.0.2:80}]}\n"

static void test_created_then_unchanged(void **state)
{
    (void)state;
    static const char text[] = "kind: Route\nmetadata: {namespace: shop, name: r}\n"
                               "spec: {host: a.example.com, to: [{backend: web}]}\n";
    make(text);
    assert_int_equal(plan.change_count, 1);
    assert_int_equal(plan.results[0].action, PLAN_CREATED);
    assert_string_equal(plan.changes[0].id, "shop/r");
    carry_out();
    make(text);
    assert_int_equal(plan.change_count, 0);
    assert_int_equal(plan.results[0].action, PLAN_UNCHANGED);
    assert_int_equal(json_array_size(plan.results[0].diff), 0);
}

static void test_configured_with_diff(void **state)
{
    (void)state;
    fake_put(&fake, "{\"kind\":\"Route\",\"metadata\":{\"namespace\":\"shop\",\"name\":\"r\"},"
                    "\"spec\":{\"host\":\"a.example.com\",\"to\":[{\"backend\":\"web\"}]}}");
    make("kind: Route\nmetadata: {namespace: shop, name: r}\n"
         "spec: {host: b.example.com, to: [{backend: web}]}\n");
    assert_int_equal(plan.results[0].action, PLAN_CONFIGURED);
    assert_int_equal(json_array_size(plan.results[0].diff), 1);
    const json_t *entry = json_array_get(plan.results[0].diff, 0);
    assert_string_equal(json_string_value(json_object_get(entry, "path")), "spec.host");
    assert_string_equal(json_string_value(json_object_get(entry, "old")), "a.example.com");
    assert_string_equal(json_string_value(json_object_get(entry, "new")), "b.example.com");
}

static void test_a_backend_is_stored_without_endpoints(void **state)
{
    (void)state;
    make(WEB);
    assert_int_equal(plan.change_count, 3);
    assert_int_equal(plan.results[0].endpoints[PLAN_CREATED], 2);
    const Skein__Backend *backend = (const void *)change_of("Backend", "shop/web")->message;
    assert_int_equal(backend->spec->n_endpoints, 0);
    const Skein__Endpoint *endpoint =
        (const void *)change_of("Endpoint", "shop/web/10.0.0.2:80")->message;
    assert_string_equal(endpoint->spec->backend, "web");
    assert_string_equal(endpoint->spec->address, "10.0.0.2:80");
}

static void test_the_list_is_exact(void **state)
{
    (void)state;
    make(WEB);
    carry_out();
    make("kind: Backend\nmetadata: {namespace: shop, name: web}\n"
         "spec: {balance: RoundRobin, endpoints: [{address: 10.0.0.2:80, weight: 5}, "
         "{address: 10.0.0.3:80}]}\n");
    assert_int_equal(plan.results[0].action, PLAN_CONFIGURED);
    assert_int_equal(plan.change_count, 3); /* the Backend itself has not changed */
    assert_null(change_of("Backend", "shop/web"));
    assert_null(change_of("Endpoint", "shop/web/10.0.0.1:80")->message);
    assert_int_equal(
        ((const Skein__Endpoint *)(const void *)change_of("Endpoint", "shop/web/10.0.0.2:80")
             ->message)
            ->spec->weight,
        5);
    assert_non_null(change_of("Endpoint", "shop/web/10.0.0.3:80")->message);
    assert_int_equal(plan.results[0].endpoints[PLAN_DELETED], 1);
    assert_int_equal(plan.results[0].endpoints[PLAN_CONFIGURED], 1);
    assert_int_equal(plan.results[0].endpoints[PLAN_CREATED], 1);
    char *text = json_text(plan.results[0].diff, 0);
    assert_non_null(strstr(text, "spec.endpoints"));
    mem_free(text);
}

static void test_without_the_key_endpoints_stay(void **state)
{
    (void)state;
    make(WEB);
    carry_out();
    make("kind: Backend\nmetadata: {namespace: shop, name: web}\nspec: {balance: LeastConn}\n");
    assert_int_equal(plan.change_count, 1);
    assert_non_null(change_of("Backend", "shop/web"));
    assert_int_equal(plan.results[0].endpoints[PLAN_UNCHANGED], 2);
    plan_deinit(&plan);
    plan_requests_deinit(&requests);
    make("kind: Backend\nmetadata: {namespace: shop, name: web}\n"
         "spec: {balance: RoundRobin, endpoints: null}\n");
    assert_int_equal(plan.change_count, 0);
}

static void test_an_empty_list_means_none(void **state)
{
    (void)state;
    make(WEB);
    carry_out();
    make("kind: Backend\nmetadata: {namespace: shop, name: web}\n"
         "spec: {balance: RoundRobin, endpoints: []}\n");
    assert_int_equal(plan.change_count, 2);
    assert_int_equal(plan.results[0].endpoints[PLAN_DELETED], 2);
}

/* Another Backend whose name continues this one's has its own endpoints. */
static void test_names_that_share_a_prefix(void **state)
{
    (void)state;
    make(WEB);
    carry_out();
    make("kind: Backend\nmetadata: {namespace: shop, name: web-2}\n"
         "spec: {endpoints: [{address: 10.0.0.9:80}]}\n");
    carry_out();
    make("kind: Backend\nmetadata: {namespace: shop, name: web}\n"
         "spec: {balance: RoundRobin, endpoints: []}\n");
    assert_int_equal(plan.change_count, 2);
    assert_null(change_of("Endpoint", "shop/web-2/10.0.0.9:80"));
}

static void test_labels_of_an_endpoint_survive_its_backends_list(void **state)
{
    (void)state;
    fake_put(&fake, "{\"kind\":\"Endpoint\",\"metadata\":{\"namespace\":\"shop\",\"name\":"
                    "\"web/10.0.0.1:80\",\"labels\":{\"zone\":\"a\"}},\"spec\":{\"backend\":"
                    "\"web\",\"address\":\"10.0.0.1:80\"}}");
    make("kind: Backend\nmetadata: {namespace: shop, name: web}\n"
         "spec: {endpoints: [{address: 10.0.0.1:80, weight: 7}]}\n");
    const Skein__Endpoint *endpoint =
        (const void *)change_of("Endpoint", "shop/web/10.0.0.1:80")->message;
    assert_int_equal(endpoint->spec->weight, 7);
    assert_int_equal(endpoint->metadata->n_labels, 1);
    assert_string_equal(endpoint->metadata->labels[0]->value, "a");
}

static void test_an_endpoint_named_beside_its_backend(void **state)
{
    (void)state;
    make(WEB);
    carry_out();
    /* 10.0.0.2 is in the list and by itself, 10.0.0.4 by itself alone, 10.0.0.1 goes. */
    make("kind: Backend\nmetadata: {namespace: shop, name: web}\n"
         "spec: {balance: RoundRobin, endpoints: [{address: 10.0.0.2:80}]}\n"
         "---\nkind: Endpoint\nmetadata: {namespace: shop, name: 'web/10.0.0.2:80', labels: {a: "
         "b}}\n"
         "spec: {backend: web, address: 10.0.0.2:80}\n"
         "---\nkind: Endpoint\nmetadata: {namespace: shop, name: 'web/10.0.0.4:80'}\n"
         "spec: {backend: web, address: 10.0.0.4:80}\n");
    assert_int_equal(plan.change_count, 3);
    assert_null(change_of("Endpoint", "shop/web/10.0.0.1:80")->message);
    assert_non_null(change_of("Endpoint", "shop/web/10.0.0.2:80")->message);
    assert_non_null(change_of("Endpoint", "shop/web/10.0.0.4:80")->message);
    carry_out();
    assert_int_equal(((const Skein__Endpoint *)(const void *)fake_find(
                          &fake, kind_by_name("Endpoint"), "shop/web/10.0.0.2:80")
                          ->message)
                         ->metadata->n_labels,
                     1);
}

static void test_an_endpoint_that_disagrees_with_its_backend(void **state)
{
    (void)state;
    assert_true(read_all(WEB "---\nkind: Endpoint\n"
                             "metadata: {namespace: shop, name: 'web/10.0.0.2:80'}\n"
                             "spec: {backend: web, address: 10.0.0.2:80, weight: 3}\n"));
    assert_int_equal(plan_make(&view, &requests, false, &plan, &problem, &err), RC_INVALID);
    assert_int_equal(problem.total, 1);
    assert_string_equal(error_path(0), "[1] Endpoint shop/web/10.0.0.2:80");
    assert_non_null(strstr(error_text(0), "[0] Backend shop/web"));
}

static void test_the_same_endpoint_twice_in_a_list(void **state)
{
    (void)state;
    assert_false(read_all("kind: Backend\nmetadata: {namespace: shop, name: web}\n"
                          "spec: {endpoints: [{address: 10.0.0.1:80}, {address: 10.0.0.1:80}]}\n"));
    assert_true(problem.total >= 1);
    assert_non_null(strstr(error_path(0), "spec.endpoints"));
}

static void test_deletion_takes_the_endpoints_along(void **state)
{
    (void)state;
    make(WEB);
    carry_out();
    plan_read_delete(kind_by_name("Backend"), "shop/web", &requests);
    assert_int_equal(plan_make(&view, &requests, true, &plan, &problem, &err), 0);
    assert_int_equal(plan.change_count, 3);
    assert_int_equal(plan.results[0].action, PLAN_DELETED);
    assert_int_equal(plan.results[0].endpoints[PLAN_DELETED], 2);
    carry_out();
    assert_int_equal(fake.count, 0);
    plan_read_delete(kind_by_name("Backend"), "shop/web", &requests);
    assert_int_equal(plan_make(&view, &requests, false, &plan, &problem, &err), RC_NOT_FOUND);
    assert_non_null(strstr(err.text, "shop/web"));
}

static void test_faults_say_which_object_and_line(void **state)
{
    (void)state;
    assert_false(read_all("kind: Namespace\nmetadata: {name: shop}\n---\n"
                          "kind: Route\nmetadata: {namespace: shop, name: checkout}\n"
                          "spec: {host: a.example.com, to: [{backend: a}, {backend: b, "
                          "weight: 300}], foo: 1}\n---\n42\n"));
    assert_int_equal(problem.total, 3);
    char *text = json_text(problem.errors, 0);
    assert_non_null(strstr(text, "[1] Route shop/checkout: spec.to[1].weight"));
    assert_non_null(strstr(text, "300 is above 256"));
    assert_non_null(strstr(text, "[1] Route shop/checkout: spec.foo"));
    assert_non_null(strstr(text, "\"index\":1,\"line\":4"));
    assert_non_null(strstr(text, "[2] object"));
    mem_free(text);
}

static void test_duplicates_are_refused(void **state)
{
    (void)state;
    assert_false(read_all("kind: Namespace\nmetadata: {name: a}\n---\n"
                          "kind: Namespace\nmetadata: {name: b}\n---\n"
                          "kind: Namespace\nmetadata: {name: a}\n"));
    assert_int_equal(problem.total, 1);
    assert_string_equal(error_path(0), "[2] Namespace a");
    assert_non_null(strstr(error_text(0), "[0] Namespace a"));
}

static bool read_as(const char *text, const char *kind, const char *id)
{
    json_error_t error;
    json_t *document = json_loads(text, 0, &error);
    assert_non_null(document);
    bool good = plan_read(document, kind_by_name(kind), id, NULL, &requests, &problem);
    json_decref(document);
    return good;
}

static void test_identity_comes_from_the_path(void **state)
{
    (void)state;
    static const char spec[] =
        "{\"spec\":{\"host\":\"a.example.com\",\"to\":[{\"backend\":\"x\"}]}}";
    assert_true(read_as(spec, "Route", "shop/r"));
    assert_string_equal(requests.items[0].id, "shop/r");
    assert_false(read_as("{\"kind\":\"Backend\",\"spec\":{}}", "Route", "shop/r"));
    assert_false(read_as("{\"metadata\":{\"name\":\"other\"},\"spec\":{\"host\":\"a.example.com\","
                         "\"to\":[{\"backend\":\"x\"}]}}",
                         "Route", "shop/r"));
    assert_string_equal(error_path(json_array_size(problem.errors) - 1), "metadata.name");
    assert_false(read_as("{\"metadata\":{\"namespace\":\"other\"},\"spec\":{\"host\":\"a.example."
                         "com\",\"to\":[{\"backend\":\"x\"}]}}",
                         "Route", "shop/r"));
    assert_false(read_as("{\"metadata\":7}", "Route", "shop/r"));
    assert_false(read_as("[]", "Route", "shop/r"));
}

/* An Endpoint's path has one form; another one would name what GET does not find. */
static void test_names_are_canonical(void **state)
{
    (void)state;
    assert_true(read_as("{}", "Endpoint", "shop/web/10.0.0.1:80"));
    assert_false(read_as("{}", "Endpoint", "shop/web/[0:0::1]:80"));
    assert_non_null(strstr(error_text(0), "[::1]:80"));
}

static void test_answers_can_be_sent_back(void **state)
{
    (void)state;
    make(WEB);
    carry_out();
    const struct object *object = fake_find(&fake, kind_by_name("Backend"), "shop/web");
    json_t *shown = show_object(&view, object);
    json_object_set_new(shown, "revision", json_integer(7));
    json_object_set_new(shown, "wait", json_pack("{s:b}", "confirmed", 1));
    json_object_set_new(shown, "status", json_pack("{s:i}", "ready", 2));
    assert_true(plan_read(shown, kind_by_name("Backend"), "shop/web", NULL, &requests, &problem));
    json_decref(shown);
    assert_int_equal(plan_make(&view, &requests, false, &plan, &problem, &err), 0);
    assert_int_equal(plan.change_count, 0);
    assert_int_equal(plan.results[0].action, PLAN_UNCHANGED);
}

static void test_shown_backends_have_tags_that_cover_their_endpoints(void **state)
{
    (void)state;
    char before[SHOW_ETAG_MAX], after[SHOW_ETAG_MAX], without[SHOW_ETAG_MAX];
    make(WEB);
    carry_out();
    const struct object *backend = fake_find(&fake, kind_by_name("Backend"), "shop/web");
    show_etag(&view, backend, before);
    fake_put(&fake, "{\"kind\":\"Endpoint\",\"metadata\":{\"namespace\":\"shop\",\"name\":"
                    "\"web/10.0.0.9:80\"},\"spec\":{\"backend\":\"web\",\"address\":"
                    "\"10.0.0.9:80\"}}");
    show_etag(&view, backend, after);
    assert_string_not_equal(before, after);
    /* The way that the objects are found makes no difference. */
    struct view each_only = {.ops = &fake_ops_each_only, .ctx = &fake};
    assert_string_equal(show_etag(&each_only, backend, without), after);
    json_t *shown = show_object(&each_only, backend);
    json_t *endpoints = json_object_get(json_object_get(shown, "spec"), "endpoints");
    assert_int_equal(json_array_size(endpoints), 3);
    assert_string_equal(json_string_value(json_object_get(json_array_get(endpoints, 2), "address")),
                        "10.0.0.9:80");
    assert_null(json_object_get(json_array_get(endpoints, 2), "backend"));
    json_decref(shown);
}

static void test_a_plan_can_be_made_again(void **state)
{
    (void)state;
    make(WEB);
    plan_deinit(&plan);
    fake_put(&fake, "{\"kind\":\"Endpoint\",\"metadata\":{\"namespace\":\"shop\",\"name\":"
                    "\"web/10.0.0.1:80\"},\"spec\":{\"backend\":\"web\",\"address\":"
                    "\"10.0.0.1:80\"}}");
    assert_int_equal(plan_make(&view, &requests, false, &plan, &problem, &err), 0);
    assert_int_equal(plan.change_count, 2);
    assert_int_equal(plan.results[0].endpoints[PLAN_UNCHANGED], 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_created_then_unchanged),
        TEST(test_configured_with_diff),
        TEST(test_a_backend_is_stored_without_endpoints),
        TEST(test_the_list_is_exact),
        TEST(test_without_the_key_endpoints_stay),
        TEST(test_an_empty_list_means_none),
        TEST(test_names_that_share_a_prefix),
        TEST(test_labels_of_an_endpoint_survive_its_backends_list),
        TEST(test_an_endpoint_named_beside_its_backend),
        TEST(test_an_endpoint_that_disagrees_with_its_backend),
        TEST(test_the_same_endpoint_twice_in_a_list),
        TEST(test_deletion_takes_the_endpoints_along),
        TEST(test_faults_say_which_object_and_line),
        TEST(test_duplicates_are_refused),
        TEST(test_identity_comes_from_the_path),
        TEST(test_names_are_canonical),
        TEST(test_answers_can_be_sent_back),
        TEST(test_shown_backends_have_tags_that_cover_their_endpoints),
        TEST(test_a_plan_can_be_made_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
