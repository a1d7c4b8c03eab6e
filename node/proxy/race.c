/*
 * Racing of slow connects; see race.h.
 */
#include "node/proxy/race.h"

#include "node/base/mem.h"
#include "node/proxy/tcp_poll.h"
#include "node/proxy/upstream.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <unistd.h>
#include <utlist.h>

enum { SLOW_FACTOR = 4 };

/* The second connect. The exchange holds a place at its endpoint, but only while it is in the race.
 */
struct race {
    struct tcp_poll_item item;
    int fd;
    struct worker *worker;
    struct exchange *exchange; /* NULL: the other one won; the pool gets this one */
    bool tls;                  /* a handshake is to follow */
    struct endpoint *endpoint; /* a reference */
    struct race *prev;         /* utlist: the worker's */
    struct race *next;
    struct wheel_entry timer;
    struct task end; /* frees it */
    uint64_t start_ns;
};

static void on_end(struct task *task)
{
    struct race *race = CONTAINER_OF(task, struct race, end);
    endpoint_unref(race->endpoint);
    mem_free(race);
}

/* It has no exchange and its descriptor is somebody else's, or closed here. */
static void race_end(struct race *race)
{
    struct worker *worker = race->worker;
    ASSERT(race->exchange == NULL);
    if (race->fd >= 0) {
        (void)close(race->fd); /* a socket: nothing to be told about */
        race->fd = -1;
    }
    DL_DELETE(worker->races, race);
    wheel_clear(&worker->wheel, &race->timer);
    worker_defer(worker, &race->end, on_end);
}

/* It leaves the race. */
static void drop(struct race *race)
{
    struct exchange *exchange = race->exchange;
    if (exchange != NULL) {
        exchange->race = NULL;
        race->exchange = NULL;
        place_give_back(race->worker, exchange->backend, race->endpoint);
    }
}

static void race_failed(struct race *race)
{
    endpoint_connect_failed(race->endpoint, worker_now(race->worker));
    stat_add(&race->worker->stats, STAT_CONNECT_FAILED, 1);
    drop(race);
    race_end(race);
}

static void race_stands(struct race *race)
{
    struct worker *worker = race->worker;
    struct exchange *exchange = race->exchange;
    if (!race->tls) {
        endpoint_connected(race->endpoint);
    }
    endpoint_connect_took(race->endpoint, (uv_hrtime() - race->start_ns) / 1000);
    if (exchange == NULL && race->tls) {
        race_end(race); /* a handshake that nobody waits for is dearer than a connect */
        return;
    }
    tcp_poll_remove(&worker->tcp_poll, race->fd);
    int fd = race->fd;
    race->fd = -1;
    if (exchange == NULL) {
        upstream_spare(worker, race->endpoint, fd);
        race_end(race);
        return;
    }
    worker_online(worker);
    struct upstream_side *side = upstream_adopt(exchange, race->endpoint, fd);
    if (side == NULL) {
        drop(race); /* the other connect goes on */
    } else {
        exchange->race = NULL;
        race->exchange = NULL; /* its place is the exchange's now */
        exchange_race_won(exchange, side, race->endpoint);
    }
    race_end(race);
}

static void on_events(struct tcp_poll_item *item, uint32_t events)
{
    struct race *race = CONTAINER_OF(item, struct race, item);
    if (race->fd < 0) {
        return;
    }
    int error = 0;
    socklen_t len = sizeof(error);
    if (getsockopt(race->fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0 || error != 0) {
        race_failed(race);
    } else if ((events & EPOLLOUT) != 0) {
        race_stands(race);
    }
}

void race_timeout(struct wheel_entry *entry)
{
    race_failed(CONTAINER_OF(entry, struct race, timer));
}

/* ---- beginning ---- */

static int begin_connect(const struct addr *addr)
{
    int fd = socket(addr->sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -1;
    }
    int on = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); /* only slower without */
    if (connect(fd, &addr->sa, addr_len(addr)) != 0 && errno != EINPROGRESS) {
        (void)close(fd); /* nothing was written to it */
        return -1;
    }
    return fd;
}

/* Another endpoint that is well, with a place; NULL: none. */
static struct endpoint *find_rival(struct exchange *exchange)
{
    struct endpoint *tried[EXCHANGE_TRIED_MAX];
    memcpy(tried, exchange->tried, exchange->tried_count * sizeof(*tried));
    tried[exchange->tried_count] = exchange->endpoint;
    const struct place_ask ask = {
        .backend = exchange->backend,
        .hash = exchange->hash,
        .tried = tried,
        .tried_count = exchange->tried_count + 1,
    };
    struct endpoint *endpoint = NULL;
    if (place_take(exchange->worker, &ask, &endpoint) != PLACE_TAKEN) {
        return NULL;
    }
    if ((endpoint_flags(endpoint) & (ENDPOINT_SKIPPED | ENDPOINT_OUT)) != 0) {
        place_give_back(exchange->worker, exchange->backend, endpoint);
        return NULL;
    }
    return endpoint;
}

static void begin(struct exchange *exchange)
{
    struct worker *worker = exchange->worker;
    struct endpoint *endpoint = find_rival(exchange);
    if (endpoint == NULL) {
        return;
    }
    struct race *race = mem_new(sizeof(*race));
    int fd = begin_connect(&endpoint->addr);
    if (fd < 0 || !tcp_poll_add(&worker->tcp_poll, fd, &race->item, true)) {
        if (fd >= 0) {
            (void)close(fd); /* nothing was written to it */
        }
        mem_free(race);
        place_give_back(worker, exchange->backend, endpoint);
        return;
    }
    endpoint_ref(endpoint);
    *race = (struct race){
        .item = {.on_events = on_events},
        .fd = fd,
        .worker = worker,
        .exchange = exchange,
        .tls = upstream_wants_tls(exchange),
        .endpoint = endpoint,
        .timer = {.kind = WHEEL_RACE},
        .start_ns = uv_hrtime(),
    };
    exchange->race = race;
    DL_APPEND(worker->races, race);
    worker_deadline(worker, &race->timer, exchange->timeouts.connect_ms);
    counter_add(&exchange->backend->slots[worker->idx].raced, 1);
}

/* ---- watching ---- */

static void unwatch(struct exchange *exchange)
{
    exchange->watched = false;
    DL_DELETE2(exchange->worker->connecting, exchange, race_prev, race_next);
}

static bool is_slow(const struct exchange *exchange, uint64_t now_ns)
{
    uint64_t usual_us = atomic_load_explicit(&exchange->endpoint->connect_us, memory_order_relaxed);
    uint64_t patience_ns = MAX(usual_us * SLOW_FACTOR * 1000, (uint64_t)RACE_TICK_MS * 1000 * 1000);
    return now_ns - exchange->sent_ns >= patience_ns;
}

static void on_tick(uv_timer_t *timer)
{
    struct worker *worker = timer->data;
    uint64_t now_ns = uv_hrtime();
    struct exchange *next;
    for (struct exchange *exchange = worker->connecting; exchange != NULL; exchange = next) {
        next = exchange->race_next;
        if (!upstream_is_connecting(exchange->upstream)) {
            unwatch(exchange); /* the handshake is under way: nothing is raced any more */
        } else if (is_slow(exchange, now_ns)) {
            unwatch(exchange);
            begin(exchange);
        }
    }
    if (worker->connecting == NULL) {
        (void)uv_timer_stop(timer); /* always 0 */
    }
    worker_settle(worker);
}

void race_watch(struct exchange *exchange)
{
    struct worker *worker = exchange->worker;
    const struct endpoint_set *set = backend_endpoints(exchange->backend);
    bool raced = set->usable_count > exchange->tried_count + 1 && exchange->retries_left != 0 &&
                 (exchange->retry_on & PROXY_RETRY_CONNECT) != 0 && exchange->wanted == NULL &&
                 set->policy.proxy_protocol == PROXY_PROTOCOL_OFF &&
                 exchange->tried_count + 1 < EXCHANGE_TRIED_MAX && !worker->stopping;
    if (!raced) {
        return;
    }
    exchange->watched = true;
    DL_APPEND2(worker->connecting, exchange, race_prev, race_next);
    if (!uv_is_active((const uv_handle_t *)&worker->race_timer)) {
        (void)uv_timer_start(&worker->race_timer, on_tick, RACE_TICK_MS, RACE_TICK_MS);
    }
}

void race_forget(struct exchange *exchange)
{
    if (exchange->watched) {
        unwatch(exchange);
    }
    if (exchange->race != NULL) {
        drop(exchange->race);
    }
}

/* ---- life ---- */

void race_init(struct worker *worker)
{
    int rc = uv_timer_init(&worker->loop, &worker->race_timer);
    ASSERT(rc == 0);
    worker->race_timer.data = worker;
}

void race_stop(struct worker *worker)
{
    while (worker->races != NULL) {
        race_end(worker->races);
    }
    if (!uv_is_closing((const uv_handle_t *)&worker->race_timer)) {
        uv_close((uv_handle_t *)&worker->race_timer, NULL); /* embedded in the worker */
    }
}
