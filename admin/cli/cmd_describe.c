/*
 * describe: one object as a person reads it, with the objects that belong to it.
 *
 * A Route is shown with the endpoints of its backends, a Backend with its endpoints and the routes
 * that name it.
 */
#include "admin/cli/cli.h"

#include "admin/cli/table.h"
#include "node/base/mem.h"
#include "node/base/timesrc.h"
#include "proto/manifest.h"

#include <string.h>

enum { PATH_BYTES_MAX = 16 * 1024, LINE_BYTES_MAX = 64 * 1024 };

static const char *text_at(const json_t *object, const char *first, const char *second)
{
    const json_t *value = json_object_get(object, first);
    return json_string_value(second != NULL ? json_object_get(value, second) : value);
}

/* "  name      value", when there is one. */
static void print_line(struct cli *cli, const json_t *object, const char *name, const char *path)
{
    struct buf text;
    buf_init(&text, LINE_BYTES_MAX);
    cell_from_path(object, path, &text);
    if (text.len > 0) {
        fprintf(cli->out, "  %-10s %s\n", name, text.data);
    }
    buf_deinit(&text);
}

static void print_time(struct cli *cli, const json_t *object, const char *name)
{
    const char *time = text_at(object, "metadata", name);
    if (time != NULL) {
        struct buf age;
        buf_init(&age, LINE_BYTES_MAX);
        cell_age(time, time_wall_ms(), &age);
        fprintf(cli->out, "  %-10s %s (%s ago)\n", name, time, age.data != NULL ? age.data : "?");
        buf_deinit(&age);
    }
}

/* A part of the object as YAML, indented below its name. */
static void print_part(struct cli *cli, const json_t *object, const char *name)
{
    const json_t *part = json_object_get(object, name);
    if (json_object_size(part) == 0) {
        return;
    }
    struct buf text;
    buf_init(&text, CLI_TEXT_BYTES_MAX);
    yaml_emit(part, &text);
    fprintf(cli->out, "  %s:\n", name);
    for (const char *line = text.data; line != NULL && *line != '\0';) {
        size_t len = strcspn(line, "\n");
        fprintf(cli->out, "    %.*s\n", (int)len, line);
        line += len + (line[len] == '\n');
    }
    buf_deinit(&text);
}

/* All objects of a kind in a namespace: a new reference to the list form, NULL after an error. */
static json_t *fetch_all(struct cli *cli, const char *namespace_, const char *plural)
{
    struct buf path;
    json_t *list;
    buf_init(&path, PATH_BYTES_MAX);
    (void)buf_puts(&path, "/v1/namespaces/");
    client_escape(namespace_, &path);
    (void)buf_printf(&path, "/%s", plural);
    (void)cli_get(cli, path.data, &list); /* NULL says it failed */
    buf_deinit(&path);
    return list;
}

static void add_path(struct table *table, const json_t *object, const char *path)
{
    struct buf cell;
    buf_init(&cell, LINE_BYTES_MAX);
    cell_from_path(object, path, &cell);
    table_add(table, cell.data);
    buf_deinit(&cell);
}

static void print_indented(struct cli *cli, struct table *table, const char *title)
{
    struct buf text;
    buf_init(&text, CLI_TEXT_BYTES_MAX);
    table_print(table, &text);
    fprintf(cli->out, "  %s:\n", title);
    char *rest = text.data;
    for (char *line = strsep(&rest, "\n"); line != NULL; line = strsep(&rest, "\n")) {
        if (line[0] != '\0') {
            fprintf(cli->out, "    %s\n", line);
        }
    }
    buf_deinit(&text);
}

/* Whether a Route sends anything to this backend. */
static bool route_names(const json_t *route, const char *backend)
{
    size_t i;
    json_t *target;
    json_array_foreach(json_object_get(json_object_get(route, "spec"), "to"), i, target)
    {
        const char *name = text_at(target, "backend", NULL);
        if (name != NULL && strcmp(name, backend) == 0) {
            return true;
        }
    }
    return false;
}

static void add_endpoint_row(struct table *table, const json_t *endpoint)
{
    static const char *const paths[] = {"spec.backend", "spec.address",  "spec.weight",
                                        "spec.state",   "status.health", "status.message"};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        add_path(table, endpoint, paths[i]);
    }
}

/* Endpoints of a Backend (name), or of all backends of a Route. */
static bool print_endpoints(struct cli *cli, const char *namespace_, const char *backend,
                            const json_t *route)
{
    static const char *const titles[] = {"BACKEND", "ADDRESS", "WEIGHT",
                                         "STATE",   "HEALTH",  "MESSAGE"};
    json_t *list = fetch_all(cli, namespace_, "endpoints");
    struct table table;
    table_init(&table, ARRAY_LEN(titles));
    for (size_t i = 0; i < ARRAY_LEN(titles); i++) {
        table_add(&table, titles[i]);
    }
    size_t i;
    json_t *endpoint;
    json_array_foreach(json_object_get(list, "items"), i, endpoint)
    {
        const char *of = text_at(endpoint, "spec", "backend");
        if (of != NULL && (backend != NULL ? strcmp(of, backend) == 0 : route_names(route, of))) {
            add_endpoint_row(&table, endpoint);
        }
    }
    if (table.cell_count > ARRAY_LEN(titles)) {
        print_indented(cli, &table, "endpoints");
    } else {
        fputs("  endpoints: none\n", cli->out);
    }
    table_deinit(&table);
    bool good = list != NULL;
    json_decref(list);
    return good;
}

/* Those of one kind that name the backend. */
static bool print_routes(struct cli *cli, const char *namespace_, const char *backend,
                         const char *plural)
{
    static const char *const paths[2][4] = {
        {"metadata.name", "spec.host", "spec.path", "status.admitted"},
        {"metadata.name", "spec.port", "status.admitted", "status.reason"}};
    static const char *const titles[2][4] = {{"ROUTE", "HOST", "PATH", "ADMITTED"},
                                             {"TCPROUTE", "PORT", "ADMITTED", "REASON"}};
    bool tcp = strcmp(plural, "tcproutes") == 0;
    json_t *list = fetch_all(cli, namespace_, plural);
    struct table table;
    table_init(&table, ARRAY_LEN(titles[tcp]));
    for (size_t i = 0; i < ARRAY_LEN(titles[tcp]); i++) {
        table_add(&table, titles[tcp][i]);
    }
    size_t i;
    json_t *route;
    json_array_foreach(json_object_get(list, "items"), i, route)
    {
        for (size_t j = 0; j < ARRAY_LEN(paths[tcp]) && route_names(route, backend); j++) {
            add_path(&table, route, paths[tcp][j]);
        }
    }
    if (table.cell_count > ARRAY_LEN(titles[tcp])) {
        print_indented(cli, &table, plural);
    } else if (!tcp) {
        fputs("  routes: none\n", cli->out);
    }
    table_deinit(&table);
    bool good = list != NULL;
    json_decref(list);
    return good;
}

static int describe(struct cli *cli, const struct kind *kind, const json_t *object)
{
    const char *namespace_ = text_at(object, "metadata", "namespace");
    const char *name = text_at(object, "metadata", "name");
    fprintf(cli->out, "%s %s%s%s\n", kind->name, namespace_ != NULL ? namespace_ : "",
            namespace_ != NULL ? "/" : "", name != NULL ? name : "?");
    print_line(cli, object, "labels", "metadata.labels");
    print_line(cli, object, "notes", "metadata.annotations");
    print_time(cli, object, "created");
    print_time(cli, object, "modified");
    print_line(cli, object, "origin", "metadata.origin");
    print_line(cli, object, "version", "metadata.resourceVersion");
    print_part(cli, object, "spec");
    print_part(cli, object, "status");
    bool good = true;
    if (kind->descriptor == &skein__route__descriptor ||
        kind->descriptor == &skein__tcp_route__descriptor) {
        good = print_endpoints(cli, namespace_, NULL, object);
    } else if (kind->descriptor == &skein__backend__descriptor) {
        good = print_endpoints(cli, namespace_, name, NULL) &&
               print_routes(cli, namespace_, name, "routes") &&
               print_routes(cli, namespace_, name, "tcproutes");
    }
    return good ? CLI_OK : CLI_REFUSED;
}

int cmd_describe(struct cli *cli)
{
    const struct kind *kind = cli_kind(cli, cli->args.words[1]);
    int worst = kind != NULL ? CLI_OK : CLI_USAGE;
    for (size_t i = 2; i < cli->args.word_count && kind != NULL; i++) {
        struct buf path;
        json_t *object;
        buf_init(&path, PATH_BYTES_MAX);
        cli_object_path(cli, kind, cli_namespace(cli), cli->args.words[i], &path);
        int code = cli_get(cli, path.data, &object);
        if (object != NULL) {
            fputs(i > 2 ? "\n" : "", cli->out);
            code = describe(cli, kind, object);
        }
        json_decref(object);
        buf_deinit(&path);
        worst = MAX(worst, code);
        if (code == CLI_NO_CONNECTION) {
            break;
        }
    }
    return worst;
}
