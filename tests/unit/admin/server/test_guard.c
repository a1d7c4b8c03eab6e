/*
 * Who asks, over a plain port and a unix socket: tokens, their making, and what the trail says.
 * covers: guard.c auth.c audit_record.c h_tokens.c h_audit.c h_openapi.c
 */
#include "tests/support/unit.h"

#include "admin/server/auth.h"
#include "admin/server/server.h"
#include "node/net/loop.h"
#include "node/tls/crypto.h"
#include "tests/unit/admin/server/fake_ops.h"

#include <jansson.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { WAIT_MS = 20000 };

static uv_loop_t loop;
static struct fake fake;
static struct admin *admin;
static struct addr address;
static char folder[] = "/tmp/skein-guard-XXXXXX";
static char socket_path[64], audit_path[64];
static char answer_text[1 << 20];
static size_t answer_len;

static int set_up(void **state)
{
    (void)state;
    struct err_info err = {0};
    snprintf(folder, sizeof(folder), "/tmp/skein-guard-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(socket_path, sizeof(socket_path), "%s/s", folder);
    snprintf(audit_path, sizeof(audit_path), "%s/audit.log", folder);
    loop_init(&loop);
    fake_init(&fake, &loop);
    assert_int_equal(addr_parse("127.0.0.1:0", &address, &err), 0);
    struct admin_config config = {
        .listen = &address, .unix_path = socket_path, .audit_path = audit_path};
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
    admin_stop(admin, on_stopped, &stopped);
    assert_true(loop_run_until(&loop, is_true, &stopped, WAIT_MS));
    fake_deinit(&fake);
    (void)unlink(audit_path);
    assert_int_equal(rmdir(folder), 0);
    loop_close_clean(&loop);
    return 0;
}

static bool received(void *arg)
{
    int fd = *(int *)arg;
    ssize_t got;
    while ((got = recv(fd, answer_text + answer_len, sizeof(answer_text) - 1 - answer_len,
                       MSG_DONTWAIT)) > 0) {
        answer_len += (size_t)got;
    }
    answer_text[answer_len] = '\0';
    return got == 0;
}

/* One request: over the unix socket when fields is NULL. Returns the status. */
static int ask(const char *line, const char *fields, const char *body)
{
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    snprintf(local.sun_path, sizeof(local.sun_path), "%s", socket_path);
    int fd = socket(fields != NULL ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int rc = fields != NULL ? connect(fd, &address.sa, addr_len(&address))
                            : connect(fd, (struct sockaddr *)(void *)&local, sizeof(local));
    assert_int_equal(rc, 0);
    char *request = mem_printf("%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s"
                               "Content-Length: %zu\r\n\r\n%s",
                               line, fields != NULL ? fields : "", strlen(body), body);
    assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), (ssize_t)strlen(request));
    mem_free(request);
    answer_len = 0;
    assert_true(loop_run_until(&loop, received, &fd, WAIT_MS));
    close(fd);
    return atoi(answer_text + strlen("HTTP/1.1 "));
}

/* A token made over the unix socket: its Authorization line; mem_free. */
static char *make_token(const char *name, const char *spec)
{
    char *body = mem_printf("{\"metadata\":{\"name\":\"%s\"},\"spec\":%s}", name, spec);
    int status = ask("POST /v1/tokens", NULL, body);
    mem_free(body);
    assert_int_equal(status, 201);
    const char *secret = strstr(answer_text, "\"secret\":\"");
    assert_non_null(secret);
    assert_null(strstr(answer_text, "hash"));
    return mem_printf("Authorization: Bearer %.*s\r\n", AUTH_SECRET_LEN, secret + 10);
}

#define ROUTE_A "{\"spec\":{\"host\":\"a.example.com\",\"to\":[{\"backend\":\"web\"}]}}"
#define PATH_A  "/v1/namespaces/shop/routes/a"

static void test_secrets(void **state)
{
    (void)state;
    char first[AUTH_SECRET_LEN + 1], second[AUTH_SECRET_LEN + 1];
    uint8_t hash[TOKEN_HASH_BYTES], again[TOKEN_HASH_BYTES];
    auth_secret_new(first, hash);
    auth_secret_new(second, again);
    assert_string_not_equal(first, second);
    assert_int_equal(strlen(first), AUTH_SECRET_LEN);
    assert_int_equal(strncmp(first, "skein_", 6), 0);
    assert_int_equal(strspn(first + 6, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                       "0123456789-_"),
                     43);
    crypto_sha256(first, AUTH_SECRET_LEN, again);
    assert_memory_equal(hash, again, sizeof(hash));
}

static void test_local_users_are_admins(void **state)
{
    (void)state;
    assert_int_equal(ask("PUT /v1/settings/default", "", "{\"spec\":{}}"), 201);
    assert_int_equal(ask("DELETE /v1/settings/default", NULL, ""), 200);
    assert_int_equal(ask("GET /v1/audit", NULL, ""), 200);
    assert_non_null(strstr(answer_text, "\"user\":\"loopback\",\"via\":\"loopback\""));
    char *uid =
        mem_printf("\"user\":\"uid %u\",\"via\":\"unix\",\"from\":\"unix\"", (unsigned)getuid());
    assert_non_null(strstr(answer_text, uid));
    mem_free(uid);
}

static void test_tokens(void **state)
{
    (void)state;
    char *editor = make_token("e", "{\"role\":\"Editor\",\"namespace\":\"shop\"}");
    char *late = make_token("l", "{\"role\":\"Viewer\",\"expires\":\"2020-01-01T00:00:00Z\"}");
    assert_int_equal(ask("PUT " PATH_A, editor, ROUTE_A), 201);
    assert_int_equal(ask("PUT /v1/namespaces/bank/routes/a", editor, ROUTE_A), 403);
    assert_int_equal(ask("GET /v1/tokens", editor, ""), 403);
    assert_int_equal(ask("GET /v1/routes", late, ""), 401);
    assert_non_null(strstr(answer_text, "expired"));
    assert_non_null(strstr(answer_text, "WWW-Authenticate: Bearer"));
    char *twice = mem_printf("%s%s", editor, editor);
    assert_int_equal(ask("GET /v1/routes", twice, ""), 401);
    mem_free(twice);
    static const char *const none[] = {
        "Authorization: Basic YTpi\r\n", "Authorization: Bearer\r\n", "Authorization: Bearer \r\n",
        "Authorization: Bearer skein_short\r\n", "Authorization: \r\n"};
    for (size_t i = 0; i < ARRAY_LEN(none); i++) {
        assert_int_equal(ask("GET /v1/routes", none[i], ""), 401);
    }
    assert_int_equal(ask("POST /v1/tokens", NULL,
                         "{\"metadata\":{\"name\":\"e\"},\"spec\":{\"role\":\"Admin\"}}"),
                     409);
    assert_int_equal(ask("GET /v1/tokens/e", NULL, ""), 200);
    assert_null(strstr(answer_text, "hash"));
    assert_int_equal(ask("DELETE /v1/tokens/e", NULL, ""), 200);
    assert_null(strstr(answer_text, "hash"));
    assert_int_equal(ask("GET /v1/routes", editor, ""), 401);
    mem_free(editor);
    mem_free(late);
}

static void test_tokens_are_made_one_way(void **state)
{
    (void)state;
    static const char body[] = "{\"kind\":\"Token\",\"metadata\":{\"name\":\"t\"},"
                               "\"spec\":{\"role\":\"Viewer\"}}";
    assert_int_equal(ask("PUT /v1/tokens/t", NULL, body), 422);
    assert_int_equal(ask("POST /v1/apply", NULL, body), 422);
    assert_non_null(strstr(answer_text, "POST /v1/tokens"));
    assert_int_equal(ask("POST /v1/tokens", NULL, "{\"spec\":{\"role\":\"Viewer\"}}"), 422);
    assert_int_equal(ask("POST /v1/tokens", NULL, "[1]"), 422);
    assert_int_equal(ask("POST /v1/tokens", NULL, "{"), 400);
    assert_int_equal(ask("POST /v1/tokens", NULL,
                         "{\"metadata\":{\"name\":\"t\"},\"spec\":{\"role\":\"Viewer\","
                         "\"hash\":\"AAAA\"}}"),
                     422);
    assert_int_equal(ask("GET /v1/tokens/t", NULL, ""), 404);
    char *token = make_token("t", "{\"role\":\"Viewer\"}");
    assert_int_equal(ask("PATCH /v1/tokens/t", NULL, "{\"spec\":{\"role\":\"Admin\"}}"), 422);
    assert_int_equal(ask("GET /v1/export", NULL, ""), 200);
    assert_null(strstr(answer_text, "Token"));
    mem_free(token);
}

static void test_failures_are_throttled(void **state)
{
    (void)state;
    char *good = make_token("g", "{\"role\":\"Viewer\"}");
    char *bad = mem_printf("Authorization: Bearer skein_%043d\r\n", 0);
    for (int i = 0; i < THROTTLE_BURST; i++) {
        assert_int_equal(ask("GET /v1/routes", bad, ""), 401);
    }
    assert_int_equal(ask("GET /v1/routes", bad, ""), 429);
    assert_non_null(strstr(answer_text, "Retry-After: "));
    assert_int_equal(ask("GET /v1/routes", good, ""), 200);
    mem_free(good);
    mem_free(bad);
}

static void test_the_trail(void **state)
{
    (void)state;
    char *viewer = make_token("v", "{\"role\":\"Viewer\"}");
    assert_int_equal(ask("PUT " PATH_A, "", ROUTE_A), 201);
    assert_int_equal(ask("PATCH " PATH_A, "", "{\"spec\":{\"path\":\"/secret-value\"}}"), 200);
    assert_int_equal(ask("PUT " PATH_A "?dryRun=true", "", ROUTE_A), 200);
    assert_int_equal(ask("DELETE " PATH_A, viewer, ""), 403);
    assert_int_equal(ask("GET /v1/audit?limit=3&since=1h", "", ""), 200);
    assert_non_null(strstr(answer_text, "\"fields\":[\"spec.path\"]"));
    assert_non_null(
        strstr(answer_text, "\"method\":\"DELETE\",\"path\":\"" PATH_A "\",\"status\":403"));
    assert_null(strstr(answer_text, "secret-value"));
    assert_null(strstr(answer_text, "dryRun"));
    assert_null(strstr(answer_text, "/v1/tokens")); /* the fourth last */
    assert_int_equal(ask("GET /v1/audit?user=v", "", ""), 200);
    assert_null(strstr(answer_text, "spec.path"));
    assert_int_equal(ask("GET /v1/audit?since=yesterday", "", ""), 400);
    assert_int_equal(ask("GET /v1/audit", viewer, ""), 403);
    /* Refusals cannot push out what was done: they are recorded up to a rate. */
    for (int i = 0; i < 200; i++) {
        assert_int_equal(ask("DELETE " PATH_A, viewer, ""), 403);
    }
    assert_int_equal(ask("GET /v1/audit?limit=10000", "", ""), 200);
    assert_non_null(strstr(answer_text, "spec.path"));
    mem_free(viewer);
}

/* Every reference leads somewhere. */
static void check_references(const json_t *value, const json_t *schemas)
{
    const char *key;
    json_t *member;
    size_t i;
    if (json_is_array(value)) {
        json_array_foreach(value, i, member) check_references(member, schemas);
    }
    json_object_foreach((json_t *)unconst(value), key, member)
    {
        if (strcmp(key, "$ref") == 0) {
            const char *name = strrchr(json_string_value(member), '/') + 1;
            if (json_object_size(json_object_get(schemas, name)) == 0) {
                fail_msg("%s leads nowhere", name);
            }
        }
        check_references(member, schemas);
    }
}

static void test_the_openapi_document(void **state)
{
    (void)state;
    json_error_t error;
    assert_int_equal(ask("GET /openapi.json", "", ""), 200);
    json_t *document = json_loads(strstr(answer_text, "\r\n\r\n") + 4, 0, &error);
    assert_non_null(document);
    const json_t *components = json_object_get(document, "components");
    const json_t *schemas = json_object_get(components, "schemas");
    check_references(document, schemas);
    const char *scheme = NULL;
    assert_int_equal(json_unpack(document, "{s:{s:{s:{s:s}}}}", "components", "securitySchemes",
                                 "token", "scheme", &scheme),
                     0);
    assert_string_equal(scheme, "bearer");
    assert_int_equal(json_array_size(json_object_get(document, "security")), 2);
    const json_t *paths = json_object_get(document, "paths");
    for (const struct route *route = routes; route->method != NULL; route++) {
        if (strstr(route->path, "{kinds}") == NULL) {
            assert_non_null(json_object_get(paths, route->path));
        }
    }
    const json_t *one = json_object_get(paths, "/v1/namespaces/{namespace}/routes/{name}");
    const char *role = NULL;
    assert_int_equal(json_unpack((json_t *)unconst(one), "{s:{s:s}}", "patch", "x-role", &role), 0);
    assert_string_equal(role, "editor");
    assert_null(json_object_get(json_object_get(paths, "/v1/tokens/{name}"), "put"));
    assert_non_null(json_object_get(json_object_get(paths, "/v1/tokens"), "post"));
    assert_null(strstr(answer_text, "\"hash\":{\"type\":\"string\",\"contentEncoding"));
    if (kind_by_name("Certificate") != NULL) {
        assert_non_null(strstr(answer_text, "\"writeOnly\":true"));
    }
    assert_non_null(json_object_get(json_object_get(schemas, "Problem"), "properties"));
    json_decref(document);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_secrets),
        cmocka_unit_test_setup_teardown(test_local_users_are_admins, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_tokens, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_tokens_are_made_one_way, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_failures_are_throttled, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_openapi_document, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_trail, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
