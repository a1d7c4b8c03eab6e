/*
 * The command table, its dispatch and help, and what commands share.
 */
#include "admin/cli/cli.h"

#include "node/base/mem.h"
#include "proto/json.h"
#include "proto/manifest.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { HELP_BYTES_MAX = 64 * 1024 };

#define OPTIONS_ALL                                                                                \
    (OPTION_HELP | OPTION_SERVER | OPTION_TOKEN | OPTION_TOKEN_FILE | OPTION_CA |                  \
     OPTION_INSECURE | OPTION_CERT | OPTION_KEY)
#define OPTIONS_WRITE (OPTION_DRY_RUN | OPTION_WAIT | OPTION_OUTPUT)

const struct command commands[] = {
    {"get", "KIND[,KIND...] [NAME...]", "list objects, or show some",
     OPTION_OUTPUT | OPTION_NAMESPACE | OPTION_ALL_NAMESPACES | OPTION_SELECTOR, 1, ARGS_WORDS_MAX,
     cmd_get},
    {"describe", "KIND NAME...", "one object with all that belongs to it", OPTION_NAMESPACE, 2,
     ARGS_WORDS_MAX, cmd_describe},
    {"apply", "-f FILE", "create and change objects, all or nothing",
     OPTION_FILE | OPTION_IN_PARTS | OPTIONS_WRITE, 0, 0, cmd_apply},
    {"delete", "KIND NAME... | -f FILE", "delete objects",
     OPTION_FILE | OPTION_NAMESPACE | OPTIONS_WRITE, 0, ARGS_WORDS_MAX, cmd_delete},
    {"diff", "-f FILE", "what apply would change; exit code 1 when there is something",
     OPTION_FILE | OPTION_OUTPUT, 0, 0, cmd_diff},
    {"export", "", "every object, as a manifest that apply takes back",
     OPTION_OUTPUT | OPTION_NAMESPACE | OPTION_OUT, 0, 0, cmd_export},
    {"cluster", "", "members, their state and how far they are", OPTION_OUTPUT, 0, 0, cmd_cluster},
    {"forget", "MEMBER...", "drop members that are dead or left, by name or id", OPTION_OUTPUT, 1,
     ARGS_WORDS_MAX, cmd_forget},
    {"watch", "[KIND]", "changes as they happen, until interrupted",
     OPTION_OUTPUT | OPTION_NAMESPACE | OPTION_SINCE, 0, 1, cmd_watch},
    {"token", "create --role ROLE NAME | list | get NAME... | revoke NAME...",
     "credentials of the API; the secret of a new one is shown once",
     OPTION_OUTPUT | OPTION_WAIT | OPTION_NAMESPACE | OPTION_ROLE | OPTION_EXPIRES |
         OPTION_DESCRIPTION,
     1, ARGS_WORDS_MAX, cmd_token},
    {"audit", "", "who wrote what through this node, and what was refused; other nodes have theirs",
     OPTION_OUTPUT | OPTION_SINCE | OPTION_LIMIT | OPTION_USER, 0, 0, cmd_audit},
    {"tickets", "[rotate [--revoke]]",
     "keys of TLS session tickets; another one; old tickets made useless",
     OPTION_OUTPUT | OPTION_WAIT | OPTION_REVOKE, 0, 1, cmd_tickets},
    {"keygen", "", "a new key for cluster.keyFile", OPTION_OUT, 0, 0, cmd_keygen},
    {"version", "", "the version of skeinctl, and of the node it reaches", OPTION_OUTPUT, 0, 0,
     cmd_version},
    {.name = NULL},
};

static const struct command *command_find(const char *name)
{
    for (const struct command *command = commands; command->name != NULL; command++) {
        if (strcmp(command->name, name) == 0) {
            return command;
        }
    }
    return NULL;
}

static void print_overview(FILE *out)
{
    fprintf(out, "Usage: skeinctl COMMAND [WORDS] [OPTIONS]\n\nCommands:\n");
    for (const struct command *command = commands; command->name != NULL; command++) {
        fprintf(out, "  %-9s %-25s  %s\n", command->name, command->usage, command->doc);
    }
    fprintf(out, "\nKinds:\n");
    for (const struct kind *kind = kinds; kind->name != NULL; kind++) {
        fprintf(out, "  %s%s%s%s%s\n", kind->plural, kind->alias != NULL ? " (" : "",
                kind->alias != NULL ? kind->alias : "", kind->alias != NULL ? ")" : "",
                kind->namespaced ? "" : ", of the whole cluster");
    }
    fprintf(out,
            "\nThe server is --server URL, else SKEIN_SERVER, else unix:///run/skein/admin.sock.\n"
            "Exit codes: 0 done, 1 refused, 2 wrong use, 3 no connection; diff: 0 same, 1 "
            "different,\n2 trouble, 3 no connection. skeinctl help COMMAND tells its options.\n");
}

static void print_help(const struct command *command, FILE *out)
{
    struct buf text;
    buf_init(&text, HELP_BYTES_MAX);
    args_help(command->options | OPTIONS_ALL, &text);
    fprintf(out, "Usage: skeinctl %s %s\n\n%s.\n\nOptions:\n%s", command->name, command->usage,
            command->doc, text.data);
    buf_deinit(&text);
}

int cli_fail(struct cli *cli, int code, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fputs("skeinctl: ", cli->err);
    vfprintf(cli->err, fmt, args);
    fputc('\n', cli->err);
    va_end(args);
    return code;
}

static int run_command(struct cli *cli, const struct command *command)
{
    struct err_info err = {0};
    size_t words = cli->args.word_count - 1;
    if ((cli->args.given & OPTION_HELP) != 0) {
        print_help(command, cli->out);
        return CLI_OK;
    }
    if (args_check(&cli->args, command->options | OPTIONS_ALL, command->name, &err) != RC_OK) {
        return cli_fail(cli, CLI_USAGE, "%s", err.text);
    }
    if (words < command->words_min || words > command->words_max) {
        return cli_fail(cli, CLI_USAGE, "usage: skeinctl %s %s", command->name, command->usage);
    }
    return command->run(cli);
}

static int help_command(struct cli *cli)
{
    if (cli->args.word_count < 2) {
        print_overview(cli->out);
        return CLI_OK;
    }
    const struct command *command = command_find(cli->args.words[1]);
    if (command == NULL) {
        return cli_fail(cli, CLI_USAGE, "there is no command \"%s\"", cli->args.words[1]);
    }
    print_help(command, cli->out);
    return CLI_OK;
}

static int dispatch(struct cli *cli)
{
    const struct args *args = &cli->args;
    if (args->word_count == 0) {
        if ((args->given & OPTION_VERSION) != 0) {
            fprintf(cli->out, "skeinctl %s\n", SKEIN_VERSION);
            return CLI_OK;
        }
        bool asked = (args->given & OPTION_HELP) != 0;
        print_overview(asked ? cli->out : cli->err);
        return asked ? CLI_OK : CLI_USAGE;
    }
    if (strcmp(args->words[0], "help") == 0) {
        return help_command(cli);
    }
    const struct command *command = command_find(args->words[0]);
    if (command == NULL) {
        return cli_fail(cli, CLI_USAGE, "there is no command \"%s\"; skeinctl help lists them",
                        args->words[0]);
    }
    return run_command(cli, command);
}

int cli_run(int argc, char **argv, FILE *out, FILE *err)
{
    struct cli *cli = mem_new(sizeof(*cli)); /* the words alone are too much for a stack */
    struct err_info info = {0};
    cli->out = out;
    cli->err = err;
    int code = args_parse(argc, argv, &cli->args, &info) == RC_OK
                   ? dispatch(cli)
                   : cli_fail(cli, CLI_USAGE, "%s", info.text);
    if (fflush(out) != 0 && code == CLI_OK) {
        code = cli_fail(cli, CLI_REFUSED, "cannot write the output");
    }
    client_free(cli->client);
    for (size_t i = 0; i < cli->place_count; i++) {
        mem_free(cli->places[i]);
    }
    mem_free(cli->places);
    mem_free(cli);
    return code;
}

/* ---- what commands share ---- */

/* False: err says what is wrong with an option. */
static bool use_credentials(struct cli *cli, struct err_info *err)
{
    const struct args *args = &cli->args;
    const char *token = args->token;
    const char *ca = args->ca != NULL ? args->ca : getenv("SKEIN_CA");
    char from_file[CLIENT_TOKEN_MAX];
    if (token == NULL && args->token_file != NULL) {
        if (client_read_token(args->token_file, from_file, err) != RC_OK) {
            return false;
        }
        token = from_file;
    } else if (token == NULL) {
        token = getenv("SKEIN_TOKEN");
    }
    struct client_credentials credentials = {
        .token = token != NULL && token[0] != '\0' ? token : NULL,
        .ca = ca != NULL && ca[0] != '\0' ? ca : NULL,
        .cert = args->cert,
        .key = args->key,
        .insecure = (args->given & OPTION_INSECURE) != 0,
    };
    int rc = client_use(cli->client, &credentials, err);
    explicit_bzero(from_file, sizeof(from_file));
    if (rc == RC_OK && credentials.insecure) {
        fprintf(cli->err, "skeinctl: warning: --insecure: whoever answers may read the token\n");
    }
    return rc == RC_OK;
}

struct client *cli_client(struct cli *cli)
{
    const char *server = cli->args.server;
    if (server == NULL || server[0] == '\0') {
        server = getenv("SKEIN_SERVER");
    }
    if (server == NULL || server[0] == '\0') {
        server = "unix:///run/skein/admin.sock";
    }
    struct err_info err = {0};
    if (cli->client != NULL) {
        return cli->client;
    }
    if (client_new(server, &cli->client, &err) != RC_OK || !use_credentials(cli, &err)) {
        (void)cli_fail(cli, CLI_USAGE, "%s", err.text);
        client_free(cli->client);
        cli->client = NULL;
    }
    return cli->client;
}

int cli_print_failure(struct cli *cli, int rc, const struct err_info *err)
{
    (void)cli_fail(cli, 0, "%s", err->text);
    if (rc == RC_CLOSED && cli->args.server == NULL && getenv("SKEIN_SERVER") == NULL) {
        fputs("  --server URL or SKEIN_SERVER says which node to talk to\n", cli->err);
    }
    return rc == RC_CLOSED ? CLI_NO_CONNECTION : CLI_REFUSED;
}

/* "routes.yaml:12: " for an error of a document with many objects. */
static void print_place(const struct cli *cli, const json_t *error)
{
    const json_t *idx = json_object_get(error, "index");
    const json_t *line = json_object_get(error, "line");
    if (!json_is_integer(idx)) {
        return;
    }
    size_t i = (size_t)json_integer_value(idx) + cli->place_first;
    if (cli->places != NULL && i < cli->place_count) {
        fprintf(cli->err, "%s: ", cli->places[i]);
    } else if (json_is_integer(line) && cli->args.file_count == 1) {
        fprintf(cli->err, "%s:%d: ", cli->args.files[0], (int)json_integer_value(line));
    }
}

int cli_print_problem(struct cli *cli, const struct answer *answer)
{
    json_error_t error;
    json_t *problem = answer->body.data != NULL
                          ? json_loadb(answer->body.data, answer->body.len, 0, &error)
                          : NULL;
    const char *detail = json_string_value(json_object_get(problem, "detail"));
    const char *title = json_string_value(json_object_get(problem, "title"));
    (void)cli_fail(cli, 0, "%s (%ld%s%s)", detail != NULL ? detail : "the server refused it",
                   answer->status, title != NULL ? " " : "", title != NULL ? title : "");
    size_t i;
    json_t *fault;
    json_array_foreach(json_object_get(problem, "errors"), i, fault)
    {
        const char *path = json_string_value(json_object_get(fault, "path"));
        const char *message = json_string_value(json_object_get(fault, "message"));
        fputs("  ", cli->err);
        print_place(cli, fault);
        fprintf(cli->err, "%s%s%s\n", path != NULL ? path : "",
                path != NULL && path[0] != '\0' ? ": " : "", message != NULL ? message : "");
    }
    const json_t *total = json_object_get(problem, "errorsTotal");
    if (json_is_integer(total)) {
        fprintf(cli->err, "  %d in all\n", (int)json_integer_value(total));
    }
    if (answer->status == 401) {
        fputs("  SKEIN_TOKEN, --token-file or --cert and --key say who you are\n", cli->err);
    } else if (answer->status == 403) {
        fputs("  use a token of that role: skeinctl token create --role ROLE NAME, by an admin\n",
              cli->err);
    }
    json_decref(problem);
    return CLI_REFUSED;
}

int cli_call(struct cli *cli, const struct request *request, json_t **ret_json, bool *ret_missing)
{
    struct answer answer;
    struct err_info err = {0};
    struct client *client = cli_client(cli);
    *ret_json = NULL;
    if (client == NULL) {
        return CLI_USAGE;
    }
    int rc = client_request(client, request, &answer, &err);
    if (rc != RC_OK) {
        return cli_print_failure(cli, rc, &err);
    }
    int code = CLI_OK;
    if (answer.status == 404 && ret_missing != NULL) {
        *ret_missing = true;
    } else if (answer.status >= 400) {
        code = cli_print_problem(cli, &answer);
    } else {
        json_error_t error;
        *ret_json = json_loadb(answer.body.data != NULL ? answer.body.data : "", answer.body.len, 0,
                               &error);
        if (*ret_json == NULL) {
            code = cli_fail(cli, CLI_REFUSED, "%s does not answer as a node does (status %ld, %s)",
                            client_server(client), answer.status, answer.content_type);
        }
    }
    answer_deinit(&answer);
    return code;
}

int cli_get(struct cli *cli, const char *path, json_t **ret_json)
{
    struct request request = {.method = "GET", .path = path};
    return cli_call(cli, &request, ret_json, NULL);
}

const struct kind *cli_kind(struct cli *cli, const char *word)
{
    const struct kind *kind = kind_by_name(word);
    if (kind == NULL) {
        char list[256] = "";
        for (const struct kind *row = kinds; row->name != NULL; row++) {
            size_t used = strlen(list);
            (void)snprintf(list + used, sizeof(list) - used, "%s%s", used > 0 ? ", " : "",
                           row->plural);
        }
        (void)cli_fail(cli, CLI_USAGE, "there is no kind \"%s\"; there are %s", word, list);
    }
    return kind;
}

const char *cli_namespace(const struct cli *cli)
{
    return cli->args.namespace_ != NULL ? cli->args.namespace_ : "default";
}

void cli_object_path(const struct cli *cli, const struct kind *kind, const char *namespace_,
                     const char *name, struct buf *out)
{
    char split[64];
    const char *slash = strchr(name, '/');
    bool qualified = kind->namespaced && slash != NULL && cli->args.namespace_ == NULL &&
                     kind->descriptor != &skein__endpoint__descriptor &&
                     (size_t)(slash - name) < sizeof(split);
    if (qualified) { /* "shop/checkout", as apply prints it */
        (void)snprintf(split, sizeof(split), "%.*s", (int)(slash - name), name);
        namespace_ = split;
        name = slash + 1;
    }
    (void)buf_puts(out, "/v1/");
    if (kind->namespaced) {
        (void)buf_puts(out, "namespaces/");
        client_escape(namespace_, out);
        (void)buf_putc(out, '/');
    }
    (void)buf_printf(out, "%s/", kind->plural);
    client_escape(name, out);
}

void cli_puts(struct cli *cli, const struct buf *text)
{
    if (text->len > 0) {
        (void)fwrite(text->data, 1, text->len, cli->out); /* errors show at the final flush */
    }
}

void cli_print(struct cli *cli, const json_t *value, enum output_form form)
{
    struct buf text;
    buf_init(&text, CLI_TEXT_BYTES_MAX);
    if (form == OUTPUT_YAML) {
        yaml_emit(value, &text);
    } else {
        char *json = json_text(value, 2);
        (void)buf_puts(&text, json);
        (void)buf_putc(&text, '\n');
        mem_free(json);
    }
    cli_puts(cli, &text);
    buf_deinit(&text);
}
