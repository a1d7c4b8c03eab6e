/*
 * Quiescent-state reclamation; see qsbr.h for the rule and the memory order.
 */
#include "node/proxy/qsbr.h"

#include "node/base/mem.h"

void qsbr_init(struct qsbr *qsbr, size_t reader_count)
{
    *qsbr = (struct qsbr){.reader_count = reader_count};
    atomic_init(&qsbr->epoch, 1);
    atomic_init(&qsbr->posted, NULL);
    qsbr->readers = mem_lines(MAX(reader_count, (size_t)1) * sizeof(struct qsbr_reader));
}

void qsbr_defer(struct qsbr *qsbr, struct qsbr_node *node, void (*release)(struct qsbr_node *))
{
    node->next = NULL;
    node->release = release;
    node->epoch = atomic_fetch_add_explicit(&qsbr->epoch, 1, memory_order_seq_cst) + 1;
    if (qsbr->tail != NULL) {
        qsbr->tail->next = node;
    } else {
        qsbr->head = node;
    }
    qsbr->tail = node;
    qsbr->deferred++;
}

void qsbr_post_mt(struct qsbr *qsbr, struct qsbr_node *node, void (*release)(struct qsbr_node *))
{
    node->release = release;
    struct qsbr_node *head = atomic_load_explicit(&qsbr->posted, memory_order_relaxed);
    do {
        node->next = head;
    } while (!atomic_compare_exchange_weak_explicit(&qsbr->posted, &head, node,
                                                    memory_order_release, memory_order_relaxed));
}

/* The oldest epoch that a reader may still live in; never ahead of now, so that what a release
 * function defers waits for its own turn. */
static uint64_t qsbr_horizon(struct qsbr *qsbr)
{
    uint64_t min = atomic_load_explicit(&qsbr->epoch, memory_order_seq_cst);
    for (size_t i = 0; i < qsbr->reader_count; i++) {
        uint64_t epoch = atomic_load_explicit(&qsbr->readers[i].epoch, memory_order_seq_cst);
        if (epoch != 0) {
            min = MIN(min, epoch);
        }
    }
    return min;
}

static size_t qsbr_release_posted(struct qsbr *qsbr)
{
    size_t count = 0;
    struct qsbr_node *node = atomic_exchange_explicit(&qsbr->posted, NULL, memory_order_acquire);
    while (node != NULL) {
        struct qsbr_node *next = node->next;
        node->release(node);
        node = next;
        count++;
    }
    return count;
}

static size_t qsbr_release_before(struct qsbr *qsbr, uint64_t horizon)
{
    size_t count = 0;
    while (qsbr->head != NULL && qsbr->head->epoch <= horizon) {
        struct qsbr_node *node = qsbr->head;
        qsbr->head = node->next;
        if (qsbr->head == NULL) {
            qsbr->tail = NULL;
        }
        qsbr->deferred--;
        node->release(node);
        count++;
    }
    return count;
}

size_t qsbr_reclaim(struct qsbr *qsbr)
{
    size_t count = 0;
    if (qsbr->head != NULL) {
        count = qsbr_release_before(qsbr, qsbr_horizon(qsbr));
    }
    return count + qsbr_release_posted(qsbr);
}

void qsbr_flush(struct qsbr *qsbr)
{
    size_t count;
    do {
        count = qsbr_release_before(qsbr, UINT64_MAX) + qsbr_release_posted(qsbr);
    } while (count != 0);
}

void qsbr_deinit(struct qsbr *qsbr)
{
    qsbr_flush(qsbr);
    MEM_FREE(qsbr->readers);
}
