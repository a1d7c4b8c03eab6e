/*
 * What must hold, known from outside: every write that ever became durable, and for each key the
 * smallest version that may be held in the end.
 *
 * A write is required once it was acknowledged. When the last holder of the required version dies
 * with its memory or loses its disk, the requirement falls to the best version that is left: no
 * design can give back what nobody has. Source: clustering notes 8.
 */
#ifndef SKEIN_TESTS_SIM_ORACLE_H
#define SKEIN_TESTS_SIM_ORACLE_H

#include "gossip/core/gossip.h"
#include "node/base/hashtable.h"

struct oracle_write {
    UT_hash_handle hh;
    struct dot dot;
    uint16_t kind;
    uint16_t id_len;
    char id[ROW_ID_MAX];
    uint8_t stamp[ROW_STAMP_LEN];
    bool live;
    uint64_t durable_ms;
    size_t holders; /* nodes whose key holds it */
};

struct oracle_key {
    UT_hash_handle hh;
    uint16_t kind;
    uint16_t id_len;
    uint8_t required[ROW_STAMP_LEN]; /* all zero: nothing */
    char id[ROW_ID_MAX];
};

struct oracle {
    struct oracle_write *writes;
    struct oracle_key *keys;
    char fault[512]; /* first violation; "" while all is well */
};

void oracle_init(struct oracle *oracle);
void oracle_deinit(struct oracle *oracle);
void oracle_fail(struct oracle *oracle, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* A row of a node's own reached its disk. `known`: somebody else still knows a write under that
 * number (it then must be this one). */
void oracle_durable(struct oracle *oracle, const struct row *row, bool known);
/* The writer was told so. */
void oracle_acknowledged(struct oracle *oracle, const struct row *row);

struct oracle_write *oracle_find(const struct oracle *oracle, const struct dot *dot);

/* The larger of best and row's stamp (NULL: nothing). */
void oracle_better(uint8_t best[ROW_STAMP_LEN], const struct row *row);

/* Frontier soundness of one running node. */
void oracle_check_frontier(struct oracle *oracle, const struct gossip *core, const char *name);
/* Every required version, or a later one, is there, and it is one that was written. */
void oracle_check_required(struct oracle *oracle, const struct gossip *core, const char *name);

#endif
