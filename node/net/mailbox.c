/*
 * Mails move from the queue to a private list under the lock and are delivered without it.
 */
#include "node/net/mailbox.h"

#include "node/base/check.h"

/* Mails of one wake-up; the rest waits for the next turn of the loop. */
enum { BATCH_MAX = 128 };

/* Detach up to max mails. *ret_more: others are left. */
static struct mail *take(struct mailbox *box, size_t max, bool *ret_more)
{
    (void)pthread_mutex_lock(&box->lock); /* fails only for misuse */
    struct mail *first = box->head;
    struct mail *last = NULL;
    size_t taken = 0;
    for (struct mail *at = first; at != NULL && taken < max; at = at->next) {
        last = at;
        taken++;
    }
    if (last != NULL) {
        box->head = last->next;
        last->next = NULL;
    }
    if (box->head == NULL) {
        box->tail = NULL;
    }
    box->count -= taken;
    *ret_more = box->head != NULL;
    (void)pthread_mutex_unlock(&box->lock);
    return first;
}

static void deliver(struct mailbox *box, struct mail *list)
{
    while (list != NULL) {
        struct mail *mail = list;
        list = mail->next;
        mail->next = NULL;
        box->on_mail(box->owner, mail);
    }
}

static void on_async(uv_async_t *async)
{
    struct mailbox *box = async->data;
    bool more = false;
    deliver(box, take(box, BATCH_MAX, &more));
    /* Senders wake us only when the queue was empty. */
    if (more && !box->closing) {
        ASSERT(uv_async_send(&box->async) == 0);
    }
}

void mailbox_open(struct mailbox *box, uv_loop_t *loop, size_t count_max,
                  void (*on_mail)(void *owner, struct mail *mail), void *owner)
{
    ASSERT(count_max > 0);
    *box = (struct mailbox){.count_max = count_max, .on_mail = on_mail, .owner = owner};
    ASSERT(pthread_mutex_init(&box->lock, NULL) == 0); /* holds no resource */
    ASSERT(uv_async_init(loop, &box->async, on_async) == 0);
    box->async.data = box;
}

int mailbox_post_mt(struct mailbox *box, struct mail *mail)
{
    int rc = RC_OK;
    (void)pthread_mutex_lock(&box->lock);
    if (box->closed) {
        rc = RC_CLOSED;
    } else if (box->count >= box->count_max) {
        rc = RC_FULL;
    } else {
        mail->next = NULL;
        if (box->tail != NULL) {
            box->tail->next = mail;
            box->tail = mail;
        } else {
            box->head = mail;
            box->tail = mail;
            /* Under the lock, so that it cannot meet a handle that mailbox_close has closed. */
            ASSERT(uv_async_send(&box->async) == 0);
        }
        box->count++;
    }
    (void)pthread_mutex_unlock(&box->lock);
    return rc;
}

static void on_async_closed(uv_handle_t *handle)
{
    struct mailbox *box = handle->data;
    bool more = false;
    deliver(box, take(box, SIZE_MAX, &more));
    /* The lock is not destroyed: a late sender may still ask and is told RC_CLOSED. */
    box->on_closed(box->owner);
}

void mailbox_close(struct mailbox *box, void (*on_closed)(void *owner))
{
    if (box->closing) {
        return;
    }
    box->closing = true;
    box->on_closed = on_closed;
    (void)pthread_mutex_lock(&box->lock);
    box->closed = true;
    (void)pthread_mutex_unlock(&box->lock);
    uv_close((uv_handle_t *)&box->async, on_async_closed);
}
