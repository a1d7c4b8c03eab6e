/*
 * The catalog: registries of routes and backends, and their metrics; see catalog.h.
 */
#include "node/proxy/catalog.h"

#include "node/base/mem.h"
#include "node/proxy/limiter.h"

#include <utlist.h>

void catalog_init(struct catalog *catalog, size_t slot_count)
{
    *catalog = (struct catalog){.slot_count = slot_count};
    qsbr_init(&catalog->qsbr, slot_count);
    hosts_init(&catalog->hosts, catalog);
}

void catalog_deinit(struct catalog *catalog)
{
    hosts_deinit(&catalog->hosts);
    qsbr_flush(&catalog->qsbr);
    /* Those that their owner still refers to: nobody can do that any more. */
    while (catalog->backends != NULL) {
        backend_destroy(catalog->backends);
    }
    qsbr_deinit(&catalog->qsbr);
    ASSERT(catalog->routes == NULL);
    limiter_free(catalog->limiter);
    catalog->limiter = NULL;
}

struct route *catalog_route(struct catalog *catalog, const char *name)
{
    struct route *route = NULL;
    HASH_FIND_STR(catalog->routes, name, route);
    if (route == NULL) {
        route = mem_new(sizeof(*route));
        route->name = mem_strdup(name);
        route->slots = mem_lines(MAX(catalog->slot_count, (size_t)1) * sizeof(struct traffic));
        HASH_ADD_KEYPTR(hh, catalog->routes, route->name, strlen(route->name), route);
    }
    route->users++;
    return route;
}

void catalog_route_put(struct catalog *catalog, struct route *route)
{
    ASSERT(route->users != 0);
    if (--route->users != 0) {
        return;
    }
    HASH_DEL(catalog->routes, route);
    mem_free(route->slots);
    mem_free(route->name);
    mem_free(route);
}

void catalog_endpoint_gone(struct catalog *catalog, struct endpoint *endpoint)
{
    if (atomic_exchange_explicit(&endpoint->gone, true, memory_order_acq_rel)) {
        return;
    }
    if (catalog->on_gone != NULL) {
        catalog->on_gone(catalog->ctx, endpoint);
    }
}

/* Names come from objects and hold no quotes, but nobody checked that here. */
static void put_label(struct buf *out, const char *text)
{
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == '"' || *p == '\\') {
            (void)buf_putc(out, '\\');
        }
        (void)buf_putc(out, *p == '\n' ? ' ' : *p);
    }
}

static void put_type(struct buf *out, const char *metric, const char *type, const char *help)
{
    (void)buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", metric, help, metric, type);
}

static void format_routes(const struct catalog *catalog, struct buf *out)
{
    put_type(out, "skein_route_responses_total", "counter", "Responses by route and class");
    struct buf label;
    buf_init(&label, 4096);
    for (const struct route *route = catalog->routes; route != NULL; route = route->hh.next) {
        struct traffic sum = {0};
        for (size_t i = 0; i < catalog->slot_count; i++) {
            traffic_add(&sum, &route->slots[i]);
        }
        buf_reset(&label);
        (void)buf_puts(&label, "route=\"");
        put_label(&label, route->name);
        (void)buf_putc(&label, '"');
        traffic_format_responses(&sum, "skein_route_responses_total", label.data, out);
    }
    buf_deinit(&label);
}

static void put_backend_label(struct buf *label, const struct backend *backend)
{
    buf_reset(label);
    (void)buf_puts(label, "backend=\"");
    put_label(label, backend->name);
    (void)buf_putc(label, '"');
}

static void format_backend_responses(const struct catalog *catalog, struct buf *out)
{
    put_type(out, "skein_backend_responses_total", "counter", "Responses by backend and class");
    struct buf label;
    buf_init(&label, 4096);
    const struct backend *backend;
    DL_FOREACH (catalog->backends, backend) {
        struct traffic sum = {0};
        for (size_t i = 0; i < catalog->slot_count; i++) {
            traffic_add(&sum, &backend->slots[i].traffic);
        }
        put_backend_label(&label, backend);
        traffic_format_responses(&sum, "skein_backend_responses_total", label.data, out);
    }
    buf_deinit(&label);
}

static void format_backend_counters(const struct catalog *catalog, struct buf *out)
{
    static const struct {
        const char *metric;
        const char *help;
        size_t offset;
    } rows[] = {
        {"skein_backend_connect_errors_total", "Connects that failed or timed out",
         offsetof(struct backend_slot, connect_errors)},
        {"skein_backend_response_errors_total", "Responses that were malformed, late or cut",
         offsetof(struct backend_slot, response_errors)},
        {"skein_backend_connections_reused_total", "Requests sent on a pooled connection",
         offsetof(struct backend_slot, reused)},
        {"skein_backend_retries_total", "Requests sent again, here or to another endpoint",
         offsetof(struct backend_slot, retries)},
    };
    struct buf label;
    buf_init(&label, 4096);
    for (size_t row = 0; row < ARRAY_LEN(rows); row++) {
        put_type(out, rows[row].metric, "counter", rows[row].help);
        const struct backend *backend;
        DL_FOREACH (catalog->backends, backend) {
            uint64_t sum = 0;
            for (size_t i = 0; i < catalog->slot_count; i++) {
                const char *slot = (const char *)&backend->slots[i];
                sum +=
                    counter_read((const struct counter *)(const void *)(slot + rows[row].offset));
            }
            put_backend_label(&label, backend);
            (void)buf_printf(out, "%s{%s} %llu\n", rows[row].metric, label.data,
                             (unsigned long long)sum);
        }
    }
    buf_deinit(&label);
}

static void format_endpoints(const struct catalog *catalog, struct buf *out)
{
    struct buf label;
    buf_init(&label, 4096);
    for (int part = 0; part < 2; part++) {
        if (part == 0) {
            put_type(out, "skein_endpoint_responses_total", "counter",
                     "Responses by endpoint and class");
        } else {
            put_type(out, "skein_endpoint_in_flight", "gauge", "Exchanges under way");
        }
        const struct backend *backend;
        DL_FOREACH (catalog->backends, backend) {
            const struct endpoint_set *set =
                atomic_load_explicit(&backend->set, memory_order_relaxed);
            for (uint32_t i = 0; i < set->count; i++) {
                const struct endpoint *endpoint = set->entries[i].endpoint;
                put_backend_label(&label, backend);
                (void)buf_printf(&label, ",endpoint=\"%s\"", endpoint->text);
                if (part == 1) {
                    (void)buf_printf(out, "skein_endpoint_in_flight{%s} %u\n", label.data,
                                     endpoint_load(endpoint));
                    continue;
                }
                struct traffic sum = {0};
                for (size_t j = 0; j < catalog->slot_count; j++) {
                    traffic_add(&sum, &endpoint->slots[j].traffic);
                }
                traffic_format_responses(&sum, "skein_endpoint_responses_total", label.data, out);
            }
        }
    }
    buf_deinit(&label);
}

void catalog_metrics(const struct catalog *catalog, struct buf *out)
{
    format_routes(catalog, out);
    format_backend_responses(catalog, out);
    format_backend_counters(catalog, out);
    format_endpoints(catalog, out);
}
