/*
 * The commands against a scripted server on loopback: what they ask, what they print, how they end.
 * covers: client.c files.c cmd_get.c cmd_describe.c cmd_apply.c cmd_delete.c cmd_cluster.c
 * cmd_token.c cmd_tickets.c
 */
#include "tests/support/unit.h"

#include "admin/cli/cli.h"
#include "node/base/mem.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { REQUESTS_MAX = 16, TEXT_MAX = 64 * 1024 };

/* One answer per request, in their order; the requests are kept. */
static struct script {
    struct {
        int status;
        const char *type;
        const char *body;
    } answers[REQUESTS_MAX];
    int count;
    char requests[REQUESTS_MAX][TEXT_MAX];
    _Atomic int asked;
} script;

static int listener = -1;
static pthread_t server;
static char url[64];
static char folder[] = "/tmp/skein-test-XXXXXX";
static char *out_text, *err_text;

static void answer_one(int fd, int idx)
{
    char *request = script.requests[idx];
    size_t len = 0;
    size_t wanted = SIZE_MAX;
    while (len < wanted && len < TEXT_MAX - 1) {
        ssize_t got = recv(fd, request + len, TEXT_MAX - 1 - len, 0);
        if (got <= 0) {
            break;
        }
        len += (size_t)got;
        request[len] = '\0';
        const char *end = strstr(request, "\r\n\r\n");
        if (end != NULL && wanted == SIZE_MAX) {
            const char *length = strcasestr(request, "Content-Length:");
            size_t body = length != NULL && length < end ? strtoul(length + 15, NULL, 10) : 0;
            wanted = (size_t)(end + 4 - request) + body;
        }
    }
    char head[256];
    snprintf(
        head, sizeof(head),
        "HTTP/1.1 %d X\r\nContent-Type: %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
        script.answers[idx].status, script.answers[idx].type, strlen(script.answers[idx].body));
    (void)send(fd, head, strlen(head), MSG_NOSIGNAL);
    (void)send(fd, script.answers[idx].body, strlen(script.answers[idx].body), MSG_NOSIGNAL);
}

static void *serve(void *arg)
{
    (void)arg;
    for (int i = 0; i < script.count; i++) {
        int fd = accept(listener, NULL, NULL);
        if (fd < 0) {
            break;
        }
        script.asked++; /* before the answer: whoever has one finds it counted */
        answer_one(fd, i);
        close(fd);
    }
    return NULL;
}

static void expect_request(int status, const char *body)
{
    script.answers[script.count].status = status;
    script.answers[script.count].type =
        status < 400 ? "application/json" : "application/problem+json";
    script.answers[script.count++].body = body;
}

/* Run against the script. Words are split at blanks; '~' in a word stands for the test's folder. */
static int run(const char *line)
{
    static char text[2048];
    static char program[] = "skeinctl";
    char *argv[32] = {program};
    int argc = 1;
    size_t out_len, err_len, used = 0;
    for (; *line != '\0' && used + sizeof(folder) < sizeof(text); line++) {
        used += (size_t)snprintf(text + used, sizeof(text) - used, *line == '~' ? "%s" : "%.1s",
                                 *line == '~' ? folder : line);
    }
    for (char *rest = text, *word; argc < 31 && (word = strsep(&rest, " ")) != NULL;) {
        argv[argc++] = word;
    }
    free(out_text);
    free(err_text);
    FILE *out = open_memstream(&out_text, &out_len);
    FILE *err = open_memstream(&err_text, &err_len);
    assert_int_equal(pthread_create(&server, NULL, serve, NULL), 0);
    int code = cli_run(argc, argv, out, err);
    fclose(out);
    fclose(err);
    /* Requests that never came: let the server see an end. */
    for (int i = script.asked; i < script.count; i++) {
        struct sockaddr_in to;
        socklen_t len = sizeof(to);
        getsockname(listener, (struct sockaddr *)&to, &len);
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0) {
            close(fd);
        }
    }
    pthread_join(server, NULL);
    return code;
}

static bool asked(int idx, const char *start)
{
    return strncmp(script.requests[idx], start, strlen(start)) == 0;
}

static void write_file(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int set_up(void **state)
{
    (void)state;
    memset(&script, 0, sizeof(script));
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof(at);
    assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(listener, 16), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &len), 0);
    snprintf(url, sizeof(url), "http://127.0.0.1:%d", ntohs(at.sin_port));
    setenv("SKEIN_SERVER", url, 1);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    close(listener);
    return 0;
}

/* ---- tests ---- */

#define ROUTES                                                                                     \
    "{\"since\":\"r1:1\",\"items\":[{\"kind\":\"Route\",\"metadata\":{\"namespace\":\"shop\","     \
    "\"name\":\"a\"},\"spec\":{\"host\":\"a.example.com\",\"to\":[{\"backend\":\"x\"},"            \
    "{\"backend\":\"y\"}]}}]}"

static void test_get_list(void **state)
{
    (void)state;
    expect_request(200, ROUTES);
    assert_int_equal(run("get routes -n shop -l tier=gold"), CLI_OK);
    assert_true(asked(0, "GET /v1/namespaces/shop/routes?selector=tier%3Dgold HTTP/1.1\r\n"));
    assert_non_null(strstr(out_text, "NAME  HOST"));
    assert_non_null(strstr(out_text, "a     a.example.com"));
    assert_non_null(strstr(out_text, "x,y"));
    assert_null(strstr(out_text, "NAMESPACE"));
}

static void test_get_all_namespaces_and_kinds(void **state)
{
    (void)state;
    expect_request(200, ROUTES);
    expect_request(200, "{\"items\":[]}");
    assert_int_equal(run("get rt,nodes -A"), CLI_OK);
    assert_true(asked(0, "GET /v1/routes HTTP/1.1\r\n"));
    assert_true(asked(1, "GET /v1/nodes HTTP/1.1\r\n"));
    assert_non_null(strstr(out_text, "NAMESPACE  NAME"));
    assert_non_null(strstr(err_text, "no nodes"));
}

static void test_get_json(void **state)
{
    (void)state;
    expect_request(200, ROUTES);
    assert_int_equal(run("get routes -n shop -o json"), CLI_OK);
    json_error_t error;
    json_t *json = json_loads(out_text, 0, &error);
    assert_int_equal(json_object_size(json), 1);
    assert_int_equal(json_array_size(json_object_get(json, "items")), 1);
    json_decref(json);
}

static void test_get_named(void **state)
{
    (void)state;
    expect_request(404, "{\"title\":\"Not Found\",\"status\":404,\"detail\":\"no a\"}");
    expect_request(200, "{\"kind\":\"Route\",\"metadata\":{\"name\":\"b\"}}");
    assert_int_equal(run("get route a b -n shop"), CLI_REFUSED);
    assert_true(asked(1, "GET /v1/namespaces/shop/routes/b "));
    assert_non_null(strstr(err_text, "no a (404 Not Found)"));
    assert_non_null(strstr(out_text, "b "));
}

static void test_apply_sends_one_file_as_it_is(void **state)
{
    (void)state;
    write_file("one.yaml", "# a comment\nkind: Namespace\nmetadata: {name: shop}\n");
    expect_request(200, "{\"revision\":1,\"dryRun\":false,\"items\":[{\"action\":\"configured\","
                        "\"kind\":\"Backend\",\"namespace\":\"shop\",\"name\":\"web\","
                        "\"endpoints\":{\"created\":2,\"deleted\":1,\"unchanged\":4}}],"
                        "\"wait\":{\"confirmed\":true}}");
    assert_int_equal(run("apply -f ~/one.yaml --wait"), CLI_OK);
    assert_true(asked(0, "POST /v1/apply?wait=all "));
    assert_non_null(strstr(script.requests[0], "# a comment"));
    assert_string_equal(out_text,
                        "Backend shop/web configured (endpoints: 2 created, 1 deleted)\n");
}

static void test_apply_that_is_not_confirmed(void **state)
{
    (void)state;
    write_file("one.yaml", "kind: Namespace\nmetadata: {name: shop}\n");
    expect_request(202, "{\"items\":[{\"action\":\"created\",\"kind\":\"Namespace\",\"name\":"
                        "\"shop\"}],\"wait\":{\"confirmed\":false,\"detail\":\"r3 is slow\"}}");
    assert_int_equal(run("apply -f ~/one.yaml --wait"), CLI_REFUSED);
    assert_string_equal(out_text, "Namespace shop created\n");
    assert_non_null(strstr(err_text, "r3 is slow"));
}

static void test_apply_of_a_folder_is_one_request(void **state)
{
    (void)state;
    char path[256];
    snprintf(path, sizeof(path), "%s/many", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    write_file("many/a.yaml", "kind: Namespace\nmetadata: {name: a}\n---\n\nkind: Namespace\n"
                              "metadata: {name: b}\n");
    write_file("many/b.json", "{\"kind\":\"Namespace\",\"metadata\":{\"name\":\"c\"}}");
    write_file("many/notes.txt", "not a manifest");
    expect_request(422, "{\"title\":\"Unprocessable Content\",\"status\":422,\"detail\":\"2 "
                        "faults\",\"errors\":[{\"path\":\"[1] Namespace b: spec.x\",\"message\":"
                        "\"is wrong\",\"index\":1,\"line\":1},{\"path\":\"[2] Namespace c\","
                        "\"message\":\"too\",\"index\":2}],\"errorsTotal\":7}");
    assert_int_equal(run("apply -f ~/many"), CLI_REFUSED);
    const char *body = strstr(script.requests[0], "\r\n\r\n");
    assert_non_null(body);
    json_error_t error;
    json_t *json = json_loads(body + 4, 0, &error);
    assert_int_equal(json_array_size(json), 3);
    json_decref(json);
    assert_non_null(strstr(err_text, "many/a.yaml:5: [1] Namespace b: spec.x: is wrong\n"));
    assert_non_null(strstr(err_text, "many/b.json"));
    assert_non_null(strstr(err_text, "7 in all"));
    assert_string_equal(out_text, "");

    /* A file that does not parse is told by its name, and nothing is sent. */
    memset(&script, 0, sizeof(script));
    write_file("many/c.yaml", "kind: [");
    assert_int_equal(run("apply -f ~/many"), CLI_REFUSED);
    assert_non_null(strstr(err_text, "many/c.yaml: line"));
}

static void test_apply_in_parts(void **state)
{
    (void)state;
    char path[256];
    snprintf(path, sizeof(path), "%s/one.yaml", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int i = 0; i < 1100; i++) {
        fprintf(file, "---\nkind: Namespace\nmetadata: {name: n%d}\n", i);
    }
    fclose(file);
    expect_request(200, "{\"items\":[{\"action\":\"created\",\"kind\":\"Namespace\",\"name\":"
                        "\"n0\"}]}");
    expect_request(422, "{\"detail\":\"1 fault\",\"errors\":[{\"path\":\"[3] Namespace n503\","
                        "\"message\":\"is wrong\",\"index\":3,\"line\":1}]}");
    assert_int_equal(run("apply -f ~/one.yaml --in-parts"), CLI_REFUSED);
    assert_int_equal(script.asked, 2);
    assert_non_null(strstr(script.requests[0], "\"n499\""));
    assert_null(strstr(script.requests[0], "\"n500\""));
    assert_non_null(strstr(script.requests[1], "\"n500\""));
    assert_non_null(strstr(err_text, "one.yaml:1511: [3] Namespace n503: is wrong"));
    assert_non_null(strstr(err_text, "the first 500 of 1100 objects are written"));
    assert_string_equal(out_text, "Namespace n0 created\n");
}

static void test_diff(void **state)
{
    (void)state;
    write_file("one.yaml", "kind: Namespace\nmetadata: {name: shop}\n");
    expect_request(200, "{\"items\":[{\"action\":\"unchanged\",\"kind\":\"Namespace\",\"name\":"
                        "\"shop\",\"diff\":[]}]}");
    assert_int_equal(run("diff -f ~/one.yaml"), 0);
    assert_true(asked(0, "POST /v1/apply?dryRun=true "));
    assert_string_equal(out_text, "");
    memset(&script, 0, sizeof(script));
    expect_request(200,
                   "{\"items\":[{\"action\":\"configured\",\"kind\":\"Route\",\"namespace\":"
                   "\"s\",\"name\":\"r\",\"diff\":[{\"path\":\"spec.host\",\"old\":\"a\",\"new\":"
                   "\"b\"},{\"path\":\"spec.path\",\"new\":\"/x\"},{\"path\":\"spec.tls\",\"old\":"
                   "{\"a\":1}}]},{\"action\":\"created\",\"kind\":\"Namespace\",\"name\":\"n\","
                   "\"diff\":[{\"path\":\"\",\"new\":{\"kind\":\"Namespace\"}}]}]}");
    assert_int_equal(run("diff -f ~/one.yaml"), 1);
    assert_string_equal(out_text, "Route s/r configured\n"
                                  "  ~ spec.host: \"a\" -> \"b\"\n"
                                  "  + spec.path: \"/x\"\n"
                                  "  - spec.tls: {\"a\":1}\n"
                                  "Namespace n created\n"
                                  "  + kind: Namespace\n");
    memset(&script, 0, sizeof(script));
    expect_request(422, "{\"detail\":\"bad\"}");
    assert_int_equal(run("diff -f ~/one.yaml"), 2);
}

static void test_delete(void **state)
{
    (void)state;
    expect_request(404, "{\"detail\":\"there is no Route\"}");
    expect_request(200, "{\"kind\":\"Route\"}");
    assert_int_equal(run("delete route -n shop a b --wait"), CLI_REFUSED);
    assert_true(asked(0, "DELETE /v1/namespaces/shop/routes/a?wait=all "));
    assert_true(asked(1, "DELETE /v1/namespaces/shop/routes/b?wait=all "));
    assert_string_equal(out_text, "Route shop/b deleted\n");

    /* By manifest: the last object first, and what is gone already is no failure. */
    memset(&script, 0, sizeof(script));
    write_file("two.yaml", "kind: Namespace\nmetadata: {name: shop}\n---\nkind: Route\n"
                           "metadata: {namespace: shop, name: a}\n");
    expect_request(404, "{\"detail\":\"there is no Route\"}");
    expect_request(200, "{\"kind\":\"Namespace\"}");
    assert_int_equal(run("delete -f ~/two.yaml --dry-run"), CLI_OK);
    assert_true(asked(0, "DELETE /v1/namespaces/shop/routes/a?dryRun=true "));
    assert_true(asked(1, "DELETE /v1/namespaces/shop?dryRun=true "));
    assert_string_equal(out_text, "Route shop/a is not there\nNamespace shop deleted (dry run)\n");
}

static void test_cluster(void **state)
{
    (void)state;
    expect_request(200, "{\"node\":\"r1\",\"ready\":false,\"reason\":\"alone\",\"inStep\":false,"
                        "\"members\":[{\"name\":\"r1\",\"self\":true,\"state\":\"alive\",\"ready\":"
                        "false,\"address\":\"10.0.0.1:1\",\"version\":\"0.1.0\",\"revision\":7,"
                        "\"lag\":0,\"clockOffsetMs\":3,\"heardMsAgo\":0},{\"name\":\"r2\","
                        "\"state\":\"dead\",\"ready\":false,\"revision\":5,\"lag\":2,"
                        "\"clockOffsetMs\":-3660000,\"clockFlagged\":true,\"heardMsAgo\":null}]}");
    assert_int_equal(run("cluster"), CLI_OK);
    for (const char *const *word = (const char *const[]){"+3ms", "-1h01m (off)", "never", "self",
                                                         "not all live nodes", "alone", NULL};
         *word != NULL; word++) {
        if (strstr(out_text, *word) == NULL) {
            fail_msg("\"%s\" is missing in %s", *word, out_text);
        }
    }
}

static void test_describe(void **state)
{
    (void)state;
    expect_request(200, "{\"kind\":\"Backend\",\"metadata\":{\"namespace\":\"shop\",\"name\":"
                        "\"web\",\"labels\":{\"a\":\"b\"}},\"spec\":{\"balance\":\"Random\"}}");
    expect_request(200, "{\"items\":[{\"spec\":{\"backend\":\"web\",\"address\":\"10.0.0.1:80\"}},"
                        "{\"spec\":{\"backend\":\"other\",\"address\":\"10.0.0.2:80\"}}]}");
    expect_request(200, ROUTES);
    expect_request(200, "{\"items\":[{\"kind\":\"TcpRoute\",\"metadata\":{\"name\":\"db\"},"
                        "\"spec\":{\"port\":5432,\"to\":[{\"backend\":\"web\"}]}}]}");
    assert_int_equal(run("describe backend -n shop web"), CLI_OK);
    assert_non_null(strstr(out_text, "Backend shop/web\n"));
    assert_non_null(strstr(out_text, "a=b"));
    assert_non_null(strstr(out_text, "    balance: Random\n"));
    assert_non_null(strstr(out_text, "10.0.0.1:80"));
    assert_null(strstr(out_text, "10.0.0.2:80"));
    assert_non_null(strstr(out_text, "routes: none"));
    assert_non_null(strstr(out_text, "5432"));
}

static void test_export_and_watch(void **state)
{
    (void)state;
    expect_request(200, "kind: Namespace\n");
    assert_int_equal(run("export -n shop --out ~/all.yaml"), CLI_OK);
    assert_true(asked(0, "GET /v1/export?format=yaml&namespace=shop "));
    memset(&script, 0, sizeof(script));
    expect_request(200, "{\"type\":\"start\",\"node\":\"r1\",\"since\":\"r1:1\"}\n{\"type\":"
                        "\"deleted\",\"since\":\"r1:2\",\"object\":{\"kind\":\"Route\","
                        "\"metadata\":{\"namespace\":\"shop\",\"name\":\"a\"}}}\n");
    assert_int_equal(run("watch routes --since r1:1"), CLI_OK);
    assert_true(asked(0, "GET /v1/watch?kind=routes&since=r1%3A1 "));
    assert_string_equal(out_text, "deleted  Route shop/a  (r1:2)\n");
    memset(&script, 0, sizeof(script));
    expect_request(410, "{\"title\":\"Gone\",\"detail\":\"too old\"}");
    assert_int_equal(run("watch --since r1:1"), CLI_REFUSED);
    assert_non_null(strstr(err_text, "too old (410 Gone)"));
}

static void test_answers_of_something_else(void **state)
{
    (void)state;
    expect_request(200, "<html>");
    assert_int_equal(run("cluster"), CLI_REFUSED);
    assert_non_null(strstr(err_text, "does not answer as a node does"));
    memset(&script, 0, sizeof(script));
    expect_request(500, "");
    assert_int_equal(run("get routes"), CLI_REFUSED);
    assert_non_null(strstr(err_text, "500"));
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) != NULL ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    static const char *const names[] = {
        "many/a.yaml", "many/b.json", "many/c.yaml", "many/notes.txt", "many", "one.yaml",
        "token",       "none",        "two.yaml",    "all.yaml",       "."};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char path[256];
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        (void)remove(path);
    }
    free(out_text);
    free(err_text);
    return remove(folder);
}

/* The next run answers to what is expected from here on. */
static void next_run(void)
{
    script.count = 0;
    script.asked = 0;
}

static void test_tokens(void **state)
{
    (void)state;
    expect_request(
        201, "{\"spec\":{\"role\":\"Editor\",\"namespace\":\"shop\"},\"secret\":\"skein_x\"}");
    assert_int_equal(run("token create --role editor -n shop --expires 30d --description x t"), 0);
    assert_string_equal(out_text, "skein_x\n"); /* alone, to be piped */
    assert_true(asked(0, "POST /v1/tokens HTTP/1.1"));
    assert_non_null(strstr(script.requests[0], "\"role\":\"Editor\",\"namespace\":\"shop\""));
    assert_non_null(strstr(script.requests[0], "\"expires\":\"20"));
    next_run();
    assert_int_equal(run("token create t"), 2);
    assert_int_equal(run("token create --role root t"), 2);
    assert_int_equal(run("token create --role viewer --expires soon t"), 2);
    assert_int_equal(run("token list --role viewer"), 2);
    assert_int_equal(run("token forge t"), 2);
}

static void test_tokens_are_listed_and_revoked(void **state)
{
    (void)state;
    expect_request(200, "{\"items\":[{\"kind\":\"Token\",\"metadata\":{\"name\":\"t\"},"
                        "\"spec\":{\"role\":\"Viewer\"}}]}");
    assert_int_equal(run("token list"), 0);
    assert_true(asked(0, "GET /v1/tokens"));
    assert_non_null(strstr(out_text, "Viewer"));
    next_run();
    expect_request(200, "{\"kind\":\"Token\"}");
    assert_int_equal(run("token revoke t --wait"), 0);
    assert_true(asked(0, "DELETE /v1/tokens/t?wait=all"));
    assert_string_equal(out_text, "token t is revoked\n");
}

static void test_ticket_keys(void **state)
{
    (void)state;
    static const char keys[] = "{\"items\":[{\"name\":\"0a1b2c3d\",\"state\":\"Active\"}]}";
    expect_request(200, keys);
    assert_int_equal(run("tickets"), 0);
    assert_true(asked(0, "GET /v1/tickets HTTP/1.1"));
    assert_non_null(strstr(out_text, "0a1b2c3d"));
    next_run();
    expect_request(200, keys);
    assert_int_equal(run("tickets -o json rotate --revoke --wait"), 0);
    assert_true(asked(0, "POST /v1/tickets/rotate?wait=all HTTP/1.1"));
    assert_non_null(strstr(script.requests[0], "{\"revoke\": true}"));
    assert_non_null(strstr(out_text, "\"state\": \"Active\""));
    next_run();
    expect_request(202, "{\"items\":[],\"unconfirmed\":\"r3 did not\"}");
    assert_int_equal(run("tickets rotate"), 1);
    assert_true(asked(0, "POST /v1/tickets/rotate HTTP/1.1"));
    assert_non_null(strstr(err_text, "r3 did not"));
    next_run();
    assert_int_equal(run("tickets --revoke"), 2);
    assert_int_equal(run("tickets turn"), 2);
}

static void test_audit(void **state)
{
    (void)state;
    expect_request(
        200,
        "{\"items\":[{\"time\":\"T\",\"user\":\"deploy\",\"via\":\"token\",\"from\":\"10.0.0.9\","
        "\"method\":\"POST\",\"path\":\"/v1/apply\",\"status\":200,\"changes\":["
        "{\"action\":\"configured\",\"kind\":\"Route\",\"id\":\"shop/"
        "a\",\"fields\":[\"spec.path\"]},"
        "{\"action\":\"deleted\",\"kind\":\"Route\",\"id\":\"shop/b\"}]},"
        "{\"method\":\"DELETE\",\"path\":\"/x\",\"status\":403}]}");
    assert_int_equal(run("audit --since 1h --limit 7 --user deploy"), 0);
    assert_true(asked(0, "GET /v1/audit?limit=7&since=1h&user=deploy HTTP/1.1"));
    assert_non_null(strstr(out_text, "configured Route shop/a (spec.path), 1 more"));
    assert_non_null(strstr(out_text, "DELETE /x"));
}

static void test_credentials(void **state)
{
    (void)state;
    write_file("token", "  skein_abc\n");
    write_file("none", "two words\n");
    expect_request(200, "{\"items\":[]}");
    assert_int_equal(run("get routes --token-file ~/token"), 0);
    assert_non_null(strstr(script.requests[0], "Authorization: Bearer skein_abc\r\n"));
    next_run();
    assert_int_equal(run("get routes --token-file ~/none"), 2);
    assert_int_equal(run("get routes --token-file ~/missing"), 2);
    assert_int_equal(run("get routes --cert ~/token"), 2);
    assert_int_equal(run("get routes --token x -s http://192.0.2.1:1"), 2);
    assert_non_null(strstr(err_text, "https://"));
    assert_int_equal(run("get routes -s ftp://localhost"), 2);
    /* Told what to do. */
    next_run();
    expect_request(401, "{\"detail\":\"a credential is needed\",\"title\":\"Unauthorized\"}");
    assert_int_equal(run("get routes"), 1);
    assert_non_null(strstr(err_text, "SKEIN_TOKEN"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_get_list),
        TEST(test_get_all_namespaces_and_kinds),
        TEST(test_get_json),
        TEST(test_get_named),
        TEST(test_apply_sends_one_file_as_it_is),
        TEST(test_apply_that_is_not_confirmed),
        TEST(test_apply_of_a_folder_is_one_request),
        TEST(test_apply_in_parts),
        TEST(test_diff),
        TEST(test_delete),
        TEST(test_cluster),
        TEST(test_describe),
        TEST(test_export_and_watch),
        TEST(test_answers_of_something_else),
        TEST(test_tokens),
        TEST(test_tokens_are_listed_and_revoked),
        TEST(test_ticket_keys),
        TEST(test_audit),
        TEST(test_credentials),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
