/*
 * The table of endpoints and its matching; see the header.
 */
#include "admin/server/route.h"

#include "admin/server/query.h"
#include "node/base/mem.h"
#include "proto/validate.h"

#include <stdio.h>
#include <string.h>

#define WRITE_PARAMS "wait dryRun pretty"

const struct route routes[] = {
    {"GET", "/v1", handle_index, "pretty", "this table", ACCESS_VIEWER, true},
    {"POST", "/v1/apply", handle_apply, WRITE_PARAMS,
     "write many objects, all or nothing; ?dryRun=true gives the diff", ACCESS_EDITOR, true},
    {"GET", "/v1/export", handle_export, "format namespace pretty",
     "everything, as one document that apply takes back; ?format=yaml", ACCESS_VIEWER, true},
    {"GET", "/v1/watch", handle_watch, "since kind namespace",
     "changes as they happen, one JSON object a line; resumes with ?since=", ACCESS_VIEWER, true},
    {"GET", "/v1/cluster", handle_cluster, "pretty",
     "members, their state, their revision, who lags", ACCESS_VIEWER, false},
    {"DELETE", "/v1/cluster/members/{name}", handle_forget, "pretty",
     "forget a member that is dead or left, by name or id", ACCESS_ADMIN, false},
    {"GET", "/v1/namespaces/{namespace}/{kinds}", handle_list, "selector limit continue pretty",
     "the objects of one namespace", ACCESS_VIEWER, true},
    {"GET", "/v1/namespaces/{namespace}/{kinds}/{name}", handle_get, "pretty", "one object",
     ACCESS_VIEWER, true},
    {"PUT", "/v1/namespaces/{namespace}/{kinds}/{name}", handle_put, WRITE_PARAMS,
     "create or replace; If-Match, If-None-Match", ACCESS_EDITOR, true},
    {"PATCH", "/v1/namespaces/{namespace}/{kinds}/{name}", handle_patch, WRITE_PARAMS,
     "change by JSON merge patch", ACCESS_EDITOR, true},
    {"DELETE", "/v1/namespaces/{namespace}/{kinds}/{name}", handle_delete, WRITE_PARAMS,
     "delete; of a Backend its endpoints too", ACCESS_EDITOR, true},
    {"GET", "/v1/{kinds}", handle_list, "selector namespace limit continue pretty",
     "the objects of a kind", ACCESS_VIEWER, true},
    {"GET", "/v1/{kinds}/{name}", handle_get, "pretty", "one object of the whole cluster",
     ACCESS_VIEWER, true},
    {"PUT", "/v1/{kinds}/{name}", handle_put, WRITE_PARAMS, "create or replace", ACCESS_EDITOR,
     true},
    {"PATCH", "/v1/{kinds}/{name}", handle_patch, WRITE_PARAMS, "change by JSON merge patch",
     ACCESS_EDITOR, true},
    {"DELETE", "/v1/{kinds}/{name}", handle_delete, WRITE_PARAMS, "delete", ACCESS_EDITOR, true},
    {"GET", "/openapi.json", handle_openapi, "pretty", "the API as an OpenAPI 3.1 document",
     ACCESS_VIEWER, true},
    {"GET", "/metrics", handle_metrics, "", "counters, as Prometheus text", ACCESS_VIEWER, false},
    {"GET", "/healthz", handle_healthz, "", "200 while the process answers", ACCESS_OPEN, true},
    {"GET", "/readyz", handle_readyz, "", "200 when ready for traffic, else 503 and why",
     ACCESS_OPEN, true},
    {"POST", "/v1/tokens", handle_token_create, WRITE_PARAMS,
     "make a credential; the answer has its secret, once", ACCESS_ADMIN, false},
    {"GET", "/v1/tickets", handle_tickets, "pretty",
     "keys of session tickets: state and times, nothing secret", ACCESS_VIEWER, false},
    {"POST", "/v1/tickets/rotate", handle_tickets_rotate, "wait pretty",
     "another key from now on; {\"revoke\": true} makes all tickets so far useless", ACCESS_ADMIN,
     false},
    {"GET", "/v1/audit", handle_audit, "since limit user pretty",
     "what was written on this node, by whom and when; also what was refused", ACCESS_ADMIN, false},
    {.method = NULL},
};

/* ---- one pattern against one path ---- */

struct captures {
    const struct kind *kind;
    const char *namespace_; /* raw spans */
    size_t namespace_len;
    const char *name;
    size_t name_len;
};

static const struct kind *kind_by_plural(const char *text, size_t len)
{
    for (const struct kind *kind = kinds; kind->name != NULL; kind++) {
        if (strlen(kind->plural) == len && memcmp(kind->plural, text, len) == 0) {
            return kind;
        }
    }
    return NULL;
}

/* One pattern segment against one path segment. */
static bool segment_matches(const char *pattern, size_t pattern_len, const char *text, size_t len,
                            struct captures *captures)
{
    if (pattern[0] != '{') {
        return pattern_len == len && memcmp(pattern, text, len) == 0;
    }
    if (len == 0) {
        return false;
    }
    if (strncmp(pattern, "{kinds}", pattern_len) == 0) {
        captures->kind = kind_by_plural(text, len);
        return captures->kind != NULL;
    }
    if (strncmp(pattern, "{namespace}", pattern_len) == 0) {
        captures->namespace_ = text;
        captures->namespace_len = len;
        return true;
    }
    captures->name = text;
    captures->name_len = len;
    return true;
}

static bool path_matches(const char *pattern, const char *path, size_t len,
                         struct captures *captures)
{
    const char *end = path + len;
    *captures = (struct captures){0};
    while (*pattern == '/' && path < end && *path == '/') {
        pattern++;
        path++;
        size_t pattern_len = strcspn(pattern, "/");
        bool rest = strcmp(pattern, "{name}") == 0;
        const char *slash = rest ? NULL : memchr(path, '/', (size_t)(end - path));
        size_t text_len = (size_t)((slash != NULL ? slash : end) - path);
        if (!segment_matches(pattern, pattern_len, path, text_len, captures)) {
            return false;
        }
        pattern += pattern_len;
        path += text_len;
    }
    return *pattern == '\0' && path == end;
}

/* Whether the path's shape fits the kind: what lives in a namespace is named with it. */
static bool shape_fits(const struct captures *captures)
{
    if (captures->kind == NULL) {
        return true;
    }
    bool has_namespace = captures->namespace_ != NULL;
    bool is_list = captures->name == NULL;
    if (captures->kind->namespaced) {
        return has_namespace || is_list;
    }
    /* Names of the whole cluster have no slash; with one the path is another's. */
    return !has_namespace && (is_list || memchr(captures->name, '/', captures->name_len) == NULL);
}

/* ---- captured text to names ---- */

static int decode_name(const char *text, size_t len, size_t max, const char *what, char *out,
                       struct err_info *err)
{
    char *decoded;
    int rc = percent_decode(text, len, false, &decoded, err);
    if (rc != RC_OK) {
        return rc;
    }
    if (strlen(decoded) > max) {
        rc = err_set(err, RC_NOT_FOUND, "the %s in the path is longer than any may be", what);
    } else {
        memcpy(out, decoded, strlen(decoded) + 1);
    }
    mem_free(decoded);
    return rc;
}

static int take_captures(const struct captures *captures, struct route_match *match,
                         struct err_info *err)
{
    match->kind = captures->kind;
    char name[OBJECT_ID_MAX + 1] = "";
    if (captures->namespace_ != NULL) {
        int rc = decode_name(captures->namespace_, captures->namespace_len,
                             sizeof(match->namespace_) - 1, "namespace", match->namespace_, err);
        if (rc != RC_OK) {
            return rc;
        }
        if (!name_is_label(match->namespace_, strlen(match->namespace_))) {
            return err_set(err, RC_INVALID,
                           "\"%s\" is no namespace; accepted: lower-case letters, digits and '-'",
                           match->namespace_);
        }
    }
    if (captures->name == NULL) {
        return RC_OK;
    }
    int rc = decode_name(captures->name, captures->name_len, OBJECT_ID_MAX, "name", name, err);
    if (rc != RC_OK) {
        return rc;
    }
    int len = snprintf(match->id, sizeof(match->id), "%s%s%s", match->namespace_,
                       match->namespace_[0] != '\0' ? "/" : "", name);
    return len <= OBJECT_ID_MAX
               ? RC_OK
               : err_set(err, RC_NOT_FOUND, "the name in the path is longer than any may be");
}

static bool method_is(const struct route *route, const char *method)
{
    return strcmp(route->method, method) == 0 ||
           (strcmp(route->method, "GET") == 0 && strcmp(method, "HEAD") == 0);
}

static void allow_add(struct route_match *match, const char *method)
{
    size_t used = strlen(match->allow);
    (void)snprintf(match->allow + used, sizeof(match->allow) - used, "%s%s%s", used > 0 ? ", " : "",
                   method, strcmp(method, "GET") == 0 ? ", HEAD" : "");
}

/* Why no row matched, as helpfully as the path allows. */
static int explain_not_found(const char *path, size_t len, struct err_info *err)
{
    struct captures captures;
    if (path_matches("/v1/{kinds}/{name}", path, len, &captures) && captures.kind != NULL &&
        captures.kind->namespaced) {
        return err_set(err, RC_NOT_FOUND,
                       "%s live in a namespace: /v1/namespaces/NAMESPACE/%s/NAME",
                       captures.kind->plural, captures.kind->plural);
    }
    if ((path_matches("/v1/namespaces/{namespace}/{kinds}/{name}", path, len, &captures) ||
         path_matches("/v1/namespaces/{namespace}/{kinds}", path, len, &captures)) &&
        captures.kind != NULL) {
        return err_set(err, RC_NOT_FOUND, "%s are of the whole cluster: /v1/%s/NAME",
                       captures.kind->plural, captures.kind->plural);
    }
    char list[256] = "";
    for (const struct kind *kind = kinds; kind->name != NULL; kind++) {
        size_t used = strlen(list);
        (void)snprintf(list + used, sizeof(list) - used, "%s%s", used > 0 ? ", " : "",
                       kind->plural);
    }
    return err_set(err, RC_NOT_FOUND,
                   "no such path; GET /v1 lists the API, and the kinds of objects are %s", list);
}

int route_find(const char *method, const char *path, size_t len, struct route_match *ret_match,
               struct err_info *err)
{
    *ret_match = (struct route_match){0};
    struct captures captures, taken = {0};
    for (const struct route *route = routes; route->method != NULL; route++) {
        if (!path_matches(route->path, path, len, &captures) || !shape_fits(&captures)) {
            continue;
        }
        allow_add(ret_match, route->method);
        if (ret_match->route == NULL && method_is(route, method)) {
            ret_match->route = route;
            taken = captures;
        }
    }
    if (ret_match->route != NULL) {
        return take_captures(&taken, ret_match, err);
    }
    if (ret_match->allow[0] != '\0') {
        return err_set(err, RC_UNSUPPORTED, "%.20s is not offered here; accepted: %s", method,
                       ret_match->allow);
    }
    return explain_not_found(path, len, err);
}
