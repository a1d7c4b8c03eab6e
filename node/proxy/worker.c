/*
 * A data-plane thread; see worker.h.
 */
#include "node/proxy/worker.h"

#include "node/base/mem.h"
#include "node/base/timesrc.h"
#include "node/net/loop.h"
#include "node/proxy/access_log.h"
#include "node/proxy/client.h"
#include "node/proxy/greet.h"
#include "node/proxy/hello.h"
#include "node/proxy/proxy_int.h"
#include "node/proxy/queue.h"
#include "node/proxy/race.h"
#include "node/proxy/sock_tls.h"
#include "node/proxy/tcp.h"
#include "node/proxy/upstream.h"

#include <sched.h>
#include <utlist.h>

enum {
    CLIENTS_KEPT = 1024, /* free objects kept for reuse */
    UPSTREAMS_KEPT = 512,
    EXCHANGES_KEPT = 512,
    TCPS_KEPT = 512,
};

void worker_settle(struct worker *worker)
{
    for (;;) {
        struct sock *sock = worker->dirty;
        if (sock != NULL) {
            worker->dirty = sock->next_dirty;
            sock->dirty = false;
            sock_settle(sock);
            continue;
        }
        struct task *task = worker->tasks;
        if (task == NULL) {
            return;
        }
        worker->tasks = task->next;
        if (worker->tasks == NULL) {
            worker->tasks_end = &worker->tasks;
        }
        task->run(task);
    }
}

void worker_defer(struct worker *worker, struct task *task, void (*run)(struct task *task))
{
    task->run = run;
    task->next = NULL;
    *worker->tasks_end = task;
    worker->tasks_end = &task->next;
}

/* Who owns the entry is told by its kind. */
static void on_deadline(void *ctx, struct wheel_entry *entry)
{
    struct worker *worker = ctx;
    switch (entry->kind) {
    case WHEEL_CLIENT:
        client_timeout(CONTAINER_OF(entry, struct client, timer));
        break;
    case WHEEL_UPSTREAM:
        upstream_timeout(CONTAINER_OF(entry, struct upstream, timer));
        break;
    case WHEEL_WAITER:
        place_late(CONTAINER_OF(entry, struct waiter, timer));
        break;
    case WHEEL_EXCHANGE:
        exchange_timeout(CONTAINER_OF(entry, struct exchange, timer));
        break;
    case WHEEL_TCP:
        tcp_timeout(CONTAINER_OF(entry, struct tcp, timer));
        break;
    case WHEEL_GREET:
        greet_timeout(CONTAINER_OF(entry, struct greet, timer));
        break;
    case WHEEL_HELLO:
        hello_timeout(CONTAINER_OF(entry, struct hello, timer));
        break;
    case WHEEL_RACE:
        race_timeout(entry);
        break;
    }
    worker_settle(worker);
}

void worker_accept_again(struct worker *worker)
{
    struct acceptor *acceptor;
    worker->accepting_paused = false;
    DL_FOREACH (worker->listening, acceptor) {
        acceptor_resume(acceptor);
    }
}

static void on_tick(uv_timer_t *timer)
{
    struct worker *worker = timer->data;
    sock_start_waiting(worker);
    wheel_advance(&worker->wheel, worker_now(worker), on_deadline, worker);
    if (worker->accepting_paused && worker->client_count < worker->clients_max) {
        worker_accept_again(worker);
    }
    if (worker->wheel.count == 0 && !worker->accepting_paused) {
        worker->ticking = false;
        (void)uv_timer_stop(timer); /* always 0 */
    }
    worker_settle(worker);
}

void worker_tick_soon(struct worker *worker)
{
    if (worker->ticking || worker->stopping) {
        return;
    }
    worker->ticking = true;
    if (worker->wheel.count == 0) {
        wheel_restart(&worker->wheel, worker_now(worker));
    }
    (void)uv_timer_start(&worker->ticker, on_tick, WHEEL_TICK_MS, WHEEL_TICK_MS);
}

void worker_deadline_set(struct worker *worker, struct wheel_entry *entry, uint64_t deadline_ms)
{
    worker_tick_soon(worker);
    wheel_set(&worker->wheel, entry, deadline_ms);
}

const char *worker_date(struct worker *worker)
{
    return http_date_text(&worker->date, time_wall_ms());
}

const struct proxy_defaults *worker_defaults(struct worker *worker)
{
    worker_online(worker);
    return proxy_defaults_now(worker->proxy);
}

/* Between events and the next poll: nothing found in the catalog is held any more. */
static void on_prepare(uv_prepare_t *prepare)
{
    struct worker *worker = prepare->data;
    worker->turn++;
    client_read_fresh(worker);
    hello_read_fresh(worker);
    qsbr_offline(worker->reader);
    if (worker->access != NULL) {
        access_log_wake(worker->access);
    }
}

static void close_handle(uv_handle_t *handle)
{
    if (!uv_is_closing(handle)) {
        uv_close(handle, NULL); /* embedded in the worker, which outlives the loop */
    }
}

static void on_box_closed(void *owner)
{
    (void)owner; /* the box lives as long as the worker */
}

static void worker_drain(struct worker *worker)
{
    if (worker->draining) {
        return;
    }
    while (worker->listening != NULL) {
        acceptor_close(worker->listening);
    }
    worker->draining = true;
    client_drain_all(worker);
}

static void worker_stop(struct worker *worker)
{
    if (worker->stopping) {
        return;
    }
    worker->stopping = true;
    worker->draining = true;
    while (worker->listening != NULL) {
        acceptor_abandon(worker->listening);
    }
    client_close_all(worker);
    tcp_close_all(worker);
    greet_cut(worker, NULL);
    hello_cut(worker);
    race_stop(worker);
    worker_settle(worker);
    upstream_close_all(worker);
    tcp_poll_close(&worker->tcp_poll);
    close_handle((uv_handle_t *)&worker->ticker);
    close_handle((uv_handle_t *)&worker->prepare);
    mailbox_close(&worker->box, on_box_closed);
}

static void on_mail(void *owner, struct mail *mail)
{
    struct worker *worker = owner;
    struct worker_mail *message = CONTAINER_OF(mail, struct worker_mail, mail);
    if (message->kind == WORKER_MAIL_PLACE) {
        place_mail(message); /* it stays where it is embedded */
        worker_settle(worker);
        return;
    }
    if (message->kind >= WORKER_MAIL_TCP_OPEN) {
        tcp_port_mail(worker, CONTAINER_OF(message, struct tcp_mail, mail));
        worker_settle(worker);
        return;
    }
    switch (message->kind) {
    case WORKER_MAIL_ENDPOINT_GONE:
        /* It may have come back since; then its connections may stay as well. */
        if (endpoint_is_gone(message->endpoint)) {
            upstream_flush(worker, message->endpoint);
        }
        endpoint_unref(message->endpoint);
        break;
    case WORKER_MAIL_DRAIN:
        worker_drain(worker);
        break;
    case WORKER_MAIL_STOP:
        worker_stop(worker);
        break;
    case WORKER_MAIL_PLACE:
    case WORKER_MAIL_TCP_OPEN:
    case WORKER_MAIL_TCP_CUT:
    case WORKER_MAIL_TCP_CLOSE:
        UNREACHABLE("handled above");
    }
    mem_free(message);
    worker_settle(worker);
}

void worker_post_mt(struct worker *worker, enum worker_mail_kind kind, struct endpoint *endpoint)
{
    struct worker_mail *message = mem_new(sizeof(*message));
    message->kind = kind;
    message->endpoint = endpoint;
    if (endpoint != NULL) {
        endpoint_ref(endpoint);
    }
    int rc = mailbox_post_mt(&worker->box, &message->mail);
    while (rc == RC_FULL && kind != WORKER_MAIL_ENDPOINT_GONE) {
        (void)sched_yield(); /* the worker empties its box, however busy it is */
        rc = mailbox_post_mt(&worker->box, &message->mail);
    }
    if (rc != RC_OK) { /* full, or the worker has stopped */
        endpoint_unref(endpoint);
        mem_free(message);
    }
}

void worker_post_tcp_mt(struct worker *worker, struct tcp_mail *message)
{
    int rc = mailbox_post_mt(&worker->box, &message->mail.mail);
    while (rc == RC_FULL) {
        (void)sched_yield(); /* as above */
        rc = mailbox_post_mt(&worker->box, &message->mail.mail);
    }
    if (rc != RC_OK) { /* the worker has stopped */
        tcp_port_unref(message->port);
        mem_free(message);
    }
}

void worker_init(struct worker *worker)
{
    loop_init(&worker->loop);
    mailbox_open(&worker->box, &worker->loop, WORKER_MAILS_MAX, on_mail, worker);
    int rc = uv_timer_init(&worker->loop, &worker->ticker);
    ASSERT(rc == 0);
    worker->ticker.data = worker;
    rc = uv_prepare_init(&worker->loop, &worker->prepare);
    ASSERT(rc == 0);
    worker->prepare.data = worker;
    rc = uv_prepare_start(&worker->prepare, on_prepare);
    ASSERT(rc == 0);
    worker->reader = &worker->catalog->qsbr.readers[worker->idx];
    worker->tasks_end = &worker->tasks;
    wheel_init(&worker->wheel, uv_now(&worker->loop));
    rng_init(&worker->rng, rng_secret_u64());
    pool_init(&worker->client_pool, sizeof(struct client), CLIENTS_KEPT);
    pool_init(&worker->work_pool, sizeof(struct client_work), CLIENTS_KEPT);
    pool_init(&worker->wait_pool, sizeof(struct sock_wait), CLIENTS_KEPT);
    pool_init(&worker->upstream_pool, sizeof(struct upstream), UPSTREAMS_KEPT);
    pool_init(&worker->exchange_pool, sizeof(struct exchange), EXCHANGES_KEPT);
    pool_init(&worker->tcp_pool, sizeof(struct tcp), TCPS_KEPT);
    tcp_poll_init(&worker->tcp_poll, worker);
    race_init(worker);
    h1_head_init(&worker->request, worker->request_fields, WORKER_FIELDS_MAX);
    h1_head_init(&worker->response, worker->response_fields, WORKER_FIELDS_MAX);
    buf_init(&worker->head_out, WORKER_HEAD_OUT_MAX);
    buf_init(&worker->lines, WORKER_LINES_MAX);
    buf_init(&worker->value, WORKER_SCRATCH_BYTES);
    buf_init(&worker->cipher, SOCK_TLS_CIPHER_MAX);
    buf_init(&worker->plain, WORKER_SCRATCH_BYTES);
    for (size_t i = 0; i < worker->acceptor_count; i++) {
        acceptor_start(&worker->acceptors[i], worker);
    }
}

static void worker_main(void *arg)
{
    struct worker *worker = arg;
    loop_run(&worker->loop);
    qsbr_offline(worker->reader);
}

int worker_start(struct worker *worker)
{
    int rc = uv_thread_create(&worker->thread, worker_main, worker);
    return rc == 0 ? RC_OK : RC_IO;
}

void worker_join(struct worker *worker)
{
    (void)uv_thread_join(&worker->thread); /* aborts on misuse only */
}

void worker_deinit(struct worker *worker)
{
    if (!worker->stopping) {
        worker_stop(worker); /* its thread never ran */
        loop_run(&worker->loop);
    }
    loop_close_clean(&worker->loop);
    ASSERT(worker->clients == NULL && worker->upstreams == NULL && worker->tcps == NULL);
    buf_deinit(&worker->head_out);
    buf_deinit(&worker->lines);
    buf_deinit(&worker->value);
    buf_deinit(&worker->cipher);
    buf_deinit(&worker->plain);
    tls_lib_free(worker->tls);
    pool_deinit(&worker->client_pool);
    pool_deinit(&worker->work_pool);
    pool_deinit(&worker->wait_pool);
    pool_deinit(&worker->upstream_pool);
    pool_deinit(&worker->exchange_pool);
    pool_deinit(&worker->tcp_pool);
    splice_pool_deinit(&worker->pipes);
    chunk_pool_deinit(&worker->chunks);
}
