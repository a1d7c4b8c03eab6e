/*
 * What the admin API shows over TLS: certificate and key from files, or one that signs itself, made
 * at the first start and kept in the data folder.
 *
 * The files are read again on SIGHUP, and when they have changed (looked at once a minute), so that
 * a renewed certificate needs no restart. What cannot be used then is told in the log, and the one
 * before stays. Thread: the control thread; reading blocks for a moment.
 */
#ifndef SKEIN_NODE_APP_ADMIN_TLS_H
#define SKEIN_NODE_APP_ADMIN_TLS_H

#include "admin/server/admin.h"
#include "node/app/settings.h"

enum { ADMIN_TLS_FILES = 3, ADMIN_TLS_LOOK_S = 60 };

/* Zeroed is fresh. */
struct admin_tls_watch {
    struct admin_tls_stamp {
        uint64_t inode;
        uint64_t size;
        uint64_t changed_ns;
    } stamps[ADMIN_TLS_FILES]; /* certificate, key, clientCa */
    uint32_t seconds;
};

/* settings->admin_tls_* say that there is TLS. The references in ret_tls are the caller's; free
 * with admin_tls_deinit. RC_INVALID, RC_IO: err names file and fault, never the key's text. */
MUST_CHECK int admin_tls_load(const struct settings *settings, struct admin_tls_watch *watch,
                              struct admin_tls *ret_tls, struct err_info *err);
void admin_tls_deinit(struct admin_tls *tls);

/* Whether a file is another than when it was loaded. Called every second, looks every minute. */
bool admin_tls_is_due(const struct settings *settings, struct admin_tls_watch *watch);

/* Load again and hand it to the server; says in the log what came of it. */
void admin_tls_reload(const struct settings *settings, struct admin_tls_watch *watch,
                      struct admin *admin);

#endif
