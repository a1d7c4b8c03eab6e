/*
 * apply and diff: manifests to the server, and what became of each object.
 */
#include "admin/cli/cli.h"

#include "node/base/mem.h"
#include "proto/json.h"
#include "proto/manifest.h"

#include <string.h>

enum { PART_OBJECTS_MAX = 500 };

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

int cli_check_wait(struct cli *cli, const json_t *answer)
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

static void apply_path(const struct cli *cli, bool dry_run, char out[64])
{
    bool wait = (cli->args.given & OPTION_WAIT) != 0 && !dry_run;
    (void)snprintf(out, 64, "/v1/apply%s%s", dry_run ? "?dryRun=true" : "",
                   wait ? "?wait=all" : "");
}

static int send_documents(struct cli *cli, const json_t *documents, bool dry_run,
                          json_t **ret_answer)
{
    char path[64];
    apply_path(cli, dry_run, path);
    char *text = json_text(documents, 0);
    struct request request = {.method = "POST",
                              .path = path,
                              .content_type = "application/json",
                              .body = text,
                              .len = strlen(text)};
    int code = cli_call(cli, &request, ret_answer, NULL);
    mem_free(text);
    return code;
}

/* One request for all files. */
static int send_apply(struct cli *cli, bool dry_run, json_t **ret_answer)
{
    int code;
    if (cli_is_single_file(cli)) {
        char path[64];
        struct buf text;
        apply_path(cli, dry_run, path);
        code = cli_read_text(cli, &text);
        if (code == CLI_OK) {
            struct request request = {.method = "POST",
                                      .path = path,
                                      .content_type = "application/yaml",
                                      .body = text.data != NULL ? text.data : "",
                                      .len = text.len};
            code = cli_call(cli, &request, ret_answer, NULL);
        }
        buf_deinit(&text);
        return code;
    }
    json_t *documents = cli_read_documents(cli, &code);
    if (documents != NULL) {
        code = send_documents(cli, documents, dry_run, ret_answer);
    }
    json_decref(documents);
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

/* What the server counts of a document: a Backend's endpoints are objects of their own. */
static size_t weight_of(const json_t *document)
{
    return 1 + json_array_size(json_object_get(json_object_get(document, "spec"), "endpoints"));
}

/* As many documents from `first` on as one request may hold; at least one. */
static json_t *take_part(const json_t *documents, size_t first)
{
    json_t *part = json_array();
    size_t weight = 0;
    for (size_t i = first; i < json_array_size(documents); i++) {
        json_t *document = json_array_get(documents, i);
        weight += weight_of(document);
        if (i > first && weight > PART_OBJECTS_MAX) {
            break;
        }
        (void)json_array_append(part, document);
    }
    return part;
}

/* --in-parts: what is larger than one change may be, part after part until one is refused. */
static int apply_parts(struct cli *cli, bool dry_run, json_t **ret_answer)
{
    int code;
    json_t *documents = cli_read_documents(cli, &code);
    json_t *items = json_array();
    size_t count = json_array_size(documents);
    while (code == CLI_OK && cli->place_first < count) {
        json_t *part = take_part(documents, cli->place_first);
        json_t *answer = NULL;
        code = send_documents(cli, part, dry_run, &answer);
        (void)json_array_extend(items, json_object_get(answer, "items"));
        if (code == CLI_OK) {
            code = cli_check_wait(cli, answer);
            cli->place_first += json_array_size(part);
        }
        json_decref(answer);
        json_decref(part);
    }
    if (code != CLI_OK && documents != NULL && cli->place_first > 0 && !dry_run) {
        fprintf(cli->err, "  the first %zu of %zu objects are written\n", cli->place_first, count);
    }
    json_decref(documents);
    *ret_answer = json_pack("{s:b, s:o}", "dryRun", (int)dry_run, "items", items);
    return code;
}

int cmd_apply(struct cli *cli)
{
    json_t *answer = NULL;
    bool dry_run = (cli->args.given & OPTION_DRY_RUN) != 0;
    bool in_parts = (cli->args.given & OPTION_IN_PARTS) != 0;
    int code = need_file(cli, "apply");
    if (code == CLI_OK) {
        code = in_parts ? apply_parts(cli, dry_run, &answer) : send_apply(cli, dry_run, &answer);
    }
    if (answer != NULL) {
        (void)print_items(cli, answer, dry_run, false);
        code = in_parts ? code : cli_check_wait(cli, answer);
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
