/*
 * From a HealthCheck to what the checker runs.
 *
 * A backend without a healthCheck has that of Settings, whole. A backend with one of its own takes
 * from Settings the times and counts that it leaves out, and nothing else: paths, hosts and ports
 * are those of one application.
 */
#include "node/app/compile.h"

#include "proto/validate.h"

#include <stdlib.h>
#include <string.h>

enum {
    INTERVAL_MS = 5000,
    TIMEOUT_MS = 5000,
    RISE = 2,
    FALL = 3,
    INTERVAL_DOWN_MS_MIN = 500,
    INTERVAL_DOWN_PART = 5,
};

bool compile_check_merge(const Skein__HealthCheck *own, const Skein__HealthCheck *defaults,
                         Skein__HealthCheck *ret_check)
{
    const Skein__HealthCheck *from = own != NULL ? own : defaults;
    if (from == NULL || (from->type != SKEIN__HEALTH_CHECK__TYPE__Tcp &&
                         from->type != SKEIN__HEALTH_CHECK__TYPE__Http)) {
        return false;
    }
    Skein__HealthCheck check = *from;
    if (own != NULL && defaults != NULL) {
        check.interval = own->interval != NULL ? own->interval : defaults->interval;
        check.timeout = own->timeout != NULL ? own->timeout : defaults->timeout;
        if (own->interval == NULL && own->interval_down == NULL) {
            check.interval_down = defaults->interval_down;
        }
        if (!own->has_rise) {
            check.has_rise = defaults->has_rise;
            check.rise = defaults->rise;
        }
        if (!own->has_fall) {
            check.has_fall = defaults->has_fall;
            check.fall = defaults->fall;
        }
    }
    *ret_check = check;
    return true;
}

/* How it is verified is said by the backend's tls alone, so that a check without one is in clear:
 * Settings may ask all backends that speak TLS for it. */
bool compile_check_tls(const Skein__HealthCheck *check, const Skein__BackendTls *tls)
{
    if (tls == NULL) {
        return false;
    }
    return check->has_tls ? check->tls : compile_target_enabled(tls);
}

static uint32_t span_ms(const Skein__Duration *duration, uint32_t fallback)
{
    uint64_t ms = duration_ms(duration, fallback);
    return (uint32_t)MIN(MAX(ms, (uint64_t)1), (uint64_t)UINT32_MAX);
}

static struct check_pace compile_pace(const Skein__HealthCheck *check)
{
    struct check_pace pace = {
        .interval_ms = span_ms(check->interval, INTERVAL_MS),
        .timeout_ms = span_ms(check->timeout, TIMEOUT_MS),
        .rise = check->has_rise && check->rise > 0 ? check->rise : RISE,
        .fall = check->has_fall && check->fall > 0 ? check->fall : FALL,
    };
    uint32_t part_ms = MAX(pace.interval_ms / INTERVAL_DOWN_PART, (uint32_t)INTERVAL_DOWN_MS_MIN);
    pace.interval_down_ms = span_ms(check->interval_down, MIN(part_ms, pace.interval_ms));
    return pace;
}

/* "200" or "200-399"; what is neither matches nothing. */
static struct check_statuses compile_statuses(const char *text)
{
    char *end = NULL;
    unsigned long low = strtoul(text, &end, 10);
    unsigned long high = *end == '-' ? strtoul(end + 1, NULL, 10) : low;
    return (struct check_statuses){.low = (uint16_t)MIN(low, 1000UL),
                                   .high = (uint16_t)MIN(high, 1000UL)};
}

void compile_check(const Skein__HealthCheck *check, struct check_config *ret_config)
{
    *ret_config = (struct check_config){
        .type = check->type == SKEIN__HEALTH_CHECK__TYPE__Http ? CHECK_HTTP : CHECK_TCP,
        .pace = compile_pace(check),
        .port = check->has_port ? (uint16_t)check->port : 0,
        .path = check->path,
        .method = check->method,
        .host = check->host,
        .body = check->body,
        .status_count = MIN(check->n_statuses, (size_t)CHECK_STATUSES_MAX),
        .header_count = MIN(check->n_headers, (size_t)CHECK_HEADERS_MAX),
    };
    for (size_t i = 0; i < ret_config->status_count; i++) {
        ret_config->statuses[i] = compile_statuses(check->statuses[i]);
    }
    for (size_t i = 0; i < ret_config->header_count; i++) {
        ret_config->headers[i] = (struct check_header){
            .name = check->headers[i]->key != NULL ? check->headers[i]->key : "",
            .value = check->headers[i]->value,
        };
    }
}
