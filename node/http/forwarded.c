/*
 * Forwarded fields. Values that came are never parsed, only carried along in front of the router's
 * own, which is therefore always the last element.
 */
#include "node/http/forwarded.h"

#include "node/http/forwarded_int.h"
#include "node/http/h1_int.h"

#include <stdio.h>
#include <string.h>

static const uint64_t forwarded_names = H1_BIT(H1_FORWARDED) | H1_BIT(H1_X_FORWARDED_FOR) |
                                        H1_BIT(H1_X_FORWARDED_HOST) | H1_BIT(H1_X_FORWARDED_PORT) |
                                        H1_BIT(H1_X_FORWARDED_PROTO);

/* Five names, separators, line ends, "for=", "host=", "proto=", brackets, quotes, two schemes; and
 * what put_address and put_port write beyond their end. */
enum { NAMES_ROOM = 176 + sizeof(((struct fwd_peer *)NULL)->address) };

/* The IPv4 address inside an IPv4-mapped IPv6 one, as dual-stack listeners give it. */
static struct addr unmapped(const struct addr *client)
{
    if (client->sa.sa_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&client->in6.sin6_addr)) {
        return *client;
    }
    struct addr plain = {0};
    plain.in4.sin_family = AF_INET;
    memcpy(&plain.in4.sin_addr, client->in6.sin6_addr.s6_addr + 12, 4);
    return plain;
}

void fwd_peer_init(struct fwd_peer *peer, const struct addr *client, uint16_t local_port,
                   bool secure)
{
    struct addr plain = unmapped(client);
    char text[ADDR_TEXT_MAX];
    bool is_known = plain.sa.sa_family == AF_INET || plain.sa.sa_family == AF_INET6;
    const char *address = is_known ? addr_format_ip(&plain, text) : "unknown";
    memset(peer, 0, sizeof(*peer));
    size_t len = MIN(strlen(address), sizeof(peer->address) - 1);
    memcpy(peer->address, address, len);
    peer->address_len = (uint8_t)len;
    peer->port_len = (uint8_t)snprintf(peer->port, sizeof(peer->port), "%u", (unsigned)local_port);
    peer->quoted = plain.sa.sa_family == AF_INET6; /* RFC 7239 6 */
    peer->secure = secure;
}

uint64_t fwd_drop(enum fwd_policy policy)
{
    return policy == FWD_APPEND || policy == FWD_REPLACE ? forwarded_names : 0;
}

/* RFC 7239 4: quotes must close inside the value, else they would swallow what is appended. */
static bool is_closed(const char *value, size_t len)
{
    bool quoted = false;
    for (size_t i = 0; i < len; i++) {
        if (value[i] == '"') {
            quoted = !quoted;
        } else if (value[i] == '\\' && quoted && ++i == len) {
            return false;
        }
    }
    return !quoted;
}

/* Whether a line of this name will be left in place: hop-by-hop ones are not. */
static bool is_kept(const struct h1_head *head, enum h1_name id)
{
    const struct h1_field *field = h1_find(head, id);
    while (field != NULL && (field->hop || field->drop)) {
        field = h1_find_next(head, field);
    }
    return field != NULL;
}

/* The values that came, each followed by ", ". */
static char *put_incoming(char *at, enum h1_name id, const struct h1_head *head, const char *bytes)
{
    const struct h1_field *field = h1_find(head, id);
    for (; field != NULL; field = h1_find_next(head, field)) {
        const char *value = bytes + field->value.off;
        if (field->hop || field->drop || field->value.len == 0 ||
            (id == H1_FORWARDED && !is_closed(value, field->value.len))) {
            continue;
        }
        at = h1_put(at, value, field->value.len);
        at = H1_PUT_TEXT(at, ", ");
    }
    return at;
}

struct request_view {
    enum fwd_policy policy;
    const struct h1_head *head;
    const char *bytes;
};

/* Decide by policy whether a field is written, and put its name and what stands before the own
 * value. */
static bool begin_field(char **at, enum h1_name id, const char *name, size_t name_len,
                        const struct request_view *view)
{
    bool came = (view->head->present & H1_BIT(id)) != 0;
    if (view->policy == FWD_IF_NONE && came && is_kept(view->head, id)) {
        return false;
    }
    *at = h1_put(*at, name, name_len);
    if (view->policy == FWD_APPEND && came) {
        *at = put_incoming(*at, id, view->head, view->bytes);
    }
    return true;
}

#define BEGIN_FIELD(at, id, name, view) begin_field(at, id, name, sizeof(name) - 1, view)

size_t fwd_room(const struct fwd_peer *peer, const struct h1_head *head)
{
    /* Two bytes for each value that came are paid for by its line's colon and CRLF. */
    size_t incoming = (head->present & forwarded_names) != 0 ? head->len : 0;
    return NAMES_ROOM + 2u * head->host.len + 2u * peer->address_len + peer->port_len + incoming;
}

/* All of the array, which takes fewer instructions than to copy what is used of it. */
static inline char *put_address(char *at, const struct fwd_peer *peer)
{
    memcpy(at, peer->address, sizeof(peer->address));
    return at + peer->address_len;
}

static inline char *put_port(char *at, const struct fwd_peer *peer)
{
    memcpy(at, peer->port, sizeof(peer->port));
    return at + peer->port_len;
}

static char *put_scheme(char *at, const struct fwd_peer *peer)
{
    at = H1_PUT_TEXT(at, "http");
    *at = 's';
    at += peer->secure;
    return H1_PUT_TEXT(at, "\r\n");
}

static char *put_forwarded(char *at, const struct fwd_peer *peer, const struct h1_head *head,
                           const char *host)
{
    at = H1_PUT_TEXT(at, "for=");
    at = peer->quoted ? H1_PUT_TEXT(at, "\"[") : at;
    at = put_address(at, peer);
    at = peer->quoted ? H1_PUT_TEXT(at, "]\"") : at;
    if (head->host.len > 0) {
        /* "host:port" and "[::1]" are no tokens; what has neither is its own canonical name */
        bool is_name = head->host.len == head->host_name_len && host[0] != '[';
        bool is_token = is_name || h1_is_token(host, head->host.len);
        at = H1_PUT_TEXT(at, ";host=");
        *at = '"';
        at = h1_put(at + !is_token, host, head->host.len);
        *at = '"';
        at += !is_token;
    }
    at = H1_PUT_TEXT(at, ";proto=");
    return put_scheme(at, peer);
}

/* All five with nothing in front of the own values. */
static char *put_all(char *at, const struct fwd_peer *peer, const struct h1_head *head,
                     const char *host)
{
    at = H1_PUT_TEXT(at, "X-Forwarded-For: ");
    at = put_address(at, peer);
    at = H1_PUT_TEXT(at, "\r\nX-Forwarded-Host: ");
    at = h1_put(at, host, head->host.len);
    at = H1_PUT_TEXT(at, "\r\nX-Forwarded-Port: ");
    at = put_port(at, peer);
    at = H1_PUT_TEXT(at, "\r\nX-Forwarded-Proto: ");
    at = put_scheme(at, peer);
    at = H1_PUT_TEXT(at, "Forwarded: ");
    return put_forwarded(at, peer, head, host);
}

char *fwd_write(char *at, const struct fwd_peer *peer, enum fwd_policy policy,
                const struct h1_head *head, const char *bytes)
{
    if (policy == FWD_NEVER) {
        return at;
    }
    const struct request_view view = {.policy = policy, .head = head, .bytes = bytes};
    const char *host = bytes + head->host.off;
    bool is_bare = policy == FWD_REPLACE || (head->present & forwarded_names) == 0;
    if (is_bare && head->host.len > 0) {
        return put_all(at, peer, head, host);
    }
    if (BEGIN_FIELD(&at, H1_X_FORWARDED_FOR, "X-Forwarded-For: ", &view)) {
        at = put_address(at, peer);
        at = H1_PUT_TEXT(at, "\r\n");
    }
    if (head->host.len > 0 && BEGIN_FIELD(&at, H1_X_FORWARDED_HOST, "X-Forwarded-Host: ", &view)) {
        at = h1_put(at, host, head->host.len);
        at = H1_PUT_TEXT(at, "\r\n");
    }
    if (BEGIN_FIELD(&at, H1_X_FORWARDED_PORT, "X-Forwarded-Port: ", &view)) {
        at = put_port(at, peer);
        at = H1_PUT_TEXT(at, "\r\n");
    }
    if (BEGIN_FIELD(&at, H1_X_FORWARDED_PROTO, "X-Forwarded-Proto: ", &view)) {
        at = put_scheme(at, peer);
    }
    if (BEGIN_FIELD(&at, H1_FORWARDED, "Forwarded: ", &view)) {
        at = put_forwarded(at, peer, head, host);
    }
    return at;
}

int fwd_put(struct buf *out, const struct fwd_peer *peer, enum fwd_policy policy,
            const struct h1_head *head, const char *bytes)
{
    char *room = buf_reserve(out, fwd_room(peer, head));
    if (room == NULL) {
        return RC_FULL;
    }
    buf_grow(out, (size_t)(fwd_write(room, peer, policy, head, bytes) - room));
    return 0;
}
