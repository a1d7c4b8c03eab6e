/*
 * X-Forwarded-For, -Host, -Port, -Proto and Forwarded (RFC 7239), by policy.
 *
 * What is the same for all requests of a connection is formatted once when it is accepted. Under
 * every policy each of the five fields ends up as one line at most of the router's making.
 * Thread: any; no state but the arguments.
 */
#ifndef SKEIN_NODE_HTTP_FORWARDED_H
#define SKEIN_NODE_HTTP_FORWARDED_H

#include "node/base/addr.h"
#include "node/base/buf.h"
#include "node/http/h1_head.h"

/* The same values, in the same order, as the data plane's forwarded_policy. */
enum fwd_policy {
    FWD_APPEND = 0, /* what came, then the router's value, in one combined line per field */
    FWD_REPLACE,    /* only the router's values */
    FWD_IF_NONE,    /* each field is set when it is absent, else passes as it came */
    FWD_NEVER,      /* what came passes as it came */
    FWD_POLICY_COUNT,
};

/* Constants of one client connection, which keeps them while it is idle: no pointers, and nothing
 * in it that a request could make from the rest at little cost. */
struct fwd_peer {
    char address[48]; /* "10.0.0.1", "2001:db8::1"; for X-Forwarded-For */
    char port[6];     /* port that the client connected to: "80" */
    uint8_t address_len;
    uint8_t port_len;
    bool quoted; /* an IPv6 address: in Forwarded it has brackets, and those need quotes */
    bool secure;
};

/* client: where the connection comes from (unset, as of a unix socket: "unknown"). IPv4-mapped IPv6
 * addresses are written as IPv4. local_port: where it went to. */
void fwd_peer_init(struct fwd_peer *peer, const struct addr *client, uint16_t local_port,
                   bool secure);

/* The fields that fwd_put writes anew, so that the incoming lines must be left out (H1_BIT set). */
uint64_t fwd_drop(enum fwd_policy policy);

/*
 * Append the field lines. Incoming values are taken from head; an incoming Forwarded value with an
 * open quote is not kept, since it would swallow what follows (RFC 7239 4). RC_FULL.
 */
MUST_CHECK int fwd_put(struct buf *out, const struct fwd_peer *peer, enum fwd_policy policy,
                       const struct h1_head *head, const char *bytes);

#endif
