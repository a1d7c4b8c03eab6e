/*
 * delete: objects by name, or those that a manifest names.
 */
#include "admin/cli/cli.h"

#include <string.h>

enum { PATH_BYTES_MAX = 16 * 1024 };

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL ? text : "";
}

/* One deletion. missing_ok: an object that is not there is only told of. */
static int delete_one(struct cli *cli, const struct kind *kind, const char *namespace_,
                      const char *name, bool missing_ok, json_t *answers)
{
    struct buf path;
    buf_init(&path, PATH_BYTES_MAX);
    cli_object_path(cli, kind, namespace_, name, &path);
    bool dry_run = (cli->args.given & OPTION_DRY_RUN) != 0;
    bool wait = (cli->args.given & OPTION_WAIT) != 0 && !dry_run;
    (void)buf_puts(&path, dry_run ? "?dryRun=true" : wait ? "?wait=all" : "");
    json_t *answer;
    bool missing = false;
    struct request request = {.method = "DELETE", .path = path.data};
    int code = cli_call(cli, &request, &answer, missing_ok ? &missing : NULL);
    bool as_text = cli->args.output == OUTPUT_UNSET || cli->args.output == OUTPUT_TABLE;
    const char *shown_namespace = kind->namespaced && strchr(name, '/') == NULL ? namespace_ : "";
    if (kind->descriptor == &skein__endpoint__descriptor) {
        shown_namespace = namespace_;
    }
    if (as_text && (answer != NULL || missing)) {
        fprintf(cli->out, "%s %s%s%s %s%s\n", kind->name, shown_namespace,
                shown_namespace[0] != '\0' ? "/" : "", name, missing ? "is not there" : "deleted",
                dry_run && !missing ? " (dry run)" : "");
    }
    if (answer != NULL) {
        code = cli_check_wait(cli, answer);
        (void)json_array_append(answers, answer);
    }
    json_decref(answer);
    buf_deinit(&path);
    return code;
}

static int delete_named(struct cli *cli, json_t *answers)
{
    const struct kind *kind = cli_kind(cli, cli->args.words[1]);
    int worst = kind != NULL ? CLI_OK : CLI_USAGE;
    for (size_t i = 2; i < cli->args.word_count && kind != NULL; i++) {
        int code = delete_one(cli, kind, cli_namespace(cli), cli->args.words[i], false, answers);
        worst = MAX(worst, code);
        if (code == CLI_NO_CONNECTION || code == CLI_USAGE) {
            break;
        }
    }
    return worst;
}

/* What a manifest names, last first: routes that stand behind their backends go before them. */
static int delete_documents(struct cli *cli, const json_t *documents, json_t *answers)
{
    int worst = CLI_OK;
    for (size_t i = json_array_size(documents); i-- > 0 && worst < CLI_USAGE;) {
        const json_t *document = json_array_get(documents, i);
        const json_t *metadata = json_object_get(document, "metadata");
        const char *name = text_of(metadata, "name");
        const char *namespace_ = text_of(metadata, "namespace");
        const struct kind *kind = cli_kind(cli, text_of(document, "kind"));
        if (kind == NULL || name[0] == '\0') {
            return cli_fail(cli, CLI_USAGE, "%s: an object without a known kind and a name",
                            cli->places[i]);
        }
        int code = delete_one(cli, kind, namespace_[0] != '\0' ? namespace_ : cli_namespace(cli),
                              name, true, answers);
        worst = MAX(worst, code);
    }
    return worst;
}

int cmd_delete(struct cli *cli)
{
    bool by_file = cli->args.file_count > 0;
    if (by_file ? cli->args.word_count > 1 : cli->args.word_count < 3) {
        return cli_fail(cli, CLI_USAGE, "usage: skeinctl delete KIND NAME... | -f FILE");
    }
    json_t *answers = json_array();
    int code = CLI_OK;
    if (by_file) {
        json_t *documents = cli_read_documents(cli, &code);
        code = documents != NULL ? delete_documents(cli, documents, answers) : code;
        json_decref(documents);
    } else {
        code = delete_named(cli, answers);
    }
    if (cli->args.output == OUTPUT_JSON || cli->args.output == OUTPUT_YAML) {
        json_t *list = json_object();
        (void)json_object_set(list, "items", answers);
        cli_print(cli, list, cli->args.output);
        json_decref(list);
    }
    json_decref(answers);
    return code;
}
