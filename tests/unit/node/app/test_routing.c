/*
 * routing: what the data plane is told, against a fake of node/proxy/proxy.h that keeps the last
 * word. covers: routing.c, routing_view.c, routing_checks.c, routing_names.c, status.c, compile.c
 */
#include "tests/support/unit.h"

#include "node/app/objects.h"
#include "node/app/routing.h"
#include "node/app/status.h"
#include "node/base/mem.h"
#include "node/net/loop.h"

#include <pthread.h>

/* ---- the fake data plane ---- */

struct backend {
    char name[64];
    size_t endpoints;
    bool live;
    unsigned healths[PROXY_HEALTH_DOWN + 1]; /* how often each was told */
    struct proxy_endpoint first, last;       /* of the last set */
};

struct fake_rule {
    char route[64];
    char path[64];
    struct backend *target;
    size_t target_count;
};

static struct backend fake_backends[16];
static struct {
    char host[64];
    struct fake_rule rules[8];
    size_t count;
} fake_hosts[8];
static size_t host_calls;
static size_t backend_calls;
static bool gap; /* a rule was told with a target that has no endpoints */
static bool watch_gap;

struct backend *backend_new(struct proxy *proxy, const char *name)
{
    (void)proxy;
    for (size_t i = 0; i < ARRAY_LEN(fake_backends); i++) {
        if (!fake_backends[i].live) {
            fake_backends[i] = (struct backend){.live = true};
            (void)snprintf(fake_backends[i].name, sizeof(fake_backends[i].name), "%s", name);
            return &fake_backends[i];
        }
    }
    fail_msg("too many backends");
    return NULL;
}

void backend_unref(struct proxy *proxy, struct backend *backend)
{
    (void)proxy;
    if (backend != NULL) {
        assert_true(backend->live);
        backend->live = false;
    }
}

static void look_for_gap(void)
{
    for (size_t i = 0; watch_gap && i < ARRAY_LEN(fake_hosts); i++) {
        for (size_t j = 0; j < fake_hosts[i].count; j++) {
            gap |= fake_hosts[i].rules[j].target->endpoints == 0;
        }
    }
}

int backend_set(struct proxy *proxy, struct backend *backend, const struct proxy_backend *policy,
                const struct proxy_endpoint *endpoints, size_t count, struct err_info *err)
{
    (void)proxy;
    (void)policy;
    (void)err;
    assert_true(backend->live);
    backend->endpoints = count;
    if (count > 0) {
        backend->first = endpoints[0];
        backend->last = endpoints[count - 1];
    }
    backend_calls++;
    look_for_gap();
    return RC_OK;
}

void backend_health(struct proxy *proxy, struct backend *backend, const struct addr *addr,
                    enum proxy_health health)
{
    (void)proxy;
    (void)addr;
    assert_true(backend->live);
    backend->healths[health]++;
}

int proxy_host_set(struct proxy *proxy, const char *host, const struct proxy_rule *rules,
                   size_t count, const struct proxy_host_tls *tls, struct err_info *err)
{
    (void)tls;
    (void)proxy;
    (void)err;
    host_calls++;
    size_t at = 0;
    while (strcmp(fake_hosts[at].host, host) != 0 && fake_hosts[at].host[0] != '\0') {
        at++;
    }
    (void)snprintf(fake_hosts[at].host, sizeof(fake_hosts[at].host), "%s", host);
    fake_hosts[at].count = count;
    for (size_t i = 0; i < count; i++) {
        struct fake_rule *rule = &fake_hosts[at].rules[i];
        *rule = (struct fake_rule){.target_count = rules[i].target_count};
        (void)snprintf(rule->route, sizeof(rule->route), "%s", rules[i].route);
        (void)snprintf(rule->path, sizeof(rule->path), "%s", rules[i].path);
        rule->target = rules[i].target_count > 0 ? rules[i].targets[0].backend : NULL;
    }
    look_for_gap();
    return RC_OK;
}

int proxy_tcp_set(struct proxy *proxy, uint16_t port, const struct proxy_tcp *tcp,
                  struct err_info *err)
{
    (void)proxy;
    (void)tcp;
    return err_set(err, RC_BUSY, "%u", port); /* test_routing_tcp.c has those that matter */
}

void proxy_tcp_remove(struct proxy *proxy, uint16_t port)
{
    (void)proxy;
    (void)port;
}

void proxy_set_tls(struct proxy *proxy, const struct proxy_tls *tls)
{
    (void)proxy;
    assert_non_null(tls->policy);
}

void proxy_set_defaults(struct proxy *proxy, const struct proxy_defaults *defaults)
{
    (void)proxy;
    assert_int_equal(defaults->timeouts.connect_ms, 5000);
}

/* ---- a node without its network ---- */

struct world {
    struct objects *objects;
    struct routing *routing;
    uint64_t hlc;
};

static void put(struct world *world, const char *kind_name, const char *id,
                ProtobufCMessage *message)
{
    const struct kind *kind = kind_by_name(kind_name);
    uint8_t *bytes = NULL;
    size_t len = 0;
    if (message != NULL) {
        assert_int_equal(object_pack(kind, message, &bytes, &len, NULL), RC_OK);
    }
    world->hlc += 1 << 16;
    struct row row = {.kind = kind->number,
                      .id = id,
                      .id_len = (uint16_t)strlen(id),
                      .hlc = world->hlc,
                      .created_hlc = world->hlc,
                      .flags = message == NULL ? ROW_TOMBSTONE : 0,
                      .value = bytes,
                      .value_len = (uint32_t)len};
    struct objects_change change;
    objects_apply(world->objects, &row, &change);
    routing_change(world->routing, change.now, change.before);
    objects_change_done(&change);
    mem_free(bytes);
}

static void put_route(struct world *world, const char *name, const char *host, const char *path,
                      const char *backend)
{
    Skein__Metadata metadata = SKEIN__METADATA__INIT;
    metadata.namespace_ = unconst("shop");
    metadata.name = unconst(name);
    Skein__Target target = SKEIN__TARGET__INIT;
    target.backend = unconst(backend);
    Skein__Target *targets[] = {&target};
    Skein__RouteSpec spec = SKEIN__ROUTE_SPEC__INIT;
    spec.host = unconst(host);
    spec.path = unconst(path);
    spec.to = targets;
    spec.n_to = 1;
    Skein__Route route = SKEIN__ROUTE__INIT;
    route.metadata = &metadata;
    route.spec = &spec;
    char id[64];
    (void)snprintf(id, sizeof(id), "shop/%s", name);
    put(world, "Route", id, &route.base);
}

/* As a newer node may write it: with a policy that this version does not enforce. */
static void put_guarded_route(struct world *world, const char *name, const char *host,
                              const char *path)
{
    Skein__Metadata metadata = SKEIN__METADATA__INIT;
    metadata.namespace_ = unconst("shop");
    metadata.name = unconst(name);
    Skein__Target target = SKEIN__TARGET__INIT;
    target.backend = unconst("b1");
    Skein__Target *targets[] = {&target};
    Skein__Compression compression = SKEIN__COMPRESSION__INIT;
    Skein__RouteSpec spec = SKEIN__ROUTE_SPEC__INIT;
    spec.host = unconst(host);
    spec.path = unconst(path);
    spec.to = targets;
    spec.n_to = 1;
    spec.compression = &compression;
    Skein__Route route = SKEIN__ROUTE__INIT;
    route.metadata = &metadata;
    route.spec = &spec;
    char id[64];
    (void)snprintf(id, sizeof(id), "shop/%s", name);
    put(world, "Route", id, &route.base);
}

static void put_backend(struct world *world, const char *name)
{
    Skein__Metadata metadata = SKEIN__METADATA__INIT;
    metadata.namespace_ = unconst("shop");
    metadata.name = unconst(name);
    Skein__BackendSpec spec = SKEIN__BACKEND_SPEC__INIT;
    Skein__Backend backend = SKEIN__BACKEND__INIT;
    backend.metadata = &metadata;
    backend.spec = &spec;
    char id[64];
    (void)snprintf(id, sizeof(id), "shop/%s", name);
    put(world, "Backend", id, &backend.base);
}

static void put_checked_backend(struct world *world, const char *name)
{
    Skein__Metadata metadata = SKEIN__METADATA__INIT;
    metadata.namespace_ = unconst("shop");
    metadata.name = unconst(name);
    Skein__HealthCheck check = SKEIN__HEALTH_CHECK__INIT;
    check.has_type = true;
    check.type = SKEIN__HEALTH_CHECK__TYPE__Tcp;
    Skein__BackendSpec spec = SKEIN__BACKEND_SPEC__INIT;
    spec.health_check = &check;
    Skein__Backend backend = SKEIN__BACKEND__INIT;
    backend.metadata = &metadata;
    backend.spec = &spec;
    char id[64];
    (void)snprintf(id, sizeof(id), "shop/%s", name);
    put(world, "Backend", id, &backend.base);
}

static void put_endpoint(struct world *world, const char *backend, const char *address)
{
    char name[64];
    char id[80];
    (void)snprintf(name, sizeof(name), "%s/%s", backend, address);
    (void)snprintf(id, sizeof(id), "shop/%s", name);
    Skein__Metadata metadata = SKEIN__METADATA__INIT;
    metadata.namespace_ = unconst("shop");
    metadata.name = name;
    Skein__EndpointSpec spec = SKEIN__ENDPOINT_SPEC__INIT;
    spec.backend = unconst(backend);
    spec.address = unconst(address);
    Skein__Endpoint endpoint = SKEIN__ENDPOINT__INIT;
    endpoint.metadata = &metadata;
    endpoint.spec = &spec;
    put(world, "Endpoint", id, &endpoint.base);
}

static int set_up(void **state)
{
    memset(fake_backends, 0, sizeof(fake_backends));
    memset(fake_hosts, 0, sizeof(fake_hosts));
    host_calls = backend_calls = 0;
    gap = watch_gap = false;
    struct world *world = mem_new(sizeof(*world));
    world->objects = objects_new();
    world->routing = routing_new();
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    routing_free(world->routing);
    objects_free(world->objects);
    for (size_t i = 0; i < ARRAY_LEN(fake_backends); i++) {
        assert_false(fake_backends[i].live);
    }
    mem_free(world);
    return 0;
}

static struct proxy *some_proxy(void)
{
    static int anything;
    return (struct proxy *)(void *)&anything;
}

static const Skein__RouteStatus *status_of(struct world *world, const char *id)
{
    const struct object *object = objects_find(world->objects, kind_by_name("Route"), id);
    assert_non_null(object);
    status_fill(world->routing, NULL, object);
    return (const Skein__RouteStatus *)object->message->status;
}

/* ---- tests ---- */

static void test_claim_flips(void **state)
{
    struct world *world = *state;
    routing_attach(world->routing, some_proxy());
    put_route(world, "old", "shop.test", "/a", "b1");
    put_route(world, "new", "shop.test", "/a", "b1");
    routing_flush(world->routing);
    assert_int_equal(fake_hosts[0].count, 1);
    assert_string_equal(fake_hosts[0].rules[0].route, "shop/old");
    assert_true(status_of(world, "shop/old")->admitted);
    assert_false(status_of(world, "shop/new")->admitted);
    assert_string_equal(status_of(world, "shop/new")->claimed_by, "shop/old");
    assert_int_equal(status_of(world, "shop/new")->reason,
                     SKEIN__ROUTE_STATUS__REASON__HostAlreadyClaimed);

    put(world, "Route", "shop/old", NULL);
    routing_flush(world->routing);
    assert_string_equal(fake_hosts[0].rules[0].route, "shop/new");
    assert_true(status_of(world, "shop/new")->admitted);

    put(world, "Route", "shop/new", NULL);
    routing_flush(world->routing);
    assert_int_equal(fake_hosts[0].count, 0);
}

static void test_missing_backend(void **state)
{
    struct world *world = *state;
    routing_attach(world->routing, some_proxy());
    put_route(world, "r", "shop.test", "/", "late");
    put_endpoint(world, "late", "127.0.0.1:8080");
    routing_flush(world->routing);
    assert_int_equal(status_of(world, "shop/r")->n_missing_backends, 1);
    assert_int_equal(fake_hosts[0].rules[0].target->endpoints, 0);
    put_backend(world, "late");
    routing_flush(world->routing);
    assert_int_equal(status_of(world, "shop/r")->n_missing_backends, 0);
    assert_int_equal(fake_hosts[0].rules[0].target->endpoints, 1);
    put(world, "Backend", "shop/late", NULL);
    routing_flush(world->routing);
    assert_int_equal(fake_hosts[0].rules[0].target->endpoints, 0);
}

static void test_unknown_policy_fails_closed(void **state)
{
    struct world *world = *state;
    routing_attach(world->routing, some_proxy());
    put_route(world, "open", "shop.test", "/", "b1");
    put_guarded_route(world, "guarded", "shop.test", "/secret");
    routing_flush(world->routing);
    assert_int_equal(fake_hosts[0].count, 2); /* it shadows the open route, without a target */
    for (size_t i = 0; i < 2; i++) {
        const struct fake_rule *rule = &fake_hosts[0].rules[i];
        assert_int_equal(rule->target_count, strcmp(rule->route, "shop/open") == 0 ? 1 : 0);
    }
    const Skein__RouteStatus *status = status_of(world, "shop/guarded");
    assert_int_equal(status->n_warnings, 1);
    assert_non_null(strstr(status->warnings[0], "compression"));
}

static void test_cost_is_local(void **state)
{
    struct world *world = *state;
    routing_attach(world->routing, some_proxy());
    put_backend(world, "b1");
    put_backend(world, "b2");
    put_route(world, "r1", "one.test", "/", "b1");
    put_route(world, "r2", "two.test", "/", "b2");
    routing_flush(world->routing);
    host_calls = backend_calls = 0;
    put_endpoint(world, "b1", "127.0.0.1:1");
    put_endpoint(world, "b1", "127.0.0.1:2");
    routing_flush(world->routing);
    assert_int_equal(host_calls, 0);
    assert_int_equal(backend_calls, 1); /* a burst costs its backend once */
    put_route(world, "r1", "one.test", "/x", "b1");
    routing_flush(world->routing);
    assert_int_equal(host_calls, 1);
    routing_flush(world->routing);
    assert_int_equal(host_calls, 1);
}

static void test_no_gap(void **state)
{
    struct world *world = *state;
    routing_attach(world->routing, some_proxy());
    put_backend(world, "blue");
    put_endpoint(world, "blue", "127.0.0.1:1");
    put_route(world, "r", "shop.test", "/", "blue");
    routing_flush(world->routing);
    watch_gap = true;
    /* One change-set: the route moves to a new backend and the old one goes. */
    put(world, "Endpoint", "shop/blue/127.0.0.1:1", NULL);
    put(world, "Backend", "shop/blue", NULL);
    put_backend(world, "green");
    put_endpoint(world, "green", "127.0.0.1:2");
    put_route(world, "r", "shop.test", "/", "green");
    routing_flush(world->routing);
    assert_false(gap);
    assert_string_equal(fake_hosts[0].rules[0].target->name, "shop/green");
}

/* ---- checks and names: on a loop, with names of our own ---- */

static const char *name_addrs[2]; /* of "one.test" and "two.test"; NULL: they do not resolve */
static pthread_mutex_t name_lock = PTHREAD_MUTEX_INITIALIZER;

static int look_up(void *ctx, const char *host, struct addr *ret_addrs, size_t cap,
                   size_t *ret_count, struct err_info *err)
{
    (void)ctx;
    (void)cap;
    char text[256] = "";
    (void)pthread_mutex_lock(&name_lock);
    const char *addrs = name_addrs[strcmp(host, "two.test") == 0];
    (void)snprintf(text, sizeof(text), "%s", addrs != NULL ? addrs : "");
    (void)pthread_mutex_unlock(&name_lock);
    for (char *at = text, *word; (word = strsep(&at, " ")) != NULL;) {
        *ret_count += addr_parse(word, &ret_addrs[*ret_count], NULL) == RC_OK;
    }
    return *ret_count > 0 ? RC_OK : err_set(err, RC_NOT_FOUND, "no such name");
}

static const struct resolver_ops names = {.lookup = look_up};

static void set_names(const char *one, const char *two)
{
    (void)pthread_mutex_lock(&name_lock);
    name_addrs[0] = one;
    name_addrs[1] = two;
    (void)pthread_mutex_unlock(&name_lock);
}

struct observed {
    uv_loop_t loop;
    struct world *world;
    size_t wanted;
    const char *id;
    Skein__EndpointStatus__Health health;
};

static void observe(struct observed *observed, struct world *world)
{
    observed->world = world;
    loop_init(&observed->loop);
    routing_observe(world->routing, &observed->loop, &names, NULL);
}

static void observe_end(struct observed *observed)
{
    routing_free(observed->world->routing);
    loop_run(&observed->loop);
    loop_close_clean(&observed->loop);
    observed->world->routing = routing_new(); /* for tear_down */
}

static bool offers_wanted(void *arg)
{
    struct observed *observed = arg;
    routing_flush(observed->world->routing);
    return fake_backends[0].endpoints == observed->wanted;
}

static void await_endpoints(struct observed *observed, size_t wanted)
{
    observed->wanted = wanted;
    assert_true(loop_run_until(&observed->loop, offers_wanted, observed, 20000));
}

static const Skein__EndpointStatus *endpoint_status_of(struct world *world, const char *id)
{
    const struct object *object = objects_find(world->objects, kind_by_name("Endpoint"), id);
    assert_non_null(object);
    status_fill(world->routing, NULL, object);
    return (const Skein__EndpointStatus *)object->message->status;
}

static bool has_health(void *arg)
{
    struct observed *observed = arg;
    routing_flush(observed->world->routing);
    return endpoint_status_of(observed->world, observed->id)->health == observed->health;
}

static void await_health(struct observed *observed, const char *id,
                         Skein__EndpointStatus__Health health)
{
    observed->id = id;
    observed->health = health;
    assert_true(loop_run_until(&observed->loop, has_health, observed, 20000));
}

static void test_names_are_expanded(void **state)
{
    struct world *world = *state;
    struct observed observed = {0};
    set_names("10.0.0.2:0 10.0.0.1:0", NULL);
    observe(&observed, world);
    put_backend(world, "b1");
    put_endpoint(world, "b1", "one.test:8080");
    put_endpoint(world, "b1", "two.test:80");
    put_endpoint(world, "b1", "10.0.0.2:8080"); /* also an address of the name: counts as itself */
    routing_flush(world->routing);
    assert_true(routing_is_resolving(world->routing));
    routing_attach(world->routing, some_proxy());
    await_endpoints(&observed, 3);
    char text[ADDR_TEXT_MAX];
    assert_string_equal(addr_format(&fake_backends[0].first.addr, text), "10.0.0.2:8080");
    assert_string_equal(addr_format(&fake_backends[0].last.addr, text), "10.0.0.2:8080");
    await_health(&observed, "shop/b1/two.test:80", SKEIN__ENDPOINT_STATUS__HEALTH__Down);
    assert_false(routing_is_resolving(world->routing));
    const Skein__EndpointStatus *status = endpoint_status_of(world, "shop/b1/two.test:80");
    assert_string_equal(status->message, "two.test does not resolve: no such name");
    assert_int_equal(status->n_addresses, 0);
    status = endpoint_status_of(world, "shop/b1/one.test:8080");
    assert_int_equal(status->n_addresses, 2);
    assert_string_equal(status->addresses[0]->address, "10.0.0.1:8080");
    assert_int_equal(status->health, SKEIN__ENDPOINT_STATUS__HEALTH__Unknown);
    set_names("10.0.0.2:0 10.0.0.1:0", "10.0.0.9:0");
    await_endpoints(&observed, 4); /* retries of a name that fails come soon */
    put(world, "Endpoint", "shop/b1/one.test:8080", NULL);
    routing_flush(world->routing);
    assert_int_equal(fake_backends[0].endpoints, 2);
    observe_end(&observed);
}

static bool is_served_by_green(void *arg)
{
    struct observed *observed = arg;
    routing_flush(observed->world->routing);
    return strcmp(fake_hosts[0].rules[0].target->name, "shop/green") == 0;
}

/* As test_no_gap, but the new backend is a name that nobody has looked up yet. */
static void test_no_gap_for_names(void **state)
{
    struct world *world = *state;
    struct observed observed = {0};
    set_names("10.0.0.1:0", NULL);
    observe(&observed, world);
    routing_attach(world->routing, some_proxy());
    put_backend(world, "blue");
    put_endpoint(world, "blue", "127.0.0.1:1");
    put_route(world, "r", "shop.test", "/", "blue");
    routing_flush(world->routing);
    watch_gap = true;
    put(world, "Endpoint", "shop/blue/127.0.0.1:1", NULL);
    put(world, "Backend", "shop/blue", NULL);
    put_backend(world, "green");
    put_endpoint(world, "green", "one.test:80");
    put_route(world, "r", "shop.test", "/", "green");
    routing_flush(world->routing);
    assert_string_equal(fake_hosts[0].rules[0].target->name, "shop/blue");
    assert_true(status_of(world, "shop/r")->admitted);
    assert_true(loop_run_until(&observed.loop, is_served_by_green, &observed, 20000));
    assert_false(gap);

    /* A name that does not resolve is not waited for any longer than its look-up takes. */
    watch_gap = false;
    put_backend(world, "green");
    put_endpoint(world, "red", "two.test:80");
    put_backend(world, "red");
    put_route(world, "r", "shop.test", "/", "red");
    do {
        (void)uv_run(&observed.loop, UV_RUN_NOWAIT);
        routing_flush(world->routing);
    } while (strcmp(fake_hosts[0].rules[0].target->name, "shop/red") != 0);
    assert_int_equal(fake_hosts[0].rules[0].target->endpoints, 0);
    put(world, "Route", "shop/r", NULL);
    routing_flush(world->routing);
    assert_int_equal(fake_hosts[0].count, 0);
    observe_end(&observed);
}

static void test_checks_follow_use(void **state)
{
    struct world *world = *state;
    struct observed observed = {0};
    observe(&observed, world);
    routing_attach(world->routing, some_proxy());
    put_checked_backend(world, "b1");
    put_endpoint(world, "b1", "127.0.0.1:1"); /* nobody listens there */
    routing_flush(world->routing);
    assert_null(endpoint_status_of(world, "shop/b1/127.0.0.1:1")->message); /* no route yet */
    put_route(world, "r", "shop.test", "/", "b1");
    routing_flush(world->routing);
    assert_string_equal(endpoint_status_of(world, "shop/b1/127.0.0.1:1")->message,
                        "not checked yet");
    await_health(&observed, "shop/b1/127.0.0.1:1", SKEIN__ENDPOINT_STATUS__HEALTH__Down);
    assert_int_equal(fake_backends[0].healths[PROXY_HEALTH_DOWN], 1);
    const Skein__EndpointStatus *status = endpoint_status_of(world, "shop/b1/127.0.0.1:1");
    assert_non_null(strstr(status->message, "connection refused"));
    assert_non_null(status->since);
    struct routing_pool_view view;
    assert_true(routing_pool_view(world->routing, "shop/b1", &view));
    assert_int_equal(view.ready, 0);
    assert_int_equal(view.down, 1);
    struct buf out;
    buf_init(&out, 65536);
    routing_metrics(world->routing, &out);
    assert_non_null(
        strstr(out.data, "skein_backend_endpoints{backend=\"shop/b1\",health=\"down\"} 1\n"));
    buf_deinit(&out);
    put_backend(world, "b1"); /* without a check */
    routing_flush(world->routing);
    assert_int_equal(fake_backends[0].healths[PROXY_HEALTH_UNKNOWN], 1);
    assert_int_equal(endpoint_status_of(world, "shop/b1/127.0.0.1:1")->health,
                     SKEIN__ENDPOINT_STATUS__HEALTH__Unknown);
    put_checked_backend(world, "b1");
    await_health(&observed, "shop/b1/127.0.0.1:1", SKEIN__ENDPOINT_STATUS__HEALTH__Down);
    put(world, "Endpoint", "shop/b1/127.0.0.1:1", NULL);
    routing_flush(world->routing);
    observe_end(&observed);
}

static void test_attach_late(void **state)
{
    struct world *world = *state;
    put_backend(world, "b1");
    put_endpoint(world, "b1", "127.0.0.1:1");
    put_route(world, "r", "shop.test", "/", "b1");
    put_route(world, "gone", "gone.test", "/", "b1");
    routing_flush(world->routing);
    put(world, "Route", "shop/gone", NULL);
    routing_flush(world->routing);
    assert_int_equal(host_calls, 0);
    routing_attach(world->routing, some_proxy());
    assert_int_equal(host_calls, 1);
    assert_int_equal(fake_hosts[0].rules[0].target->endpoints, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_claim_flips, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_missing_backend, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_unknown_policy_fails_closed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_cost_is_local, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_gap, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_attach_late, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_names_are_expanded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_gap_for_names, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_checks_follow_use, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
