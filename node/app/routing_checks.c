/*
 * Active checks of endpoints: who is looked at, and what becomes of a vote.
 *
 * Looked at is every address that a backend offers, if the backend has a check and a route mentions
 * it; draining ones and those of weight 0 too (holders of their cookie still go there), disabled
 * ones never. An address in two backends is looked at for each, as each asks.
 *
 *   prober: observations -> this node's vote --> decide() --> verdict -> data plane, log, counts
 *
 * decide() is where votes of other nodes will be heard; nothing else here knows where a verdict
 * comes from.
 */
#include "node/app/routing_int.h"

#include "node/app/compile.h"
#include "node/base/check.h"
#include "node/base/mem.h"

#include <string.h>

enum {
    LOG_BURST = 50,         /* lines a second about endpoints */
    SERIES_BACKENDS = 1000, /* backends with series of their own */
};

/* ---- verdicts ---- */

static enum proxy_health decide(const struct watched *watched)
{
    static const enum proxy_health map[] = {
        [CHECK_UNKNOWN] = PROXY_HEALTH_UNKNOWN,
        [CHECK_UP] = PROXY_HEALTH_UP,
        [CHECK_DOWN] = PROXY_HEALTH_DOWN,
    };
    struct prober_view view;
    prober_view(watched->target, &view);
    return map[view.vote];
}

static void log_verdict(struct watched *watched, enum proxy_health before, const char *why)
{
    struct pool *pool = watched->pool;
    char text[ADDR_TEXT_MAX];
    uint32_t left_out = 0;
    if (before == PROXY_HEALTH_UNKNOWN && watched->told == PROXY_HEALTH_UP) {
        log_debug("endpoint is up", "backend=%s address=%s", pool->name,
                  addr_format(&watched->addr, text));
    } else if (!log_limit_pass(&pool->routing->health_log, LOG_BURST, &left_out)) {
        return;
    } else if (watched->told == PROXY_HEALTH_UP) {
        log_info("endpoint is up", "backend=%s address=%s more=%u", pool->name,
                 addr_format(&watched->addr, text), left_out);
    } else {
        log_info("endpoint is down", "backend=%s address=%s reason=\"%s\" more=%u", pool->name,
                 addr_format(&watched->addr, text), why, left_out);
    }
}

static void on_vote(void *owner, enum check_vote vote, const char *why)
{
    (void)vote;
    struct watched *watched = owner;
    struct pool *pool = watched->pool;
    enum proxy_health before = watched->told;
    enum proxy_health verdict = decide(watched);
    if (verdict == before) {
        return;
    }
    pool->verdicts[before]--;
    pool->verdicts[verdict]++;
    watched->told = verdict;
    backend_health(pool->routing->proxy, pool->backend, &watched->addr, verdict);
    log_verdict(watched, before, why);
}

static const struct prober_ops prober_ops = {.on_vote = on_vote};

/* ---- who is looked at ---- */

struct watched *pool_find_watched(const struct pool *pool, const struct addr *addr)
{
    struct watched *watched = NULL;
    HASH_FIND(hh, pool->watched, addr, sizeof(*addr), watched);
    return watched;
}

static void watched_add(struct routing *routing, struct pool *pool, const struct addr *addr,
                        const struct endpoint_node *node)
{
    struct watched *watched = mem_new(sizeof(*watched));
    watched->pool = pool;
    watched->addr = *addr;
    watched->wanted = true;
    const char *host = node->host != NULL ? endpoint_spec(node->object)->address : NULL;
    watched->target = prober_add(routing->prober, addr, host, pool->check, watched);
    pool->verdicts[PROXY_HEALTH_UNKNOWN]++;
    HASH_ADD(hh, pool->watched, addr, sizeof(watched->addr), watched);
}

static void watched_remove(struct routing *routing, struct watched *watched)
{
    struct pool *pool = watched->pool;
    prober_remove(routing->prober, watched->target);
    pool->verdicts[watched->told]--;
    HASH_DEL(pool->watched, watched);
    mem_free(watched);
}

/* ---- by which check ---- */

/* The check that the pool is to run; false: none. */
static bool merged_check(const struct routing *routing, const struct pool *pool,
                         Skein__HealthCheck *ret_check)
{
    const Skein__BackendSpec *spec = pool_spec(pool);
    const Skein__SettingsSpec *settings =
        routing->settings != NULL ? (const Skein__SettingsSpec *)routing->settings->message->spec
                                  : NULL;
    return pool_serves(pool) && pool->route_count > 0 && routing->prober != NULL &&
           compile_check_merge(spec != NULL ? spec->health_check : NULL,
                               settings != NULL ? settings->health_check : NULL, ret_check);
}

static void set_check(struct routing *routing, struct pool *pool, struct check_spec *check)
{
    if (pool->check == NULL && check != NULL) {
        DL_APPEND2(routing->checked_pools, pool, checked_prev, checked_next);
    } else if (pool->check != NULL && check == NULL) {
        DL_DELETE2(routing->checked_pools, pool, checked_prev, checked_next);
    }
    check_spec_unref(pool->check);
    pool->check = check;
    if (check == NULL) {
        MEM_FREE(pool->check_key);
        pool->check_key_len = 0;
        return;
    }
    struct watched *watched, *next;
    HASH_ITER (hh, pool->watched, watched, next) {
        prober_change(routing->prober, watched->target, check);
    }
}

static void check_sync(struct routing *routing, struct pool *pool)
{
    Skein__HealthCheck merged;
    if (!merged_check(routing, pool, &merged)) {
        set_check(routing, pool, NULL);
        return;
    }
    const Skein__BackendSpec *spec = pool_spec(pool);
    struct tls_target *target =
        compile_check_tls(&merged, spec != NULL ? spec->tls : NULL) ? pool->target : NULL;
    size_t len = skein__health_check__get_packed_size(&merged);
    uint8_t *key = mem_new(len + TLS_DIGEST_BYTES);
    (void)skein__health_check__pack(&merged, key); /* fills len bytes */
    if (target != NULL) {
        memcpy(key + len, tls_target_digest(target), TLS_DIGEST_BYTES);
        len += TLS_DIGEST_BYTES;
    }
    if (pool->check != NULL && len == pool->check_key_len &&
        memcmp(key, pool->check_key, len) == 0) {
        mem_free(key);
        return;
    }
    struct check_config config;
    struct check_spec *check = NULL;
    compile_check(&merged, &config);
    config.tls = target;
    if (check_spec_new(&config, &check) != RC_OK) {
        log_error("a health check cannot be carried out", "backend=%s", pool->name);
    }
    mem_free(pool->check_key);
    pool->check_key = key;
    pool->check_key_len = len;
    set_check(routing, pool, check);
}

void checks_sync(struct routing *routing, struct pool *pool, const struct pool_expansion *expansion)
{
    check_sync(routing, pool);
    struct watched *watched, *next;
    HASH_ITER (hh, pool->watched, watched, next) {
        watched->wanted = false;
    }
    for (size_t i = 0; i < expansion->count; i++) {
        const struct addr *addr = &expansion->endpoints[i].addr;
        watched = pool->watched != NULL ? pool_find_watched(pool, addr) : NULL;
        if (watched != NULL) {
            watched->wanted = pool->check != NULL;
            if (pool->check == NULL && watched->told != PROXY_HEALTH_UNKNOWN) {
                backend_health(routing->proxy, pool->backend, addr, PROXY_HEALTH_UNKNOWN);
            }
        } else if (pool->check != NULL) {
            watched_add(routing, pool, addr, expansion->nodes[i]);
        }
    }
    HASH_ITER (hh, pool->watched, watched, next) {
        if (!watched->wanted) {
            watched_remove(routing, watched);
        }
    }
}

void checks_drop(struct routing *routing, struct pool *pool)
{
    struct watched *watched, *next;
    HASH_ITER (hh, pool->watched, watched, next) {
        watched_remove(routing, watched);
    }
    set_check(routing, pool, NULL);
}

/* ---- the whole ---- */

void routing_observe(struct routing *routing, uv_loop_t *loop, const struct resolver_ops *ops,
                     void *ctx)
{
    ASSERT(routing->prober == NULL && routing->proxy == NULL);
    routing->prober = prober_new(loop, &prober_ops);
    routing->resolver = resolver_new(loop, ops, ctx);
}

static void metrics_verdicts(const struct routing *routing, struct buf *out)
{
    static const char *const names[] = {"unknown", "up", "down"};
    (void)buf_puts(out, "# HELP skein_backend_endpoints Addresses under active checks by verdict.\n"
                        "# TYPE skein_backend_endpoints gauge\n");
    size_t others[ARRAY_LEN(names)] = {0};
    size_t shown = 0;
    const struct pool *pool;
    for (pool = routing->checked_pools; pool != NULL; pool = pool->checked_next) {
        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
            if (shown >= SERIES_BACKENDS) {
                others[i] += pool->verdicts[i];
                continue;
            }
            (void)buf_printf(out, "skein_backend_endpoints{backend=\"%s\",health=\"%s\"} %zu\n",
                             pool->name, names[i], pool->verdicts[i]);
        }
        shown++;
    }
    for (size_t i = 0; i < ARRAY_LEN(names) && shown > SERIES_BACKENDS; i++) {
        (void)buf_printf(out, "skein_backend_endpoints{backend=\"\",health=\"%s\"} %zu\n", names[i],
                         others[i]);
    }
}

void routing_metrics(const struct routing *routing, struct buf *out)
{
    if (routing->prober != NULL) {
        prober_metrics(routing->prober, out);
        metrics_verdicts(routing, out);
        resolver_metrics(routing->resolver, out);
    }
}
