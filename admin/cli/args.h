/*
 * The command line of skeinctl as words and options.
 *
 * Options may stand anywhere; "--" ends them. "--name value", "--name=value", "-n value" and
 * "-nvalue" are the same, flags may be joined ("-Ah"). Pure; strings are borrowed from argv.
 */
#ifndef SKEIN_ADMIN_CLI_ARGS_H
#define SKEIN_ADMIN_CLI_ARGS_H

#include "node/base/errors.h"

enum {
    ARGS_WORDS_MAX = 1024, /* shell globs may name many objects */
    ARGS_FILES_MAX = 256,
};

enum output_form {
    OUTPUT_UNSET = 0, /* the command's own default */
    OUTPUT_TABLE,
    OUTPUT_JSON,
    OUTPUT_YAML,
};

/* One bit per option: which a command accepts, and which were given. */
enum option_bit {
    OPTION_HELP = 1 << 0,
    OPTION_SERVER = 1 << 1,
    OPTION_OUTPUT = 1 << 2,
    OPTION_NAMESPACE = 1 << 3,
    OPTION_ALL_NAMESPACES = 1 << 4,
    OPTION_SELECTOR = 1 << 5,
    OPTION_FILE = 1 << 6,
    OPTION_DRY_RUN = 1 << 7,
    OPTION_WAIT = 1 << 8,
    OPTION_OUT = 1 << 9,
    OPTION_SINCE = 1 << 10,
    OPTION_VERSION = 1 << 11,
    OPTION_IN_PARTS = 1 << 12,
    OPTION_REVOKE = 1 << 13,

    OPTION_TOKEN = 1 << 18,
    OPTION_TOKEN_FILE = 1 << 19,
    OPTION_CA = 1 << 20,
    OPTION_INSECURE = 1 << 21,
    OPTION_CERT = 1 << 22,
    OPTION_KEY = 1 << 23,
    OPTION_ROLE = 1 << 24,
    OPTION_EXPIRES = 1 << 25,
    OPTION_DESCRIPTION = 1 << 26,
    OPTION_LIMIT = 1 << 27,
    OPTION_USER = 1 << 28,
};

struct args {
    uint32_t given; /* enum option_bit */
    const char *server;
    enum output_form output;
    const char *namespace_;
    const char *selector;
    const char *out;
    const char *since;
    const char *token;
    const char *token_file;
    const char *ca;
    const char *cert;
    const char *key;
    const char *role;
    const char *expires;
    const char *description;
    const char *limit;
    const char *user;
    const char *files[ARGS_FILES_MAX];
    size_t file_count;
    const char *words[ARGS_WORDS_MAX]; /* the command first */
    size_t word_count;
};

/* argv[0] is skipped. RC_INVALID with a text that names the option and what would be accepted. */
MUST_CHECK int args_parse(int argc, char **argv, struct args *ret_args, struct err_info *err);

/* RC_INVALID, naming the option, unless every option given is among the accepted. */
MUST_CHECK int args_check(const struct args *args, uint32_t accepted, const char *command,
                          struct err_info *err);

/* The rows of help text ("  -n, --namespace NAME   ...") of the accepted options, into out. */
struct buf;
void args_help(uint32_t accepted, struct buf *out);

#endif
