/*
 * What the commands of skeinctl share: the command line, where to print, the server.
 *
 * Exit codes: 0 done; 1 refused by the server, or an error on this side that is not one of these;
 * 2 wrong use; 3 no connection. `diff` has those of diff(1): 0 no difference, 1 differences,
 * 2 trouble; 3 no connection.
 * Thread: one.
 */
#ifndef SKEIN_ADMIN_CLI_CLI_H
#define SKEIN_ADMIN_CLI_CLI_H

#include "admin/cli/args.h"
#include "admin/cli/client.h"
#include "proto/object.h"

#include <jansson.h>
#include <stdio.h>

enum cli_exit { CLI_OK = 0, CLI_REFUSED = 1, CLI_USAGE = 2, CLI_NO_CONNECTION = 3 };

enum { CLI_TEXT_BYTES_MAX = 256 << 20 };

struct cli {
    struct args args;
    FILE *out;
    FILE *err;
    struct client *client; /* made at first use */
    /* Where the objects of an apply stood, by index: "file.yaml" (several files); may be NULL. */
    char **places;
    size_t place_count;
    size_t place_first; /* of the object that the last request began with */
};

struct command {
    const char *name;
    const char *usage;             /* behind the name: "KIND [NAME...]" */
    const char *doc;               /* one line */
    uint32_t options;              /* enum option_bit, besides server and help */
    unsigned words_min, words_max; /* behind the command */
    int (*run)(struct cli *cli);   /* returns an exit code */
};

extern const struct command commands[]; /* ends with a row whose name is NULL */

/* Everything but the process: parse, dispatch, print. Returns the exit code. */
int cli_run(int argc, char **argv, FILE *out, FILE *err);

/* "skeinctl: text" and a newline on standard error; returns code. */
int cli_fail(struct cli *cli, int code, const char *fmt, ...) PRINTF_LIKE(3, 4);

/*
 * One request, its answer parsed. *ret_json (a new reference) is set when the answer is JSON and
 * its status below 400; else what was wrong has been printed and the exit code says so. A 404 with
 * ret_missing not NULL is no error: *ret_missing is set, *ret_json is NULL.
 */
int cli_call(struct cli *cli, const struct request *request, json_t **ret_json, bool *ret_missing);
int cli_get(struct cli *cli, const char *path, json_t **ret_json);

/* The client, or NULL after printing why there is none. */
struct client *cli_client(struct cli *cli);

/* Print an answer that is an error; returns the exit code. */
int cli_print_problem(struct cli *cli, const struct answer *answer);
int cli_print_failure(struct cli *cli, int rc, const struct err_info *err);

/* A kind by the word that a user gave; NULL after printing what would be accepted. */
const struct kind *cli_kind(struct cli *cli, const char *word);

/* -n, else "default". */
const char *cli_namespace(const struct cli *cli);

/* The path of one object: "/v1/namespaces/shop/routes/checkout". name may be "namespace/name" for
 * kinds in a namespace when no -n was given and the name has no other use for the slash. */
void cli_object_path(const struct cli *cli, const struct kind *kind, const char *namespace_,
                     const char *name, struct buf *out);

/* Print a value as JSON or YAML. */
void cli_print(struct cli *cli, const json_t *value, enum output_form form);

/* Print text that may hold anything. */
void cli_puts(struct cli *cli, const struct buf *text);

/* Documents of all files (-f), with cli->places filled. NULL after printing what was wrong
 * (*ret_code is the exit code). */
json_t *cli_read_documents(struct cli *cli, int *ret_code);

/* The raw text when there is exactly one file, no folder; false: use cli_read_documents. */
bool cli_is_single_file(const struct cli *cli);
int cli_read_text(struct cli *cli, struct buf *ret_text);

/* Commands, by file. */
int cmd_get(struct cli *cli); /* cmd_get.c */
int cmd_describe(struct cli *cli);
int cmd_apply(struct cli *cli); /* cmd_apply.c */
int cmd_diff(struct cli *cli);
int cmd_delete(struct cli *cli); /* cmd_delete.c */
int cmd_export(struct cli *cli); /* cmd_cluster.c */
int cmd_cluster(struct cli *cli);
int cmd_forget(struct cli *cli);
int cmd_watch(struct cli *cli);
int cmd_token(struct cli *cli); /* cmd_token.c */
int cmd_audit(struct cli *cli);
int cmd_tickets(struct cli *cli); /* cmd_tickets.c */
int cmd_keygen(struct cli *cli);  /* cmd_local.c */
int cmd_version(struct cli *cli);

/* ?wait=all that was not confirmed: it is written, but whoever asked wants to know. An exit code.
 */
int cli_check_wait(struct cli *cli, const json_t *answer);

/* Show the difference of one item of an apply answer, one line per field, indented. */
void cli_print_diff(struct cli *cli, const json_t *diff);

#endif
