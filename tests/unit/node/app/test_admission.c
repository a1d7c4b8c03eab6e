/*
 * admission: the decision is the same for every order in which the claims are heard.
 */
#include "tests/support/unit.h"

#include "node/app/admission.h"
#include "node/base/rng.h"

static const struct claim all[] = {
    {.path = "/", .created_hlc = 5, .id = "a/one"},
    {.path = "/", .created_hlc = 3, .id = "b/two"},
    {.path = "/", .created_hlc = 3, .id = "b/three"},
    {.path = "/x", .created_hlc = 9, .id = "a/four"},
    {.path = "/x", .path_type = 1, .created_hlc = 10, .id = "a/five"},
    {.path = "/x", .path_type = 1, .created_hlc = 1, .id = "c/six"},
};

static const struct {
    const char *id;
    const char *loses_to;
} expected[] = {
    {"a/one", "b/three"}, {"b/two", "b/three"}, {"b/three", NULL},
    {"a/four", NULL},     {"a/five", "c/six"},  {"c/six", NULL},
};

static void test_any_order(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 1);
    for (int round = 0; round < 200; round++) {
        struct claim claims[ARRAY_LEN(all)];
        memcpy(claims, all, sizeof(all));
        for (size_t i = ARRAY_LEN(claims) - 1; i > 0; i--) {
            size_t j = (size_t)rng_below(&rng, i + 1);
            struct claim swap = claims[i];
            claims[i] = claims[j];
            claims[j] = swap;
        }
        admission_decide(claims, ARRAY_LEN(claims));
        for (size_t i = 0; i < ARRAY_LEN(claims); i++) {
            size_t at = 0;
            while (strcmp(expected[at].id, claims[i].id) != 0) {
                at++;
            }
            if (expected[at].loses_to == NULL) {
                assert_null(claims[i].loses_to);
            } else {
                assert_non_null(claims[i].loses_to);
                assert_string_equal(claims[i].loses_to->id, expected[at].loses_to);
            }
        }
    }
}

static void test_none(void **state)
{
    (void)state;
    admission_decide(NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_order),
        cmocka_unit_test(test_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
