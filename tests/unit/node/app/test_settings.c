/*
 * settings: precedence of the sources, every type, and what a person reads when something is wrong.
 */
#include "tests/support/unit.h"

#include "node/app/settings.h"
#include "node/base/mem.h"

#include <unistd.h>

static char file_path[64];

static void write_file(const char *text)
{
    (void)snprintf(file_path, sizeof(file_path), "/tmp/test-settings-%d.yaml", (int)getpid());
    FILE *out = fopen(file_path, "w");
    assert_non_null(out);
    assert_int_equal(fputs(text, out) >= 0, 1);
    assert_int_equal(fclose(out), 0);
}

static int load(const char *const *args, struct settings *settings, struct err_info *err)
{
    char *argv[16] = {unconst("skeind")};
    int argc = 1;
    for (; args[argc - 1] != NULL; argc++) {
        argv[argc] = unconst(args[argc - 1]);
    }
    return settings_load(argc, argv, settings, err);
}

static void test_precedence(void **state)
{
    (void)state;
    write_file("node: {name: from-file, workers: 3, labels: {zone: a, rack: 7}}\n"
               "listen: {http: [\"127.0.0.1:8080\", \"[::1]:8080\"]}\n"
               "cluster: {joinWait: 1}\n");
    struct settings settings;
    struct err_info err = {0};
    const char *wrong[] = {"--config", file_path, NULL};
    assert_int_equal(load(wrong, &settings, &err), RC_INVALID);
    assert_non_null(strstr(err.text, ":3: cluster.joinWait is not a setting"));

    write_file("node: {name: from-file, workers: 3, labels: {zone: a, rack: 7}, drainTimeout: 5m}\n"
               "listen: {http: [\"127.0.0.1:8080\", \"[::1]:8080\"]}\n");
    assert_int_equal(setenv("SKEIN_NODE_NAME", "from-env", 1), 0);
    assert_int_equal(setenv("SKEIN_NODE_DATA_DIR", "/from/env", 1), 0);
    const char *args[] = {"--config",    file_path, "--node.dataDir=/from/flag",
                          "--log.level", "warn",    NULL};
    assert_int_equal(load(args, &settings, &err), RC_OK);
    assert_string_equal(settings.node_name, "from-env");
    assert_string_equal(settings.data_dir, "/from/flag");
    assert_string_equal(settings.node_labels, "zone=a,rack=7");
    assert_string_equal(settings.log_level, "warn");
    assert_int_equal(settings.workers, 3);
    assert_int_equal(settings.drain_timeout_ms, 300000);
    assert_int_equal(settings.listen_http.count, 2);
    assert_string_equal(settings.listen_http.items[1], "[::1]:8080");
    settings_deinit(&settings);
    assert_int_equal(unsetenv("SKEIN_NODE_NAME"), 0);
    assert_int_equal(unsetenv("SKEIN_NODE_DATA_DIR"), 0);
    assert_int_equal(unlink(file_path), 0);
}

/* A list without elements is not the default. */
static void test_empty_lists(void **state)
{
    (void)state;
    struct settings settings;
    struct err_info err = {0};
    write_file("listen: {tcp: [], proxyProtocol: {trusted: [10.0.0.0/8, \"::1\"]}}\n");
    const char *args[] = {"--config", file_path, NULL};
    assert_int_equal(load(args, &settings, &err), RC_OK);
    assert_int_equal(settings.listen_tcp.count, 0);
    assert_int_equal(settings.listen_http.count, 1);
    assert_int_equal(settings.proxy_trusted.count, 2);
    settings_deinit(&settings);

    write_file("node: {name: []}\n");
    assert_int_equal(load(args, &settings, &err), RC_INVALID);
    assert_non_null(strstr(err.text, "takes one value, not a list"));
    write_file("listen: {tcp: [], tcp: [\"::\"]}\n");
    assert_int_equal(load(args, &settings, &err), RC_INVALID);
    assert_non_null(strstr(err.text, "given twice"));
    assert_int_equal(unlink(file_path), 0);
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *args[4];
        const char *says;
    } cases[] = {
        {{"--node.workers", "-1"}, "--node.workers: \"-1\" is not a whole number"},
        {{"--node.drainTimeout", "10"}, "is not a duration; accepted are"},
        {{"--node.nmae", "x"}, "--node.nmae is not a flag"},
        {{"node.name=x"}, "is not a flag"},
        {{"--node.name"}, "needs a value"},
        {{"--config", "/nonexistent/skein.yaml"}, "cannot read the settings file /nonexistent"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct settings settings;
        struct err_info err = {0};
        assert_true(load(cases[i].args, &settings, &err) < 0);
        if (strstr(err.text, cases[i].says) == NULL) {
            fail_msg("\"%s\" does not say \"%s\"", err.text, cases[i].says);
        }
    }
}

static int resolve(const char *const *args, struct settings_resolved *resolved,
                   struct err_info *err)
{
    struct settings settings;
    assert_int_equal(load(args, &settings, err), RC_OK);
    int rc = settings_resolve(&settings, resolved, err);
    settings_deinit(&settings);
    return rc;
}

static void test_resolve(void **state)
{
    (void)state;
    static struct settings_resolved resolved;
    struct err_info err = {0};
    char text[ADDR_TEXT_MAX];
    const char *good[] = {"--node.name=r1", "--cluster.bind=127.0.0.1:7001",
                          "--cluster.join=127.0.0.1:7002,127.0.0.1:7003",
                          "--admin.listen=127.0.0.1:1", NULL};
    assert_int_equal(resolve(good, &resolved, &err), RC_OK);
    assert_int_equal(resolved.cluster_join_count, 2);
    assert_string_equal(addr_format(&resolved.cluster_advertise, text), "127.0.0.1:7001");

    assert_int_equal(addr_port(&resolved.tcp[0]), 0);
    assert_string_equal(addr_format_ip(&resolved.tcp[0], text), "0.0.0.0");

    const char *tcp[] = {"--node.name=r1", "--cluster.bind=127.0.0.1:7001",
                         "--listen.tcp=10.0.0.1,::", NULL};
    assert_int_equal(resolve(tcp, &resolved, &err), RC_OK);
    assert_string_equal(addr_format_ip(&resolved.tcp[0], text), "10.0.0.1");
    assert_string_equal(addr_format_ip(&resolved.tcp[1], text), "::");

    const char *port[] = {"--node.name=r1", "--cluster.bind=127.0.0.1:7001",
                          "--listen.tcp=10.0.0.1:80", NULL};
    assert_int_equal(resolve(port, &resolved, &err), RC_INVALID);
    assert_non_null(strstr(err.text, "listen.tcp: \"10.0.0.1:80\" is not an IP address"));

    const char *network[] = {"--node.name=r1", "--cluster.bind=127.0.0.1:7001",
                             "--listen.proxyProtocol.trusted=10.0.0.0/8,10.0.0.1/8", NULL};
    assert_int_equal(resolve(network, &resolved, &err), RC_INVALID);
    assert_non_null(strstr(err.text, "listen.proxyProtocol.trusted: "));

    const char *open_api[] = {"--node.name=r1", "--cluster.bind=127.0.0.1:7001",
                              "--admin.listen=0.0.0.0:7980", NULL};
    assert_int_equal(resolve(open_api, &resolved, &err), RC_INVALID);
    assert_non_null(strstr(err.text, "not a loopback address"));

    const char *no_api[] = {"--node.name=r1", "--cluster.bind=127.0.0.1:7001",
                            "--admin.unix=", NULL};
    assert_int_equal(resolve(no_api, &resolved, &err), RC_INVALID);

    const char *level[] = {"--node.name=r1", "--log.level=loud", NULL};
    assert_int_equal(resolve(level, &resolved, &err), RC_INVALID);
    assert_non_null(strstr(err.text, "debug, info, warn, error"));

    const char *name[] = {"--node.name=a b", NULL};
    assert_int_equal(resolve(name, &resolved, &err), RC_INVALID);
}

static void test_help_lists_all(void **state)
{
    (void)state;
    char *help = settings_help();
    assert_non_null(strstr(help, "node.dataDir"));
    assert_non_null(strstr(help, "log.access"));
    mem_free(help);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_precedence),     cmocka_unit_test(test_empty_lists),
        cmocka_unit_test(test_refused),        cmocka_unit_test(test_resolve),
        cmocka_unit_test(test_help_lists_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
