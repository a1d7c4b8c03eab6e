/*
 * From texts to addresses: the part of the settings that may ask the resolver. Start-up only.
 */
#include "node/app/settings.h"

#include "admin/server/access.h"
#include "node/base/cidr.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int parse_one(const char *setting, const char *text, struct addr *ret_addr,
                     struct err_info *err)
{
    int rc = addr_parse(text, ret_addr, err);
    return rc == RC_OK ? RC_OK : err_prefix(err, rc, "%s", setting);
}

/* A peer may be a name; all its addresses are asked. What does not resolve now is told and left
 * out. */
static void resolve_peer(const char *text, struct settings_resolved *resolved)
{
    char host[256];
    const char *colon = strrchr(text, ':');
    if (colon == NULL || (size_t)(colon - text) >= sizeof(host)) {
        log_warn("peer to join is not address:port", "peer=%s", text);
        return;
    }
    memcpy(host, text, (size_t)(colon - text));
    host[colon - text] = '\0';
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_DGRAM};
    struct addrinfo *found = NULL;
    int status = getaddrinfo(host, colon + 1, &hints, &found);
    if (status != 0) {
        log_warn("name of a peer to join does not resolve", "peer=%s reason=\"%s\"", text,
                 gai_strerror(status));
        return;
    }
    for (struct addrinfo *at = found; at != NULL; at = at->ai_next) {
        if (resolved->cluster_join_count < SETTINGS_LIST_MAX) {
            addr_from_sockaddr(at->ai_addr,
                               &resolved->cluster_join[resolved->cluster_join_count++]);
        }
    }
    freeaddrinfo(found);
}

/* Which of our addresses a packet to the first peer would leave by; no packet is sent. */
static bool address_towards(const struct addr *peer, struct addr *ret_addr)
{
    int fd = socket(peer->sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return false;
    }
    struct addr own = {0};
    socklen_t len = sizeof(own);
    bool found = connect(fd, &peer->sa, addr_len(peer)) == 0 && getsockname(fd, &own.sa, &len) == 0;
    (void)close(fd);
    *ret_addr = own;
    return found;
}

static int resolve_advertise(const struct settings *settings, struct settings_resolved *resolved,
                             struct err_info *err)
{
    if (*settings->cluster_advertise != '\0') {
        return parse_one("cluster.advertise", settings->cluster_advertise,
                         &resolved->cluster_advertise, err);
    }
    resolved->cluster_advertise = resolved->cluster_bind;
    if (!addr_is_any(&resolved->cluster_bind)) {
        return RC_OK;
    }
    struct addr outside;
    if (resolved->cluster_join_count > 0) {
        outside = resolved->cluster_join[0];
    } else {
        /* The first node: the address of the default route (RFC 5737 names a target nobody has). */
        int rc = addr_parse("192.0.2.1:9", &outside, err);
        if (rc != RC_OK) {
            return rc;
        }
    }
    if (!address_towards(&outside, &resolved->cluster_advertise)) {
        return err_set(
            err, RC_INVALID,
            "cluster.advertise: must be given, since cluster.bind is the any-address and "
            "this machine has no route to take an address from");
    }
    addr_set_port(&resolved->cluster_advertise, addr_port(&resolved->cluster_bind));
    return RC_OK;
}

static int resolve_log(const struct settings *settings, struct settings_resolved *resolved,
                       struct err_info *err)
{
    static const char *const levels[] = {"debug", "info", "warn", "error"};
    size_t level = 0;
    while (level < ARRAY_LEN(levels) && strcmp(settings->log_level, levels[level]) != 0) {
        level++;
    }
    if (level == ARRAY_LEN(levels)) {
        return err_set(err, RC_INVALID,
                       "log.level: \"%.40s\" is not one of debug, info, warn, error",
                       settings->log_level);
    }
    resolved->log_level = (enum log_level)level;
    resolved->log_json = strcmp(settings->log_format, "json") == 0;
    if (!resolved->log_json && strcmp(settings->log_format, "text") != 0) {
        return err_set(err, RC_INVALID, "log.format: \"%.40s\" is not one of json, text",
                       settings->log_format);
    }
    resolved->access_combined = strcmp(settings->log_access_format, "combined") == 0;
    if (!resolved->access_combined && strcmp(settings->log_access_format, "json") != 0) {
        return err_set(err, RC_INVALID, "log.accessFormat: \"%s\" is neither json nor combined",
                       settings->log_access_format);
    }
    return RC_OK;
}

static int check_name(const char *name, struct err_info *err)
{
    size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_");
    if (len == 0 || len > 63 || name[len] != '\0') {
        return err_set(err, RC_INVALID,
                       "node.name: \"%.80s\" must be 1 to 63 letters, digits, dots, dashes or "
                       "underscores",
                       name);
    }
    return RC_OK;
}

/* Addresses without ports, and networks. */
static int resolve_lists(const struct settings *settings, struct settings_resolved *resolved,
                         struct err_info *err)
{
    for (size_t i = 0; i < settings->listen_tcp.count; i++) {
        const char *text = settings->listen_tcp.items[i];
        if (addr_parse_ip(text, strlen(text), &resolved->tcp[i]) != RC_OK) {
            return err_set(err, RC_INVALID,
                           "listen.tcp: \"%.80s\" is not an IP address without port, such as "
                           "0.0.0.0, 10.0.0.1 or ::",
                           text);
        }
    }
    for (size_t i = 0; i < settings->proxy_trusted.count; i++) {
        struct cidr cidr;
        int rc = cidr_parse(settings->proxy_trusted.items[i], &cidr, err);
        if (rc != RC_OK) {
            return err_prefix(err, rc, "listen.proxyProtocol.trusted");
        }
    }
    return RC_OK;
}

static int check_admin_tls(const struct settings *settings, bool *ret_tls, struct err_info *err)
{
    bool certificate = *settings->admin_tls_certificate != '\0';
    bool self_signed = strcmp(settings->admin_tls_self_signed, "true") == 0;
    enum access role;
    *ret_tls = certificate || self_signed;
    if (!self_signed && strcmp(settings->admin_tls_self_signed, "false") != 0) {
        return err_set(err, RC_INVALID, "admin.tls.selfSigned: \"%.40s\" is not true or false",
                       settings->admin_tls_self_signed);
    }
    if (certificate != (*settings->admin_tls_key != '\0')) {
        return err_set(err, RC_INVALID,
                       "admin.tls.certificate, admin.tls.key: both must be set, or none");
    }
    if (certificate && self_signed) {
        return err_set(err, RC_INVALID,
                       "admin.tls.selfSigned: there is a certificate, admin.tls.certificate");
    }
    if (*settings->admin_tls_client_ca != '\0' && !*ret_tls) {
        return err_set(err, RC_INVALID,
                       "admin.tls.clientCa: there is no TLS; set "
                       "admin.tls.certificate and admin.tls.key");
    }
    if (!access_parse(settings->admin_tls_client_role, &role)) {
        return err_set(err, RC_INVALID,
                       "admin.tls.clientRole: \"%.40s\" is not one of viewer, editor, admin",
                       settings->admin_tls_client_role);
    }
    return RC_OK;
}

static int resolve_admin(const struct settings *settings, struct settings_resolved *resolved,
                         struct err_info *err)
{
    bool listens = *settings->admin_listen != '\0';
    int rc = check_admin_tls(settings, &resolved->admin_tls, err);
    if (rc == RC_OK && listens) {
        rc = parse_one("admin.listen", settings->admin_listen, &resolved->admin_listen, err);
    }
    if (rc != RC_OK) {
        return rc;
    }
    if (listens && !resolved->admin_tls && !addr_is_loopback(&resolved->admin_listen)) {
        return err_set(err, RC_INVALID,
                       "admin.listen: %s is not a loopback address, and without TLS whoever "
                       "reaches it would be an admin; set admin.tls.certificate and "
                       "admin.tls.key, or admin.tls.selfSigned: true, or listen on 127.0.0.1",
                       settings->admin_listen);
    }
    if (!listens && *settings->admin_unix == '\0') {
        return err_set(err, RC_INVALID, "admin.unix, admin.listen: at least one must be set");
    }
    return RC_OK;
}

int settings_resolve(const struct settings *settings, struct settings_resolved *ret_resolved,
                     struct err_info *err)
{
    struct settings_resolved resolved = {0};
    int rc = check_name(settings->node_name, err);
    rc = rc != RC_OK ? rc : resolve_log(settings, &resolved, err);
    for (size_t i = 0; rc == RC_OK && i < settings->listen_http.count; i++) {
        rc = parse_one("listen.http", settings->listen_http.items[i], &resolved.http[i], err);
    }
    for (size_t i = 0; rc == RC_OK && i < settings->listen_https.count; i++) {
        rc = parse_one("listen.https", settings->listen_https.items[i], &resolved.https[i], err);
    }
    rc = rc != RC_OK ? rc : resolve_lists(settings, &resolved, err);
    rc = rc != RC_OK
             ? rc
             : parse_one("cluster.bind", settings->cluster_bind, &resolved.cluster_bind, err);
    if (rc != RC_OK) {
        return rc;
    }
    for (size_t i = 0; i < settings->cluster_join.count; i++) {
        resolve_peer(settings->cluster_join.items[i], &resolved);
    }
    rc = resolve_advertise(settings, &resolved, err);
    rc = rc != RC_OK ? rc : resolve_admin(settings, &resolved, err);
    if (rc == RC_OK) {
        *ret_resolved = resolved;
    }
    return rc;
}
