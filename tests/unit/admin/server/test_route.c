/*
 * The table of endpoints: which row a method and a path find, and what is said when none is found.
 */
#include "tests/support/unit.h"

#include "admin/server/route.h"

static struct route_match match;
static struct err_info err;

static int find(const char *method, const char *path)
{
    memset(&err, 0, sizeof(err));
    return route_find(method, path, strlen(path), &match, &err);
}

static void test_objects(void **state)
{
    (void)state;
    assert_int_equal(find("GET", "/v1/namespaces/shop/routes/checkout"), 0);
    assert_ptr_equal(match.route->handler, handle_get);
    assert_ptr_equal(match.kind, kind_by_name("Route"));
    assert_string_equal(match.namespace_, "shop");
    assert_string_equal(match.id, "shop/checkout");
    assert_int_equal(find("PATCH", "/v1/settings/default"), 0);
    assert_ptr_equal(match.route->handler, handle_patch);
    assert_string_equal(match.id, "default");
    assert_int_equal(find("DELETE", "/v1/namespaces/shop"), 0);
    assert_ptr_equal(match.kind, kind_by_name("Namespace"));
    assert_string_equal(match.id, "shop");
    assert_int_equal(find("HEAD", "/v1/nodes/r1"), 0);
    assert_ptr_equal(match.route->handler, handle_get);
}

static void test_names_with_slashes(void **state)
{
    (void)state;
    static const char *const paths[] = {
        "/v1/namespaces/shop/endpoints/web/10.0.0.1:80",
        "/v1/namespaces/shop/endpoints/web%2F10.0.0.1%3A80",
        "/v1/namespaces/shop/endpoints/web%2f10.0.0.1:80",
    };
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        assert_int_equal(find("PUT", paths[i]), 0);
        assert_string_equal(match.id, "shop/web/10.0.0.1:80");
    }
    assert_int_equal(find("GET", "/v1/namespaces/shop/endpoints/web/[::1]:80"), 0);
    assert_string_equal(match.id, "shop/web/[::1]:80");
}

static void test_lists(void **state)
{
    (void)state;
    assert_int_equal(find("GET", "/v1/routes"), 0);
    assert_ptr_equal(match.route->handler, handle_list);
    assert_string_equal(match.namespace_, "");
    assert_int_equal(find("GET", "/v1/namespaces/shop/backends"), 0);
    assert_ptr_equal(match.route->handler, handle_list);
    assert_string_equal(match.namespace_, "shop");
    assert_string_equal(match.id, "");
    assert_int_equal(find("GET", "/v1/namespaces"), 0);
    assert_ptr_equal(match.kind, kind_by_name("Namespace"));
}

static void test_not_found(void **state)
{
    (void)state;
    static const char *const paths[] = {
        "",
        "/",
        "/v1/",
        "/v1/foo",
        "/v1/foo/bar",
        "/v1/Routes",
        "/v1/routes/",
        "/v1/namespaces//routes/x",
        "/v1/namespaces/shop/routes/",
        "/v2/routes",
        "/metrics/x",
        "v1/routes",
    };
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        assert_int_equal(find("GET", paths[i]), RC_NOT_FOUND);
        assert_true(strlen(err.text) > 0);
    }
    /* The right kind in the wrong shape: the answer shows the right one. */
    assert_int_equal(find("GET", "/v1/routes/checkout"), RC_NOT_FOUND);
    assert_non_null(strstr(err.text, "/v1/namespaces/NAMESPACE/routes/NAME"));
    assert_int_equal(find("GET", "/v1/namespaces/shop/settings/default"), RC_NOT_FOUND);
    assert_non_null(strstr(err.text, "/v1/settings/NAME"));
}

static void test_methods(void **state)
{
    (void)state;
    assert_int_equal(find("POST", "/v1/routes"), RC_UNSUPPORTED);
    assert_string_equal(match.allow, "GET, HEAD");
    assert_int_equal(find("POST", "/v1/namespaces/shop/routes/x"), RC_UNSUPPORTED);
    assert_string_equal(match.allow, "GET, HEAD, PUT, PATCH, DELETE");
    assert_int_equal(find("GET", "/v1/apply"), RC_UNSUPPORTED);
    assert_string_equal(match.allow, "POST");
    assert_int_equal(find("get", "/v1/routes"), RC_UNSUPPORTED);
}

static void test_malformed_names(void **state)
{
    (void)state;
    assert_int_equal(find("GET", "/v1/namespaces/%zz/routes"), RC_INVALID);
    assert_int_equal(find("GET", "/v1/namespaces/a%2Fb/routes/x"), RC_INVALID);
    assert_int_equal(find("GET", "/v1/namespaces/Shop/routes/x"), RC_INVALID);
    assert_int_equal(find("GET", "/v1/namespaces/shop/routes/%00"), RC_INVALID);
    char path[2048];
    snprintf(path, sizeof(path), "/v1/namespaces/shop/routes/%0*d", OBJECT_ID_MAX + 1, 0);
    assert_int_equal(find("GET", path), RC_NOT_FOUND);
    snprintf(path, sizeof(path), "/v1/namespaces/%0*d/routes/x", 64, 0);
    assert_int_equal(find("GET", path), RC_NOT_FOUND);
}

static void test_every_row_has_what_the_index_shows(void **state)
{
    (void)state;
    for (const struct route *route = routes; route->method != NULL; route++) {
        assert_non_null(route->handler);
        assert_true(strlen(route->doc) > 5);
        assert_non_null(route->params);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_objects),
        cmocka_unit_test(test_names_with_slashes),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_not_found),
        cmocka_unit_test(test_methods),
        cmocka_unit_test(test_malformed_names),
        cmocka_unit_test(test_every_row_has_what_the_index_shows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
