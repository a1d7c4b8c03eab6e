/*
 * Label selectors: what they accept and what they match.
 */
#include "tests/support/unit.h"

#include "node/base/defs.h"
#include "proto/selector.h"

static bool matches(const char *text)
{
    char tier[] = "tier";
    char gold[] = "gold";
    char team[] = "example.com/team";
    char web[] = "web-1.x";
    char canary[] = "canary";
    char empty[] = "";
    Skein__Pair pairs[3] = {SKEIN__PAIR__INIT, SKEIN__PAIR__INIT, SKEIN__PAIR__INIT};
    pairs[0].key = tier;
    pairs[0].value = gold;
    pairs[1].key = team;
    pairs[1].value = web;
    pairs[2].key = canary;
    pairs[2].value = empty;
    Skein__Pair *labels[3] = {&pairs[0], &pairs[1], &pairs[2]};
    struct selector *selector = NULL;
    struct err_info err = {""};
    int rc = selector_parse(text, &selector, &err);
    assert_string_equal(err.text, "");
    assert_int_equal(rc, RC_OK);
    bool result = selector_matches(selector, labels, 3);
    selector_free(selector);
    return result;
}

static void requirements_match(void **state)
{
    (void)state;
    static const char *const yes[] = {
        "",
        "  ",
        "tier=gold",
        "tier==gold",
        " tier = gold ",
        "tier=gold,example.com/team=web-1.x",
        "tier!=silver",
        "other!=x",
        "canary",
        "canary=",
        "!other",
        "! other",
        "tier in (gold)",
        "tier in ( silver , gold )",
        "tier notin (silver,bronze)",
        "other notin (x)",
        "canary in ()",
        "tier in (gold),!other,canary",
        "in!=x",
    };
    static const char *const no[] = {
        "tier=silver", "tier=Gold",        "tier!=gold",        "other",           "other=x",
        "!tier",       "tier in (silver)", "tier notin (gold)", "tier=gold,other", "other in (x,y)",
        "tier=",
    };
    for (size_t i = 0; i < ARRAY_LEN(yes); i++) {
        assert_true(matches(yes[i]));
    }
    for (size_t i = 0; i < ARRAY_LEN(no); i++) {
        assert_false(matches(no[i]));
    }
}

static void malformed_selectors_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "=gold",   ",",          "tier,",    ",tier", "tier gold", "tier in gold", "tier in (gold",
        "tier in", "tier = a b", "tier ~ x", "!",     "!!a",       "a;b",          "tier in (a b)",
        "a=b)",    "\xc3\xa4=b",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct selector *selector = NULL;
        struct err_info err = {""};
        assert_int_equal(selector_parse(bad[i], &selector, &err), RC_INVALID);
        assert_null(selector);
        assert_true(err.text[0] != '\0');
    }
    struct err_info err = {""};
    struct selector *selector = NULL;
    assert_int_equal(selector_parse("tier gold", &selector, &err), RC_INVALID);
    assert_string_equal(
        err.text, "selector \"tier gold\", character 6: wants =, !=, in, notin or a comma, as "
                  "in tier=gold,zone!=a,canary,!old,team in (x,y)");
}

static void selectors_are_capped(void **state)
{
    (void)state;
    char text[SELECTOR_BYTES_MAX + 2];
    struct selector *selector = NULL;
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_int_equal(selector_parse(text, &selector, NULL), RC_INVALID);
    size_t used = 0;
    for (int i = 0; i < SELECTOR_TERMS_MAX + 1; i++) {
        text[used++] = 'a';
        text[used++] = ',';
    }
    text[used - 1] = '\0';
    assert_int_equal(selector_parse(text, &selector, NULL), RC_INVALID);
    text[used - 3] = '\0'; /* one fewer */
    assert_int_equal(selector_parse(text, &selector, NULL), RC_OK);
    selector_free(selector);
    selector = NULL;
    used = (size_t)snprintf(text, sizeof text, "a in (");
    for (int i = 0; i < SELECTOR_VALUES_MAX; i++) {
        text[used++] = 'a';
        text[used++] = ',';
    }
    text[used++] = ')';
    text[used] = '\0';
    assert_int_equal(selector_parse(text, &selector, NULL), RC_INVALID);
    selector_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requirements_match),
        cmocka_unit_test(malformed_selectors_are_refused),
        cmocka_unit_test(selectors_are_capped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
