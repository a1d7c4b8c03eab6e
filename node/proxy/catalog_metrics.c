/*
 * Series of routes, backends and endpoints; see catalog.h.
 *
 * A node may have 100,000 routes, and no store of metrics wants 25 series for each of them. So
 * there is a budget for each kind: the first ones get all series; from half of the budget on, what
 * has traffic gets its counters while its times are summed up in one thing called "(other)"; beyond
 * the budget its counters are, too. A share once decided stays, and what folded things had counted
 * stays in "(other)" when they go, so that no counter ever falls. Routes beyond the budget count
 * into one slot of the worker, so they cost neither memory nor time here. Backends have their
 * counters anyway and are added up, SERIES_FOLDED_MAX of them; more are left out. Endpoints beyond
 * their budget have no series: their backend counts the same.
 *
 * One pass sums up, then each family is written in one run, as the format wants it.
 */
#include "node/base/mem.h"
#include "node/proxy/catalog.h"
#include "node/proxy/stats_text.h"

#include <utlist.h>

enum {
    CLASSES = 6,
    HISTOGRAM_SERIES = HISTOGRAM_BOUNDS + 3, /* buckets, sum, count */
    ENDPOINT_SERIES = 8,
};

struct counter_row {
    const char *metric;
    const char *help;
    size_t offset; /* in the worker's slot */
    bool rare;     /* no series while it is 0 */
};

struct times_row {
    const char *metric;
    const char *help;
};

/* The families of one kind of thing. */
struct kind_row {
    const char *label;
    const char *metrics[3]; /* responses, bytes in, bytes out */
    const char *help[3];
    const struct counter_row *counters;
    size_t counter_count;
    size_t reserve; /* series without times that one usually has */
    const struct times_row *times;
    size_t times_count;
};

static const struct times_row route_times[] = {
    {"skein_route_duration_seconds", "From the first byte of a request to the end of its response"},
};

static const struct counter_row route_counters[] = {
    {"skein_route_connections_total", "Connections of TCP routes that are over",
     offsetof(struct route_slot, connections), true},
    {"skein_route_connection_failures_total", "Connections of TCP routes that no endpoint took",
     offsetof(struct route_slot, failures), true},
};

static const struct kind_row route_kind = {
    .label = "route",
    .counters = route_counters,
    .counter_count = ARRAY_LEN(route_counters),
    .reserve = 6,
    .metrics = {"skein_route_responses_total", "skein_route_request_bytes_total",
                "skein_route_response_bytes_total"},
    .help = {"Responses by route and class", "Request bodies by route", "Response bodies by route"},
    .times = route_times,
    .times_count = ARRAY_LEN(route_times),
};

static const struct counter_row backend_counters[] = {
    {"skein_backend_connect_errors_total", "Connects that failed or timed out",
     offsetof(struct backend_slot, connect_errors), false},
    {"skein_backend_response_errors_total", "Responses that were malformed, late or cut",
     offsetof(struct backend_slot, response_errors), false},
    {"skein_backend_connections_reused_total", "Requests sent on a pooled connection",
     offsetof(struct backend_slot, reused), false},
    {"skein_backend_retries_total", "Requests sent again, here or to another endpoint",
     offsetof(struct backend_slot, retries), false},
    {"skein_backend_retries_refused_total", "Repetitions that the budget did not allow",
     offsetof(struct backend_slot, retries_refused), false},
    {"skein_backend_queued_total", "Requests that had to wait for an endpoint",
     offsetof(struct backend_slot, queued), false},
    {"skein_backend_queue_refused_total", "Requests for which the queue had no room",
     offsetof(struct backend_slot, queue_refused), false},
    {"skein_backend_queue_timeouts_total", "Requests that waited in vain",
     offsetof(struct backend_slot, queue_timeouts), false},
    {"skein_backend_connects_raced_total", "Slow connects that were raced by another",
     offsetof(struct backend_slot, raced), false},
    {"skein_backend_tls_full_total", "TLS handshakes with endpoints that made a new session",
     offsetof(struct backend_slot, tls_full), true},
    {"skein_backend_tls_resumed_total", "TLS handshakes with endpoints that resumed a session",
     offsetof(struct backend_slot, tls_resumed), true},
    {"skein_backend_tls_failed_total", "TLS handshakes with endpoints that failed",
     offsetof(struct backend_slot, tls_failed), true},
};
_Static_assert(ARRAY_LEN(backend_counters) <= CATALOG_COUNTERS_MAX, "room for each");

static const struct times_row backend_times_rows[] = {
    {"skein_backend_connect_seconds", "Connects to endpoints that were accepted"},
    {"skein_backend_response_seconds", "From a request sent to the head of its response"},
};

static const struct kind_row backend_kind = {
    .label = "backend",
    .reserve = 22,
    .metrics = {"skein_backend_responses_total", "skein_backend_request_bytes_total",
                "skein_backend_response_bytes_total"},
    .help = {"Responses by backend and class", "Request bodies by backend",
             "Response bodies by backend"},
    .counters = backend_counters,
    .counter_count = ARRAY_LEN(backend_counters),
    .times = backend_times_rows,
    .times_count = ARRAY_LEN(backend_times_rows),
};

/* What is written: one thing with its sums. */
struct shown {
    struct buf label;
    bool times;
    struct catalog_sum sum;
};

struct sheet {
    struct shown *items;
    size_t count;
    size_t size;
    struct catalog_sum other;
};

/* ---- the budget ---- */

static size_t times_cost(const struct kind_row *kind)
{
    return kind->times_count * HISTOGRAM_SERIES;
}

/* All series, when half of the budget has room for them. */
static bool claim_all(struct series_budget *budget, const struct kind_row *kind)
{
    size_t cost = kind->reserve + times_cost(kind);
    if (atomic_load(&budget->used) + cost > budget->max / 2) {
        return false;
    }
    (void)atomic_fetch_add(&budget->used, cost); /* others take what is beyond the half */
    return true;
}

/* Counters, when there is room for them. */
static enum series_share claim_counters(struct series_budget *budget, const struct kind_row *kind)
{
    atomic_store(&budget->overflowed, true);
    size_t used = atomic_load(&budget->used);
    while (used + kind->reserve <= budget->max) {
        if (atomic_compare_exchange_weak(&budget->used, &used, used + kind->reserve)) {
            (void)atomic_fetch_add(&budget->folded_times, 1);
            return SERIES_COUNTERS;
        }
    }
    (void)atomic_fetch_add(&budget->folded, 1);
    return SERIES_NONE;
}

/* It has none any more. */
static void give_back(struct series_budget *budget, const struct kind_row *kind,
                      enum series_share share)
{
    switch (share) {
    case SERIES_UNDECIDED:
        return;
    case SERIES_ALL:
        (void)atomic_fetch_sub(&budget->used, kind->reserve + times_cost(kind));
        return;
    case SERIES_COUNTERS:
        (void)atomic_fetch_sub(&budget->used, kind->reserve);
        (void)atomic_fetch_sub(&budget->folded_times, 1);
        return;
    case SERIES_NONE:
        (void)atomic_fetch_sub(&budget->folded, 1);
        return;
    case SERIES_LEFT_OUT:
        (void)atomic_fetch_sub(&budget->left_out, 1);
        return;
    }
}

enum series_share catalog_metrics_claim(struct series_budget *budget)
{
    return claim_all(budget, &route_kind) ? SERIES_ALL : SERIES_UNDECIDED;
}

enum series_share catalog_metrics_decide(struct route *route)
{
    struct series_budget *budget = &route->catalog->route_series;
    unsigned share = atomic_load(&route->share);
    if (share != SERIES_UNDECIDED) {
        return (enum series_share)share;
    }
    enum series_share ours = claim_counters(budget, &route_kind);
    if (atomic_compare_exchange_strong(&route->share, &share, ours)) {
        return ours;
    }
    give_back(budget, &route_kind, ours); /* another worker was faster */
    return (enum series_share)share;
}

static enum series_share decide_backend(struct series_budget *budget, bool active)
{
    if (claim_all(budget, &backend_kind)) {
        return SERIES_ALL;
    }
    if (!active) {
        return SERIES_UNDECIDED;
    }
    if (atomic_load(&budget->folded) >= SERIES_FOLDED_MAX) {
        (void)atomic_fetch_add(&budget->left_out, 1);
        return SERIES_LEFT_OUT;
    }
    return claim_counters(budget, &backend_kind);
}

static void merge_counters(struct catalog_sum *sum, const struct catalog_sum *part)
{
    traffic_merge(&sum->traffic, &part->traffic);
    for (size_t i = 0; i < CATALOG_COUNTERS_MAX; i++) {
        counter_add(&sum->counters[i], counter_read(&part->counters[i]));
    }
}

static void merge_times(struct catalog_sum *sum, const struct catalog_sum *part)
{
    for (size_t i = 0; i < CATALOG_TIMES_MAX; i++) {
        histogram_merge(&sum->times[i], &part->times[i]);
    }
}

/* ---- sums ---- */

static void add_route_slot(struct catalog_sum *sum, const struct route_slot *slot)
{
    traffic_merge(&sum->traffic, &slot->traffic);
    histogram_merge(&sum->times[0], &slot->duration);
    counter_add(&sum->counters[0], counter_read(&slot->connections));
    counter_add(&sum->counters[1], counter_read(&slot->failures));
}

static void sum_route(const struct catalog *catalog, const struct route *route,
                      struct catalog_sum *sum)
{
    *sum = (struct catalog_sum){0};
    for (size_t i = 0; i < catalog->slot_count; i++) {
        const struct route_slot *slot =
            atomic_load_explicit(&route->slots[i], memory_order_acquire);
        if (slot != NULL) {
            add_route_slot(sum, slot);
        }
    }
}

static void sum_backend(const struct backend *backend, struct catalog_sum *sum)
{
    *sum = (struct catalog_sum){0};
    for (size_t i = 0; i < backend->slot_count; i++) {
        const struct backend_slot *slot = &backend->slots[i];
        traffic_merge(&sum->traffic, &slot->traffic);
        for (size_t row = 0; row < ARRAY_LEN(backend_counters); row++) {
            const void *at = (const char *)slot + backend_counters[row].offset;
            counter_add(&sum->counters[row], counter_read(at));
        }
        const struct backend_times *times =
            atomic_load_explicit(&slot->times, memory_order_acquire);
        if (times != NULL) {
            histogram_merge(&sum->times[0], &times->connect);
            histogram_merge(&sum->times[1], &times->response);
        }
    }
}

void catalog_metrics_forget_route(struct catalog *catalog, const struct route *route)
{
    enum series_share share = (enum series_share)atomic_load(&route->share);
    if (share == SERIES_COUNTERS) {
        struct catalog_sum sum;
        sum_route(catalog, route, &sum);
        merge_times(&catalog->route_series.gone, &sum);
    }
    give_back(&catalog->route_series, &route_kind, share);
}

void catalog_metrics_forget_backend(struct catalog *catalog, const struct backend *backend)
{
    struct series_budget *budget = &catalog->backend_series;
    enum series_share share = (enum series_share)backend->series_share;
    struct catalog_sum sum;
    sum_backend(backend, &sum);
    if (share == SERIES_NONE) {
        merge_counters(&budget->gone, &sum);
    }
    if (share == SERIES_NONE || share == SERIES_COUNTERS) {
        merge_times(&budget->gone, &sum);
    }
    give_back(budget, &backend_kind, share);
}

/* ---- writing ---- */

static void show(struct sheet *sheet, const struct kind_row *kind, const char *name, bool times,
                 const struct catalog_sum *sum)
{
    if (sheet->count == sheet->size) {
        sheet->size = MAX(sheet->size * 2, (size_t)64);
        sheet->items = mem_grow(sheet->items, sheet->size, sizeof(*sheet->items));
    }
    struct shown *item = &sheet->items[sheet->count++];
    item->times = times;
    item->sum = *sum;
    buf_init(&item->label, 8192);
    text_label(&item->label, kind->label, name);
}

/* Show it as its share says. */
static void show_shared(struct sheet *sheet, const struct kind_row *kind, const char *name,
                        enum series_share share, const struct catalog_sum *sum)
{
    if (share == SERIES_NONE) {
        merge_counters(&sheet->other, sum);
    }
    if (share == SERIES_NONE || share == SERIES_COUNTERS) {
        merge_times(&sheet->other, sum);
    }
    if (share == SERIES_ALL || share == SERIES_COUNTERS) {
        show(sheet, kind, name, share == SERIES_ALL, sum);
    }
}

static void put_responses(const struct sheet *sheet, const char *metric, struct buf *out)
{
    for (size_t i = 0; i < sheet->count; i++) {
        const struct traffic *traffic = &sheet->items[i].sum.traffic;
        for (size_t j = 0; j < CLASSES; j++) {
            uint64_t value = counter_read(&traffic->responses[j]);
            if (value != 0 || j == 2) {
                text_series(out, metric, &sheet->items[i].label, traffic_classes[j], value);
            }
        }
    }
}

/* One family with the counter at this offset of each thing. */
static void put_counters(const struct sheet *sheet, const struct counter_row *row, size_t offset,
                         struct buf *out)
{
    text_family(out, row->metric, "counter", row->help);
    for (size_t i = 0; i < sheet->count; i++) {
        const void *at = (const char *)&sheet->items[i].sum + offset;
        uint64_t value = counter_read(at);
        if (value != 0 || !row->rare) {
            text_series(out, row->metric, &sheet->items[i].label, "", value);
        }
    }
}

static void put_sheet(struct sheet *sheet, const struct kind_row *kind, struct buf *out)
{
    text_family(out, kind->metrics[0], "counter", kind->help[0]);
    put_responses(sheet, kind->metrics[0], out);
    const struct counter_row in = {kind->metrics[1], kind->help[1], 0, false};
    const struct counter_row bytes_out = {kind->metrics[2], kind->help[2], 0, false};
    put_counters(sheet, &in, offsetof(struct catalog_sum, traffic.bytes_in), out);
    put_counters(sheet, &bytes_out, offsetof(struct catalog_sum, traffic.bytes_out), out);
    for (size_t row = 0; row < kind->counter_count; row++) {
        put_counters(sheet, &kind->counters[row],
                     offsetof(struct catalog_sum, counters) + row * sizeof(struct counter), out);
    }
    for (size_t row = 0; row < kind->times_count; row++) {
        text_family(out, kind->times[row].metric, "histogram", kind->times[row].help);
        for (size_t i = 0; i < sheet->count; i++) {
            if (sheet->items[i].times) {
                text_histogram(out, kind->times[row].metric, &sheet->items[i].label,
                               &sheet->items[i].sum.times[row]);
            }
        }
    }
    for (size_t i = 0; i < sheet->count; i++) {
        buf_deinit(&sheet->items[i].label);
    }
    mem_free(sheet->items);
}

static void format_routes(struct catalog *catalog, struct buf *out)
{
    struct series_budget *budget = &catalog->route_series;
    struct sheet sheet = {.other = budget->gone};
    for (const struct route *route = catalog->routes; route != NULL; route = route->hh.next) {
        unsigned share = atomic_load(&route->share);
        if (share == SERIES_ALL || share == SERIES_COUNTERS) {
            struct catalog_sum sum;
            sum_route(catalog, route, &sum);
            show_shared(&sheet, &route_kind, route->name, (enum series_share)share, &sum);
        }
    }
    if (atomic_load(&budget->overflowed)) {
        for (size_t i = 0; i < catalog->slot_count; i++) {
            add_route_slot(&sheet.other, catalog->other_slots[i]);
        }
        show(&sheet, &route_kind, "(other)", true, &sheet.other);
    }
    put_sheet(&sheet, &route_kind, out);
}

static void format_backends(struct catalog *catalog, struct buf *out)
{
    struct series_budget *budget = &catalog->backend_series;
    struct sheet sheet = {.other = budget->gone};
    struct backend *backend;
    DL_FOREACH (catalog->backends, backend) {
        if (backend->series_share == SERIES_LEFT_OUT) {
            continue;
        }
        bool touched = atomic_load_explicit(&backend->touched, memory_order_relaxed);
        if (backend->series_share == SERIES_UNDECIDED) {
            backend->series_share = decide_backend(budget, touched);
        }
        struct catalog_sum sum = {0};
        if (touched) {
            sum_backend(backend, &sum);
        }
        show_shared(&sheet, &backend_kind, backend->name, (enum series_share)backend->series_share,
                    &sum);
    }
    if (atomic_load(&budget->overflowed)) {
        show(&sheet, &backend_kind, "(other)", true, &sheet.other);
    }
    put_sheet(&sheet, &backend_kind, out);
}

/* ---- endpoints ---- */

enum endpoint_part {
    ENDPOINT_RESPONSES = 0,
    ENDPOINT_CONNECT_FAILURES,
    ENDPOINT_IN_FLIGHT,
    ENDPOINT_UP,
    ENDPOINT_PARTS
};

static void put_endpoint(const struct endpoint *endpoint, enum endpoint_part part,
                         const char *metric, const struct buf *label, struct buf *out)
{
    if (part == ENDPOINT_IN_FLIGHT) {
        text_series(out, metric, label, "", endpoint_load(endpoint));
        return;
    }
    if (part == ENDPOINT_UP) {
        text_series(out, metric, label, "", (endpoint_flags(endpoint) & ENDPOINT_OUT) == 0);
        return;
    }
    if (part == ENDPOINT_CONNECT_FAILURES) {
        text_series(out, metric, label, "",
                    atomic_load_explicit(&endpoint->connect_failures, memory_order_relaxed));
        return;
    }
    struct traffic sum = {0};
    for (size_t i = 0; i < endpoint->slot_count; i++) {
        traffic_merge(&sum, &endpoint->slots[i].traffic);
    }
    for (size_t i = 0; i < CLASSES; i++) {
        uint64_t value = counter_read(&sum.responses[i]);
        if (value != 0 || i == 2) {
            text_series(out, metric, label, traffic_classes[i], value);
        }
    }
}

static size_t endpoint_count(const struct backend *backend)
{
    return atomic_load_explicit(&backend->set, memory_order_relaxed)->count;
}

static void put_endpoints(const struct backend *backend, enum endpoint_part part,
                          const char *metric, struct buf *label, struct buf *out)
{
    const struct endpoint_set *set = atomic_load_explicit(&backend->set, memory_order_relaxed);
    for (uint32_t i = 0; i < set->count; i++) {
        buf_reset(label);
        text_label(label, "backend", backend->name);
        text_label(label, "endpoint", set->entries[i].endpoint->text);
        put_endpoint(set->entries[i].endpoint, part, metric, label, out);
    }
}

/* Returns how many have no series. */
static size_t format_endpoints(const struct catalog *catalog, struct buf *out)
{
    static const struct {
        const char *metric;
        const char *type;
        const char *help;
    } parts[ENDPOINT_PARTS] = {
        [ENDPOINT_RESPONSES] = {"skein_endpoint_responses_total", "counter",
                                "Responses by endpoint and class"},
        [ENDPOINT_CONNECT_FAILURES] = {"skein_endpoint_connect_failures_total", "counter",
                                       "Connects that failed or timed out"},
        [ENDPOINT_IN_FLIGHT] = {"skein_endpoint_in_flight", "gauge",
                                "Exchanges and TCP connections under way"},
        [ENDPOINT_UP] = {"skein_endpoint_up", "gauge", "0: checks found it down, or it is ejected"},
    };
    struct buf label;
    buf_init(&label, 8192);
    /* Those in front, as far as the budget goes. */
    const struct backend *end = catalog->backends;
    size_t used = 0;
    for (; end != NULL; end = end->next) {
        used += endpoint_count(end) * ENDPOINT_SERIES;
        if (used > catalog->endpoint_series_max) {
            break;
        }
    }
    for (size_t part = 0; part < ENDPOINT_PARTS; part++) {
        text_family(out, parts[part].metric, parts[part].type, parts[part].help);
        for (const struct backend *at = catalog->backends; at != end; at = at->next) {
            put_endpoints(at, (enum endpoint_part)part, parts[part].metric, &label, out);
        }
    }
    size_t folded = 0;
    for (const struct backend *at = end; at != NULL; at = at->next) {
        folded += endpoint_count(at);
    }
    buf_deinit(&label);
    return folded;
}

void catalog_metrics(struct catalog *catalog, struct buf *out)
{
    static const struct buf no_labels;
    static const char metric[] = "skein_metrics_folded";
    format_routes(catalog, out);
    format_backends(catalog, out);
    catalog_metrics_state(catalog, out);
    size_t endpoints = format_endpoints(catalog, out);
    const struct series_budget *routes = &catalog->route_series;
    const struct series_budget *backends = &catalog->backend_series;
    text_family(out, metric, "gauge",
                "Things without series of their own; \"(other)\" is their sum, but for endpoints");
    text_series(out, metric, &no_labels, "kind=\"route\"", atomic_load(&routes->folded));
    text_series(out, metric, &no_labels, "kind=\"route_times\"",
                atomic_load(&routes->folded) + atomic_load(&routes->folded_times));
    text_series(out, metric, &no_labels, "kind=\"backend\"", atomic_load(&backends->folded));
    text_series(out, metric, &no_labels, "kind=\"backend_times\"",
                atomic_load(&backends->folded) + atomic_load(&backends->folded_times));
    text_series(out, metric, &no_labels, "kind=\"backend_left_out\"",
                atomic_load(&backends->left_out));
    text_series(out, metric, &no_labels, "kind=\"endpoint\"", endpoints);
}
