/*
 * Option table and parser; see the header.
 */
#include "admin/cli/args.h"

#include "node/base/buf.h"

#include <stdio.h>
#include <string.h>

static const struct option_row {
    uint32_t bit;
    char letter; /* 0: none */
    const char *name;
    const char *value; /* NULL: a flag */
    const char *help;
} option_rows[] = {
    {OPTION_NAMESPACE, 'n', "namespace", "NAME", "the namespace to look in (default: default)"},
    {OPTION_ALL_NAMESPACES, 'A', "all-namespaces", NULL, "all namespaces"},
    {OPTION_SELECTOR, 'l', "selector", "LABELS", "only objects with these labels: tier=gold,zone"},
    {OPTION_FILE, 'f', "file", "FILE",
     "a manifest (YAML or JSON), - for standard input, or a folder"},
    {OPTION_DRY_RUN, 0, "dry-run", NULL, "check and show what would change, write nothing"},
    {OPTION_IN_PARTS, 0, "in-parts", NULL, "send a large manifest in parts, each all or nothing"},
    {OPTION_WAIT, 0, "wait", NULL, "answer once every live node has the change"},
    {OPTION_OUT, 0, "out", "FILE", "write there instead of standard output"},
    {OPTION_SINCE, 0, "since", "TOKEN", "resume after this revision, as a watch printed it"},
    {OPTION_OUTPUT, 'o', "output", "FORM", "table, json or yaml"},
    {OPTION_ROLE, 0, "role", "ROLE", "viewer, editor or admin"},
    {OPTION_EXPIRES, 0, "expires", "WHEN", "a span (12h, 30d) or a moment (2026-01-31T10:00:00Z)"},
    {OPTION_DESCRIPTION, 0, "description", "TEXT", "what it is for"},
    {OPTION_LIMIT, 0, "limit", "COUNT", "the last ones, at most so many (default: 50)"},
    {OPTION_REVOKE, 0, "revoke", NULL, "and make all tickets so far useless, everywhere"},
    {OPTION_USER, 0, "user", "NAME", "only of this token, certificate subject or \"uid 1000\""},
    {OPTION_TOKEN, 0, "token", "SECRET",
     "credential for an https:// server; others on this machine can read\n"
     "                              it there: better SKEIN_TOKEN or --token-file"},
    {OPTION_TOKEN_FILE, 0, "token-file", "FILE", "a file that holds the token"},
    {OPTION_CA, 0, "ca", "FILE",
     "whom to trust (PEM; default: SKEIN_CA, then the system's authorities)"},
    {OPTION_INSECURE, 0, "insecure", NULL, "do not check the server's certificate"},
    {OPTION_CERT, 0, "cert", "FILE", "a client certificate (PEM) as credential, with --key"},
    {OPTION_KEY, 0, "key", "FILE", "its key"},
    {OPTION_SERVER, 's', "server", "URL",
     "unix:///path, https://host:port or http://host:port (default: SKEIN_SERVER, then\n"
     "                              unix:///run/skein/admin.sock)"},
    {OPTION_VERSION, 0, "version", NULL, "print the version"},
    {OPTION_HELP, 'h', "help", NULL, "show help"},
};

static const struct option_row *row_by_name(const char *name, size_t len)
{
    for (size_t i = 0; i < ARRAY_LEN(option_rows); i++) {
        if (strlen(option_rows[i].name) == len && memcmp(option_rows[i].name, name, len) == 0) {
            return &option_rows[i];
        }
    }
    return NULL;
}

static const struct option_row *row_by_letter(char letter)
{
    for (size_t i = 0; i < ARRAY_LEN(option_rows); i++) {
        if (option_rows[i].letter == letter) {
            return &option_rows[i];
        }
    }
    return NULL;
}

static int set_output(struct args *args, const char *value, struct err_info *err)
{
    static const struct {
        const char *name;
        enum output_form form;
    } forms[] = {{"table", OUTPUT_TABLE}, {"json", OUTPUT_JSON}, {"yaml", OUTPUT_YAML}};
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        if (strcmp(forms[i].name, value) == 0) {
            args->output = forms[i].form;
            return RC_OK;
        }
    }
    return err_set(err, RC_INVALID, "--output: \"%.40s\" is unknown; accepted: table, json, yaml",
                   value);
}

/* Where the value of an option of its own goes; NULL: it is none of these. */
static const char **text_option(struct args *args, uint32_t bit)
{
    switch (bit) {
    case OPTION_SERVER:
        return &args->server;
    case OPTION_NAMESPACE:
        return &args->namespace_;
    case OPTION_SELECTOR:
        return &args->selector;
    case OPTION_OUT:
        return &args->out;
    case OPTION_SINCE:
        return &args->since;
    case OPTION_TOKEN:
        return &args->token;
    case OPTION_TOKEN_FILE:
        return &args->token_file;
    case OPTION_CA:
        return &args->ca;
    case OPTION_CERT:
        return &args->cert;
    case OPTION_KEY:
        return &args->key;
    case OPTION_ROLE:
        return &args->role;
    case OPTION_EXPIRES:
        return &args->expires;
    case OPTION_DESCRIPTION:
        return &args->description;
    case OPTION_LIMIT:
        return &args->limit;
    case OPTION_USER:
        return &args->user;
    default:
        return NULL;
    }
}

static int set_option(struct args *args, const struct option_row *row, const char *value,
                      struct err_info *err)
{
    const char **text = text_option(args, row->bit);
    args->given |= row->bit;
    if (text != NULL) {
        *text = value;
        return RC_OK;
    }
    if (row->bit == OPTION_OUTPUT) {
        return set_output(args, value, err);
    }
    if (row->bit == OPTION_FILE) {
        if (args->file_count == ARGS_FILES_MAX) {
            return err_set(err, RC_INVALID, "--file: given more than %d times", ARGS_FILES_MAX);
        }
        args->files[args->file_count++] = value;
    }
    return RC_OK; /* a flag: the bit says it all */
}

/* Where in the command line the parser is. */
struct cursor {
    int argc;
    char **argv;
    int at;
};

/* An option with a value, which may be the next argument. joined: it stood with the option. */
static int take_option(struct args *args, const struct option_row *row, const char *joined,
                       struct cursor *cursor, struct err_info *err)
{
    if (joined == NULL && cursor->at + 1 < cursor->argc) {
        joined = cursor->argv[++cursor->at];
    }
    if (joined == NULL) {
        return err_set(err, RC_INVALID, "--%s needs a value: %s", row->name, row->value);
    }
    return set_option(args, row, joined, err);
}

static int parse_long(struct args *args, struct cursor *cursor, struct err_info *err)
{
    const char *name = cursor->argv[cursor->at] + 2;
    const char *equals = strchr(name, '=');
    const struct option_row *row =
        row_by_name(name, equals != NULL ? (size_t)(equals - name) : strlen(name));
    if (row == NULL) {
        return err_set(err, RC_INVALID, "unknown option --%.80s", name);
    }
    const char *value = equals != NULL ? equals + 1 : NULL;
    if (row->value == NULL) {
        return value == NULL ? set_option(args, row, NULL, err)
                             : err_set(err, RC_INVALID, "--%s takes no value", row->name);
    }
    return take_option(args, row, value, cursor, err);
}

static int parse_letters(struct args *args, struct cursor *cursor, struct err_info *err)
{
    for (const char *at = cursor->argv[cursor->at] + 1; *at != '\0'; at++) {
        const struct option_row *row = row_by_letter(*at);
        if (row == NULL) {
            return err_set(err, RC_INVALID, "unknown option -%c", *at);
        }
        if (row->value == NULL) {
            int rc = set_option(args, row, NULL, err);
            if (rc != RC_OK) {
                return rc;
            }
            continue;
        }
        return take_option(args, row, at[1] != '\0' ? at + 1 : NULL, cursor, err);
    }
    return RC_OK;
}

int args_parse(int argc, char **argv, struct args *ret_args, struct err_info *err)
{
    *ret_args = (struct args){0};
    bool options = true;
    struct cursor cursor = {.argc = argc, .argv = argv};
    for (cursor.at = 1; cursor.at < argc; cursor.at++) {
        int rc = RC_OK;
        const char *word = argv[cursor.at];
        if (options && strcmp(word, "--") == 0) {
            options = false;
        } else if (options && word[0] == '-' && word[1] == '-') {
            rc = parse_long(ret_args, &cursor, err);
        } else if (options && word[0] == '-' && word[1] != '\0') {
            rc = parse_letters(ret_args, &cursor, err);
        } else if (ret_args->word_count == ARGS_WORDS_MAX) {
            rc = err_set(err, RC_INVALID, "more than %d words", ARGS_WORDS_MAX);
        } else {
            ret_args->words[ret_args->word_count++] = word;
        }
        if (rc != RC_OK) {
            return rc;
        }
    }
    return RC_OK;
}

int args_check(const struct args *args, uint32_t accepted, const char *command,
               struct err_info *err)
{
    uint32_t wrong = args->given & ~accepted;
    for (size_t i = 0; i < ARRAY_LEN(option_rows); i++) {
        if ((wrong & option_rows[i].bit) != 0) {
            return err_set(err, RC_INVALID, "--%s is not an option of \"%s\"; see skeinctl help %s",
                           option_rows[i].name, command, command);
        }
    }
    return RC_OK;
}

void args_help(uint32_t accepted, struct buf *out)
{
    for (size_t i = 0; i < ARRAY_LEN(option_rows); i++) {
        const struct option_row *row = &option_rows[i];
        if ((accepted & row->bit) == 0) {
            continue;
        }
        char left[40];
        (void)snprintf(left, sizeof(left), "%c%c%s --%s %s", row->letter != 0 ? '-' : ' ',
                       row->letter != 0 ? row->letter : ' ', row->letter != 0 ? "," : " ",
                       row->name, row->value != NULL ? row->value : "");
        (void)buf_printf(out, "  %-26s  %s\n", left, row->help);
    }
}
