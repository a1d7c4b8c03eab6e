/*
 * Field by field; what an older or newer node may have written and we do not know falls back to the
 * default, since validation at the writing node is the place for refusals.
 */
#include "node/app/compile.h"

#include <string.h>

static void take_ms(const Skein__Duration *duration, uint32_t *ms)
{
    if (duration != NULL && duration->has_ms) {
        *ms = duration->ms < UINT32_MAX ? (uint32_t)duration->ms : UINT32_MAX;
    }
}

static void lay_timeouts(const Skein__Timeouts *from, struct proxy_timeouts *to)
{
    if (from == NULL) {
        return;
    }
    take_ms(from->connect, &to->connect_ms);
    take_ms(from->client, &to->client_ms);
    take_ms(from->server, &to->server_ms);
    take_ms(from->tunnel, &to->tunnel_ms);
    take_ms(from->client_header, &to->client_header_ms);
    take_ms(from->keep_alive, &to->keepalive_ms);
    take_ms(from->request, &to->request_ms);
    take_ms(from->queue, &to->queue_ms);
    take_ms(from->client_fin, &to->client_fin_ms);
    take_ms(from->server_fin, &to->server_fin_ms);
}

struct proxy_timeouts compile_timeouts(const Skein__Timeouts *timeouts)
{
    struct proxy_timeouts result = {0};
    lay_timeouts(timeouts, &result);
    return result;
}

enum forwarded_policy compile_forwarded(Skein__ForwardedPolicy policy)
{
    static const enum forwarded_policy map[] = {
        [SKEIN__FORWARDED_POLICY__Append] = FORWARDED_APPEND,
        [SKEIN__FORWARDED_POLICY__Replace] = FORWARDED_REPLACE,
        [SKEIN__FORWARDED_POLICY__IfNone] = FORWARDED_IF_NONE,
        [SKEIN__FORWARDED_POLICY__Never] = FORWARDED_NEVER,
    };
    return (size_t)policy < ARRAY_LEN(map) ? map[policy] : FORWARDED_APPEND;
}

static enum dot_segments compile_dot_segments(Skein__DotSegments policy)
{
    static const enum dot_segments map[] = {
        [SKEIN__DOT_SEGMENTS__Refuse] = DOT_SEGMENTS_REFUSE,
        [SKEIN__DOT_SEGMENTS__Remove] = DOT_SEGMENTS_REMOVE,
        [SKEIN__DOT_SEGMENTS__Keep] = DOT_SEGMENTS_KEEP,
    };
    return (size_t)policy < ARRAY_LEN(map) ? map[policy] : DOT_SEGMENTS_REFUSE;
}

static void lay_limits(const Skein__SettingsLimits *from, struct proxy_defaults *to)
{
    if (from == NULL) {
        return;
    }
    to->header_bytes_max = from->has_header_bytes ? from->header_bytes : to->header_bytes_max;
    to->header_count_max = from->has_header_count ? from->header_count : to->header_count_max;
    to->uri_bytes_max = from->has_uri_bytes ? from->uri_bytes : to->uri_bytes_max;
    to->body_bytes_max = from->has_body_bytes ? from->body_bytes : to->body_bytes_max;
    to->idle_per_endpoint_max =
        from->has_idle_per_endpoint ? from->idle_per_endpoint : to->idle_per_endpoint_max;
}

static void lay_access_log(const Skein__SettingsAccessLog *from, struct proxy_defaults *to)
{
    if (from == NULL) {
        return;
    }
    if (from->has_enabled) {
        to->access = from->enabled ? PROXY_ACCESS_ON : PROXY_ACCESS_OFF;
    }
    if (from->format != NULL) {
        to->access_format =
            strcmp(from->format, "combined") == 0 ? PROXY_ACCESS_COMBINED : PROXY_ACCESS_JSON;
    }
    to->access_empty_requests = from->has_empty_requests && from->empty_requests;
}

struct proxy_defaults compile_defaults(const Skein__SettingsSpec *spec)
{
    struct proxy_defaults defaults = {
        .timeouts = {.connect_ms = 5000,
                     .client_ms = 30000,
                     .server_ms = 30000,
                     .tunnel_ms = 3600000,
                     .client_header_ms = 10000,
                     .keepalive_ms = 300000,
                     .queue_ms = 5000,
                     .client_fin_ms = 1000,
                     .server_fin_ms = 1000},
        .forwarded = FORWARDED_APPEND,
        .dot_segments = DOT_SEGMENTS_REFUSE,
        .header_bytes_max = 32768,
        .header_count_max = 128,
        .uri_bytes_max = 8192,
        .body_bytes_max = 0,
        .retries_max = 2,
        .idle_per_endpoint_max = 64,
    };
    if (spec == NULL) {
        return defaults;
    }
    lay_timeouts(spec->timeouts, &defaults.timeouts);
    lay_limits(spec->limits, &defaults);
    lay_access_log(spec->access_log, &defaults);
    if (spec->has_forwarded) {
        defaults.forwarded = compile_forwarded(spec->forwarded);
    }
    if (spec->has_dot_segments) {
        defaults.dot_segments = compile_dot_segments(spec->dot_segments);
    }
    if (spec->retries != NULL && spec->retries->has_attempts) {
        defaults.retries_max = spec->retries->attempts;
    }
    return defaults;
}

uint32_t compile_weight(protobuf_c_boolean has_weight, uint32_t weight)
{
    return has_weight ? MIN(weight, (uint32_t)PROXY_WEIGHT_MAX) : 100;
}
