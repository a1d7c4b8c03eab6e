/*
 * Ports of TCP routes in this process, one worker; the test is client and endpoint at once. What
 * goes wrong on the wire is tested at length by tests/process/test_tcp.py; here is each path once.
 *
 * covers: tcp.c tcp_accept.c tcp_connect.c tcp_flow.c tcp_poll.c tcp_port.c greet.c
 */
#include "node/base/mem.h"
#include "node/proxy/proxy.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <unistd.h>

enum { BULK_BYTES = 8 << 20 };

static struct proxy *proxy;
static struct backend *backend;
static int origin; /* listens */
static struct addr origin_addr;
static uint16_t port; /* of the route */
static const char *trusted = "127.0.0.1";

static struct addr address(const char *text)
{
    struct addr addr;
    assert_int_equal(addr_parse(text, &addr, NULL), RC_OK);
    return addr;
}

static int listener(struct addr *ret_addr)
{
    struct addr addr = address("127.0.0.1:0");
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, &addr.sa, addr_len(&addr)), 0);
    assert_int_equal(listen(fd, 16), 0);
    socklen_t len = sizeof(*ret_addr);
    assert_int_equal(getsockname(fd, &ret_addr->sa, &len), 0);
    return fd;
}

static uint16_t free_port(void)
{
    struct addr addr;
    int fd = listener(&addr);
    close(fd);
    return addr_port(&addr);
}

static int dial(uint16_t number)
{
    struct addr addr = address("127.0.0.1:0");
    addr_set_port(&addr, number);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, &addr.sa, addr_len(&addr)) != 0) {
        close(fd);
        return -1;
    }
    struct timeval limit = {.tv_sec = 20};
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)), 0);
    return fd;
}

/* The connection that the proxy opens to the endpoint. */
static int accepted(void)
{
    struct pollfd wait = {.fd = origin, .events = POLLIN};
    assert_int_equal(poll(&wait, 1, 20000), 1);
    return accept(origin, NULL, NULL);
}

static void put(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* Exactly this comes. */
static void take(int fd, const char *text)
{
    char got[256];
    size_t len = 0;
    while (len < strlen(text)) {
        ssize_t n = recv(fd, got + len, strlen(text) - len, 0);
        assert_true(n > 0);
        len += (size_t)n;
    }
    assert_memory_equal(got, text, len);
}

static void take_end(int fd)
{
    char byte;
    ssize_t n = recv(fd, &byte, 1, 0);
    assert_true(n == 0 || (n < 0 && errno == ECONNRESET));
}

static void await_connections(uint64_t count)
{
    while (proxy_connections(proxy) != count) {
        (void)sched_yield();
    }
}

static int set_port(uint16_t number, const char *route, struct proxy_timeouts timeouts,
                    const struct proxy_policy *policy, struct err_info *err)
{
    const struct proxy_target target = {.backend = backend, .weight = 1};
    const struct proxy_tcp tcp = {.route = route,
                                  .targets = &target,
                                  .target_count = 1,
                                  .timeouts = timeouts,
                                  .policy = policy};
    return proxy_tcp_set(proxy, number, &tcp, err);
}

static void set_endpoints(const struct proxy_endpoint *endpoints, size_t count,
                          enum proxy_protocol_version version)
{
    const struct proxy_backend policy = {.idle_per_endpoint_max = PROXY_POOL_DEFAULT,
                                         .proxy_protocol = version};
    assert_int_equal(backend_set(proxy, backend, &policy, endpoints, count, NULL), RC_OK);
}

static void start(bool trusting)
{
    struct addr http = address("127.0.0.1:0");
    struct err_info err;
    const struct proxy_config config = {
        .http = &http,
        .http_count = 1,
        .tcp = &http,
        .tcp_count = 1,
        .proxy_trusted = {.items = &trusted, .count = trusting ? 1 : 0},
        .workers = 1,
        .node_name = "n1",
        .access_log = "off",
        .defaults =
            {
                .timeouts = {5000, 30000, 30000, 3600000, 10000, 300000, 0, 5000, 1000, 1000},
                .header_bytes_max = 32768,
                .header_count_max = 128,
                .uri_bytes_max = 8192,
                .retries_max = 2,
                .idle_per_endpoint_max = 64,
            },
    };
    assert_int_equal(proxy_start(&config, &proxy, &err), RC_OK);
    assert_int_equal(proxy_serve(proxy, &err), RC_OK);
    backend = backend_new(proxy, "ns/b");
    origin = listener(&origin_addr);
    const struct proxy_endpoint endpoint = {.addr = origin_addr, .weight = 1};
    set_endpoints(&endpoint, 1, PROXY_PROTOCOL_OFF);
    port = free_port();
    assert_int_equal(set_port(port, "ns/t", (struct proxy_timeouts){0}, NULL, &err), RC_OK);
}

static void stop(void)
{
    backend_unref(proxy, backend);
    proxy_free(proxy);
    close(origin);
}

static int begin(void **state)
{
    (void)state;
    start(false);
    return 0;
}

static int begin_trusting(void **state)
{
    (void)state;
    start(true);
    return 0;
}

static int finish(void **state)
{
    (void)state;
    stop();
    return 0;
}

/* ---- tests ---- */

static void bytes_and_ends_pass_both_ways(void **state)
{
    (void)state;
    int client = dial(port);
    int server = accepted();
    put(server, "220 ready");
    take(client, "220 ready");
    put(client, "hello");
    take(server, "hello");
    assert_int_equal(shutdown(client, SHUT_WR), 0);
    take_end(server);
    put(server, "bye");
    take(client, "bye");
    close(server);
    take_end(client);
    close(client);
    await_connections(0);
}

/* Far more than sockets hold, to a reader that begins late: copying, then pipes. */
static void bulk_waits_for_a_slow_reader(void **state)
{
    (void)state;
    int client = dial(port);
    int server = accepted();
    char *block = mem_new(65536);
    for (size_t i = 0; i < 65536; i++) {
        block[i] = (char)(i * 31);
    }
    size_t sent = 0;
    size_t got = 0;
    bool late = true;
    char *back = mem_new(65536);
    while (got < BULK_BYTES) {
        if (sent < BULK_BYTES) {
            ssize_t n = send(server, block + sent % 65536, 65536 - sent % 65536,
                             MSG_DONTWAIT | MSG_NOSIGNAL);
            sent += n > 0 ? (size_t)n : 0;
            late = late && n > 0;
        } else {
            late = false;
        }
        if (!late) {
            ssize_t n = recv(client, back, 65536, MSG_DONTWAIT);
            for (ssize_t i = 0; i < n; i++) {
                assert_true(back[i] == block[(got + (size_t)i) % 65536]);
            }
            got += n > 0 ? (size_t)n : 0;
        }
    }
    mem_free(block);
    mem_free(back);
    close(server);
    take_end(client);
    close(client);
}

static void a_reset_is_a_reset(void **state)
{
    (void)state;
    int client = dial(port);
    int server = accepted();
    put(client, "x");
    take(server, "x");
    const struct linger now = {.l_onoff = 1};
    assert_int_equal(setsockopt(server, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
    close(server);
    char byte;
    assert_int_equal(recv(client, &byte, 1, 0), -1);
    assert_int_equal(errno, ECONNRESET);
    close(client);
}

static void an_endpoint_that_refuses_is_passed_over(void **state)
{
    (void)state;
    struct proxy_endpoint endpoints[] = {{.addr = origin_addr, .weight = 1},
                                         {.addr = origin_addr, .weight = 200}};
    addr_set_port(&endpoints[1].addr, free_port());
    set_endpoints(endpoints, 2, PROXY_PROTOCOL_OFF);
    int client = dial(port);
    put(client, "kept");
    int server = accepted();
    take(server, "kept");
    close(server);
    close(client);
    set_endpoints(&endpoints[1], 1, PROXY_PROTOCOL_OFF);
    client = dial(port);
    take_end(client);
    close(client);
    set_endpoints(NULL, 0, PROXY_PROTOCOL_OFF);
    client = dial(port);
    take_end(client);
    close(client);
}

static void silence_ends(void **state)
{
    (void)state;
    struct err_info err;
    assert_int_equal(set_port(port, "ns/t", (struct proxy_timeouts){.tunnel_ms = 100}, NULL, &err),
                     RC_OK);
    int client = dial(port);
    int server = accepted();
    take_end(client);
    take_end(server);
    close(client);
    close(server);
}

static void access_lists_and_limits(void **state)
{
    (void)state;
    struct err_info err;
    const char *here = "127.0.0.0/8";
    struct proxy_policy policy = {.deny_from = {.items = &here, .count = 1}};
    assert_int_equal(set_port(port, "ns/t", (struct proxy_timeouts){0}, &policy, &err), RC_OK);
    int client = dial(port);
    take_end(client);
    close(client);
    policy = (struct proxy_policy){.connections_max = 1};
    assert_int_equal(set_port(port, "ns/t", (struct proxy_timeouts){0}, &policy, &err), RC_OK);
    client = dial(port);
    int server = accepted();
    int second = dial(port);
    take_end(second);
    close(second);
    close(client);
    close(server);
    policy = (struct proxy_policy){.rate = {.requests = 1, .window_ms = 3600000}};
    assert_int_equal(set_port(port, "ns/t", (struct proxy_timeouts){0}, &policy, &err), RC_OK);
    client = dial(port);
    server = accepted();
    second = dial(port);
    take_end(second);
    close(second);
    close(client);
    close(server);
    const char *bad = "nowhere";
    policy = (struct proxy_policy){.allow_from = {.items = &bad, .count = 1}};
    assert_int_equal(set_port(port, "ns/t", (struct proxy_timeouts){0}, &policy, &err), RC_INVALID);
}

static void ports_come_and_go(void **state)
{
    (void)state;
    struct err_info err;
    int client = dial(port);
    int server = accepted();
    put(client, "a");
    take(server, "a");
    /* The same route: nothing is touched. Another one: its connections go. */
    assert_int_equal(set_port(port, "ns/t", (struct proxy_timeouts){0}, NULL, &err), RC_OK);
    put(server, "b");
    take(client, "b");
    assert_int_equal(set_port(port, "ns/other", (struct proxy_timeouts){0}, NULL, &err), RC_OK);
    take_end(client);
    take_end(server);
    close(client);
    close(server);
    for (int i = 0; i < 20; i++) {
        proxy_tcp_remove(proxy, port);
        assert_int_equal(dial(port), -1);
        assert_int_equal(set_port(port, "ns/t", (struct proxy_timeouts){0}, NULL, &err), RC_OK);
        client = dial(port);
        server = accepted();
        put(server, "x");
        take(client, "x");
        close(server);
        close(client);
    }
    proxy_tcp_remove(proxy, 1); /* not open */
    assert_int_equal(
        set_port(addr_port(&origin_addr), "ns/t", (struct proxy_timeouts){0}, NULL, &err), RC_BUSY);
    proxy_drain(proxy);
    assert_int_equal(set_port(free_port(), "ns/t", (struct proxy_timeouts){0}, NULL, &err),
                     RC_BUSY);
}

static void headers_are_taken_and_sent(void **state)
{
    (void)state;
    const struct proxy_endpoint endpoint = {.addr = origin_addr, .weight = 1};
    set_endpoints(&endpoint, 1, PROXY_PROTOCOL_V1);
    int client = dial(port);
    put(client, "PROXY TCP4 192.0.2.7 198.51");
    await_connections(1);
    put(client, ".100.1 5 6\r\nhello");
    int server = accepted();
    take(server, "PROXY TCP4 192.0.2.7 198.51.100.1 5 6\r\nhello");
    close(server);
    close(client);
    client = dial(port);
    put(client, "PROXY TCP4 192.0.2.7\r\n");
    take_end(client);
    close(client);
    /* One that still waits for its header when the port goes. */
    client = dial(port);
    await_connections(1);
    proxy_tcp_remove(proxy, port);
    take_end(client);
    close(client);
}

/* Everything is open when the end comes. */
static void an_end_with_everything_open(void **state)
{
    (void)state;
    start(true);
    int relayed = dial(port);
    put(relayed, "PROXY UNKNOWN\r\nhello");
    int server = accepted();
    take(server, "hello");
    int greeting = dial(port);
    await_connections(2);
    stop();
    take_end(relayed);
    take_end(server);
    take_end(greeting);
    close(relayed);
    close(server);
    close(greeting);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(bytes_and_ends_pass_both_ways, begin, finish),
        cmocka_unit_test_setup_teardown(bulk_waits_for_a_slow_reader, begin, finish),
        cmocka_unit_test_setup_teardown(a_reset_is_a_reset, begin, finish),
        cmocka_unit_test_setup_teardown(an_endpoint_that_refuses_is_passed_over, begin, finish),
        cmocka_unit_test_setup_teardown(silence_ends, begin, finish),
        cmocka_unit_test_setup_teardown(access_lists_and_limits, begin, finish),
        cmocka_unit_test_setup_teardown(ports_come_and_go, begin, finish),
        cmocka_unit_test_setup_teardown(headers_are_taken_and_sent, begin_trusting, finish),
        cmocka_unit_test(an_end_with_everything_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
