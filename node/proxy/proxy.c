/*
 * The facade: start and end of the data plane, and its configuration; see proxy.h.
 */
#include "node/proxy/proxy.h"

#include "node/base/log.h"
#include "node/base/mem.h"
#include "node/base/timesrc.h"
#include "node/proxy/access_log.h"
#include "node/proxy/proxy_int.h"
#include "node/proxy/stats_text.h"
#include "node/proxy/tcp_port.h"
#include "node/tls/tls_lib.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    FILES_RESERVED = 256, /* for everything but traffic */
    FILES_WANTED = 1 << 20,
    FILES_MIN = 40,
};

/* Descriptors for traffic. Raises the limit to what the system allows. */
static uint64_t files_for_traffic(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return FILES_MIN;
    }
    if (limit.rlim_cur < limit.rlim_max) {
        struct rlimit raised = {.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};
        if (raised.rlim_cur > FILES_WANTED) {
            raised.rlim_cur = MAX(limit.rlim_cur, (rlim_t)FILES_WANTED);
        }
        if (setrlimit(RLIMIT_NOFILE, &raised) == 0) {
            limit = raised;
        }
    }
    uint64_t files = MIN((uint64_t)limit.rlim_cur, (uint64_t)FILES_WANTED);
    return files > FILES_RESERVED + FILES_MIN ? files - FILES_RESERVED : FILES_MIN;
}

static size_t worker_count_of(const struct proxy_config *config)
{
    size_t count = config->workers;
    if (count == 0) {
        long cpus = sysconf(_SC_NPROCESSORS_ONLN);
        count = cpus > 0 ? (size_t)cpus : 1;
    }
    return MIN(count, (size_t)PROXY_WORKERS_MAX);
}

/* Compiles what defaults borrow; RC_INVALID. */
static int settings_new(const struct proxy_defaults *defaults, struct catalog *catalog,
                        struct settings **ret_settings, struct err_info *err)
{
    struct policy_base *base = NULL;
    int rc = policy_base_new(defaults, catalog, &base, err);
    if (rc != RC_OK) {
        return rc;
    }
    struct settings *settings = mem_new(sizeof(*settings));
    settings->defaults = *defaults;
    settings->base = base;
    settings->captures = captures_new(&defaults->captures);
    settings->defaults.trusted_proxies = (struct proxy_texts){0};
    settings->defaults.unique_id_header = settings->defaults.unique_id_format = NULL;
    settings->defaults.request = settings->defaults.response = (struct proxy_edits){0};
    settings->defaults.hsts = NULL;
    settings->defaults.error_pages = (struct proxy_error_pages){0};
    settings->defaults.captures = (struct proxy_captures){0};
    *ret_settings = settings;
    return RC_OK;
}

static void settings_free(struct settings *settings)
{
    if (settings != NULL) {
        policy_base_unref(settings->base);
        mem_free(settings->captures);
        mem_free(settings);
    }
}

static void settings_release(struct qsbr_node *node)
{
    settings_free(CONTAINER_OF(node, struct settings, retired));
}

/* What the node's settings say, and the cluster's over it. */
static void follow_access(struct proxy *proxy, const struct proxy_defaults *defaults)
{
    const struct access_options options = {
        .on = defaults->access == PROXY_ACCESS_UNSET ? proxy->access_on
                                                     : defaults->access == PROXY_ACCESS_ON,
        .combined = defaults->access_format == PROXY_ACCESS_FORMAT_UNSET
                        ? proxy->access_combined
                        : defaults->access_format == PROXY_ACCESS_COMBINED,
        .empty_requests = defaults->access_empty_requests,
    };
    access_log_set(proxy->access_log, &options);
}

const struct proxy_defaults *proxy_defaults_now(struct proxy *proxy)
{
    return &atomic_load_explicit(&proxy->settings, memory_order_seq_cst)->defaults;
}

static void on_endpoint_gone(void *ctx, struct endpoint *endpoint)
{
    struct proxy *proxy = ctx;
    for (size_t i = 0; i < proxy->worker_count; i++) {
        worker_post_mt(proxy->workers[i], WORKER_MAIL_ENDPOINT_GONE, endpoint);
    }
}

/* One listening socket per worker and address. */
static int listen_all(struct proxy *proxy, const struct proxy_config *config, size_t workers,
                      int *fds, struct err_info *err)
{
    size_t count = config->http_count + config->https_count;
    for (size_t i = 0; i < count; i++) {
        struct addr addr =
            i < config->http_count ? config->http[i] : config->https[i - config->http_count];
        if (addr_port(&addr) != 0) {
            int rc = acceptor_probe(&addr, err);
            if (rc != RC_OK) {
                return rc;
            }
        }
        for (size_t j = 0; j < workers; j++) {
            int rc = acceptor_listen(&addr, &fds[j * count + i], &addr, err);
            if (rc != RC_OK) {
                return rc;
            }
        }
        proxy->listen_addrs[i] = addr;
    }
    return RC_OK;
}

/* What the handshakes of a worker seal tickets with. */
static const struct ticket_ring *ring_now(void *arg)
{
    struct worker *worker = arg;
    worker_online(worker);
    const struct tls_ring *box =
        atomic_load_explicit(&worker->proxy->tickets, memory_order_seq_cst);
    return box != NULL ? box->ring : NULL;
}

/* Also for TLS towards endpoints. */
static struct tls_lib *make_tls_lib(struct proxy *proxy, struct worker *worker)
{
    const struct tls_lib_config config = {
        .tickets = ring_now, .arg = worker, .keylog_fd = proxy->key_log};
    struct tls_lib *lib = NULL;
    struct err_info err = {0};
    if (tls_lib_new(&config, &lib, &err) != RC_OK) {
        log_error("TLS is not available", "reason=\"%s\"", err.text);
    }
    return lib;
}

static void worker_make(struct proxy *proxy, size_t idx, uint64_t clients_max, uint64_t idle_max,
                        const int *fds)
{
    struct worker *worker = mem_lines(sizeof(*worker));
    worker->proxy = proxy;
    worker->catalog = &proxy->catalog;
    worker->idx = idx;
    worker->clients_max = clients_max;
    worker->idle_max = idle_max;
    worker->node_name = proxy->node_name;
    worker->access = access_log_ring(proxy->access_log, idx);
    worker->acceptor_count = proxy->listen_count;
    worker->acceptors = mem_array(proxy->listen_count, sizeof(struct acceptor));
    for (size_t i = 0; i < proxy->listen_count; i++) {
        worker->acceptors[i].fd = fds[idx * proxy->listen_count + i];
        worker->acceptors[i].port = addr_port(&proxy->listen_addrs[i]);
        worker->acceptors[i].tls = i >= proxy->http_count;
        (void)addr_format(&proxy->listen_addrs[i], worker->acceptors[i].text);
    }
    worker_init(worker);
    worker->tls = make_tls_lib(proxy, worker);
    proxy->workers[proxy->worker_count++] = worker;
}

static void tls_settings_free(struct tls_settings *tls)
{
    if (tls != NULL) {
        tls_cert_unref(tls->how.cert);
        tls_policy_unref(tls->how.policy);
        mem_free(tls);
    }
}

static void tls_ring_free(struct tls_ring *box)
{
    if (box != NULL) {
        ticket_ring_unref(box->ring);
        mem_free(box);
    }
}

/* Everything but the running threads. */
static void proxy_discard(struct proxy *proxy)
{
    for (size_t i = 0; i < proxy->worker_count; i++) {
        worker_deinit(proxy->workers[i]);
        mem_free(proxy->workers[i]->acceptors);
        mem_free(proxy->workers[i]);
    }
    proxy->worker_count = 0;
    settings_free(atomic_load_explicit(&proxy->settings, memory_order_relaxed));
    tls_settings_free(atomic_load_explicit(&proxy->tls, memory_order_relaxed));
    tls_ring_free(atomic_load_explicit(&proxy->tickets, memory_order_relaxed));
    if (proxy->key_log >= 0) {
        (void)close(proxy->key_log); /* a help for debugging */
    }
    tcp_ports_deinit(proxy);
    catalog_deinit(&proxy->catalog);
    cidr_set_free(proxy->proxy_trusted);
    mem_free(proxy->tcp_addrs);
    access_log_close(proxy->access_log);
    mem_free(proxy->workers);
    mem_free(proxy->listen_addrs);
    mem_free(proxy->node_name);
    mem_free(proxy);
}

static void close_all(const int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (fds[i] >= 0) {
            (void)close(fds[i]); /* listened for nobody yet */
        }
    }
}

int proxy_serve(struct proxy *proxy, struct err_info *err)
{
    ASSERT(!proxy->running);
    for (size_t i = 0; i < proxy->worker_count; i++) {
        if (worker_start(proxy->workers[i]) == RC_OK) {
            continue;
        }
        for (size_t j = 0; j < i; j++) {
            worker_post_mt(proxy->workers[j], WORKER_MAIL_STOP, NULL);
            worker_join(proxy->workers[j]);
        }
        return err_set(err, RC_IO, "no thread for worker %zu", i);
    }
    proxy->running = true;
    return RC_OK;
}

/* For debugging only, so it is told. */
static int open_key_log(struct proxy *proxy, const char *path, struct err_info *err)
{
    if (path == NULL || path[0] == '\0') {
        return RC_OK;
    }
    proxy->key_log = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (proxy->key_log < 0) {
        return err_set(err, RC_IO, "cannot open the TLS key log %s: %s", path, strerror(errno));
    }
    log_warn("TLS secrets are written to a file: who has it reads the traffic", "path=%s", path);
    return RC_OK;
}

int proxy_start(const struct proxy_config *config, struct proxy **ret_proxy, struct err_info *err)
{
    size_t workers = worker_count_of(config);
    /* Each client may need a connection to an endpoint, and half as many may be pooled. */
    uint64_t files = files_for_traffic();
    uint64_t clients_max = files * 2 / 5;
    if (config->connections_max != 0) {
        clients_max = MIN(clients_max, config->connections_max);
    }
    struct proxy *proxy = mem_new(sizeof(*proxy));
    catalog_init(&proxy->catalog, workers);
    proxy->catalog.on_gone = on_endpoint_gone;
    proxy->catalog.ctx = proxy;
    struct settings *settings = NULL;
    int rc = settings_new(&config->defaults, &proxy->catalog, &settings, err);
    if (rc != RC_OK) {
        catalog_deinit(&proxy->catalog);
        mem_free(proxy);
        return rc;
    }
    atomic_init(&proxy->settings, settings);
    proxy->node_name = mem_strdup(config->node_name != NULL ? config->node_name : "");
    proxy->workers = mem_array(workers, sizeof(*proxy->workers));
    proxy->listen_count = config->http_count + config->https_count;
    proxy->http_count = config->http_count;
    proxy->listen_addrs = mem_array(proxy->listen_count, sizeof(*proxy->listen_addrs));
    proxy->key_log = -1;
    proxy->access_on = config->access_log != NULL && strcmp(config->access_log, "off") != 0;
    proxy->access_combined = config->access_combined;

    proxy->tcp_count = config->tcp_count;
    proxy->tcp_addrs = mem_array(config->tcp_count, sizeof(*proxy->tcp_addrs));
    for (size_t i = 0; i < config->tcp_count; i++) {
        proxy->tcp_addrs[i] = config->tcp[i];
    }

    size_t fd_count = workers * proxy->listen_count;
    int *fds = mem_array(fd_count, sizeof(*fds));
    memset(fds, -1, fd_count * sizeof(*fds));
    if (config->proxy_trusted.count != 0) {
        rc = cidr_set_new(config->proxy_trusted.items, config->proxy_trusted.count,
                          &proxy->proxy_trusted, err);
    }
    rc = rc != RC_OK ? rc : open_key_log(proxy, config->tls_key_log, err);
    rc = rc != RC_OK ? rc : listen_all(proxy, config, workers, fds, err);
    if (rc == RC_OK) {
        rc = access_log_open(config->access_log, config->node_name, workers, &proxy->access_log,
                             err);
    }
    if (rc != RC_OK) {
        close_all(fds, fd_count);
        goto out;
    }
    proxy->https_port =
        config->https_count != 0 ? addr_port(&proxy->listen_addrs[config->http_count]) : 0;
    follow_access(proxy, &config->defaults);
    (void)signal(SIGPIPE, SIG_IGN); /* libuv writes without MSG_NOSIGNAL; errors tell */
    for (size_t i = 0; i < workers; i++) {
        worker_make(proxy, i, MAX(clients_max / workers, (uint64_t)1), files / 5 / workers, fds);
    }
out:
    mem_free(fds);
    if (rc != RC_OK) {
        proxy_discard(proxy);
        return rc;
    }
    *ret_proxy = proxy;
    return RC_OK;
}

void proxy_listen_addr(const struct proxy *proxy, size_t idx, struct addr *ret_addr)
{
    ASSERT(idx < proxy->listen_count);
    *ret_addr = proxy->listen_addrs[idx];
}

void proxy_set_defaults(struct proxy *proxy, const struct proxy_defaults *defaults)
{
    struct settings *settings = NULL;
    struct err_info err = {0};
    if (settings_new(defaults, &proxy->catalog, &settings, &err) != RC_OK) {
        log_error("the settings before stay in force", "reason=\"%s\"", err.text);
        return;
    }
    struct settings *old =
        atomic_exchange_explicit(&proxy->settings, settings, memory_order_seq_cst);
    qsbr_defer(&proxy->catalog.qsbr, &old->retired, settings_release);
    follow_access(proxy, defaults);
    proxy_reclaim(proxy);
}

static void tls_settings_release(struct qsbr_node *node)
{
    tls_settings_free(CONTAINER_OF(node, struct tls_settings, retired));
}

void proxy_set_tls(struct proxy *proxy, const struct proxy_tls *how)
{
    struct tls_settings *tls = mem_new(sizeof(*tls));
    tls->how = *how;
    if (how->cert != NULL) {
        tls_cert_ref(how->cert);
    }
    tls_policy_ref(how->policy);
    struct tls_settings *old = atomic_exchange_explicit(&proxy->tls, tls, memory_order_seq_cst);
    if (old != NULL) {
        qsbr_defer(&proxy->catalog.qsbr, &old->retired, tls_settings_release);
    }
    proxy_reclaim(proxy);
}

static void tls_ring_release(struct qsbr_node *node)
{
    tls_ring_free(CONTAINER_OF(node, struct tls_ring, retired));
}

void proxy_set_tickets(struct proxy *proxy, struct ticket_ring *ring)
{
    struct tls_ring *box = NULL;
    if (ring != NULL) {
        box = mem_new(sizeof(*box));
        box->ring = ring;
        ticket_ring_ref(ring);
    }
    struct tls_ring *old = atomic_exchange_explicit(&proxy->tickets, box, memory_order_seq_cst);
    if (old != NULL) {
        qsbr_defer(&proxy->catalog.qsbr, &old->retired, tls_ring_release);
    }
    proxy_reclaim(proxy);
}

struct backend *backend_new(struct proxy *proxy, const char *name)
{
    return backend_make(&proxy->catalog, name);
}

void backend_unref(struct proxy *proxy, struct backend *backend)
{
    backend_put(backend);
    proxy_reclaim(proxy);
}

int backend_set(struct proxy *proxy, struct backend *backend, const struct proxy_backend *policy,
                const struct proxy_endpoint *endpoints, size_t count, struct err_info *err)
{
    int rc = backend_replace(backend, policy, endpoints, count, err);
    proxy_reclaim(proxy);
    return rc;
}

void backend_health(struct proxy *proxy, struct backend *backend, const struct addr *addr,
                    enum proxy_health health)
{
    backend_set_health(backend, addr, health, time_mono_ms());
    proxy_reclaim(proxy);
}

int proxy_host_set(struct proxy *proxy, const char *host, const struct proxy_rule *rules,
                   size_t count, const struct proxy_host_tls *tls, struct err_info *err)
{
    int rc = hosts_set(&proxy->catalog.hosts, host, rules, count, tls, err);
    proxy_reclaim(proxy);
    return rc;
}

int proxy_tcp_set(struct proxy *proxy, uint16_t port, const struct proxy_tcp *tcp,
                  struct err_info *err)
{
    int rc = tcp_port_set(proxy, port, tcp, err);
    proxy_reclaim(proxy);
    return rc;
}

void proxy_tcp_remove(struct proxy *proxy, uint16_t port)
{
    tcp_port_remove(proxy, port);
    proxy_reclaim(proxy);
}

void proxy_drain(struct proxy *proxy)
{
    if (proxy->draining) {
        return;
    }
    proxy->draining = true;
    for (size_t i = 0; i < proxy->worker_count; i++) {
        worker_post_mt(proxy->workers[i], WORKER_MAIL_DRAIN, NULL);
    }
}

uint64_t proxy_connections(const struct proxy *proxy)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < proxy->worker_count; i++) {
        sum += counter_read(&proxy->workers[i]->stats.clients);
    }
    return sum;
}

void proxy_free(struct proxy *proxy)
{
    if (proxy == NULL) {
        return;
    }
    for (size_t i = 0; proxy->running && i < proxy->worker_count; i++) {
        worker_post_mt(proxy->workers[i], WORKER_MAIL_STOP, NULL);
    }
    for (size_t i = 0; proxy->running && i < proxy->worker_count; i++) {
        worker_join(proxy->workers[i]);
    }
    proxy_discard(proxy);
}

void proxy_reclaim(struct proxy *proxy)
{
    (void)qsbr_reclaim(&proxy->catalog.qsbr);
}

/* Of the listeners for HTTP; the port of a TCP route is known by its route. */
static void listener_metrics(const struct proxy *proxy, struct buf *out)
{
    static const struct {
        const char *metric;
        const char *type;
        const char *help;
        size_t offset;
    } rows[] = {
        {"skein_listener_connections_total", "counter", "Connections accepted by a listener",
         offsetof(struct acceptor, accepted)},
        {"skein_listener_connections", "gauge", "HTTP connections open now, by listener",
         offsetof(struct acceptor, open)},
        {"skein_listener_pauses_total", "counter",
         "Times that accepting paused because a connection or file limit was reached",
         offsetof(struct acceptor, paused_count)},
    };
    struct buf label;
    buf_init(&label, 256);
    for (size_t row = 0; row < ARRAY_LEN(rows); row++) {
        text_family(out, rows[row].metric, rows[row].type, rows[row].help);
        for (size_t i = 0; i < proxy->listen_count; i++) {
            uint64_t sum = 0;
            for (size_t j = 0; j < proxy->worker_count; j++) {
                const char *acceptor = (const char *)&proxy->workers[j]->acceptors[i];
                sum += counter_read((const void *)(acceptor + rows[row].offset));
            }
            buf_reset(&label);
            text_label(&label, "listener", proxy->workers[0]->acceptors[i].text);
            text_series(out, rows[row].metric, &label, "", sum);
        }
    }
    buf_deinit(&label);
}

void proxy_metrics(struct proxy *proxy, struct buf *out)
{
    struct stats **blocks = mem_array(proxy->worker_count, sizeof(*blocks));
    for (size_t i = 0; i < proxy->worker_count; i++) {
        blocks[i] = &proxy->workers[i]->stats;
    }
    stats_format(blocks, proxy->worker_count, out);
    mem_free(blocks);
    listener_metrics(proxy, out);
    access_log_metrics(proxy->access_log, out);
    catalog_metrics(&proxy->catalog, out);
}
