/*
 * Settings of one node: file, environment and flags, one row per setting in one table.
 *
 * A flag wins over a variable, a variable over the file, the file over the default. "node.dataDir"
 * is the key in the file, the flag --node.dataDir and the variable SKEIN_NODE_DATA_DIR. An unknown
 * key is an error that names its line.
 */
#ifndef SKEIN_NODE_APP_SETTINGS_H
#define SKEIN_NODE_APP_SETTINGS_H

#include "node/base/addr.h"
#include "node/base/errors.h"
#include "node/base/log.h"

enum {
    SETTINGS_LIST_MAX = 64,          /* elements of a list */
    SETTINGS_FILE_MAX = 1024 * 1024, /* bytes of the file */
    SETTINGS_LABELS_TEXT_MAX = 4096, /* "a=b,c=d" */
};

struct text_list {
    char *items[SETTINGS_LIST_MAX]; /* owned */
    size_t count;
};

/* Every pointer is owned and never NULL once settings_load succeeded ("" is unset). */
struct settings {
    char *node_name;
    char *node_labels; /* "zone=a,rack=7" */
    char *data_dir;
    uint32_t workers;          /* 0: one per CPU */
    uint32_t drain_delay_ms;   /* not ready, but still accepting, before a stop */
    uint32_t drain_timeout_ms; /* for what is in flight at a stop */
    uint32_t join_wait_ms;     /* without an answer of a peer, ready anyway after this */

    struct text_list listen_http;
    struct text_list listen_https;  /* where clients speak TLS */
    char *tls_key_log;              /* file for debugging; "": none */
    struct text_list listen_tcp;    /* IP addresses on which ports of TcpRoutes open */
    struct text_list proxy_trusted; /* networks whose connections begin with a PROXY header */
    uint64_t connections_max;       /* client connections of the node; 0: from the file limit */

    char *cluster_bind;
    char *cluster_advertise; /* "": as bound */
    struct text_list cluster_join;
    char *cluster_key_file;

    char *admin_unix;
    char *admin_listen;
    char *admin_tls_certificate; /* PEM file; "": see self_signed */
    char *admin_tls_key;
    char *admin_tls_self_signed; /* "true" or "false" */
    char *admin_tls_client_ca;   /* "": clients show no certificates */
    char *admin_tls_client_role; /* "viewer", "editor", "admin" */

    char *log_level;
    char *log_format;
    char *log_access;
    char *log_access_format;

    bool check_only;   /* --check */
    bool show_version; /* --version */
    bool show_help;    /* --help */
};

/* What the strings mean. */
struct settings_resolved {
    struct addr http[SETTINGS_LIST_MAX];
    struct addr https[SETTINGS_LIST_MAX];
    struct addr tcp[SETTINGS_LIST_MAX]; /* port 0 */
    struct addr cluster_bind;
    struct addr cluster_advertise; /* never the any-address */
    struct addr cluster_join[SETTINGS_LIST_MAX];
    size_t cluster_join_count; /* names that did not resolve are left out with a warning */
    struct addr admin_listen;  /* unset: none */
    bool admin_tls;            /* admin_listen speaks TLS */
    enum log_level log_level;
    bool log_json;
    bool access_combined; /* the access log, instead of JSON */
};

/*
 * Read flags, environment and the file that --config or SKEIN_CONFIG names. Nothing is left to free
 * on failure. RC_INVALID: a setting is wrong; RC_IO: the file cannot be read. The text says which
 * setting, where it came from and what would be accepted.
 */
MUST_CHECK int settings_load(int argc, char **argv, struct settings *ret_settings,
                             struct err_info *err);

/* Parse addresses, resolve names of peers (blocks; start-up only), check enumerations. */
MUST_CHECK int settings_resolve(const struct settings *settings,
                                struct settings_resolved *ret_resolved, struct err_info *err);

void settings_deinit(struct settings *settings);

/* The table as text for --help; to be freed with mem_free. */
char *settings_help(void);

#endif
