/*
 * Checks of the messages that routes, backends and Settings share. See checks.h.
 */
#include "proto/checks.h"

#include "node/base/mem.h"
#include "proto/scalar.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

void check_timeouts(struct faults *faults, const Skein__Timeouts *timeouts, bool settings)
{
    if (timeouts == NULL) {
        return;
    }
    const struct {
        const char *name;
        const Skein__Duration *value;
        bool settings_only;
    } all[] = {
        {"connect", timeouts->connect, false},
        {"client", timeouts->client, false},
        {"server", timeouts->server, false},
        {"tunnel", timeouts->tunnel, false},
        {"request", timeouts->request, false},
        {"queue", timeouts->queue, false},
        {"clientFin", timeouts->client_fin, false},
        {"serverFin", timeouts->server_fin, false},
        {"clientHeader", timeouts->client_header, true},
        {"keepAlive", timeouts->keep_alive, true},
        {"tlsInspect", timeouts->tls_inspect, true},
    };
    size_t mark = faults_enter(faults, "timeouts");
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        if (all[i].settings_only && !settings && all[i].value != NULL) {
            fault_field(faults, all[i].name,
                        "applies before the route is known; set it in Settings");
            continue;
        }
        check_duration(faults, all[i].name, all[i].value, 1, TIMEOUT_MS_MAX);
    }
    faults_leave(faults, mark);
}

/* Headers that frame the message, name the host or bind clients are not for rules to change. */
static const struct {
    const char *name;
    const char *why;
} reserved_headers[] = {
    {"Strict-Transport-Security", "; use hsts"},
    {"Host", "; use rewrite.host"},
    {"Cookie", ""},
    {"Set-Cookie", "; use sticky for affinity"},
    {"Proxy", ""},
    {"Connection", ""},
    {"Content-Length", ""},
    {"Expect", ""},
    {"HTTP2-Settings", ""},
    {"Keep-Alive", ""},
    {"Proxy-Connection", ""},
    {"TE", ""},
    {"Trailer", ""},
    {"Transfer-Encoding", ""},
    {"Upgrade", ""},
};

void check_header_name(struct faults *faults, const char *field, const char *name)
{
    if (name == NULL || name[0] == '\0') {
        fault_field(faults, field, "is missing; wants the name of a header");
        return;
    }
    check_token(faults, field, name, "header name");
    for (size_t i = 0; i < ARRAY_LEN(reserved_headers); i++) {
        if (strcasecmp(name, reserved_headers[i].name) == 0) {
            fault_field(faults, field, "%s cannot be changed%s", name, reserved_headers[i].why);
        }
    }
}

/* RFC 9110 5.5: no control bytes but tab, no blanks at the ends. */
static void check_header_value(struct faults *faults, const char *field, const char *value)
{
    size_t len = strlen(value);
    if (len > HEADER_VALUE_MAX) {
        fault_field(faults, field, "is %zu bytes long; at most %d are accepted", len,
                    HEADER_VALUE_MAX);
        return;
    }
    for (size_t i = 0; i < len; i++) {
        if (iscntrl((unsigned char)value[i]) && value[i] != '\t') {
            fault_field(faults, field, "has the control byte 0x%02X", (unsigned char)value[i]);
            return;
        }
    }
    if (len != 0 && (strchr(" \t", value[0]) != NULL || strchr(" \t", value[len - 1]) != NULL)) {
        fault_field(faults, field, "starts or ends with a blank");
    }
}

void check_template(struct faults *faults, const char *field, const char *text,
                    enum template_place place)
{
    struct err_info err;
    if (text != NULL && template_check(text, place, &err) != RC_OK) {
        fault_field(faults, field, "%s", err.text);
    }
}

static void check_header_list(struct faults *faults, const char *field,
                              Skein__HeaderAction *const *actions, size_t count,
                              enum template_place place)
{
    check_count(faults, field, count, HEADER_ACTIONS_MAX);
    for (size_t i = 0; i < MIN(count, (size_t)HEADER_ACTIONS_MAX); i++) {
        const Skein__HeaderAction *action = actions[i];
        size_t item = faults_enter_item(faults, field, i);
        check_header_name(faults, "name", action->name);
        if (action->has_action && action->action == SKEIN__HEADER_ACTION__ACTION__Delete) {
            check_absent(faults, "value", action->value != NULL, "with action: Delete");
        } else if (action->value == NULL) {
            fault_field(faults, "value", "is missing; wants the value of the header");
        } else {
            check_header_value(faults, "value", action->value);
            check_template(faults, "value", action->value, place);
        }
        faults_leave(faults, item);
    }
}

void check_headers(struct faults *faults, const Skein__HeaderActions *headers)
{
    if (headers == NULL) {
        return;
    }
    size_t mark = faults_enter(faults, "headers");
    check_header_list(faults, "request", headers->request, headers->n_request, TEMPLATE_IN_REQUEST);
    check_header_list(faults, "response", headers->response, headers->n_response,
                      TEMPLATE_IN_RESPONSE);
    faults_leave(faults, mark);
}

void check_hsts(struct faults *faults, const Skein__Hsts *hsts)
{
    if (hsts == NULL) {
        return;
    }
    size_t mark = faults_enter(faults, "hsts");
    if (hsts->max_age == NULL) {
        fault_field(faults, "maxAge", "is missing; wants a duration such as 365d");
    }
    check_duration(faults, "maxAge", hsts->max_age, 0, 3650ULL * 86400000);
    if (hsts->max_age != NULL && hsts->max_age->ms % 1000 != 0) {
        fault_field(faults, "maxAge", "wants whole seconds");
    }
    faults_leave(faults, mark);
}

static void check_capture_list(struct faults *faults, const char *field,
                               Skein__Capture *const *captures, size_t count)
{
    check_count(faults, field, count, CAPTURES_MAX);
    for (size_t i = 0; i < MIN(count, (size_t)CAPTURES_MAX); i++) {
        size_t item = faults_enter_item(faults, field, i);
        if (captures[i]->name == NULL) {
            fault_field(faults, "name", "is missing; wants a name");
        }
        check_token(faults, "name", captures[i]->name, "name of a header or cookie");
        check_u32(faults, "maxLength", captures[i]->has_max_length, captures[i]->max_length, 1,
                  4096);
        faults_leave(faults, item);
    }
}

void check_captures(struct faults *faults, const Skein__Captures *captures)
{
    if (captures == NULL) {
        return;
    }
    size_t mark = faults_enter(faults, "captures");
    check_capture_list(faults, "request", captures->request, captures->n_request);
    check_capture_list(faults, "response", captures->response, captures->n_response);
    check_capture_list(faults, "cookies", captures->cookies, captures->n_cookies);
    faults_leave(faults, mark);
}

void check_error_pages(struct faults *faults, Skein__ErrorPage *const *pages, size_t count)
{
    check_count(faults, "errorPages", count, ERROR_PAGES_MAX);
    for (size_t i = 0; i < MIN(count, (size_t)ERROR_PAGES_MAX); i++) {
        const Skein__ErrorPage *page = pages[i];
        size_t item = faults_enter_item(faults, "errorPages", i);
        if (!page->has_status) {
            fault_field(faults, "status", "is missing; wants 400 to 599");
        }
        check_u32(faults, "status", page->has_status, page->status, 400, 599);
        for (size_t j = 0; j < i; j++) {
            if (page->has_status && pages[j]->has_status && pages[j]->status == page->status) {
                fault_field(faults, "status", "%u has a page already", page->status);
                break;
            }
        }
        if (page->body == NULL) {
            fault_field(faults, "body", "is missing; wants text");
        }
        check_people_text(faults, "body", page->body, 32 * 1024);
        if (page->content_type != NULL) {
            size_t len = strcspn(page->content_type, "\r\n\t");
            if (page->content_type[len] != '\0' || strchr(page->content_type, '/') == NULL) {
                fault_field(faults, "contentType", "is no media type such as text/html");
            }
            check_people_text(faults, "contentType", page->content_type, 256);
        }
        faults_leave(faults, item);
    }
}

static bool is_mime_type(const char *text)
{
    char type[128];
    const char *slash = strchr(text, '/');
    size_t len = slash != NULL ? (size_t)(slash - text) : 0;
    if (len == 0 || len >= sizeof type) {
        return false;
    }
    memcpy(type, text, len);
    type[len] = '\0';
    return is_token(type) && is_token(slash + 1);
}

void check_compression(struct faults *faults, const Skein__Compression *compression)
{
    if (compression == NULL) {
        return;
    }
    size_t mark = faults_enter(faults, "compression");
    check_count(faults, "mimeTypes", compression->n_mime_types, 64);
    for (size_t i = 0; i < MIN(compression->n_mime_types, (size_t)64); i++) {
        if (!is_mime_type(compression->mime_types[i])) {
            size_t item = faults_enter_item(faults, "mimeTypes", i);
            fault_add(faults, "\"%.60s\" is no media type such as text/html",
                      compression->mime_types[i]);
            faults_leave(faults, item);
        }
    }
    faults_leave(faults, mark);
}

void check_retries(struct faults *faults, const Skein__Retries *retries)
{
    if (retries == NULL) {
        return;
    }
    size_t mark = faults_enter(faults, "retries");
    bool on_status = false;
    check_u32(faults, "attempts", retries->has_attempts, retries->attempts, 0, 10);
    check_count(faults, "on", retries->n_on, 8);
    for (size_t i = 0; i < retries->n_on; i++) {
        on_status = on_status || retries->on[i] == SKEIN__RETRIES__ON__Status;
    }
    if (on_status && retries->n_statuses == 0) {
        fault_field(faults, "statuses", "is missing; \"on\" has Status");
    }
    check_absent(faults, "statuses", !on_status && retries->n_statuses != 0,
                 "unless \"on\" has Status");
    check_count(faults, "statuses", retries->n_statuses, 16);
    for (size_t i = 0; i < MIN(retries->n_statuses, (size_t)16); i++) {
        size_t item = faults_enter_item(faults, "statuses", i);
        check_u32(faults, NULL, true, retries->statuses[i], 400, 599);
        faults_leave(faults, item);
    }
    check_duration(faults, "perTry", retries->per_try, 1, TIMEOUT_MS_MAX);
    faults_leave(faults, mark);
}

void check_client_auth(struct faults *faults, const Skein__ClientAuth *auth)
{
    if (auth == NULL) {
        return;
    }
    size_t mark = faults_enter(faults, "clientAuth");
    if (!auth->has_policy) {
        fault_field(faults, "policy", "is missing; wants Off, Optional or Required");
    } else if (auth->policy != SKEIN__CLIENT_AUTH__POLICY__Off && auth->ca == NULL) {
        fault_field(faults, "ca", "is missing; it says whose certificates are accepted");
    }
    check_pem(faults, "ca", auth->ca, "CERTIFICATE");
    check_pem(faults, "crl", auth->crl, "X509 CRL");
    check_count(faults, "subjects", auth->n_subjects, 64);
    for (size_t i = 0; i < MIN(auth->n_subjects, (size_t)64); i++) {
        size_t item = faults_enter_item(faults, "subjects", i);
        check_people_text(faults, NULL, auth->subjects[i], 1024);
        faults_leave(faults, item);
    }
    faults_leave(faults, mark);
}

/* "200" or "200-399". */
static bool is_status_range(const char *text)
{
    uint64_t low = 0;
    uint64_t high = 0;
    size_t len = strcspn(text, "-");
    if (!u64_parse(text, len, &low)) {
        return false;
    }
    high = low;
    if (text[len] == '-' && !u64_parse(text + len + 1, strlen(text + len + 1), &high)) {
        return false;
    }
    return low >= 100 && low <= high && high <= 599;
}

/* A path as a route has it, and a query after it. */
static void check_health_path(struct faults *faults, const char *path)
{
    const char *query = path != NULL ? strchr(path, '?') : NULL;
    if (query == NULL) {
        check_path(faults, "path", path);
        return;
    }
    char *before = mem_strndup(path, (size_t)(query - path));
    check_path(faults, "path", before);
    mem_free(before);
    for (const char *at = query; *at != '\0'; at++) {
        if (*at <= ' ' || *at > '~' || *at == '#') {
            fault_field(faults, "path", "has the byte 0x%02X in its query; write it as %%%02X",
                        (unsigned char)*at, (unsigned char)*at);
            return;
        }
    }
    if (strlen(path) > PATH_MAX_BYTES) {
        fault_field(faults, "path", "is %zu bytes long; at most %d are accepted", strlen(path),
                    PATH_MAX_BYTES);
    }
}

static void check_health_body(struct faults *faults, const Skein__HealthCheck *health)
{
    if (health->body == NULL) {
        return;
    }
    size_t len = strlen(health->body);
    check_absent(faults, "body", health->type != SKEIN__HEALTH_CHECK__TYPE__Http,
                 "unless type is Http");
    check_absent(faults, "body", health->method != NULL && strcmp(health->method, "HEAD") == 0,
                 "with method: HEAD, which has no body");
    if (len == 0 || len > HEALTH_BODY_MAX) {
        fault_field(faults, "body", "is %zu bytes long; wants 1 to %d", len, HEALTH_BODY_MAX);
    }
}

static void check_health_http(struct faults *faults, const Skein__HealthCheck *health)
{
    bool http = health->type == SKEIN__HEALTH_CHECK__TYPE__Http;
    check_absent(faults, "path", !http && health->path != NULL, "unless type is Http");
    check_absent(faults, "method", !http && health->method != NULL, "unless type is Http");
    check_absent(faults, "statuses", !http && health->n_statuses != 0, "unless type is Http");
    check_absent(faults, "headers", !http && health->n_headers != 0, "unless type is Http");
    check_absent(faults, "host",
                 health->type == SKEIN__HEALTH_CHECK__TYPE__Tcp && health->host != NULL,
                 "with type: Tcp");
    check_health_body(faults, health);
    check_health_path(faults, health->path);
    check_server_name(faults, "host", health->host);
    check_token(faults, "method", health->method, "method such as GET");
    check_count(faults, "statuses", health->n_statuses, 16);
    for (size_t i = 0; i < MIN(health->n_statuses, (size_t)16); i++) {
        if (!is_status_range(health->statuses[i])) {
            size_t item = faults_enter_item(faults, "statuses", i);
            fault_add(faults, "\"%.40s\" is no status such as 200 or 200-399", health->statuses[i]);
            faults_leave(faults, item);
        }
    }
    check_count(faults, "headers", health->n_headers, HEADER_ACTIONS_MAX);
    size_t mark = faults_enter(faults, "headers");
    for (size_t i = 0; i < MIN(health->n_headers, (size_t)HEADER_ACTIONS_MAX); i++) {
        const char *key = health->headers[i]->key != NULL ? health->headers[i]->key : "";
        size_t item = faults_enter_key(faults, key);
        check_header_name(faults, NULL, key);
        if (health->headers[i]->value != NULL) {
            check_header_value(faults, NULL, health->headers[i]->value);
        }
        faults_leave(faults, item);
    }
    faults_leave(faults, mark);
}

void check_health(struct faults *faults, const Skein__HealthCheck *health)
{
    if (health == NULL) {
        return;
    }
    size_t mark = faults_enter(faults, "healthCheck");
    if (!health->has_type) {
        fault_field(faults, "type", "is missing; wants None, Tcp, Http or Grpc");
    } else {
        check_health_http(faults, health);
        check_absent(faults, "service",
                     health->type != SKEIN__HEALTH_CHECK__TYPE__Grpc && health->service != NULL,
                     "unless type is Grpc");
    }
    check_people_text(faults, "service", health->service, 256);
    check_duration(faults, "interval", health->interval, 100, 86400000);
    check_duration(faults, "intervalDown", health->interval_down, 100, 86400000);
    check_duration(faults, "timeout", health->timeout, 10, 600000);
    check_u32(faults, "rise", health->has_rise, health->rise, 1, 100);
    check_u32(faults, "fall", health->has_fall, health->fall, 1, 100);
    check_u32(faults, "port", health->has_port, health->port, 1, 65535);
    faults_leave(faults, mark);
}
