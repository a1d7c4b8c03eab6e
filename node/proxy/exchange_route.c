/*
 * The first step of an exchange: which rule covers the request, and what it is allowed. Everything
 * that can be refused without an endpoint is refused here.
 */
#include "node/http/uri.h"
#include "node/proxy/access_log.h"
#include "node/proxy/affinity.h"
#include "node/proxy/exchange_shape.h"
#include "node/proxy/exchange_tls.h"
#include "node/proxy/proxy_int.h"

static uint32_t or_default(uint32_t value, uint32_t fallback)
{
    return value != 0 ? value : fallback;
}

static void resolve_timeouts(struct proxy_timeouts *out, const struct proxy_timeouts *rule,
                             const struct proxy_timeouts *defaults)
{
    out->connect_ms = or_default(rule->connect_ms, defaults->connect_ms);
    out->client_ms = or_default(rule->client_ms, defaults->client_ms);
    out->server_ms = or_default(rule->server_ms, defaults->server_ms);
    out->tunnel_ms = or_default(rule->tunnel_ms, defaults->tunnel_ms);
    out->client_header_ms = or_default(rule->client_header_ms, defaults->client_header_ms);
    out->keepalive_ms = or_default(rule->keepalive_ms, defaults->keepalive_ms);
    out->request_ms = or_default(rule->request_ms, defaults->request_ms);
    out->queue_ms = or_default(rule->queue_ms, defaults->queue_ms);
    out->client_fin_ms = or_default(rule->client_fin_ms, defaults->client_fin_ms);
    out->server_fin_ms = or_default(rule->server_fin_ms, defaults->server_fin_ms);
}

/* The path that routes are matched on, in worker->path when it had to be changed. */
static int canonical_path(struct worker *worker, const struct exchange_request *request,
                          enum dot_segments dots, struct uri_path *ret_path)
{
    const struct h1_head *head = request->head;
    const char *path = request->bytes + head->path.off;
    if (head->form == H1_FORM_ASTERISK) {
        *ret_path = (struct uri_path){.at = path, .len = head->path.len};
        return RC_OK;
    }
    return uri_path_canon(path, head->path.len, (enum uri_dots)dots, worker->path,
                          sizeof(worker->path), ret_path);
}

static bool method_is_idempotent(enum h1_method method)
{
    static const bool idempotent[] = {
        [H1_METHOD_OTHER] = false, [H1_GET] = true,    [H1_HEAD] = true,    [H1_POST] = false,
        [H1_PUT] = true,           [H1_DELETE] = true, [H1_OPTIONS] = true, [H1_PATCH] = false,
        [H1_CONNECT] = false,      [H1_TRACE] = true,
    };
    return idempotent[method];
}

static enum reason check_head(const struct h1_head *head)
{
    if (head->method_id == H1_CONNECT) {
        return REASON_CONNECT_METHOD;
    }
    if (head->expect_other) {
        return REASON_EXPECTATION;
    }
    return REASON_NONE;
}

static bool body_is_too_big(const struct exchange *exchange, const struct h1_head *head)
{
    return head->framing == H1_BODY_LENGTH && exchange->body_bytes_max != 0 &&
           head->content_length > exchange->body_bytes_max;
}

/* What the rule's policy or that of Settings makes of it. */
static enum reason admit(struct exchange *exchange, const struct exchange_request *request,
                         const struct uri_path *path, struct exchange_answer *answer)
{
    exchange->policy = exchange->rule->policy;
    if (exchange->policy == NULL && exchange->base == NULL) {
        return REASON_NONE;
    }
    if (exchange->log != NULL && exchange->policy != NULL) {
        access_follow(exchange, request);
    }
    exchange->secure = exchange->secure || request->peer->secure;
    return exchange_shape_admit(exchange, request, path, answer);
}

enum reason exchange_route(struct exchange *exchange, const struct exchange_request *request,
                           struct exchange_answer *answer)
{
    struct worker *worker = exchange->worker;
    const struct h1_head *head = request->head;
    const struct settings *settings = worker_settings(worker);
    const struct proxy_defaults *defaults = &settings->defaults;
    exchange->timeouts = defaults->timeouts;
    exchange->body_bytes_max = defaults->body_bytes_max;
    if (settings->base != NULL) {
        exchange_shape_begin(exchange, request, settings->base);
    }
    enum reason reason = check_head(head);
    if (reason != REASON_NONE) {
        return reason;
    }
    struct uri_path path;
    if (canonical_path(worker, request, defaults->dot_segments, &path) != RC_OK) {
        return REASON_BAD_PATH;
    }
    struct host *host = hosts_find(&worker->catalog->hosts, head->host_name, head->host_name_len);
    const struct rule *rule = host == NULL ? NULL : rules_match(&host->rules, path.at, path.len);
    if (rule == NULL) {
        return REASON_NO_ROUTE;
    }
    host_ref(host);
    exchange->host = host;
    exchange->rule = rule;
    if (UNLIKELY(rule->timeouts_set)) {
        resolve_timeouts(&exchange->timeouts, &rule->timeouts, &defaults->timeouts);
    }
    if (UNLIKELY(rule->termination != PROXY_PLAIN || request->tls != NULL)) {
        reason = exchange_check_scheme(exchange, request, answer);
        if (reason != REASON_NONE) {
            return reason;
        }
    }
    reason = admit(exchange, request, &path, answer);
    if (reason != REASON_NONE) {
        return reason;
    }
    if (body_is_too_big(exchange, head)) {
        return REASON_BODY_TOO_BIG;
    }
    exchange_set_retries(exchange, rule->retries, defaults);
    exchange->idempotent = method_is_idempotent(head->method_id);
    exchange->backend = affinity_backend(exchange, request);
    if (exchange->backend == NULL) {
        return REASON_NO_ENDPOINT;
    }
    affinity_key(exchange, request, &path);
    return exchange_build_head(exchange, request, &path, settings->base,
                               rule->forwarded_set ? rule->forwarded : defaults->forwarded);
}
