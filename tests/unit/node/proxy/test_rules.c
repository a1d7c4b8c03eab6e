/*
 * Matching by path: precedence as a table, and a slow reference for random rules.
 */
#include "node/base/mem.h"
#include "node/base/rng.h"
#include "node/proxy/catalog.h"
#include "tests/support/unit.h"

static struct catalog catalog;
static struct backend *backend;

static int setup(void **state)
{
    (void)state;
    catalog_init(&catalog, 1);
    backend = backend_make(&catalog, "b");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    backend_put(backend);
    catalog_deinit(&catalog);
    return 0;
}

static struct rules build(const struct proxy_rule *from, size_t count)
{
    struct rules rules;
    struct err_info err;
    assert_int_equal(rules_init(&rules, &catalog, from, count, &err), RC_OK);
    return rules;
}

static const char *route_of(const struct rules *rules, const char *path)
{
    const struct rule *rule = rules_match(rules, path, strlen(path));
    return rule == NULL ? "-" : rule->route->name;
}

static void test_precedence(void **state)
{
    (void)state;
    const struct proxy_rule from[] = {
        {.route = "a", .path = "/a"},
        {.route = "a-exact", .path = "/a", .path_type = PATH_EXACT},
        {.route = "ab", .path = "/a/b/"}, /* the slash at the end says nothing */
        {.route = "abc-exact", .path = "/a/b/c", .path_type = PATH_EXACT},
        {.route = "late", .path = "/a"}, /* the first one wins */
        {.route = "late-exact", .path = "/a", .path_type = PATH_EXACT},
        {.route = "long", .path = "/a/bb/cc"},
        {.route = "empty", .path = "/e//f"},
    };
    static const struct {
        const char *path;
        const char *route;
    } rows[] = {
        {"/", "-"},         {"/a", "a-exact"},  {"/a/", "a"},         {"/a/x", "a"},
        {"/ab", "-"},       {"/a/b", "ab"},     {"/a/b/", "ab"},      {"/a/b/c", "abc-exact"},
        {"/a/b/c/", "ab"},  {"/a/b/c/d", "ab"}, {"/a/bb", "a"},       {"/a/bb/cc/x", "long"},
        {"/a/bb/ccc", "a"}, {"/e/f", "-"},      {"/e//f/g", "empty"}, {"/A", "-"},
        {"*", "-"},
    };
    struct rules rules = build(from, ARRAY_LEN(from));
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_string_equal(route_of(&rules, rows[i].path), rows[i].route);
    }
    rules_deinit(&rules, &catalog);
}

static void test_root_covers_all(void **state)
{
    (void)state;
    static const char *const roots[] = {"", "/"};
    for (size_t i = 0; i < ARRAY_LEN(roots); i++) {
        const struct proxy_rule from[] = {{.route = "root", .path = roots[i]}};
        struct rules rules = build(from, 1);
        assert_string_equal(route_of(&rules, "/"), "root");
        assert_string_equal(route_of(&rules, "/x/y"), "root");
        assert_string_equal(route_of(&rules, "*"), "root");
        rules_deinit(&rules, &catalog);
    }
}

/* The rule as the text in proxy.h says it, without any structure. */
static const struct proxy_rule *reference(const struct proxy_rule *from, size_t count,
                                          const char *path)
{
    const struct proxy_rule *best = NULL;
    size_t best_len = 0;
    for (size_t i = 0; i < count; i++) {
        const struct proxy_rule *rule = &from[i];
        size_t len = strlen(rule->path);
        if (rule->path_type == PATH_EXACT) {
            if (strcmp(rule->path, path) == 0 && (best == NULL || best->path_type != PATH_EXACT)) {
                best = rule;
            }
            continue;
        }
        if (len != 0 && rule->path[len - 1] == '/') {
            len--;
        }
        bool covers =
            strncmp(path, rule->path, len) == 0 && (path[len] == '\0' || path[len] == '/');
        if (covers && (best == NULL || (best->path_type != PATH_EXACT && len > best_len))) {
            best = rule;
            best_len = len;
        }
    }
    return best;
}

static char *random_path(struct rng *rng, bool slash)
{
    char text[64];
    size_t len = 0;
    size_t segments = rng_below(rng, 5);
    for (size_t i = 0; i < segments; i++) {
        text[len++] = '/';
        size_t letters = rng_below(rng, 3);
        for (size_t j = 0; j < letters; j++) {
            text[len++] = (char)('a' + rng_below(rng, 2));
        }
    }
    if (slash && len == 0) {
        text[len++] = '/';
    }
    return mem_strndup(text, len);
}

static void test_random_rules_against_the_reference(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 5);
    for (int round = 0; round < 300; round++) {
        size_t count = 1 + rng_below(&rng, 40);
        struct proxy_rule *from = mem_array(count, sizeof(*from));
        for (size_t i = 0; i < count; i++) {
            from[i].route = mem_printf("r%zu", i);
            from[i].path = random_path(&rng, false);
            from[i].path_type = rng_chance(&rng, 0.3) ? PATH_EXACT : PATH_PREFIX;
        }
        struct rules rules = build(from, count);
        for (int i = 0; i < 100; i++) {
            char *path = random_path(&rng, true);
            const struct proxy_rule *want = reference(from, count, path);
            assert_string_equal(route_of(&rules, path), want == NULL ? "-" : want->route);
            mem_free(path);
        }
        rules_deinit(&rules, &catalog);
        for (size_t i = 0; i < count; i++) {
            mem_free(unconst(from[i].route));
            mem_free(unconst(from[i].path));
        }
        mem_free(from);
    }
}

static void expect_refused(const struct proxy_rule *rule, int rc, const char *text)
{
    struct rules rules;
    struct err_info err;
    assert_int_equal(rules_init(&rules, &catalog, rule, 1, &err), rc);
    assert_non_null(strstr(err.text, text));
}

static void test_refusals(void **state)
{
    (void)state;
    static char path[RULE_PATH_MAX + 2];
    struct proxy_target targets[PROXY_TARGETS_MAX + 1];
    for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
        targets[i] = (struct proxy_target){.backend = backend, .weight = 1};
    }
    struct proxy_rule rule = {.route = "ns/r", .path = "x"};
    expect_refused(&rule, RC_INVALID, "route ns/r: path \"x\" does not begin with /");
    memset(path, 'a', sizeof(path) - 1);
    path[0] = '/';
    rule.path = path;
    expect_refused(&rule, RC_TOO_BIG, "above 8192");
    memset(path, '/', RULE_SEGMENTS_MAX + 1);
    path[RULE_SEGMENTS_MAX + 1] = '\0';
    expect_refused(&rule, RC_TOO_BIG, "segments");
    rule.path = "/";
    rule.targets = targets;
    rule.target_count = ARRAY_LEN(targets);
    expect_refused(&rule, RC_TOO_BIG, "33 backends is above 32");
    rule.target_count = 1;
    targets[0].weight = 257;
    expect_refused(&rule, RC_TOO_BIG, "weight 257 is above 256");
    struct rules rules;
    struct err_info err;
    assert_int_equal(rules_init(&rules, &catalog, &rule, PROXY_RULES_MAX + 1, &err), RC_TOO_BIG);
}

static void test_draw_follows_weights(void **state)
{
    (void)state;
    struct backend *other = backend_make(&catalog, "c");
    struct backend *none = backend_make(&catalog, "d");
    const struct proxy_target targets[] = {{none, 0}, {backend, 3}, {other, 1}, {none, 0}};
    const struct proxy_rule from[] = {
        {.route = "r", .path = "/", .targets = targets, .target_count = 4},
        {.route = "z", .path = "/z", .targets = targets, .target_count = 1},
        {.route = "n", .path = "/n"},
    };
    struct rules rules = build(from, 3);
    struct rng rng;
    rng_init(&rng, 3);
    int counts[2] = {0};
    const struct rule *rule = rules_match(&rules, "/x", 2);
    for (int i = 0; i < 8000; i++) {
        const struct backend *drawn = rule_draw(rule, &rng);
        assert_ptr_not_equal(drawn, none);
        counts[drawn == other]++;
    }
    assert_in_range(counts[0], 5800, 6200);
    assert_null(rule_draw(rules_match(&rules, "/z", 2), &rng));
    assert_null(rule_draw(rules_match(&rules, "/n", 2), &rng));
    rules_deinit(&rules, &catalog);
    backend_put(other);
    backend_put(none);
}

static void test_counters_outlive_rules(void **state)
{
    (void)state;
    const struct proxy_rule from[] = {{.route = "same", .path = "/"}};
    struct rules first = build(from, 1);
    counter_add(&route_slot(first.rules[0].route, 0)->traffic.bytes_in, 7);
    struct rules second = build(from, 1);
    rules_deinit(&first, &catalog);
    assert_int_equal(counter_read(&route_slot(second.rules[0].route, 0)->traffic.bytes_in), 7);
    rules_deinit(&second, &catalog);
    assert_null(catalog.routes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_precedence, setup, teardown),
        cmocka_unit_test_setup_teardown(test_root_covers_all, setup, teardown),
        cmocka_unit_test_setup_teardown(test_random_rules_against_the_reference, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refusals, setup, teardown),
        cmocka_unit_test_setup_teardown(test_draw_follows_weights, setup, teardown),
        cmocka_unit_test_setup_teardown(test_counters_outlive_rules, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
