/*
 * routing: what the data plane is told, against a fake of node/proxy/proxy.h that keeps the last
 * word. covers: routing.c, routing_view.c, routing_checks.c, routing_names.c, status.c, compile.c
 */
#include "tests/support/unit.h"

#include "node/app/objects.h"
#include "node/app/routing.h"
#include "node/app/status.h"
#include "node/base/mem.h"

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
                   size_t count, struct err_info *err)
{
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
