/*
 * Manifests of -f: one file, standard input, several files, or folders of them.
 *
 * One file is sent as it is, so that the server's line numbers are the file's. Several are parsed
 * here and sent as one list, since an apply is one request; where each object stood is kept.
 */
#include "admin/cli/cli.h"

#include "node/base/mem.h"
#include "proto/manifest.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FILE_BYTES_MAX = 256 << 20, FOLDER_FILES_MAX = 10000, READ_BYTES = 64 * 1024 };

static bool is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

bool cli_is_single_file(const struct cli *cli)
{
    return cli->args.file_count == 1 && !is_folder(cli->args.files[0]);
}

static int read_stream(struct cli *cli, FILE *file, const char *name, struct buf *text)
{
    size_t got = 1;
    while (got > 0) {
        char *room = buf_reserve(text, READ_BYTES);
        if (room == NULL) {
            return cli_fail(cli, CLI_REFUSED, "%s: larger than the %d bytes that are accepted",
                            name, FILE_BYTES_MAX);
        }
        got = fread(room, 1, READ_BYTES, file);
        buf_grow(text, got);
    }
    return ferror(file) != 0 ? cli_fail(cli, CLI_USAGE, "%s: %s", name, strerror(errno)) : CLI_OK;
}

static int read_file(struct cli *cli, const char *path, struct buf *text)
{
    buf_init(text, FILE_BYTES_MAX);
    if (strcmp(path, "-") == 0) {
        return read_stream(cli, stdin, "standard input", text);
    }
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return cli_fail(cli, CLI_USAGE, "%s: %s", path, strerror(errno));
    }
    int code = read_stream(cli, file, path, text);
    (void)fclose(file); /* it was only read */
    return code;
}

int cli_read_text(struct cli *cli, struct buf *ret_text)
{
    return read_file(cli, cli->args.files[0], ret_text);
}

static void add_document(struct cli *cli, json_t *documents, json_t *document, const char *path,
                         size_t line)
{
    (void)json_array_append(documents, document);
    if ((cli->place_count & (cli->place_count - 1)) == 0) { /* 0 and powers of two: grow */
        cli->places = mem_grow(cli->places, cli->place_count * 2 + 1, sizeof(*cli->places));
    }
    cli->places[cli->place_count++] =
        line > 0 ? mem_printf("%s:%zu", path, line) : mem_strdup(path);
}

static int add_file(struct cli *cli, const char *path, json_t *documents)
{
    struct buf text;
    struct err_info err = {0};
    json_t *parsed = NULL;
    size_t *lines = NULL;
    int code = read_file(cli, path, &text);
    if (code == CLI_OK) {
        int rc =
            manifest_parse(text.data != NULL ? text.data : "", text.len, &parsed, &lines, &err);
        code = rc == RC_OK ? CLI_OK : cli_fail(cli, CLI_REFUSED, "%s: %s", path, err.text);
    }
    size_t i;
    json_t *document;
    json_array_foreach(parsed, i, document)
    {
        add_document(cli, documents, document, path, lines != NULL ? lines[i] : 0);
    }
    json_decref(parsed);
    mem_free(lines);
    buf_deinit(&text);
    return code;
}

static int wanted(const struct dirent *entry)
{
    static const char *const endings[] = {".yaml", ".yml", ".json"};
    size_t len = strlen(entry->d_name);
    for (size_t i = 0; i < ARRAY_LEN(endings) && entry->d_name[0] != '.'; i++) {
        size_t ending = strlen(endings[i]);
        if (len > ending && strcmp(entry->d_name + len - ending, endings[i]) == 0) {
            return 1;
        }
    }
    return 0;
}

static int add_folder(struct cli *cli, const char *path, json_t *documents)
{
    struct dirent **entries = NULL;
    int count = scandir(path, &entries, wanted, alphasort);
    if (count < 0) {
        return cli_fail(cli, CLI_USAGE, "%s: %s", path, strerror(errno));
    }
    int code = count == 0
                   ? cli_fail(cli, CLI_USAGE, "%s: no file here ends in .yaml, .yml or .json", path)
               : count > FOLDER_FILES_MAX
                   ? cli_fail(cli, CLI_USAGE, "%s: more than %d files", path, FOLDER_FILES_MAX)
                   : CLI_OK;
    for (int i = 0; i < count; i++) {
        char *file = mem_printf("%s/%s", path, entries[i]->d_name);
        if (code == CLI_OK && !is_folder(file)) {
            code = add_file(cli, file, documents);
        }
        mem_free(file);
        free(entries[i]); /* scandir's own memory */
    }
    free(entries);
    return code;
}

json_t *cli_read_documents(struct cli *cli, int *ret_code)
{
    json_t *documents = json_array();
    int code = CLI_OK;
    for (size_t i = 0; i < cli->args.file_count && code == CLI_OK; i++) {
        const char *path = cli->args.files[i];
        code = is_folder(path) ? add_folder(cli, path, documents) : add_file(cli, path, documents);
    }
    if (code == CLI_OK && json_array_size(documents) == 0) {
        code = cli_fail(cli, CLI_USAGE, "the manifests have no objects");
    }
    *ret_code = code;
    if (code != CLI_OK) {
        json_decref(documents);
        return NULL;
    }
    return documents;
}
