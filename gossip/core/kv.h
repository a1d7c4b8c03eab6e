/*
 * The replicated table of one node: rows by key, the exact frontier, and what others need to
 * compare with it.
 *
 * Invariants
 * 1. frontier[o] = s: for every key that o wrote at seq <= s, the table holds that write or a later
 *    version, or did once. Only a whole change-set without a gap, or the mark at the end of a sync,
 *    may advance it.
 * 2. writes[o] maps o's latest write of each key to that key, also where another origin's write
 *    won: it is exactly the rows' vectors, turned around. Overwriting moves an entry upwards, never
 *    down, so that an ascending walk meets every key (sync.c rests on it).
 * 3. kv_apply commutes, associates and is idempotent: the winner is the larger stamp, vectors join
 *    by maximum.
 * 4. A row whose write lies above its origin's frontier ("loose") came out of order, or its
 *    predecessors are lost for good. Loose writes take part in frontier_hash, so that two nodes
 *    with equal hashes hold the same rows, and a difference in loose rows alone is repaired too.
 * 5. Entries are never removed and never move; deletions are rows too.
 * Pure. Thread: the owner's.
 */
#ifndef SKEIN_GOSSIP_CORE_KV_H
#define SKEIN_GOSSIP_CORE_KV_H

#include "gossip/core/message.h"
#include "gossip/core/row.h"
#include "gossip/core/seqmap.h"

#include "node/base/hashtable.h"

enum { KV_ROWS_MAX = 4 << 20 /* keys, deleted ones included */ };

struct kv_entry {
    UT_hash_handle hh;
    struct row *row;   /* owned; what the key holds now */
    uint64_t no;       /* local, in order of creation */
    uint64_t row_hash; /* its part of the audit; 0: deleted */
    uint32_t bucket;   /* of the audit */
    bool dirty;        /* waits to be persisted */
    uint16_t key_len;
    uint8_t key[]; /* kind (2 bytes) and id */
};

struct kv_origin {
    UT_hash_handle hh;
    struct origin origin;
    uint64_t frontier;
    struct seqmap writes;  /* latest seq per key -> struct kv_entry */
    uint64_t peer_seq;     /* scratch of sync.c while it plans a session */
    uint64_t gap_since_ms; /* repair.c: a write above the frontier is held since; 0: none */
    uint64_t gap_frontier; /* which did not move in that time */
    uint32_t gap_tries;    /* sessions opened for it */
    bool dirty;            /* frontier waits to be persisted */
};

struct kv {
    struct kv_entry *entries;
    struct kv_origin *origins;
    struct kv_entry **dirty; /* owned array of borrowed entries */
    size_t dirty_count;
    size_t dirty_size;
    size_t dirty_origins;
    uint64_t live_rows;
    uint64_t revision;      /* sum of the frontier */
    uint64_t frontier_hash; /* XOR of one hash per frontier entry and per loose write */
    uint64_t audit_root;    /* XOR of one hash per bucket */
    uint64_t seed;
    uint64_t last_no;
    uint64_t buckets[MSG_BUCKETS]; /* XOR of the live rows' hashes */
};

enum kv_effect {
    KV_SAME = 0, /* nothing new */
    KV_VECTOR,   /* only the vector grew */
    KV_ROW,      /* the key holds another version now */
};

struct kv_change {
    enum kv_effect effect;
    const struct row *row; /* what the key holds now */
    struct row *old;       /* KV_ROW: what it held (NULL: nothing); the caller's to mem_free */
};

void kv_init(struct kv *kv, uint64_t seed);
void kv_deinit(struct kv *kv);

/* Merge one checked row. persist: mark what changed as dirty. RC_FULL: too many keys or origins,
 * nothing changed. */
MUST_CHECK int kv_apply(struct kv *kv, const struct row *row, bool persist,
                        struct kv_change *ret_change);

/* NULL when never seen. */
struct kv_entry *kv_find(const struct kv *kv, uint16_t kind, const char *id, size_t id_len);
struct kv_origin *kv_find_origin(const struct kv *kv, struct origin origin);

uint64_t kv_frontier(const struct kv *kv, struct origin origin);

/* True when it moved (it never goes back). */
bool kv_advance(struct kv *kv, struct origin origin, uint64_t seq, bool persist);

/* Origins known, also those with frontier 0. */
size_t kv_origin_count(const struct kv *kv);

/* Put an entry (back) on the list of what waits to be persisted. */
void kv_mark_dirty(struct kv *kv, struct kv_entry *entry);
void kv_mark_origin_dirty(struct kv *kv, struct kv_origin *origin);

/* The vector of a write over `held` (NULL: nothing), its own entry last. Returns the count, at most
 * ROW_VECTOR_MAX. */
size_t kv_vector(const struct row *held, const struct dot *dot, struct dot out[ROW_VECTOR_MAX]);

#endif
