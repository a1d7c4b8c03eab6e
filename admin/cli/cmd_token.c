/*
 * token and audit: credentials of the API, and who used what they allow.
 */
#include "admin/cli/cli.h"

#include "admin/cli/table.h"
#include "node/base/mem.h"
#include "node/base/timesrc.h"
#include "proto/json.h"
#include "proto/scalar.h"

#include <string.h>
#include <strings.h>

enum { PATH_BYTES_MAX = 16 * 1024, TABLE_BYTES_MAX = 64 << 20 };

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL ? text : "";
}

static bool is_text(const struct cli *cli)
{
    return cli->args.output == OUTPUT_UNSET || cli->args.output == OUTPUT_TABLE;
}

/* ---- token create ---- */

/* "viewer" -> "Viewer". NULL: no role. */
static const char *role_name(const char *text)
{
    static const char *const names[] = {"Viewer", "Editor", "Admin"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (strcasecmp(text, names[i]) == 0) {
            return names[i];
        }
    }
    return NULL;
}

/* "30d" from now on, or a moment. */
static int set_expires(struct cli *cli, json_t *spec)
{
    const char *text = cli->args.expires;
    char moment[TIME_TEXT_MAX];
    uint64_t ms;
    struct err_info ignored = {0};
    if (text == NULL) {
        return CLI_OK;
    }
    if (duration_parse(text, &ms, &ignored) == RC_OK) {
        ms += time_wall_ms();
    } else if (wall_parse(text, &ms, &ignored) != RC_OK) {
        return cli_fail(cli, CLI_USAGE,
                        "--expires: \"%.40s\" is neither a span (12h, 30d) nor a moment "
                        "(2026-01-31T10:00:00Z)",
                        text);
    }
    (void)json_object_set_new(spec, "expires", json_string(time_format_wall(ms, moment)));
    return CLI_OK;
}

static void set_text(json_t *spec, const char *name, const char *text)
{
    if (text != NULL) {
        (void)json_object_set_new(spec, name, json_string(text));
    }
}

/* The secret alone on standard output, so that it can be piped; what to know beside it. */
static void print_created(struct cli *cli, const char *name, const json_t *answer)
{
    const json_t *spec = json_object_get(answer, "spec");
    const char *namespace_ = text_of(spec, "namespace");
    const char *expires = text_of(spec, "expires");
    fprintf(cli->err, "token %s: role %s%s%s, %s%s\nThis is its secret; it is not shown again:\n",
            name, text_of(spec, "role"), namespace_[0] != '\0' ? ", namespace " : "", namespace_,
            expires[0] != '\0' ? "until " : "for ever", expires);
    fprintf(cli->out, "%s\n", text_of(answer, "secret"));
}

static int token_create(struct cli *cli, const char *name)
{
    const char *role = cli->args.role != NULL ? role_name(cli->args.role) : NULL;
    if (role == NULL) {
        return cli_fail(cli, CLI_USAGE, "--role: wants viewer, editor or admin");
    }
    json_t *spec = json_object();
    set_text(spec, "role", role);
    set_text(spec, "namespace", cli->args.namespace_);
    set_text(spec, "description", cli->args.description);
    int code = set_expires(cli, spec);
    json_t *document =
        json_pack("{s:s, s:{s:s}, s:o}", "kind", "Token", "metadata", "name", name, "spec", spec);
    if (code != CLI_OK || document == NULL) {
        json_decref(document);
        return code != CLI_OK ? code : cli_fail(cli, CLI_USAGE, "\"%s\" is no name", name);
    }
    char *body = json_text(document, 0);
    json_t *answer;
    struct request request = {
        .method = "POST",
        .path = (cli->args.given & OPTION_WAIT) != 0 ? "/v1/tokens?wait=all" : "/v1/tokens",
        .content_type = "application/json",
        .body = body,
        .len = strlen(body),
    };
    code = cli_call(cli, &request, &answer, NULL);
    if (answer != NULL) {
        if (is_text(cli)) {
            print_created(cli, name, answer);
        } else {
            cli_print(cli, answer, cli->args.output);
        }
        code = cli_check_wait(cli, answer);
    }
    json_decref(answer);
    json_decref(document);
    mem_free(body);
    return code;
}

/* ---- token list, get, revoke ---- */

/* The other commands do all of it: "token list" is "get tokens". */
static int as_get(struct cli *cli)
{
    for (size_t i = 0; i < cli->args.word_count; i++) {
        cli->args.words[i] = i == 0 ? "get" : i == 1 ? "tokens" : cli->args.words[i];
    }
    return cmd_get(cli);
}

static int token_revoke(struct cli *cli, const char *name)
{
    struct buf path;
    buf_init(&path, PATH_BYTES_MAX);
    cli_object_path(cli, kind_by_name("Token"), "", name, &path);
    (void)buf_puts(&path, (cli->args.given & OPTION_WAIT) != 0 ? "?wait=all" : "");
    struct request request = {.method = "DELETE", .path = path.data};
    json_t *answer;
    int code = cli_call(cli, &request, &answer, NULL);
    if (answer != NULL) {
        if (is_text(cli)) {
            fprintf(cli->out, "token %s is revoked\n", name);
        } else {
            cli_print(cli, answer, cli->args.output);
        }
        code = cli_check_wait(cli, answer);
    }
    json_decref(answer);
    buf_deinit(&path);
    return code;
}

int cmd_token(struct cli *cli)
{
    const struct args *args = &cli->args;
    const char *verb = args->words[1];
    size_t names = args->word_count - 2;
    bool creates = strcmp(verb, "create") == 0;
    if (!creates && (args->given &
                     (OPTION_ROLE | OPTION_EXPIRES | OPTION_DESCRIPTION | OPTION_NAMESPACE)) != 0) {
        return cli_fail(cli, CLI_USAGE,
                        "--role, --namespace, --expires and --description are "
                        "options of \"token create\"");
    }
    if (creates && names == 1) {
        return token_create(cli, args->words[2]);
    }
    if (strcmp(verb, "list") == 0 && names == 0) {
        return as_get(cli);
    }
    if (strcmp(verb, "get") == 0 && names > 0) {
        return as_get(cli);
    }
    if (strcmp(verb, "revoke") == 0 && names > 0) {
        int worst = CLI_OK;
        for (size_t i = 0; i < names && worst < CLI_USAGE; i++) {
            int code = token_revoke(cli, args->words[2 + i]);
            worst = MAX(worst, code);
        }
        return worst;
    }
    return cli_fail(cli, CLI_USAGE,
                    "usage: skeinctl token create --role ROLE NAME | list | "
                    "get NAME... | revoke NAME...");
}

/* ---- audit ---- */

/* "configured Route shop/checkout (spec.path), 2 more"; without changes what was asked for. */
static void what_of(const json_t *record, struct buf *out)
{
    const json_t *changes = json_object_get(record, "changes");
    size_t count = json_array_size(changes);
    if (count == 0) {
        (void)buf_printf(out, "%s %s", text_of(record, "method"), text_of(record, "path"));
        return;
    }
    const json_t *first = json_array_get(changes, 0);
    (void)buf_printf(out, "%s %s %s", text_of(first, "action"), text_of(first, "kind"),
                     text_of(first, "id"));
    const json_t *fields = json_object_get(first, "fields");
    for (size_t i = 0; i < json_array_size(fields); i++) {
        (void)buf_printf(out, "%s%s", i == 0 ? " (" : ", ",
                         json_string_value(json_array_get(fields, i)));
    }
    (void)buf_puts(out, json_array_size(fields) > 0 ? ")" : "");
    if (count > 1) {
        (void)buf_printf(out, ", %zu more", count - 1);
    }
}

static void print_audit(struct cli *cli, const json_t *answer)
{
    static const char *const titles[] = {"TIME", "USER", "VIA", "FROM", "STATUS", "WHAT"};
    struct table table;
    struct buf text;
    table_init(&table, ARRAY_LEN(titles));
    for (size_t i = 0; i < ARRAY_LEN(titles); i++) {
        table_add(&table, titles[i]);
    }
    size_t i;
    json_t *record;
    json_array_foreach(json_object_get(answer, "items"), i, record)
    {
        char status[24];
        (void)snprintf(status, sizeof(status), "%d",
                       (int)json_integer_value(json_object_get(record, "status")));
        table_add(&table, text_of(record, "time"));
        table_add(&table, text_of(record, "user"));
        table_add(&table, text_of(record, "via"));
        table_add(&table, text_of(record, "from"));
        table_add(&table, status);
        buf_init(&text, TABLE_BYTES_MAX);
        what_of(record, &text);
        table_add(&table, text.data);
        buf_deinit(&text);
    }
    buf_init(&text, TABLE_BYTES_MAX);
    table_print(&table, &text);
    cli_puts(cli, &text);
    buf_deinit(&text);
    table_deinit(&table);
}

static void add_param(struct buf *path, const char *name, const char *value)
{
    if (value != NULL) {
        (void)buf_printf(path, "&%s=", name);
        client_escape(value, path);
    }
}

int cmd_audit(struct cli *cli)
{
    struct buf path;
    buf_init(&path, PATH_BYTES_MAX);
    (void)buf_puts(&path, "/v1/audit?limit=");
    client_escape(cli->args.limit != NULL ? cli->args.limit : "50", &path);
    add_param(&path, "since", cli->args.since);
    add_param(&path, "user", cli->args.user);
    json_t *answer;
    int code = cli_get(cli, path.data, &answer);
    if (answer != NULL && is_text(cli)) {
        print_audit(cli, answer);
    } else if (answer != NULL) {
        cli_print(cli, answer, cli->args.output);
    }
    json_decref(answer);
    buf_deinit(&path);
    return code;
}
