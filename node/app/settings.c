/*
 * The table of settings, and its three sources.
 *
 * A row says where the value lives and of what type it is; file, environment and flags all end in
 * assign(), so that they accept the same texts and complain in the same words.
 */
#include "node/app/settings.h"

#include "node/app/settings_file.h"
#include "node/base/buf.h"
#include "node/base/check.h"
#include "node/base/mem.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum setting_type {
    SETTING_TEXT = 0,
    SETTING_COUNT,    /* whole number */
    SETTING_COUNT64,  /* whole number of 64 bits */
    SETTING_DURATION, /* "500ms", "30s", "5m"; milliseconds inside */
    SETTING_LIST,     /* several texts */
};

static const struct setting {
    const char *path;
    enum setting_type type;
    size_t offset;
    const char *standard; /* as it would be written */
    const char *help;
} table[] = {
    {"node.name", SETTING_TEXT, offsetof(struct settings, node_name), "",
     "name of this node, unique in its cluster (host name)"},
    {"node.labels", SETTING_TEXT, offsetof(struct settings, node_labels), "",
     "labels of this node: a=b,c=d, or a mapping in the file"},
    {"node.dataDir", SETTING_TEXT, offsetof(struct settings, data_dir), "/var/lib/skein",
     "folder of the database"},
    {"node.workers", SETTING_COUNT, offsetof(struct settings, workers), "0",
     "data-plane threads; 0 is one per CPU"},
    {"node.drainDelay", SETTING_DURATION, offsetof(struct settings, drain_delay_ms), "0s",
     "at a stop: time between not ready and refusing connections"},
    {"node.drainTimeout", SETTING_DURATION, offsetof(struct settings, drain_timeout_ms), "30s",
     "at a stop: longest wait for requests in flight"},
    {"node.joinWait", SETTING_DURATION, offsetof(struct settings, join_wait_ms), "10s",
     "serve without having heard a peer after this long"},
    {"listen.http", SETTING_LIST, offsetof(struct settings, listen_http), "0.0.0.0:80",
     "addresses for plain HTTP"},
    {"listen.https", SETTING_LIST, offsetof(struct settings, listen_https), "",
     "addresses for HTTPS and TLS that is passed through"},
    {"listen.tcp", SETTING_LIST, offsetof(struct settings, listen_tcp), "0.0.0.0",
     "IP addresses on which ports of TcpRoutes open; none: they are not served here"},
    {"listen.proxyProtocol.trusted", SETTING_LIST, offsetof(struct settings, proxy_trusted), "",
     "networks whose connections begin with a PROXY protocol header"},
    {"listen.maxConnections", SETTING_COUNT64, offsetof(struct settings, connections_max), "0",
     "client connections of the node; 0 follows the file limit"},
    {"cluster.bind", SETTING_TEXT, offsetof(struct settings, cluster_bind), "0.0.0.0:7946",
     "address for gossip, UDP and TCP"},
    {"cluster.advertise", SETTING_TEXT, offsetof(struct settings, cluster_advertise), "",
     "address that peers use; as bound when empty"},
    {"cluster.join", SETTING_LIST, offsetof(struct settings, cluster_join), "",
     "peers to ask, address:port or name:port; none makes the first node"},
    {"cluster.keyFile", SETTING_TEXT, offsetof(struct settings, cluster_key_file),
     "/etc/skein/cluster.key", "file of the cluster key (skeinctl keygen)"},
    {"admin.unix", SETTING_TEXT, offsetof(struct settings, admin_unix), "/run/skein/admin.sock",
     "unix socket of the admin API; empty is none"},
    {"admin.listen", SETTING_TEXT, offsetof(struct settings, admin_listen), "",
     "address of the admin API, loopback unless there is TLS; empty is none"},
    {"admin.tls.certificate", SETTING_TEXT, offsetof(struct settings, admin_tls_certificate), "",
     "PEM file of the admin API's chain; read again when it changes"},
    {"admin.tls.key", SETTING_TEXT, offsetof(struct settings, admin_tls_key), "",
     "PEM file of its key"},
    {"admin.tls.selfSigned", SETTING_TEXT, offsetof(struct settings, admin_tls_self_signed),
     "false", "true: a certificate made at the first start, kept in node.dataDir"},
    {"admin.tls.clientCa", SETTING_TEXT, offsetof(struct settings, admin_tls_client_ca), "",
     "PEM file of authorities: their certificates are credentials"},
    {"admin.tls.clientRole", SETTING_TEXT, offsetof(struct settings, admin_tls_client_role),
     "viewer", "what these may: viewer, editor or admin"},
    {"tls.keyLog", SETTING_TEXT, offsetof(struct settings, tls_key_log), "",
     "for debugging: secrets of TLS sessions are appended to this file (NSS key log)"},
    {"log.level", SETTING_TEXT, offsetof(struct settings, log_level), "info",
     "debug, info, warn or error"},
    {"log.format", SETTING_TEXT, offsetof(struct settings, log_format), "json", "json or text"},
    {"log.access", SETTING_TEXT, offsetof(struct settings, log_access), "off",
     "access log: stdout, off or a path"},
    {"log.accessFormat", SETTING_TEXT, offsetof(struct settings, log_access_format), "json",
     "json or combined"},
};

static void *field(struct settings *settings, const struct setting *setting)
{
    return (char *)settings + setting->offset;
}

static void list_clear(struct text_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        MEM_FREE(list->items[i]);
    }
    list->count = 0;
}

static int list_add(struct text_list *list, const char *text, size_t len, const char *where,
                    struct err_info *err)
{
    if (list->count == SETTINGS_LIST_MAX) {
        return err_set(err, RC_TOO_BIG, "%s: more than %d elements", where, SETTINGS_LIST_MAX);
    }
    list->items[list->count++] = mem_strndup(text, len);
    return RC_OK;
}

static int assign_list(struct text_list *list, const char *text, const char *where,
                       struct err_info *err)
{
    list_clear(list);
    while (*text != '\0') {
        size_t len = strcspn(text, ",");
        if (len > 0) {
            int rc = list_add(list, text, len, where, err);
            if (rc != RC_OK) {
                return rc;
            }
        }
        text += len + (text[len] == ',');
    }
    return RC_OK;
}

static int parse_count(const char *text, uint64_t max, uint64_t *ret_count, const char **ret_rest)
{
    if (!isdigit((unsigned char)*text)) {
        return RC_INVALID;
    }
    errno = 0;
    char *end = NULL;
    unsigned long long count = strtoull(text, &end, 10);
    if (errno != 0 || count > max) {
        return RC_INVALID;
    }
    *ret_count = count;
    *ret_rest = end;
    return RC_OK;
}

static int parse_duration(const char *text, uint32_t *ret_ms)
{
    static const struct {
        const char *unit;
        uint64_t ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};
    uint64_t count = 0;
    const char *unit = NULL;
    if (parse_count(text, UINT32_MAX, &count, &unit) != RC_OK) {
        return RC_INVALID;
    }
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        if (strcmp(unit, units[i].unit) == 0 && count * units[i].ms <= UINT32_MAX) {
            *ret_ms = (uint32_t)(count * units[i].ms);
            return RC_OK;
        }
    }
    return RC_INVALID;
}

/* `where` names setting and source for the message, e.g. "node.workers (skein.yaml:4)". */
static int assign(struct settings *settings, const struct setting *setting, const char *text,
                  const char *where, struct err_info *err)
{
    void *at = field(settings, setting);
    uint64_t count = 0;
    const char *rest = "";
    switch (setting->type) {
    case SETTING_TEXT:
        mem_free(*(char **)at);
        *(char **)at = mem_strdup(text);
        return RC_OK;
    case SETTING_COUNT:
        if (parse_count(text, UINT32_MAX, &count, &rest) != RC_OK || *rest != '\0') {
            return err_set(err, RC_INVALID, "%s: \"%.80s\" is not a whole number", where, text);
        }
        *(uint32_t *)at = (uint32_t)count;
        return RC_OK;
    case SETTING_COUNT64:
        if (parse_count(text, UINT64_MAX, &count, &rest) != RC_OK || *rest != '\0') {
            return err_set(err, RC_INVALID, "%s: \"%.80s\" is not a whole number", where, text);
        }
        *(uint64_t *)at = count;
        return RC_OK;
    case SETTING_DURATION:
        if (parse_duration(text, at) != RC_OK) {
            return err_set(err, RC_INVALID,
                           "%s: \"%.80s\" is not a duration; accepted are 500ms, 30s, 5m, 1h",
                           where, text);
        }
        return RC_OK;
    case SETTING_LIST:
        return assign_list(at, text, where, err);
    }
    UNREACHABLE("setting type");
}

static const struct setting *setting_find(const char *path, size_t len)
{
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        if (strlen(table[i].path) == len && memcmp(table[i].path, path, len) == 0) {
            return &table[i];
        }
    }
    return NULL;
}

/* "node.dataDir" -> "SKEIN_NODE_DATA_DIR" */
static void variable_name(const char *path, char *out, size_t size)
{
    size_t len = (size_t)snprintf(out, size, "SKEIN_");
    for (const char *p = path; *p != '\0' && len + 3 < size; p++) {
        if (*p == '.') {
            out[len++] = '_';
            continue;
        }
        if (isupper((unsigned char)*p)) {
            out[len++] = '_';
        }
        out[len++] = (char)toupper((unsigned char)*p);
    }
    out[len] = '\0';
}

static int load_environment(struct settings *settings, struct err_info *err)
{
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        char name[64];
        variable_name(table[i].path, name, sizeof(name));
        const char *text = getenv(name);
        if (text != NULL) {
            int rc = assign(settings, &table[i], text, name, err);
            if (rc != RC_OK) {
                return rc;
            }
        }
    }
    return RC_OK;
}

struct file_load {
    struct settings *settings;
    const char *file;
    bool seen[ARRAY_LEN(table)];
};

/* One scalar of the file; the elements of a sequence arrive one by one with their index. */
static int on_file_value(void *arg, const struct settings_file_value *value, struct err_info *err)
{
    struct file_load *load = arg;
    char where[512];
    (void)snprintf(where, sizeof(where), "%s:%zu: %s", load->file, value->line, value->path);
    const char *labels = "node.labels.";
    if (strncmp(value->path, labels, strlen(labels)) == 0 && value->index < 0) {
        char *old = load->settings->node_labels;
        load->settings->node_labels =
            mem_printf("%s%s%s=%s", old != NULL ? old : "", old != NULL && *old != '\0' ? "," : "",
                       value->path + strlen(labels), value->text);
        mem_free(old);
        return RC_OK;
    }
    const struct setting *setting = setting_find(value->path, strlen(value->path));
    if (setting == NULL) {
        return err_set(err, RC_INVALID, "%s is not a setting (skeind --help lists them)", where);
    }
    bool *seen = &load->seen[setting - table];
    if (*seen && value->index <= 0) {
        return err_set(err, RC_INVALID, "%s is given twice", where);
    }
    *seen = true;
    if (value->index == SETTINGS_FILE_PLAIN) {
        return assign(load->settings, setting, value->text, where, err);
    }
    if (setting->type != SETTING_LIST) {
        return err_set(err, RC_INVALID, "%s takes one value, not a list", where);
    }
    struct text_list *list = field(load->settings, setting);
    if (value->index <= 0) {
        list_clear(list);
    }
    if (value->index == SETTINGS_FILE_EMPTY_LIST) {
        return RC_OK;
    }
    return list_add(list, value->text, strlen(value->text), where, err);
}

/* --path VALUE, --path=VALUE; --config is read before the others. */
static int load_flags(int argc, char **argv, struct settings *settings, struct err_info *err)
{
    for (int i = 1; i < argc; i++) {
        const char *flag = argv[i];
        if (strncmp(flag, "--", 2) != 0) {
            return err_set(err, RC_INVALID, "\"%.80s\" is not a flag; skeind --help lists them",
                           flag);
        }
        flag += 2;
        size_t len = strcspn(flag, "=");
        if (strcmp(flag, "check") == 0) {
            settings->check_only = true;
            continue;
        }
        const struct setting *setting = setting_find(flag, len);
        bool is_config = len == strlen("config") && strncmp(flag, "config", len) == 0;
        if (setting == NULL && !is_config) {
            return err_set(err, RC_INVALID, "--%.80s is not a flag; skeind --help lists them",
                           flag);
        }
        const char *text = flag[len] == '=' ? flag + len + 1 : NULL;
        if (text == NULL) {
            if (i + 1 == argc) {
                return err_set(err, RC_INVALID, "--%.80s needs a value", flag);
            }
            text = argv[++i];
        }
        if (is_config) {
            continue;
        }
        char where[64];
        (void)snprintf(where, sizeof(where), "--%s", setting->path);
        int rc = assign(settings, setting, text, where, err);
        if (rc != RC_OK) {
            return rc;
        }
    }
    return RC_OK;
}

static const char *config_path(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--config") == 0 && i + 1 < argc) {
            return argv[i + 1];
        }
        if (strncmp(argv[i], "--config=", 9) == 0) {
            return argv[i] + 9;
        }
    }
    return getenv("SKEIN_CONFIG");
}

static int load_all(int argc, char **argv, struct settings *settings, struct err_info *err)
{
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        int rc = assign(settings, &table[i], table[i].standard, table[i].path, err);
        ASSERT(rc == RC_OK);
    }
    char host[256] = "";
    if (gethostname(host, sizeof(host) - 1) == 0) {
        mem_free(settings->node_name);
        settings->node_name = mem_strdup(host);
    }
    const char *path = config_path(argc, argv);
    if (path != NULL) {
        struct file_load load = {.settings = settings, .file = path};
        int rc = settings_file_read(path, on_file_value, &load, err);
        if (rc != RC_OK) {
            return rc;
        }
    }
    int rc = load_environment(settings, err);
    return rc != RC_OK ? rc : load_flags(argc, argv, settings, err);
}

int settings_load(int argc, char **argv, struct settings *ret_settings, struct err_info *err)
{
    struct settings settings = {0};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            settings.show_help = true;
        } else if (strcmp(argv[i], "--version") == 0) {
            settings.show_version = true;
        }
    }
    int rc = RC_OK;
    if (!settings.show_help && !settings.show_version) {
        rc = load_all(argc, argv, &settings, err);
    }
    if (rc != RC_OK) {
        settings_deinit(&settings);
        return rc;
    }
    *ret_settings = settings;
    return RC_OK;
}

void settings_deinit(struct settings *settings)
{
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        void *at = field(settings, &table[i]);
        if (table[i].type == SETTING_TEXT) {
            MEM_FREE(*(char **)at);
        } else if (table[i].type == SETTING_LIST) {
            list_clear(at);
        }
    }
}

char *settings_help(void)
{
    struct buf out;
    buf_init(&out, 1 << 16);
    (void)buf_puts(&out, "usage: skeind [--config FILE] [--SETTING VALUE ...]\n\n"
                         "  --config FILE   settings file (or SKEIN_CONFIG)\n"
                         "  --check         check the settings and exit\n"
                         "  --version       print the version and exit\n"
                         "  --help          this text\n\n"
                         "Settings, each as a flag, as a key in the file, and as a variable\n"
                         "(node.dataDir: --node.dataDir, SKEIN_NODE_DATA_DIR):\n\n");
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        (void)buf_printf(&out, "  %-28s %s [%s]\n", table[i].path, table[i].help,
                         table[i].standard);
    }
    ASSERT(!out.full);
    return buf_take(&out, NULL);
}
