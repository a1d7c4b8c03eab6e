/*
 * What a Token accepts and refuses.
 */
#include "tests/unit/proto/objects.h"

#define TOKEN "kind: Token\nmetadata: {name: t}\nspec: "

static void one_with_everything(void **state)
{
    (void)state;
    assert_faults(TOKEN "{role: Editor, namespace: shop, expires: 2026-01-31T10:00:00Z, "
                        "description: deploys the shop}",
                  "");
    assert_faults(TOKEN "{role: Viewer}", "");
    assert_faults(TOKEN "{role: Admin}", "");
}

static void role(void **state)
{
    (void)state;
    assert_faults("kind: Token\nmetadata: {name: t}",
                  "spec.role: is missing; wants one of Viewer, Editor, Admin\n");
    assert_faults(TOKEN "{role: Admin, namespace: shop}",
                  "spec.namespace: has no place with role Admin, which is for the whole cluster; "
                  "use Editor\n");
}

static void namespace_and_hash(void **state)
{
    (void)state;
    assert_faults(TOKEN "{role: Viewer, namespace: Shop}",
                  "spec.namespace: \"Shop\" is no namespace: up to 63 lower-case letters, digits "
                  "and '-', starting and ending with a letter or digit\n");
    assert_faults(TOKEN "{role: Viewer, hash: AAAA}", "spec.hash: has 3 bytes; wants 32\n");
    assert_faults("kind: Token\nmetadata: {namespace: shop, name: t}\nspec: {role: Viewer}",
                  "metadata.namespace: has no place in a kind that is for the whole cluster\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_with_everything),
        cmocka_unit_test(role),
        cmocka_unit_test(namespace_and_hash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
