/*
 * BackendTls as the data plane and the checker take it.
 */
#include "tests/support/unit.h"

#include "node/app/compile.h"

static char name_a[] = "a.test"; /* texts of messages are not const */
static char name_b[] = "b.test";
static char nonsense[] = "no certificate";

static void test_enabled(void **state)
{
    (void)state;
    Skein__BackendTls tls = SKEIN__BACKEND_TLS__INIT;
    assert_false(compile_target_enabled(NULL));
    assert_true(compile_target_enabled(&tls));
    tls.has_enabled = true;
    assert_false(compile_target_enabled(&tls));
    tls.enabled = true;
    assert_true(compile_target_enabled(&tls));
}

static struct tls_target *compiled(const Skein__BackendTls *tls)
{
    struct tls_target *target = NULL;
    struct err_info err;
    assert_int_equal(compile_target(tls, NULL, &target, &err), RC_OK);
    return target;
}

static void expect_differ(const Skein__BackendTls *a, const Skein__BackendTls *b, bool differ)
{
    struct tls_target *left = compiled(a);
    struct tls_target *right = compiled(b);
    bool same = memcmp(tls_target_digest(left), tls_target_digest(right), TLS_DIGEST_BYTES) == 0;
    assert_int_equal(same, !differ);
    tls_target_unref(left);
    tls_target_unref(right);
}

static void test_every_field_counts(void **state)
{
    (void)state;
    Skein__BackendTls plain = SKEIN__BACKEND_TLS__INIT;
    plain.server_name = name_a;
    Skein__BackendTls other = plain;
    expect_differ(&plain, &other, false);
    other.has_enabled = true; /* says whether, not how */
    expect_differ(&plain, &other, false);
    other = plain;
    other.server_name = name_b;
    expect_differ(&plain, &other, true);
    other = plain;
    other.has_verify = true; /* Full, as when unset */
    expect_differ(&plain, &other, false);
    other.verify = SKEIN__ROUTE_TLS__VERIFY__CaOnly;
    expect_differ(&plain, &other, true);
    Skein__BackendTls third = other;
    third.verify = SKEIN__ROUTE_TLS__VERIFY__Skip;
    expect_differ(&other, &third, true);
    other = plain;
    other.has_profile = true;
    other.profile = SKEIN__TLS_PROFILE__Modern;
    expect_differ(&plain, &other, true);
}

static void test_what_cannot_be_demanded(void **state)
{
    (void)state;
    Skein__BackendTls tls = SKEIN__BACKEND_TLS__INIT;
    struct tls_target *target = NULL;
    struct err_info err;
    assert_int_equal(compile_target(&tls, NULL, &target, &err), RC_INVALID); /* no name */
    tls.server_name = name_a;
    tls.ca = nonsense;
    assert_int_equal(compile_target(&tls, NULL, &target, &err), RC_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_enabled),
        cmocka_unit_test(test_every_field_counts),
        cmocka_unit_test(test_what_cannot_be_demanded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
