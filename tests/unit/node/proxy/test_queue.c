/*
 * Places and waiting: limits, the order of those who wait, calls across workers, cancelling. The
 * workers are driven by hand, their mail is delivered when the test says so.
 */
#include "node/proxy/queue.h"

#include "node/base/mem.h"
#include "node/net/loop.h"
#include "node/proxy/worker.h"
#include "tests/support/unit.h"

enum { WORKERS = 2, WAIT_MS = 1000 };

static struct catalog catalog;
static struct backend *backend;
static struct worker *workers[WORKERS];
static struct proxy_backend policy;

/* One who wants a place. */
struct seeker {
    struct waiter waiter;
    struct worker *worker;
    struct endpoint *wanted;
    struct endpoint *tried[1];
    size_t tried_count;
    struct endpoint *got;
    enum place last;
    int turns;
};

static void seek(struct seeker *seeker)
{
    const struct place_ask ask = {
        .backend = backend,
        .wanted = seeker->wanted,
        .tried = seeker->tried,
        .tried_count = seeker->tried_count,
        .queue_ms = WAIT_MS,
    };
    seeker->got = NULL;
    seeker->last = place_seek(seeker->worker, &ask, &seeker->waiter, &seeker->got);
}

static void on_turn(struct waiter *waiter)
{
    struct seeker *seeker = CONTAINER_OF(waiter, struct seeker, waiter);
    seeker->turns++;
    seek(seeker);
}

static struct seeker begin(size_t worker)
{
    return (struct seeker){.waiter = {.on_turn = on_turn}, .worker = workers[worker]};
}

static void give_back(struct seeker *seeker)
{
    place_give_back(seeker->worker, backend, seeker->got);
    seeker->got = NULL;
    worker_settle(seeker->worker);
}

static void on_mail(void *owner, struct mail *mail)
{
    struct worker_mail *message = CONTAINER_OF(mail, struct worker_mail, mail);
    assert_int_equal(message->kind, WORKER_MAIL_PLACE);
    place_mail(message);
    worker_settle(owner);
}

static void on_box_closed(void *owner)
{
    (void)owner; /* freed by the test */
}

/* Deliver mail until there is none. */
static void deliver(void)
{
    for (int i = 0; i < 10; i++) {
        for (size_t j = 0; j < WORKERS; j++) {
            (void)uv_run(&workers[j]->loop, UV_RUN_NOWAIT);
        }
    }
}

static void configure(uint16_t count, uint32_t limit, uint32_t queue_max)
{
    struct proxy_endpoint from[8];
    for (uint16_t i = 0; i < count; i++) {
        from[i] = (struct proxy_endpoint){.weight = 1};
        assert_int_equal(addr_parse("127.0.0.1:1", &from[i].addr, NULL), RC_OK);
        addr_set_port(&from[i].addr, (uint16_t)(i + 1));
    }
    policy.connections_per_endpoint_max = limit;
    policy.queue_max = queue_max;
    struct err_info err;
    assert_int_equal(backend_replace(backend, &policy, from, count, &err), RC_OK);
}

static struct endpoint *entry(size_t idx)
{
    return backend_endpoints(backend)->entries[idx].endpoint;
}

static int setup(void **state)
{
    (void)state;
    catalog_init(&catalog, WORKERS);
    policy = (struct proxy_backend){.balance = BALANCE_LEAST_CONN};
    for (size_t i = 0; i < WORKERS; i++) {
        struct worker *worker = workers[i] = mem_lines(sizeof(*worker));
        worker->catalog = &catalog;
        worker->idx = i;
        worker->reader = &catalog.qsbr.readers[i];
        worker->tasks_end = &worker->tasks;
        worker->ticking = true; /* time is told by the test */
        rng_init(&worker->rng, 7);
        loop_init(&worker->loop);
        mailbox_open(&worker->box, &worker->loop, 100, on_mail, worker);
        wheel_init(&worker->wheel, uv_now(&worker->loop));
    }
    backend = backend_make(&catalog, "b");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    deliver();
    assert_int_equal(place_waiting(backend), 0);
    for (size_t i = 0; i < WORKERS; i++) {
        assert_int_equal(workers[i]->wheel.count, 0);
        mailbox_close(&workers[i]->box, on_box_closed);
        loop_run(&workers[i]->loop);
        loop_close_clean(&workers[i]->loop);
        qsbr_offline(workers[i]->reader);
        mem_free(workers[i]);
    }
    backend_put(backend);
    catalog_deinit(&catalog);
    return 0;
}

static void test_places_are_taken_and_given_back(void **state)
{
    (void)state;
    configure(2, 1, 0);
    struct seeker a = begin(0), b = begin(1), c = begin(0);
    seek(&a);
    seek(&b);
    assert_int_equal(a.last, PLACE_TAKEN);
    assert_int_equal(b.last, PLACE_TAKEN);
    assert_ptr_not_equal(a.got, b.got);
    seek(&c);
    assert_int_equal(c.last, PLACE_FULL); /* no queue */
    give_back(&a);
    seek(&c);
    assert_int_equal(c.last, PLACE_TAKEN);
    give_back(&b);
    give_back(&c);
    configure(0, 1, 5);
    seek(&a);
    assert_int_equal(a.last, PLACE_NONE);
}

static void test_the_oldest_goes_first_on_any_worker(void **state)
{
    (void)state;
    configure(1, 1, 3);
    struct seeker holder = begin(0);
    struct seeker line[4] = {begin(1), begin(0), begin(1), begin(0)};
    seek(&holder);
    for (int i = 0; i < 3; i++) {
        seek(&line[i]);
        assert_int_equal(line[i].last, PLACE_WAITING);
    }
    seek(&line[3]);
    assert_int_equal(line[3].last, PLACE_FULL); /* three wait already */
    assert_int_equal(place_waiting(backend), 3);
    give_back(&holder);
    /* The first one is called by mail; until it comes nobody overtakes it. */
    struct seeker late = begin(0);
    seek(&late);
    assert_int_equal(late.last, PLACE_FULL);
    deliver();
    struct seeker *order[] = {&line[0], &line[1], &line[2]};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(order[i]->last, PLACE_TAKEN);
        assert_int_equal(order[i]->turns, 1);
        give_back(order[i]);
        deliver();
    }
    assert_int_equal(endpoint_load(entry(0)), 0);
}

static void test_who_leaves_passes_the_call_on(void **state)
{
    (void)state;
    configure(1, 1, 5);
    struct seeker holder = begin(0), a = begin(1), b = begin(1), c = begin(0);
    seek(&holder);
    seek(&a);
    seek(&b);
    seek(&c);
    place_cancel(&b.waiter); /* before it is called */
    give_back(&holder);
    place_cancel(&a.waiter); /* called, but it has not seen the mail */
    worker_settle(workers[1]);
    deliver();
    assert_int_equal(c.last, PLACE_TAKEN);
    assert_int_equal(a.turns + b.turns, 0);
    place_cancel(&c.waiter); /* idempotent */
    give_back(&c);
}

static void test_time_ends_the_waiting(void **state)
{
    (void)state;
    configure(1, 1, 5);
    struct seeker holder = begin(0), a = begin(0);
    seek(&holder);
    seek(&a);
    uint64_t deadline_ms = a.waiter.deadline_ms;
    assert_int_equal(deadline_ms, uv_now(&workers[0]->loop) + WAIT_MS);
    place_late(&a.waiter); /* too early: it goes on */
    assert_int_equal(a.last, PLACE_WAITING);
    a.waiter.deadline_ms = uv_now(&workers[0]->loop);
    place_late(&a.waiter);
    assert_int_equal(a.last, PLACE_LATE);
    assert_int_equal(counter_read(&backend->slots[0].queue_timeouts), 1);
    assert_int_equal(place_waiting(backend), 0);
    policy.queue_ms = 77; /* the backend's own limit goes first */
    configure(1, 1, 5);
    seek(&a);
    assert_int_equal(a.waiter.deadline_ms, uv_now(&workers[0]->loop) + 77);
    place_cancel(&a.waiter);
    give_back(&holder);
}

static void test_holders_wait_for_one_endpoint(void **state)
{
    (void)state;
    configure(2, 1, 5);
    struct seeker one = begin(0), two = begin(0), holder = begin(0), other = begin(0);
    seek(&one);
    seek(&two);
    holder.wanted = two.got;
    seek(&holder);
    assert_int_equal(holder.last, PLACE_WAITING);
    seek(&other);
    assert_int_equal(other.last, PLACE_WAITING);
    give_back(&one); /* does not suit the holder, though it came first */
    assert_int_equal(other.last, PLACE_TAKEN);
    assert_int_equal(holder.turns, 0);
    seek(&one);
    assert_int_equal(one.last, PLACE_WAITING);
    give_back(&two);
    assert_int_equal(holder.last, PLACE_TAKEN);
    assert_ptr_equal(holder.got, holder.wanted);
    give_back(&other);
    assert_int_equal(one.last, PLACE_TAKEN);
    /* What it wants goes down: any other will do. */
    struct seeker next = begin(0);
    next.wanted = holder.got;
    seek(&next);
    assert_int_equal(next.last, PLACE_WAITING);
    backend_set_health(backend, &holder.got->addr, PROXY_HEALTH_DOWN, 1);
    deliver();
    assert_int_equal(next.last, PLACE_WAITING);
    give_back(&one);
    assert_int_equal(next.last, PLACE_TAKEN);
    assert_ptr_not_equal(next.got, next.wanted);
    give_back(&next);
    give_back(&holder);
}

static void test_a_place_that_does_not_suit_goes_to_the_next(void **state)
{
    (void)state;
    configure(2, 1, 5);
    struct seeker one = begin(0), two = begin(0), picky = begin(0), other = begin(1);
    seek(&one);
    seek(&two);
    picky.tried[0] = one.got;
    picky.tried_count = 1;
    seek(&picky);
    seek(&other);
    give_back(&one); /* picky has tried it */
    assert_int_equal(picky.last, PLACE_WAITING);
    deliver();
    assert_int_equal(other.last, PLACE_TAKEN);
    give_back(&two);
    assert_int_equal(picky.last, PLACE_TAKEN);
    give_back(&picky);
    give_back(&other);
}

/* Endpoint `idx` of two takes nobody but its holders from now on. */
static void drain_one(uint16_t idx)
{
    struct proxy_endpoint from[2];
    for (uint16_t i = 0; i < 2; i++) {
        from[i] = (struct proxy_endpoint){.weight = 1, .draining = i == idx};
        from[i].addr = entry(i)->addr;
    }
    struct err_info err;
    assert_int_equal(backend_replace(backend, &policy, from, 2, &err), RC_OK);
    deliver();
}

static void test_a_place_that_is_for_holders_only_reaches_them(void **state)
{
    (void)state;
    configure(2, 1, 5);
    struct seeker one = begin(0), two = begin(0), anyone = begin(0), holder = begin(1);
    seek(&one);
    seek(&two);
    drain_one((uint16_t)(addr_port(&two.got->addr) - 1));
    seek(&anyone);
    assert_int_equal(anyone.last, PLACE_WAITING);
    holder.wanted = two.got;
    seek(&holder);
    assert_int_equal(holder.last, PLACE_WAITING);
    give_back(&two); /* anyone is the oldest, and may not have it */
    assert_int_equal(anyone.last, PLACE_WAITING);
    deliver();
    assert_int_equal(holder.last, PLACE_TAKEN);
    assert_ptr_equal(holder.got, holder.wanted);
    give_back(&one);
    assert_int_equal(anyone.last, PLACE_TAKEN);
    give_back(&anyone);
    give_back(&holder);
}

static void test_changes_call_everybody(void **state)
{
    (void)state;
    configure(1, 1, 5);
    struct seeker holder = begin(0), a = begin(0), b = begin(1);
    seek(&holder);
    seek(&a);
    seek(&b);
    configure(3, 1, 5);
    deliver();
    assert_int_equal(a.last, PLACE_TAKEN);
    assert_int_equal(b.last, PLACE_TAKEN);
    struct seeker c = begin(1);
    seek(&c);
    assert_int_equal(c.last, PLACE_WAITING);
    configure(0, 1, 5); /* nobody is left */
    deliver();
    assert_int_equal(c.last, PLACE_NONE);
    endpoint_end(holder.got); /* they live as long as somebody is there */
    endpoint_end(a.got);
    endpoint_end(b.got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_places_are_taken_and_given_back, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_oldest_goes_first_on_any_worker, setup, teardown),
        cmocka_unit_test_setup_teardown(test_who_leaves_passes_the_call_on, setup, teardown),
        cmocka_unit_test_setup_teardown(test_time_ends_the_waiting, setup, teardown),
        cmocka_unit_test_setup_teardown(test_holders_wait_for_one_endpoint, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_place_that_does_not_suit_goes_to_the_next, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_place_that_is_for_holders_only_reaches_them, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_changes_call_everybody, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
