/*
 * Mail to a worker that takes none any more. What else a worker does is in test_proxy.c.
 */
#include "node/proxy/worker.h"

#include "node/net/loop.h"
#include "tests/support/unit.h"

static void on_mail(void *owner, struct mail *mail)
{
    (void)owner;
    (void)mail;
    fail_msg("nothing can arrive");
}

static void on_closed(void *owner)
{
    (void)owner; /* the box is static */
}

/* Waiting for room would be for ever. */
static void test_mail_to_a_stopped_worker_is_dropped(void **state)
{
    (void)state;
    static struct worker worker;
    loop_init(&worker.loop);
    mailbox_open(&worker.box, &worker.loop, 1, on_mail, &worker);
    mailbox_close(&worker.box, on_closed);
    worker_post_mt(&worker, WORKER_MAIL_DRAIN, NULL);
    worker_post_mt(&worker, WORKER_MAIL_STOP, NULL);
    worker_post_mt(&worker, WORKER_MAIL_ENDPOINT_GONE, NULL);
    loop_run(&worker.loop);
    worker_post_mt(&worker, WORKER_MAIL_STOP, NULL);
    loop_close_clean(&worker.loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mail_to_a_stopped_worker_is_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
