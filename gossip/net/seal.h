/*
 * Sealing of datagrams: who sent it is proved, nobody can read, change or repeat it.
 *
 * AES-256-GCM under a key per sender and generation; the nonce is a salt drawn at every start of a
 * process (32 bits) and a counter (64 bits) that begins at the wall clock, so that two starts that
 * draw one salt still count in different ranges. Header, all of it and the cluster's id
 * authenticated:
 *
 *   version 1 | kind 1 | key id 4 | receiver 8 (0: unknown) | sender 8 | generation 4 | salt 4 |
 *   counter 8 | ciphertext | tag 16
 *
 * Against repetition each sender has a window of 1024 counters, which belongs to one (generation,
 * salt). No clock and no disk can order the starts of a process for sure: clocks are set back,
 * disks restored. So a salt is believed only when its sender answers a fresh random challenge, and
 * from there on every other salt of the sender is refused until it does the same:
 *
 *   A (new start)                         B
 *   data ------------------------------>  salt not known: dropped, but
 *        <------------------------------  challenge(nonce)
 *   proof(nonce, the data again) ------>  window begins here; delivered
 *
 * A keeps what it sent during the last second for that. A challenge needs no window of its own: an
 * old one that is repeated only makes A prove an old nonce again. The nonce is consumed once.
 *
 * A datagram under a key that we do not have is answered by a short clear notice, so that both logs
 * say why; it repeats salt and counter, proves nothing and changes nothing.
 *
 * Memory: what is kept of a sender is kept only after its seal was found good, for senders_max of
 * them. Thread: the owner's. Source: clustering notes 7.
 */
#ifndef SKEIN_GOSSIP_NET_SEAL_H
#define SKEIN_GOSSIP_NET_SEAL_H

#include "gossip/core/gossip.h"
#include "gossip/net/cluster_key.h"
#include "node/base/addr.h"

enum {
    SEAL_PLAIN_MAX = GOSSIP_DATAGRAM_MAX - GOSSIP_SEAL_MAX,
    SEAL_HEADER_BYTES = 38,
    SEAL_PROOF_BYTES = 8,
    SEAL_OVERHEAD = SEAL_HEADER_BYTES + SEAL_PROOF_BYTES + AEAD_TAG_BYTES,
    SEAL_NOTICE_BYTES = 21,
};

/* What became of a datagram. */
enum seal_result {
    SEAL_OK = 0,
    SEAL_CONTROL,      /* challenge or bare proof: handled here, nothing to deliver */
    SEAL_NOTICE,       /* the receiver of ours has another key; ret->key_id is its */
    SEAL_MALFORMED,    /* too short, or no datagram of ours */
    SEAL_VERSION,      /* a version that we do not speak */
    SEAL_UNKNOWN_KEY,  /* ret->key_id is not one of ours; a notice was sent */
    SEAL_MISADDRESSED, /* for another node, which had our address */
    SEAL_SELF,         /* from our own identity: a reflection, or a copy of our data folder */
    SEAL_BROKEN,       /* not sealed with the key that it names */
    SEAL_REPLAY,       /* seen before, or too old to tell */
    SEAL_UNPROVEN,     /* first of a new start: challenged, will be sent again */
    SEAL_RESULT_COUNT
};

/* "replay", ...: the reason label of the counter of drops. Static. */
const char *seal_result_name(enum seal_result result);

struct seal_config {
    const struct crypto *crypto;     /* borrowed until seal_free */
    const struct cluster_keys *keys; /* likewise */
    uint64_t self_id;
    uint32_t generation;
    uint64_t wall_ms;   /* the counter's beginning */
    size_t senders_max; /* > 0 */

    /* Put a datagram on the wire; called from seal_send and seal_open. */
    void (*emit)(void *ctx, const struct addr *to, const uint8_t *bytes, size_t len);
    void *ctx;
};

struct seal;

/* Never NULL. */
struct seal *seal_new(const struct seal_config *config);
void seal_free(struct seal *seal); /* NULL is accepted */

/* A new generation of ourselves; no-op when unchanged. */
void seal_set_generation(struct seal *seal, uint32_t generation);

/* Seal and emit. to_id 0: the receiver's identity is not known. len at most SEAL_PLAIN_MAX. */
void seal_send(struct seal *seal, const struct addr *to, uint64_t to_id, const uint8_t *plain,
               size_t len, uint64_t now_ms);

struct seal_opened {
    uint64_t from_id;     /* proved when SEAL_OK; only claimed otherwise; 0: none */
    uint32_t key_id;      /* that the datagram names */
    const uint8_t *plain; /* within the input, decrypted in place */
    size_t len;
};

/* Open one datagram that came from `from`; the bytes are overwritten. Emits challenges, proofs and
 * notices. *ret is always set. */
enum seal_result seal_open(struct seal *seal, const struct addr *from, uint8_t *bytes, size_t len,
                           uint64_t now_ms, struct seal_opened *ret);

/* Challenges, proofs and notices emitted, for metrics. */
struct seal_counters {
    uint64_t challenges;
    uint64_t proofs;
    uint64_t notices;
};
const struct seal_counters *seal_counters(const struct seal *seal);

#endif
