/*
 * Names: looked up once, again, held on failure, and never in each other's way.
 * covers: resolver.c, resolver_pool.c
 */
#include "node/base/mem.h"
#include "node/net/loop.h"
#include "node/net/resolver.h"
#include "tests/support/unit.h"

#include <pthread.h>

enum { WAIT_MS = 20000, NEVER_MS = 3600000 };

/* ---- a name server in memory ---- */

struct entry {
    char host[64];
    const char *addrs; /* joined by blanks; NULL: fails */
    bool blocked;      /* look-ups wait until it is not */
    unsigned asked;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct entry entries[32];
    size_t count;
    unsigned inside; /* look-ups under way */
} server = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static struct entry *entry_of_locked(const char *host)
{
    for (size_t i = 0; i < server.count; i++) {
        if (strcmp(server.entries[i].host, host) == 0) {
            return &server.entries[i];
        }
    }
    return NULL;
}

static void serve(const char *host, const char *addrs, bool blocked)
{
    (void)pthread_mutex_lock(&server.lock);
    struct entry *entry = entry_of_locked(host);
    if (entry == NULL) {
        entry = &server.entries[server.count++];
        (void)snprintf(entry->host, sizeof(entry->host), "%s", host);
    }
    entry->addrs = addrs;
    entry->blocked = blocked;
    (void)pthread_cond_broadcast(&server.changed);
    (void)pthread_mutex_unlock(&server.lock);
}

static unsigned asked(const char *host)
{
    (void)pthread_mutex_lock(&server.lock);
    const struct entry *entry = entry_of_locked(host);
    unsigned count = entry != NULL ? entry->asked : 0;
    (void)pthread_mutex_unlock(&server.lock);
    return count;
}

static unsigned inside(void)
{
    (void)pthread_mutex_lock(&server.lock);
    unsigned count = server.inside;
    (void)pthread_mutex_unlock(&server.lock);
    return count;
}

static int look_up(void *ctx, const char *host, struct addr *ret_addrs, size_t cap,
                   size_t *ret_count, struct err_info *err)
{
    (void)ctx;
    (void)pthread_mutex_lock(&server.lock);
    struct entry *entry = entry_of_locked(host);
    server.inside++;
    if (entry != NULL) {
        entry->asked++;
        while (entry->blocked) {
            (void)pthread_cond_wait(&server.changed, &server.lock);
        }
    }
    server.inside--;
    char text[4096] = "";
    bool known = entry != NULL && entry->addrs != NULL;
    if (known) {
        (void)snprintf(text, sizeof(text), "%s", entry->addrs);
    }
    (void)pthread_mutex_unlock(&server.lock);
    if (!known) {
        return err_set(err, RC_NOT_FOUND, "%s is not known", host);
    }
    size_t count = 0;
    for (char *at = text, *word; (word = strsep(&at, " ")) != NULL && count < cap;) {
        count += word[0] != '\0' && addr_parse(word, &ret_addrs[count], NULL) == RC_OK;
    }
    *ret_count = count;
    return RC_OK;
}

static const struct resolver_ops ops = {.lookup = look_up};

/* ---- a watcher ---- */

struct watcher {
    struct resolver_watch *watch;
    unsigned calls;
    struct resolver_watch **close_too; /* closed from within the call */
};

static void on_changed(void *arg)
{
    struct watcher *watcher = arg;
    watcher->calls++;
    if (watcher->close_too != NULL) {
        resolver_unwatch(*watcher->close_too);
        *watcher->close_too = NULL;
    }
}

struct world {
    uv_loop_t loop;
    struct resolver *resolver;
    struct watcher a, b;
};

static int set_up(void **state)
{
    struct world *world = mem_new(sizeof(*world));
    memset(server.entries, 0, sizeof(server.entries));
    server.count = 0;
    loop_init(&world->loop);
    world->resolver = resolver_new(&world->loop, &ops, NULL);
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    resolver_unwatch(world->a.watch);
    resolver_unwatch(world->b.watch);
    resolver_free(world->resolver);
    loop_run(&world->loop);
    loop_close_clean(&world->loop);
    mem_free(world);
    return 0;
}

static void watch(struct world *world, struct watcher *watcher, const char *host,
                  uint64_t interval_ms, uint64_t hold_ms)
{
    watcher->watch =
        resolver_watch(world->resolver, host, interval_ms, hold_ms, on_changed, watcher);
}

/* "10.0.0.1 [::1]" or "error", of the watch as it stands. */
static const char *seen(const struct watcher *watcher)
{
    static char text[8192];
    struct resolver_view view;
    resolver_view(watcher->watch, &view);
    size_t len = (size_t)snprintf(text, sizeof(text), "%s",
                                  view.pending         ? "pending"
                                  : view.error != NULL ? "error"
                                                       : "ok");
    for (size_t i = 0; i < view.count; i++) {
        char one[ADDR_TEXT_MAX];
        assert_int_equal(addr_port(&view.addrs[i]), 0);
        len += (size_t)snprintf(text + len, sizeof(text) - len, " %s",
                                addr_format_ip(&view.addrs[i], one));
    }
    return text;
}

struct wish {
    const struct watcher *watcher;
    const char *text;
};

static bool is_seen(void *arg)
{
    const struct wish *wish = arg;
    return strcmp(seen(wish->watcher), wish->text) == 0;
}

static void await(struct world *world, const struct watcher *watcher, const char *text)
{
    struct wish wish = {watcher, text};
    if (!loop_run_until(&world->loop, is_seen, &wish, WAIT_MS)) {
        fail_msg("wanted \"%s\", there is \"%s\"", text, seen(watcher));
    }
}

/* ---- tests ---- */

static void test_found_sorted_merged(void **state)
{
    struct world *world = *state;
    serve("web", "10.0.0.2:7 10.0.0.1:9 10.0.0.2:8 [2001:db8::1]:1 10.0.0.1:9", false);
    watch(world, &world->a, "web", NEVER_MS, UINT64_MAX);
    assert_string_equal(seen(&world->a), "pending");
    assert_int_equal(world->a.calls, 0);
    await(world, &world->a, "ok 10.0.0.1 10.0.0.2 2001:db8::1");
    assert_int_equal(world->a.calls, 1);
}

static void test_one_look_up_for_many_watchers(void **state)
{
    struct world *world = *state;
    serve("web", "10.0.0.1:0", false);
    watch(world, &world->a, "web", NEVER_MS, UINT64_MAX);
    watch(world, &world->b, "web", NEVER_MS, UINT64_MAX);
    await(world, &world->a, "ok 10.0.0.1");
    await(world, &world->b, "ok 10.0.0.1");
    assert_int_equal(asked("web"), 1);
    assert_int_equal(world->a.calls, 1);
    assert_int_equal(world->b.calls, 1);
    assert_int_equal(resolver_names(world->resolver), 1);
}

static void test_a_late_watcher_sees_at_once(void **state)
{
    struct world *world = *state;
    serve("web", "10.0.0.1:0", false);
    watch(world, &world->a, "web", NEVER_MS, UINT64_MAX);
    await(world, &world->a, "ok 10.0.0.1");
    watch(world, &world->b, "web", NEVER_MS, UINT64_MAX);
    assert_string_equal(seen(&world->b), "ok 10.0.0.1");
}

static void test_memory_without_watchers(void **state)
{
    struct world *world = *state;
    serve("web", "10.0.0.1:0", false);
    watch(world, &world->a, "web", NEVER_MS, UINT64_MAX);
    await(world, &world->a, "ok 10.0.0.1");
    resolver_unwatch(world->a.watch);
    serve("web", "10.0.0.9:0", false);
    watch(world, &world->a, "web", NEVER_MS, UINT64_MAX);
    assert_string_equal(seen(&world->a), "ok 10.0.0.1"); /* no gap */
    await(world, &world->a, "ok 10.0.0.9");              /* and asked again at once */
}

static void test_follows_changes(void **state)
{
    struct world *world = *state;
    serve("web", "10.0.0.1:0", false);
    watch(world, &world->a, "web", 1, UINT64_MAX);
    await(world, &world->a, "ok 10.0.0.1");
    unsigned calls = world->a.calls;
    while (asked("web") < 5) {
        (void)uv_run(&world->loop, UV_RUN_ONCE);
    }
    assert_int_equal(world->a.calls, calls); /* the same answer is no news */
    serve("web", "10.0.0.1:0 10.0.0.2:0", false);
    await(world, &world->a, "ok 10.0.0.1 10.0.0.2");
    serve("web", "10.0.0.3:0", false);
    await(world, &world->a, "ok 10.0.0.3");
}

static void test_failure_holds(void **state)
{
    struct world *world = *state;
    serve("web", "10.0.0.1:0", false);
    watch(world, &world->a, "web", 1, UINT64_MAX);
    await(world, &world->a, "ok 10.0.0.1");
    serve("web", NULL, false);
    await(world, &world->a, "error 10.0.0.1");
    struct resolver_view view;
    resolver_view(world->a.watch, &view);
    assert_string_equal(view.error, "web is not known");
    serve("web", "10.0.0.2:0", false);
    await(world, &world->a, "ok 10.0.0.2");
    serve("web", "", false); /* an answer without addresses is a failure */
    await(world, &world->a, "error 10.0.0.2");
}

static void test_hold_runs_out_by_watcher(void **state)
{
    struct world *world = *state;
    serve("web", "10.0.0.1:0", false);
    watch(world, &world->a, "web", 1, 20);
    watch(world, &world->b, "web", 1, UINT64_MAX);
    await(world, &world->a, "ok 10.0.0.1");
    serve("web", NULL, false);
    await(world, &world->a, "error");
    assert_string_equal(seen(&world->b), "error 10.0.0.1");
    serve("web", "10.0.0.1:0", false);
    await(world, &world->a, "ok 10.0.0.1");
    serve("web", NULL, false);
    await(world, &world->a, "error");
}

static void test_failing_from_the_start(void **state)
{
    struct world *world = *state;
    watch(world, &world->a, "nowhere", NEVER_MS, UINT64_MAX);
    await(world, &world->a, "error");
    serve("nowhere", "10.0.0.1:0", false);
    await(world, &world->a, "ok 10.0.0.1"); /* long before the interval: retries come sooner */
}

static void test_dead_names_do_not_block_others(void **state)
{
    struct world *world = *state;
    struct watcher dead[12] = {0};
    char host[16];
    for (size_t i = 0; i < ARRAY_LEN(dead); i++) {
        (void)snprintf(host, sizeof(host), "dead%zu", i);
        serve(host, NULL, false);
        watch(world, &dead[i], host, 1, UINT64_MAX);
    }
    for (size_t i = 0; i < ARRAY_LEN(dead); i++) {
        await(world, &dead[i], "error"); /* from now on they are known to fail */
    }
    for (size_t i = 0; i < ARRAY_LEN(dead); i++) {
        (void)snprintf(host, sizeof(host), "dead%zu", i);
        serve(host, NULL, true);
    }
    while (inside() < RESOLVER_THREADS_MAX / 2) {
        (void)uv_run(&world->loop, UV_RUN_NOWAIT);
    }
    serve("alive", "10.0.0.1:0", false);
    watch(world, &world->a, "alive", NEVER_MS, UINT64_MAX);
    await(world, &world->a, "ok 10.0.0.1");
    assert_int_equal(inside(), RESOLVER_THREADS_MAX / 2);
    for (size_t i = 0; i < ARRAY_LEN(dead); i++) {
        resolver_unwatch(dead[i].watch);
    }
    for (size_t i = 0; i < ARRAY_LEN(dead); i++) {
        (void)snprintf(host, sizeof(host), "dead%zu", i);
        serve(host, NULL, false);
    }
}

static void test_end_does_not_wait(void **state)
{
    struct world *world = *state;
    serve("slow", "10.0.0.1:0", true);
    watch(world, &world->a, "slow", NEVER_MS, UINT64_MAX);
    while (inside() == 0) {
        (void)uv_run(&world->loop, UV_RUN_NOWAIT);
    }
    resolver_unwatch(world->a.watch);
    world->a.watch = NULL;
    resolver_free(world->resolver);
    loop_run(&world->loop); /* ends while the look-up is under way */
    assert_int_equal(inside(), 1);
    serve("slow", "10.0.0.1:0", false);
    while (inside() > 0) {
    }
    world->resolver = NULL;
}

static void test_unwatch_within_a_call(void **state)
{
    struct world *world = *state;
    serve("web", "10.0.0.1:0", true);
    watch(world, &world->a, "web", NEVER_MS, UINT64_MAX);
    watch(world, &world->b, "web", NEVER_MS, UINT64_MAX);
    world->a.close_too = &world->b.watch;
    serve("web", "10.0.0.1:0", false);
    await(world, &world->a, "ok 10.0.0.1");
    assert_int_equal(world->a.calls, 1);
    assert_int_equal(world->b.calls, 0);
    assert_null(world->b.watch);
}

static void test_many_addresses_are_cut(void **state)
{
    struct world *world = *state;
    static char addrs[4096];
    size_t len = 0;
    for (size_t i = 0; i < 100; i++) {
        len += (size_t)snprintf(addrs + len, sizeof(addrs) - len, "10.0.0.%zu:0 ", 200 - i);
    }
    serve("big", addrs, false);
    watch(world, &world->a, "big", NEVER_MS, UINT64_MAX);
    struct resolver_view view;
    do {
        (void)uv_run(&world->loop, UV_RUN_ONCE);
        resolver_view(world->a.watch, &view);
    } while (view.pending);
    assert_int_equal(view.count, RESOLVER_ADDRS_MAX);
    char text[ADDR_TEXT_MAX];
    assert_string_equal(addr_format_ip(&view.addrs[0], text), "10.0.0.101");
}

static void test_shorter_times(void **state)
{
    struct world *world = *state;
    serve("web", "10.0.0.1:0", false);
    watch(world, &world->a, "web", NEVER_MS, UINT64_MAX);
    await(world, &world->a, "ok 10.0.0.1");
    serve("web", "10.0.0.2:0", false);
    resolver_watch_times(world->a.watch, 1, UINT64_MAX);
    await(world, &world->a, "ok 10.0.0.2");
}

/* The machine's own way: every machine knows localhost. */
static void test_system(void **state)
{
    struct world *world = *state;
    resolver_free(world->resolver);
    world->resolver = resolver_new(&world->loop, &resolver_system, NULL);
    watch(world, &world->a, "localhost", NEVER_MS, UINT64_MAX);
    watch(world, &world->b, "no-such-name.invalid", NEVER_MS, UINT64_MAX);
    struct resolver_view view;
    do {
        (void)uv_run(&world->loop, UV_RUN_ONCE);
        resolver_view(world->a.watch, &view);
    } while (view.pending);
    assert_null(view.error);
    assert_true(view.count > 0);
    assert_true(addr_is_loopback(&view.addrs[0]));
    struct buf out;
    buf_init(&out, 4096);
    resolver_metrics(world->resolver, &out);
    assert_non_null(strstr(out.data, "skein_dns_names 2\n"));
    buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_found_sorted_merged, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_one_look_up_for_many_watchers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_late_watcher_sees_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_memory_without_watchers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_follows_changes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_failure_holds, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_hold_runs_out_by_watcher, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_failing_from_the_start, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_dead_names_do_not_block_others, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_end_does_not_wait, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_unwatch_within_a_call, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_many_addresses_are_cut, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_shorter_times, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_system, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
