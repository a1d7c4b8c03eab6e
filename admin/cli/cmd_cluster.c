/*
 * cluster, forget, export and watch: what a node says of all nodes, of all objects, and as it
 * happens.
 */
#include "admin/cli/cli.h"

#include "admin/cli/table.h"
#include "node/base/mem.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES_MAX = 16 * 1024, CELL_BYTES_MAX = 256, LINE_BYTES_MAX = 4 << 20 };

/* ---- cluster ---- */

/* "+3ms", "-1h00m (off)" */
static void clock_cell(const json_t *member, struct buf *out)
{
    int64_t ms = json_integer_value(json_object_get(member, "clockOffsetMs"));
    uint64_t size = ms < 0 ? (uint64_t)-ms : (uint64_t)ms;
    (void)buf_putc(out, ms < 0 ? '-' : '+');
    if (size < 10000) {
        (void)buf_printf(out, "%" PRIu64 "ms", size);
    } else if (size < 600000) {
        (void)buf_printf(out, "%" PRIu64 "s", size / 1000);
    } else {
        (void)buf_printf(out, "%" PRIu64 "h%02" PRIu64 "m", size / 3600000, size / 60000 % 60);
    }
    if (json_is_true(json_object_get(member, "clockFlagged"))) {
        (void)buf_puts(out, " (off)");
    }
}

static void heard_cell(const json_t *member, struct buf *out)
{
    const json_t *ago = json_object_get(member, "heardMsAgo");
    int64_t ms = json_integer_value(ago);
    if (json_is_true(json_object_get(member, "self"))) {
        (void)buf_puts(out, "self");
    } else if (!json_is_integer(ago)) {
        (void)buf_puts(out, "never");
    } else if (ms < 10000) {
        (void)buf_printf(out, "%" PRId64 "ms ago", ms);
    } else {
        (void)buf_printf(out, "%" PRId64 "s ago", ms / 1000);
    }
}

static void add_member(struct table *table, const json_t *member)
{
    static const char *const paths[] = {"name",    "state",    "ready", "address",
                                        "version", "revision", "lag"};
    struct buf cell;
    buf_init(&cell, CELL_BYTES_MAX);
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        buf_reset(&cell);
        cell_from_path(member, paths[i], &cell);
        table_add(table, cell.data);
    }
    buf_reset(&cell);
    clock_cell(member, &cell);
    table_add(table, cell.data);
    buf_reset(&cell);
    heard_cell(member, &cell);
    table_add(table, cell.data);
    buf_deinit(&cell);
}

static void print_cluster(struct cli *cli, const json_t *answer)
{
    static const char *const titles[] = {"NAME",     "STATE", "READY", "ADDRESS", "VERSION",
                                         "REVISION", "LAG",   "CLOCK", "HEARD"};
    struct table table;
    table_init(&table, ARRAY_LEN(titles));
    for (size_t i = 0; i < ARRAY_LEN(titles); i++) {
        table_add(&table, titles[i]);
    }
    size_t i;
    json_t *member;
    json_array_foreach(json_object_get(answer, "members"), i, member)
    {
        add_member(&table, member);
    }
    struct buf text;
    buf_init(&text, CLI_TEXT_BYTES_MAX);
    table_print(&table, &text);
    cli_puts(cli, &text);
    buf_deinit(&text);
    table_deinit(&table);
    const char *node = json_string_value(json_object_get(answer, "node"));
    const char *reason = json_string_value(json_object_get(answer, "reason"));
    fprintf(cli->out, "\nAs %s sees it: %s.\n", node != NULL ? node : "the node",
            json_is_true(json_object_get(answer, "inStep"))
                ? "all live nodes have the same configuration"
                : "not all live nodes have the same configuration");
    if (reason != NULL) {
        fprintf(cli->out, "%s is not ready: %s.\n", node != NULL ? node : "The node", reason);
    }
}

int cmd_cluster(struct cli *cli)
{
    json_t *answer;
    int code = cli_get(cli, "/v1/cluster", &answer);
    if (answer != NULL && (cli->args.output == OUTPUT_JSON || cli->args.output == OUTPUT_YAML)) {
        cli_print(cli, answer, cli->args.output);
    } else if (answer != NULL) {
        print_cluster(cli, answer);
    }
    json_decref(answer);
    return code;
}

static int forget_one(struct cli *cli, const char *member)
{
    struct buf path;
    buf_init(&path, PATH_BYTES_MAX);
    (void)buf_puts(&path, "/v1/cluster/members/");
    for (const char *at = member; *at != '\0'; at++) {
        (void)buf_printf(&path, strchr("/%?# ", *at) != NULL ? "%%%02X" : "%c", *at);
    }
    json_t *answer;
    struct request request = {.method = "DELETE", .path = path.data};
    int code = cli_call(cli, &request, &answer, NULL);
    if (answer != NULL) {
        fprintf(cli->out, "%s is forgotten\n", member);
    }
    json_decref(answer);
    buf_deinit(&path);
    return code;
}

int cmd_forget(struct cli *cli)
{
    int worst = CLI_OK;
    for (size_t i = 1; i < cli->args.word_count && worst < CLI_USAGE; i++) {
        int code = forget_one(cli, cli->args.words[i]);
        worst = MAX(worst, code);
    }
    return worst;
}

/* ---- streams ---- */

static int run_stream(struct cli *cli, const char *path, const char *accept,
                      bool (*on_bytes)(void *arg, const char *bytes, size_t len), void *arg)
{
    struct client *client = cli_client(cli);
    struct request request = {.method = "GET", .path = path, .accept = accept};
    struct answer answer;
    struct err_info err = {0};
    if (client == NULL) {
        return CLI_USAGE;
    }
    int rc = client_stream(client, &request, on_bytes, arg, &answer, &err);
    if (rc != RC_OK) {
        return cli_print_failure(cli, rc, &err);
    }
    int code = answer.status == 200 ? CLI_OK : cli_print_problem(cli, &answer);
    answer_deinit(&answer);
    return code;
}

/* "?name=value" or "&name=value"; value NULL adds nothing. */
static void add_param(struct buf *path, const char *name, const char *value)
{
    if (value != NULL) {
        bool first = strchr(path->data, '?') == NULL;
        (void)buf_printf(path, "%c%s=", first ? '?' : '&', name);
        client_escape(value, path);
    }
}

/* ---- export ---- */

static bool write_bytes(void *arg, const char *bytes, size_t len)
{
    return fwrite(bytes, 1, len, arg) == len;
}

int cmd_export(struct cli *cli)
{
    struct buf path;
    bool json = cli->args.output == OUTPUT_JSON;
    if (cli->args.output == OUTPUT_TABLE) {
        return cli_fail(cli, CLI_USAGE, "--output: an export is yaml or json");
    }
    FILE *file = cli->args.out != NULL ? fopen(cli->args.out, "we") : cli->out;
    if (file == NULL) {
        return cli_fail(cli, CLI_USAGE, "%s: %s", cli->args.out, strerror(errno));
    }
    buf_init(&path, PATH_BYTES_MAX);
    (void)buf_puts(&path, "/v1/export");
    add_param(&path, "format", json ? "json" : "yaml");
    add_param(&path, "namespace", cli->args.namespace_);
    int code = run_stream(cli, path.data, json ? "application/json" : "application/yaml",
                          write_bytes, file);
    buf_deinit(&path);
    bool failed = ferror(file) != 0;
    if (cli->args.out != NULL) {
        failed = fclose(file) != 0 || failed;
    }
    if (failed && code == CLI_OK) {
        code = cli_fail(cli, CLI_REFUSED, "cannot write %s",
                        cli->args.out != NULL ? cli->args.out : "the output");
    }
    return code;
}

/* ---- watch ---- */

struct watcher {
    struct cli *cli;
    struct buf line;
};

static const char *member_text(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL ? text : "";
}

/* "changed  Route shop/checkout  (r1:8)"; heartbeats are for programs. */
static void print_event(struct cli *cli, const char *text)
{
    json_error_t error;
    json_t *event = json_loads(text, 0, &error);
    const json_t *object = json_object_get(event, "object");
    const json_t *metadata = json_object_get(object, "metadata");
    const char *type = member_text(event, "type");
    const char *namespace_ = member_text(metadata, "namespace");
    if (object != NULL) {
        fprintf(cli->out, "%-8s %s %s%s%s  (%s)\n", type, member_text(object, "kind"), namespace_,
                namespace_[0] != '\0' ? "/" : "", member_text(metadata, "name"),
                member_text(event, "since"));
    } else if (strcmp(type, "start") == 0) {
        fprintf(cli->err, "watching %s from %s on; Ctrl-C ends it\n", member_text(event, "node"),
                member_text(event, "since"));
    } else if (strcmp(type, "gone") == 0) {
        fprintf(cli->err, "skeinctl: too slow: changes were missed; list again\n");
    }
    json_decref(event);
}

static bool on_watch_bytes(void *arg, const char *bytes, size_t len)
{
    struct watcher *watcher = arg;
    for (size_t i = 0; i < len; i++) {
        if (bytes[i] != '\n') {
            (void)buf_putc(&watcher->line, bytes[i]); /* a longer line is cut and then no JSON */
            continue;
        }
        const char *text = watcher->line.data != NULL ? watcher->line.data : "";
        if (watcher->cli->args.output == OUTPUT_JSON) {
            fprintf(watcher->cli->out, "%s\n", text);
        } else {
            print_event(watcher->cli, text);
        }
        buf_reset(&watcher->line);
    }
    return fflush(watcher->cli->out) == 0;
}

int cmd_watch(struct cli *cli)
{
    struct watcher watcher = {.cli = cli};
    const struct kind *kind = NULL;
    if (cli->args.output == OUTPUT_YAML) {
        return cli_fail(cli, CLI_USAGE, "--output: a watch is table or json");
    }
    if (cli->args.word_count > 1 && (kind = cli_kind(cli, cli->args.words[1])) == NULL) {
        return CLI_USAGE;
    }
    struct buf path;
    buf_init(&path, PATH_BYTES_MAX);
    (void)buf_puts(&path, "/v1/watch");
    add_param(&path, "kind", kind != NULL ? kind->plural : NULL);
    add_param(&path, "namespace", cli->args.namespace_);
    add_param(&path, "since", cli->args.since);
    buf_init(&watcher.line, LINE_BYTES_MAX);
    int code = run_stream(cli, path.data, "application/x-ndjson", on_watch_bytes, &watcher);
    buf_deinit(&watcher.line);
    buf_deinit(&path);
    return code;
}
