/*
 * The simulator's knowledge of what was written; see oracle.h.
 */
#include "tests/sim/oracle.h"

#include "node/base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Keys of the hash tables must have no padding, so they are built in bytes. */
enum { DOT_KEY_LEN = 20 };

void oracle_init(struct oracle *oracle)
{
    *oracle = (struct oracle){.fault = ""};
}

void oracle_deinit(struct oracle *oracle)
{
    struct oracle_write *write = NULL;
    struct oracle_write *next_write = NULL;
    HASH_ITER (hh, oracle->writes, write, next_write) {
        HASH_DEL(oracle->writes, write);
        mem_free(unconst(write->hh.key));
        mem_free(write);
    }
    struct oracle_key *key = NULL;
    struct oracle_key *next_key = NULL;
    HASH_ITER (hh, oracle->keys, key, next_key) {
        HASH_DEL(oracle->keys, key);
        mem_free(unconst(key->hh.key));
        mem_free(key);
    }
}

void oracle_fail(struct oracle *oracle, const char *fmt, ...)
{
    if (oracle->fault[0] == '\0') {
        va_list args;
        va_start(args, fmt);
        (void)vsnprintf(oracle->fault, sizeof(oracle->fault), fmt, args); /* may be cut */
        va_end(args);
    }
}

static void dot_key(const struct dot *dot, uint8_t out[DOT_KEY_LEN])
{
    memcpy(out, &dot->origin.node, 8);
    memcpy(out + 8, &dot->origin.generation, 4);
    memcpy(out + 12, &dot->seq, 8);
}

struct oracle_write *oracle_find(const struct oracle *oracle, const struct dot *dot)
{
    uint8_t key[DOT_KEY_LEN];
    dot_key(dot, key);
    struct oracle_write *write = NULL;
    HASH_FIND(hh, oracle->writes, key, DOT_KEY_LEN, write);
    return write;
}

void oracle_durable(struct oracle *oracle, const struct row *row, bool known)
{
    uint8_t stamp[ROW_STAMP_LEN];
    row_stamp(row, stamp);
    struct oracle_write *write = oracle_find(oracle, &row->dot);
    if (write != NULL) {
        if (memcmp(write->stamp, stamp, sizeof(stamp)) == 0) {
            return;
        }
        if (known) {
            oracle_fail(oracle, "write %llx/%u/%llu names two values (%.*s and %.*s)",
                        (unsigned long long)row->dot.origin.node, row->dot.origin.generation,
                        (unsigned long long)row->dot.seq, write->id_len, write->id, row->id_len,
                        row->id);
            return;
        }
        /* The first one was lost with its only disk: its number is free. */
        HASH_DEL(oracle->writes, write);
        mem_free(unconst(write->hh.key));
        mem_free(write);
    }
    write = mem_new(sizeof(*write));
    write->dot = row->dot;
    write->kind = row->kind;
    write->id_len = row->id_len;
    write->live = row_is_live(row);
    memcpy(write->id, row->id, row->id_len);
    memcpy(write->stamp, stamp, sizeof(stamp));
    uint8_t *key = mem_new(DOT_KEY_LEN);
    dot_key(&row->dot, key);
    HASH_ADD_KEYPTR(hh, oracle->writes, key, DOT_KEY_LEN, write);
}

static struct oracle_key *key_get(struct oracle *oracle, const struct row *row)
{
    uint8_t bytes[2 + ROW_ID_MAX];
    memcpy(bytes, &row->kind, 2);
    memcpy(bytes + 2, row->id, row->id_len);
    unsigned len = row->id_len + 2U;
    struct oracle_key *key = NULL;
    HASH_FIND(hh, oracle->keys, bytes, len, key);
    if (key == NULL) {
        key = mem_new(sizeof(*key));
        key->kind = row->kind;
        key->id_len = row->id_len;
        memcpy(key->id, row->id, row->id_len);
        uint8_t *name = mem_dup(bytes, len);
        HASH_ADD_KEYPTR(hh, oracle->keys, name, len, key);
    }
    return key;
}

void oracle_better(uint8_t best[ROW_STAMP_LEN], const struct row *row)
{
    if (row != NULL) {
        uint8_t stamp[ROW_STAMP_LEN];
        row_stamp(row, stamp);
        if (memcmp(stamp, best, ROW_STAMP_LEN) > 0) {
            memcpy(best, stamp, ROW_STAMP_LEN);
        }
    }
}

void oracle_acknowledged(struct oracle *oracle, const struct row *row)
{
    oracle_better(key_get(oracle, row)->required, row);
}

void oracle_check_frontier(struct oracle *oracle, const struct gossip *core, const char *name)
{
    for (const struct oracle_write *write = oracle->writes; write != NULL; write = write->hh.next) {
        if (gossip_frontier_of(core, write->dot.origin) < write->dot.seq) {
            continue;
        }
        uint8_t held[ROW_STAMP_LEN] = {0};
        oracle_better(held, gossip_find(core, write->kind, write->id, write->id_len));
        if (memcmp(held, write->stamp, sizeof(held)) < 0) {
            oracle_fail(oracle, "%s: its frontier covers %llx/%u/%llu of %.*s, which it lacks",
                        name, (unsigned long long)write->dot.origin.node,
                        write->dot.origin.generation, (unsigned long long)write->dot.seq,
                        write->id_len, write->id);
            return;
        }
    }
}

struct check {
    struct oracle *oracle;
    const char *name;
};

static bool check_written(void *arg, const struct row *row)
{
    struct check *check = arg;
    const struct oracle_write *write = oracle_find(check->oracle, &row->dot);
    uint8_t stamp[ROW_STAMP_LEN];
    row_stamp(row, stamp);
    if (write == NULL || memcmp(write->stamp, stamp, sizeof(stamp)) != 0) {
        oracle_fail(check->oracle, "%s holds a version of %.*s that nobody made durable",
                    check->name, row->id_len, row->id);
        return false;
    }
    return true;
}

void oracle_check_required(struct oracle *oracle, const struct gossip *core, const char *name)
{
    for (const struct oracle_key *key = oracle->keys; key != NULL; key = key->hh.next) {
        const struct row *row = gossip_find(core, key->kind, key->id, key->id_len);
        uint8_t held[ROW_STAMP_LEN] = {0};
        oracle_better(held, row);
        if (memcmp(held, key->required, sizeof(held)) < 0) {
            oracle_fail(oracle, "%s lacks an acknowledged write of %.*s: holds %s", name,
                        key->id_len, key->id,
                        row == NULL         ? "nothing"
                        : !row_is_live(row) ? "an older deletion"
                                            : "an older version");
            return;
        }
    }
    struct check check = {oracle, name};
    gossip_each_row(core, check_written, &check);
}
