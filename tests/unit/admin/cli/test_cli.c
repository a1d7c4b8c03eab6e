/*
 * skeinctl as a whole, as far as it needs no server: help, wrong use, exit codes, keys.
 * covers: cmd_local.c
 */
#include "tests/support/unit.h"

#include "admin/cli/cli.h"
#include "node/tls/key_file.h"

#include <sys/stat.h>
#include <unistd.h>

static char *out_text, *err_text;

/* Words split at blanks. Returns the exit code; texts stay until the next call. */
static int run(const char *line)
{
    static char text[1024];
    char *argv[32] = {0};
    int argc = 0;
    size_t out_len, err_len;
    free(out_text);
    free(err_text);
    FILE *out = open_memstream(&out_text, &out_len);
    FILE *err = open_memstream(&err_text, &err_len);
    snprintf(text, sizeof(text), "skeinctl %s", line);
    for (char *rest = text, *word; argc < 31 && (word = strsep(&rest, " ")) != NULL;) {
        if (word[0] != '\0') {
            argv[argc++] = word;
        }
    }
    int code = cli_run(argc, argv, out, err);
    fclose(out);
    fclose(err);
    return code;
}

static void test_help(void **state)
{
    (void)state;
    assert_int_equal(run("help"), CLI_OK);
    for (const struct command *command = commands; command->name != NULL; command++) {
        assert_non_null(strstr(out_text, command->name));
        char line[64];
        snprintf(line, sizeof(line), "help %s", command->name);
        assert_int_equal(run(line), CLI_OK);
        assert_non_null(strstr(out_text, command->doc));
        assert_non_null(strstr(out_text, "--server"));
        snprintf(line, sizeof(line), "%s --help", command->name);
        assert_int_equal(run(line), CLI_OK);
        assert_int_equal(run("help"), CLI_OK);
    }
    assert_int_equal(run("--help"), CLI_OK);
    assert_int_equal(run("--version"), CLI_OK);
    assert_non_null(strstr(out_text, SKEIN_VERSION));
}

static void test_wrong_use(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        const char *text;
    } cases[] = {
        {"", "Usage"},
        {"nothing", "nothing"},
        {"help nothing", "nothing"},
        {"get", "KIND"},
        {"get unicorns", "routes, backends"},
        {"get routes,backends x", "one kind"},
        {"get routes x -A", "--all-namespaces"},
        {"get routes -A -n x", "exclude"},
        {"get routes -f x", "--file"},
        {"apply", "-f"},
        {"apply -f /nonexistent/x.yaml", "/nonexistent/x.yaml"},
        {"apply -f /dev/null -f /nonexistent/x.yaml", "/nonexistent/x.yaml"},
        {"delete", "-f FILE"},
        {"delete route", "NAME"},
        {"delete route x -f y", "NAME"},
        {"cluster x", "usage"},
        {"cluster -s nonsense", "unix:///"},
        {"cluster -s http://", "http://host:port"},
        {"cluster -s http://a/b", "http://host:port"},
        {"cluster -s unix://relative", "unix:///"},
        {"export -o table", "yaml or json"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int code = run(cases[i].line);
        if (code != CLI_USAGE || strstr(err_text, cases[i].text) == NULL) {
            fail_msg("skeinctl %s: exit %d, \"%s\"", cases[i].line, code, err_text);
        }
        assert_string_equal(out_text, "");
    }
}

static void test_nobody_there(void **state)
{
    (void)state;
    assert_int_equal(run("cluster -s unix:///nonexistent/admin.sock"), CLI_NO_CONNECTION);
    assert_non_null(strstr(err_text, "/nonexistent/admin.sock"));
    assert_non_null(strstr(err_text, "No such file"));
    assert_int_equal(run("diff -f /dev/null -s unix:///nonexistent/admin.sock"), CLI_NO_CONNECTION);
    assert_int_equal(run("watch -s unix:///nonexistent/admin.sock"), CLI_NO_CONNECTION);
    assert_int_equal(run("get routes a b -s unix:///nonexistent/a.sock"), CLI_NO_CONNECTION);
    assert_null(strstr(strstr(err_text, "skeinctl:") + 1, "skeinctl:")); /* told once */
    assert_int_equal(run("version -s unix:///nonexistent/admin.sock"), CLI_OK);
    assert_non_null(strstr(out_text, "not reached"));
}

static void test_keys(void **state)
{
    (void)state;
    char folder[] = "/tmp/skein-test-XXXXXX", path[64], line[128];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/cluster.key", folder);
    snprintf(line, sizeof(line), "keygen --out %s", path);
    assert_int_equal(run(line), CLI_OK);
    assert_string_equal(out_text, "");
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    struct key_ring first, second;
    struct err_info err;
    assert_int_equal(key_file_load(path, &first, &err), 0);
    assert_int_equal(run(line), CLI_REFUSED); /* never overwritten */
    assert_non_null(strstr(err_text, path));
    assert_int_equal(key_file_load(path, &second, &err), 0);
    assert_memory_equal(&first, &second, sizeof(first));
    assert_int_equal(run("keygen"), CLI_OK);
    assert_int_equal(key_file_parse("stdout", out_text, strlen(out_text), &second, &err), 0);
    assert_memory_not_equal(first.keys[0], second.keys[0], KEY_BYTES);
    unlink(path);
    rmdir(folder);
    assert_int_equal(run("keygen --out /nonexistent/folder/key"), CLI_REFUSED);
}

static void test_object_paths(void **state)
{
    (void)state;
    static const struct {
        const char *kind;
        const char *namespace_; /* of -n */
        const char *name;
        const char *path;
    } cases[] = {
        {"Route", "shop", "checkout", "/v1/namespaces/shop/routes/checkout"},
        {"Route", NULL, "checkout", "/v1/namespaces/default/routes/checkout"},
        {"Route", NULL, "shop/checkout", "/v1/namespaces/shop/routes/checkout"},
        {"Endpoint", NULL, "web/10.0.0.1:80",
         "/v1/namespaces/default/endpoints/web%2F10.0.0.1%3A80"},
        {"Settings", NULL, "default", "/v1/settings/default"},
        {"Route", "a b", "x?y", "/v1/namespaces/a%20b/routes/x%3Fy"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct cli cli = {.args = {.namespace_ = cases[i].namespace_}};
        struct buf path;
        buf_init(&path, 1024);
        cli_object_path(&cli, kind_by_name(cases[i].kind), cli_namespace(&cli), cases[i].name,
                        &path);
        assert_string_equal(path.data, cases[i].path);
        buf_deinit(&path);
    }
}

static int free_texts(void **state)
{
    (void)state;
    free(out_text);
    free(err_text);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_help),         cmocka_unit_test(test_wrong_use),
        cmocka_unit_test(test_nobody_there), cmocka_unit_test(test_keys),
        cmocka_unit_test(test_object_paths),
    };
    unsetenv("SKEIN_SERVER");
    return cmocka_run_group_tests(tests, NULL, free_texts);
}
