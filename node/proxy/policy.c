/*
 * Compiling policies; see policy.h. Every step that can fail leaves a half-built policy that
 * policy_free and policy_base_unref can release.
 */
#include "node/proxy/policy.h"

#include "node/base/mem.h"
#include "node/proxy/catalog.h"
#include "node/proxy/cors.h"
#include "node/proxy/policy_keep.h"

#include <strings.h>

enum { PAGES_MAX = 256, PAGE_BYTES_MAX = 32768, ID_HEADER_MAX = 256 };

static char *copy(const char *text)
{
    return text != NULL ? mem_strdup(text) : NULL;
}

static struct limiter *limiter_of(struct catalog *catalog)
{
    if (catalog->limiter == NULL) {
        catalog->limiter = limiter_new();
    }
    return catalog->limiter;
}

static int networks(const char *what, const struct proxy_texts *texts, struct cidr_set **ret_set,
                    struct err_info *err)
{
    if (texts->count == 0) {
        return RC_OK;
    }
    int rc = cidr_set_new(texts->items, texts->count, ret_set, err);
    return rc != RC_OK ? err_prefix(err, rc, "%s", what) : RC_OK;
}

/* ---- edits ---- */

static int edit_new(const struct proxy_edit *from, enum template_place place, struct h1_edit *edit,
                    struct err_info *err)
{
    size_t len = strlen(from->name);
    if (!h1_is_token(from->name, len) || len > TEMPLATE_NAME_MAX ||
        h1_edit_refuses(from->name, len)) {
        return err_set(err, RC_INVALID, "header %.60s cannot be changed", from->name);
    }
    edit->action = from->action == PROXY_EDIT_DELETE ? H1_EDIT_DELETE
                   : from->action == PROXY_EDIT_ADD  ? H1_EDIT_ADD
                                                     : H1_EDIT_SET;
    edit->name = mem_strdup(from->name);
    edit->name_len = (uint16_t)len;
    edit->id = (uint8_t)h1_name_id(from->name, len);
    if (edit->action == H1_EDIT_DELETE) {
        return RC_OK;
    }
    int rc = template_new(from->value != NULL ? from->value : "", place, &edit->value, err);
    return rc != RC_OK ? err_prefix(err, rc, "header %.60s", from->name) : RC_OK;
}

static int edits_new(const struct proxy_edits *from, enum template_place place,
                     struct h1_edits *edits, struct err_info *err)
{
    edits->items = from->count != 0 ? mem_array(from->count, sizeof(*edits->items)) : NULL;
    for (size_t i = 0; i < from->count; i++) {
        int rc = edit_new(&from->items[i], place, &edits->items[edits->count++], err);
        if (rc != RC_OK) {
            return rc;
        }
        edits->names |= H1_BIT(edits->items[i].id) & ~H1_BIT(H1_OTHER);
    }
    return RC_OK;
}

static void edits_free(struct h1_edits *edits)
{
    for (size_t i = 0; i < edits->count; i++) {
        mem_free(edits->items[i].name);
        template_free(edits->items[i].value);
    }
    MEM_FREE(edits->items);
    edits->count = 0;
}

/* ---- pages, HSTS ---- */

static int pages_new(const struct proxy_error_pages *from, struct policy_pages *pages,
                     struct err_info *err)
{
    if (from->count > PAGES_MAX) {
        return err_set(err, RC_INVALID, "%zu error pages is above %d", from->count, PAGES_MAX);
    }
    pages->items = from->count != 0 ? mem_array(from->count, sizeof(*pages->items)) : NULL;
    for (size_t i = 0; i < from->count; i++) {
        const struct proxy_error_page *page = &from->items[i];
        const char *type =
            page->content_type != NULL ? page->content_type : "text/html; charset=utf-8";
        if (page->status < 400 || page->status > 599 || page->body_len > PAGE_BYTES_MAX ||
            !h1_is_field_value(type, strlen(type))) {
            return err_set(err, RC_INVALID, "the error page of status %u is unsound", page->status);
        }
        pages->items[pages->count++] = (struct policy_page){
            .status = page->status,
            .content_type = mem_strdup(type),
            .body = mem_strndup(page->body != NULL ? page->body : "", page->body_len),
            .body_len = page->body_len,
        };
    }
    return RC_OK;
}

static void pages_free(struct policy_pages *pages)
{
    for (size_t i = 0; i < pages->count; i++) {
        mem_free(pages->items[i].content_type);
        mem_free(pages->items[i].body);
    }
    MEM_FREE(pages->items);
    pages->count = 0;
}

const struct policy_page *policy_page(const struct policy_pages *pages, unsigned status)
{
    for (size_t i = 0; i < pages->count; i++) {
        if (pages->items[i].status == status) {
            return &pages->items[i];
        }
    }
    return NULL;
}

static int hsts_new(const char *value, char **ret_line, struct err_info *err)
{
    if (value == NULL) {
        return RC_OK;
    }
    if (value[0] == '\0' || !h1_is_field_value(value, strlen(value))) {
        return err_set(err, RC_INVALID, "hsts: the value cannot stand in a header");
    }
    *ret_line = mem_printf("Strict-Transport-Security: %s\r\n", value);
    return RC_OK;
}

/* ---- of a rule ---- */

static int rate_new(struct policy *policy, const char *route, const struct proxy_rate *from,
                    struct catalog *catalog, struct err_info *err)
{
    if (from->requests == 0 && from->connections == 0) {
        return RC_OK;
    }
    bool by_header = from->key == PROXY_RATE_HEADER;
    if (by_header && (from->header == NULL || !h1_is_token(from->header, strlen(from->header)))) {
        return err_set(err, RC_INVALID, "rateLimit: no header to tell clients apart by");
    }
    policy->limiter = limiter_of(catalog);
    /* All that the limit is made of: a change of anything else keeps what was counted. */
    char *id =
        mem_printf("rate %s %u %u %u %u %d %s", route, from->requests, from->window_ms, from->burst,
                   from->connections, (int)from->key, by_header ? from->header : "");
    struct policy_rate *rate = mem_new(sizeof(*rate));
    policy->rate = rate;
    limit_init(&rate->limit, limit_id(policy->limiter, id, strlen(id)), from->requests,
               from->window_ms, from->burst, from->connections);
    mem_free(id);
    rate->key = from->key;
    if (by_header) {
        rate->header = mem_strdup(from->header);
        rate->header_len = strlen(from->header);
        for (char *c = rate->header; *c != '\0'; c++) {
            *c = *c >= 'A' && *c <= 'Z' ? (char)(*c | 0x20) : *c;
        }
    }
    return RC_OK;
}

static void at_once_new(struct policy *policy, const char *route, uint32_t max,
                        struct catalog *catalog)
{
    if (max != 0) {
        policy->limiter = limiter_of(catalog);
        char *id = mem_printf("route %s", route);
        limit_init(&policy->at_once, limit_id(policy->limiter, id, strlen(id)), 0, 0, 0, max);
        mem_free(id);
    }
}

static bool is_path(const char *path)
{
    return path == NULL || (path[0] == '/' && strpbrk(path, "?# \t\r\n") == NULL);
}

static int redirect_new(struct policy *policy, const struct proxy_redirect *from,
                        struct err_info *err)
{
    if (from == NULL) {
        return RC_OK;
    }
    if (!is_path(from->replace_path) || !is_path(from->replace_prefix) || from->status < 300 ||
        from->status > 399 ||
        (from->host != NULL && (from->host[0] == '\0' || strpbrk(from->host, "/?#@ \t\r\n")))) {
        return err_set(err, RC_INVALID, "redirect: leads to no sound address");
    }
    policy->redirect = mem_new(sizeof(*policy->redirect));
    *policy->redirect = (struct policy_redirect){
        .scheme = from->scheme,
        .host = copy(from->host),
        .port = from->port,
        .replace_prefix = copy(from->replace_prefix),
        .replace_path = copy(from->replace_path),
        .status = from->status,
    };
    return RC_OK;
}

static int rewrite_new(struct policy *policy, const struct proxy_rewrite *from,
                       struct err_info *err)
{
    if (from == NULL) {
        return RC_OK;
    }
    if (!is_path(from->replace_path) || !is_path(from->replace_prefix) ||
        (from->host != NULL && (from->host[0] == '\0' || strpbrk(from->host, "/?#@ \t\r\n")))) {
        return err_set(err, RC_INVALID, "rewrite: leads to no sound path or host");
    }
    policy->rewrite = mem_new(sizeof(*policy->rewrite));
    *policy->rewrite = (struct policy_rewrite){
        .replace_prefix = copy(from->replace_prefix),
        .replace_path = copy(from->replace_path),
        .host = copy(from->host),
        .host_len = from->host != NULL ? strlen(from->host) : 0,
    };
    return RC_OK;
}

static int policy_fill(struct policy *policy, struct catalog *catalog, const char *route,
                       const struct proxy_policy *from, struct err_info *err)
{
    policy->body_bytes_max = from->body_bytes_max;
    policy->access_log_off = from->access_log_off;
    policy->captures = captures_new(&from->captures);
    at_once_new(policy, route, from->connections_max, catalog);
    int rc = networks("allowFrom", &from->allow_from, &policy->allow, err);
    rc = rc != RC_OK ? rc : networks("denyFrom", &from->deny_from, &policy->deny, err);
    rc = rc != RC_OK ? rc : rate_new(policy, route, &from->rate, catalog, err);
    rc = rc != RC_OK ? rc : redirect_new(policy, from->redirect, err);
    rc = rc != RC_OK ? rc : rewrite_new(policy, from->rewrite, err);
    rc = rc != RC_OK ? rc : edits_new(&from->request, TEMPLATE_IN_REQUEST, &policy->request, err);
    rc =
        rc != RC_OK ? rc : edits_new(&from->response, TEMPLATE_IN_RESPONSE, &policy->response, err);
    rc = rc != RC_OK ? rc : policy_keeps_init(&policy->keeps, &policy->response, err);
    rc = rc != RC_OK ? rc : hsts_new(from->hsts, &policy->hsts, err);
    if (rc == RC_OK && from->cors != NULL) {
        rc = cors_new(from->cors, &policy->cors, err);
    }
    return rc != RC_OK ? rc : pages_new(&from->error_pages, &policy->pages, err);
}

/* Nothing of what is compiled here. */
static bool asks_for_nothing(const struct policy *policy)
{
    return policy->allow == NULL && policy->deny == NULL && policy->limiter == NULL &&
           policy->body_bytes_max == 0 && policy->redirect == NULL && policy->rewrite == NULL &&
           policy->request.count == 0 && policy->response.count == 0 && policy->hsts == NULL &&
           policy->cors == NULL && policy->pages.count == 0 && !policy->access_log_off &&
           policy->captures == NULL;
}

int policy_new(struct catalog *catalog, const char *route, const struct proxy_policy *from,
               struct policy **ret_policy, struct err_info *err)
{
    *ret_policy = NULL;
    if (from == NULL) {
        return RC_OK;
    }
    struct policy *policy = mem_new(sizeof(*policy));
    int rc = policy_fill(policy, catalog, route, from, err);
    if (rc != RC_OK || asks_for_nothing(policy)) {
        policy_free(policy);
        return rc != RC_OK ? err_prefix(err, rc, "route %s", route) : RC_OK;
    }
    *ret_policy = policy;
    return RC_OK;
}

void policy_free(struct policy *policy)
{
    if (policy == NULL) {
        return;
    }
    cidr_set_free(policy->allow);
    cidr_set_free(policy->deny);
    if (policy->rate != NULL) {
        mem_free(policy->rate->header);
        mem_free(policy->rate);
    }
    if (policy->redirect != NULL) {
        mem_free(policy->redirect->host);
        mem_free(policy->redirect->replace_prefix);
        mem_free(policy->redirect->replace_path);
        mem_free(policy->redirect);
    }
    if (policy->rewrite != NULL) {
        mem_free(policy->rewrite->replace_prefix);
        mem_free(policy->rewrite->replace_path);
        mem_free(policy->rewrite->host);
        mem_free(policy->rewrite);
    }
    policy_keeps_deinit(&policy->keeps);
    edits_free(&policy->request);
    edits_free(&policy->response);
    mem_free(policy->hsts);
    cors_free(policy->cors);
    pages_free(&policy->pages);
    mem_free(policy->captures);
    mem_free(policy);
}

bool policy_allows(const struct policy *policy, const struct addr *client)
{
    if (policy == NULL) {
        return true;
    }
    return !cidr_set_has(policy->deny, client) &&
           (policy->allow == NULL || cidr_set_has(policy->allow, client));
}

/* ---- of Settings ---- */

static int unique_id_new(struct policy_base *base, const struct proxy_defaults *from,
                         struct err_info *err)
{
    const char *header = from->unique_id_header;
    if (header == NULL) {
        return RC_OK;
    }
    size_t len = strlen(header);
    if (!h1_is_token(header, len) || len > ID_HEADER_MAX || h1_edit_refuses(header, len)) {
        return err_set(err, RC_INVALID, "uniqueId: header %.60s cannot be set", header);
    }
    base->id_header = mem_strdup(header);
    if (from->unique_id_format == NULL) {
        return RC_OK;
    }
    int rc = template_new(from->unique_id_format, TEMPLATE_IN_ID, &base->id_format, err);
    return rc != RC_OK ? err_prefix(err, rc, "uniqueId.format") : RC_OK;
}

static int base_fill(struct policy_base *base, const struct proxy_defaults *from,
                     struct catalog *catalog, struct err_info *err)
{
    if (from->connections_per_client_max != 0) {
        base->limiter = limiter_of(catalog);
        limit_init(&base->per_client, limit_id(base->limiter, "client", 6), 0, 0, 0,
                   from->connections_per_client_max);
    }
    int rc = networks("trustedProxies", &from->trusted_proxies, &base->trusted, err);
    rc = rc != RC_OK ? rc : unique_id_new(base, from, err);
    rc = rc != RC_OK ? rc : edits_new(&from->request, TEMPLATE_IN_REQUEST, &base->request, err);
    rc = rc != RC_OK ? rc : edits_new(&from->response, TEMPLATE_IN_RESPONSE, &base->response, err);
    rc = rc != RC_OK ? rc : policy_keeps_init(&base->keeps, &base->response, err);
    rc = rc != RC_OK ? rc : hsts_new(from->hsts, &base->hsts, err);
    return rc != RC_OK ? rc : pages_new(&from->error_pages, &base->pages, err);
}

int policy_base_new(const struct proxy_defaults *defaults, struct catalog *catalog,
                    struct policy_base **ret_base, struct err_info *err)
{
    *ret_base = NULL;
    struct policy_base *base = mem_new(sizeof(*base));
    refcnt_init(&base->refs);
    int rc = base_fill(base, defaults, catalog, err);
    base->changes_requests =
        base->trusted != NULL || base->id_header != NULL || base->request.count != 0;
    bool asks = base->changes_requests || base->limiter != NULL || base->response.count != 0 ||
                base->hsts != NULL || base->pages.count != 0;
    if (rc != RC_OK || !asks) {
        policy_base_unref(base);
        return rc != RC_OK ? err_prefix(err, rc, "settings") : RC_OK;
    }
    *ret_base = base;
    return RC_OK;
}

bool policy_client_place(const struct policy_base *base, const struct addr *peer,
                         struct limiter_place **ret_place)
{
    *ret_place = NULL;
    if (base == NULL || base->limiter == NULL || cidr_set_has(base->trusted, peer)) {
        return true;
    }
    uint64_t key = limiter_key_addr(base->limiter, &base->per_client, peer);
    *ret_place = limiter_enter(base->limiter, &base->per_client, key);
    return *ret_place != NULL;
}

void policy_base_ref(struct policy_base *base)
{
    refcnt_get(&base->refs);
}

void policy_base_unref(struct policy_base *base)
{
    if (base == NULL || !refcnt_put(&base->refs)) {
        return;
    }
    cidr_set_free(base->trusted);
    mem_free(base->id_header);
    template_free(base->id_format);
    policy_keeps_deinit(&base->keeps);
    edits_free(&base->request);
    edits_free(&base->response);
    mem_free(base->hsts);
    pages_free(&base->pages);
    mem_free(base);
}
