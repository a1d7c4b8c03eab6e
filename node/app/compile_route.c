/*
 * Field by field, as in compile.c; see compile_route.h.
 */
#include "node/app/compile_route.h"

#include "node/app/token.h"
#include "node/base/mem.h"
#include "proto/validate.h"

#include <string.h>

/* ---- memory ---- */

static void *keep(struct compile_store *store, void *item)
{
    store->items = mem_grow(store->items, store->count + 1, sizeof(*store->items));
    store->items[store->count++] = item;
    return item;
}

void *compile_make(struct compile_store *store, size_t count, size_t size)
{
    return keep(store, mem_array(MAX(count, (size_t)1), size));
}

char *compile_own(struct compile_store *store, char *text)
{
    return keep(store, text);
}

void compile_store_free(struct compile_store *store)
{
    for (size_t i = 0; i < store->count; i++) {
        mem_free(store->items[i]);
    }
    MEM_FREE(store->items);
    store->count = 0;
}

/* ---- parts ---- */

static uint32_t ms_of(const Skein__Duration *duration, uint32_t fallback)
{
    return (uint32_t)MIN(duration_ms(duration, fallback), (uint64_t)UINT32_MAX);
}

static uint32_t seconds_of(const Skein__Duration *duration)
{
    return (uint32_t)MIN(duration_ms(duration, 0) / 1000, (uint64_t)UINT32_MAX);
}

/* As hosts are compared and written; what has no such form stays for the data plane to refuse. */
static const char *host_of(const char *host, struct compile_store *store)
{
    if (host == NULL) {
        return NULL;
    }
    char *out = compile_make(store, NAME_LONG_MAX_BYTES + 1, 1);
    return host_canonical(host, out, NULL) == RC_OK ? out : host;
}

struct proxy_texts compile_texts(char *const *items, size_t count)
{
    return (struct proxy_texts){.items = (const char *const *)items, .count = count};
}

struct proxy_rate compile_rate(const Skein__RateLimit *limit)
{
    static const enum proxy_rate_key keys[] = {
        [SKEIN__RATE_LIMIT__KEY__ClientAddress] = PROXY_RATE_CLIENT,
        [SKEIN__RATE_LIMIT__KEY__Header] = PROXY_RATE_HEADER,
        [SKEIN__RATE_LIMIT__KEY__Route] = PROXY_RATE_ROUTE,
    };
    if (limit == NULL) {
        return (struct proxy_rate){0};
    }
    bool known = limit->has_key && (size_t)limit->key < ARRAY_LEN(keys);
    return (struct proxy_rate){
        .requests = limit->has_requests ? limit->requests : 0,
        .window_ms = ms_of(limit->window, 1000),
        .burst = limit->has_burst ? limit->burst : 0,
        .key = known ? keys[limit->key] : PROXY_RATE_CLIENT,
        .header = limit->header,
        .connections = limit->has_connections ? limit->connections : 0,
    };
}

static struct proxy_edits compile_edits(Skein__HeaderAction *const *actions, size_t count,
                                        struct compile_store *store)
{
    if (count == 0) {
        return (struct proxy_edits){0};
    }
    struct proxy_edit *edits = compile_make(store, count, sizeof(*edits));
    for (size_t i = 0; i < count; i++) {
        const Skein__HeaderAction *action = actions[i];
        edits[i] = (struct proxy_edit){.name = action->name, .value = action->value};
        if (action->has_action && action->action == SKEIN__HEADER_ACTION__ACTION__Add) {
            edits[i].action = PROXY_EDIT_ADD;
        } else if (action->has_action && action->action == SKEIN__HEADER_ACTION__ACTION__Delete) {
            edits[i].action = PROXY_EDIT_DELETE;
        }
    }
    return (struct proxy_edits){.items = edits, .count = count};
}

static struct proxy_error_pages compile_pages(Skein__ErrorPage *const *from, size_t count,
                                              struct compile_store *store)
{
    if (count == 0) {
        return (struct proxy_error_pages){0};
    }
    struct proxy_error_page *pages = compile_make(store, count, sizeof(*pages));
    for (size_t i = 0; i < count; i++) {
        pages[i] = (struct proxy_error_page){
            .status = (uint16_t)from[i]->status,
            .content_type = from[i]->content_type,
            .body = from[i]->body,
            .body_len = from[i]->body != NULL ? strlen(from[i]->body) : 0,
        };
    }
    return (struct proxy_error_pages){.items = pages, .count = count};
}

static const char *compile_hsts(const Skein__Hsts *hsts, struct compile_store *store)
{
    if (hsts == NULL) {
        return NULL;
    }
    return compile_own(store, mem_printf("max-age=%u%s%s", seconds_of(hsts->max_age),
                                         hsts->include_subdomains ? "; includeSubDomains" : "",
                                         hsts->preload ? "; preload" : ""));
}

static const struct proxy_redirect *compile_redirect(const Skein__Redirect *from,
                                                     struct compile_store *store)
{
    if (from == NULL) {
        return NULL;
    }
    struct proxy_redirect *redirect = compile_make(store, 1, sizeof(*redirect));
    *redirect = (struct proxy_redirect){
        .host = host_of(from->host, store),
        .port = from->has_port ? (uint16_t)from->port : 0,
        .replace_prefix = from->replace_prefix,
        .replace_path = from->replace_path,
        .status = from->has_status ? (uint16_t)from->status : 302,
    };
    if (from->has_scheme && from->scheme == SKEIN__REDIRECT__SCHEME__Http) {
        redirect->scheme = PROXY_SCHEME_HTTP;
    } else if (from->has_scheme && from->scheme == SKEIN__REDIRECT__SCHEME__Https) {
        redirect->scheme = PROXY_SCHEME_HTTPS;
    }
    return redirect;
}

static const struct proxy_rewrite *compile_rewrite(const Skein__Rewrite *from,
                                                   struct compile_store *store)
{
    if (from == NULL) {
        return NULL;
    }
    struct proxy_rewrite *rewrite = compile_make(store, 1, sizeof(*rewrite));
    *rewrite = (struct proxy_rewrite){
        .replace_prefix = from->replace_prefix,
        .replace_path = from->replace_path,
        .host = host_of(from->host, store),
    };
    return rewrite;
}

static const struct proxy_cors *compile_cors(const Skein__Cors *from, struct compile_store *store)
{
    if (from == NULL) {
        return NULL;
    }
    struct proxy_cors *cors = compile_make(store, 1, sizeof(*cors));
    *cors = (struct proxy_cors){
        .origins = compile_texts(from->allow_origins, from->n_allow_origins),
        .methods = compile_texts(from->allow_methods, from->n_allow_methods),
        .headers = compile_texts(from->allow_headers, from->n_allow_headers),
        .expose = compile_texts(from->expose_headers, from->n_expose_headers),
        .credentials = from->has_allow_credentials && from->allow_credentials,
        .max_age_s = seconds_of(from->max_age),
    };
    return cors;
}

/* A cookie's name is the route's own unless it is given, so that two routes of a host do not write
 * over each other's. */
static const struct proxy_sticky *compile_sticky(const char *id, const Skein__Sticky *from,
                                                 struct compile_store *store)
{
    static const enum proxy_same_site sites[] = {
        [SKEIN__STICKY__SAME_SITE__Lax] = PROXY_SAME_SITE_LAX,
        [SKEIN__STICKY__SAME_SITE__Strict] = PROXY_SAME_SITE_STRICT,
        [SKEIN__STICKY__SAME_SITE__None] = PROXY_SAME_SITE_NONE,
    };
    if (from == NULL || (from->has_enabled && !from->enabled)) {
        return NULL;
    }
    struct proxy_sticky *sticky = compile_make(store, 1, sizeof(*sticky));
    sticky->cookie = from->cookie;
    if (from->cookie == NULL) {
        char *name = mem_new(TOKEN_COOKIE_NAME_LEN + 1);
        token_cookie_name(id, name);
        sticky->cookie = compile_own(store, name);
    }
    if (from->has_same_site && (size_t)from->same_site < ARRAY_LEN(sites)) {
        sticky->same_site = sites[from->same_site];
    }
    sticky->secure_set = from->has_secure;
    sticky->secure = from->has_secure && from->secure;
    sticky->max_age_s = seconds_of(from->max_age);
    sticky->path = from->path != NULL ? from->path : "/";
    return sticky;
}

static struct proxy_retries compile_retries(const Skein__Retries *from)
{
    static const unsigned bits[] = {
        [SKEIN__RETRIES__ON__ConnectFailure] = PROXY_RETRY_CONNECT,
        [SKEIN__RETRIES__ON__Reset] = PROXY_RETRY_RESET,
        [SKEIN__RETRIES__ON__Timeout] = PROXY_RETRY_TIMEOUT,
        [SKEIN__RETRIES__ON__Status] = PROXY_RETRY_STATUS,
    };
    struct proxy_retries retries = {0};
    if (from == NULL) {
        return retries;
    }
    retries.set = true;
    retries.attempts = from->has_attempts ? from->attempts : 2;
    retries.on = from->n_on == 0 ? PROXY_RETRY_CONNECT | PROXY_RETRY_RESET : 0;
    for (size_t i = 0; i < from->n_on; i++) {
        retries.on |= (size_t)from->on[i] < ARRAY_LEN(bits) ? bits[from->on[i]] : 0;
    }
    size_t count = MIN(from->n_statuses, (size_t)PROXY_RETRY_STATUSES_MAX);
    for (size_t i = 0; i < count; i++) {
        retries.statuses[retries.status_count++] = (uint16_t)from->statuses[i];
    }
    retries.per_try_ms = ms_of(from->per_try, 0);
    return retries;
}

static const struct proxy_capture *compile_capture_list(Skein__Capture *const *from, size_t count,
                                                        struct compile_store *store)
{
    struct proxy_capture *captures = compile_make(store, count, sizeof(*captures));
    for (size_t i = 0; i < count; i++) {
        captures[i] = (struct proxy_capture){
            .name = from[i]->name,
            .max_length = from[i]->has_max_length ? from[i]->max_length : 256,
        };
    }
    return captures;
}

static struct proxy_captures compile_captures(const Skein__Captures *from,
                                              struct compile_store *store)
{
    if (from == NULL) {
        return (struct proxy_captures){0};
    }
    return (struct proxy_captures){
        .request = compile_capture_list(from->request, from->n_request, store),
        .request_count = from->n_request,
        .response = compile_capture_list(from->response, from->n_response, store),
        .response_count = from->n_response,
        .cookies = compile_capture_list(from->cookies, from->n_cookies, store),
        .cookie_count = from->n_cookies,
    };
}

/* ---- together ---- */

static bool asks_for_anything(const Skein__RouteSpec *spec)
{
    return spec->n_allow_from != 0 || spec->n_deny_from != 0 || spec->rate_limit != NULL ||
           spec->limits != NULL || spec->redirect != NULL || spec->rewrite != NULL ||
           spec->headers != NULL || spec->hsts != NULL || spec->cors != NULL ||
           spec->sticky != NULL || spec->retries != NULL || spec->n_error_pages != 0 ||
           spec->has_access_log || spec->captures != NULL;
}

const struct proxy_policy *compile_policy(const char *id, const Skein__RouteSpec *spec,
                                          struct compile_store *store)
{
    if (!asks_for_anything(spec)) {
        return NULL;
    }
    struct proxy_policy *policy = compile_make(store, 1, sizeof(*policy));
    policy->allow_from = compile_texts(spec->allow_from, spec->n_allow_from);
    policy->deny_from = compile_texts(spec->deny_from, spec->n_deny_from);
    policy->rate = compile_rate(spec->rate_limit);
    if (spec->limits != NULL) {
        /* An explicit 0 lifts the limit of Settings. */
        uint64_t bytes = spec->limits->body_bytes != 0 ? spec->limits->body_bytes : UINT64_MAX;
        policy->body_bytes_max = spec->limits->has_body_bytes ? bytes : 0;
        policy->connections_max = spec->limits->has_connections ? spec->limits->connections : 0;
    }
    policy->redirect = compile_redirect(spec->redirect, store);
    policy->rewrite = compile_rewrite(spec->rewrite, store);
    if (spec->headers != NULL) {
        policy->request = compile_edits(spec->headers->request, spec->headers->n_request, store);
        policy->response = compile_edits(spec->headers->response, spec->headers->n_response, store);
    }
    policy->hsts = compile_hsts(spec->hsts, store);
    policy->cors = compile_cors(spec->cors, store);
    policy->sticky = compile_sticky(id, spec->sticky, store);
    policy->retries = compile_retries(spec->retries);
    policy->error_pages = compile_pages(spec->error_pages, spec->n_error_pages, store);
    policy->access_log_off = spec->has_access_log && !spec->access_log;
    policy->captures = compile_captures(spec->captures, store);
    return policy;
}

void compile_settings(const Skein__SettingsSpec *spec, struct compile_store *store,
                      struct proxy_defaults *defaults)
{
    if (spec == NULL) {
        return;
    }
    defaults->trusted_proxies = compile_texts(spec->trusted_proxies, spec->n_trusted_proxies);
    if (spec->unique_id != NULL) {
        defaults->unique_id_header = spec->unique_id->header;
        defaults->unique_id_format = spec->unique_id->format;
    }
    if (spec->headers != NULL) {
        defaults->request = compile_edits(spec->headers->request, spec->headers->n_request, store);
        defaults->response =
            compile_edits(spec->headers->response, spec->headers->n_response, store);
    }
    if (spec->limits != NULL && spec->limits->has_connections_per_client) {
        defaults->connections_per_client_max = spec->limits->connections_per_client;
    }
    defaults->hsts = compile_hsts(spec->hsts, store);
    defaults->error_pages = compile_pages(spec->error_pages, spec->n_error_pages, store);
    defaults->captures = compile_captures(spec->captures, store);
    defaults->retries = compile_retries(spec->retries);
    defaults->ignore_empty = spec->has_empty_requests &&
                             spec->empty_requests == SKEIN__SETTINGS_SPEC__EMPTY_REQUESTS__Ignore;
    defaults->continue_closed =
        spec->has_closed_client &&
        spec->closed_client == SKEIN__SETTINGS_SPEC__CLOSED_CLIENT__Continue;
}
