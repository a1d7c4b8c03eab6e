/*
 * Files to certificate and policy; see the header.
 */
#include "node/app/admin_tls.h"

#include "node/base/log.h"
#include "node/base/mem.h"
#include "node/tls/crypto.h"
#include "node/tls/tls_cert.h"
#include "node/tls/tls_policy.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CA_FILE_MAX = 1 << 20 };

struct texts {
    char *chain;
    char *key;
    char *ca; /* NULL: none */
};

static void texts_deinit(struct texts *texts)
{
    if (texts->key != NULL) {
        crypto_wipe(texts->key, strlen(texts->key));
    }
    MEM_FREE(texts->chain);
    MEM_FREE(texts->key);
    MEM_FREE(texts->ca);
}

/* ---- files ---- */

static int read_text(const char *path, size_t max, char **ret_text, struct err_info *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat facts;
    if (fd < 0 || fstat(fd, &facts) != 0) {
        int rc = err_set(err, RC_IO, "%s: %s", path, strerror(errno));
        if (fd >= 0) {
            (void)close(fd);
        }
        return rc;
    }
    if (!S_ISREG(facts.st_mode) || facts.st_size < 0 || (size_t)facts.st_size > max) {
        (void)close(fd);
        return err_set(err, RC_INVALID, "%s: is no file of at most %zu bytes", path, max);
    }
    size_t size = (size_t)facts.st_size, len = 0;
    char *text = mem_new(size + 1);
    ssize_t got;
    while (len < size && (got = read(fd, text + len, size - len)) > 0) {
        len += (size_t)got;
    }
    (void)close(fd);
    text[len] = '\0';
    *ret_text = text;
    return RC_OK;
}

/* A file that never was readable by others. */
static int write_text(const char *path, const char *text, struct err_info *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    size_t len = strlen(text);
    bool good =
        fd >= 0 && fchmod(fd, 0600) == 0 && write(fd, text, len) == (ssize_t)len && fsync(fd) == 0;
    int rc = good ? RC_OK : err_set(err, RC_IO, "%s: %s", path, strerror(errno));
    if (fd >= 0) {
        (void)close(fd);
    }
    return rc;
}

static bool is_self_signed(const struct settings *settings)
{
    return *settings->admin_tls_certificate == '\0';
}

/* The paths in force; mem_free. Those that are not set are NULL. */
static void paths_of(const struct settings *settings, char *ret_paths[ADMIN_TLS_FILES])
{
    if (is_self_signed(settings)) {
        ret_paths[0] = mem_printf("%s/admin-cert.pem", settings->data_dir);
        ret_paths[1] = mem_printf("%s/admin-key.pem", settings->data_dir);
    } else {
        ret_paths[0] = mem_strdup(settings->admin_tls_certificate);
        ret_paths[1] = mem_strdup(settings->admin_tls_key);
    }
    ret_paths[2] =
        *settings->admin_tls_client_ca != '\0' ? mem_strdup(settings->admin_tls_client_ca) : NULL;
}

static void paths_free(char *paths[ADMIN_TLS_FILES])
{
    for (size_t i = 0; i < ADMIN_TLS_FILES; i++) {
        MEM_FREE(paths[i]);
    }
}

static struct admin_tls_stamp stamp_of(const char *path)
{
    struct stat facts;
    if (path == NULL || stat(path, &facts) != 0) {
        return (struct admin_tls_stamp){0};
    }
    return (struct admin_tls_stamp){
        .inode = (uint64_t)facts.st_ino,
        .size = (uint64_t)facts.st_size,
        .changed_ns =
            (uint64_t)facts.st_mtim.tv_sec * 1000000000u + (uint64_t)facts.st_mtim.tv_nsec,
    };
}

/* Made once: the key first, so that a certificate without its key is never found. */
static int make_self_signed(const struct settings *settings, char *const paths[ADMIN_TLS_FILES],
                            struct err_info *err)
{
    if (access(paths[0], F_OK) == 0) {
        return RC_OK;
    }
    const char *names[] = {"localhost", settings->node_name};
    char *chain = NULL, *key = NULL;
    size_t count = strcmp(settings->node_name, names[0]) != 0 ? 2 : 1;
    int rc = tls_cert_generate(names, count, &chain, &key, err);
    rc = rc != RC_OK ? rc : write_text(paths[1], key, err);
    rc = rc != RC_OK ? rc : write_text(paths[0], chain, err);
    if (key != NULL) {
        crypto_wipe(key, strlen(key));
    }
    mem_free(key);
    mem_free(chain);
    return rc;
}

/* ---- loading ---- */

static int read_texts(char *const paths[ADMIN_TLS_FILES], struct texts *texts, struct err_info *err)
{
    int rc = read_text(paths[0], TLS_CERT_PEM_MAX, &texts->chain, err);
    rc = rc != RC_OK ? rc : read_text(paths[1], TLS_CERT_PEM_MAX, &texts->key, err);
    if (rc == RC_OK && paths[2] != NULL) {
        rc = read_text(paths[2], CA_FILE_MAX, &texts->ca, err);
    }
    return rc;
}

static int make(const struct settings *settings, const struct texts *texts,
                struct admin_tls *ret_tls, struct err_info *err)
{
    struct tls_cert_source source = {.chain = texts->chain, .key = texts->key};
    struct tls_policy_spec spec = {
        .profile = TLS_PROFILE_INTERMEDIATE,
        .client_auth = texts->ca != NULL ? TLS_CLIENT_AUTH_OPTIONAL : TLS_CLIENT_AUTH_OFF,
        .client_ca = texts->ca,
    };
    struct admin_tls tls = {.client_role = ACCESS_VIEWER};
    (void)access_parse(settings->admin_tls_client_role, &tls.client_role); /* was checked */
    int rc = tls_cert_read(&source, 1, &tls.cert, err);
    if (rc != RC_OK) {
        return err_prefix(err, rc, "admin.tls.certificate, admin.tls.key");
    }
    rc = tls_policy_new(&spec, &tls.policy, err);
    if (rc != RC_OK) {
        tls_cert_unref(tls.cert);
        return err_prefix(err, rc, "admin.tls.clientCa");
    }
    *ret_tls = tls;
    return RC_OK;
}

static void tell(const struct settings *settings, const struct admin_tls *tls)
{
    const struct tls_cert_info *info = tls_cert_info(tls->cert);
    log_info("admin API certificate", "subject=\"%s\" fingerprint=%s self_signed=%s made_here=%s",
             info->subject, info->fingerprint, info->self_signed ? "yes" : "no",
             is_self_signed(settings) ? "yes" : "no");
    for (size_t i = 0; i < info->warning_count; i++) {
        log_warn("admin API certificate", "warning=\"%s\"", info->warnings[i]);
    }
}

int admin_tls_load(const struct settings *settings, struct admin_tls_watch *watch,
                   struct admin_tls *ret_tls, struct err_info *err)
{
    char *paths[ADMIN_TLS_FILES];
    struct texts texts = {0};
    struct admin_tls_watch seen = {.seconds = 0};
    paths_of(settings, paths);
    int rc = is_self_signed(settings) ? make_self_signed(settings, paths, err) : RC_OK;
    for (size_t i = 0; i < ADMIN_TLS_FILES; i++) {
        seen.stamps[i] = stamp_of(paths[i]); /* before reading: a change meanwhile is seen later */
    }
    rc = rc != RC_OK ? rc : read_texts(paths, &texts, err);
    rc = rc != RC_OK ? rc : make(settings, &texts, ret_tls, err);
    *watch = seen; /* also when it failed: told once a change */
    if (rc == RC_OK) {
        tell(settings, ret_tls);
    }
    texts_deinit(&texts);
    paths_free(paths);
    return rc;
}

void admin_tls_deinit(struct admin_tls *tls)
{
    tls_cert_unref(tls->cert);
    tls_policy_unref(tls->policy);
    *tls = (struct admin_tls){0};
}

bool admin_tls_is_due(const struct settings *settings, struct admin_tls_watch *watch)
{
    if (++watch->seconds < ADMIN_TLS_LOOK_S) {
        return false;
    }
    char *paths[ADMIN_TLS_FILES];
    bool differs = false;
    watch->seconds = 0;
    paths_of(settings, paths);
    for (size_t i = 0; i < ADMIN_TLS_FILES; i++) {
        struct admin_tls_stamp now = stamp_of(paths[i]);
        const struct admin_tls_stamp *then = &watch->stamps[i];
        differs = differs || now.inode != then->inode || now.size != then->size ||
                  now.changed_ns != then->changed_ns;
    }
    paths_free(paths);
    return differs;
}

void admin_tls_reload(const struct settings *settings, struct admin_tls_watch *watch,
                      struct admin *admin)
{
    struct err_info err = {0};
    struct admin_tls tls;
    int rc = admin_tls_load(settings, watch, &tls, &err);
    if (rc == RC_OK) {
        rc = admin_set_tls(admin, &tls, &err);
        admin_tls_deinit(&tls);
    }
    if (rc != RC_OK) {
        log_error("the admin API keeps its certificate", "reason=\"%s\"", err.text);
    }
}
