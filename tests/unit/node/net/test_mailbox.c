/*
 * Mailboxes: order, bound, several senders, and nothing lost or doubled by closing.
 */
#include "node/base/check.h"
#include "node/base/mem.h"
#include "node/net/loop.h"
#include "node/net/mailbox.h"
#include "tests/support/unit.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { SENDERS = 4, PER_SENDER = 5000 };

struct letter {
    struct mail mail;
    unsigned sender;
    unsigned number;
};

struct desk {
    struct mailbox box;
    unsigned next[SENDERS];
    unsigned total;
    unsigned close_at; /* close when so many came; 0: never */
    bool closed;
    atomic_uint accepted;
};

static void on_desk_closed(void *owner)
{
    ((struct desk *)owner)->closed = true;
}

static void on_mail(void *owner, struct mail *mail)
{
    struct desk *desk = owner;
    struct letter *letter = CONTAINER_OF(mail, struct letter, mail);
    assert_false(desk->closed);
    assert_true(letter->number >= desk->next[letter->sender]); /* gaps only by RC_FULL, RC_CLOSED */
    desk->next[letter->sender] = letter->number + 1;
    desk->total++;
    mem_free(letter);
    if (desk->close_at != 0 && desk->total == desk->close_at) {
        mailbox_close(&desk->box, on_desk_closed);
        mailbox_close(&desk->box, on_desk_closed); /* idempotent */
    }
}

static struct letter *letter_new(unsigned sender, unsigned number)
{
    struct letter *letter = mem_new(sizeof(*letter));
    letter->sender = sender;
    letter->number = number;
    return letter;
}

static void bounded_and_in_order(void **state)
{
    (void)state;
    uv_loop_t loop;
    loop_init(&loop);
    struct desk desk = {0};
    mailbox_open(&desk.box, &loop, 3, on_mail, &desk);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(mailbox_post_mt(&desk.box, &letter_new(0, i)->mail), RC_OK);
    }
    struct letter *extra = letter_new(0, 3);
    assert_int_equal(mailbox_post_mt(&desk.box, &extra->mail), RC_FULL);
    (void)uv_run(&loop, UV_RUN_NOWAIT);
    assert_int_equal(desk.total, 3);
    assert_int_equal(mailbox_post_mt(&desk.box, &extra->mail), RC_OK);
    mailbox_close(&desk.box, on_desk_closed); /* what waits is still delivered */
    struct letter *late = letter_new(0, 4);
    assert_int_equal(mailbox_post_mt(&desk.box, &late->mail), RC_CLOSED);
    mem_free(late);
    loop_close_clean(&loop);
    assert_true(desk.closed);
    assert_int_equal(desk.total, 4);
}

struct sender {
    pthread_t thread;
    struct desk *desk;
    unsigned idx;
};

static void *send_all(void *arg)
{
    struct sender *sender = arg;
    for (unsigned i = 0; i < PER_SENDER;) {
        struct letter *letter = letter_new(sender->idx, i);
        int rc = mailbox_post_mt(&sender->desk->box, &letter->mail);
        if (rc == RC_OK) {
            atomic_fetch_add(&sender->desk->accepted, 1);
            i++;
            continue;
        }
        mem_free(letter);
        if (rc == RC_CLOSED) {
            break;
        }
        sched_yield(); /* full: the loop drains */
    }
    return NULL;
}

static bool all_came(void *arg)
{
    return ((struct desk *)arg)->total == SENDERS * PER_SENDER;
}

static void run_senders(struct desk *desk, uv_loop_t *loop)
{
    struct sender senders[SENDERS];
    loop_init(loop);
    mailbox_open(&desk->box, loop, 64, on_mail, desk);
    for (unsigned i = 0; i < SENDERS; i++) {
        senders[i] = (struct sender){.desk = desk, .idx = i};
        assert_int_equal(pthread_create(&senders[i].thread, NULL, send_all, &senders[i]), 0);
    }
    if (desk->close_at == 0) {
        assert_true(loop_run_until(loop, all_came, desk, 30000));
    } else {
        while (desk->total < desk->close_at) {
            (void)uv_run(loop, UV_RUN_ONCE);
        }
    }
    for (unsigned i = 0; i < SENDERS; i++) {
        assert_int_equal(pthread_join(senders[i].thread, NULL), 0);
    }
}

static void many_senders(void **state)
{
    (void)state;
    uv_loop_t loop;
    struct desk desk = {0};
    run_senders(&desk, &loop);
    mailbox_close(&desk.box, on_desk_closed);
    loop_close_clean(&loop);
    for (unsigned i = 0; i < SENDERS; i++) {
        assert_int_equal(desk.next[i], PER_SENDER);
    }
}

static void closed_under_load(void **state)
{
    (void)state;
    uv_loop_t loop;
    struct desk desk = {.close_at = 1000};
    run_senders(&desk, &loop);
    loop_close_clean(&loop);
    assert_true(desk.closed);
    assert_int_equal(desk.total, atomic_load(&desk.accepted));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounded_and_in_order),
        cmocka_unit_test(many_senders),
        cmocka_unit_test(closed_under_load),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
