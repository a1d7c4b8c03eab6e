/*
 * The host table: wildcards, growth, removal, and readers beside a writer.
 */
#include "node/base/mem.h"
#include "node/proxy/catalog.h"
#include "tests/support/unit.h"

#include <pthread.h>

static struct catalog catalog;

static int setup(void **state)
{
    (void)state;
    catalog_init(&catalog, 2);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    catalog_deinit(&catalog);
    return 0;
}

static void put(const char *name, const char *route)
{
    const struct proxy_rule rule = {.route = route, .path = "/"};
    struct err_info err;
    assert_int_equal(hosts_set(&catalog.hosts, name, &rule, 1, NULL, &err), RC_OK);
}

static void drop(const char *name)
{
    struct err_info err;
    assert_int_equal(hosts_set(&catalog.hosts, name, NULL, 0, NULL, &err), RC_OK);
}

static const char *find(const char *name)
{
    const struct host *host = hosts_find(&catalog.hosts, name, strlen(name));
    return host == NULL ? "-" : host->rules.rules[0].route->name;
}

static void test_exact_before_wildcard(void **state)
{
    (void)state;
    put("*.example.com", "wild");
    put("a.example.com", "exact");
    put("example.com", "top");
    assert_string_equal(find("a.example.com"), "exact");
    assert_string_equal(find("b.example.com"), "wild");
    assert_string_equal(find("a.b.example.com"), "-");
    assert_string_equal(find("example.com"), "top");
    assert_string_equal(find("com"), "-");
    assert_string_equal(find(""), "-");
    assert_string_equal(find(".example.com"), "-");
    drop("a.example.com");
    assert_string_equal(find("a.example.com"), "wild");
    drop("*.example.com");
    assert_string_equal(find("b.example.com"), "-");
    drop("*.example.com"); /* nothing there: no fault */
    put("a.example.com", "again");
    assert_string_equal(find("a.example.com"), "again");
    put("a.example.com", "changed");
    assert_string_equal(find("a.example.com"), "changed");
}

static void test_names_must_be_canonical(void **state)
{
    (void)state;
    static const char *const names[] = {"",     "A.com", "a.com.", "a.com:80", "*",      "*.",
                                        "a..b", "*.*.b", "a b",    "x.*.com",  "[::1]:1"};
    const struct proxy_rule rule = {.route = "r", .path = "/"};
    struct err_info err;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        assert_int_equal(hosts_set(&catalog.hosts, names[i], &rule, 1, NULL, &err), RC_INVALID);
    }
    put("[::1]", "v6");
    put("10.0.0.1", "v4");
    assert_string_equal(find("[::1]"), "v6");
    assert_string_equal(find("10.0.0.1"), "v4");
    /* A refused change leaves what was. */
    const struct proxy_rule bad = {.route = "r", .path = "no-slash"};
    assert_int_equal(hosts_set(&catalog.hosts, "10.0.0.1", &bad, 1, NULL, &err), RC_INVALID);
    assert_non_null(strstr(err.text, "host 10.0.0.1: route r"));
    assert_string_equal(find("10.0.0.1"), "v4");
}

static void test_many_hosts(void **state)
{
    (void)state;
    enum { COUNT = 20000 };
    char name[64];
    char route[32];
    for (int i = 0; i < COUNT; i++) {
        (void)snprintf(name, sizeof(name), "h%d.example.com", i);
        (void)snprintf(route, sizeof(route), "r%d", i % 100);
        put(name, route);
    }
    for (int i = 0; i < COUNT; i += 2) {
        (void)snprintf(name, sizeof(name), "h%d.example.com", i);
        drop(name);
    }
    (void)qsbr_reclaim(&catalog.qsbr);
    for (int i = 0; i < COUNT; i++) {
        (void)snprintf(name, sizeof(name), "h%d.example.com", i);
        (void)snprintf(route, sizeof(route), "r%d", i % 100);
        assert_string_equal(find(name), i % 2 == 0 ? "-" : route);
    }
    assert_int_equal(catalog.hosts.live, COUNT / 2);
}

/* Hosts that come and go for ever must not fill the table up. */
static void test_churn_is_bounded(void **state)
{
    (void)state;
    char name[64];
    put("stays.example.com", "stays");
    for (int i = 0; i < 50000; i++) {
        (void)snprintf(name, sizeof(name), "h%d.example.com", i);
        put(name, "r");
        drop(name);
        (void)qsbr_reclaim(&catalog.qsbr);
    }
    assert_string_equal(find("stays.example.com"), "stays");
    const struct host_table *table = atomic_load(&catalog.hosts.table);
    assert_true(table->mask < 256);
    assert_int_equal(catalog.hosts.live, 1);
}

static void test_a_reference_outlives_the_table(void **state)
{
    (void)state;
    put("a.test", "first");
    struct qsbr_reader *reader = &catalog.qsbr.readers[0];
    qsbr_online(&catalog.qsbr, reader);
    struct host *host = hosts_find(&catalog.hosts, "a.test", 6);
    host_ref(host);
    qsbr_offline(reader);
    put("a.test", "second");
    for (int i = 0; i < 3; i++) {
        (void)qsbr_reclaim(&catalog.qsbr);
    }
    assert_string_equal(host->rules.rules[0].route->name, "first");
    host_unref(host);
    assert_int_equal(qsbr_reclaim(&catalog.qsbr), 1);
    assert_int_equal(HASH_COUNT(catalog.routes), 1);
}

struct reader_arg {
    size_t idx;
    _Atomic bool *stop;
    _Atomic int *bad;
};

/* "fixed" is always there; "h<n>" may be, and then its route has its own name. */
static void *read_loop(void *arg)
{
    const struct reader_arg *self = arg;
    struct qsbr_reader *reader = &catalog.qsbr.readers[self->idx];
    unsigned turn = 0;
    while (!atomic_load(self->stop)) {
        qsbr_online(&catalog.qsbr, reader);
        char name[32];
        int len = snprintf(name, sizeof(name), "h%u.test", turn++ % 300);
        struct host *fixed = hosts_find(&catalog.hosts, "fixed.test", 10);
        struct host *some = hosts_find(&catalog.hosts, name, (size_t)len);
        if (fixed == NULL || rules_match(&fixed->rules, "/x", 2) == NULL) {
            atomic_fetch_add(self->bad, 1);
        }
        if (some != NULL && strcmp(some->rules.rules[0].path + 1, name) != 0) {
            atomic_fetch_add(self->bad, 1);
        }
        if (some != NULL && turn % 7 == 0) {
            host_ref(some);
            qsbr_offline(reader);
            if (some->rules.rules[0].path[0] != '/') {
                atomic_fetch_add(self->bad, 1);
            }
            host_unref(some);
        }
        qsbr_offline(reader);
    }
    return NULL;
}

static void test_readers_beside_a_writer(void **state)
{
    (void)state;
    put("fixed.test", "fixed");
    _Atomic bool stop = false;
    _Atomic int bad = 0;
    pthread_t threads[2];
    struct reader_arg args[2];
    for (size_t i = 0; i < 2; i++) {
        args[i] = (struct reader_arg){.idx = i, .stop = &stop, .bad = &bad};
        assert_int_equal(pthread_create(&threads[i], NULL, read_loop, &args[i]), 0);
    }
    struct rng rng;
    rng_init(&rng, 1);
    char name[32];
    char path[40];
    struct err_info err;
    for (int i = 0; i < 20000; i++) {
        (void)snprintf(name, sizeof(name), "h%u.test", (unsigned)rng_below(&rng, 300));
        (void)snprintf(path, sizeof(path), "/%s", name);
        const struct proxy_rule rule = {.route = "r", .path = path};
        size_t count = rng_chance(&rng, 0.6) ? 1 : 0;
        assert_int_equal(hosts_set(&catalog.hosts, name, &rule, count, NULL, &err), RC_OK);
        if (i % 10 == 0) {
            put("fixed.test", "fixed");
        }
        (void)qsbr_reclaim(&catalog.qsbr);
    }
    atomic_store(&stop, true);
    for (size_t i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(atomic_load(&bad), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_exact_before_wildcard, setup, teardown),
        cmocka_unit_test_setup_teardown(test_names_must_be_canonical, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many_hosts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_churn_is_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_reference_outlives_the_table, setup, teardown),
        cmocka_unit_test_setup_teardown(test_readers_beside_a_writer, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
