/* The table: merge laws, frontier, what is loose, and the audit sums. */
#include "gossip/core/kv.h"
#include "node/base/mem.h"
#include "node/base/rng.h"
#include "tests/support/unit.h"

enum { WRITES = 24, ORIGINS = 3, KEYS = 5 };

struct sample {
    struct row row;
    struct dot vector[1];
    char id[16];
    uint8_t value[4];
};

static void make(struct sample *sample, unsigned key, uint64_t node, uint64_t seq, uint64_t hlc,
                 bool deleted)
{
    *sample = (struct sample){.vector = {{{node, 1}, seq}}};
    (void)snprintf(sample->id, sizeof(sample->id), "key-%u", key);
    sample->value[0] = (uint8_t)seq;
    sample->row = (struct row){
        .kind = 1,
        .id = sample->id,
        .id_len = (uint16_t)strlen(sample->id),
        .flags = deleted ? ROW_TOMBSTONE : 0,
        .value = deleted ? NULL : sample->value,
        .value_len = deleted ? 0 : 4,
        .hlc = hlc,
        .created_hlc = hlc,
        .dot = {{node, 1}, seq},
        .vector = sample->vector,
        .vector_len = 1,
    };
}

static struct kv *new_kv(void)
{
    struct kv *kv = mem_new(sizeof(*kv));
    kv_init(kv, 11);
    return kv;
}

static void free_kv(struct kv *kv)
{
    kv_deinit(kv);
    mem_free(kv);
}

static enum kv_effect apply(struct kv *kv, const struct row *row)
{
    struct kv_change change;
    assert_int_equal(kv_apply(kv, row, true, &change), RC_OK);
    if (change.effect == KV_ROW) {
        mem_free(change.old);
    }
    return change.effect;
}

static void check_index(const struct kv *kv)
{
    size_t entries = 0;
    size_t dots = 0;
    for (const struct kv_entry *entry = kv->entries; entry != NULL; entry = entry->hh.next) {
        for (uint32_t i = 0; i < entry->row->vector_len; i++) {
            const struct dot *dot = &entry->row->vector[i];
            const struct kv_origin *origin = kv_find_origin(kv, dot->origin);
            assert_non_null(origin);
            const struct seqmap_node *node = seqmap_above(&origin->writes, dot->seq, entry->no - 1);
            assert_non_null(node);
            assert_ptr_equal(node->item, entry);
            dots++;
        }
    }
    for (const struct kv_origin *origin = kv->origins; origin != NULL; origin = origin->hh.next) {
        entries += origin->writes.count;
    }
    assert_int_equal(entries, dots);
}

static void any_order_gives_the_same_table(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 5);
    for (int round = 0; round < 300; round++) {
        struct sample writes[WRITES];
        uint64_t seqs[ORIGINS] = {0};
        for (unsigned i = 0; i < WRITES; i++) {
            unsigned origin = (unsigned)rng_below(&rng, ORIGINS);
            make(&writes[i], (unsigned)rng_below(&rng, KEYS), origin + 1, ++seqs[origin],
                 1 + rng_below(&rng, 6), rng_chance(&rng, 0.3));
        }
        struct kv *first = new_kv();
        struct kv *second = new_kv();
        for (unsigned i = 0; i < WRITES; i++) {
            (void)apply(first, &writes[i].row); /* whether it won does not matter here */
        }
        for (unsigned i = 0; i < 4 * WRITES; i++) {
            (void)apply(second, &writes[rng_below(&rng, WRITES)].row); /* with repetitions */
        }
        for (unsigned i = WRITES; i > 0; i--) {
            (void)apply(second, &writes[i - 1].row);
        }
        /* Frontiers advance at different times on the two. */
        for (unsigned i = 0; i < ORIGINS; i++) {
            (void)kv_advance(first, (struct origin){i + 1, 1}, seqs[i], true);
        }
        (void)kv_advance(second, (struct origin){1, 1}, seqs[0] / 2, true);
        for (unsigned i = 0; i < ORIGINS; i++) {
            (void)kv_advance(second, (struct origin){i + 1, 1}, seqs[i], true);
        }
        assert_int_equal(first->frontier_hash, second->frontier_hash);
        assert_int_equal(first->audit_root, second->audit_root);
        assert_int_equal(first->live_rows, second->live_rows);
        assert_int_equal(first->revision, WRITES);
        check_index(first);
        check_index(second);
        for (unsigned i = 0; i < WRITES; i++) {
            const struct row *row = &writes[i].row;
            const struct kv_entry *a = kv_find(first, 1, row->id, row->id_len);
            const struct kv_entry *b = kv_find(second, 1, row->id, row->id_len);
            assert_int_equal(row_compare(a->row, b->row), 0);
            assert_int_equal(a->row->vector_len, b->row->vector_len);
            assert_true(row_compare(a->row, row) >= 0);
        }
        free_kv(first);
        free_kv(second);
    }
}

static void a_loser_leaves_its_mark_in_the_vector(void **state)
{
    (void)state;
    struct kv *kv = new_kv();
    struct sample winner;
    struct sample loser;
    make(&winner, 1, 1, 1, 200, false);
    make(&loser, 1, 2, 1, 100, false);
    assert_int_equal(apply(kv, &winner.row), KV_ROW);
    assert_int_equal(apply(kv, &loser.row), KV_VECTOR);
    assert_int_equal(apply(kv, &loser.row), KV_SAME);
    const struct kv_entry *entry = kv_find(kv, 1, "key-1", 5);
    assert_int_equal(entry->row->vector_len, 2);
    assert_int_equal(entry->row->dot.origin.node, 1);
    free_kv(kv);
}

static void loose_rows_show_in_the_hash_until_the_frontier_covers_them(void **state)
{
    (void)state;
    struct kv *a = new_kv();
    struct kv *b = new_kv();
    struct origin origin = {1, 1};
    struct sample write;
    make(&write, 1, 1, 5, 100, true);
    assert_int_equal(a->frontier_hash, b->frontier_hash);
    (void)apply(a, &write.row);
    assert_int_not_equal(a->frontier_hash, b->frontier_hash);
    assert_true(kv_advance(a, origin, 4, true));
    assert_true(kv_advance(b, origin, 4, true));
    assert_int_not_equal(a->frontier_hash, b->frontier_hash);
    assert_true(kv_advance(a, origin, 5, true));
    assert_true(kv_advance(b, origin, 5, true));
    assert_int_equal(a->frontier_hash, b->frontier_hash);
    assert_false(kv_advance(a, origin, 5, true));
    assert_false(kv_advance(a, origin, 3, true));
    assert_int_equal(kv_frontier(a, origin), 5);
    /* b claims a deletion that it does not hold: the audit counts live rows only. */
    assert_int_equal(a->audit_root, b->audit_root);
    make(&write, 2, 1, 4, 100, false);
    (void)apply(a, &write.row);
    assert_int_not_equal(a->audit_root, b->audit_root);
    free_kv(a);
    free_kv(b);
}

static void vectors_and_origins_are_bounded(void **state)
{
    (void)state;
    struct kv *kv = new_kv();
    struct sample write;
    for (unsigned i = 1; i <= 2 * ROW_VECTOR_MAX; i++) {
        make(&write, 1, i, 1, i, false);
        (void)apply(kv, &write.row);
    }
    const struct kv_entry *entry = kv_find(kv, 1, "key-1", 5);
    assert_int_equal(entry->row->vector_len, ROW_VECTOR_MAX);
    assert_int_equal(row_check(entry->row, NULL), RC_OK);
    check_index(kv);
    for (unsigned i = 1; i <= MSG_FRONTIER_MAX; i++) {
        make(&write, i, i, 1, 500, false);
        (void)apply(kv, &write.row);
    }
    struct kv_change change;
    make(&write, 1, MSG_FRONTIER_MAX + 1, 1, 900, false);
    assert_int_equal(kv_apply(kv, &write.row, true, &change), RC_FULL);
    assert_int_equal(kv_find(kv, 1, "key-1", 5)->row->hlc, 500);
    free_kv(kv);
}

static void what_changed_is_dirty_once(void **state)
{
    (void)state;
    struct kv *kv = new_kv();
    struct sample write;
    for (unsigned i = 1; i <= 3; i++) {
        make(&write, 1, 1, i, 100 + i, false);
        (void)apply(kv, &write.row);
    }
    assert_int_equal(kv->dirty_count, 1);
    (void)kv_advance(kv, (struct origin){1, 1}, 2, true);
    (void)kv_advance(kv, (struct origin){1, 1}, 3, true);
    assert_int_equal(kv->dirty_origins, 1);
    free_kv(kv);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_order_gives_the_same_table),
        cmocka_unit_test(a_loser_leaves_its_mark_in_the_vector),
        cmocka_unit_test(loose_rows_show_in_the_hash_until_the_frontier_covers_them),
        cmocka_unit_test(vectors_and_origins_are_bounded),
        cmocka_unit_test(what_changed_is_dirty_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
