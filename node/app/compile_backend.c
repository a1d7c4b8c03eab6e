/*
 * How a backend uses its endpoints: from BackendSpec, and Settings where it is silent.
 */
#include "node/app/compile.h"

#include "proto/validate.h"

enum {
    PASSIVE_FAILURES = 5,
    PASSIVE_WINDOW_MS = 10000,
    PASSIVE_EJECT_MS = 30000,
    PASSIVE_PERCENT = 50,
    PANIC_PERCENT = 50,
    QUEUE = 128, /* a short burst waits rather than fails; HAProxy's has no bound */
};

static uint32_t ms_of(const Skein__Duration *duration, uint32_t fallback)
{
    return (uint32_t)MIN(duration_ms(duration, fallback), (uint64_t)UINT32_MAX);
}

static void compile_hash(const Skein__Hash *from, struct proxy_backend *to)
{
    static const enum proxy_hash_on map[] = {
        [SKEIN__HASH__ON__ClientAddress] = PROXY_HASH_CLIENT,
        [SKEIN__HASH__ON__Header] = PROXY_HASH_HEADER,
        [SKEIN__HASH__ON__Cookie] = PROXY_HASH_COOKIE,
        [SKEIN__HASH__ON__Query] = PROXY_HASH_QUERY,
        [SKEIN__HASH__ON__Path] = PROXY_HASH_PATH,
        [SKEIN__HASH__ON__Host] = PROXY_HASH_HOST,
    };
    if (from != NULL && (size_t)from->on < ARRAY_LEN(map)) {
        to->hash_on = map[from->on];
        to->hash_name = from->name;
    }
}

static void compile_balance(const Skein__BackendSpec *spec, const Skein__SettingsSpec *settings,
                            struct proxy_backend *to)
{
    static const enum balance map[] = {
        [SKEIN__BACKEND_SPEC__BALANCE__Random] = BALANCE_RANDOM,
        [SKEIN__BACKEND_SPEC__BALANCE__RoundRobin] = BALANCE_ROUND_ROBIN,
        [SKEIN__BACKEND_SPEC__BALANCE__LeastConn] = BALANCE_LEAST_CONN,
        [SKEIN__BACKEND_SPEC__BALANCE__Source] = BALANCE_HASH,
        [SKEIN__BACKEND_SPEC__BALANCE__Hash] = BALANCE_HASH,
    };
    Skein__BackendSpec__Balance balance = SKEIN__BACKEND_SPEC__BALANCE__Random;
    if (spec->has_balance) {
        balance = spec->balance;
    } else if (settings != NULL && settings->has_balance) {
        balance = settings->balance;
    }
    to->balance = (size_t)balance < ARRAY_LEN(map) ? map[balance] : BALANCE_RANDOM;
    if (balance == SKEIN__BACKEND_SPEC__BALANCE__Hash) {
        compile_hash(spec->hash, to);
    }
}

static void compile_passive(const Skein__PassiveCheck *from, struct proxy_passive *to)
{
    if (from == NULL) {
        return;
    }
    to->failures = from->has_failures ? from->failures : (uint32_t)PASSIVE_FAILURES;
    to->window_ms = ms_of(from->window, PASSIVE_WINDOW_MS);
    to->eject_ms = ms_of(from->eject, PASSIVE_EJECT_MS);
    to->max_ejected_percent =
        from->has_max_ejected_percent ? from->max_ejected_percent : (uint32_t)PASSIVE_PERCENT;
}

static void compile_limits(const Skein__BackendLimits *from, struct proxy_backend *to)
{
    to->queue_max = QUEUE;
    if (from == NULL) {
        return;
    }
    to->connections_per_endpoint_max =
        from->has_connections_per_endpoint ? from->connections_per_endpoint : 0;
    to->queue_max = from->has_queue ? from->queue : (uint32_t)QUEUE;
    to->queue_ms = ms_of(from->queue_timeout, 0);
}

static void compile_pool(const Skein__BackendPool *from, struct proxy_backend *to)
{
    to->idle_per_endpoint_max = PROXY_POOL_DEFAULT;
    if (from == NULL) {
        return;
    }
    if (from->has_idle_per_endpoint) {
        to->idle_per_endpoint_max = from->idle_per_endpoint;
    }
    to->idle_ms = ms_of(from->idle_timeout, 0);
    to->requests_per_connection_max =
        from->has_requests_per_connection ? from->requests_per_connection : 0;
}

static enum proxy_protocol_version compile_version(const Skein__BackendSpec *spec)
{
    static const enum proxy_protocol_version map[] = {
        [SKEIN__BACKEND_SPEC__PROXY_PROTOCOL__Off] = PROXY_PROTOCOL_OFF,
        [SKEIN__BACKEND_SPEC__PROXY_PROTOCOL__V1] = PROXY_PROTOCOL_V1,
        [SKEIN__BACKEND_SPEC__PROXY_PROTOCOL__V2] = PROXY_PROTOCOL_V2,
    };
    return spec->has_proxy_protocol && (size_t)spec->proxy_protocol < ARRAY_LEN(map)
               ? map[spec->proxy_protocol]
               : PROXY_PROTOCOL_OFF;
}

struct proxy_backend compile_backend(const Skein__BackendSpec *spec,
                                     const Skein__SettingsSpec *settings)
{
    static const Skein__BackendSpec empty = SKEIN__BACKEND_SPEC__INIT;
    if (spec == NULL) {
        spec = &empty;
    }
    struct proxy_backend backend = {
        .panic_percent = spec->has_panic_percent ? spec->panic_percent : (uint32_t)PANIC_PERCENT,
        .slow_start_ms = ms_of(spec->slow_start, 0),
        .proxy_protocol = compile_version(spec),
    };
    compile_balance(spec, settings, &backend);
    compile_passive(spec->passive_check, &backend.passive);
    compile_limits(spec->limits, &backend);
    compile_pool(spec->pool, &backend);
    return backend;
}
