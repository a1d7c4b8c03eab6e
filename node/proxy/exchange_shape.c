/*
 * Policies at work on requests and responses; see exchange_shape.h.
 *
 * What the response needs of the request is written into exchange->kept: the lines of CORS
 * (kept->start bytes), then the values that the rule's templates mention, then those of Settings.
 */
#include "node/proxy/exchange_shape.h"

#include "node/http/fwd_client.h"
#include "node/proxy/cors.h"
#include "node/proxy/policy_keep.h"
#include "node/proxy/rewrite.h"

#include <stdio.h>

enum { KEPT_BYTES_MAX = 60000 };

/* ---- who ---- */

static const char id_digits[] = "0123456789abcdef";

static void random_id(struct exchange *exchange)
{
    for (unsigned half = 0; half < 2; half++) {
        uint64_t number = rng_next(&exchange->worker->rng);
        for (unsigned i = 0; i < 16; i++) {
            exchange->request_id[half * 16 + i] = id_digits[number >> (60 - 4 * i) & 15];
        }
    }
    exchange->request_id_len = 32;
}

static bool take_id(struct exchange *exchange, const char *bytes, struct h1_span value)
{
    if (value.len == 0 || value.len > sizeof(exchange->request_id)) {
        return false;
    }
    memcpy(exchange->request_id, bytes + value.off, value.len);
    exchange->request_id_len = (uint8_t)value.len;
    return true;
}

static void make_id(struct exchange *exchange, const struct exchange_request *request,
                    const struct policy_base *base)
{
    if (exchange->peer_trusted && base->id_header != NULL) {
        char name[TEMPLATE_NAME_MAX + 1];
        size_t len = 0;
        for (; base->id_header[len] != '\0' && len < sizeof(name); len++) {
            char c = base->id_header[len];
            name[len] = c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
        }
        const struct h1_field *field = h1_find_named(request->head, request->bytes, name, len);
        if (field != NULL && take_id(exchange, request->bytes, field->value)) {
            return;
        }
    }
    if (base->id_format == NULL) {
        random_id(exchange);
        return;
    }
    struct buf *out = &exchange->worker->lines;
    buf_reset(out);
    struct request_source source = {
        .exchange = exchange, .request = request, .scratch = &exchange->worker->value};
    template_render(base->id_format, request_value, &source, out);
    exchange->request_id_len = (uint8_t)MIN(out->len, sizeof(exchange->request_id));
    if (exchange->request_id_len == 0) {
        random_id(exchange);
    } else {
        memcpy(exchange->request_id, out->data, exchange->request_id_len);
    }
}

void exchange_shape_begin(struct exchange *exchange, const struct exchange_request *request,
                          struct policy_base *base)
{
    if (base->trusted != NULL) {
        exchange->peer_trusted = cidr_set_has(base->trusted, request->client);
        exchange->peer_foreign = !exchange->peer_trusted;
        if (exchange->peer_trusted) {
            exchange->client_addr =
                fwd_client(base->trusted, request->client, request->head, request->bytes);
            exchange->secure = exchange->secure || fwd_is_https(request->head, request->bytes);
        }
    }
    if (base->id_header != NULL) {
        make_id(exchange, request, base);
    }
    if (base->response.count != 0 || base->hsts != NULL) {
        policy_base_ref(base);
        exchange->base = base;
    }
}

/* ---- whether ---- */

static enum reason limited(struct exchange *exchange, enum reason reason, uint64_t wait_ns,
                           struct exchange_answer *answer)
{
    struct buf *lines = &exchange->worker->lines;
    uint64_t wait_s = (wait_ns + 999999999) / 1000000000;
    buf_reset(lines);
    (void)buf_printf(lines, "Retry-After: %llu\r\n", (unsigned long long)MAX(wait_s, UINT64_C(1)));
    answer->lines = lines->data;
    answer->lines_len = lines->len;
    return reason;
}

static uint64_t rate_key(const struct exchange *exchange, const struct exchange_request *request,
                         const struct policy *policy)
{
    const struct policy_rate *rate = policy->rate;
    switch (rate->key) {
    case PROXY_RATE_CLIENT:
        break;
    case PROXY_RATE_HEADER: {
        struct buf *scratch = &exchange->worker->value;
        struct template_value value =
            h1_value_named(request->head, request->bytes, rate->header, rate->header_len, scratch);
        if (value.len != 0) {
            return limiter_key_bytes(policy->limiter, &rate->limit, value.at, value.len);
        }
        break; /* who does not say who he is counts by his address */
    }
    case PROXY_RATE_ROUTE:
        return limiter_key_all(policy->limiter, &rate->limit);
    }
    return limiter_key_addr(policy->limiter, &rate->limit, &exchange->client_addr);
}

static enum reason check_limits(struct exchange *exchange, const struct exchange_request *request,
                                const struct policy *policy, struct exchange_answer *answer)
{
    const struct policy_rate *rate = policy->rate;
    if (rate != NULL) {
        uint64_t key = rate_key(exchange, request, policy);
        uint64_t wait_ns = 0;
        if (rate->limit.interval_ns != 0 &&
            !limiter_take(policy->limiter, &rate->limit, key, uv_hrtime(), &wait_ns)) {
            return limited(exchange, REASON_RATE_LIMITED, wait_ns, answer);
        }
        if (rate->limit.at_once != 0) {
            exchange->places[0] = limiter_enter(policy->limiter, &rate->limit, key);
            if (exchange->places[0] == NULL) {
                return limited(exchange, REASON_TOO_MANY, 0, answer);
            }
        }
    }
    if (policy->at_once.at_once != 0) {
        uint64_t key = limiter_key_all(policy->limiter, &policy->at_once);
        exchange->places[1] = limiter_enter(policy->limiter, &policy->at_once, key);
        if (exchange->places[1] == NULL) {
            return limited(exchange, REASON_ROUTE_FULL, 0, answer);
        }
    }
    return REASON_NONE;
}

/* The path that was asked for, as it is forwarded. */
static struct template_value asked_path(const struct exchange_request *request,
                                        const struct uri_path *path)
{
    const struct h1_head *head = request->head;
    if (path->had_dots) {
        return (struct template_value){.at = path->at, .len = path->len};
    }
    if (head->path.len == 0 || head->form == H1_FORM_ASTERISK) {
        return (struct template_value){.at = "/", .len = 1};
    }
    return (struct template_value){.at = request->bytes + head->path.off, .len = head->path.len};
}

static int32_t asked_port(const struct exchange_request *request)
{
    char name[URI_HOST_MAX + 1];
    struct uri_host parts;
    const struct h1_span *host = &request->head->host;
    if (uri_host_canon(request->bytes + host->off, host->len, name, &parts) != RC_OK) {
        return -1;
    }
    return parts.port;
}

static enum reason redirect(struct exchange *exchange, const struct exchange_request *request,
                            const struct uri_path *path, struct exchange_answer *answer)
{
    const struct h1_head *head = request->head;
    struct template_value asked = asked_path(request, path);
    const struct redirect_ask ask = {
        .scheme = exchange->secure ? "https" : "http",
        .host = head->host_name,
        .port = asked_port(request),
        .rule_path = exchange->rule->path,
        .path = asked.at,
        .path_len = asked.len,
        .query = head->has_query ? request->bytes + head->query.off : NULL,
        .query_len = head->query.len,
    };
    const struct policy_redirect *how = exchange->policy->redirect;
    struct buf *lines = &exchange->worker->lines;
    buf_reset(lines);
    (void)buf_puts(lines, "Location: ");
    redirect_location(how, &ask, &exchange->worker->value, lines);
    (void)buf_puts(lines, "\r\n");
    if (lines->full) {
        return REASON_URI_TOO_LONG;
    }
    answer->lines = lines->data;
    answer->lines_len = lines->len;
    answer->status = how->status;
    return REASON_REDIRECT;
}

static enum reason keep_for_response(struct exchange *exchange,
                                     const struct exchange_request *request)
{
    const struct policy *policy = exchange->policy;
    const struct policy_base *base = exchange->base;
    bool wants = (policy != NULL && (policy->cors != NULL || policy->keeps.count != 0)) ||
                 (base != NULL && base->keeps.count != 0);
    if (!wants) {
        return REASON_NONE;
    }
    struct buf *out = &exchange->worker->lines;
    buf_reset(out);
    struct request_source source = {
        .exchange = exchange, .request = request, .scratch = &exchange->worker->value};
    size_t cors_len = 0;
    if (policy != NULL && policy->cors != NULL) {
        cors_put(policy->cors, request->head, request->bytes, out);
        cors_len = out->len;
    }
    if (policy != NULL) {
        policy_keep(&policy->keeps, &source, out);
    }
    if (base != NULL) {
        policy_keep(&base->keeps, &source, out);
    }
    if (out->full || out->len > KEPT_BYTES_MAX) {
        return REASON_HEADERS_TOO_BIG;
    }
    exchange->kept = chunk_take(&exchange->worker->chunks, out->len);
    if (out->len != 0) { /* with CORS also nothing is kept: that the request had no origin */
        memcpy(exchange->kept->bytes, out->data, out->len);
    }
    exchange->kept->start = (uint32_t)cors_len;
    exchange->kept->end = (uint32_t)out->len;
    return REASON_NONE;
}

enum reason exchange_shape_admit(struct exchange *exchange, const struct exchange_request *request,
                                 const struct uri_path *path, struct exchange_answer *answer)
{
    const struct policy *policy = exchange->policy;
    if (policy != NULL && !policy_allows(policy, &exchange->client_addr)) {
        return REASON_DENIED;
    }
    enum reason reason = keep_for_response(exchange, request);
    if (reason != REASON_NONE || policy == NULL) {
        return reason;
    }
    if (policy->limiter != NULL) {
        reason = check_limits(exchange, request, policy, answer);
        if (reason != REASON_NONE) {
            return reason;
        }
    }
    if (policy->cors != NULL && cors_is_preflight(request->head, request->bytes)) {
        struct buf *lines = &exchange->worker->lines;
        buf_reset(lines);
        cors_put_preflight(policy->cors, request->head, request->bytes, lines);
        answer->lines = lines->data;
        answer->lines_len = lines->len;
        return lines->full ? REASON_HEADERS_TOO_BIG : REASON_PREFLIGHT;
    }
    if (policy->redirect != NULL) {
        return redirect(exchange, request, path, answer);
    }
    exchange->body_bytes_max =
        policy->body_bytes_max != 0 ? policy->body_bytes_max : exchange->body_bytes_max;
    return REASON_NONE;
}

/* ---- how it goes out ---- */

/* The new target into worker->target: path and query. */
static enum reason rewrite_target(struct exchange *exchange, const struct exchange_request *request,
                                  const struct uri_path *path, struct h1_out *how)
{
    const struct policy_rewrite *rewrite = exchange->policy->rewrite;
    const struct h1_head *head = request->head;
    if ((rewrite->replace_path == NULL && rewrite->replace_prefix == NULL) ||
        head->form == H1_FORM_ASTERISK) {
        return REASON_NONE;
    }
    struct buf *target = &exchange->worker->value;
    buf_reset(target);
    if (rewrite->replace_path != NULL) {
        (void)buf_puts(target, rewrite->replace_path);
    } else {
        struct template_value asked = asked_path(request, path);
        rewrite_prefix(rewrite->replace_prefix, rewrite_segments(exchange->rule->path), asked.at,
                       asked.len, target);
    }
    if (head->has_query) {
        (void)buf_putc(target, '?');
        (void)buf_put(target, request->bytes + head->query.off, head->query.len);
    }
    if (target->full) {
        return REASON_URI_TOO_LONG;
    }
    how->target = target->data;
    how->target_len = target->len;
    return REASON_NONE;
}

/* Edits of forwarded fields are made on what the router writes, so those are written first. */
static void write_forwarded(const struct exchange_request *request, struct h1_out *how,
                            struct buf *lines)
{
    if (fwd_put(lines, how->peer, how->policy, request->head, request->bytes) != RC_OK) {
        return; /* lines->full tells */
    }
    how->drop |= fwd_drop(how->policy);
    how->peer = NULL;
}

static void replace_host(struct h1_head *head, const struct policy_rewrite *rewrite,
                         struct buf *lines)
{
    h1_drop_id(head, H1_HOST);
    head->present |= H1_BIT(H1_HOST); /* of an absolute target too: this line stands for it */
    h1_put_line(lines, "Host", 4, rewrite->host, rewrite->host_len);
}

enum reason exchange_shape_request(struct exchange *exchange,
                                   const struct exchange_request *request,
                                   const struct uri_path *path, struct policy_base *base,
                                   struct h1_out *how)
{
    const struct policy *policy = exchange->policy;
    struct worker *worker = exchange->worker;
    struct h1_head *head = request->head;
    struct buf *lines = &worker->lines;
    struct request_source source = {
        .exchange = exchange, .request = request, .scratch = &worker->value};
    uint64_t names =
        (base != NULL ? base->request.names : 0) | (policy != NULL ? policy->request.names : 0);
    buf_reset(lines);
    if ((names & fwd_drop(FWD_REPLACE)) != 0) {
        write_forwarded(request, how, lines);
    }
    if (base != NULL) {
        if (base->id_header != NULL) {
            size_t len = strlen(base->id_header);
            h1_drop_named(head, request->bytes, base->id_header, len);
            h1_put_line(lines, base->id_header, len, exchange->request_id,
                        exchange->request_id_len);
        }
        h1_edits_apply(&base->request, head, request->bytes, request_value, &source, lines);
    }
    enum reason reason = REASON_NONE;
    if (policy != NULL) {
        h1_edits_apply(&policy->request, head, request->bytes, request_value, &source, lines);
        if (policy->rewrite != NULL && policy->rewrite->host != NULL) {
            replace_host(head, policy->rewrite, lines);
        }
        if (policy->rewrite != NULL) {
            reason = rewrite_target(exchange, request, path, how);
        }
    }
    return lines->full ? REASON_HEADERS_TOO_BIG : reason;
}

/* ---- the response ---- */

static void put_hsts(struct exchange *exchange, struct h1_head *head, struct buf *lines)
{
    const struct policy *policy = exchange->policy;
    const char *line = policy != NULL && policy->hsts != NULL ? policy->hsts
                       : exchange->base != NULL               ? exchange->base->hsts
                                                              : NULL;
    if (line == NULL || !exchange->secure) {
        return;
    }
    if (head != NULL) {
        h1_drop_id(head, H1_STRICT_TRANSPORT_SECURITY);
    }
    (void)buf_puts(lines, line);
}

bool exchange_shape_response(struct exchange *exchange, struct h1_head *head, const char *bytes)
{
    struct worker *worker = exchange->worker;
    const struct policy *policy = exchange->policy;
    const struct chunk *kept = exchange->kept;
    struct buf *lines = &worker->lines;
    struct response_source source = {
        .exchange = exchange,
        .head = head,
        .bytes = bytes,
        .kept = kept != NULL ? kept->bytes + kept->start : NULL,
        .kept_len = kept != NULL ? kept->end - kept->start : 0,
        .scratch = &worker->value,
    };
    buf_reset(lines);
    if (policy != NULL) {
        h1_edits_apply(&policy->response, head, bytes, response_value, &source, lines);
        size_t used = policy_kept_len(&policy->keeps, source.kept, source.kept_len);
        source.kept_len -= used;
        source.kept = used != 0 ? source.kept + used : source.kept;
    }
    if (exchange->base != NULL) {
        h1_edits_apply(&exchange->base->response, head, bytes, response_value, &source, lines);
    }
    uint64_t names = (policy != NULL ? policy->response.names : 0) |
                     (exchange->base != NULL ? exchange->base->response.names : 0);
    head->present |= names & H1_BIT(H1_DATE); /* what an edit says of it, stays */
    if (policy != NULL && policy->cors != NULL) {
        cors_drop(head, bytes, lines);
        (void)buf_put(lines, kept->bytes, kept->start);
    }
    put_hsts(exchange, head, lines);
    return !lines->full;
}

/* ---- answers of our own ---- */

static void put_page(const struct exchange *exchange, const struct policy_base *base,
                     struct exchange_answer *answer)
{
    unsigned status = answer->status != 0 ? answer->status : reason_row(answer->reason)->status;
    const struct policy_page *page = NULL;
    if (exchange->policy != NULL) {
        page = policy_page(&exchange->policy->pages, status);
    }
    if (page == NULL && base != NULL) {
        page = policy_page(&base->pages, status);
    }
    if (page != NULL && answer->body == NULL) {
        answer->content_type = page->content_type;
        answer->body = page->body;
        answer->body_len = page->body_len;
    }
}

void exchange_shape_answer(struct exchange *exchange, struct policy_base *base,
                           struct exchange_answer *answer)
{
    put_page(exchange, base, answer);
    struct buf *lines = &exchange->worker->lines;
    if (answer->lines == NULL) {
        buf_reset(lines);
    } else if (answer->lines != lines->data) {
        return; /* somebody else's, and whole */
    }
    const struct chunk *kept = exchange->kept;
    if (kept != NULL && answer->reason != REASON_PREFLIGHT) {
        (void)buf_put(lines, kept->bytes, kept->start);
    }
    put_hsts(exchange, NULL, lines);
    answer->lines = lines->len != 0 ? lines->data : NULL;
    answer->lines_len = lines->len;
}

void exchange_shape_end(struct exchange *exchange)
{
    limiter_leave(exchange->places[0]);
    limiter_leave(exchange->places[1]);
    if (exchange->kept != NULL) {
        chunk_put(&exchange->worker->chunks, exchange->kept);
    }
    policy_base_unref(exchange->base);
}
