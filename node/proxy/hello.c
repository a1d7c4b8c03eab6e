/*
 * ClientHellos of accepted connections; see hello.h.
 */
#include "node/proxy/hello.h"

#include "node/base/mem.h"
#include "node/proxy/client.h"
#include "node/proxy/proxy_int.h"
#include "node/proxy/tcp.h"
#include "node/tls/crypto.h"
#include "node/tls/tls_hello.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>
#include <utlist.h>

enum {
    ALERT_RECORD_OVERFLOW = 22,
    ALERT_DECODE_ERROR = 50,
    ALERT_INTERNAL_ERROR = 80,
    ALERT_UNRECOGNIZED_NAME = 112,
};

static const char plain_answer[] =
    "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\n"
    "Content-Length: 60\r\nConnection: close\r\n\r\n"
    "This port speaks TLS: use https:// instead of plain http://\n";

bool hello_is_full(struct worker *worker)
{
    const struct proxy_tls *tls = worker_tls(worker);
    return tls != NULL && atomic_load_explicit(&worker->proxy->handshakes, memory_order_relaxed) >=
                              tls->handshakes_max;
}

/* ---- ends ---- */

static void on_end(struct task *task)
{
    struct hello *hello = CONTAINER_OF(task, struct hello, end);
    mem_free(hello);
}

/* Returns the descriptor. What was gathered stays until the event is over. */
static int hello_end(struct hello *hello)
{
    struct worker *worker = hello->worker;
    int fd = hello->fd;
    hello->fd = -1;
    DL_DELETE(worker->hellos, hello);
    wheel_clear(&worker->wheel, &hello->timer);
    worker_client_closed(worker);
    chunkq_clear(&worker->chunks, &hello->in);
    worker_defer(worker, &hello->end, on_end);
    return fd;
}

/* Say why, as far as the socket takes it at once, and close without losing it to a reset: what the
 * peer has sent is read first. */
static void refuse(struct worker *worker, int fd, enum stat_id stat, const void *bytes, size_t len)
{
    stat_add(&worker->stats, stat, 1);
    if (len != 0) {
        (void)send(fd, bytes, len, MSG_NOSIGNAL); /* nothing waits before it */
        (void)shutdown(fd, SHUT_WR);
        (void)recv(fd, worker->scratch, sizeof(worker->scratch), 0);
    }
    (void)close(fd); /* nobody is there to be told */
}

static void refuse_alert(struct worker *worker, int fd, enum stat_id stat, uint8_t alert)
{
    uint8_t record[TLS_ALERT_RECORD_LEN];
    tls_alert_record(alert, record);
    refuse(worker, fd, stat, record, sizeof(record));
}

/* ---- a whole one ---- */

/* One that is accepted and known. */
struct arrival {
    struct acceptor *acceptor;
    int fd;
    const struct addr *peer;
    const struct addr *local;
    const char *bytes;
    size_t len;
    bool named;   /* its hello names a host */
    bool watched; /* by tcp_poll; closing it ends that */
};

/* Whose sessions may resume each other: a host's, by what it demands of clients. */
static void make_domain(const struct host *host, const struct tls_policy *policy,
                        uint8_t ret[TLS_DIGEST_BYTES])
{
    uint8_t text[TLS_DIGEST_BYTES + 1 + TLS_HELLO_NAME_MAX + 1];
    size_t len = 0;
    memcpy(text, tls_policy_digest(policy), TLS_DIGEST_BYTES);
    len = TLS_DIGEST_BYTES;
    if (host != NULL) {
        text[len++] = host->wildcard ? '*' : '=';
        memcpy(text + len, host->name, MIN((size_t)host->name_len, (size_t)TLS_HELLO_NAME_MAX));
        len += MIN((size_t)host->name_len, (size_t)TLS_HELLO_NAME_MAX);
    }
    crypto_sha256(text, len, ret);
}

static void terminate(struct worker *worker, const struct arrival *arrival,
                      const struct proxy_tls *defaults, const struct host *host)
{
    const struct host_tls *own = host != NULL ? host->tls : NULL;
    struct tls_cert *cert = own != NULL && own->cert != NULL ? own->cert : defaults->cert;
    struct tls_policy *policy = own != NULL && own->policy != NULL ? own->policy : defaults->policy;
    if (cert == NULL || worker->tls == NULL) {
        refuse_alert(worker, arrival->fd, STAT_TLS_NAME_UNKNOWN, ALERT_UNRECOGNIZED_NAME);
        return;
    }
    uint8_t domain[TLS_DIGEST_BYTES];
    /* Names that nobody serves have no tickets (the clustering notes 4.4); connections without a
     * name have a domain of their own. */
    bool tickets = !defaults->tickets_off && (own == NULL ? !arrival->named : !own->tickets_off) &&
                   tls_policy_client_auth(policy) == TLS_CLIENT_AUTH_OFF;
    if (tickets) {
        make_domain(own != NULL ? host : NULL, policy, domain);
    }
    const struct tls_accept accept = {
        .policy = policy, .cert = cert, .domain = tickets ? domain : NULL};
    struct tls_engine *engine = NULL;
    struct err_info err = {0};
    if (tls_lib_accept(worker->tls, &accept, &worker->cipher, &engine, &err) != RC_OK) {
        static _Thread_local struct log_limit limit;
        uint32_t suppressed;
        if (log_limit_pass(&limit, 1, &suppressed)) {
            log_error("a TLS client cannot be served", "host=%s reason=\"%s\"",
                      host != NULL ? host->name : "", err.text);
        }
        refuse_alert(worker, arrival->fd, STAT_TLS_FAILED, ALERT_INTERNAL_ERROR);
        return;
    }
    if (arrival->watched) {
        tcp_poll_remove(&worker->tcp_poll, arrival->fd); /* libuv takes it over */
    }
    const struct client_origin origin = {.acceptor = arrival->acceptor,
                                         .fd = arrival->fd,
                                         .peer = arrival->peer,
                                         .local = arrival->local};
    client_accept_tls(worker, &origin, engine, policy, arrival->bytes, arrival->len);
}

/* What is said in the hello decides. */
static void decide(struct worker *worker, const struct arrival *arrival,
                   const struct tls_hello *hello)
{
    const struct proxy_tls *defaults = worker_tls(worker);
    if (defaults == NULL) {
        refuse_alert(worker, arrival->fd, STAT_TLS_NAME_UNKNOWN, ALERT_INTERNAL_ERROR);
        return;
    }
    const char *name = hello->server_name;
    const struct host *host =
        name[0] != '\0' ? hosts_find(&worker->catalog->hosts, name, strlen(name)) : NULL;
    if (host != NULL && host->tls != NULL && host->tls->passthrough != NULL) {
        const struct tcp_origin origin = {.acceptor = arrival->acceptor,
                                          .fd = arrival->fd,
                                          .watched = arrival->watched,
                                          .peer = arrival->peer,
                                          .local = arrival->local};
        tcp_accept_through(worker, &origin, host->tls->passthrough, arrival->bytes, arrival->len);
        return;
    }
    bool known = host != NULL && host->tls != NULL;
    if (!known && name[0] != '\0' && defaults->strict_sni) {
        refuse_alert(worker, arrival->fd, STAT_TLS_NAME_UNKNOWN, ALERT_UNRECOGNIZED_NAME);
        return;
    }
    terminate(worker, arrival, defaults, known ? host : NULL);
}

/* What it is, is known. */
static void settle_arrival(struct worker *worker, struct arrival *arrival,
                           enum tls_hello_result result, const struct tls_hello *hello)
{
    int fd = arrival->fd;
    switch (result) {
    case TLS_HELLO_OK:
        arrival->named = hello->server_name[0] != '\0';
        decide(worker, arrival, hello);
        return;
    case TLS_HELLO_HTTP:
        refuse(worker, fd, STAT_TLS_HELLO_HTTP, plain_answer, sizeof(plain_answer) - 1);
        return;
    case TLS_HELLO_FOREIGN:
        refuse(worker, fd, STAT_TLS_HELLO_FAULT, NULL, 0);
        return;
    case TLS_HELLO_BROKEN:
        refuse_alert(worker, fd, STAT_TLS_HELLO_FAULT, ALERT_DECODE_ERROR);
        return;
    case TLS_HELLO_TOO_BIG:
        refuse_alert(worker, fd, STAT_TLS_HELLO_FAULT, ALERT_RECORD_OVERFLOW);
        return;
    case TLS_HELLO_MORE:
        UNREACHABLE("gathered on");
    }
}

/* ---- gathering ---- */

/* What has come, once. The bytes are in the scratch, or with what came before in the queue. */
static void hello_read(struct hello *hello)
{
    struct worker *worker = hello->worker;
    ssize_t n = recv(hello->fd, worker->scratch, TLS_HELLO_WIRE_MAX, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (n <= 0) {
        enum stat_id stat = hello->in.len == 0 ? STAT_TLS_HELLO_NONE : STAT_TLS_HELLO_FAULT;
        refuse(worker, hello_end(hello), stat, NULL, 0);
        return;
    }
    struct addr peer = hello->peer, local = hello->local;
    struct arrival arrival = {.acceptor = hello->acceptor,
                              .fd = hello->fd,
                              .peer = &peer,
                              .local = hello->has_local ? &local : NULL,
                              .bytes = worker->scratch,
                              .len = (size_t)n};
    if (hello->in.len != 0) {
        chunkq_put(&worker->chunks, &hello->in, worker->scratch, (size_t)n);
        arrival.len = MIN(hello->in.len, sizeof(worker->scratch)); /* bounded by WIRE_MAX twice */
        memcpy(worker->scratch, chunkq_pull(&worker->chunks, &hello->in, arrival.len), arrival.len);
    }
    struct tls_hello seen;
    enum tls_hello_result result =
        tls_hello_read((const uint8_t *)arrival.bytes, arrival.len, &seen);
    if (result == TLS_HELLO_MORE) {
        if (hello->in.len == 0) {
            chunkq_put(&worker->chunks, &hello->in, arrival.bytes, arrival.len);
        }
        return;
    }
    arrival.watched = hello->watched;
    (void)hello_end(hello);
    settle_arrival(worker, &arrival, result, &seen);
}

static void on_events(struct tcp_poll_item *item, uint32_t events)
{
    struct hello *hello = CONTAINER_OF(item, struct hello, item);
    (void)events; /* reading tells */
    if (hello->fd >= 0) {
        hello_read(hello);
    }
}

void hello_timeout(struct hello *hello)
{
    struct worker *worker = hello->worker;
    refuse(worker, hello_end(hello), STAT_TLS_HELLO_LATE, NULL, 0);
}

void hello_accept(struct worker *worker, struct acceptor *acceptor, int fd, const struct addr *peer,
                  const struct addr *local)
{
    const struct proxy_tls *tls = worker_tls(worker);
    struct hello *hello = mem_new(sizeof(*hello));
    hello->item.on_events = on_events;
    hello->fd = fd;
    hello->worker = worker;
    hello->acceptor = acceptor;
    hello->peer = *peer;
    hello->has_local = local != NULL;
    if (local != NULL) {
        hello->local = *local;
    }
    hello->timer.kind = WHEEL_HELLO;
    DL_PREPEND(worker->hellos, hello); /* those that are watched stand behind the fresh ones */
    worker_client_opened(worker);
    worker_deadline(worker, &hello->timer, tls != NULL ? tls->inspect_ms : 1);
}

void hello_read_fresh(struct worker *worker)
{
    struct hello *next;
    for (struct hello *hello = worker->hellos; hello != NULL && !hello->watched; hello = next) {
        next = hello->next;
        hello_read(hello);
        if (hello->fd >= 0) {
            hello->watched = tcp_poll_add(&worker->tcp_poll, hello->fd, &hello->item, false);
            if (!hello->watched) {
                refuse(worker, hello_end(hello), STAT_TLS_HELLO_FAULT, NULL, 0);
            }
        }
        worker_settle(worker);
    }
}

void hello_cut(struct worker *worker)
{
    while (worker->hellos != NULL) {
        (void)close(hello_end(worker->hellos)); /* not its fault */
    }
}
