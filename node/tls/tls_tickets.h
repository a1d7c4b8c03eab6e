/*
 * Keys of TLS session tickets: an immutable ring, shared by all nodes of a cluster and swapped as a
 * whole; what a server does with them is in tls_lib.c (the callback).
 *
 * Each ticket is sealed with keys that are derived from a ring key for the isolation domain that
 * the connection belongs to, so a ticket of one domain is noise in any other. Thread: immutable;
 * the count of references is atomic. Source: RFC 5077 4, RFC 8446 4.6.1, the clustering notes 4.
 */
#ifndef SKEIN_NODE_TLS_TLS_TICKETS_H
#define SKEIN_NODE_TLS_TLS_TICKETS_H

#include "node/base/defs.h"

enum {
    TICKET_NAME_BYTES = 16,
    TICKET_SECRET_BYTES = 64, /* the derivation's input */
    TICKET_KEYS_MAX = 16,
    TICKET_LIFE_MAX_S = 7 * 24 * 3600,
};

enum ticket_state {
    TICKET_PENDING = 0, /* opens, so that no node is ever late */
    TICKET_ACTIVE,      /* seals and opens; at most one */
    TICKET_RETIRING,    /* opens; TLS 1.2 gets a new ticket */
};

struct ticket_key {
    uint8_t name[TICKET_NAME_BYTES]; /* random; in clear on the wire */
    uint8_t secret[TICKET_SECRET_BYTES];
    enum ticket_state state;
};

struct ticket_ring;

/* Keys are copied; count 0 is legal: no tickets. life_s: what tickets promise, 1..LIFE_MAX. */
struct ticket_ring *ticket_ring_new(const struct ticket_key *keys, size_t count, uint32_t life_s);
void ticket_ring_ref(struct ticket_ring *ring);
void ticket_ring_unref(struct ticket_ring *ring); /* wipes; NULL is accepted */

/* Borrowed. NULL: none. */
const struct ticket_key *ticket_ring_find(const struct ticket_ring *ring,
                                          const uint8_t name[TICKET_NAME_BYTES]);
const struct ticket_key *ticket_ring_active(const struct ticket_ring *ring);
uint32_t ticket_ring_life_s(const struct ticket_ring *ring);

#endif
