/*
 * Roles and namespaces against the table of endpoints.
 */
#include "tests/support/unit.h"

#include "admin/server/access.h"
#include "admin/server/route.h"

static struct err_info err;

static int check(enum access role, const char *namespace_, const char *method, const char *path)
{
    struct who who = {.role = role, .via = WHO_TOKEN, .name = "deploy"};
    struct route_match match;
    snprintf(who.namespace_, sizeof(who.namespace_), "%s", namespace_);
    memset(&err, 0, sizeof(err));
    assert_int_equal(route_find(method, path, strlen(path), &match, &err), RC_OK);
    return access_check(&who, &match, &err);
}

static void test_names(void **state)
{
    (void)state;
    enum access role;
    assert_true(access_parse("Editor", &role));
    assert_int_equal(role, ACCESS_EDITOR);
    assert_false(access_parse("anybody", &role));
    assert_false(access_parse("", &role));
    assert_string_equal(access_name(ACCESS_VIEWER), "viewer");
    assert_string_equal(who_via_name(WHO_CERTIFICATE), "certificate");
}

static void test_every_endpoint_has_a_least_role(void **state)
{
    (void)state;
    for (const struct route *route = routes; route->method != NULL; route++) {
        bool reads = strcmp(route->method, "GET") == 0;
        if (route->least == ACCESS_OPEN) {
            assert_true(reads && strstr(route->path, "/v1") == NULL);
        } else {
            assert_true(reads || route->least <= ACCESS_EDITOR);
        }
    }
}

static void test_roles(void **state)
{
    (void)state;
    static const struct {
        const char *method, *path;
        enum access least;
    } cases[] = {
        {"GET", "/v1/routes", ACCESS_VIEWER},
        {"GET", "/v1/tokens", ACCESS_VIEWER},
        {"HEAD", "/v1/settings/default", ACCESS_VIEWER},
        {"PUT", "/v1/namespaces/shop/routes/a", ACCESS_EDITOR},
        {"PUT", "/v1/namespaces/shop", ACCESS_EDITOR},
        {"POST", "/v1/apply", ACCESS_EDITOR},
        {"PUT", "/v1/settings/default", ACCESS_ADMIN},
        {"PATCH", "/v1/nodes/r1", ACCESS_ADMIN},
        {"DELETE", "/v1/tokens/t", ACCESS_ADMIN},
        {"POST", "/v1/tokens", ACCESS_ADMIN},
        {"DELETE", "/v1/cluster/members/r2", ACCESS_ADMIN},
        {"GET", "/v1/audit", ACCESS_ADMIN},
        {"GET", "/healthz", ACCESS_OPEN},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        for (enum access role = ACCESS_ADMIN; role <= ACCESS_VIEWER; role++) {
            int rc = check(role, "", cases[i].method, cases[i].path);
            if (rc != (role <= cases[i].least ? RC_OK : RC_AUTH)) {
                fail_msg("%s %s as %s: %d", cases[i].method, cases[i].path, access_name(role), rc);
            }
        }
    }
    assert_int_equal(check(ACCESS_VIEWER, "", "PUT", "/v1/nodes/r1"), RC_AUTH);
    assert_string_equal(err.text, "PUT of a Node needs the role admin; deploy is a viewer");
}

static void test_namespaces(void **state)
{
    (void)state;
    assert_int_equal(check(ACCESS_EDITOR, "shop", "PUT", "/v1/namespaces/shop/routes/a"), RC_OK);
    assert_int_equal(check(ACCESS_EDITOR, "shop", "PUT", "/v1/namespaces/bank/routes/a"), RC_AUTH);
    assert_string_equal(err.text, "namespace bank: deploy may only namespace shop");
    assert_int_equal(check(ACCESS_EDITOR, "shop", "GET", "/v1/routes"), RC_OK);
    assert_int_equal(check(ACCESS_EDITOR, "shop", "GET", "/v1/namespaces"), RC_AUTH);
    assert_int_equal(check(ACCESS_EDITOR, "shop", "PUT", "/v1/namespaces/shop"), RC_AUTH);
    assert_int_equal(check(ACCESS_EDITOR, "shop", "GET", "/metrics"), RC_AUTH);
    assert_int_equal(check(ACCESS_EDITOR, "shop", "GET", "/readyz"), RC_OK);
}

static void test_objects_and_lists(void **state)
{
    (void)state;
    struct who who = {.role = ACCESS_EDITOR, .name = "d", .namespace_ = "shop"};
    const struct kind *kind = kind_by_name("Route");
    assert_int_equal(access_check_write(&who, kind, "shop/a", &err), RC_OK);
    assert_int_equal(access_check_write(&who, kind, "shop2/a", &err), RC_AUTH);
    assert_int_equal(access_check_write(&who, kind, "a", &err), RC_AUTH);
    assert_int_equal(access_check_write(&who, kind_by_name("Namespace"), "shop", &err), RC_AUTH);
    const char *namespace_ = "?";
    assert_int_equal(access_namespace(&who, NULL, &namespace_, &err), RC_OK);
    assert_string_equal(namespace_, "shop");
    assert_int_equal(access_namespace(&who, "bank", &namespace_, &err), RC_AUTH);
    who.namespace_[0] = '\0';
    assert_int_equal(access_namespace(&who, "", &namespace_, &err), RC_OK);
    assert_null(namespace_);
    assert_int_equal(access_check_write(&who, kind_by_name("Settings"), "default", &err), RC_AUTH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_every_endpoint_has_a_least_role),
        cmocka_unit_test(test_roles),
        cmocka_unit_test(test_namespaces),
        cmocka_unit_test(test_objects_and_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
