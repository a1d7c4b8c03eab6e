/* unit: node_http */
/*
 * Paths, hosts and queries: a canonical form is its own canonical form, holds no dot segment unless
 * they are kept, and never grows.
 */
#include "node/base/check.h"
#include "node/http/uri.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_path(const char *text, size_t len, enum uri_dots dots)
{
    char *scratch = malloc(len + 1), *other = malloc(len + 1);
    struct uri_path path, again;
    int rc = uri_path_canon(text, len, dots, scratch, len, &path);
    ASSERT(rc == 0 || rc == RC_INVALID);
    if (rc == 0) {
        ASSERT(path.len >= 1 && path.at[0] == '/');
        ASSERT(len == 0 || path.len <= len);
        ASSERT(uri_path_canon(path.at, path.len, dots, other, len + 1, &again) == 0);
        ASSERT(again.len == path.len && memcmp(again.at, path.at, path.len) == 0);
        ASSERT(!again.had_dots);
        for (size_t at = 0; at + 1 < path.len && dots != URI_DOTS_KEEP; at++) {
            size_t left = path.len - at;
            bool is_dot = path.at[at] == '/' && path.at[at + 1] == '.';
            ASSERT(!is_dot || (left > 2 && path.at[at + 2] != '/'));
            ASSERT(!is_dot || path.at[at + 2] != '.' || (left > 3 && path.at[at + 3] != '/'));
        }
    }
    free(scratch);
    free(other);
}

static void check_host(const char *text, size_t len)
{
    char out[URI_HOST_MAX + 1], again[URI_HOST_MAX + 1];
    struct uri_host host, other;
    if (uri_host_canon(text, len, out, &host) != 0) {
        return;
    }
    ASSERT(host.name_len > 0 && host.name_len <= URI_HOST_MAX);
    ASSERT(strlen(out) == host.name_len);
    ASSERT(host.port >= -1 && host.port <= 65535);
    ASSERT(uri_host_canon(out, host.name_len, again, &other) == 0);
    ASSERT(strcmp(out, again) == 0 && other.port == -1 && other.is_ip == host.is_ip);
}

static void check_query(const char *text, size_t len)
{
    struct uri_param param;
    size_t cursor = 0, sum = 0;
    char *out = malloc(len + 1);
    while (uri_query_next(text, len, &cursor, &param)) {
        size_t decoded = 0;
        ASSERT(param.name >= text && param.value + param.value_len <= text + len);
        sum += param.name_len + param.value_len;
        int rc = uri_decode(param.value, param.value_len, true, out, len + 1, &decoded);
        ASSERT(rc == RC_INVALID || (rc == 0 && decoded <= param.value_len));
    }
    ASSERT(sum <= len);
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    check_path(text, size, URI_DOTS_REFUSE);
    check_path(text, size, URI_DOTS_REMOVE);
    check_path(text, size, URI_DOTS_KEEP);
    check_host(text, size);
    check_query(text, size);
    return 0;
}
