/*
 * Sources of values for templates; see policy_keep.h. A kept value is two bytes of length and the
 * value.
 */
#include "node/proxy/policy_keep.h"

#include "node/base/mem.h"
#include "node/base/timesrc.h"

#include <stdio.h>

enum { NOT_KEPT = UINT16_MAX };

static bool is_of_request(enum template_var var)
{
    return var == TEMPLATE_HOST || var == TEMPLATE_PATH || var == TEMPLATE_QUERY ||
           var == TEMPLATE_METHOD || var == TEMPLATE_LISTENER_PORT ||
           var == TEMPLATE_REQUEST_HEADER;
}

static bool is_same(const struct template_part *a, const struct template_part *b)
{
    return a->var == b->var && a->len == b->len &&
           (a->len == 0 || memcmp(a->text, b->text, a->len) == 0);
}

static int keep_part(struct policy_keeps *keeps, struct template_part *part, struct err_info *err)
{
    part->slot = NOT_KEPT;
    if (!is_of_request(part->var)) {
        return RC_OK;
    }
    size_t slot = 0;
    while (slot < keeps->count && !is_same(&keeps->items[slot], part)) {
        slot++;
    }
    if (slot == keeps->count) {
        if (slot == POLICY_KEEPS_MAX) {
            return err_set(err, RC_INVALID, "responses mention more than %d values of requests",
                           POLICY_KEEPS_MAX);
        }
        keeps->items = mem_grow(keeps->items, slot + 1, sizeof(*keeps->items));
        keeps->items[keeps->count++] = *part;
    }
    part->slot = (uint16_t)slot;
    return RC_OK;
}

int policy_keeps_init(struct policy_keeps *keeps, struct h1_edits *edits, struct err_info *err)
{
    for (size_t i = 0; i < edits->count; i++) {
        struct template *value = edits->items[i].value;
        for (size_t j = 0; value != NULL && j < value->count; j++) {
            int rc = keep_part(keeps, &value->parts[j], err);
            if (rc != RC_OK) {
                return rc;
            }
        }
    }
    return RC_OK;
}

void policy_keeps_deinit(struct policy_keeps *keeps)
{
    MEM_FREE(keeps->items);
    keeps->count = 0;
}

static struct template_value value_of(const char *text, size_t len)
{
    return (struct template_value){.at = text, .len = len};
}

static struct template_value text_value(const char *text)
{
    return value_of(text, strlen(text));
}

/* "shop" of "shop/checkout", or what is behind the slash. */
static struct template_value half(const char *id, bool first)
{
    const char *slash = strchr(id, '/');
    if (slash == NULL) {
        return first ? value_of("", 0) : text_value(id);
    }
    return first ? value_of(id, (size_t)(slash - id)) : text_value(slash + 1);
}

static struct template_value hex_random(struct rng *rng, char text[ADDR_TEXT_MAX])
{
    (void)snprintf(text, ADDR_TEXT_MAX, "%016llx%016llx", (unsigned long long)rng_next(rng),
                   (unsigned long long)rng_next(rng));
    return value_of(text, 32);
}

/* What is known of an exchange at any time. */
static struct template_value exchange_value(const struct exchange *exchange,
                                            const struct template_part *part,
                                            char text[ADDR_TEXT_MAX])
{
    switch (part->var) {
    case TEMPLATE_CLIENT_ADDRESS: {
        struct addr plain = addr_unmapped(&exchange->client_addr);
        if (plain.sa.sa_family != AF_INET && plain.sa.sa_family != AF_INET6) {
            return value_of("unknown", 7);
        }
        return text_value(addr_format_ip(&plain, text));
    }
    case TEMPLATE_CLIENT_PORT:
        if (addr_port(&exchange->client_addr) == 0) {
            return value_of("", 0);
        }
        (void)snprintf(text, ADDR_TEXT_MAX, "%u", (unsigned)addr_port(&exchange->client_addr));
        return text_value(text);
    case TEMPLATE_REQUEST_ID:
        return value_of(exchange->request_id, exchange->request_id_len);
    case TEMPLATE_ROUTE:
        return exchange->rule != NULL ? half(exchange->rule->route->name, false) : value_of("", 0);
    case TEMPLATE_NAMESPACE:
        return exchange->rule != NULL ? half(exchange->rule->route->name, true) : value_of("", 0);
    case TEMPLATE_BACKEND:
        return exchange->backend != NULL ? half(exchange->backend->name, false) : value_of("", 0);
    case TEMPLATE_ENDPOINT:
        return exchange->endpoint != NULL ? text_value(exchange->endpoint->text) : value_of("", 0);
    case TEMPLATE_NODE:
        return text_value(exchange->worker->node_name);
    case TEMPLATE_SCHEME:
        return text_value(exchange->secure ? "https" : "http");
    case TEMPLATE_TIME:
        (void)snprintf(text, ADDR_TEXT_MAX, "%llu", (unsigned long long)time_wall_ms());
        return text_value(text);
    case TEMPLATE_RANDOM:
        return hex_random(&exchange->worker->rng, text);
    case TEMPLATE_LITERAL:
    case TEMPLATE_HOST:
    case TEMPLATE_PATH:
    case TEMPLATE_QUERY:
    case TEMPLATE_METHOD:
    case TEMPLATE_LISTENER_PORT:
    case TEMPLATE_REQUEST_HEADER:
    case TEMPLATE_RESPONSE_HEADER:
    case TEMPLATE_VAR_COUNT:
        break;
    }
    return value_of("", 0);
}

static struct template_value span_value(const char *bytes, struct h1_span span)
{
    return value_of(bytes + span.off, span.len);
}

struct template_value request_value(void *ctx, const struct template_part *part)
{
    struct request_source *source = ctx;
    const struct h1_head *head = source->request->head;
    const char *bytes = source->request->bytes;
    switch ((int)part->var) {
    case TEMPLATE_HOST:
        return value_of(head->host_name, head->host_name_len);
    case TEMPLATE_PATH:
        return head->path.len != 0 ? span_value(bytes, head->path) : value_of("/", 1);
    case TEMPLATE_QUERY:
        return head->has_query ? span_value(bytes, head->query) : value_of("", 0);
    case TEMPLATE_METHOD:
        return span_value(bytes, head->method);
    case TEMPLATE_LISTENER_PORT:
        return value_of(source->request->peer->port, source->request->peer->port_len);
    case TEMPLATE_REQUEST_HEADER:
        return h1_value_named(head, bytes, part->text, part->len, source->scratch);
    case TEMPLATE_CLIENT_ADDRESS:
        if (!source->exchange->peer_trusted) { /* it is the peer, whose text is at hand */
            return value_of(source->request->peer->address, source->request->peer->address_len);
        }
        return exchange_value(source->exchange, part, source->text);
    default:
        return exchange_value(source->exchange, part, source->text);
    }
}

/* The kept value number slot. */
static struct template_value kept_value(const struct response_source *source, uint16_t slot)
{
    const char *at = source->kept;
    size_t left = source->kept_len;
    for (;; slot--) {
        uint16_t len;
        if (left < sizeof(len)) {
            return value_of("", 0);
        }
        memcpy(&len, at, sizeof(len));
        at += sizeof(len);
        left -= sizeof(len);
        if (len > left) {
            return value_of("", 0);
        }
        if (slot == 0) {
            return value_of(at, len);
        }
        at += len;
        left -= len;
    }
}

struct template_value response_value(void *ctx, const struct template_part *part)
{
    struct response_source *source = ctx;
    if (is_of_request(part->var)) {
        return kept_value(source, part->slot);
    }
    if (part->var == TEMPLATE_RESPONSE_HEADER) {
        return h1_value_named(source->head, source->bytes, part->text, part->len, source->scratch);
    }
    return exchange_value(source->exchange, part, source->text);
}

void policy_keep(const struct policy_keeps *keeps, struct request_source *source, struct buf *out)
{
    for (size_t i = 0; i < keeps->count; i++) {
        struct template_value value = request_value(source, &keeps->items[i]);
        uint16_t len = (uint16_t)MIN(value.len, (size_t)UINT16_MAX); /* of a head, so below */
        (void)buf_put(out, &len, sizeof(len));
        (void)buf_put(out, value.at, len);
    }
}

size_t policy_kept_len(const struct policy_keeps *keeps, const char *kept, size_t len)
{
    size_t at = 0;
    for (size_t i = 0; i < keeps->count && at + sizeof(uint16_t) <= len; i++) {
        uint16_t part;
        memcpy(&part, kept + at, sizeof(part));
        at += sizeof(part) + part;
    }
    return MIN(at, len);
}
