/*
 * keygen and version: what needs no server, or little of it.
 */
#include "admin/cli/cli.h"

#include "node/base/mem.h"
#include "node/tls/key_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- keygen ---- */

/* A file that never was readable by others, and never replaces one. */
static int write_key_file(struct cli *cli, const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EEXIST) {
        return cli_fail(cli, CLI_REFUSED, "%s exists; a key is never overwritten", path);
    }
    if (fd < 0) {
        return cli_fail(cli, CLI_REFUSED, "%s: %s", path, strerror(errno));
    }
    size_t len = strlen(text);
    bool good = fchmod(fd, 0600) == 0 && write(fd, text, len) == (ssize_t)len && fsync(fd) == 0;
    int error = errno;
    if (close(fd) != 0 || !good) {
        (void)unlink(path); /* half a key is none */
        return cli_fail(cli, CLI_REFUSED, "%s: %s", path, strerror(error));
    }
    fprintf(cli->err, "wrote %s; every node of the cluster needs the same file\n", path);
    return CLI_OK;
}

int cmd_keygen(struct cli *cli)
{
    uint8_t key[KEY_BYTES];
    char text[KEY_FILE_TEXT_MAX];
    key_generate(key);
    key_file_format(key, text, sizeof(text));
    int code = CLI_OK;
    if (cli->args.out != NULL && strcmp(cli->args.out, "-") != 0) {
        code = write_key_file(cli, cli->args.out, text);
    } else {
        fputs(text, cli->out);
    }
    explicit_bzero(key, sizeof(key));
    explicit_bzero(text, sizeof(text));
    return code;
}

/* ---- version ---- */

int cmd_version(struct cli *cli)
{
    struct client *client = cli_client(cli);
    struct request request = {.method = "GET", .path = "/v1/cluster"};
    struct answer answer = {0};
    struct err_info err = {0};
    json_t *server = NULL;
    if (client == NULL) {
        return CLI_USAGE;
    }
    /* The version of the command line is told whether or not a node can be reached. */
    if (client_request(client, &request, &answer, &err) == RC_OK) {
        json_error_t error;
        server = json_loadb(answer.body.data != NULL ? answer.body.data : "", answer.body.len, 0,
                            &error);
        answer_deinit(&answer);
    }
    const char *version = json_string_value(json_object_get(server, "version"));
    const char *node = json_string_value(json_object_get(server, "node"));
    if (cli->args.output == OUTPUT_JSON || cli->args.output == OUTPUT_YAML) {
        json_t *json = json_pack("{s:s, s:s*, s:s*}", "skeinctl", SKEIN_VERSION, "skeind", version,
                                 "node", node);
        cli_print(cli, json, cli->args.output);
        json_decref(json);
    } else {
        fprintf(cli->out, "skeinctl %s\n", SKEIN_VERSION);
        if (version != NULL) {
            fprintf(cli->out, "skeind   %s (%s, %s)\n", version, node != NULL ? node : "?",
                    client_server(client));
        } else {
            fprintf(cli->out, "skeind   not reached: %s\n",
                    err.text[0] != '\0' ? err.text : "no answer of a node");
        }
    }
    json_decref(server);
    return CLI_OK;
}
