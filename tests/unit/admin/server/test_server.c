/*
 * The server over a real socket and a fake node: requests as bytes, answers as bytes.
 *
 * Client and server share the thread: the loop runs until the client has what it waits for.
 * covers: conn.c call.c write.c h_objects.c h_list.c h_watch.c h_node.c h_tickets.c
 */
#include "tests/support/unit.h"

#include "admin/server/server.h"
#include "node/net/loop.h"
#include "tests/unit/admin/server/fake_ops.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { BODY_MAX = 64 * 1024, WAIT_MS = 20000 };

static uv_loop_t loop;
static struct fake fake;
static struct admin *admin;
static struct addr address;
static char answer_text[4 << 20];
static size_t answer_len;

static int set_up(void **state)
{
    (void)state;
    struct err_info err = {0};
    loop_init(&loop);
    fake_init(&fake, &loop);
    assert_int_equal(addr_parse("127.0.0.1:0", &address, &err), 0);
    struct admin_config config = {.listen = &address, .body_bytes_max = BODY_MAX};
    assert_int_equal(admin_start(&loop, &config, &fake_ops, &fake, &admin, &err), 0);
    fake.admin = admin;
    admin_listen_addr(admin, &address);
    return 0;
}

static void on_stopped(void *arg)
{
    *(bool *)arg = true;
}

static bool is_true(void *arg)
{
    return *(bool *)arg;
}

static int tear_down(void **state)
{
    (void)state;
    bool stopped = false;
    fake.admin = NULL;
    if (admin != NULL) {
        admin_stop(admin, on_stopped, &stopped);
        assert_true(loop_run_until(&loop, is_true, &stopped, WAIT_MS));
    }
    fake_deinit(&fake);
    loop_close_clean(&loop);
    return 0;
}

/* ---- the client ---- */

static int dial(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, &address.sa, addr_len(&address)), 0);
    return fd;
}

static void say(int fd, const char *bytes, size_t len)
{
    assert_int_equal(send(fd, bytes, len, MSG_NOSIGNAL), (ssize_t)len);
}

struct wait {
    int fd;
    const char *text; /* wait until the answer holds this; NULL: until the end */
    bool reset;
};

static bool received(void *arg)
{
    struct wait *wait = arg;
    for (;;) {
        ssize_t got = recv(wait->fd, answer_text + answer_len, sizeof(answer_text) - 1 - answer_len,
                           MSG_DONTWAIT);
        if (got > 0) {
            answer_len += (size_t)got;
            answer_text[answer_len] = '\0';
        } else {
            wait->reset = got < 0 && errno == ECONNRESET;
            if (got == 0 || wait->reset) {
                return true;
            }
            break;
        }
    }
    return wait->text != NULL && strstr(answer_text, wait->text) != NULL;
}

/* What comes until it holds `text`, or until the end. */
static const char *hear(int fd, const char *text)
{
    struct wait wait = {.fd = fd, .text = text};
    answer_len = 0;
    answer_text[0] = '\0';
    assert_true(loop_run_until(&loop, received, &wait, WAIT_MS));
    assert_false(wait.reset);
    return answer_text;
}

/* One request on a connection of its own, up to its end. */
static const char *ask(const char *line, const char *fields, const char *body)
{
    char *request = mem_printf("%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s"
                               "Content-Length: %zu\r\n\r\n%s",
                               line, fields, strlen(body), body);
    int fd = dial();
    say(fd, request, strlen(request));
    const char *text = hear(fd, NULL);
    close(fd);
    mem_free(request);
    return text;
}

static int status_of(const char *text)
{
    assert_int_equal(strncmp(text, "HTTP/1.1 ", 9), 0);
    return atoi(text + 9);
}

static void expect(const char *line, const char *fields, const char *body, int status,
                   const char *part)
{
    const char *text = ask(line, fields, body);
    if (status_of(text) != status || (part != NULL && strstr(text, part) == NULL)) {
        fail_msg("%s: wanted %d and \"%s\", got %s", line, status, part, text);
    }
}

/* The value of a field of the last answer; static storage. */
static const char *field(const char *name)
{
    static char value[256];
    const char *at = strstr(answer_text, name);
    assert_non_null(at);
    at += strlen(name) + 2;
    snprintf(value, sizeof(value), "%.*s", (int)strcspn(at, "\r"), at);
    return value;
}

#define ROUTE_A "{\"spec\":{\"host\":\"a.example.com\",\"to\":[{\"backend\":\"web\"}]}}"
#define PATH_A  "/v1/namespaces/shop/routes/a"

/* ---- tests ---- */

static void test_life_of_an_object(void **state)
{
    (void)state;
    expect("GET " PATH_A, "", "", 404, "shop/a");
    expect("PUT " PATH_A, "", ROUTE_A, 201, "\"revision\":1");
    char etag[64];
    snprintf(etag, sizeof(etag), "%s", field("ETag"));
    expect("GET " PATH_A, "", "", 200, "\"a.example.com\"");
    assert_string_equal(field("ETag"), etag);
    char fields[128];
    snprintf(fields, sizeof(fields), "If-None-Match: %s\r\n", etag);
    expect("GET " PATH_A, fields, "", 304, NULL);
    expect("PUT " PATH_A, "If-None-Match: *\r\n", ROUTE_A, 412, "exists");
    expect("PUT " PATH_A, "If-Match: \"other\"\r\n", ROUTE_A, 412, "entity tag is");
    snprintf(fields, sizeof(fields), "If-Match: %s\r\n", etag);
    expect("PATCH " PATH_A, fields, "{\"spec\":{\"path\":\"/x\"}}", 200, "\"path\":\"/x\"");
    expect("PATCH " PATH_A, fields, "{\"spec\":{\"path\":\"/y\"}}", 412, "If-Match");
    expect("PUT " PATH_A, "", ROUTE_A, 200, "\"revision\":3");
    expect("PUT " PATH_A, "", ROUTE_A, 200, "\"revision\":3"); /* nothing to write */
    expect("DELETE " PATH_A, fields, "", 412, NULL);
    expect("DELETE " PATH_A, "", "", 200, "\"a.example.com\"");
    expect("DELETE " PATH_A, "", "", 404, NULL);
    expect("PATCH " PATH_A, "", "{}", 404, NULL);
    expect("PUT " PATH_A, "If-Match: *\r\n", ROUTE_A, 412, "no such object");
}

static void test_backend_endpoints_by_patch(void **state)
{
    (void)state;
    static const char path[] = "/v1/namespaces/shop/backends/web";
    char line[128];
    snprintf(line, sizeof(line), "PUT %s", path);
    expect(line, "", "{\"spec\":{\"endpoints\":[{\"address\":\"10.0.0.1:80\"}]}}", 201,
           "\"endpoints\":[{\"address\":\"10.0.0.1:80\"}]");
    snprintf(line, sizeof(line), "PATCH %s", path);
    expect(line, "", "{\"spec\":{\"balance\":\"LeastConn\"}}", 200, "10.0.0.1:80");
    expect(line, "", "{\"spec\":{\"endpoints\":null}}", 200, "\"endpoints\":[]");
    expect("GET /v1/endpoints", "", "", 200, "\"items\":[]");
}

static void test_apply_is_all_or_nothing(void **state)
{
    (void)state;
    expect("POST /v1/apply", "",
           "kind: Namespace\nmetadata: {name: shop}\n---\nkind: Route\nmetadata: {name: x}\n"
           "spec: {host: '-', to: []}\n",
           422, "[1] Route default/x: spec.host");
    assert_int_equal(fake.count, 0);
    expect("POST /v1/apply?dryRun=true", "", "kind: Namespace\nmetadata: {name: shop}\n", 200,
           "\"action\":\"created\"");
    assert_int_equal(fake.count, 0);
    expect("POST /v1/apply", "", "kind: Namespace\nmetadata: {name: shop}\n", 200,
           "\"action\":\"created\"");
    expect("POST /v1/apply", "", "[]", 400, "no objects");
    expect("POST /v1/apply", "", "", 400, "no objects");
    expect("POST /v1/apply", "", "{\"kind\":\"Namespace\",\n\"metadata\"", 400, "line 2");
    expect("POST /v1/apply", "Content-Type: application/json\r\n", "kind: Namespace\n", 400,
           "line 1");
    expect("POST /v1/apply", "Content-Type: image/png\r\n", "x", 415, "application/yaml");
    expect("PUT /v1/namespaces/shop", "", "[{},{}]", 400, "/v1/apply");
}

static void test_commit_failures_have_their_status(void **state)
{
    (void)state;
    static const struct {
        int rc;
        int status;
    } cases[] = {{RC_CLOCK, 503}, {RC_TOO_BIG, 413}, {RC_NO_SPACE, 507}, {RC_IO, 500}};
    fake.text = "what the node says";
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        fake.commit_rc = cases[i].rc;
        expect("PUT " PATH_A, "", ROUTE_A, cases[i].status, "what the node says");
        fake.commit_rc = RC_OK;
        fake.done_rc = cases[i].rc;
        expect("PUT " PATH_A, "", ROUTE_A, cases[i].status, "what the node says");
        fake.done_rc = RC_OK;
    }
    assert_int_equal(fake.count, 0);
}

static void test_a_busy_object_is_planned_again(void **state)
{
    (void)state;
    fake.busy_for = 3;
    expect("PUT " PATH_A, "", ROUTE_A, 201, NULL);
    assert_int_equal(fake.commits, 1);
    fake.busy_for = 100000;
    expect("PUT " PATH_A, "",
           "{\"spec\":{\"host\":\"b.example.com\",\"to\":[{\"backend\":\"w\"}]}}", 503,
           "Retry-After");
    fake.busy_for = 0;
}

static void test_wait_all(void **state)
{
    (void)state;
    expect("PUT " PATH_A "?wait=all", "", ROUTE_A, 201, "\"confirmed\":true");
    assert_true(fake.waited);
    fake.done_rc = RC_TIMEOUT;
    fake.text = "r3 did not confirm";
    expect("DELETE " PATH_A "?wait=all", "", "", 202, "\"confirmed\":false");
    assert_non_null(strstr(answer_text, "r3 did not confirm"));
    fake.done_rc = RC_OK;
    expect("PUT " PATH_A "?wait=some", "", ROUTE_A, 400, "accepted: all");
}

static void test_ticket_keys(void **state)
{
    (void)state;
    expect("GET /v1/tickets", "", "", 200, "\"state\":\"Active\"");
    assert_non_null(strstr(answer_text, "\"epoch\":1,\"created\":\"2026-"));
    assert_null(strstr(answer_text, "expires"));
    expect("POST /v1/tickets/rotate", "", "", 200, "\"epoch\":2");
    assert_false(fake.revoked);
    expect("POST /v1/tickets/rotate?wait=all", "", "{\"revoke\": true}", 200, "\"epoch\":3");
    assert_true(fake.revoked && fake.waited);
    expect("POST /v1/tickets/rotate", "", "{\"revoke\": 1}", 400, "or nothing");
    expect("POST /v1/tickets/rotate", "", "{\"other\": true}", 400, "or nothing");
    expect("POST /v1/tickets/rotate", "", "[]", 400, "or nothing");
    expect("POST /v1/tickets/rotate?wait=one", "", "", 400, "accepted: all");
    assert_int_equal(fake.rotated, 2);
    fake.done_rc = RC_TIMEOUT;
    fake.text = "r3 did not confirm";
    expect("POST /v1/tickets/rotate?wait=all", "", "", 202, "\"unconfirmed\":\"r3 did not");
    fake.done_rc = RC_IO;
    expect("POST /v1/tickets/rotate", "", "", 500, "r3 did not");
    fake.done_rc = RC_OK;
    fake.commit_rc = RC_CONFLICT;
    expect("POST /v1/tickets/rotate", "", "", 409, "r3 did not");
    fake.commit_rc = RC_AGAIN;
    expect("POST /v1/tickets/rotate", "", "", 503, "r3 did not");
}

static void test_lists_and_pages(void **state)
{
    (void)state;
    for (int i = 0; i < 9; i++) {
        char text[256];
        snprintf(text, sizeof(text),
                 "{\"kind\":\"Route\",\"metadata\":{\"namespace\":\"n%d\",\"name\":\"r%d\","
                 "\"labels\":{\"odd\":\"%d\"}},\"spec\":{\"host\":\"a%d.example.com\",\"to\":"
                 "[{\"backend\":\"w\"}]}}",
                 i % 3, i, i % 2, i);
        fake_put(&fake, text);
    }
    expect("GET /v1/routes?limit=4", "", "", 200, "\"continue\":\"n1/r1\"");
    assert_null(strstr(answer_text, "n1/r4"));
    expect("GET /v1/routes?limit=4&continue=n1%2Fr1", "", "", 200, "\"continue\":\"n2/r5\"");
    expect("GET /v1/routes?limit=4&continue=n2%2Fr5", "", "", 200, "\"r8\"");
    assert_null(strstr(answer_text, "continue"));
    expect("GET /v1/routes?namespace=n1&selector=odd%3D1", "", "", 200, "\"r1\"");
    assert_null(strstr(answer_text, "\"r4\""));
    assert_null(strstr(answer_text, "\"r3\""));
    assert_non_null(strstr(answer_text, "\"r7\""));
    expect("GET /v1/namespaces/n2/routes", "", "", 200, "\"r8\"");
    assert_null(strstr(answer_text, "\"r1\""));
    expect("GET /v1/namespaces/n9/routes", "", "", 200, "\"items\":[]");
    expect("GET /v1/routes?limit=0", "", "", 400, "limit");
    expect("GET /v1/routes?selector=%3D%3D%3D", "", "", 400, "selector");
    expect("GET /v1/nodes?namespace=x", "", "", 400, "whole cluster");
    expect("GET /v1/export?namespace=n1&format=yaml", "", "", 200, "name: r4");
    assert_null(strstr(answer_text, "name: r5"));
    assert_null(strstr(answer_text, "resourceVersion"));
    expect("GET /v1/export", "Accept: application/yaml\r\n", "", 200, "name: r5");
}

/* More than one part: chunked, and whole. */
static void test_long_lists_come_in_chunks(void **state)
{
    (void)state;
    for (int i = 0; i < 1500; i++) {
        char text[256];
        snprintf(text, sizeof(text),
                 "{\"kind\":\"Namespace\",\"metadata\":{\"name\":\"n%04d\"},\"spec\":"
                 "{\"description\":\"%0100d\"}}",
                 i, i);
        fake_put(&fake, text);
    }
    expect("GET /v1/namespaces", "", "", 200, "Transfer-Encoding: chunked");
    assert_non_null(strstr(answer_text, "\"n0000\""));
    assert_non_null(strstr(answer_text, "\"n1499\""));
    assert_string_equal(answer_text + answer_len - 5, "0\r\n\r\n");
}

static void test_watch(void **state)
{
    (void)state;
    int fd = dial();
    static const char request[] = "GET /v1/watch?kind=routes HTTP/1.1\r\nHost: localhost\r\n\r\n";
    say(fd, request, sizeof(request) - 1);
    assert_non_null(strstr(hear(fd, "\"start\""), "\"since\":\"r1:0\""));
    fake_put(&fake, "{\"kind\":\"Namespace\",\"metadata\":{\"name\":\"shop\"}}");
    fake_put(&fake, "{\"kind\":\"Route\",\"metadata\":{\"namespace\":\"shop\",\"name\":\"a\"},"
                    "\"spec\":{\"host\":\"a.example.com\",\"to\":[{\"backend\":\"w\"}]}}");
    hear(fd, "}}\n");
    assert_non_null(strstr(answer_text, "\"type\":\"changed\""));
    assert_non_null(strstr(answer_text, "\"since\":\"r1:2\""));
    assert_null(strstr(answer_text, "Namespace"));
    fake.revision++;
    fake_write(&fake, kind_by_name("Route"), "shop/a", NULL);
    hear(fd, "}}\n");
    assert_non_null(strstr(answer_text, "\"type\":\"deleted\""));
    assert_non_null(strstr(answer_text, "\"namespace\":\"shop\",\"name\":\"a\""));
    close(fd);

    /* Resume: what came after the token, once. */
    fd = dial();
    static const char again[] = "GET /v1/watch?since=r1:1 HTTP/1.1\r\nHost: localhost\r\n\r\n";
    say(fd, again, sizeof(again) - 1);
    hear(fd, "\"since\":\"r1:3\"");
    assert_null(strstr(answer_text, "Namespace"));
    assert_non_null(strstr(answer_text, "\"type\":\"deleted\""));
    close(fd);
    expect("GET /v1/watch?since=r2:1", "", "", 410, "r2");
    expect("GET /v1/watch?since=r1:99", "", "", 410, "ahead");
    expect("GET /v1/watch?since=x", "", "", 400, "since");
    expect("GET /v1/watch?kind=foo", "", "", 400, "kind");
}

static bool no_watchers(void *arg)
{
    (void)arg;
    return admin->watchers == 0;
}

static void test_a_watcher_that_leaves_is_forgotten(void **state)
{
    (void)state;
    int fd = dial();
    static const char request[] = "GET /v1/watch HTTP/1.1\r\nHost: localhost\r\n\r\n";
    say(fd, request, sizeof(request) - 1);
    hear(fd, "\"start\"");
    assert_int_equal(admin->watchers, 1);
    close(fd);
    assert_true(loop_run_until(&loop, no_watchers, NULL, WAIT_MS));
}

static void test_node_answers(void **state)
{
    (void)state;
    expect("GET /healthz", "", "", 200, "ok");
    expect("GET /readyz", "", "", 200, "ready");
    fake.not_ready = true;
    expect("GET /readyz", "", "", 503, "not in step with any peer");
    expect("GET /v1/cluster", "", "", 200, "\"clockFlagged\":true");
    assert_non_null(strstr(answer_text, "\"heardMsAgo\":null"));
    expect("DELETE /v1/cluster/members/r2", "", "", 200, "\"forgotten\":\"r2\"");
    expect("DELETE /v1/cluster/members/r1", "", "", 409, "not dead");
    expect("DELETE /v1/cluster/members/r9", "", "", 404, "no member");
    expect("GET /metrics", "", "", 200, "skein_fake 1");
    expect("GET /v1", "", "", 200, "/v1/apply");
    struct buf out;
    buf_init(&out, 1 << 20);
    admin_metrics(admin, &out);
    assert_non_null(strstr(out.data, "skein_admin_requests_total{method=\"GET\",code=\"503\"} 1"));
    buf_deinit(&out);
}

static void test_refusals(void **state)
{
    (void)state;
    expect("POST " PATH_A, "", "", 405, "Allow: GET, HEAD, PUT, PATCH, DELETE");
    expect("GET /v1/nothing", "", "", 404, "routes");
    expect("GET /v1/routes?nothing=1", "", "", 400, "nothing");
    expect("PUT " PATH_A, "Expect: cake\r\n", ROUTE_A, 417, NULL);
    expect("GET /v1/routes", "Origin: http://evil.example\r\n", "", 403, "Origin");
    expect("GET /v1/routes", "Origin: http://localhost\r\n", "", 200, NULL);
    int fd = dial();
    static const char rebound[] = "GET /v1/routes HTTP/1.1\r\nHost: evil.example:80\r\n\r\n";
    say(fd, rebound, sizeof(rebound) - 1);
    assert_int_equal(status_of(hear(fd, "Host:")), 403);
    close(fd);
    fd = dial();
    say(fd, "GARBAGE\r\n\r\n", 11);
    assert_int_equal(status_of(hear(fd, NULL)), 400);
    assert_non_null(strstr(answer_text, "application/problem+json"));
    close(fd);
}

/* Too large by its length: answered before the body came, and not lost to a reset. */
static void test_a_large_body_is_refused_early(void **state)
{
    (void)state;
    int fd = dial();
    char head[256];
    snprintf(head, sizeof(head),
             "POST /v1/apply HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n",
             BODY_MAX + 1);
    say(fd, head, strlen(head));
    assert_int_equal(status_of(hear(fd, "accepted")), 413);
    char bytes[8192] = {0};
    for (int i = 0; i < 4; i++) {
        say(fd, bytes, sizeof(bytes)); /* still sending */
    }
    shutdown(fd, SHUT_WR);
    hear(fd, NULL); /* an end, no reset */
    close(fd);

    fd = dial();
    static const char chunked[] =
        "POST /v1/apply HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
    say(fd, chunked, sizeof(chunked) - 1);
    for (int i = 0; i <= BODY_MAX / 8192; i++) {
        say(fd, "2000\r\n", 6);
        say(fd, bytes, sizeof(bytes));
        say(fd, "\r\n", 2);
    }
    shutdown(fd, SHUT_WR);
    assert_int_equal(status_of(hear(fd, NULL)), 413);
    close(fd);
}

static void test_continue_is_said_when_the_body_is_wanted(void **state)
{
    (void)state;
    int fd = dial();
    char head[256];
    snprintf(head, sizeof(head),
             "PUT " PATH_A " HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
             "Content-Length: %zu\r\n\r\n",
             strlen(ROUTE_A));
    say(fd, head, strlen(head));
    assert_string_equal(hear(fd, "\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
    say(fd, ROUTE_A, strlen(ROUTE_A));
    assert_int_equal(status_of(hear(fd, "revision")), 201);
    close(fd);
    fd = dial();
    snprintf(head, sizeof(head),
             "PUT /v1/nothing HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
             "Content-Length: 5\r\n\r\n");
    say(fd, head, strlen(head));
    assert_int_equal(status_of(hear(fd, NULL)), 404);
    close(fd);
}

/* Requests one behind the other on one connection, the body in chunks split anywhere. */
static void test_keep_alive_and_pipelining(void **state)
{
    (void)state;
    char request[1024];
    int len =
        snprintf(request, sizeof(request),
                 "PUT " PATH_A " HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
                 "\r\n%zx\r\n%.10s\r\n%zx\r\n%s\r\n0\r\n\r\n",
                 (size_t)10, ROUTE_A, strlen(ROUTE_A) - 10, &ROUTE_A[10]);
    len += snprintf(request + len, sizeof(request) - (size_t)len,
                    "GET " PATH_A " HTTP/1.1\r\nHost: localhost\r\n\r\n"
                    "HEAD " PATH_A " HTTP/1.1\r\nHost: localhost\r\n\r\n"
                    "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    int fd = dial();
    for (int i = 0; i < len; i++) {
        say(fd, request + i, 1);
        uv_run(&loop, UV_RUN_NOWAIT);
    }
    hear(fd, NULL);
    assert_int_equal(status_of(answer_text), 201);
    const char *second = strstr(answer_text + 1, "HTTP/1.1 200");
    assert_non_null(second);
    const char *third = strstr(second + 1, "HTTP/1.1 200");
    assert_non_null(third);
    const char *last = strstr(third + 1, "HTTP/1.1 200");
    assert_non_null(last);
    assert_non_null(strstr(last, "\r\n\r\nok\n"));
    assert_string_equal(strstr(third, "\r\n\r\n") + 4, last); /* HEAD: no body */
    close(fd);
}

/* A client that goes away while its write is in flight: the write ends, nothing is left. */
static void test_the_client_leaves_during_a_write(void **state)
{
    (void)state;
    uv_loop_t *kept = fake.loop;
    fake.loop = NULL; /* commits wait */
    int fd = dial();
    char request[512];
    snprintf(request, sizeof(request),
             "PUT " PATH_A " HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n%s",
             strlen(ROUTE_A), ROUTE_A);
    say(fd, request, strlen(request));
    while (fake.pending_count == 0) {
        uv_run(&loop, UV_RUN_ONCE);
    }
    struct linger now = {.l_onoff = 1};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    close(fd);
    fake.loop = kept;
    fake_finish(&fake);
    assert_int_equal(fake.count, 1);
    expect("GET " PATH_A, "", "", 200, NULL);
    assert_true(admin->call_count == 0);
}

static void test_half_closed_requests_are_answered(void **state)
{
    (void)state;
    int fd = dial();
    static const char request[] = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    say(fd, request, sizeof(request) - 1);
    shutdown(fd, SHUT_WR);
    assert_int_equal(status_of(hear(fd, NULL)), 200);
    close(fd);
    fd = dial();
    say(fd, request, 20); /* cut short */
    shutdown(fd, SHUT_WR);
    assert_string_equal(hear(fd, NULL), "");
    close(fd);
}

/* ---- what takes too long ---- */

static bool has_input(void *arg)
{
    const struct conn *conn = admin->conns;
    return conn != NULL && conn->state == *(enum conn_state *)arg &&
           (conn->in.len > 0 || conn->state == CONN_BODY);
}

/* A connection whose server has got `bytes` and waits in this state. */
static int dial_and_wait(const char *bytes, enum conn_state state)
{
    int fd = dial();
    say(fd, bytes, strlen(bytes));
    assert_true(loop_run_until(&loop, has_input, &state, WAIT_MS));
    return fd;
}

static void test_slow_requests(void **state)
{
    (void)state;
    int fd = dial_and_wait("GET /healthz HTTP/1.1\r\nHost:", CONN_HEAD);
    uint64_t now = uv_now(&loop);
    conn_tick(admin->conns, now + ADMIN_HEAD_MS / 2);
    assert_int_equal(admin->conns->state, CONN_HEAD);
    conn_tick(admin->conns, now + ADMIN_HEAD_MS + 1);
    assert_int_equal(status_of(hear(fd, NULL)), 408);
    assert_non_null(strstr(answer_text, "head"));
    close(fd);
    while (admin->conns != NULL) {
        uv_run(&loop, UV_RUN_ONCE);
    }
    fd = dial_and_wait("PUT " PATH_A " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{",
                       CONN_BODY);
    now = uv_now(&loop);
    conn_tick(admin->conns, now + ADMIN_BODY_MS / 2);
    assert_int_equal(admin->conns->state, CONN_BODY);
    conn_tick(admin->conns, now + ADMIN_BODY_MS + 1);
    assert_int_equal(status_of(hear(fd, NULL)), 408);
    assert_non_null(strstr(answer_text, "body"));
    close(fd);
}

static bool has_conn(void *arg)
{
    (void)arg;
    return admin->conns != NULL;
}

static void test_idle_connections_end_in_silence(void **state)
{
    (void)state;
    int fd = dial();
    assert_true(loop_run_until(&loop, has_conn, NULL, WAIT_MS));
    conn_tick(admin->conns, uv_now(&loop) + ADMIN_IDLE_MS + 1);
    assert_string_equal(hear(fd, NULL), "");
    close(fd);
}

static void test_a_watcher_that_is_overtaken(void **state)
{
    (void)state;
    int fd = dial();
    static const char request[] = "GET /v1/watch HTTP/1.1\r\nHost: localhost\r\n\r\n";
    say(fd, request, sizeof(request) - 1);
    hear(fd, "\"start\"");
    const struct kind *kind = kind_by_name("Namespace");
    fake_put(&fake, "{\"kind\":\"Namespace\",\"metadata\":{\"name\":\"a\"}}");
    const struct object *object = fake_find(&fake, kind, "a");
    for (int i = 0; i < 10000; i++) { /* more than the ring holds, in one turn of the loop */
        admin_notify(admin, object, false, ++fake.revision);
    }
    hear(fd, NULL);
    assert_non_null(strstr(answer_text, "\"type\":\"gone\""));
    assert_non_null(strstr(answer_text, "0\r\n\r\n"));
    assert_int_equal(admin->count.watchers_dropped, 1);
    close(fd);
}

static void test_a_watcher_that_does_not_read(void **state)
{
    (void)state;
    int fd = dial();
    int small = 4096;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
    static const char request[] = "GET /v1/watch HTTP/1.1\r\nHost: localhost\r\n\r\n";
    say(fd, request, sizeof(request) - 1);
    hear(fd, "\"start\"");
    char text[20000];
    snprintf(text, sizeof(text),
             "{\"kind\":\"Namespace\",\"metadata\":{\"name\":\"a\",\"annotations\":"
             "{\"a\":\"%016000d\"}}}",
             1);
    fake_put(&fake, text);
    const struct object *object = fake_find(&fake, kind_by_name("Namespace"), "a");
    for (int i = 0; i < 4000; i++) {
        admin_notify(admin, object, false, ++fake.revision);
    }
    for (int i = 0; i < 200; i++) {
        uv_run(&loop, UV_RUN_NOWAIT);
    }
    struct conn *conn = admin->conns;
    size_t queued = stream_queued(conn->stream);
    assert_true(queued > 0 && queued < 1 << 20); /* 64 MB of events, of which little waits */
    uint64_t now = uv_now(&loop);
    conn_tick(conn, now + 1000);
    conn_tick(conn, now + 1000 + ADMIN_STALL_MS + 1);
    assert_true(loop_run_until(&loop, no_watchers, NULL, WAIT_MS));
    assert_int_equal(admin->count.watchers_dropped, 1);
    close(fd);
}

/* A write in flight is answered before the server is gone. */
static void test_stop_waits_for_a_write(void **state)
{
    (void)state;
    uv_loop_t *kept = fake.loop;
    fake.loop = NULL; /* commits wait */
    int idle = dial();
    int fd = dial();
    char request[512];
    snprintf(request, sizeof(request),
             "PUT " PATH_A " HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n%s",
             strlen(ROUTE_A), ROUTE_A);
    say(fd, request, strlen(request));
    while (fake.pending_count == 0) {
        uv_run(&loop, UV_RUN_ONCE);
    }
    bool stopped = false;
    admin_stop(admin, on_stopped, &stopped);
    assert_string_equal(hear(idle, NULL), "");
    assert_false(stopped);
    fake.admin = NULL;
    fake.loop = kept;
    fake_finish(&fake);
    assert_int_equal(status_of(hear(fd, NULL)), 201);
    assert_non_null(strstr(answer_text, "Connection: close"));
    close(fd);
    close(idle);
    assert_true(loop_run_until(&loop, is_true, &stopped, WAIT_MS));
    admin = NULL;
}

static void test_addresses_that_are_refused(void **state)
{
    (void)state;
    struct err_info err = {0};
    struct addr wrong;
    struct admin *other = NULL;
    assert_int_equal(addr_parse("0.0.0.0:0", &wrong, &err), 0);
    struct admin_config config = {.listen = &wrong};
    assert_int_equal(admin_start(&loop, &config, &fake_ops, &fake, &other, &err), RC_INVALID);
    assert_non_null(strstr(err.text, "loopback"));
    config.listen = &address;
    assert_int_equal(admin_start(&loop, &config, &fake_ops, &fake, &other, &err), RC_BUSY);
    char text[ADDR_TEXT_MAX];
    assert_non_null(strstr(err.text, addr_format(&address, text)));
    for (int i = 0; i < 10; i++) {
        uv_run(&loop, UV_RUN_NOWAIT); /* what was begun is closed */
    }
}

static void test_unix_socket(void **state)
{
    (void)state;
    char path[108];
    snprintf(path, sizeof(path), "/tmp/skein-test-%d.sock", (int)getpid());
    struct admin *other = NULL;
    struct err_info err = {0};
    struct admin_config config = {.unix_path = path};
    assert_int_equal(admin_start(&loop, &config, &fake_ops, &fake, &other, &err), 0);
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    snprintf(to.sun_path, sizeof(to.sun_path), "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    static const char request[] = "GET /healthz HTTP/1.0\r\n\r\n";
    say(fd, request, sizeof(request) - 1);
    assert_int_equal(status_of(hear(fd, NULL)), 200);
    close(fd);
    bool stopped = false;
    admin_stop(other, on_stopped, &stopped);
    assert_true(loop_run_until(&loop, is_true, &stopped, WAIT_MS));
    assert_int_not_equal(access(path, F_OK), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_life_of_an_object),
        TEST(test_backend_endpoints_by_patch),
        TEST(test_apply_is_all_or_nothing),
        TEST(test_commit_failures_have_their_status),
        TEST(test_a_busy_object_is_planned_again),
        TEST(test_wait_all),
        TEST(test_ticket_keys),
        TEST(test_lists_and_pages),
        TEST(test_long_lists_come_in_chunks),
        TEST(test_watch),
        TEST(test_a_watcher_that_leaves_is_forgotten),
        TEST(test_node_answers),
        TEST(test_refusals),
        TEST(test_a_large_body_is_refused_early),
        TEST(test_continue_is_said_when_the_body_is_wanted),
        TEST(test_keep_alive_and_pipelining),
        TEST(test_the_client_leaves_during_a_write),
        TEST(test_half_closed_requests_are_answered),
        TEST(test_slow_requests),
        TEST(test_idle_connections_end_in_silence),
        TEST(test_a_watcher_that_is_overtaken),
        TEST(test_a_watcher_that_does_not_read),
        TEST(test_stop_waits_for_a_write),
        TEST(test_addresses_that_are_refused),
        TEST(test_unix_socket),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
