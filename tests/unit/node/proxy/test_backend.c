/*
 * Endpoint sets: what is kept over a change, what is told to go, and that memory follows.
 *
 * covers: endpoint.c catalog.c
 */
#include "node/base/mem.h"
#include "node/proxy/catalog.h"
#include "tests/support/unit.h"

static struct catalog catalog;
static struct backend *backend;
static char gone[256];

static void on_gone(void *ctx, struct endpoint *endpoint)
{
    (void)ctx;
    size_t len = strlen(gone);
    (void)snprintf(gone + len, sizeof(gone) - len, "%s ", endpoint->text);
}

static int setup(void **state)
{
    (void)state;
    catalog_init(&catalog, 2);
    catalog.on_gone = on_gone;
    backend = backend_make(&catalog, "b");
    gone[0] = '\0';
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    backend_put(backend);
    catalog_deinit(&catalog);
    return 0;
}

/* "1 2! 3*0": ports on 127.0.0.1. */
static void configure(const char *text)
{
    struct proxy_endpoint from[16];
    size_t count = 0;
    while (*text != '\0') {
        char *end;
        unsigned long port = strtoul(text, &end, 10);
        from[count] = (struct proxy_endpoint){.weight = 1};
        assert_int_equal(addr_parse("127.0.0.1:1", &from[count].addr, NULL), RC_OK);
        addr_set_port(&from[count].addr, (uint16_t)port);
        from[count].draining = *end == '!';
        if (*end == '*') {
            from[count].weight = (uint32_t)strtoul(end + 1, &end, 10);
        }
        count++;
        text = strchr(end, ' ');
        if (text == NULL) {
            break;
        }
        text++;
    }
    gone[0] = '\0';
    struct err_info err;
    assert_int_equal(backend_replace(backend,
                                     &(const struct proxy_backend){.balance = BALANCE_RANDOM}, from,
                                     count, &err),
                     RC_OK);
}

static struct endpoint *entry(size_t idx)
{
    return backend_endpoints(backend)->entries[idx].endpoint;
}

static void test_state_of_what_stays_is_kept(void **state)
{
    (void)state;
    configure("1 2 3");
    struct endpoint *one = entry(0);
    struct endpoint *three = entry(2);
    endpoint_begin(three);
    configure("3 1 4");
    assert_ptr_equal(entry(0), three);
    assert_ptr_equal(entry(1), one);
    assert_int_equal(endpoint_load(entry(0)), 1);
    assert_string_equal(gone, "127.0.0.1:2 ");
    endpoint_end(three);
}

static void test_draining_and_weightless_are_told_once(void **state)
{
    (void)state;
    configure("1 2 3");
    configure("1! 2*0 3");
    const struct endpoint_set *set = backend_endpoints(backend);
    assert_int_equal(set->usable_count, 1);
    assert_int_equal(set->count, 3);
    assert_string_equal(gone, "127.0.0.1:1 127.0.0.1:2 ");
    assert_true(endpoint_is_gone(set->entries[1].endpoint));
    configure("1! 2*0 3");
    assert_string_equal(gone, "");
    struct endpoint *one = backend_endpoints(backend)->entries[1].endpoint;
    configure("1 2*0 3");
    assert_ptr_equal(entry(0), one);
    assert_false(endpoint_is_gone(one)); /* it came back */
    configure("");
    assert_string_equal(gone, "127.0.0.1:1 127.0.0.1:3 ");
}

static void test_an_address_given_twice_is_one_endpoint(void **state)
{
    (void)state;
    configure("1 1 2");
    assert_int_equal(backend_endpoints(backend)->count, 2);
    configure("1! 1 2");
    assert_int_equal(backend_endpoints(backend)->count, 2);
    assert_int_equal(backend_endpoints(backend)->usable_count, 1);
    assert_string_equal(gone, "127.0.0.1:1 ");
}

static void test_users_keep_a_removed_endpoint(void **state)
{
    (void)state;
    configure("1");
    struct endpoint *one = entry(0);
    endpoint_ref(one);
    configure("2");
    (void)qsbr_reclaim(&catalog.qsbr);
    assert_string_equal(one->text, "127.0.0.1:1");
    assert_true(endpoint_is_gone(one));
    endpoint_unref(one);
}

static void test_limits(void **state)
{
    (void)state;
    struct err_info err;
    struct proxy_endpoint from = {.weight = PROXY_WEIGHT_MAX + 1};
    configure("1");
    assert_int_equal(backend_replace(backend,
                                     &(const struct proxy_backend){.balance = BALANCE_RANDOM},
                                     &from, 1, &err),
                     RC_TOO_BIG);
    assert_int_equal(backend_replace(backend,
                                     &(const struct proxy_backend){.balance = BALANCE_RANDOM},
                                     &from, PROXY_ENDPOINTS_MAX + 1, &err),
                     RC_TOO_BIG);
    assert_int_equal(backend_endpoints(backend)->count, 1); /* nothing changed */
}

static void test_metrics_name_what_is_configured(void **state)
{
    (void)state;
    struct backend *quoted = backend_make(&catalog, "we\"ird\\\n");
    configure("1");
    backend_touch(backend);
    counter_add(&backend->slots[0].traffic.responses[2], 3);
    counter_add(&backend->slots[1].traffic.responses[2], 4);
    counter_add(&entry(0)->slots[1].traffic.responses[5], 1);
    struct buf out;
    buf_init(&out, 1 << 20);
    catalog_metrics(&catalog, &out);
    assert_non_null(
        strstr(out.data, "skein_backend_responses_total{backend=\"b\",code=\"2xx\"} 7\n"));
    assert_non_null(strstr(out.data, "skein_endpoint_responses_total{backend=\"b\",endpoint="
                                     "\"127.0.0.1:1\",code=\"5xx\"} 1\n"));
    assert_non_null(strstr(out.data, "backend=\"we\\\"ird\\\\\\n\""));
    buf_deinit(&out);
    backend_put(quoted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_state_of_what_stays_is_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(test_draining_and_weightless_are_told_once, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_an_address_given_twice_is_one_endpoint, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_users_keep_a_removed_endpoint, setup, teardown),
        cmocka_unit_test_setup_teardown(test_limits, setup, teardown),
        cmocka_unit_test_setup_teardown(test_metrics_name_what_is_configured, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
