/*
 * What makes a Route acceptable.
 *
 * A field that could have no effect beside the others is a fault rather than ignored: whoever wrote
 * it expects something of it.
 */
#include "proto/checks.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static Skein__RouteTls__Termination termination_of(const Skein__RouteSpec *spec)
{
    return spec->tls != NULL ? spec->tls->termination : SKEIN__ROUTE_TLS__TERMINATION__None;
}

static bool is_terminated(const Skein__RouteSpec *spec)
{
    return termination_of(spec) == SKEIN__ROUTE_TLS__TERMINATION__Edge ||
           termination_of(spec) == SKEIN__ROUTE_TLS__TERMINATION__Reencrypt;
}

static void check_host_and_path(struct faults *faults, const Skein__RouteSpec *spec)
{
    char host[NAME_LONG_MAX_BYTES + 1];
    char path[PATH_MAX_BYTES + 1];
    struct err_info err;
    if (spec->host == NULL || spec->host[0] == '\0') {
        fault_field(faults, "host", "is missing; wants a host such as shop.example.com");
    } else if (host_canonical(spec->host, host, &err) != RC_OK) {
        fault_field(faults, "host", "%s", err.text);
    }
    bool exact = spec->path_type == SKEIN__ROUTE_SPEC__PATH_TYPE__Exact;
    if (spec->path != NULL && path_canonical(spec->path, exact, path, &err) != RC_OK) {
        fault_field(faults, "path", "%s", err.text);
    }
    if (exact && spec->path == NULL) {
        fault_field(faults, "path", "is missing; pathType is Exact");
    }
}

static void check_redirect_status(struct faults *faults, const char *field, bool has,
                                  uint32_t status, bool other_allowed)
{
    bool good = status == 301 || status == 302 || status == 307 || status == 308 ||
                (other_allowed && status == 303);
    if (has && !good) {
        fault_field(faults, field, "%u is not one of 301, 302,%s 307, 308", status,
                    other_allowed ? " 303," : "");
    }
}

static void check_tls(struct faults *faults, const Skein__RouteSpec *spec)
{
    const Skein__RouteTls *tls = spec->tls;
    if (tls == NULL) {
        return;
    }
    size_t mark = faults_enter(faults, "tls");
    bool reencrypt = tls->termination == SKEIN__ROUTE_TLS__TERMINATION__Reencrypt;
    if (!tls->has_termination) {
        fault_field(faults, "termination",
                    "is missing; wants None, Edge, Passthrough or Reencrypt");
    } else {
        const char *unless_terminated = "unless termination is Edge or Reencrypt";
        const char *unless_reencrypt = "unless termination is Reencrypt";
        bool terminated = is_terminated(spec);
        check_absent(faults, "certificate", !terminated && tls->certificate != NULL,
                     unless_terminated);
        check_absent(faults, "profile", !terminated && tls->has_profile, unless_terminated);
        check_absent(faults, "http2", !terminated && tls->has_http2, unless_terminated);
        check_absent(faults, "clientAuth", !terminated && tls->client_auth != NULL,
                     unless_terminated);
        check_absent(faults, "destinationCa", !reencrypt && tls->destination_ca != NULL,
                     unless_reencrypt);
        check_absent(faults, "serverName", !reencrypt && tls->server_name != NULL,
                     unless_reencrypt);
        check_absent(faults, "verify", !reencrypt && tls->has_verify, unless_reencrypt);
        check_absent(faults, "insecure",
                     tls->termination == SKEIN__ROUTE_TLS__TERMINATION__None && tls->has_insecure,
                     "with termination: None, where all is plain HTTP");
        if (tls->termination == SKEIN__ROUTE_TLS__TERMINATION__Passthrough &&
            tls->insecure == SKEIN__ROUTE_TLS__INSECURE__Allow) {
            fault_field(faults, "insecure", "Allow is not one of Deny, Redirect of a Passthrough");
        }
    }
    bool custom = tls->has_profile && tls->profile == SKEIN__TLS_PROFILE__Custom;
    const char *unless_custom = "unless profile is Custom";
    check_absent(faults, "minVersion", !custom && tls->min_version != NULL, unless_custom);
    check_absent(faults, "ciphers", !custom && tls->n_ciphers != 0, unless_custom);
    check_absent(faults, "ciphersuites", !custom && tls->n_ciphersuites != 0, unless_custom);
    check_absent(faults, "groups", !custom && tls->n_groups != 0, unless_custom);
    check_absent(faults, "tickets", !is_terminated(spec) && tls->has_tickets,
                 "unless termination is Edge or Reencrypt");
    bool by_name = !tls->has_verify || tls->verify == SKEIN__ROUTE_TLS__VERIFY__Full;
    if (reencrypt && by_name && tls->server_name == NULL && spec->host != NULL &&
        spec->host[0] == '*') {
        fault_field(
            faults, "serverName",
            "is missing; a wildcard host does not say by which name endpoints are verified");
    }
    check_name(faults, "certificate", tls->certificate, NAME_LONG_MAX_BYTES);
    check_pem(faults, "destinationCa", tls->destination_ca, "CERTIFICATE");
    check_server_name(faults, "serverName", tls->server_name);
    check_client_auth(faults, tls->client_auth);
    check_redirect_status(faults, "redirectStatus", tls->has_redirect_status, tls->redirect_status,
                          false);
    check_absent(faults, "redirectStatus",
                 tls->has_redirect_status && tls->insecure != SKEIN__ROUTE_TLS__INSECURE__Redirect,
                 "unless insecure is Redirect");
    faults_leave(faults, mark);
}

void check_targets(struct faults *faults, Skein__Target *const *targets, size_t count)
{
    if (count == 0) {
        fault_field(faults, "to", "is missing; wants at least one backend");
    }
    check_count(faults, "to", count, TARGETS_MAX);
    for (size_t i = 0; i < MIN(count, (size_t)TARGETS_MAX); i++) {
        const Skein__Target *target = targets[i];
        size_t item = faults_enter_item(faults, "to", i);
        if (target->backend == NULL) {
            fault_field(faults, "backend", "is missing; wants the name of a Backend");
        }
        check_name(faults, "backend", target->backend, NAME_MAX_BYTES);
        check_u32(faults, "weight", target->has_weight, target->weight, 0, WEIGHT_MAX);
        for (size_t j = 0; j < i && target->backend != NULL; j++) {
            if (targets[j]->backend != NULL && strcmp(targets[j]->backend, target->backend) == 0) {
                fault_field(faults, "backend", "%s is in to[%zu] already", target->backend, j);
                break;
            }
        }
        faults_leave(faults, item);
    }
}

static void check_rewrite(struct faults *faults, const Skein__Rewrite *rewrite)
{
    if (rewrite == NULL) {
        return;
    }
    size_t mark = faults_enter(faults, "rewrite");
    check_path(faults, "replacePrefix", rewrite->replace_prefix);
    check_path(faults, "replacePath", rewrite->replace_path);
    check_absent(faults, "replacePath",
                 rewrite->replace_path != NULL && rewrite->replace_prefix != NULL,
                 "beside replacePrefix");
    check_server_name(faults, "host", rewrite->host);
    if (rewrite->replace_prefix == NULL && rewrite->replace_path == NULL && rewrite->host == NULL) {
        fault_add(faults, "is empty; wants replacePrefix, replacePath or host");
    }
    faults_leave(faults, mark);
}

static void check_redirect(struct faults *faults, const Skein__RouteSpec *spec)
{
    const Skein__Redirect *redirect = spec->redirect;
    if (redirect == NULL) {
        return;
    }
    check_absent(faults, "rewrite", spec->rewrite != NULL, "beside redirect");
    size_t mark = faults_enter(faults, "redirect");
    check_server_name(faults, "host", redirect->host);
    check_u32(faults, "port", redirect->has_port, redirect->port, 1, 65535);
    check_path(faults, "replacePrefix", redirect->replace_prefix);
    check_path(faults, "replacePath", redirect->replace_path);
    check_absent(faults, "replacePath",
                 redirect->replace_path != NULL && redirect->replace_prefix != NULL,
                 "beside replacePrefix");
    check_redirect_status(faults, "status", redirect->has_status, redirect->status, true);
    if ((!redirect->has_scheme || redirect->scheme == SKEIN__REDIRECT__SCHEME__Same) &&
        redirect->host == NULL && !redirect->has_port && redirect->replace_prefix == NULL &&
        redirect->replace_path == NULL) {
        fault_add(faults, "leads back to itself; wants scheme, host, port, replacePrefix or "
                          "replacePath");
    }
    faults_leave(faults, mark);
}

static bool is_origin(const char *text)
{
    const char *rest = NULL;
    if (strncmp(text, "https://", 8) == 0) {
        rest = text + 8;
    } else if (strncmp(text, "http://", 7) == 0) {
        rest = text + 7;
    } else {
        return false;
    }
    char host[NAME_LONG_MAX_BYTES + 1];
    size_t len = strcspn(rest, ":");
    if (rest[len] == ':') {
        char address[ENDPOINT_ADDRESS_MAX];
        return endpoint_address_canonical(rest, address, NULL) == RC_OK;
    }
    return host_canonical(rest, host, NULL) == RC_OK;
}

static bool has_own_port(const char *origin)
{
    const char *port = strncmp(origin, "https:", 6) == 0 ? ":443" : ":80";
    size_t len = strlen(origin);
    return len > strlen(port) && strcmp(origin + len - strlen(port), port) == 0;
}

static void check_token_list(struct faults *faults, const char *field, char *const *texts,
                             size_t count, const char *what)
{
    check_count(faults, field, count, 64);
    for (size_t i = 0; i < MIN(count, (size_t)64); i++) {
        size_t item = faults_enter_item(faults, field, i);
        check_token(faults, NULL, texts[i], what);
        faults_leave(faults, item);
    }
}

/* Two policies of one route would write the same fields. */
static void check_cors_edits(struct faults *faults, const Skein__HeaderActions *headers)
{
    for (size_t i = 0; headers != NULL && i < headers->n_response; i++) {
        const char *name = headers->response[i]->name;
        if (name != NULL && strncasecmp(name, "access-control-", 15) == 0) {
            size_t mark = faults_enter(faults, "headers");
            size_t item = faults_enter_item(faults, "response", i);
            check_absent(faults, "name", true, "beside cors, which sets it");
            faults_leave(faults, item);
            faults_leave(faults, mark);
        }
    }
}

static void check_cors(struct faults *faults, const Skein__RouteSpec *spec)
{
    const Skein__Cors *cors = spec->cors;
    if (cors == NULL) {
        return;
    }
    check_cors_edits(faults, spec->headers);
    size_t mark = faults_enter(faults, "cors");
    if (cors->n_allow_origins == 0) {
        fault_field(faults, "allowOrigins",
                    "is missing; wants origins such as https://example.com");
    }
    check_count(faults, "allowOrigins", cors->n_allow_origins, 64);
    for (size_t i = 0; i < MIN(cors->n_allow_origins, (size_t)64); i++) {
        const char *origin = cors->allow_origins[i];
        size_t item = faults_enter_item(faults, "allowOrigins", i);
        if (strcmp(origin, "*") == 0) {
            /* The Fetch standard refuses the pair; a browser would too, silently. */
            check_absent(faults, NULL, cors->allow_credentials, "with allowCredentials: true");
        } else if (!is_origin(origin)) {
            fault_add(faults, "\"%.80s\" is no origin such as https://example.com", origin);
        } else if (has_own_port(origin)) {
            fault_add(faults,
                      "\"%.80s\" has the port of its scheme, which browsers leave out: it would "
                      "never match",
                      origin);
        }
        faults_leave(faults, item);
    }
    check_token_list(faults, "allowMethods", cors->allow_methods, cors->n_allow_methods,
                     "method such as GET");
    check_token_list(faults, "allowHeaders", cors->allow_headers, cors->n_allow_headers,
                     "header name");
    check_token_list(faults, "exposeHeaders", cors->expose_headers, cors->n_expose_headers,
                     "header name");
    check_duration(faults, "maxAge", cors->max_age, 0, 86400000);
    faults_leave(faults, mark);
}

void check_rate_limit(struct faults *faults, const Skein__RateLimit *limit)
{
    if (limit == NULL) {
        return;
    }
    size_t mark = faults_enter(faults, "rateLimit");
    if (!limit->has_requests && !limit->has_connections) {
        fault_add(faults, "is empty; wants requests or connections");
    }
    check_u32(faults, "requests", limit->has_requests, limit->requests, 1, 1000000000);
    check_u32(faults, "connections", limit->has_connections, limit->connections, 1, 1000000000);
    check_u32(faults, "burst", limit->has_burst, limit->burst, 1, 1000000000);
    check_duration(faults, "window", limit->window, 100, 86400000);
    check_token(faults, "header", limit->header, "header name");
    bool by_header = limit->key == SKEIN__RATE_LIMIT__KEY__Header;
    if (by_header && limit->header == NULL) {
        fault_field(faults, "header", "is missing; key is Header");
    }
    check_absent(faults, "header", !by_header && limit->header != NULL, "unless key is Header");
    check_absent(faults, "burst", limit->has_burst && !limit->has_requests, "without requests");
    check_absent(faults, "window", limit->window != NULL && !limit->has_requests,
                 "without requests");
    faults_leave(faults, mark);
}

static void check_sticky(struct faults *faults, const Skein__Sticky *sticky)
{
    if (sticky == NULL) {
        return;
    }
    size_t mark = faults_enter(faults, "sticky");
    check_token(faults, "cookie", sticky->cookie, "cookie name");
    check_duration(faults, "maxAge", sticky->max_age, 1000, 400ULL * 86400000);
    check_path(faults, "path", sticky->path);
    if (sticky->path != NULL && strchr(sticky->path, ';') != NULL) {
        /* RFC 6265 4.1.1: what follows would be an attribute of its own. */
        fault_field(faults, "path", "has a ; which ends a cookie's path");
    }
    faults_leave(faults, mark);
}

/* The bytes of a passed-through connection are not ours to read. */
static void check_passthrough(struct faults *faults, const Skein__RouteSpec *spec)
{
    if (termination_of(spec) != SKEIN__ROUTE_TLS__TERMINATION__Passthrough) {
        return;
    }
    const char *why = "with termination: Passthrough, where requests are not seen";
    bool has_path = spec->path != NULL && strcmp(spec->path, "/") != 0;
    check_absent(faults, "path", has_path, why);
    check_absent(faults, "rewrite", spec->rewrite != NULL, why);
    check_absent(faults, "redirect", spec->redirect != NULL, why);
    check_absent(faults, "headers", spec->headers != NULL, why);
    check_absent(faults, "cors", spec->cors != NULL, why);
    check_absent(faults, "sticky", spec->sticky != NULL, why);
    check_absent(faults, "captures", spec->captures != NULL, why);
    check_absent(faults, "errorPages", spec->n_error_pages != 0, why);
    check_absent(faults, "compression", spec->compression != NULL, why);
    check_absent(faults, "forwarded", spec->has_forwarded, why);
    check_absent(faults, "adjustHeaderCase", spec->has_adjust_header_case, why);
    check_absent(faults, "limits.bodyBytes", spec->limits != NULL && spec->limits->has_body_bytes,
                 why);
    check_absent(faults, "rateLimit.requests",
                 spec->rate_limit != NULL && spec->rate_limit->has_requests, why);
}

void validate_route(const ProtobufCMessage *message, struct faults *faults)
{
    static const Skein__RouteSpec empty = SKEIN__ROUTE_SPEC__INIT;
    const Skein__RouteSpec *spec = ((const Skein__Route *)(const void *)message)->spec;
    if (spec == NULL) {
        spec = &empty;
    }
    size_t mark = faults_enter(faults, "spec");
    check_host_and_path(faults, spec);
    check_tls(faults, spec);
    if (spec->redirect != NULL) {
        check_absent(faults, "to", spec->n_to != 0, "beside redirect");
    } else {
        check_targets(faults, spec->to, spec->n_to);
    }
    check_timeouts(faults, spec->timeouts, false);
    check_rewrite(faults, spec->rewrite);
    check_redirect(faults, spec);
    check_headers(faults, spec->headers);
    check_hsts(faults, spec->hsts);
    check_absent(faults, "hsts", spec->hsts != NULL && !is_terminated(spec),
                 "unless tls.termination is Edge or Reencrypt");
    check_cors(faults, spec);
    check_cidrs(faults, "allowFrom", spec->allow_from, spec->n_allow_from);
    check_cidrs(faults, "denyFrom", spec->deny_from, spec->n_deny_from);
    check_rate_limit(faults, spec->rate_limit);
    if (spec->limits != NULL) {
        check_u32(faults, "limits.connections", spec->limits->has_connections,
                  spec->limits->connections, 1, UINT32_MAX);
    }
    check_sticky(faults, spec->sticky);
    check_retries(faults, spec->retries);
    check_captures(faults, spec->captures);
    check_error_pages(faults, spec->error_pages, spec->n_error_pages);
    check_compression(faults, spec->compression);
    check_passthrough(faults, spec);
    faults_leave(faults, mark);
}
