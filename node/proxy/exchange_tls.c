/*
 * Schemes, misdirected requests and client certificates; see exchange_tls.h.
 */
#include "node/proxy/exchange_tls.h"

#include "node/proxy/client.h"
#include "node/proxy/proxy_int.h"

#include <strings.h>

enum { HTTPS_PORT = 443 };

/* The same over TLS: host, path and query are kept, the port is that of the TLS listener. */
static enum reason redirect_to_tls(struct exchange *exchange,
                                   const struct exchange_request *request,
                                   struct exchange_answer *answer)
{
    const struct h1_head *head = request->head;
    const struct proxy *proxy = exchange->worker->proxy;
    struct buf *lines = &exchange->worker->lines;
    buf_reset(lines);
    bool is_ipv6 = memchr(head->host_name, ':', head->host_name_len) != NULL;
    (void)buf_puts(lines, is_ipv6 ? "Location: https://[" : "Location: https://");
    (void)buf_put(lines, head->host_name, head->host_name_len);
    (void)buf_puts(lines, is_ipv6 ? "]" : "");
    if (proxy->https_port != 0 && proxy->https_port != HTTPS_PORT) {
        (void)buf_printf(lines, ":%u", (unsigned)proxy->https_port);
    }
    if (head->path.len == 0) {
        (void)buf_puts(lines, "/");
    }
    size_t end = (size_t)head->query.off + head->query.len;
    size_t len = head->has_query ? end - head->path.off : head->path.len;
    (void)buf_put(lines, request->bytes + head->path.off, len);
    (void)buf_puts(lines, "\r\n");
    if (lines->full) {
        return REASON_URI_TOO_LONG;
    }
    answer->lines = lines->data;
    answer->lines_len = lines->len;
    answer->status = exchange->rule->redirect_status;
    return REASON_REDIRECT;
}

/* Nobody has shown one here, however plain requests are meant to be treated. */
static enum reason without_certificate(const struct rule *rule)
{
    bool required = rule->client_cert != NULL && rule->client_cert->required;
    return required ? REASON_CLIENT_CERTIFICATE : REASON_NONE;
}

static enum reason check_plain(struct exchange *exchange, const struct exchange_request *request,
                               struct exchange_answer *answer)
{
    const struct rule *rule = exchange->rule;
    if (rule->termination == PROXY_PLAIN) {
        return REASON_NONE;
    }
    if (exchange->secure && rule->termination != PROXY_PASSTHROUGH) {
        return without_certificate(rule); /* a trusted proxy had it over TLS */
    }
    if (rule->insecure == PROXY_INSECURE_REDIRECT) {
        return redirect_to_tls(exchange, request, answer);
    }
    bool allowed = rule->insecure == PROXY_INSECURE_ALLOW && rule->termination != PROXY_PASSTHROUGH;
    return allowed ? without_certificate(rule) : REASON_NO_ROUTE;
}

/* ---- certificates of clients ---- */

/* Only * has a meaning: any bytes, or none. Case counts. */
static bool matches(const char *pattern, const char *text)
{
    const char *star = NULL, *resume = NULL;
    while (*text != '\0') {
        if (*pattern == '*') {
            star = pattern++;
            resume = text;
        } else if (*pattern == *text) {
            pattern++;
            text++;
        } else if (star != NULL) {
            pattern = star + 1;
            text = ++resume;
        } else {
            return false;
        }
    }
    while (*pattern == '*') {
        pattern++;
    }
    return *pattern == '\0';
}

static enum reason check_certificate(const struct client_cert *wanted, const struct client_tls *tls)
{
    struct tls_peer peer;
    bool shown = tls_engine_peer(tls->engine, &peer);
    if (!shown) {
        return wanted->required ? REASON_CLIENT_CERTIFICATE : REASON_NONE;
    }
    for (size_t i = 0; i < wanted->subject_count; i++) {
        if (matches(wanted->subjects[i], peer.subject)) {
            return REASON_NONE;
        }
    }
    return wanted->subject_count == 0 ? REASON_NONE : REASON_CLIENT_CERTIFICATE;
}

/* What the host demands of connections now is what this one was made by (RFC 9110 15.5.20). */
static bool is_directed(const struct exchange *exchange, const struct client_tls *tls)
{
    const struct host_tls *own = exchange->host->tls;
    const struct proxy_tls *defaults = worker_tls(exchange->worker);
    const struct tls_policy *policy = own != NULL && own->policy != NULL ? own->policy
                                      : defaults != NULL                 ? defaults->policy
                                                                         : NULL;
    return policy != NULL && memcmp(tls_policy_digest(policy), tls->policy, TLS_DIGEST_BYTES) == 0;
}

enum reason exchange_check_scheme(struct exchange *exchange, const struct exchange_request *request,
                                  struct exchange_answer *answer)
{
    const struct rule *rule = exchange->rule;
    if (request->tls == NULL) {
        return check_plain(exchange, request, answer);
    }
    exchange->secure = true;
    if (rule->termination == PROXY_PLAIN) {
        return REASON_NO_ROUTE;
    }
    if (rule->termination == PROXY_PASSTHROUGH || rule->misdirected ||
        !is_directed(exchange, request->tls)) {
        return REASON_MISDIRECTED;
    }
    return rule->client_cert != NULL ? check_certificate(rule->client_cert, request->tls)
                                     : REASON_NONE;
}

/* ---- what the endpoint learns ---- */

static void drop_came(struct h1_head *head, const char *bytes)
{
    for (uint32_t i = 0; i < head->field_count; i++) {
        struct h1_field *field = &head->fields[i];
        if (field->name.len >= 5 && strncasecmp(bytes + field->name.off, "x-ssl", 5) == 0) {
            field->drop = true;
        }
    }
}

static void put_peer(struct buf *lines, const struct client_tls *tls)
{
    struct tls_peer peer;
    (void)buf_puts(lines, "X-SSL: 1\r\n");
    if (!tls_engine_peer(tls->engine, &peer)) {
        return;
    }
    (void)buf_printf(lines,
                     "X-SSL-Client-Verify: 0\r\nX-SSL-Client-DN: %s\r\nX-SSL-Client-CN: %s\r\n"
                     "X-SSL-Issuer: %s\r\nX-SSL-Client-Serial: %s\r\nX-SSL-Client-SHA256: %s\r\n"
                     "X-SSL-Client-NotBefore: %s\r\nX-SSL-Client-NotAfter: %s\r\n"
                     "X-SSL-Client-DER: ",
                     peer.subject, peer.common_name, peer.issuer, peer.serial, peer.fingerprint,
                     peer.not_before, peer.not_after);
    (void)tls_engine_peer_der(tls->engine, lines);
    (void)buf_puts(lines, "\r\n");
}

void exchange_tell_tls(struct exchange *exchange, const struct exchange_request *request,
                       struct h1_out *how)
{
    struct buf *lines = &exchange->worker->lines;
    const struct client_cert *wanted = exchange->rule->client_cert;
    drop_came(request->head, request->bytes);
    if (wanted == NULL || !wanted->tell || request->tls == NULL) {
        return;
    }
    if (how->extra_len == 0 || how->extra != lines->data) {
        buf_reset(lines);
        (void)buf_put(lines, how->extra, how->extra_len);
    }
    put_peer(lines, request->tls);
    how->extra = lines->data;
    how->extra_len = lines->len;
}
