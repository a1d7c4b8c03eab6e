/*
 * The whole data plane in this process, one worker, plain sockets on both sides. What goes wrong on
 * the wire is tested at length by tests/process/test_proxy_*.py; here is each path once.
 *
 * covers: acceptor.c access_draft.c exchange_account.c access_log.c client.c client_out.c
 * exchange.c exchange_route.c exchange_try.c race.c sock.c upool.c upstream.c upstream_in.c
 * upstream_open.c worker.c
 */
#include "node/proxy/proxy.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEXT_BYTES = 65536 };

struct origin {
    int fd;
    struct addr addr;
    pthread_t thread;
    const char *answer; /* to each request on each connection; NULL: close at once */
    char seen[TEXT_BYTES];
    int requests;
};

static struct proxy *proxy;
static struct backend *backend;
static struct addr front;

static int socket_bound(struct addr *ret_addr, int backlog)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct addr addr;
    assert_int_equal(addr_parse("127.0.0.1:0", &addr, NULL), RC_OK);
    assert_int_equal(bind(fd, &addr.sa, addr_len(&addr)), 0);
    socklen_t len = sizeof(*ret_addr);
    assert_int_equal(getsockname(fd, &ret_addr->sa, &len), 0);
    if (backlog > 0) {
        assert_int_equal(listen(fd, backlog), 0);
    }
    return fd;
}

/* Read until the text ends with `mark` or the other side closes. */
static void read_until(int fd, const char *mark, char *text)
{
    size_t len = 0;
    text[0] = '\0';
    while (len + 1 < TEXT_BYTES) {
        size_t mark_len = strlen(mark);
        if (mark_len != 0 && len >= mark_len && strcmp(text + len - mark_len, mark) == 0) {
            return;
        }
        ssize_t n = recv(fd, text + len, TEXT_BYTES - 1 - len, 0);
        if (n <= 0) {
            return;
        }
        len += (size_t)n;
        text[len] = '\0';
    }
}

/* Serves one connection after the other until its listener is shut. */
static void *origin_main(void *arg)
{
    struct origin *origin = arg;
    int fd;
    while ((fd = accept(origin->fd, NULL, NULL)) >= 0) {
        for (;;) {
            static _Thread_local char text[TEXT_BYTES];
            bool chunked;
            read_until(fd, "\r\n\r\n", text);
            chunked = strstr(text, "chunked") != NULL && strstr(text, "0\r\n\r\n") == NULL;
            if (chunked) {
                read_until(fd, "0\r\n\r\n", text + strlen(text));
            }
            if (text[0] == '\0') {
                break;
            }
            (void)snprintf(origin->seen, sizeof(origin->seen), "%s", text);
            origin->requests++;
            if (origin->answer == NULL ||
                send(fd, origin->answer, strlen(origin->answer), MSG_NOSIGNAL) < 0) {
                break;
            }
        }
        close(fd);
    }
    return NULL;
}

static void origin_start(struct origin *origin, const char *answer)
{
    memset(origin, 0, sizeof(*origin));
    origin->answer = answer;
    origin->fd = socket_bound(&origin->addr, 16);
    assert_int_equal(pthread_create(&origin->thread, NULL, origin_main, origin), 0);
}

/* After the proxy closed its connections to it. */
static void origin_stop(struct origin *origin)
{
    shutdown(origin->fd, SHUT_RDWR);
    pthread_join(origin->thread, NULL);
    close(origin->fd);
}

static struct proxy_config config_make(const struct addr *listen_addr)
{
    return (struct proxy_config){
        .http = listen_addr,
        .http_count = 1,
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
}

static void start(const char *access_log)
{
    struct addr any;
    struct err_info err;
    assert_int_equal(addr_parse("127.0.0.1:0", &any, NULL), RC_OK);
    struct proxy_config config = config_make(&any);
    config.access_log = access_log;
    assert_int_equal(proxy_start(&config, &proxy, &err), RC_OK);
    assert_int_equal(proxy_serve(proxy, &err), RC_OK);
    proxy_listen_addr(proxy, 0, &front);
    backend = backend_new(proxy, "ns/b");
    const struct proxy_target target = {.backend = backend, .weight = 1};
    const struct proxy_rule rule = {
        .route = "ns/r", .path = "/", .targets = &target, .target_count = 1};
    assert_int_equal(proxy_host_set(proxy, "a.test", &rule, 1, NULL, &err), RC_OK);
}

static void stop(void)
{
    backend_unref(proxy, backend);
    proxy_free(proxy);
    proxy = NULL;
}

static void endpoints(const struct addr *addrs, size_t count)
{
    struct proxy_endpoint from[4] = {0};
    struct err_info err;
    for (size_t i = 0; i < count; i++) {
        from[i] = (struct proxy_endpoint){.addr = addrs[i], .weight = 1};
    }
    assert_int_equal(
        backend_set(proxy, backend,
                    &(const struct proxy_backend){.balance = BALANCE_ROUND_ROBIN,
                                                  .idle_per_endpoint_max = PROXY_POOL_DEFAULT},
                    from, count, &err),
        RC_OK);
}

static int dial(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const struct timeval limit = {.tv_sec = 20};
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    assert_int_equal(connect(fd, &front.sa, addr_len(&front)), 0);
    return fd;
}

/* Send, and read until `mark` or the end; "" reads to the end. */
static const char *ask(int fd, const char *request, const char *mark)
{
    static char text[TEXT_BYTES];
    assert_true(send(fd, request, strlen(request), MSG_NOSIGNAL) >= 0);
    read_until(fd, mark, text);
    return text;
}

static const char GET[] = "GET /x HTTP/1.1\r\nHost: a.test\r\n\r\n";
static const char ANSWER[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

static void test_requests_and_bodies(void **state)
{
    (void)state;
    struct origin origin;
    origin_start(&origin, ANSWER);
    start("off");
    endpoints(&origin.addr, 1);
    int fd = dial();
    for (int i = 0; i < 3; i++) {
        const char *text = ask(fd, GET, "ok");
        assert_non_null(strstr(text, "HTTP/1.1 200 OK\r\n"));
    }
    assert_non_null(strstr(origin.seen, "X-Forwarded-For: 127.0.0.1\r\n"));
    (void)ask(fd,
              "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n"
              "5;x=y\r\nhello\r\n0\r\n\r\n",
              "ok");
    assert_non_null(strstr(origin.seen, "\r\n\r\n5\r\nhello\r\n0\r\n\r\n"));
    struct buf metrics;
    buf_init(&metrics, 1 << 20);
    proxy_metrics(proxy, &metrics);
    assert_non_null(strstr(metrics.data, "skein_upstream_reused_total 3\n"));
    buf_deinit(&metrics);
    close(fd);
    stop();
    origin_stop(&origin);
}

static void test_answers_of_its_own(void **state)
{
    (void)state;
    start("off");
    int fd = dial();
    assert_non_null(strstr(ask(fd, GET, "</html>\n"), "HTTP/1.1 503 "));
    assert_non_null(
        strstr(ask(fd, "GET / HTTP/1.1\r\nHost: b.test\r\n\r\n", "</html>\n"), "HTTP/1.1 404 "));
    assert_non_null(strstr(ask(fd, "bad\r\n\r\n", ""), "HTTP/1.1 400 "));
    close(fd);
    stop();
}

static void test_other_endpoint_after_a_refusal(void **state)
{
    (void)state;
    struct origin origin;
    origin_start(&origin, ANSWER);
    start("off");
    struct addr addrs[2];
    int dead = socket_bound(&addrs[0], 0); /* bound, so that nobody else gets it */
    addrs[1] = origin.addr;
    endpoints(addrs, 2);
    int fd = dial();
    for (int i = 0; i < 4; i++) {
        assert_non_null(strstr(ask(fd, GET, "ok"), " 200 OK"));
    }
    endpoints(addrs, 1);
    assert_non_null(strstr(ask(fd, GET, "</html>\n"), "HTTP/1.1 502 "));
    close(fd);
    close(dead);
    stop();
    origin_stop(&origin);
}

/* Its accept queue is full, so that connects to it neither succeed nor fail. */
static void test_slow_connects_are_raced(void **state)
{
    (void)state;
    struct origin origin;
    struct addr addrs[2];
    int hole = socket_bound(&addrs[0], 1);
    int fill[4];
    for (size_t i = 0; i < 4; i++) {
        fill[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        (void)connect(fill[i], &addrs[0].sa, addr_len(&addrs[0])); /* under way */
    }
    origin_start(&origin, ANSWER);
    addrs[1] = origin.addr;
    start("off");
    endpoints(addrs, 2);
    int fd = dial();
    for (int i = 0; i < 4; i++) {
        assert_non_null(strstr(ask(fd, GET, "ok"), "HTTP/1.1 200 OK\r\n"));
    }
    close(fd);
    assert_int_equal(origin.requests, 4);
    stop();
    origin_stop(&origin);
    for (size_t i = 0; i < 4; i++) {
        close(fill[i]);
    }
    close(hole);
}

static void test_endpoint_that_closes_without_an_answer(void **state)
{
    (void)state;
    struct origin origin;
    origin_start(&origin, NULL);
    start("off");
    endpoints(&origin.addr, 1);
    int fd = dial();
    assert_non_null(strstr(ask(fd, GET, "</html>\n"), "HTTP/1.1 502 "));
    close(fd);
    stop();
    origin_stop(&origin);
}

static void test_drain(void **state)
{
    (void)state;
    struct origin origin;
    origin_start(&origin, ANSWER);
    start("off");
    endpoints(&origin.addr, 1);
    int fd = dial();
    (void)ask(fd, GET, "ok");
    assert_int_equal(proxy_connections(proxy), 1);
    proxy_drain(proxy);
    char byte;
    assert_int_equal(recv(fd, &byte, 1, 0), 0);
    while (proxy_connections(proxy) != 0) {
        sched_yield();
    }
    close(fd);
    stop();
    origin_stop(&origin);
}

static void test_stop_with_everything_open(void **state)
{
    (void)state;
    struct origin origin;
    origin_start(&origin, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart");
    start("off");
    endpoints(&origin.addr, 1);
    int busy = dial();
    (void)ask(busy, GET, "part");
    int half = dial();
    assert_true(send(half, "GET", 3, 0) == 3);
    stop();
    char byte;
    assert_true(recv(busy, &byte, 1, 0) <= 0);
    close(busy);
    close(half);
    origin_stop(&origin);
}

static void test_port_in_use(void **state)
{
    (void)state;
    struct addr addr;
    int fd = socket_bound(&addr, 1);
    struct proxy_config config = config_make(&addr);
    struct proxy *none = NULL;
    struct err_info err;
    assert_int_equal(proxy_start(&config, &none, &err), RC_BUSY);
    char text[ADDR_TEXT_MAX];
    assert_non_null(strstr(err.text, addr_format(&addr, text)));
    assert_null(none);
    close(fd);
    config.access_log = "/no/such/folder/access.log";
    addr_set_port(&addr, 0);
    assert_int_equal(proxy_start(&config, &none, &err), RC_IO);
    assert_non_null(strstr(err.text, "/no/such/folder/access.log"));
}

static void test_access_log(void **state)
{
    (void)state;
    char path[] = "/tmp/skein-access-XXXXXX";
    int log = mkstemp(path);
    struct origin origin;
    origin_start(&origin, ANSWER);
    start(path);
    endpoints(&origin.addr, 1);
    int fd = dial();
    (void)ask(fd, "GET /a\xc3\xa9?q=%22 HTTP/1.1\r\nHost: a.test\r\n\r\n", "");
    close(fd);
    fd = dial();
    for (int i = 0; i < 100; i++) {
        (void)ask(fd, GET, "ok");
    }
    close(fd);
    stop(); /* writes what is left */
    origin_stop(&origin);
    static char text[1 << 17];
    ssize_t len = read(log, text, sizeof(text) - 1);
    assert_true(len > 0);
    text[len] = '\0';
    int lines = 0;
    for (const char *p = text; (p = strchr(p, '\n')) != NULL; p++) {
        lines++;
    }
    assert_int_equal(lines, 101);
    assert_non_null(strstr(text, "\"method\":\"GET\",\"host\":\"a.test\",\"path\":\"/x\","
                                 "\"route\":\"ns/r\",\"backend\":\"ns/b\""));
    close(log);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests_and_bodies),
        cmocka_unit_test(test_answers_of_its_own),
        cmocka_unit_test(test_other_endpoint_after_a_refusal),
        cmocka_unit_test(test_slow_connects_are_raced),
        cmocka_unit_test(test_endpoint_that_closes_without_an_answer),
        cmocka_unit_test(test_drain),
        cmocka_unit_test(test_stop_with_everything_open),
        cmocka_unit_test(test_port_in_use),
        cmocka_unit_test(test_access_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
