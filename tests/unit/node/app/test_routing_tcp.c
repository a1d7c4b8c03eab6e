/*
 * TcpRoutes: who has a port, what the data plane is told, and what the status says of it.
 */
#include "tests/support/unit.h"

#include "node/app/objects.h"
#include "node/app/routing.h"
#include "node/app/status.h"
#include "node/base/mem.h"

#include <stdio.h>

/* ---- the fake data plane ---- */

struct backend {
    char name[64];
};

static struct {
    char route[64];
    bool open;
    size_t targets;
    uint32_t weight; /* of the last target */
    struct proxy_timeouts timeouts;
    uint32_t connections_max;
    uint32_t attempts;
    size_t allowed;
    bool log_off;
} ports[65536];
static int refusal; /* what proxy_tcp_set returns */
static size_t sets;
static size_t removes;

struct backend *backend_new(struct proxy *proxy, const char *name)
{
    (void)proxy;
    struct backend *backend = mem_new(sizeof(*backend));
    (void)snprintf(backend->name, sizeof(backend->name), "%s", name);
    return backend;
}

void backend_unref(struct proxy *proxy, struct backend *backend)
{
    (void)proxy;
    mem_free(backend);
}

int backend_set(struct proxy *proxy, struct backend *backend, const struct proxy_backend *policy,
                const struct proxy_endpoint *endpoints, size_t count, struct err_info *err)
{
    (void)proxy;
    (void)backend;
    (void)policy;
    (void)endpoints;
    (void)count;
    (void)err;
    return RC_OK;
}

void backend_health(struct proxy *proxy, struct backend *backend, const struct addr *addr,
                    enum proxy_health health)
{
    (void)proxy;
    (void)backend;
    (void)addr;
    (void)health;
}

int proxy_host_set(struct proxy *proxy, const char *host, const struct proxy_rule *rules,
                   size_t count, const struct proxy_host_tls *tls, struct err_info *err)
{
    (void)tls;
    (void)proxy;
    (void)host;
    (void)rules;
    (void)count;
    (void)err;
    return RC_OK;
}

void proxy_set_tls(struct proxy *proxy, const struct proxy_tls *tls)
{
    (void)proxy;
    assert_non_null(tls->policy);
}

void proxy_set_defaults(struct proxy *proxy, const struct proxy_defaults *defaults)
{
    (void)proxy;
    (void)defaults;
}

int proxy_tcp_set(struct proxy *proxy, uint16_t port, const struct proxy_tcp *tcp,
                  struct err_info *err)
{
    (void)proxy;
    sets++;
    if (refusal != RC_OK) {
        return err_set(err, refusal, "port %u is taken", port);
    }
    (void)snprintf(ports[port].route, sizeof(ports[port].route), "%s", tcp->route);
    ports[port].open = true;
    ports[port].targets = tcp->target_count;
    ports[port].weight = tcp->targets[tcp->target_count - 1].weight;
    ports[port].timeouts = tcp->timeouts;
    ports[port].connections_max = tcp->policy->connections_max;
    ports[port].attempts = tcp->policy->retries.set ? tcp->policy->retries.attempts : 99;
    ports[port].allowed = tcp->policy->allow_from.count;
    ports[port].log_off = tcp->policy->access_log_off;
    return RC_OK;
}

void proxy_tcp_remove(struct proxy *proxy, uint16_t port)
{
    (void)proxy;
    removes++;
    assert_true(ports[port].open);
    ports[port].open = false;
}

/* ---- a node without its network ---- */

static struct objects *objects;
static struct routing *routing;
static uint64_t hlc;
static Skein__TcpRouteStatus *status; /* of the last look; owned by the object */

static int begin(void **state)
{
    (void)state;
    memset(ports, 0, sizeof(ports));
    refusal = RC_OK;
    sets = removes = 0;
    hlc = 1000;
    objects = objects_new();
    routing = routing_new();
    routing_attach(routing, (struct proxy *)&refusal); /* never looked into */
    return 0;
}

static int finish(void **state)
{
    (void)state;
    routing_free(routing);
    objects_free(objects);
    return 0;
}

static void put(const char *kind_name, const char *id, ProtobufCMessage *message)
{
    const struct kind *kind = kind_by_name(kind_name);
    uint8_t *bytes = NULL;
    size_t len = 0;
    if (message != NULL) {
        assert_int_equal(object_pack(kind, message, &bytes, &len, NULL), RC_OK);
    }
    hlc += 1 << 16;
    struct row row = {.kind = kind->number,
                      .id = id,
                      .id_len = (uint16_t)strlen(id),
                      .hlc = hlc,
                      .created_hlc = hlc,
                      .flags = message == NULL ? ROW_TOMBSTONE : 0,
                      .value = bytes,
                      .value_len = (uint32_t)len};
    struct objects_change change;
    objects_apply(objects, &row, &change);
    routing_change(routing, change.now, change.before);
    objects_change_done(&change);
    mem_free(bytes);
}

/* change: what the test wants otherwise; NULL: nothing. */
static void put_tcp(const char *name, uint32_t port, void (*change)(Skein__TcpRouteSpec *spec))
{
    Skein__Metadata metadata = SKEIN__METADATA__INIT;
    metadata.namespace_ = unconst("shop");
    metadata.name = unconst(name);
    Skein__Target first = SKEIN__TARGET__INIT;
    first.backend = unconst("db");
    Skein__Target second = SKEIN__TARGET__INIT;
    second.backend = unconst("spare");
    second.has_weight = true;
    second.weight = 7;
    Skein__Target *targets[] = {&first, &second};
    Skein__TcpRouteSpec spec = SKEIN__TCP_ROUTE_SPEC__INIT;
    spec.has_port = true;
    spec.port = port;
    spec.to = targets;
    spec.n_to = 2;
    if (change != NULL) {
        change(&spec);
    }
    Skein__TcpRoute route = SKEIN__TCP_ROUTE__INIT;
    route.metadata = &metadata;
    route.spec = &spec;
    char id[64];
    (void)snprintf(id, sizeof(id), "shop/%s", name);
    put("TcpRoute", id, &route.base);
}

static void look(const char *id)
{
    const struct object *object = objects_find(objects, kind_by_name("TcpRoute"), id);
    assert_non_null(object);
    status_fill(routing, NULL, object);
    status = (Skein__TcpRouteStatus *)object->message->status;
    assert_non_null(status);
}

/* ---- tests ---- */

static void a_port_opens_changes_and_closes(void **state)
{
    (void)state;
    put_tcp("db", 5432, NULL);
    routing_flush(routing);
    assert_true(ports[5432].open);
    assert_string_equal(ports[5432].route, "shop/db");
    assert_int_equal(ports[5432].targets, 2);
    assert_int_equal(ports[5432].weight, 7);
    assert_int_equal(ports[5432].attempts, 99);
    look("shop/db");
    assert_true(status->admitted);
    assert_int_equal(status->reason, SKEIN__TCP_ROUTE_STATUS__REASON__Admitted);
    assert_int_equal(status->n_missing_backends, 2);
    assert_string_equal(status->missing_backends[1], "spare");

    put_tcp("db", 5433, NULL);
    routing_flush(routing);
    assert_false(ports[5432].open);
    assert_true(ports[5433].open);

    put("TcpRoute", "shop/db", NULL);
    routing_flush(routing);
    assert_false(ports[5433].open);
    assert_int_equal(removes, 2);
}

static void ask_for_much(Skein__TcpRouteSpec *spec)
{
    static Skein__Duration hour = SKEIN__DURATION__INIT;
    hour.has_ms = true;
    hour.ms = 3600000;
    static Skein__Timeouts timeouts = SKEIN__TIMEOUTS__INIT;
    timeouts.tunnel = timeouts.client_fin = &hour;
    static Skein__TcpRouteLimits limits = SKEIN__TCP_ROUTE_LIMITS__INIT;
    limits.has_connections = true;
    limits.connections = 5;
    static Skein__Retries retries = SKEIN__RETRIES__INIT;
    retries.has_attempts = true;
    retries.attempts = 0;
    static char *allowed[] = {(char *)(uintptr_t) "10.0.0.0/8"};
    spec->timeouts = &timeouts;
    spec->limits = &limits;
    spec->retries = &retries;
    spec->allow_from = allowed;
    spec->n_allow_from = 1;
    spec->has_access_log = true;
    spec->access_log = false;
}

static void policies_are_handed_over(void **state)
{
    (void)state;
    put_tcp("db", 5432, ask_for_much);
    routing_flush(routing);
    assert_int_equal(ports[5432].timeouts.tunnel_ms, 3600000);
    assert_int_equal(ports[5432].timeouts.client_fin_ms, 3600000);
    assert_int_equal(ports[5432].timeouts.connect_ms, 0);
    assert_int_equal(ports[5432].connections_max, 5);
    assert_int_equal(ports[5432].attempts, 0);
    assert_int_equal(ports[5432].allowed, 1);
    assert_true(ports[5432].log_off);
}

static void the_oldest_has_the_port(void **state)
{
    (void)state;
    put_tcp("old", 7000, NULL);
    put_tcp("new", 7000, NULL);
    routing_flush(routing);
    assert_string_equal(ports[7000].route, "shop/old");
    look("shop/new");
    assert_false(status->admitted);
    assert_int_equal(status->reason, SKEIN__TCP_ROUTE_STATUS__REASON__PortAlreadyClaimed);
    assert_string_equal(status->claimed_by, "shop/old");

    put("TcpRoute", "shop/old", NULL);
    routing_flush(routing);
    assert_string_equal(ports[7000].route, "shop/new");
    assert_int_equal(removes, 0); /* it stayed open */
    look("shop/new");
    assert_true(status->admitted);
    assert_null(status->claimed_by);
}

static void a_port_that_is_taken_is_tried_again(void **state)
{
    (void)state;
    refusal = RC_BUSY;
    routing_tcp_own_port(routing, 7946, "cluster.bind");
    put_tcp("db", 7946, NULL);
    put_tcp("other", 7001, NULL);
    routing_flush(routing);
    look("shop/db");
    assert_false(status->admitted);
    assert_int_equal(status->reason, SKEIN__TCP_ROUTE_STATUS__REASON__PortNotAvailable);
    assert_string_equal(status->message,
                        "port 7946 is taken (a port of this node itself: cluster.bind)");
    look("shop/other");
    assert_string_equal(status->message, "port 7001 is taken");
    size_t before = sets;
    refusal = RC_OK;
    for (int i = 0; i < 10 && !ports[7001].open; i++) {
        routing_tcp_tick(routing);
        routing_flush(routing);
    }
    assert_int_equal(sets, before + 2);
    look("shop/db");
    assert_true(status->admitted);
    for (int i = 0; i < 10; i++) {
        routing_tcp_tick(routing);
        routing_flush(routing);
    }
    assert_int_equal(sets, before + 2); /* an open port is left alone */
}

static void without_addresses_it_is_not_tried_again(void **state)
{
    (void)state;
    refusal = RC_UNSUPPORTED;
    put_tcp("db", 5432, NULL);
    routing_flush(routing);
    for (int i = 0; i < 10; i++) {
        routing_tcp_tick(routing);
        routing_flush(routing);
    }
    assert_int_equal(sets, 1);
    look("shop/db");
    assert_int_equal(status->reason, SKEIN__TCP_ROUTE_STATUS__REASON__PortNotAvailable);
}

/* As nodes with other rules may write them. */
static void drop_port(Skein__TcpRouteSpec *spec)
{
    spec->port = 70000;
}

static void rate_by_header(Skein__TcpRouteSpec *spec)
{
    static Skein__RateLimit limit = SKEIN__RATE_LIMIT__INIT;
    limit.has_requests = limit.has_key = true;
    limit.requests = 1;
    limit.key = SKEIN__RATE_LIMIT__KEY__Header;
    limit.header = unconst("x-a");
    spec->rate_limit = &limit;
}

static void what_is_not_understood_is_not_served(void **state)
{
    (void)state;
    put_tcp("bad", 1, drop_port);
    routing_flush(routing);
    look("shop/bad");
    assert_int_equal(status->reason, SKEIN__TCP_ROUTE_STATUS__REASON__Invalid);
    assert_int_equal(sets, 0);

    put_tcp("limited", 6000, NULL);
    routing_flush(routing);
    assert_true(ports[6000].open);
    put_tcp("limited", 6000, rate_by_header);
    routing_flush(routing);
    assert_false(ports[6000].open);
    look("shop/limited");
    assert_false(status->admitted);
    assert_int_equal(status->reason, SKEIN__TCP_ROUTE_STATUS__REASON__Invalid);
    assert_non_null(strstr(status->message, "rateLimit.key"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_port_opens_changes_and_closes, begin, finish),
        cmocka_unit_test_setup_teardown(policies_are_handed_over, begin, finish),
        cmocka_unit_test_setup_teardown(the_oldest_has_the_port, begin, finish),
        cmocka_unit_test_setup_teardown(a_port_that_is_taken_is_tried_again, begin, finish),
        cmocka_unit_test_setup_teardown(without_addresses_it_is_not_tried_again, begin, finish),
        cmocka_unit_test_setup_teardown(what_is_not_understood_is_not_served, begin, finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
