/*
 * The identity text of a peer stream's pre-shared key. For gossip/net only; pure.
 */
#ifndef SKEIN_GOSSIP_NET_CHANNEL_PSK_H
#define SKEIN_GOSSIP_NET_CHANNEL_PSK_H

#include "node/base/errors.h"

enum { PSK_IDENTITY_LEN = 50 }; /* "skein-1 " key 8, ' ', client 16, ' ', server 16, in hex */

struct psk_identity {
    uint32_t key_id;
    uint64_t client;
    uint64_t server;
};

/* out: PSK_IDENTITY_LEN bytes and NUL. */
void psk_identity_format(const struct psk_identity *identity, char out[PSK_IDENTITY_LEN + 1]);

/* Exactly the form that format makes, nothing else: RC_INVALID. */
MUST_CHECK int psk_identity_parse(const uint8_t *text, size_t len, struct psk_identity *ret);

#endif
