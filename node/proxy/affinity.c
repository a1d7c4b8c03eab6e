/*
 * Sticky cookies and hash keys; see affinity.h.
 */
#include "node/proxy/affinity.h"

#include "node/base/hash.h"
#include "node/base/mem.h"
#include "node/proxy/rules.h"

#include <stdio.h>
#include <strings.h>

enum { TOKEN_TEXT_LEN = PROXY_TOKEN_BYTES * 4 / 3 };

/* A run of bytes of the request; at NULL: there is none. */
struct run {
    const char *at;
    size_t len;
};

/* ---- the rule's part ---- */

struct sticky *sticky_new(const struct proxy_sticky *from)
{
    static const char *const same_site[] = {
        [PROXY_SAME_SITE_LAX] = "Lax",
        [PROXY_SAME_SITE_STRICT] = "Strict",
        [PROXY_SAME_SITE_NONE] = "None",
    };
    if (from == NULL) {
        return NULL;
    }
    struct sticky *sticky = mem_new(sizeof(*sticky));
    sticky->cookie = mem_strdup(from->cookie);
    sticky->cookie_len = strlen(from->cookie);
    sticky->secure_by_scheme = !from->secure_set;
    char age[32] = "";
    if (from->max_age_s != 0) {
        (void)snprintf(age, sizeof(age), "; Max-Age=%u", from->max_age_s);
    }
    sticky->attributes = mem_printf(
        "; Path=%s%s; HttpOnly; SameSite=%s%s", from->path != NULL ? from->path : "/", age,
        same_site[from->same_site], from->secure_set && from->secure ? "; Secure" : "");
    return sticky;
}

void sticky_free(struct sticky *sticky)
{
    if (sticky != NULL) {
        mem_free(sticky->cookie);
        mem_free(sticky->attributes);
        mem_free(sticky);
    }
}

/* ---- tokens as text: base64url without padding (RFC 4648 5) ---- */

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static void token_format(const uint8_t token[PROXY_TOKEN_BYTES], char out[TOKEN_TEXT_LEN])
{
    for (size_t i = 0; i < PROXY_TOKEN_BYTES / 3; i++) {
        uint32_t bits =
            (uint32_t)token[3 * i] << 16 | (uint32_t)token[3 * i + 1] << 8 | token[3 * i + 2];
        for (size_t j = 0; j < 4; j++) {
            out[4 * i + j] = digits[bits >> (18 - 6 * j) & 63];
        }
    }
}

static int digit_value(char c)
{
    const char *at = c != '\0' ? strchr(digits, c) : NULL;
    return at != NULL ? (int)(at - digits) : -1;
}

static bool token_parse(struct run text, uint8_t ret_token[PROXY_TOKEN_BYTES])
{
    if (text.len != TOKEN_TEXT_LEN) {
        return false;
    }
    for (size_t i = 0; i < PROXY_TOKEN_BYTES / 3; i++) {
        uint32_t bits = 0;
        for (size_t j = 0; j < 4; j++) {
            int value = digit_value(text.at[4 * i + j]);
            if (value < 0) {
                return false;
            }
            bits = bits << 6 | (uint32_t)value;
        }
        ret_token[3 * i] = (uint8_t)(bits >> 16);
        ret_token[3 * i + 1] = (uint8_t)(bits >> 8);
        ret_token[3 * i + 2] = (uint8_t)bits;
    }
    return true;
}

/* ---- cookies of a request (RFC 6265 4.2.1) ---- */

struct cookie {
    struct run pair; /* without white space around it */
    struct run name;
    struct run value;
};

/* The next pair of a Cookie field's value; *cursor starts at 0. */
static bool cookie_next(struct run text, size_t *cursor, struct cookie *ret_cookie)
{
    size_t at = *cursor;
    while (at < text.len && (text.at[at] == ';' || text.at[at] == ' ' || text.at[at] == '\t')) {
        at++;
    }
    if (at == text.len) {
        return false;
    }
    const char *end = memchr(text.at + at, ';', text.len - at);
    size_t stop = end != NULL ? (size_t)(end - text.at) : text.len;
    *cursor = stop;
    while (text.at[stop - 1] == ' ' || text.at[stop - 1] == '\t') {
        stop--;
    }
    struct run pair = {.at = text.at + at, .len = stop - at};
    const char *equals = memchr(pair.at, '=', pair.len);
    size_t name_len = equals != NULL ? (size_t)(equals - pair.at) : 0;
    *ret_cookie = (struct cookie){
        .pair = pair,
        .name = {.at = pair.at, .len = name_len},
        .value = {.at = equals != NULL ? equals + 1 : pair.at,
                  .len = equals != NULL ? pair.len - name_len - 1 : pair.len},
    };
    return true;
}

static bool is_named(const struct cookie *cookie, const char *name, size_t len)
{
    return cookie->name.len == len && memcmp(cookie->name.at, name, len) == 0;
}

static struct run field_value(const struct h1_field *field, const char *bytes)
{
    return (struct run){.at = bytes + field->value.off, .len = field->value.len};
}

static const struct h1_field *first_cookies(const struct h1_head *head)
{
    return (head->present & H1_BIT(H1_COOKIE)) != 0 ? h1_find(head, H1_COOKIE) : NULL;
}

/* The first cookie of this name. */
static struct run find_cookie(const struct exchange_request *request, const char *name, size_t len)
{
    const struct h1_field *field = first_cookies(request->head);
    for (; field != NULL; field = h1_find_next(request->head, field)) {
        struct cookie cookie;
        size_t cursor = 0;
        while (cookie_next(field_value(field, request->bytes), &cursor, &cookie)) {
            if (is_named(&cookie, name, len)) {
                return cookie.value;
            }
        }
    }
    return (struct run){0};
}

/* ---- the sticky cookie ---- */

/* The endpoint that the client's cookie stands for, among all backends of the rule. */
static struct backend *find_holder(struct exchange *exchange,
                                   const struct exchange_request *request)
{
    const struct rule *rule = exchange->rule;
    const struct sticky *sticky = rule->sticky;
    struct run text = find_cookie(request, sticky->cookie, sticky->cookie_len);
    uint8_t token[PROXY_TOKEN_BYTES];
    if (text.at == NULL || !token_parse(text, token)) {
        return NULL;
    }
    for (uint32_t i = 0; i < rule->target_count; i++) {
        struct backend *backend = rule->targets[i].backend;
        struct endpoint *endpoint = set_find_token(backend_endpoints(backend), token);
        if (endpoint != NULL) {
            uint8_t current[PROXY_TOKEN_BYTES];
            endpoint_token(endpoint, current);
            exchange->token_is_old = memcmp(token, current, sizeof(token)) != 0;
            endpoint_ref(endpoint);
            exchange->wanted = endpoint;
            return backend;
        }
    }
    return NULL;
}

static bool has_nobody(const struct backend *backend)
{
    return backend_endpoints(backend)->usable_count == 0;
}

/* Instead of one that has nobody: by weight among those that have somebody. */
static struct backend *draw_other(const struct rule *rule, struct rng *rng)
{
    uint32_t total = 0;
    uint32_t before = 0;
    struct backend *drawn = NULL;
    for (uint32_t i = 0; i < rule->target_count; i++) {
        const struct rule_target *target = &rule->targets[i];
        uint32_t weight = target->weight_end - before;
        before = target->weight_end;
        if (weight == 0 || has_nobody(target->backend)) {
            continue;
        }
        total += weight;
        if (rng_below(rng, total) < weight) {
            drawn = target->backend;
        }
    }
    return drawn;
}

struct backend *affinity_backend(struct exchange *exchange, const struct exchange_request *request)
{
    struct worker *worker = exchange->worker;
    const struct rule *rule = exchange->rule;
    worker_online(worker);
    if (rule->sticky != NULL) {
        exchange->secure = exchange->secure || request->peer->secure;
        struct backend *held = find_holder(exchange, request);
        if (held != NULL) {
            return held;
        }
    }
    struct backend *backend = rule_draw(rule, &worker->rng);
    if (backend != NULL && rule->target_count > 1 && UNLIKELY(has_nobody(backend))) {
        struct backend *other = draw_other(rule, &worker->rng);
        return other != NULL ? other : backend;
    }
    return backend;
}

void affinity_hide_cookie(struct exchange *exchange, const struct exchange_request *request,
                          struct h1_out *how)
{
    const struct sticky *sticky = exchange->rule->sticky;
    struct buf *lines = &exchange->worker->lines;
    if (how->extra != lines->data || how->extra == NULL) {
        buf_reset(lines);
        if (how->extra_len != 0) {
            (void)buf_put(lines, how->extra, how->extra_len);
        }
    }
    struct h1_head *head = request->head;
    for (uint32_t i = 0; first_cookies(head) != NULL && i < head->field_count; i++) {
        struct h1_field *field = &head->fields[i];
        if (field->id != H1_COOKIE || field->drop || field->hop) {
            continue; /* none, or it does not go out anyway */
        }
        struct run text = field_value(field, request->bytes);
        struct cookie cookie;
        size_t cursor = 0;
        while (!field->drop && cookie_next(text, &cursor, &cookie)) {
            field->drop = is_named(&cookie, sticky->cookie, sticky->cookie_len);
        }
        if (!field->drop) {
            continue;
        }
        const char *before = "Cookie: ";
        for (cursor = 0; cookie_next(text, &cursor, &cookie);) {
            if (!is_named(&cookie, sticky->cookie, sticky->cookie_len)) {
                (void)buf_puts(lines, before);
                (void)buf_put(lines, cookie.pair.at, cookie.pair.len);
                before = "; ";
            }
        }
        if (before[0] == ';') {
            (void)buf_puts(lines, "\r\n");
        }
    }
    how->extra = lines->data;
    how->extra_len = lines->len;
}

void affinity_set_cookie(const struct exchange *exchange, struct buf *lines)
{
    static const uint8_t none[PROXY_TOKEN_BYTES];
    const struct sticky *sticky = exchange->rule->sticky;
    uint8_t token[PROXY_TOKEN_BYTES];
    bool held = exchange->endpoint == exchange->wanted && !exchange->token_is_old;
    if (exchange->endpoint == NULL || held) {
        return;
    }
    endpoint_token(exchange->endpoint, token);
    if (memcmp(token, none, sizeof(token)) == 0) {
        return;
    }
    char text[TOKEN_TEXT_LEN];
    token_format(token, text);
    bool secure = sticky->secure_by_scheme && exchange->secure;
    /* A shared cache must not give one client's cookie to another. */
    (void)buf_printf(lines, "Set-Cookie: %s=%.*s%s%s\r\nCache-Control: private\r\n", sticky->cookie,
                     (int)TOKEN_TEXT_LEN, text, sticky->attributes, secure ? "; Secure" : "");
}

/* ---- hash keys ---- */

/* The kind is a part of the key: a path is not a host. Fixed: all nodes have to agree. */
static uint64_t key_of(enum proxy_hash_on on, const void *bytes, size_t len)
{
    return hash_sip64((uint64_t)on, UINT64_C(0x736b65696e6b6579), bytes, len);
}

uint64_t affinity_client_key(const struct addr *client)
{
    return client->sa.sa_family == AF_INET6
               ? key_of(PROXY_HASH_CLIENT, &client->in6.sin6_addr, sizeof(struct in6_addr))
               : key_of(PROXY_HASH_CLIENT, &client->in4.sin_addr, sizeof(struct in_addr));
}

static struct run find_header(const struct exchange_request *request, const char *name)
{
    const struct h1_head *head = request->head;
    size_t len = strlen(name);
    for (uint32_t i = 0; i < head->field_count; i++) {
        const struct h1_field *field = &head->fields[i];
        if (field->name.len == len &&
            strncasecmp(request->bytes + field->name.off, name, len) == 0) {
            return field_value(field, request->bytes);
        }
    }
    return (struct run){0};
}

static struct run find_parameter(const struct exchange_request *request, const char *name)
{
    const struct h1_head *head = request->head;
    const char *query = request->bytes + head->query.off;
    size_t cursor = 0;
    size_t len = strlen(name);
    struct uri_param param;
    while (head->has_query && uri_query_next(query, head->query.len, &cursor, &param)) {
        if (param.name_len == len && memcmp(param.name, name, len) == 0) {
            return (struct run){.at = param.value, .len = param.value_len};
        }
    }
    return (struct run){0};
}

void affinity_key(struct exchange *exchange, const struct exchange_request *request,
                  const struct uri_path *path)
{
    const struct proxy_backend *policy = &backend_endpoints(exchange->backend)->policy;
    if (LIKELY(policy->balance != BALANCE_HASH)) {
        return;
    }
    const char *name = policy->hash_name != NULL ? policy->hash_name : "";
    struct run key = {0};
    switch (policy->hash_on) {
    case PROXY_HASH_CLIENT:
        break;
    case PROXY_HASH_HEADER:
        key = find_header(request, name);
        break;
    case PROXY_HASH_COOKIE:
        key = find_cookie(request, name, strlen(name));
        break;
    case PROXY_HASH_QUERY:
        key = find_parameter(request, name);
        break;
    case PROXY_HASH_PATH:
        key = (struct run){.at = path->at, .len = path->len};
        break;
    case PROXY_HASH_HOST:
        key = (struct run){.at = request->head->host_name, .len = request->head->host_name_len};
        break;
    }
    exchange->hash = key.at == NULL || key.len == 0 ? affinity_client_key(&exchange->client_addr)
                                                    : key_of(policy->hash_on, key.at, key.len);
}
