/*
 * Messages from any thread into one loop: a bounded queue behind one async handle.
 *
 * The message embeds a struct mail and is found again with CONTAINER_OF; ownership passes with it.
 * Invariants: every mail that was accepted reaches on_mail exactly once, in the order of posting
 * per thread, also when the mailbox is closed meanwhile; a sender never blocks; wake-ups coalesce,
 * and one loop turn handles a bounded number of mails, so that a flood does not starve the loop.
 *
 * The lock is a leaf: no callback runs under it.
 */
#ifndef SKEIN_NODE_NET_MAILBOX_H
#define SKEIN_NODE_NET_MAILBOX_H

#include "node/base/defs.h"
#include "node/base/errors.h"

#include <pthread.h>
#include <uv.h>

struct mail {
    struct mail *next; /* the mailbox's while queued */
};

struct mailbox {
    /* private */
    uv_async_t async;
    pthread_mutex_t lock; /* head, tail, count, closed */
    struct mail *head;
    struct mail *tail;
    size_t count;
    size_t count_max;
    bool closed;
    bool closing; /* loop thread only */
    void (*on_mail)(void *owner, struct mail *mail);
    void (*on_closed)(void *owner);
    void *owner;
};

/*
 * Open in the caller's storage, which must not move until on_closed.
 *
 * count_max  mails that may wait, from 1
 * on_mail    takes ownership of the mail; may post and may close this mailbox
 *
 * Thread: the loop's.
 */
void mailbox_open(struct mailbox *box, uv_loop_t *loop, size_t count_max,
                  void (*on_mail)(void *owner, struct mail *mail), void *owner);

/*
 * Queue one mail. Any thread; never blocks, allocates or calls back.
 *
 * 0          taken
 * RC_FULL    count_max are waiting; the mail stays the caller's
 * RC_CLOSED  mailbox_close was called; the mail stays the caller's
 *
 * Legal as long as the storage of box lives: end or join the senders before freeing it.
 */
MUST_CHECK int mailbox_post_mt(struct mailbox *box, struct mail *mail);

/*
 * Refuse further mail, deliver what waits, then call on_closed(owner) from the loop; the storage is
 * the caller's again from there. Idempotent. Thread: the loop's.
 */
void mailbox_close(struct mailbox *box, void (*on_closed)(void *owner));

#endif
