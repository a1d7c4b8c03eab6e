/*
 * Rewriting of paths and Location; see rewrite.h.
 */
#include "node/proxy/rewrite.h"

#include <string.h>

size_t rewrite_segments(const char *rule_path)
{
    size_t count = 0;
    size_t len = strlen(rule_path);
    if (len != 0 && rule_path[len - 1] == '/') {
        len--;
    }
    for (size_t i = 0; i < len; i++) {
        count += rule_path[i] == '/';
    }
    return count;
}

void rewrite_prefix(const char *replacement, size_t segments, const char *path, size_t len,
                    struct buf *out)
{
    size_t at = 0;
    for (size_t i = 0; i < segments && at < len; i++) {
        at++;
        while (at < len && path[at] != '/') {
            at++;
        }
    }
    size_t keep = strlen(replacement);
    if (at == len) {
        (void)buf_put(out, keep != 0 ? replacement : "/", MAX(keep, (size_t)1));
        return;
    }
    while (keep != 0 && replacement[keep - 1] == '/') {
        keep--;
    }
    if (keep == 0) {
        /* "//x" would name a host to whoever takes it for a reference. */
        while (at + 1 < len && path[at + 1] == '/') {
            at++;
        }
    }
    (void)buf_put(out, replacement, keep);
    (void)buf_put(out, path + at, len - at);
}

/* RFC 3986 2: what a request target may hold and a URI may not. */
static void put_uri(struct buf *out, const char *bytes, size_t len)
{
    static const char hex[] = "0123456789ABCDEF";
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)bytes[i];
        if (c <= 0x20 || c >= 0x7f || strchr("\"#<>\\^`{|}", c) != NULL) {
            const char escape[3] = {'%', hex[c >> 4], hex[c & 15]};
            (void)buf_put(out, escape, sizeof(escape));
        } else {
            (void)buf_putc(out, (char)c);
        }
    }
}

static uint16_t port_of_scheme(const char *scheme)
{
    return strcmp(scheme, "https") == 0 ? 443 : 80;
}

/* 0: the scheme's own, which is not written. */
static uint16_t port_of(const struct policy_redirect *redirect, const struct redirect_ask *ask,
                        const char *scheme)
{
    uint16_t port = redirect->port;
    if (port == 0 && redirect->host == NULL && strcmp(scheme, ask->scheme) == 0 && ask->port > 0) {
        port = (uint16_t)ask->port;
    }
    return port == port_of_scheme(scheme) ? 0 : port;
}

void redirect_location(const struct policy_redirect *redirect, const struct redirect_ask *ask,
                       struct buf *scratch, struct buf *out)
{
    const char *scheme = redirect->scheme == PROXY_SCHEME_HTTP    ? "http"
                         : redirect->scheme == PROXY_SCHEME_HTTPS ? "https"
                                                                  : ask->scheme;
    (void)buf_printf(out, "%s://%s", scheme, redirect->host != NULL ? redirect->host : ask->host);
    uint16_t port = port_of(redirect, ask, scheme);
    if (port != 0) {
        (void)buf_printf(out, ":%u", (unsigned)port);
    }
    buf_reset(scratch);
    if (redirect->replace_path != NULL) {
        (void)buf_puts(scratch, redirect->replace_path);
    } else if (redirect->replace_prefix != NULL) {
        rewrite_prefix(redirect->replace_prefix, rewrite_segments(ask->rule_path), ask->path,
                       ask->path_len, scratch);
    } else {
        (void)buf_put(scratch, ask->path, ask->path_len);
    }
    put_uri(out, scratch->data, scratch->len);
    out->full = out->full || scratch->full;
    if (ask->query != NULL) {
        (void)buf_putc(out, '?');
        put_uri(out, ask->query, ask->query_len);
    }
}
