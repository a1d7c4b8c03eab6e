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
#include "node/base/errors.h"

enum {
    ROW_STAMP_LEN = 32,             /* bytes of a stamp */
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

static inline bool row_is_live(const struct row *row)
{
    return (row->flags & ROW_TOMBSTONE) == 0;
}

/*
 * The stamp as bytes whose memcmp order is the order of versions: big-endian hlc | node |
 * generation (8 bytes) | value hash. Of two rows with one key the larger stamp wins; equal stamps
 * are one version. Pure, any thread.
 */
void row_stamp(const struct row *row, uint8_t out[ROW_STAMP_LEN]);

/* <0, 0, >0: the order of the stamps, without making them. */
int row_compare(const struct row *a, const struct row *b);

int origin_compare(struct origin a, struct origin b);

/* Lengths, counts and pointers are in range, the vector names the dot. RC_INVALID with a text. */
MUST_CHECK int row_check(const struct row *row, struct err_info *err);

/* A deep copy in one block of memory (mem_free); `vector`, when given, replaces the row's own. */
struct row *row_copy(const struct row *row, const struct dot *vector, size_t vector_len);

#endif
