/*
 * The first step of an exchange: which rule covers the request, what it is allowed, and the head
 * that goes out. Everything that can be refused without an endpoint is refused here.
 */
#include "node/base/mem.h"
#include "node/http/forwarded.h"
#include "node/http/uri.h"
#include "node/proxy/exchange.h"

#include <stdio.h>

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

/* After dot segments were removed: the canonical path with the query behind it. */
static bool changed_target(struct worker *worker, const struct exchange_request *request,
                           const struct uri_path *path, struct h1_out *how)
{
    const struct h1_head *head = request->head;
    size_t len = path->len;
    size_t need = len + (head->has_query ? 1U + head->query.len : 0U);
    if (need > sizeof(worker->path)) {
        return false;
    }
    memmove(worker->path, path->at, len);
    if (head->has_query) {
        worker->path[len++] = '?';
        memcpy(worker->path + len, request->bytes + head->query.off, head->query.len);
        len += head->query.len;
    }
    how->target = worker->path;
    how->target_len = len;
    return true;
}

/* OPTIONS and TRACE count the hops they are allowed (RFC 9110 7.6.2). False: none is left. A value
 * that is no number is left to the endpoint. */
static bool count_hop(const struct h1_head *head, const char *bytes, char *line, size_t size,
                      struct h1_out *how)
{
    if ((head->present & H1_BIT(H1_MAX_FORWARDS)) == 0 ||
        (head->method_id != H1_OPTIONS && head->method_id != H1_TRACE)) {
        return true;
    }
    const struct h1_span *value = &h1_find(head, H1_MAX_FORWARDS)->value;
    uint64_t hops = 0;
    for (uint16_t i = 0; i < value->len; i++) {
        char c = bytes[value->off + i];
        if (c < '0' || c > '9' || i > 9) {
            return true;
        }
        hops = hops * 10 + (uint64_t)(c - '0');
    }
    if (value->len == 0 || hops == 0) {
        return value->len == 0;
    }
    how->drop |= H1_BIT(H1_MAX_FORWARDS);
    how->extra = line;
    how->extra_len =
        (size_t)snprintf(line, size, "Max-Forwards: %llu\r\n", (unsigned long long)(hops - 1));
    return true;
}

static enum reason build_head(struct exchange *exchange, const struct exchange_request *request,
                              const struct uri_path *path, enum forwarded_policy policy)
{
    struct worker *worker = exchange->worker;
    const struct h1_head *head = request->head;
    struct h1_out how = {
        .framing = head->framing,
        .content_length = head->content_length,
        .connection = head->upgrade ? H1_CONNECTION_UPGRADE : H1_CONNECTION_SILENT,
        .peer = request->peer,
        .policy = (enum fwd_policy)policy,
        .te_trailers = head->te_trailers,
    };
    char hops[40];
    if (!count_hop(head, request->bytes, hops, sizeof(hops), &how)) {
        return head->method_id == H1_OPTIONS ? REASON_OPTIONS : REASON_TRACE_METHOD;
    }
    if (path->had_dots && !changed_target(worker, request, path, &how)) {
        return REASON_URI_TOO_LONG;
    }
    buf_reset(&worker->head_out);
    int rc = h1_write_request(&worker->head_out, head, request->bytes, &how);
    if (rc == RC_FULL) {
        return REASON_HEADERS_TOO_BIG;
    }
    if (rc != RC_OK) {
        return REASON_BAD_HOST;
    }
    exchange->head = chunk_take(&worker->chunks, worker->head_out.len);
    memcpy(exchange->head->bytes, worker->head_out.data, worker->head_out.len);
    exchange->head->end = (uint32_t)worker->head_out.len;
    exchange->framing = head->framing;
    exchange->method = head->method_id;
    exchange->upgrade = head->upgrade;
    return REASON_NONE;
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

static enum reason check_head(const struct h1_head *head, const struct proxy_defaults *defaults)
{
    if (head->method_id == H1_CONNECT) {
        return REASON_CONNECT_METHOD;
    }
    if (head->expect_other) {
        return REASON_EXPECTATION;
    }
    if (head->framing == H1_BODY_LENGTH && defaults->body_bytes_max != 0 &&
        head->content_length > defaults->body_bytes_max) {
        return REASON_BODY_TOO_BIG;
    }
    return REASON_NONE;
}

enum reason exchange_route(struct exchange *exchange, const struct exchange_request *request)
{
    struct worker *worker = exchange->worker;
    const struct h1_head *head = request->head;
    worker_online(worker);
    const struct proxy_defaults *defaults = worker_defaults(worker);
    exchange->timeouts = defaults->timeouts;
    enum reason reason = check_head(head, defaults);
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
    resolve_timeouts(&exchange->timeouts, &rule->timeouts, &defaults->timeouts);
    exchange_set_retries(exchange, NULL, defaults);
    exchange->idempotent = method_is_idempotent(head->method_id);
    exchange->backend = rule_draw(rule, &worker->rng);
    if (exchange->backend == NULL) {
        return REASON_NO_ENDPOINT;
    }
    return build_head(exchange, request, &path,
                      rule->forwarded_set ? rule->forwarded : defaults->forwarded);
}
