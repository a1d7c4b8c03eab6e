/*
 * What the tests of the store share: a folder that goes away, rows by number, a table of what a
 * store holds.
 */
#ifndef SKEIN_TESTS_UNIT_STORE_FIXTURE_H
#define SKEIN_TESTS_UNIT_STORE_FIXTURE_H

#include "tests/support/unit.h"

#include "store/internal.h"

#include "node/base/mem.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HELD_MAX = 2000, PEER = 77 };

/* ---- a folder per test ---- */

UNUSED static int folder_setup(void **state)
{
    char path[] = "/tmp/skein-store-XXXXXX";
    if (mkdtemp(path) == NULL) {
        return -1;
    }
    *state = mem_strdup(path);
    return 0;
}

UNUSED static int folder_teardown(void **state)
{
    char path[STORE_PATH_MAX];
    DIR *dir = opendir(*state);
    for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
        snprintf(path, sizeof(path), "%s/%s", (char *)*state, entry->d_name);
        if (entry->d_name[0] != '.') {
            unlink(path);
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
    rmdir(*state);
    mem_free(*state);
    return 0;
}

#define FOLDER_TEST(f) cmocka_unit_test_setup_teardown(f, folder_setup, folder_teardown)

/* The first file whose name begins so, into out; false: none. */
UNUSED static bool find_file(const char *folder, const char *prefix, char out[STORE_PATH_MAX])
{
    bool found = false;
    DIR *dir = opendir(folder);
    for (struct dirent *entry; !found && (entry = readdir(dir)) != NULL;) {
        if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0) {
            snprintf(out, STORE_PATH_MAX, "%s/%s", folder, entry->d_name);
            found = true;
        }
    }
    closedir(dir);
    return found;
}

UNUSED static void remove_file(const char *folder, const char *name)
{
    char path[STORE_PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    assert_int_equal(unlink(path), 0);
}

UNUSED static void write_file(const char *folder, const char *name, const void *bytes, size_t len)
{
    char path[STORE_PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, len, file), len);
    fclose(file);
}

/* ---- open ---- */

UNUSED static struct store *open_noting(const char *dir, struct store_opened *opened)
{
    struct store *store = NULL;
    struct err_info err = {0};
    int rc = store_open(dir, &store, opened, &err);
    if (rc != RC_OK) {
        fail_msg("store_open: %s: %s", rc_name(rc), err.text);
    }
    return store;
}

UNUSED static struct store *open_store(const char *dir)
{
    struct store_opened opened;
    return open_noting(dir, &opened);
}

/* ---- rows ---- */

/* A row and what it points to. */
struct sample {
    struct row row;
    const struct row *list;
    struct dot dot;
    char id[64];
    uint8_t value[64];
};

UNUSED static void sample_make(struct sample *s, const char *id, uint64_t node, uint64_t seq,
                               uint64_t hlc, const char *value)
{
    memset(s, 0, sizeof(*s));
    snprintf(s->id, sizeof(s->id), "%s", id);
    snprintf((char *)s->value, sizeof(s->value), "%s", value);
    s->dot = (struct dot){.origin = {.node = node, .generation = 1}, .seq = seq};
    s->row = (struct row){
        .kind = 2,
        .id_len = (uint16_t)strlen(s->id),
        .value_len = (uint32_t)strlen((char *)s->value),
        .vector_len = 1,
        .hlc = hlc,
        .created_hlc = hlc,
        .dot = s->dot,
        .id = s->id,
        .value = s->value,
        .vector = &s->dot,
    };
    s->list = &s->row;
}

UNUSED static struct gossip_batch sample_batch(struct sample *s)
{
    return (struct gossip_batch){
        .rows = &s->list, .row_count = 1, .frontier = &s->dot, .frontier_count = 1};
}

UNUSED static int try_write(struct store *store, const struct gossip_batch *batch)
{
    struct err_info err;
    int rc = store_begin(store, &err);
    if (rc == RC_OK) {
        rc = store_apply(store, batch, &err);
        if (rc == RC_OK) {
            return store_commit(store, &err);
        }
        store_rollback(store);
    }
    return rc;
}

UNUSED static void write_batch(struct store *store, const struct gossip_batch *batch)
{
    assert_int_equal(try_write(store, batch), RC_OK);
}

UNUSED static void write_sample(struct store *store, const char *id, uint64_t node, uint64_t seq,
                                uint64_t hlc, const char *value)
{
    struct sample s;
    sample_make(&s, id, node, seq, hlc, value);
    struct gossip_batch batch = sample_batch(&s);
    write_batch(store, &batch);
}

/* ---- what a store holds ---- */

struct held {
    struct row *rows[HELD_MAX];
    size_t row_count;
    struct dot frontier[HELD_MAX];
    size_t frontier_count;
    struct gossip_member members[64];
    size_t member_count;
};

UNUSED static int held_row(void *ctx, const struct row *row, struct err_info *err)
{
    (void)err;
    struct held *held = ctx;
    assert_true(held->row_count < HELD_MAX);
    held->rows[held->row_count++] = row_copy(row, NULL, 0);
    return RC_OK;
}

UNUSED static int held_frontier(void *ctx, const struct dot *dot, struct err_info *err)
{
    (void)err;
    struct held *held = ctx;
    assert_true(held->frontier_count < HELD_MAX);
    held->frontier[held->frontier_count++] = *dot;
    return RC_OK;
}

UNUSED static int held_member(void *ctx, const struct gossip_member *member, struct err_info *err)
{
    (void)err;
    struct held *held = ctx;
    assert_true(held->member_count < ARRAY_LEN(held->members));
    held->members[held->member_count++] = *member;
    return RC_OK;
}

UNUSED static struct held *held_load(struct store *store)
{
    static const struct store_visitor visitor = {held_row, held_frontier, held_member};
    struct held *held = mem_new(sizeof(*held));
    struct err_info err = {0};
    int rc = store_load(store, &visitor, held, &err);
    if (rc != RC_OK) {
        fail_msg("store_load: %s: %s", rc_name(rc), err.text);
    }
    return held;
}

UNUSED static void held_free(struct held *held)
{
    for (size_t i = 0; i < held->row_count; i++) {
        mem_free(held->rows[i]);
    }
    mem_free(held);
}

UNUSED static const struct row *held_find(const struct held *held, const char *id)
{
    for (size_t i = 0; i < held->row_count; i++) {
        if (held->rows[i]->id_len == strlen(id) && memcmp(held->rows[i]->id, id, strlen(id)) == 0) {
            return held->rows[i];
        }
    }
    return NULL;
}

/* 0: not there. */
UNUSED static uint64_t held_seq(const struct held *held, uint64_t node)
{
    for (size_t i = 0; i < held->frontier_count; i++) {
        if (held->frontier[i].origin.node == node) {
            return held->frontier[i].seq;
        }
    }
    return 0;
}

#endif
