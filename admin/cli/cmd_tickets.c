/*
 * tickets: keys of session tickets, and another one from now on.
 */
#include "admin/cli/cli.h"

#include "admin/cli/table.h"
#include "node/base/mem.h"

#include <string.h>

enum { CELL_BYTES_MAX = 256, TABLE_BYTES_MAX = 1 << 20 };

static void print_keys(struct cli *cli, const json_t *answer)
{
    static const char *const titles[] = {"NAME",       "STATE",   "EPOCH",  "CREATED",
                                         "NOT BEFORE", "EXPIRES", "CREATOR"};
    static const char *const paths[] = {"name",      "state",   "epoch",  "created",
                                        "notBefore", "expires", "creator"};
    struct table table;
    struct buf text;
    table_init(&table, ARRAY_LEN(titles));
    for (size_t i = 0; i < ARRAY_LEN(titles); i++) {
        table_add(&table, titles[i]);
    }
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(answer, "items"), i, item)
    {
        for (size_t column = 0; column < ARRAY_LEN(paths); column++) {
            buf_init(&text, CELL_BYTES_MAX);
            cell_from_path(item, paths[column], &text);
            table_add(&table, text.data != NULL ? text.data : "");
            buf_deinit(&text);
        }
    }
    buf_init(&text, TABLE_BYTES_MAX);
    table_print(&table, &text);
    cli_puts(cli, &text);
    buf_deinit(&text);
    table_deinit(&table);
}

static int show(struct cli *cli, json_t *answer, int code)
{
    bool is_text = cli->args.output == OUTPUT_UNSET || cli->args.output == OUTPUT_TABLE;
    const char *unconfirmed = json_string_value(json_object_get(answer, "unconfirmed"));
    if (answer != NULL && is_text) {
        print_keys(cli, answer);
    } else if (answer != NULL) {
        cli_print(cli, answer, cli->args.output);
    }
    if (unconfirmed != NULL) {
        code = cli_fail(cli, CLI_REFUSED, "%s", unconfirmed);
    }
    json_decref(answer);
    return code;
}

int cmd_tickets(struct cli *cli)
{
    const struct args *args = &cli->args;
    bool rotates = args->word_count == 2 && strcmp(args->words[1], "rotate") == 0;
    json_t *answer = NULL;
    if (args->word_count > 1 && !rotates) {
        return cli_fail(cli, CLI_USAGE, "usage: skeinctl tickets [rotate [--revoke] [--wait]]");
    }
    if (!rotates && (args->given & (OPTION_REVOKE | OPTION_WAIT)) != 0) {
        return cli_fail(cli, CLI_USAGE, "--revoke and --wait are options of \"tickets rotate\"");
    }
    if (!rotates) {
        int code = cli_get(cli, "/v1/tickets", &answer);
        return show(cli, answer, code);
    }
    const char *body = (args->given & OPTION_REVOKE) != 0 ? "{\"revoke\": true}" : "{}";
    struct request request = {
        .method = "POST",
        .path =
            (args->given & OPTION_WAIT) != 0 ? "/v1/tickets/rotate?wait=all" : "/v1/tickets/rotate",
        .content_type = "application/json",
        .body = body,
        .len = strlen(body),
    };
    int code = cli_call(cli, &request, &answer, NULL);
    return show(cli, answer, code);
}
