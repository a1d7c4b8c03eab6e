/*
 * CORS: fixed lines are made once, the rest depends on the Origin that came; see cors.h.
 */
#include "node/proxy/cors.h"

#include "node/base/check.h"
#include "node/base/mem.h"
#include "node/http/h1_edit.h"

#include <string.h>
#include <strings.h>

enum { CORS_LINES_MAX = 32768, CORS_ECHO_MAX = 4096 };

struct cors {
    bool any;
    bool credentials;
    char **origins;
    size_t origin_count;
    char *methods; /* the whole line; NULL: what is asked for */
    char *headers;
    char *fixed;           /* lines of every allowed response: credentials, exposed fields */
    char *fixed_preflight; /* credentials, age */
};

/* "Name: a, b\r\n", NULL for an empty list. */
static char *list_line(const char *name, const struct proxy_texts *texts)
{
    if (texts->count == 0) {
        return NULL;
    }
    struct buf line;
    buf_init(&line, CORS_LINES_MAX);
    (void)buf_printf(&line, "%s: ", name);
    for (size_t i = 0; i < texts->count; i++) {
        (void)buf_printf(&line, "%s%s", i != 0 ? ", " : "", texts->items[i]);
    }
    (void)buf_puts(&line, "\r\n");
    ASSERT(!line.full); /* lengths were checked */
    return buf_take(&line, NULL);
}

static int check_texts(const char *what, const struct proxy_texts *texts, bool tokens,
                       struct err_info *err)
{
    size_t sum = 0;
    for (size_t i = 0; i < texts->count; i++) {
        size_t len = strlen(texts->items[i]);
        bool good = tokens ? h1_is_token(texts->items[i], len)
                           : len != 0 && h1_is_field_value(texts->items[i], len);
        sum += len + 2;
        if (!good || sum > CORS_LINES_MAX - 64) {
            return err_set(err, RC_INVALID, "cors: \"%.60s\" cannot stand in %s", texts->items[i],
                           what);
        }
    }
    return RC_OK;
}

static int check(const struct proxy_cors *from, bool any, struct err_info *err)
{
    int rc = check_texts("origins", &from->origins, false, err);
    rc = rc != RC_OK ? rc : check_texts("methods", &from->methods, true, err);
    rc = rc != RC_OK ? rc : check_texts("headers", &from->headers, true, err);
    rc = rc != RC_OK ? rc : check_texts("exposed headers", &from->expose, true, err);
    if (rc == RC_OK && any && from->credentials) {
        rc = err_set(err, RC_INVALID, "cors: credentials for every origin");
    }
    return rc;
}

int cors_new(const struct proxy_cors *from, struct cors **ret_cors, struct err_info *err)
{
    bool any = false;
    for (size_t i = 0; i < from->origins.count; i++) {
        any = any || strcmp(from->origins.items[i], "*") == 0;
    }
    int rc = check(from, any, err);
    if (rc != RC_OK) {
        return rc;
    }
    struct cors *cors = mem_new(sizeof(*cors));
    cors->any = any;
    cors->credentials = from->credentials;
    cors->origins = mem_array(from->origins.count, sizeof(*cors->origins));
    for (size_t i = 0; i < from->origins.count; i++) {
        cors->origins[cors->origin_count++] = mem_strdup(from->origins.items[i]);
    }
    cors->methods = list_line("Access-Control-Allow-Methods", &from->methods);
    cors->headers = list_line("Access-Control-Allow-Headers", &from->headers);
    const char *credentials = from->credentials ? "Access-Control-Allow-Credentials: true\r\n" : "";
    char *expose = list_line("Access-Control-Expose-Headers", &from->expose);
    cors->fixed = mem_printf("%s%s", credentials, expose != NULL ? expose : "");
    mem_free(expose);
    cors->fixed_preflight = from->max_age_s != 0 ? mem_printf("%sAccess-Control-Max-Age: %u\r\n",
                                                              credentials, from->max_age_s)
                                                 : mem_strdup(credentials);
    *ret_cors = cors;
    return RC_OK;
}

void cors_free(struct cors *cors)
{
    if (cors == NULL) {
        return;
    }
    for (size_t i = 0; i < cors->origin_count; i++) {
        mem_free(cors->origins[i]);
    }
    mem_free(cors->origins);
    mem_free(cors->methods);
    mem_free(cors->headers);
    mem_free(cors->fixed);
    mem_free(cors->fixed_preflight);
    mem_free(cors);
}

#define METHOD_FIELD  "access-control-request-method"
#define HEADERS_FIELD "access-control-request-headers"

bool cors_is_preflight(const struct h1_head *request, const char *bytes)
{
    return request->method_id == H1_OPTIONS && h1_find(request, H1_ORIGIN) != NULL &&
           h1_find_named(request, bytes, METHOD_FIELD, sizeof(METHOD_FIELD) - 1) != NULL;
}

/* The Origin when it is one and allowed; len 0: not. */
static struct h1_span allowed_origin(const struct cors *cors, const struct h1_head *request,
                                     const char *bytes)
{
    const struct h1_field *field = h1_find(request, H1_ORIGIN);
    if (field == NULL || h1_find_next(request, field) != NULL) {
        return (struct h1_span){0};
    }
    const char *origin = bytes + field->value.off;
    size_t len = field->value.len;
    for (size_t i = 0; i < cors->origin_count && !cors->any; i++) {
        if (strlen(cors->origins[i]) == len && strncasecmp(cors->origins[i], origin, len) == 0) {
            return field->value;
        }
    }
    return cors->any ? field->value : (struct h1_span){0};
}

/* True: the origin is allowed, and its line is there. */
static bool put_origin(const struct cors *cors, const struct h1_head *request, const char *bytes,
                       struct buf *lines)
{
    struct h1_span origin = allowed_origin(cors, request, bytes);
    if (origin.len == 0) {
        return false;
    }
    (void)buf_puts(lines, "Access-Control-Allow-Origin: ");
    if (cors->any) {
        (void)buf_putc(lines, '*');
    } else {
        (void)buf_put(lines, bytes + origin.off, origin.len);
    }
    (void)buf_puts(lines, "\r\n");
    return true;
}

/* The configured list, or what was asked for. */
static void put_list(const char *configured, const char *name, const struct h1_field *asked,
                     const char *bytes, struct buf *lines)
{
    if (configured != NULL) {
        (void)buf_puts(lines, configured);
    } else if (asked != NULL && asked->value.len != 0 && asked->value.len <= CORS_ECHO_MAX) {
        (void)buf_printf(lines, "%s: %.*s\r\n", name, (int)asked->value.len,
                         bytes + asked->value.off);
    }
}

void cors_put_preflight(const struct cors *cors, const struct h1_head *request, const char *bytes,
                        struct buf *lines)
{
    if (put_origin(cors, request, bytes, lines)) {
        put_list(cors->methods, "Access-Control-Allow-Methods",
                 h1_find_named(request, bytes, METHOD_FIELD, sizeof(METHOD_FIELD) - 1), bytes,
                 lines);
        put_list(cors->headers, "Access-Control-Allow-Headers",
                 h1_find_named(request, bytes, HEADERS_FIELD, sizeof(HEADERS_FIELD) - 1), bytes,
                 lines);
        (void)buf_puts(lines, cors->fixed_preflight);
    }
    (void)buf_puts(lines, "Vary: Origin, Access-Control-Request-Method, "
                          "Access-Control-Request-Headers\r\n");
}

void cors_put(const struct cors *cors, const struct h1_head *request, const char *bytes,
              struct buf *lines)
{
    if (put_origin(cors, request, bytes, lines)) {
        (void)buf_puts(lines, cors->fixed);
    }
    if (!cors->any) {
        (void)buf_puts(lines, "Vary: Origin\r\n");
    }
}

void cors_drop(struct h1_head *response, const char *bytes, struct buf *lines)
{
    static const char prefix[] = "access-control-";
    h1_drop_prefix(response, bytes, prefix, sizeof(prefix) - 1, lines);
}
