/*
 * apply, diff and delete: manifests to the server, and what became of each object.
 */
#include "admin/cli/cli.h"

#include "node/base/mem.h"
#include "proto/json.h"
#include "proto/manifest.h"

#include <string.h>

enum { PATH_BYTES_MAX = 16 * 1024 };

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL ? text : "";
}

/* ---- what the server says of an object ---- */

static char *compact(const json_t *value)
{
    char *text = json_text(value, 0);
    if (strlen(text) > 200) {
        memcpy(text + 197, "...", 4);
    }
    return text;
}

/* A new object in full, each line behind a sign. */
static void print_whole(struct cli *cli, const json_t *object, char sign)
{
    struct buf text;
    buf_init(&text, CLI_TEXT_BYTES_MAX);
    yaml_emit(object, &text);
    char *rest = text.data;
    for (char *line = strsep(&rest, "\n"); line != NULL; line = strsep(&rest, "\n")) {
        if (line[0] != '\0') {
            fprintf(cli->out, "  %c %s\n", sign, line);
        }
    }
    buf_deinit(&text);
}

void cli_print_diff(struct cli *cli, const json_t *diff)
{
    size_t i;
    json_t *entry;
    json_array_foreach(diff, i, entry)
    {
        const json_t *before = json_object_get(entry, "old");
        const json_t *after = json_object_get(entry, "new");
        const char *path = text_of(entry, "path");
        char *old_text = before != NULL ? compact(before) : NULL;
        char *new_text = after != NULL ? compact(after) : NULL;
        if (path[0] == '\0' && (before == NULL || after == NULL)) {
            print_whole(cli, after != NULL ? after : before, after != NULL ? '+' : '-');
        } else if (before == NULL) {
            fprintf(cli->out, "  + %s: %s\n", path, new_text);
        } else if (after == NULL) {
            fprintf(cli->out, "  - %s: %s\n", path, old_text);
        } else {
            fprintf(cli->out, "  ~ %s: %s -> %s\n", path, old_text, new_text);
        }
        mem_free(old_text);
        mem_free(new_text);
    }
}

/* " (endpoints: 2 created, 1 deleted)", when any changed. */
static void print_endpoint_counts(struct cli *cli, const json_t *item)
{
    static const char *const actions[] = {"created", "configured", "deleted"};
    const json_t *endpoints = json_object_get(item, "endpoints");
    bool any = false;
    for (size_t i = 0; i < ARRAY_LEN(actions); i++) {
        int count = (int)json_integer_value(json_object_get(endpoints, actions[i]));
        if (count > 0) {
            fprintf(cli->out, "%s%d %s", any ? ", " : " (endpoints: ", count, actions[i]);
            any = true;
        }
    }
    fputs(any ? ")" : "", cli->out);
}

static void print_item(struct cli *cli, const json_t *item, bool dry_run)
{
    const char *namespace_ = text_of(item, "namespace");
    fprintf(cli->out, "%s %s%s%s %s", text_of(item, "kind"), namespace_,
            namespace_[0] != '\0' ? "/" : "", text_of(item, "name"), text_of(item, "action"));
    print_endpoint_counts(cli, item);
    fputs(dry_run ? " (dry run)\n" : "\n", cli->out);
    cli_print_diff(cli, json_object_get(item, "diff"));
}

/* ?wait=all that was not confirmed: it is written, but whoever asked wants to know. */
static int check_wait(struct cli *cli, const json_t *answer)
{
    const json_t *wait = json_object_get(answer, "wait");
    if (wait == NULL || json_is_true(json_object_get(wait, "confirmed"))) {
        return CLI_OK;
    }
    return cli_fail(cli, CLI_REFUSED,
                    "written and durable, but not confirmed by every live node: %s",
                    text_of(wait, "detail"));
}

/* ---- apply and diff ---- */

/* One request for all files. */
static int send_apply(struct cli *cli, bool dry_run, json_t **ret_answer)
{
    char path[64];
    bool wait = (cli->args.given & OPTION_WAIT) != 0 && !dry_run;
    (void)snprintf(path, sizeof(path), "/v1/apply%s%s", dry_run ? "?dryRun=true" : "",
                   wait ? "?wait=all" : "");
    int code;
    if (cli_is_single_file(cli)) {
        struct buf text;
        code = cli_read_text(cli, &text);
        if (code == CLI_OK) {
            code = cli_call(cli, "POST", path, "application/yaml",
                            text.data != NULL ? text.data : "", text.len, ret_answer, NULL);
        }
        buf_deinit(&text);
        return code;
    }
    json_t *documents = cli_read_documents(cli, &code);
    if (documents != NULL) {
        char *text = json_text(documents, 0);
        code =
            cli_call(cli, "POST", path, "application/json", text, strlen(text), ret_answer, NULL);
        mem_free(text);
        json_decref(documents);
    }
    return code;
}

static bool print_items(struct cli *cli, const json_t *answer, bool dry_run, bool changed_only)
{
    bool changed = false;
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(answer, "items"), i, item)
    {
        bool same = strcmp(text_of(item, "action"), "unchanged") == 0;
        changed = changed || !same;
        if (cli->args.output == OUTPUT_JSON || cli->args.output == OUTPUT_YAML) {
            continue;
        }
        if (!same || !changed_only) {
            print_item(cli, item, dry_run);
        }
    }
    if (cli->args.output == OUTPUT_JSON || cli->args.output == OUTPUT_YAML) {
        cli_print(cli, answer, cli->args.output);
    }
    return changed;
}

static int need_file(struct cli *cli, const char *command)
{
    return cli->args.file_count > 0
               ? CLI_OK
               : cli_fail(cli, CLI_USAGE, "what to %s is missing: -f FILE, -f FOLDER or -f -",
                          command);
}

int cmd_apply(struct cli *cli)
{
    json_t *answer = NULL;
    bool dry_run = (cli->args.given & OPTION_DRY_RUN) != 0;
    int code = need_file(cli, "apply");
    code = code == CLI_OK ? send_apply(cli, dry_run, &answer) : code;
    if (answer != NULL) {
        (void)print_items(cli, answer, dry_run, false);
        code = check_wait(cli, answer);
    }
    json_decref(answer);
    return code;
}

int cmd_diff(struct cli *cli)
{
    json_t *answer = NULL;
    int code = need_file(cli, "compare");
    code = code == CLI_OK ? send_apply(cli, true, &answer) : code;
    if (code == CLI_OK) {
        code = print_items(cli, answer, false, true) ? 1 : 0;
    } else if (code == CLI_REFUSED) {
        code = 2; /* as diff(1): trouble is not a difference */
    }
    json_decref(answer);
    return code;
}

/* ---- delete ---- */

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
    int code =
        cli_call(cli, "DELETE", path.data, NULL, NULL, 0, &answer, missing_ok ? &missing : NULL);
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
        code = check_wait(cli, answer);
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
