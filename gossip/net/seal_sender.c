/*
 * The table of senders; see seal_sender.h.
 */
#include "gossip/net/seal_sender.h"

#include "node/base/mem.h"

struct sender *sender_find(const struct sender_table *table, uint64_t id)
{
    struct sender *sender = NULL;
    HASH_FIND(hh, table->head, &id, sizeof(id), sender);
    return sender;
}

static void sender_remove(struct sender_table *table, struct sender *sender)
{
    HASH_DEL(table->head, sender);
    aead_free(sender->aead);
    mem_free(sender);
}

/* Linear, but only members of the cluster can make it happen, and only above count_max. */
static void evict_oldest(struct sender_table *table)
{
    struct sender *oldest = table->head;
    for (struct sender *at = table->head; at != NULL; at = at->hh.next) {
        if (at->heard_ms < oldest->heard_ms) {
            oldest = at;
        }
    }
    sender_remove(table, oldest);
}

struct sender *sender_add(struct sender_table *table, uint64_t id, uint64_t now_ms)
{
    if (HASH_COUNT(table->head) >= table->count_max) {
        evict_oldest(table);
    }
    struct sender *sender = mem_new(sizeof(*sender));
    sender->id = id;
    sender->heard_ms = now_ms;
    HASH_ADD(hh, table->head, id, sizeof(sender->id), sender);
    return sender;
}

bool sender_is_current(const struct sender *sender, uint32_t generation, uint32_t salt)
{
    return sender->proven && sender->generation == generation && sender->salt == salt;
}

void sender_table_deinit(struct sender_table *table)
{
    while (table->head != NULL) {
        sender_remove(table, table->head);
    }
}
