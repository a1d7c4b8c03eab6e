/*
 * What one change of an endpoint costs among many routes: change_bench ROUTES [--marks].
 *
 * ROUTES routes, each with a host, a backend and two endpoints of its own, in the table of objects
 * and in a real data plane with two workers. A change adds a third endpoint to some backend or
 * takes it away again. Timed from the table of objects (routing_change) to the end of
 * routing_flush: by then the set is published and every worker sees it at its next request. The
 * unpacking of the row into the table is timed apart. Prints milliseconds, or between marks
 * (marks.h) does one change for each region.
 */
#include "node/app/objects.h"
#include "node/app/routing.h"
#include "node/base/mem.h"
#include "node/base/rng.h"
#include "node/base/timesrc.h"
#include "tests/bench/marks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHANGES = 500, CHANGES_COUNTED = 6, TEXT_MAX = 96 };

bool marks_on;

static struct objects *objects;
static struct routing *routing;
static uint64_t hlc = 1 << 16;
static uint64_t table_ns[CHANGES];
static uint64_t plane_ns[CHANGES];

static void die(const char *what, const struct err_info *err)
{
    (void)fprintf(stderr, "change_bench: %s: %s\n", what, err != NULL ? err->text : "");
    exit(1);
}

/* message NULL: a deletion. */
static void pack(const char *kind_name, const char *id, const ProtobufCMessage *message,
                 struct row *ret_row)
{
    const struct kind *kind = kind_by_name(kind_name);
    uint8_t *bytes = NULL;
    size_t len = 0;
    struct err_info err;
    if (message != NULL && object_pack(kind, message, &bytes, &len, &err) != RC_OK) {
        die(id, &err);
    }
    hlc += 1 << 16;
    *ret_row = (struct row){.kind = kind->number,
                            .id = id,
                            .id_len = (uint16_t)strlen(id),
                            .hlc = hlc,
                            .created_hlc = hlc,
                            .flags = message == NULL ? ROW_TOMBSTONE : 0,
                            .value = bytes,
                            .value_len = (uint32_t)len};
}

static void take(struct row *row)
{
    struct objects_change change;
    objects_apply(objects, row, &change);
    routing_change(routing, change.now, change.before);
    objects_change_done(&change);
    mem_free(unconst(row->value));
}

static void put_route(size_t number)
{
    char name[TEXT_MAX], id[TEXT_MAX], host[TEXT_MAX], backend[TEXT_MAX];
    (void)snprintf(name, sizeof(name), "r%zu", number);
    (void)snprintf(id, sizeof(id), "bench/r%zu", number);
    (void)snprintf(host, sizeof(host), "app-%zu.apps.example.com", number);
    (void)snprintf(backend, sizeof(backend), "b%zu", number);
    Skein__Metadata metadata = SKEIN__METADATA__INIT;
    metadata.namespace_ = unconst("bench");
    metadata.name = name;
    Skein__Target target = SKEIN__TARGET__INIT;
    target.backend = backend;
    Skein__Target *targets[] = {&target};
    Skein__RouteSpec spec = SKEIN__ROUTE_SPEC__INIT;
    spec.host = host;
    spec.path = unconst("/");
    spec.to = targets;
    spec.n_to = 1;
    Skein__Route route = SKEIN__ROUTE__INIT;
    route.metadata = &metadata;
    route.spec = &spec;
    struct row row;
    pack("Route", id, &route.base, &row);
    take(&row);
}

static void put_backend(size_t number)
{
    char name[TEXT_MAX], id[TEXT_MAX];
    (void)snprintf(name, sizeof(name), "b%zu", number);
    (void)snprintf(id, sizeof(id), "bench/b%zu", number);
    Skein__Metadata metadata = SKEIN__METADATA__INIT;
    metadata.namespace_ = unconst("bench");
    metadata.name = name;
    Skein__BackendSpec spec = SKEIN__BACKEND_SPEC__INIT;
    Skein__Backend backend = SKEIN__BACKEND__INIT;
    backend.metadata = &metadata;
    backend.spec = &spec;
    struct row row;
    pack("Backend", id, &backend.base, &row);
    take(&row);
}

/* The row of one endpoint; id is filled and must outlive it. */
static void endpoint_row(size_t number, unsigned host, bool live, char id[TEXT_MAX],
                         struct row *ret_row)
{
    char name[TEXT_MAX], address[TEXT_MAX], backend[TEXT_MAX];
    (void)snprintf(backend, sizeof(backend), "b%zu", number);
    (void)snprintf(address, sizeof(address), "127.0.0.%u:9", host);
    (void)snprintf(name, sizeof(name), "%s/%s", backend, address);
    (void)snprintf(id, TEXT_MAX, "bench/%s", name);
    Skein__Metadata metadata = SKEIN__METADATA__INIT;
    metadata.namespace_ = unconst("bench");
    metadata.name = name;
    Skein__EndpointSpec spec = SKEIN__ENDPOINT_SPEC__INIT;
    spec.backend = backend;
    spec.address = address;
    Skein__Endpoint endpoint = SKEIN__ENDPOINT__INIT;
    endpoint.metadata = &metadata;
    endpoint.spec = &spec;
    pack("Endpoint", id, live ? &endpoint.base : NULL, ret_row);
}

static void build(size_t routes)
{
    for (size_t i = 0; i < routes; i++) {
        put_backend(i);
        for (unsigned host = 1; host <= 2; host++) {
            char id[TEXT_MAX];
            struct row row;
            endpoint_row(i, host, true, id, &row);
            take(&row);
        }
        put_route(i);
    }
}

/* One change from the row to the workers. */
static void change(size_t backend, bool live, uint64_t *ret_table_ns, uint64_t *ret_plane_ns)
{
    char id[TEXT_MAX];
    struct row row;
    endpoint_row(backend, 3, live, id, &row);
    struct objects_change what;
    uint64_t start = time_mono_ns();
    objects_apply(objects, &row, &what);
    uint64_t applied = time_mono_ns();
    mark();
    routing_change(routing, what.now, what.before);
    objects_change_done(&what);
    routing_flush(routing);
    mark();
    uint64_t flushed = time_mono_ns();
    *ret_table_ns = applied - start;
    *ret_plane_ns = flushed - applied;
    mem_free(unconst(row.value));
}

static int by_value(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

static double ms_at(const uint64_t *sorted, size_t idx)
{
    return (double)sorted[idx] / 1e6;
}

static void measure(struct proxy *proxy, size_t routes)
{
    struct rng rng;
    rng_init(&rng, 1);
    size_t changes = marks_on ? CHANGES_COUNTED : CHANGES;
    size_t backend = 0;
    if (marks_on) {
        mark();
        mark();
    }
    for (size_t i = 0; i < changes; i++) {
        if (i % 2 == 0) {
            backend = (size_t)rng_below(&rng, routes);
        }
        change(backend, i % 2 == 0, &table_ns[i], &plane_ns[i]);
        proxy_reclaim(proxy);
    }
    qsort(table_ns, changes, sizeof(table_ns[0]), by_value);
    qsort(plane_ns, changes, sizeof(plane_ns[0]), by_value);
    if (!marks_on) {
        printf("{\"routes\": %zu, \"changes\": %zu, \"table_median_ms\": %.4f, "
               "\"table_worst_ms\": %.4f, \"plane_median_ms\": %.4f, \"plane_p99_ms\": %.4f, "
               "\"plane_worst_ms\": %.4f}\n",
               routes, changes, ms_at(table_ns, changes / 2), ms_at(table_ns, changes - 1),
               ms_at(plane_ns, changes / 2), ms_at(plane_ns, changes * 99 / 100),
               ms_at(plane_ns, changes - 1));
    }
}

int main(int argc, char **argv)
{
    size_t routes = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
    marks_on = argc > 2 && strcmp(argv[2], "--marks") == 0;
    if (routes == 0 || routes > 200000) {
        (void)fputs("usage: change_bench ROUTES [--marks]\n", stderr);
        return 64;
    }
    struct addr listen;
    struct err_info err = {0};
    if (addr_parse("127.0.0.1:0", &listen, &err) != RC_OK) {
        die("address", &err);
    }
    const struct proxy_config config = {
        .http = &listen,
        .http_count = 1,
        .workers = 2,
        .node_name = "bench",
        .access_log = "off",
        .defaults =
            {
                .timeouts = {.connect_ms = 5000,
                             .client_ms = 30000,
                             .server_ms = 30000,
                             .tunnel_ms = 3600000,
                             .client_header_ms = 10000,
                             .keepalive_ms = 300000},
                .header_bytes_max = 32768,
                .header_count_max = 128,
                .uri_bytes_max = 8192,
                .retries_max = 2,
                .idle_per_endpoint_max = 64,
            },
    };
    struct proxy *proxy = NULL;
    if (proxy_start(&config, &proxy, &err) != RC_OK || proxy_serve(proxy, &err) != RC_OK) {
        die("data plane", &err);
    }
    objects = objects_new();
    routing = routing_new();
    build(routes);
    routing_attach(routing, proxy);
    measure(proxy, routes);
    routing_free(routing);
    proxy_free(proxy);
    objects_free(objects);
    return 0;
}
