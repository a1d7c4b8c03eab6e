/*
 * The table of hosts: one writer, readers without locks, 100,000 entries and more.
 *
 * Open addressing over (hash, pointer) slots. A slot's hash is written once in the life of a table;
 * its pointer comes and goes. Changing or removing a host is one store; a table that fills up is
 * copied to a larger one, so the cost is amortised. Hashes are keyed, since clients choose what
 * they ask for.
 * Thread: writer is the control thread; readers are online workers (qsbr.h).
 */
#ifndef SKEIN_NODE_PROXY_HOSTS_H
#define SKEIN_NODE_PROXY_HOSTS_H

#include "node/proxy/rules.h"
#include "node/proxy/slab.h"

struct tcp_rule;

/* What clients meet that name the host in a ClientHello. */
struct host_tls {
    struct tcp_rule *passthrough; /* a reference: their bytes go on untouched; NULL: they do not */
    struct tls_cert *cert;        /* a reference; NULL: the default one */
    struct tls_policy *policy;    /* a reference; NULL: the default one */
    bool tickets_off;
};

/* One host with its rules; immutable once published. */
struct host {
    struct qsbr_node retired;
    struct refcnt refs; /* the table's, and one for each exchange under way */
    struct catalog *catalog;
    struct rules rules;
    struct host_tls *tls; /* NULL: it has no rule for TLS */
    uint64_t hash;
    bool wildcard; /* name begins with the dot then: ".example.com" */
    uint16_t name_len;
    char name[];
};

struct host_slot {
    _Atomic uint64_t hash; /* 0: never used, ends a search */
    _Atomic(struct host *) host;
};

struct host_table {
    struct qsbr_node retired;
    size_t mask;
    struct host_slot slots[];
};

struct hosts {
    _Atomic(struct host_table *) table;
    uint64_t key[2];
    size_t used; /* slots with a hash, empty ones included */
    size_t live;
    struct catalog *catalog;
    struct slab slab; /* hosts of ordinary length */
};

void hosts_init(struct hosts *hosts, struct catalog *catalog);
/* No reader is left. */
void hosts_deinit(struct hosts *hosts);

/* As proxy_host_set. Control thread. */
MUST_CHECK int hosts_set(struct hosts *hosts, const char *name, const struct proxy_rule *rules,
                         size_t count, const struct proxy_host_tls *tls, struct err_info *err);

/* Exact name first, then the wildcard for its parent; no fall-through. name: canonical, as
 * uri_host_canon gives it. The result is valid for this loop iteration; host_ref keeps it. */
struct host *hosts_find(const struct hosts *hosts, const char *name, size_t len);

void host_ref(struct host *host);
/* Any thread. */
void host_unref(struct host *host);

#endif
