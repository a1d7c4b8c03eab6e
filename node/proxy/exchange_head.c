/*
 * The head that goes to the endpoint: kept while the request may be repeated.
 */
#include "node/base/mem.h"
#include "node/http/forwarded.h"
#include "node/proxy/affinity.h"
#include "node/proxy/exchange_shape.h"
#include "node/proxy/exchange_tls.h"

#include <stdio.h>

enum {
    CHUNK_HEAD_BYTES = 900, /* what is taken for a head whose size is not known yet */
    HEAD_BYTES_MAX = 66000, /* what a chunk holds */
};

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

/* Policies change the request, too. */
static enum reason shape(struct exchange *exchange, const struct exchange_request *request,
                         const struct uri_path *path, struct policy_base *base, struct h1_out *how)
{
    if (exchange->peer_foreign && how->policy != FWD_NEVER) {
        how->policy = FWD_REPLACE; /* what it says of others is not believed */
    }
    enum reason reason = exchange_shape_request(exchange, request, path, base, how);
    struct buf *lines = &exchange->worker->lines;
    if (how->extra_len != 0) {
        (void)buf_put(lines, how->extra, how->extra_len);
    }
    how->extra = lines->data;
    how->extra_len = lines->len;
    return reason == REASON_NONE && lines->full ? REASON_HEADERS_TOO_BIG : reason;
}

/* Into a chunk of the exchange's. */
static enum reason write_head(struct exchange *exchange, const struct exchange_request *request,
                              const struct h1_out *how)
{
    struct worker *worker = exchange->worker;
    const struct h1_head *head = request->head;
    struct chunk *chunk = chunk_take(&worker->chunks, CHUNK_HEAD_BYTES);
    struct buf out = {.data = chunk->bytes, .size = chunk->size, .cap_bytes = chunk->size - 1};
    int rc = h1_write_request(&out, head, request->bytes, how);
    if (UNLIKELY(rc == RC_FULL)) {
        buf_reset(&worker->head_out);
        rc = h1_write_request(&worker->head_out, head, request->bytes, how);
        out.len = worker->head_out.len;
        chunk_put(&worker->chunks, chunk);
        if (rc == RC_FULL || out.len > HEAD_BYTES_MAX) {
            return REASON_HEADERS_TOO_BIG;
        }
        chunk = chunk_take(&worker->chunks, out.len);
        memcpy(chunk->bytes, worker->head_out.data, out.len);
    }
    chunk->end = (uint32_t)out.len;
    exchange->head = chunk;
    exchange->head_len = chunk->end;
    return rc == RC_OK ? REASON_NONE : REASON_BAD_HOST;
}

enum reason exchange_build_head(struct exchange *exchange, const struct exchange_request *request,
                                const struct uri_path *path, struct policy_base *base,
                                enum forwarded_policy policy)
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
    if (exchange->policy != NULL || (base != NULL && base->changes_requests)) {
        enum reason reason = shape(exchange, request, path, base, &how);
        if (reason != REASON_NONE) {
            return reason;
        }
    }
    if (UNLIKELY(exchange->rule->termination != PROXY_PLAIN)) {
        exchange_tell_tls(exchange, request, &how);
        if (worker->lines.full) {
            return REASON_HEADERS_TOO_BIG;
        }
    }
    if (path->had_dots && how.target == NULL && !changed_target(worker, request, path, &how)) {
        return REASON_URI_TOO_LONG;
    }
    if (exchange->rule->sticky != NULL) {
        affinity_hide_cookie(exchange, request, &how);
        if (worker->lines.full) {
            return REASON_HEADERS_TOO_BIG;
        }
    }
    enum reason reason = write_head(exchange, request, &how);
    if (reason != REASON_NONE) {
        return reason;
    }
    exchange->framing = head->framing;
    exchange->method = head->method_id;
    exchange->upgrade = head->upgrade;
    return REASON_NONE;
}
