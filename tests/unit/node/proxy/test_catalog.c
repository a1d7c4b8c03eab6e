/*
 * Routes and backends as series: budgets, what is folded, and that no counter ever falls.
 */
#include "node/proxy/catalog.h"
#include "tests/support/unit.h"

static struct catalog catalog;
static struct buf out;

enum { WORKERS = 2 };

static const char *render(void)
{
    buf_deinit(&out);
    buf_init(&out, 1 << 26);
    catalog_metrics(&catalog, &out);
    assert_false(out.full);
    return out.data;
}

/* The value of a series, -1: there is none. */
static long value(const char *series)
{
    const char *at = out.data;
    size_t len = strlen(series);
    while ((at = strstr(at, series)) != NULL) {
        if ((at == out.data || at[-1] == '\n') && at[len] == ' ') {
            return strtol(at + len, NULL, 10);
        }
        at += len;
    }
    return -1;
}

/* Responses of class 2xx. */
static long route_value(unsigned number)
{
    char series[160];
    (void)snprintf(series, sizeof(series),
                   "skein_route_responses_total{route=\"ns/r%u\",code=\"2xx\"}", number);
    return value(series);
}

static struct route *route_make(unsigned number)
{
    char name[32];
    (void)snprintf(name, sizeof(name), "ns/r%u", number);
    return catalog_route(&catalog, name);
}

static void request(struct route *route, size_t worker, uint64_t ns)
{
    struct route_slot *slot = route_slot(route, worker);
    traffic_count(&slot->traffic, 2, 10, 100);
    histogram_add(&slot->duration, histogram_bucket(ns), ns);
}

static int setup(void **state)
{
    (void)state;
    catalog_init(&catalog, WORKERS);
    buf_init(&out, 1);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    catalog_deinit(&catalog);
    buf_deinit(&out);
    return 0;
}

static void test_routes_and_workers_add_up(void **state)
{
    (void)state;
    struct route *route = route_make(1);
    assert_null(atomic_load(&route->slots[0])); /* nothing is held for an idle one */
    (void)render();
    assert_int_equal(value("skein_route_responses_total{route=\"ns/r1\",code=\"2xx\"}"), 0);
    request(route, 0, 400000);
    request(route, 1, 400000);
    request(route, 1, 7000000000);
    counter_add(&route_slot(route, 0)->connections, 4);
    (void)render();
    assert_int_equal(value("skein_route_responses_total{route=\"ns/r1\",code=\"2xx\"}"), 3);
    assert_int_equal(value("skein_route_request_bytes_total{route=\"ns/r1\"}"), 30);
    assert_int_equal(value("skein_route_response_bytes_total{route=\"ns/r1\"}"), 300);
    assert_int_equal(value("skein_route_duration_seconds_bucket{route=\"ns/r1\",le=\"0.0005\"}"),
                     2);
    assert_int_equal(value("skein_route_duration_seconds_bucket{route=\"ns/r1\",le=\"5\"}"), 2);
    assert_int_equal(value("skein_route_duration_seconds_bucket{route=\"ns/r1\",le=\"10\"}"), 3);
    assert_int_equal(value("skein_route_duration_seconds_bucket{route=\"ns/r1\",le=\"+Inf\"}"), 3);
    assert_int_equal(value("skein_route_duration_seconds_count{route=\"ns/r1\"}"), 3);
    assert_non_null(strstr(out.data, "skein_route_duration_seconds_sum{route=\"ns/r1\"} "
                                     "7.000800000\n"));
    assert_int_equal(value("skein_route_connections_total{route=\"ns/r1\"}"), 4);
    assert_int_equal(value("skein_metrics_folded{kind=\"route\"}"), 0);
    assert_null(strstr(out.data, "=\"(other)\""));
    catalog_route_put(&catalog, route);
}

enum { ROUTES = 40 };

static void test_what_is_over_the_budget_is_summed_up(void **state)
{
    (void)state;
    struct route *routes[ROUTES];
    catalog.route_series.max = 100; /* two with everything, eight with counters */
    for (unsigned i = 0; i < ROUTES; i++) {
        routes[i] = route_make(i);
    }
    (void)render(); /* the first ones get series before they have requests */
    assert_int_equal(route_value(1), 0);
    assert_int_equal(route_value(9), -1);
    for (unsigned i = 0; i < ROUTES; i++) {
        request(routes[i], i % WORKERS, 1000);
    }
    (void)render();
    size_t shown = 0;
    size_t timed = 0;
    for (unsigned i = 0; i < ROUTES; i++) {
        unsigned share = atomic_load(&routes[i]->share);
        shown += share == SERIES_ALL || share == SERIES_COUNTERS;
        timed += share == SERIES_ALL;
        if (share == SERIES_NONE) {
            assert_ptr_equal(route_slot(routes[i], 0), catalog.other_slots[0]);
        }
    }
    assert_int_equal(timed, 2);
    assert_true(shown > 8 && shown < 16);
    assert_true(catalog.route_series.used <= 100);
    assert_int_equal(value("skein_metrics_folded{kind=\"route\"}"), ROUTES - shown);
    assert_int_equal(value("skein_metrics_folded{kind=\"route_times\"}"), ROUTES - timed);
    assert_int_equal(value("skein_route_responses_total{route=\"(other)\",code=\"2xx\"}"),
                     ROUTES - shown);
    assert_int_equal(value("skein_route_duration_seconds_count{route=\"(other)\"}"),
                     ROUTES - timed);

    /* All but one of the shown go: what is folded stays so, and counters never fall. */
    for (unsigned i = 0; i < ROUTES; i++) {
        if (i != ROUTES - 1) {
            catalog_route_put(&catalog, routes[i]);
        }
    }
    (void)render();
    assert_int_equal(value("skein_route_responses_total{route=\"(other)\",code=\"2xx\"}"),
                     ROUTES - shown);
    assert_int_equal(value("skein_route_duration_seconds_count{route=\"(other)\"}"),
                     ROUTES - timed);
    assert_int_equal(value("skein_metrics_folded{kind=\"route\"}"), 1);
    assert_int_equal(catalog.route_series.used, 0);
    catalog_route_put(&catalog, routes[ROUTES - 1]);
    (void)render();
    assert_int_equal(value("skein_route_responses_total{route=\"(other)\",code=\"2xx\"}"),
                     ROUTES - shown);
    assert_int_equal(value("skein_metrics_folded{kind=\"route_times\"}"), 0);

    /* There is room again. */
    struct route *again = route_make(1000);
    request(again, 0, 1000);
    (void)render();
    assert_int_equal(atomic_load(&again->share), SERIES_ALL);
    catalog_route_put(&catalog, again);
}

static void test_backends_fold_as_well(void **state)
{
    (void)state;
    struct backend *backends[4];
    catalog.backend_series.max = 60;
    for (unsigned i = 0; i < ARRAY_LEN(backends); i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "b%u", i);
        backends[i] = backend_make(&catalog, name);
        backend_touch(backends[i]);
        traffic_count(&backends[i]->slots[1].traffic, 5, 1, 2);
        counter_add(&backends[i]->slots[0].connect_errors, 3);
        histogram_add(&backend_times(backends[i], 0)->connect, 2, 1700000);
        histogram_add(&backend_times(backends[i], 1)->response, 3, 3000000);
    }
    (void)render();
    assert_int_equal(value("skein_metrics_folded{kind=\"backend_times\"}"), 4);
    long folded = value("skein_metrics_folded{kind=\"backend\"}");
    assert_in_range(folded, 1, 3);
    assert_int_equal(value("skein_backend_connect_errors_total{backend=\"(other)\"}"), 3 * folded);
    assert_int_equal(value("skein_backend_responses_total{backend=\"(other)\",code=\"5xx\"}"),
                     folded);
    assert_int_equal(value("skein_backend_connect_seconds_count{backend=\"(other)\"}"), 4);
    assert_int_equal(value("skein_backend_response_seconds_count{backend=\"(other)\"}"), 4);
    for (unsigned i = 0; i < ARRAY_LEN(backends); i++) {
        backend_put(backends[i]);
    }
    qsbr_flush(&catalog.qsbr);
    (void)render();
    assert_int_equal(value("skein_metrics_folded{kind=\"backend\"}"), 0);
    assert_int_equal(value("skein_backend_connect_errors_total{backend=\"(other)\"}"), 3 * folded);
    assert_int_equal(value("skein_backend_connect_seconds_count{backend=\"(other)\"}"), 4);
}

static void test_endpoints_beyond_the_budget_are_left_out(void **state)
{
    (void)state;
    struct backend *few = backend_make(&catalog, "few");
    struct backend *many = backend_make(&catalog, "many");
    struct proxy_endpoint endpoints[5] = {0};
    struct err_info err;
    for (size_t i = 0; i < ARRAY_LEN(endpoints); i++) {
        char text[32];
        (void)snprintf(text, sizeof(text), "10.0.0.%zu:80", i + 1);
        assert_int_equal(addr_parse(text, &endpoints[i].addr, &err), RC_OK);
        endpoints[i].weight = 1;
    }
    const struct proxy_backend policy = {0};
    assert_int_equal(backend_replace(many, &policy, endpoints, 5, &err), RC_OK);
    assert_int_equal(backend_replace(few, &policy, endpoints, 2, &err), RC_OK);
    (void)render();
    assert_int_equal(value("skein_metrics_folded{kind=\"endpoint\"}"), 0);
    assert_int_equal(value("skein_endpoint_up{backend=\"many\",endpoint=\"10.0.0.5:80\"}"), 1);
    catalog.endpoint_series_max = 30;
    (void)render();
    assert_int_equal(value("skein_metrics_folded{kind=\"endpoint\"}"), 5);
    assert_int_equal(value("skein_endpoint_up{backend=\"many\",endpoint=\"10.0.0.5:80\"}"), -1);
    assert_int_equal(value("skein_endpoint_in_flight{backend=\"few\",endpoint=\"10.0.0.1:80\"}"),
                     0);
    backend_put(many);
    backend_put(few);
    qsbr_flush(&catalog.qsbr);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_routes_and_workers_add_up, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_is_over_the_budget_is_summed_up, setup, teardown),
        cmocka_unit_test_setup_teardown(test_backends_fold_as_well, setup, teardown),
        cmocka_unit_test_setup_teardown(test_endpoints_beyond_the_budget_are_left_out, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
