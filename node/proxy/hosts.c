/*
 * The host table; see hosts.h.
 */
#include "node/proxy/hosts.h"

#include "node/base/hash.h"
#include "node/base/mem.h"
#include "node/http/uri.h"
#include "node/proxy/catalog.h"
#include "node/proxy/tcp_port.h"

enum { TABLE_SLOTS_MIN = 64, HOST_BYTES = 192 };

static struct host_table *table_new(size_t slots)
{
    struct host_table *table =
        mem_new(sizeof(struct host_table) + slots * sizeof(struct host_slot));
    table->mask = slots - 1;
    return table;
}

static void table_release(struct qsbr_node *node)
{
    mem_free(CONTAINER_OF(node, struct host_table, retired));
}

void hosts_init(struct hosts *hosts, struct catalog *catalog)
{
    *hosts = (struct hosts){.catalog = catalog};
    slab_init(&hosts->slab, HOST_BYTES);
    hosts->key[0] = rng_secret_u64();
    hosts->key[1] = rng_secret_u64();
    atomic_init(&hosts->table, table_new(TABLE_SLOTS_MIN));
}

static struct host *host_new(struct hosts *hosts, size_t name_len)
{
    size_t size = sizeof(struct host) + name_len + 1;
    return size <= HOST_BYTES ? slab_take(&hosts->slab) : mem_lines(size);
}

static void host_drop(struct hosts *hosts, struct host *host)
{
    if (sizeof(*host) + host->name_len + 1 <= HOST_BYTES) {
        slab_put(&hosts->slab, host);
    } else {
        mem_free(host);
    }
}

static void tls_drop(struct host_tls *tls)
{
    if (tls != NULL) {
        tcp_rule_unref(tls->passthrough);
        tls_cert_unref(tls->cert);
        tls_policy_unref(tls->policy);
        mem_free(tls);
    }
}

/* NULL when no rule is for TLS clients. The first passthrough rule has the host. */
static int tls_make(struct host *host, const struct proxy_rule *rules, size_t count,
                    const struct proxy_host_tls *from, struct err_info *err)
{
    const struct proxy_rule *through = NULL;
    bool wanted = false;
    for (size_t i = 0; i < count; i++) {
        wanted = wanted || rules[i].tls.termination != PROXY_PLAIN;
        if (through == NULL && rules[i].tls.termination == PROXY_PASSTHROUGH) {
            through = &rules[i];
        }
    }
    if (!wanted) {
        return RC_OK;
    }
    struct host_tls *tls = mem_new(sizeof(*tls));
    if (through != NULL) {
        const struct proxy_tcp tcp = {.route = through->route,
                                      .targets = through->targets,
                                      .target_count = through->target_count,
                                      .timeouts = through->timeouts,
                                      .policy = through->policy};
        int rc = tcp_rule_new(host->catalog, &tcp, &tls->passthrough, err);
        if (rc != RC_OK) {
            mem_free(tls);
            return rc;
        }
    }
    if (from != NULL) {
        tls->tickets_off = from->tickets_off;
        tls->cert = from->cert;
        tls->policy = from->policy;
        if (tls->cert != NULL) {
            tls_cert_ref(tls->cert);
        }
        if (tls->policy != NULL) {
            tls_policy_ref(tls->policy);
        }
    }
    host->tls = tls;
    return RC_OK;
}

static void host_free(struct qsbr_node *node)
{
    struct host *host = CONTAINER_OF(node, struct host, retired);
    struct hosts *hosts = &host->catalog->hosts;
    rules_deinit(&host->rules, host->catalog);
    tls_drop(host->tls);
    host_drop(hosts, host);
}

void host_ref(struct host *host)
{
    refcnt_get(&host->refs);
}

void host_unref(struct host *host)
{
    if (host != NULL && refcnt_put(&host->refs)) {
        qsbr_post_mt(&host->catalog->qsbr, &host->retired, host_free);
    }
}

/* The table's reference goes when no worker can find the host any more. */
static void host_unpublished(struct qsbr_node *node)
{
    host_unref(CONTAINER_OF(node, struct host, retired));
}

void hosts_deinit(struct hosts *hosts)
{
    struct host_table *table = atomic_load_explicit(&hosts->table, memory_order_relaxed);
    for (size_t i = 0; i <= table->mask; i++) {
        host_unref(atomic_load_explicit(&table->slots[i].host, memory_order_relaxed));
    }
    mem_free(table);
}

/* Wildcards hash under another key, so that "*.x" needs no text of its own. 0 means "no entry". */
static uint64_t name_hash(const struct hosts *hosts, bool wildcard, const char *name, size_t len)
{
    uint64_t hash = hash_fold64(hosts->key, name, len) ^ (wildcard ? hosts->key[1] : 0);
    return hash != 0 ? hash : 1;
}

static bool is_host(const struct host *host, bool wildcard, const char *name, size_t len)
{
    return host->wildcard == wildcard && host->name_len == len &&
           memcmp(host->name, name, len) == 0;
}

static struct host *table_find(const struct hosts *hosts, bool wildcard, const char *name,
                               size_t len)
{
    const struct host_table *table = atomic_load_explicit(&hosts->table, memory_order_seq_cst);
    uint64_t hash = name_hash(hosts, wildcard, name, len);
    for (size_t i = hash & table->mask;; i = (i + 1) & table->mask) {
        const struct host_slot *slot = &table->slots[i];
        uint64_t slot_hash = atomic_load_explicit(&slot->hash, memory_order_acquire);
        if (slot_hash == 0) {
            return NULL;
        }
        if (slot_hash != hash) {
            continue;
        }
        struct host *host = atomic_load_explicit(&slot->host, memory_order_seq_cst);
        if (host != NULL && is_host(host, wildcard, name, len)) {
            return host;
        }
    }
}

struct host *hosts_find(const struct hosts *hosts, const char *name, size_t len)
{
    struct host *host = table_find(hosts, false, name, len);
    if (host != NULL || len == 0) {
        return host;
    }
    const char *dot = memchr(name, '.', len);
    if (dot == NULL || dot == name) {
        return NULL;
    }
    return table_find(hosts, true, dot, len - (size_t)(dot - name));
}

/* The slot that holds this host, or the one to put it into. There is always a free one. */
static struct host_slot *table_slot(struct host_table *table, uint64_t hash, bool wildcard,
                                    const char *name, size_t len)
{
    struct host_slot *vacant = NULL; /* its host was removed, and it has this very hash */
    for (size_t i = hash & table->mask;; i = (i + 1) & table->mask) {
        struct host_slot *slot = &table->slots[i];
        uint64_t slot_hash = atomic_load_explicit(&slot->hash, memory_order_relaxed);
        if (slot_hash == 0) {
            return vacant != NULL ? vacant : slot;
        }
        if (slot_hash != hash) {
            continue;
        }
        const struct host *host = atomic_load_explicit(&slot->host, memory_order_relaxed);
        if (host == NULL) {
            vacant = vacant != NULL ? vacant : slot;
        } else if (is_host(host, wildcard, name, len)) {
            return slot;
        }
    }
}

/* Copy what is live into a table that is at most a third full. */
static void table_grow(struct hosts *hosts)
{
    struct host_table *old = atomic_load_explicit(&hosts->table, memory_order_relaxed);
    size_t slots = TABLE_SLOTS_MIN;
    while (slots < hosts->live * 3) {
        slots *= 2;
    }
    struct host_table *table = table_new(slots);
    for (size_t i = 0; i <= old->mask; i++) {
        struct host *host = atomic_load_explicit(&old->slots[i].host, memory_order_relaxed);
        if (host == NULL) {
            continue;
        }
        size_t at = host->hash & table->mask;
        while (atomic_load_explicit(&table->slots[at].hash, memory_order_relaxed) != 0) {
            at = (at + 1) & table->mask;
        }
        atomic_store_explicit(&table->slots[at].host, host, memory_order_relaxed);
        atomic_store_explicit(&table->slots[at].hash, host->hash, memory_order_relaxed);
    }
    hosts->used = hosts->live;
    atomic_store_explicit(&hosts->table, table, memory_order_seq_cst);
    qsbr_defer(&hosts->catalog->qsbr, &old->retired, table_release);
}

/* Put a host (or nothing) into its slot; the one before it is retired. */
static void slot_set(struct hosts *hosts, struct host_slot *slot, uint64_t hash, struct host *host)
{
    struct host *old = atomic_load_explicit(&slot->host, memory_order_relaxed);
    atomic_store_explicit(&slot->host, host, memory_order_seq_cst);
    if (atomic_load_explicit(&slot->hash, memory_order_relaxed) == 0) {
        atomic_store_explicit(&slot->hash, hash, memory_order_release);
        hosts->used++;
    }
    hosts->live += host != NULL;
    if (old != NULL) {
        hosts->live--;
        qsbr_defer(&hosts->catalog->qsbr, &old->retired, host_unpublished);
    }
}

/* "*.example.com" or a name; where the part that is compared begins. */
static int check_name(const char *name, bool *ret_wildcard, const char **ret_part,
                      struct err_info *err)
{
    bool wildcard = strncmp(name, "*.", 2) == 0;
    const char *plain = wildcard ? name + 2 : name;
    char canonical[URI_HOST_MAX + 1];
    struct uri_host parts;
    if (uri_host_canon(plain, strlen(plain), canonical, &parts) != RC_OK ||
        strcmp(canonical, plain) != 0 || (wildcard && parts.is_ip)) {
        return err_set(err, RC_INVALID,
                       "host \"%s\" is not canonical: lower-case labels, no port, no trailing "
                       "dot, \"*.\" in front for one label",
                       name);
    }
    *ret_wildcard = wildcard;
    *ret_part = wildcard ? name + 1 : name;
    return RC_OK;
}

int hosts_set(struct hosts *hosts, const char *name, const struct proxy_rule *rules, size_t count,
              const struct proxy_host_tls *tls, struct err_info *err)
{
    bool wildcard = false;
    const char *part = name;
    int rc = check_name(name, &wildcard, &part, err);
    if (rc != RC_OK) {
        return rc;
    }
    size_t len = strlen(part);
    uint64_t hash = name_hash(hosts, wildcard, part, len);
    struct host *host = NULL;
    if (count != 0) {
        host = host_new(hosts, len);
        host->catalog = hosts->catalog;
        host->hash = hash;
        host->wildcard = wildcard;
        host->name_len = (uint16_t)len;
        memcpy(host->name, part, len);
        refcnt_init(&host->refs);
        rc = rules_init(&host->rules, hosts->catalog, rules, count, err);
        if (rc == RC_OK) {
            rc = tls_make(host, rules, count, tls, err);
            if (rc != RC_OK) {
                rules_deinit(&host->rules, hosts->catalog);
            }
        }
        if (rc != RC_OK) {
            host_drop(hosts, host);
            return err_prefix(err, rc, "host %s", name);
        }
    }
    struct host_table *table = atomic_load_explicit(&hosts->table, memory_order_relaxed);
    struct host_slot *slot = table_slot(table, hash, wildcard, part, len);
    if (host == NULL && atomic_load_explicit(&slot->host, memory_order_relaxed) == NULL) {
        return RC_OK; /* there is none to remove */
    }
    slot_set(hosts, slot, hash, host);
    if (hosts->used * 3 > (table->mask + 1) * 2) {
        table_grow(hosts);
    }
    return RC_OK;
}
