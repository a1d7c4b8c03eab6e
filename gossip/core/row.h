/*
 * A replicated entry as the cluster sees it: a key, who wrote it when, and opaque bytes.
 *
 * gossip/core replicates rows, store persists them, node/app gives them meaning (value is a packed
 * protobuf object). The winner of two versions of one key is the one with the larger stamp
 * (hlc, node, generation, value hash), so all nodes agree without talking.
 * Source: the clustering notes 2.2 and 2.3.
 */
#ifndef SKEIN_GOSSIP_CORE_ROW_H
#define SKEIN_GOSSIP_CORE_ROW_H

#include "node/base/defs.h"

enum {
    ROW_ID_MAX = 420,               /* bytes of an id: namespace/backend/address:port */
    ROW_VALUE_MAX = 256 * 1024,     /* bytes of a value */
    ROW_VECTOR_MAX = 64,            /* writers remembered per key */
    CHANGE_SET_ROWS_MAX = 1000,     /* rows written together */
    CHANGE_SET_BYTES_MAX = 4 << 20, /* bytes of all values written together */
};

/* Who writes: a node's persisted random id, and how often it lost its memory. */
struct origin {
    uint64_t node;
    uint32_t generation;
};

/* One write. seq counts the writes of one origin from 1 and is never reused. */
struct dot {
    struct origin origin;
    uint64_t seq;
};

enum row_flags {
    ROW_TOMBSTONE = 1, /* deleted: no value */
    ROW_SECRET = 2,    /* never in a datagram: streams only */
};

struct row {
    uint16_t kind;            /* application's number, 1..255 */
    uint16_t id_len;          /* 1..ROW_ID_MAX */
    uint32_t value_len;       /* 0..ROW_VALUE_MAX */
    uint32_t flags;           /* enum row_flags */
    uint32_t vector_len;      /* 1..ROW_VECTOR_MAX */
    uint64_t hlc;             /* hybrid logical clock: milliseconds << 16 | counter */
    uint64_t created_hlc;     /* hlc of the write that created the key; kept over updates */
    struct dot dot;           /* the write that made this version */
    const char *id;           /* not NUL-terminated */
    const uint8_t *value;     /* NULL when value_len is 0 */
    const struct dot *vector; /* latest seq per writer of this key, dot included */
};

static inline uint64_t hlc_wall_ms(uint64_t hlc)
{
    return hlc >> 16;
}

#endif
