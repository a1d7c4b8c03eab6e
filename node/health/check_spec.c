/*
 * The request of a check in two pieces around the host, and what is expected of the response.
 */
#include "node/health/check_spec.h"

#include "node/base/check.h"
#include "node/base/mem.h"

#include <string.h>
#include <strings.h>

static bool has_header(const struct check_config *config, const char *name)
{
    for (size_t i = 0; i < config->header_count; i++) {
        if (strcasecmp(config->headers[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_target(const char *text)
{
    if (text[0] != '/') {
        return false;
    }
    for (const char *at = text; *at != '\0'; at++) {
        if (*at <= ' ' || *at > '~') {
            return false;
        }
    }
    return true;
}

static int put_after_host(const struct check_config *config, const char *method, struct buf *out)
{
    (void)buf_puts(out, "\r\n");
    if (!has_header(config, "User-Agent")) {
        (void)buf_puts(out, "User-Agent: skein/" SKEIN_VERSION " (health check)\r\n");
    }
    if (strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0 || strcmp(method, "PATCH") == 0) {
        (void)buf_puts(out, "Content-Length: 0\r\n"); /* RFC 9110 8.6 */
    }
    for (size_t i = 0; i < config->header_count; i++) {
        const struct check_header *header = &config->headers[i];
        const char *value = header->value != NULL ? header->value : "";
        if (!h1_is_token(header->name, strlen(header->name)) ||
            !h1_is_field_value(value, strlen(value))) {
            return RC_INVALID;
        }
        (void)buf_printf(out, "%s: %s\r\n", header->name, value);
    }
    (void)buf_puts(out, "Connection: close\r\n\r\n");
    return out->full ? RC_INVALID : RC_OK;
}

static enum h1_method method_of(const char *method)
{
    /* Only HEAD changes how a response is read. */
    return strcmp(method, "HEAD") == 0 ? H1_HEAD : H1_GET;
}

static int compile_request(const struct check_config *config, struct check_spec *spec)
{
    const char *method = config->method != NULL ? config->method : "GET";
    const char *path = config->path != NULL ? config->path : "/";
    const char *host = config->host != NULL ? config->host : "";
    if (!h1_is_token(method, strlen(method)) || strcmp(method, "CONNECT") == 0 ||
        !is_target(path) || !h1_is_field_value(host, strlen(host))) {
        return RC_INVALID;
    }
    spec->method = method_of(method);
    spec->has_host = config->host != NULL;
    struct buf out;
    buf_init(&out, CHECK_REQUEST_BYTES_MAX);
    (void)buf_printf(&out, "%s %s HTTP/1.1\r\nHost: %s", method, path, host);
    int rc = out.full ? RC_INVALID : RC_OK;
    spec->before_host = buf_take(&out, NULL);
    buf_init(&out, CHECK_REQUEST_BYTES_MAX);
    rc = rc != RC_OK ? rc : put_after_host(config, method, &out);
    spec->after_host = buf_take(&out, NULL);
    return rc;
}

int check_spec_new(const struct check_config *config, struct check_spec **ret_spec)
{
    ASSERT(config->pace.interval_ms > 0 && config->pace.interval_down_ms > 0);
    ASSERT(config->pace.timeout_ms > 0 && config->pace.rise > 0 && config->pace.fall > 0);
    ASSERT(config->status_count <= CHECK_STATUSES_MAX && config->header_count <= CHECK_HEADERS_MAX);
    struct check_spec *spec = mem_new(sizeof(*spec));
    spec->refs = 1;
    spec->type = config->type;
    spec->pace = config->pace;
    spec->port = config->port;
    memcpy(spec->statuses, config->statuses, sizeof(spec->statuses));
    spec->status_count = config->status_count;
    if (config->status_count == 0) {
        spec->statuses[0] = (struct check_statuses){.low = 200, .high = 399};
        spec->status_count = 1;
    }
    if (config->body != NULL) {
        spec->body = mem_strdup(config->body);
        spec->body_len = strlen(config->body);
    }
    if (config->tls != NULL) {
        tls_target_ref(config->tls);
        spec->tls = config->tls;
    }
    if (config->type == CHECK_HTTP && compile_request(config, spec) != RC_OK) {
        check_spec_unref(spec);
        return RC_INVALID;
    }
    *ret_spec = spec;
    return RC_OK;
}

struct check_spec *check_spec_ref(struct check_spec *spec)
{
    spec->refs++;
    return spec;
}

void check_spec_unref(struct check_spec *spec)
{
    if (spec == NULL || --spec->refs > 0) {
        return;
    }
    mem_free(spec->before_host);
    mem_free(spec->after_host);
    mem_free(spec->body);
    tls_target_unref(spec->tls);
    mem_free(spec);
}

int check_spec_request(const struct check_spec *spec, const char *host, struct buf *out)
{
    (void)buf_puts(out, spec->before_host);
    if (!spec->has_host) {
        (void)buf_puts(out, host);
    }
    (void)buf_puts(out, spec->after_host);
    return out->full ? RC_FULL : RC_OK;
}

bool check_spec_wants_status(const struct check_spec *spec, uint16_t status)
{
    for (size_t i = 0; i < spec->status_count; i++) {
        if (status >= spec->statuses[i].low && status <= spec->statuses[i].high) {
            return true;
        }
    }
    return false;
}
