/*
 * get: objects as a table, JSON or YAML.
 */
#include "admin/cli/cli.h"

#include "admin/cli/table.h"
#include "node/base/mem.h"
#include "node/base/timesrc.h"

#include <string.h>

enum { PATH_BYTES_MAX = 16 * 1024, CELL_BYTES_MAX = 4096 };

/* Append the objects of one kind to items: those named, or all that are asked for. */
static int fetch_list(struct cli *cli, const struct kind *kind, json_t *items)
{
    struct buf path;
    buf_init(&path, PATH_BYTES_MAX);
    (void)buf_puts(&path, "/v1/");
    if (kind->namespaced && (cli->args.given & OPTION_ALL_NAMESPACES) == 0) {
        (void)buf_puts(&path, "namespaces/");
        client_escape(cli_namespace(cli), &path);
        (void)buf_putc(&path, '/');
    }
    (void)buf_puts(&path, kind->plural);
    if (cli->args.selector != NULL) {
        (void)buf_puts(&path, "?selector=");
        client_escape(cli->args.selector, &path);
    }
    json_t *list;
    int code = cli_get(cli, path.data, &list);
    if (code == CLI_OK) {
        (void)json_array_extend(items, json_object_get(list, "items"));
    }
    json_decref(list);
    buf_deinit(&path);
    return code;
}

static int fetch_named(struct cli *cli, const struct kind *kind, json_t *items)
{
    int worst = CLI_OK;
    for (size_t i = 2; i < cli->args.word_count; i++) {
        struct buf path;
        buf_init(&path, PATH_BYTES_MAX);
        cli_object_path(cli, kind, cli_namespace(cli), cli->args.words[i], &path);
        json_t *object;
        int code = cli_get(cli, path.data, &object);
        if (object != NULL) {
            (void)json_array_append_new(items, object);
        }
        buf_deinit(&path);
        worst = MAX(worst, code);
        if (code == CLI_NO_CONNECTION || code == CLI_USAGE) {
            break; /* the others would say the same */
        }
    }
    return worst;
}

/* ---- tables ---- */

/* The next "TITLE=path" of a kind's columns; false at their end. */
static bool next_column(const char **at, char title[64], char path[128])
{
    *at += strspn(*at, " ");
    size_t len = strcspn(*at, " ");
    const char *equals = memchr(*at, '=', len);
    if (equals == NULL) {
        return false;
    }
    (void)snprintf(title, 64, "%.*s", (int)(equals - *at), *at);
    (void)snprintf(path, 128, "%.*s", (int)(*at + len - equals - 1), equals + 1);
    *at += len;
    return true;
}

static size_t count_columns(const struct kind *kind, bool with_namespace)
{
    const char *at = kind->columns;
    char title[64], path[128];
    size_t count = with_namespace ? 3 : 2; /* name and age */
    while (next_column(&at, title, path)) {
        count++;
    }
    return MIN(count, (size_t)TABLE_COLUMNS_MAX);
}

static void add_cell(struct table *table, const json_t *object, const char *path)
{
    struct buf cell;
    buf_init(&cell, CELL_BYTES_MAX);
    cell_from_path(object, path, &cell);
    table_add(table, cell.data);
    buf_deinit(&cell);
}

static void add_row(struct table *table, const struct kind *kind, const json_t *object,
                    bool with_namespace)
{
    const char *at = kind->columns;
    char title[64], path[128];
    if (with_namespace) {
        add_cell(table, object, "metadata.namespace");
    }
    add_cell(table, object, "metadata.name");
    while (next_column(&at, title, path)) {
        add_cell(table, object, path);
    }
    struct buf age;
    buf_init(&age, CELL_BYTES_MAX);
    const json_t *metadata = json_object_get(object, "metadata");
    cell_age(json_string_value(json_object_get(metadata, "created")), time_wall_ms(), &age);
    table_add(table, age.data);
    buf_deinit(&age);
}

static void print_table(struct cli *cli, const struct kind *kind, const json_t *items)
{
    bool with_namespace = kind->namespaced && (cli->args.given & OPTION_ALL_NAMESPACES) != 0;
    const char *at = kind->columns;
    char title[64], path[128];
    struct table table;
    table_init(&table, count_columns(kind, with_namespace));
    if (with_namespace) {
        table_add(&table, "NAMESPACE");
    }
    table_add(&table, "NAME");
    while (next_column(&at, title, path)) {
        table_add(&table, title);
    }
    table_add(&table, "AGE");
    size_t i;
    json_t *object;
    json_array_foreach(items, i, object)
    {
        add_row(&table, kind, object, with_namespace);
    }
    struct buf text;
    buf_init(&text, CLI_TEXT_BYTES_MAX);
    table_print(&table, &text);
    cli_puts(cli, &text);
    buf_deinit(&text);
    table_deinit(&table);
}

static void print_empty(struct cli *cli, const struct kind *kind)
{
    if (kind->namespaced && (cli->args.given & OPTION_ALL_NAMESPACES) == 0) {
        fprintf(cli->err, "no %s in namespace %s (-A looks in all)\n", kind->plural,
                cli_namespace(cli));
    } else {
        fprintf(cli->err, "no %s\n", kind->plural);
    }
}

/* ---- the command ---- */

static int get_kind(struct cli *cli, const struct kind *kind, bool more, json_t *all)
{
    json_t *items = json_array();
    int code =
        cli->args.word_count > 2 ? fetch_named(cli, kind, items) : fetch_list(cli, kind, items);
    bool as_table = cli->args.output == OUTPUT_UNSET || cli->args.output == OUTPUT_TABLE;
    if (!as_table) {
        (void)json_array_extend(all, items);
    } else if (json_array_size(items) > 0) {
        print_table(cli, kind, items);
        fputs(more ? "\n" : "", cli->out);
    } else if (code == CLI_OK) {
        print_empty(cli, kind);
    }
    json_decref(items);
    return code;
}

static int get_kinds(struct cli *cli, char *list, json_t *all)
{
    int worst = CLI_OK;
    char *rest = list;
    for (char *word = strsep(&rest, ","); word != NULL; word = strsep(&rest, ",")) {
        const struct kind *kind = cli_kind(cli, word);
        if (kind == NULL) {
            return CLI_USAGE;
        }
        int code = get_kind(cli, kind, rest != NULL, all);
        worst = MAX(worst, code);
        if (code == CLI_NO_CONNECTION || code == CLI_USAGE) {
            break;
        }
    }
    return worst;
}

int cmd_get(struct cli *cli)
{
    const struct args *args = &cli->args;
    bool named = args->word_count > 2;
    if (named && (args->given & (OPTION_ALL_NAMESPACES | OPTION_SELECTOR)) != 0) {
        return cli_fail(cli, CLI_USAGE, "names go with neither --all-namespaces nor --selector");
    }
    if (args->namespace_ != NULL && (args->given & OPTION_ALL_NAMESPACES) != 0) {
        return cli_fail(cli, CLI_USAGE, "--namespace and --all-namespaces exclude each other");
    }
    json_t *all = json_array();
    char *list = mem_strdup(args->words[1]);
    bool several = strchr(list, ',') != NULL;
    if (named && several) {
        mem_free(list);
        json_decref(all);
        return cli_fail(cli, CLI_USAGE, "names go with one kind");
    }
    int code = get_kinds(cli, list, all);
    bool as_table = args->output == OUTPUT_UNSET || args->output == OUTPUT_TABLE;
    if (!as_table && args->word_count == 3 && json_array_size(all) == 1) {
        cli_print(cli, json_array_get(all, 0), args->output);
    } else if (!as_table && (code == CLI_OK || json_array_size(all) > 0)) {
        json_t *document = json_object();
        (void)json_object_set(document, "items", all);
        cli_print(cli, document, args->output);
        json_decref(document);
    }
    mem_free(list);
    json_decref(all);
    return code;
}
