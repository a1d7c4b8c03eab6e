/*
 * TLS targets of the proxy_driver; see driver_target.h.
 */
#include "tests/support/driver_target.h"

#include "node/base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TARGETS_MAX = 32, FILE_BYTES_MAX = 1 << 18 };

static struct {
    char *name;
    struct tls_target *target;
} targets[TARGETS_MAX];
static size_t target_count;

/* The whole file as text, or NULL. */
static char *read_text(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return NULL;
    }
    char *text = mem_new(FILE_BYTES_MAX);
    size_t len = fread(text, 1, FILE_BYTES_MAX - 1, file);
    text[len] = '\0';
    (void)fclose(file);
    return text;
}

struct texts {
    char *ca;
    char *cert;
    char *key;
};

static int read_option(const char *word, const char *value, struct tls_target_spec *spec,
                       struct texts *texts, struct err_info *err)
{
    const struct {
        const char *name;
        char **at;
    } files[] = {{"ca", &texts->ca}, {"cert", &texts->cert}, {"key", &texts->key}};
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        if (strcmp(files[i].name, word) == 0) {
            *files[i].at = read_text(value);
            return *files[i].at != NULL ? RC_OK : err_set(err, RC_IO, "cannot read %s", value);
        }
    }
    if (strcmp(word, "name") == 0) {
        spec->server_name = value;
    } else if (strcmp(word, "verify") == 0) {
        spec->verify = strcmp(value, "none") == 0 ? TLS_VERIFY_NONE
                       : strcmp(value, "ca") == 0 ? TLS_VERIFY_CA_ONLY
                                                  : TLS_VERIFY_FULL;
    } else if (strcmp(word, "profile") == 0) {
        spec->profile = (enum tls_profile)strtoul(value, NULL, 10);
    } else {
        return err_set(err, RC_INVALID, "unknown option %s", word);
    }
    return RC_OK;
}

static void keep(const char *name, struct tls_target *target)
{
    for (size_t i = 0; i < target_count; i++) {
        if (strcmp(targets[i].name, name) == 0) {
            tls_target_unref(targets[i].target);
            targets[i].target = target;
            return;
        }
    }
    targets[target_count].name = mem_strdup(name);
    targets[target_count++].target = target;
}

int driver_target_make(char **words, size_t count, struct err_info *err)
{
    struct tls_target_spec spec = {0};
    struct texts texts = {0};
    struct tls_target *target = NULL;
    int rc = target_count < TARGETS_MAX ? RC_OK : RC_TOO_BIG;
    for (size_t i = 2; i < count && rc == RC_OK; i++) {
        char *equals = strchr(words[i], '=');
        if (equals == NULL) {
            rc = err_set(err, RC_INVALID, "not an option: %s", words[i]);
            break;
        }
        *equals = '\0';
        rc = read_option(words[i], equals + 1, &spec, &texts, err);
    }
    spec.ca = texts.ca;
    if (rc == RC_OK && texts.cert != NULL) {
        const struct tls_cert_source pair = {.chain = texts.cert, .key = texts.key};
        rc = tls_cert_read(&pair, 1, &spec.client_cert, err);
    }
    if (rc == RC_OK) {
        rc = tls_target_new(&spec, &target, err);
    }
    if (rc == RC_OK) {
        keep(words[1], target);
    }
    tls_cert_unref(spec.client_cert);
    mem_free(texts.ca);
    mem_free(texts.cert);
    mem_free(texts.key);
    return rc;
}

struct tls_target *driver_target_find(const char *name)
{
    for (size_t i = 0; i < target_count; i++) {
        if (strcmp(targets[i].name, name) == 0) {
            return targets[i].target;
        }
    }
    return NULL;
}

void driver_targets_free(void)
{
    for (size_t i = 0; i < target_count; i++) {
        mem_free(targets[i].name);
        tls_target_unref(targets[i].target);
    }
    target_count = 0;
}
