/*
 * Records of exchanges for the access log: what is needed of a head is copied into a draft while
 * the head is there, the rest follows when the exchange is over. The draft is a chunk of the
 * worker's pool, taken only while the log is on; see access_log.h.
 */
#include "node/proxy/access_log.h"
#include "node/proxy/policy.h"
#include "node/proxy/proxy_int.h"

#include <strings.h>

enum {
    DRAFT_FIRST = 512,
    DRAFT_LAST = ACCESS_RECORD_MAX - (int)sizeof(struct access_record),
};

/* ---- the draft ---- */

static struct access_items items_of(const struct exchange *exchange, size_t most)
{
    struct chunk *chunk = exchange->log;
    return (struct access_items){
        .bytes = chunk->bytes, .len = chunk->end, .size = MIN((size_t)chunk->size, most)};
}

/* Make room for `need` more bytes, or for what is left until `most`. */
static void draft_grow(struct exchange *exchange, size_t need, size_t most)
{
    struct chunk_pool *chunks = &exchange->worker->chunks;
    struct chunk *old = exchange->log;
    size_t want = MIN(old->end + need, most);
    if (want <= old->size) {
        return;
    }
    struct chunk *chunk = chunk_take(chunks, want);
    memcpy(chunk->bytes, old->bytes, old->end);
    chunk->end = old->end;
    chunk_put(chunks, old);
    exchange->log = chunk;
}

static void draft_put(struct exchange *exchange, enum access_item_id id,
                      const struct access_text *name, const struct access_text *value, size_t most)
{
    draft_grow(exchange, sizeof(struct access_item) + name->len + value->len + 4, most);
    struct access_items items = items_of(exchange, most);
    access_item_put_named(&items, id, name, value);
    exchange->log->end = (uint32_t)items.len;
}

static void draft_text(struct exchange *exchange, enum access_item_id id, const char *text,
                       size_t len, size_t max)
{
    if (len != 0) {
        draft_put(exchange, id, &(const struct access_text){0},
                  &(const struct access_text){text, MIN(len, max)}, ACCESS_DRAFT_MAX);
    }
}

/* ---- heads ---- */

static bool name_is(const struct h1_field *field, const char *bytes, const char *name, size_t len)
{
    return field->name.len == len && strncasecmp(bytes + field->name.off, name, len) == 0;
}

static void take_field(struct exchange *exchange, enum access_item_id id,
                       const struct h1_field *field, const char *bytes, size_t max)
{
    draft_text(exchange, id, bytes + field->value.off, field->value.len, max);
}

static void take_known_fields(struct exchange *exchange, const struct h1_head *head,
                              const char *bytes)
{
    static const char referer[] = "referer";
    if ((head->present & H1_BIT(H1_USER_AGENT)) != 0) {
        take_field(exchange, ACCESS_ITEM_AGENT, h1_find(head, H1_USER_AGENT), bytes,
                   ACCESS_AGENT_MAX);
    }
    if ((head->present & H1_BIT(H1_X_REQUEST_ID)) != 0) {
        take_field(exchange, ACCESS_ITEM_REQUEST_ID, h1_find(head, H1_X_REQUEST_ID), bytes,
                   ACCESS_ID_MAX);
    }
    for (uint32_t i = 0; i < head->field_count; i++) {
        if (name_is(&head->fields[i], bytes, referer, sizeof(referer) - 1)) {
            take_field(exchange, ACCESS_ITEM_REFERER, &head->fields[i], bytes, ACCESS_REFERER_MAX);
            return;
        }
    }
}

/* The values of all fields of this name as one, joined by a comma (RFC 9110 5.3). */
static void capture_field(struct exchange *exchange, enum access_item_id id,
                          const struct h1_head *head, const char *bytes,
                          const struct capture *capture)
{
    char text[CAPTURE_LENGTH_MAX];
    size_t len = 0;
    bool any = false;
    for (uint32_t i = 0; i < head->field_count && len < capture->max_length; i++) {
        const struct h1_field *field = &head->fields[i];
        if (!name_is(field, bytes, capture->name, capture->name_len)) {
            continue;
        }
        if (any && len + 2U < capture->max_length) {
            memcpy(text + len, ", ", 2);
            len += 2;
        }
        any = true;
        size_t n = MIN((size_t)field->value.len, capture->max_length - len);
        memcpy(text + len, bytes + field->value.off, n);
        len += n;
    }
    if (any) {
        draft_put(exchange, id, &(const struct access_text){capture->name, capture->name_len},
                  &(const struct access_text){text, len}, ACCESS_DRAFT_MAX);
    }
}

/* The value of the cookie in one Cookie field, "a=b; c=d" (RFC 6265 4.2.1); NULL: not in it. */
static const char *find_cookie(const char *text, size_t len, const struct capture *capture,
                               size_t *ret_len)
{
    const char *end = text + len;
    while (text < end) {
        const char *stop = memchr(text, ';', (size_t)(end - text));
        stop = stop != NULL ? stop : end;
        while (text < stop && (*text == ' ' || *text == '\t')) {
            text++;
        }
        if ((size_t)(stop - text) > capture->name_len && text[capture->name_len] == '=' &&
            memcmp(text, capture->name, capture->name_len) == 0) {
            *ret_len = (size_t)(stop - text) - capture->name_len - 1U;
            return text + capture->name_len + 1;
        }
        text = stop + 1;
    }
    return NULL;
}

static void capture_cookie(struct exchange *exchange, const struct h1_head *head, const char *bytes,
                           const struct capture *capture)
{
    for (uint32_t i = 0; i < head->field_count; i++) {
        const struct h1_field *field = &head->fields[i];
        if (field->id != H1_COOKIE) {
            continue;
        }
        size_t len;
        const char *value = find_cookie(bytes + field->value.off, field->value.len, capture, &len);
        if (value != NULL) {
            draft_put(exchange, ACCESS_ITEM_COOKIE,
                      &(const struct access_text){capture->name, capture->name_len},
                      &(const struct access_text){value, MIN(len, (size_t)capture->max_length)},
                      ACCESS_DRAFT_MAX);
            return;
        }
    }
}

/* Asked for by the defaults and the rule: it is there already. */
static bool is_taken(const struct exchange *exchange, enum access_item_id id,
                     const struct capture *capture)
{
    const struct chunk *chunk = exchange->log;
    const struct access_item *item;
    for (size_t at = 0; (item = access_item_next(chunk->bytes, chunk->end, &at)) != NULL;) {
        if (item->id == id && item->name_len == capture->name_len &&
            memcmp(access_item_name(item), capture->name, item->name_len) == 0) {
            return true;
        }
    }
    return false;
}

static void capture_request(struct exchange *exchange, const struct h1_head *head,
                            const char *bytes, const struct captures *captures)
{
    for (uint16_t i = 0; i < captures->request_count; i++) {
        if (!is_taken(exchange, ACCESS_ITEM_REQUEST_FIELD, &captures->request[i])) {
            capture_field(exchange, ACCESS_ITEM_REQUEST_FIELD, head, bytes, &captures->request[i]);
        }
    }
    for (uint16_t i = 0; i < captures->cookie_count; i++) {
        if (!is_taken(exchange, ACCESS_ITEM_COOKIE, &captures->cookies[i])) {
            capture_cookie(exchange, head, bytes, &captures->cookies[i]);
        }
    }
}

void access_begin(struct exchange *exchange, const struct exchange_request *request)
{
    const struct h1_head *head = request->head;
    exchange->log = chunk_take(&exchange->worker->chunks, DRAFT_FIRST);
    exchange->minor = head->minor;
    draft_text(exchange, ACCESS_ITEM_LISTENER, request->listener, strlen(request->listener),
               ADDR_TEXT_MAX);
    draft_text(exchange, ACCESS_ITEM_METHOD, request->bytes + head->method.off, head->method.len,
               ACCESS_METHOD_MAX);
    draft_text(exchange, ACCESS_ITEM_HOST, head->host_name, head->host_name_len, ACCESS_HOST_MAX);
    draft_text(exchange, ACCESS_ITEM_TARGET, request->bytes + head->target.off, head->target.len,
               ACCESS_TARGET_MAX);
    take_known_fields(exchange, head, request->bytes);
    const struct captures *captures = worker_settings(exchange->worker)->captures;
    if (captures != NULL) {
        capture_request(exchange, head, request->bytes, captures);
    }
}

static void draft_free(struct exchange *exchange)
{
    chunk_put(&exchange->worker->chunks, exchange->log);
    exchange->log = NULL;
}

void access_follow(struct exchange *exchange, const struct exchange_request *request)
{
    const struct policy *policy = exchange->policy;
    if (policy->access_log_off) {
        draft_free(exchange);
    } else if (policy->captures != NULL) {
        capture_request(exchange, request->head, request->bytes, policy->captures);
    }
}

static void capture_response(struct exchange *exchange, const struct h1_head *head,
                             const char *bytes, const struct captures *captures)
{
    for (uint16_t i = 0; captures != NULL && i < captures->response_count; i++) {
        if (!is_taken(exchange, ACCESS_ITEM_RESPONSE_FIELD, &captures->response[i])) {
            capture_field(exchange, ACCESS_ITEM_RESPONSE_FIELD, head, bytes,
                          &captures->response[i]);
        }
    }
}

void access_response(struct exchange *exchange, const struct h1_head *head, const char *bytes)
{
    capture_response(exchange, head, bytes, worker_settings(exchange->worker)->captures);
    if (exchange->policy != NULL) {
        capture_response(exchange, head, bytes, exchange->policy->captures);
    }
}

/* It is skipped from now on. */
static void forget_item(struct exchange *exchange, enum access_item_id id)
{
    struct chunk *chunk = exchange->log;
    const struct access_item *item;
    for (size_t at = 0; (item = access_item_next(chunk->bytes, chunk->end, &at)) != NULL;) {
        if (item->id == id) {
            ((struct access_item *)unconst(item))->id = ACCESS_ITEM_NONE;
        }
    }
}

void access_note(struct exchange *exchange, enum access_item_id id, const char *text, size_t len)
{
    if (exchange->log == NULL || len == 0) {
        return;
    }
    forget_item(exchange, id);
    draft_text(exchange, id, text, len, id == ACCESS_ITEM_CAUSE ? ACCESS_CAUSE_MAX : ACCESS_ID_MAX);
}

/* ---- the end ---- */

static uint64_t span_us(uint64_t from_ns, uint64_t to_ns)
{
    return from_ns != 0 && to_ns >= from_ns ? (to_ns - from_ns) / 1000 : ACCESS_TIME_NONE;
}

static void put_name(struct exchange *exchange, enum access_item_id id, const char *name)
{
    if (name != NULL) {
        draft_put(exchange, id, &(const struct access_text){0},
                  &(const struct access_text){name, MIN(strlen(name), (size_t)ACCESS_NAME_MAX)},
                  DRAFT_LAST);
    }
}

static bool is_of_tls(enum reason reason)
{
    return reason == REASON_ENDPOINT_TLS || reason == REASON_ENDPOINT_CERTIFICATE;
}

static enum access_phase phase_of(const struct exchange *exchange)
{
    enum reason reason = exchange->reason;
    if (exchange->tunnel) {
        return ACCESS_PHASE_TUNNEL;
    }
    if (exchange->response_begun) {
        return ACCESS_PHASE_RESPONSE;
    }
    if (reason == REASON_CONNECT_FAILED || reason == REASON_CONNECT_TIMEOUT || is_of_tls(reason)) {
        return ACCESS_PHASE_CONNECT;
    }
    if (reason == REASON_NO_ENDPOINT || reason == REASON_QUEUE_FULL ||
        reason == REASON_QUEUE_TIMEOUT) {
        return ACCESS_PHASE_QUEUE;
    }
    if (exchange->sent_ns == 0) {
        return exchange->queued ? ACCESS_PHASE_QUEUE : ACCESS_PHASE_ROUTE;
    }
    if (!exchange->reused && exchange->connected_ns == 0) {
        return ACCESS_PHASE_CONNECT;
    }
    return exchange->request_done ? ACCESS_PHASE_WAIT : ACCESS_PHASE_REQUEST;
}

/* Who ended it, unless that was told: what Skein answered says it. */
static enum exchange_end end_of(const struct exchange *exchange)
{
    if (exchange->end != EXCHANGE_END_NONE || exchange->reason == REASON_NONE) {
        return exchange->end;
    }
    switch (reason_row(exchange->reason)->status) {
    case 408:
    case 504:
        return EXCHANGE_END_TIME;
    case 502:
        return EXCHANGE_END_ENDPOINT;
    case 503:
        return exchange->reason == REASON_QUEUE_TIMEOUT ? EXCHANGE_END_TIME : EXCHANGE_END_RESOURCE;
    default:
        return EXCHANGE_END_PROXY;
    }
}

/* What became of the affinity that the rule asks for; NULL: it asks for none. */
static const char *sticky_text(const struct exchange *exchange)
{
    if (exchange->rule == NULL || exchange->rule->sticky == NULL || exchange->endpoint == NULL) {
        return NULL;
    }
    if (exchange->wanted == NULL) {
        return "new";
    }
    return exchange->endpoint == exchange->wanted ? "kept" : "moved";
}

void access_end(struct exchange *exchange, uint64_t end_ns)
{
    uint64_t ready_ns = exchange->reused ? exchange->sent_ns : exchange->connected_ns;
    struct access_record record = {
        .kind = ACCESS_HTTP,
        .wait_us = span_us(exchange->start_ns, exchange->routed_ns),
        .queue_us = exchange->sent_ns != 0 ? span_us(exchange->routed_ns, exchange->sent_ns)
                                           : ACCESS_TIME_NONE,
        .connect_us = exchange->reused ? 0 : span_us(exchange->sent_ns, exchange->connected_ns),
        .first_us = span_us(ready_ns, exchange->head_ns),
        .total_us = span_us(exchange->start_ns, end_ns),
        .bytes_in = exchange->bytes_in,
        .bytes_out = exchange->bytes_out,
        .client = exchange->client_addr,
        .status = exchange->status,
        .reason = (uint16_t)exchange->reason,
        .retries = (uint16_t)(exchange->tried_count + (exchange->stale_retried ? 1 : 0)),
        .minor = exchange->minor,
        .reused = exchange->reused,
        .end = (uint8_t)end_of(exchange),
    };
    record.phase = record.end != EXCHANGE_END_NONE ? (uint8_t)phase_of(exchange) : 0;
    if (exchange->tried_count != 0 && !is_of_tls(exchange->reason)) {
        forget_item(exchange, ACCESS_ITEM_CAUSE); /* another endpoint served */
    }
    access_note(exchange, ACCESS_ITEM_REQUEST_ID, exchange->request_id, exchange->request_id_len);
    put_name(exchange, ACCESS_ITEM_STICKY, sticky_text(exchange));
    put_name(exchange, ACCESS_ITEM_ROUTE,
             exchange->rule != NULL ? exchange->rule->route->name : NULL);
    put_name(exchange, ACCESS_ITEM_BACKEND,
             exchange->backend != NULL ? exchange->backend->name : NULL);
    put_name(exchange, ACCESS_ITEM_ENDPOINT,
             exchange->endpoint != NULL ? exchange->endpoint->text : NULL);
    const struct access_items items = items_of(exchange, DRAFT_LAST);
    access_log_put(exchange->worker, &record, &items);
    draft_free(exchange);
}

static void record_init(struct access_record *record, enum access_kind kind,
                        const struct addr *client)
{
    *record = (struct access_record){
        .kind = (uint8_t)kind,
        .wait_us = ACCESS_TIME_NONE,
        .queue_us = ACCESS_TIME_NONE,
        .connect_us = ACCESS_TIME_NONE,
        .first_us = ACCESS_TIME_NONE,
        .client = *client,
    };
}

void access_refused(struct worker *worker, const struct exchange_refusal *refusal)
{
    bool empty = refusal->start_ns == 0; /* not a byte came */
    if (!access_log_wants(worker) ||
        (empty && !atomic_load_explicit(&worker->access->empty_requests, memory_order_relaxed))) {
        return;
    }
    struct access_record record;
    record_init(&record, empty ? ACCESS_HTTP_EMPTY : ACCESS_HTTP, refusal->client);
    record.status = refusal->reason != REASON_NONE ? reason_row(refusal->reason)->status : 0;
    record.reason = (uint16_t)refusal->reason;
    record.total_us = empty ? ACCESS_TIME_NONE : span_us(refusal->start_ns, uv_hrtime());
    record.end = (uint8_t)(empty                                      ? EXCHANGE_END_NONE
                           : refusal->reason == REASON_NONE           ? EXCHANGE_END_CLIENT
                           : refusal->reason == REASON_CLIENT_TIMEOUT ? EXCHANGE_END_TIME
                                                                      : EXCHANGE_END_PROXY);
    record.phase = ACCESS_PHASE_HEAD;
    union {
        struct access_item align;
        char bytes[256];
    } room;
    struct access_items items = {.bytes = room.bytes, .size = sizeof(room.bytes)};
    access_item_put(&items, ACCESS_ITEM_LISTENER, refusal->listener, strlen(refusal->listener),
                    ADDR_TEXT_MAX);
    access_log_put(worker, &record, &items);
}

void access_log_tcp(struct worker *worker, const struct tcp_record *from)
{
    if (!access_log_wants(worker)) {
        return;
    }
    struct access_record record;
    record_init(&record, ACCESS_TCP, from->client);
    record.queue_us =
        from->sent_ns != 0 ? span_us(from->start_ns, from->sent_ns) : ACCESS_TIME_NONE;
    record.connect_us = span_us(from->sent_ns, from->connected_ns);
    record.first_us = span_us(from->connected_ns, from->first_ns);
    record.total_us = span_us(from->start_ns, from->end_ns != 0 ? from->end_ns : uv_hrtime());
    record.bytes_in = from->bytes_in;
    record.bytes_out = from->bytes_out;
    record.reason = (uint16_t)from->reason;
    record.retries = (uint16_t)from->retries;
    record.end = (uint8_t)from->end;
    record.phase = (uint8_t)(from->end == EXCHANGE_END_NONE ? ACCESS_PHASE_NONE
                             : from->connected_ns != 0      ? ACCESS_PHASE_TUNNEL
                             : from->sent_ns != 0           ? ACCESS_PHASE_CONNECT
                             : from->backend != NULL        ? ACCESS_PHASE_QUEUE
                                                            : ACCESS_PHASE_ROUTE);
    union {
        struct access_item align;
        char bytes[4 * (ACCESS_NAME_MAX + sizeof(struct access_item))];
    } room;
    struct access_items items = {.bytes = room.bytes, .size = sizeof(room.bytes)};
    const struct {
        enum access_item_id id;
        const char *text;
    } texts[] = {{ACCESS_ITEM_LISTENER, from->listener},
                 {ACCESS_ITEM_ROUTE, from->route},
                 {ACCESS_ITEM_BACKEND, from->backend},
                 {ACCESS_ITEM_ENDPOINT, from->endpoint}};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        if (texts[i].text != NULL) {
            access_item_put(&items, texts[i].id, texts[i].text, strlen(texts[i].text),
                            ACCESS_NAME_MAX);
        }
    }
    access_log_put(worker, &record, &items);
}
