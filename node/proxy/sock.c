/*
 * TCP connections of a worker; see sock.h for the rules of staging and of callbacks.
 */
#include "node/proxy/sock.h"

#include "node/proxy/sock_tls.h"
#include "node/proxy/worker.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <sys/uio.h>
#include <unistd.h>
#include <utlist.h>

enum {
    IOV_MAX_USED = 8,
    STAGE_BYTES = 3900, /* a chunk of 4 KiB */
    READS_PER_EVENT = 8,
};

void sock_init(struct sock *sock, struct worker *worker, const struct sock_ops *ops, int fd)
{
    sock->ops = ops;
    sock->worker = worker;
    sock->tls = NULL;
    sock->fd = fd;
    sock->out = (struct chunkq){0};
    sock->sent = 0;
    sock->failed = 0;
    sock->wait = NULL;
    sock->stall_mark = 0;
    sock->adopted = sock->paused = sock->eof = sock->late = sock->dirty = sock->connecting =
        sock->writing = false;
    sock->full = sock->want_drain = sock->finished = sock->write_dead = sock->closing = false;
    sock->unread = sock->fresh = false;
}

int sock_connect(struct sock *sock, struct worker *worker, const struct sock_ops *ops,
                 const struct addr *addr)
{
    int fd = socket(addr->sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return errno;
    }
    int on = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); /* only slower without */
    if (connect(fd, &addr->sa, addr_len(addr)) != 0 && errno != EINPROGRESS) {
        int error = errno;
        (void)close(fd); /* nothing was written to it */
        return error;
    }
    sock_init(sock, worker, ops, fd);
    sock->connecting = true;
    return 0;
}

void sock_mark_dirty(struct sock *sock)
{
    if (!sock->dirty) {
        sock->dirty = true;
        sock->next_dirty = sock->worker->dirty;
        sock->worker->dirty = sock;
    }
}

/* libuv's handle for the descriptor; from here on only uv_close ends it. */
static void sock_adopt(struct sock *sock)
{
    if (sock->adopted) {
        return;
    }
    ASSERT(!sock->late); /* the handle takes the place of the links */
    int rc = uv_tcp_init(&sock->worker->loop, &sock->tcp);
    ASSERT(rc == 0);
    sock->tcp.data = sock;
    sock->adopted = true;
    rc = uv_tcp_open(&sock->tcp, sock->fd);
    ASSERT(rc == 0); /* a fresh descriptor that is non-blocking already */
}

/* libuv gets no buffer: it only says that there is something, and recv() fetches it for less than
 * libuv's read() costs. */
static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_buf)
{
    (void)handle;
    (void)suggested;
    *ret_buf = (uv_buf_t){0};
}

/* Nothing was read. */
static __attribute__((noinline)) void sock_read_failed(struct sock *sock, ssize_t n, int error)
{
    if (n < 0 && (error == EAGAIN || error == EINTR)) {
        return;
    }
    if (sock->adopted) {
        (void)uv_read_stop((uv_stream_t *)&sock->tcp); /* always 0 */
    }
    if (n == 0 && sock->tls == NULL) {
        sock->eof = true;
        sock->ops->on_eof(sock);
    } else if (n != 0) {
        sock->ops->on_error(sock, error);
    } else if (!sock->eof) { /* without close_notify: cut off, for all that is known */
        sock->eof = true;
        sock->ops->on_error(sock, ECONNRESET);
    }
}

/* One scratch for all: what is read is handled before the next read. True: there was as much as
 * fits, so more is likely to be there. */
static inline bool sock_receive(struct sock *sock)
{
    ssize_t n = recv(sock->fd, sock->worker->scratch, WORKER_SCRATCH_BYTES, 0);
    if (UNLIKELY(n <= 0)) {
        sock_read_failed(sock, n, errno);
        return false;
    }
    if (UNLIKELY(sock->tls != NULL)) {
        sock_tls_input(sock, sock->worker->scratch, (size_t)n);
    } else {
        sock->ops->on_data(sock, sock->worker->scratch, (size_t)n);
    }
    return n == WORKER_SCRATCH_BYTES;
}

static void on_read(uv_stream_t *stream, ssize_t nread, const uv_buf_t *buf)
{
    (void)nread; /* always UV_ENOBUFS */
    (void)buf;
    struct sock *sock = stream->data;
    struct worker *worker = sock->worker;
    for (int i = 0; i < READS_PER_EVENT && !sock->closing && !sock->paused; i++) {
        bool more = false;
        if (UNLIKELY(sock->unread)) {
            sock->ops->on_readable(sock);
        } else {
            more = sock_receive(sock);
        }
        worker_settle(worker);
        if (LIKELY(!more)) {
            break;
        }
    }
}

static void sock_not_late(struct sock *sock)
{
    if (sock->late) {
        struct sock **list = sock->fresh ? &sock->worker->fresh : &sock->worker->late;
        sock->late = sock->fresh = false;
        DL_DELETE2(*list, sock, late_prev, late_next);
    }
}

void sock_start_late(struct sock *sock)
{
    if (!sock->late && !sock->adopted && !sock->closing) {
        sock->late = true;
        DL_APPEND2(sock->worker->late, sock, late_prev, late_next);
    }
}

void sock_start_waiting(struct worker *worker)
{
    while (worker->late != NULL) {
        sock_start(worker->late);
    }
}

void sock_read_soon(struct sock *sock)
{
    ASSERT(!sock->late && !sock->adopted && !sock->closing);
    sock->late = sock->fresh = true;
    DL_APPEND2(sock->worker->fresh, sock, late_prev, late_next);
}

struct sock *sock_take_fresh(struct worker *worker)
{
    struct sock *sock = worker->fresh;
    if (sock != NULL) {
        sock_not_late(sock);
    }
    return sock;
}

void sock_start(struct sock *sock)
{
    sock_not_late(sock);
    if (sock->closing) {
        return;
    }
    sock_adopt(sock);
    if (!sock->paused && !sock->eof) {
        int rc = uv_read_start((uv_stream_t *)&sock->tcp, on_alloc, on_read);
        ASSERT(rc == 0 || rc == UV_EALREADY);
    }
}

void sock_read_now(struct sock *sock)
{
    ASSERT(!sock->adopted);
    (void)sock_receive(sock);
}

void sock_pause(struct sock *sock)
{
    if (sock->paused || sock->closing) {
        return;
    }
    sock->paused = true;
    if (sock->adopted) {
        (void)uv_read_stop((uv_stream_t *)&sock->tcp); /* always 0 */
    }
}

void sock_resume(struct sock *sock)
{
    if (!sock->paused || sock->closing) {
        return;
    }
    sock->paused = false;
    if (sock->adopted) {
        sock_start(sock);
    }
}

/* Several chunks, and the piece if there are not too many. */
static __attribute__((noinline)) ssize_t send_all(struct sock *sock, const char *bytes, size_t len)
{
    struct iovec iov[IOV_MAX_USED];
    size_t count = 0;
    const struct chunk *head = sock->out.head;
    for (; head != NULL && count < IOV_MAX_USED; head = head->next) {
        iov[count++] = (struct iovec){.iov_base = unconst(head->bytes + head->start),
                                      .iov_len = head->end - head->start};
    }
    if (head == NULL && len != 0 && count < IOV_MAX_USED) {
        iov[count++] = (struct iovec){.iov_base = unconst(bytes), .iov_len = len};
    }
    struct msghdr message = {.msg_iov = iov, .msg_iovlen = count};
    return sendmsg(sock->fd, &message, MSG_NOSIGNAL);
}

/* Send the queue and the piece behind it, once. Returns what the kernel took, or -1 and errno. */
static ssize_t sock_send(struct sock *sock, const char *bytes, size_t len)
{
    const struct chunk *head = sock->out.head;
    if (head != NULL && head->next == NULL && len == 0) {
        return send(sock->fd, head->bytes + head->start, head->end - head->start, MSG_NOSIGNAL);
    }
    return head == NULL ? send(sock->fd, bytes, len, MSG_NOSIGNAL) : send_all(sock, bytes, len);
}

/* Account for n bytes taken from the queue and then from the piece; returns how many of the piece.
 */
static size_t sock_taken(struct sock *sock, size_t n)
{
    sock->sent += n;
    size_t queued = MIN(n, sock->out.len);
    chunkq_drop(&sock->worker->chunks, &sock->out, queued);
    return n - queued;
}

size_t sock_send_wire(struct sock *sock, const char *bytes, size_t len)
{
    size_t taken = 0;
    if (!sock->writing) {
        ssize_t n = sock_send(sock, bytes, len);
        if (n < 0 && errno != EAGAIN && errno != EINTR) {
            sock->failed = errno;
            sock->write_dead = true;
            sock_mark_dirty(sock);
            return 0;
        }
        if (n > 0) {
            size_t own = sock_taken(sock, (size_t)n);
            bytes += own;
            len -= own;
            taken = (size_t)n;
        }
    }
    if (len != 0) {
        chunkq_put(&sock->worker->chunks, &sock->out, bytes, len);
    }
    return taken;
}

void sock_stage_wire(struct sock *sock, const char *bytes, size_t len)
{
    chunkq_put(&sock->worker->chunks, &sock->out, bytes, len);
    sock_mark_dirty(sock);
}

size_t sock_tls_waiting(const struct sock *sock)
{
    return sock->out.len + sock->tls->plain.len;
}

uint64_t sock_tls_sent(const struct sock *sock)
{
    return sock->tls->sent;
}

void sock_write(struct sock *sock, const char *bytes, size_t len)
{
    if (sock->closing || sock->write_dead || len == 0) {
        return;
    }
    if (UNLIKELY(sock->tls != NULL)) {
        sock_tls_write(sock, bytes, len);
        return;
    }
    if (len >= SOCK_DIRECT_BYTES && !sock->writing && !sock->connecting) {
        ssize_t n = sock_send(sock, bytes, len);
        if (n < 0 && errno != EAGAIN && errno != EINTR) {
            sock->failed = errno;
            sock->write_dead = true;
            sock_mark_dirty(sock);
            return;
        }
        if (n > 0) {
            size_t taken = sock_taken(sock, (size_t)n);
            bytes += taken;
            len -= taken;
        }
    }
    if (len != 0 && !chunkq_put_fast(&sock->out, bytes, len)) {
        /* A head and a small body leave in one run. */
        chunkq_begin(&sock->worker->chunks, &sock->out, STAGE_BYTES);
        chunkq_put(&sock->worker->chunks, &sock->out, bytes, len);
    }
    sock_mark_dirty(sock);
}

/* Where the owner's bytes are staged. */
static inline struct chunkq *staging(struct sock *sock)
{
    return LIKELY(sock->tls == NULL) ? &sock->out : &sock->tls->plain;
}

bool sock_write_chunk(struct sock *sock, struct chunk *chunk)
{
    struct chunkq *queue = staging(sock);
    if (sock->closing || sock->write_dead || queue->head != NULL) {
        return false;
    }
    chunkq_take(queue, chunk_share(chunk));
    sock_mark_dirty(sock);
    return true;
}

char *sock_room(struct sock *sock, size_t len)
{
    if (sock->closing || sock->write_dead || len > STAGE_BYTES) {
        return NULL;
    }
    struct chunkq *queue = staging(sock);
    chunkq_begin(&sock->worker->chunks, queue, STAGE_BYTES);
    struct chunk *tail = queue->tail;
    return len <= tail->size - tail->end ? tail->bytes + tail->end : NULL;
}

void sock_staged(struct sock *sock, size_t len)
{
    struct chunkq *queue = staging(sock);
    queue->tail->end += (uint32_t)len;
    queue->len += len;
    sock_mark_dirty(sock);
}

void sock_fail(struct sock *sock, int error)
{
    if (!sock->closing && !sock->write_dead) {
        sock->failed = error;
        sock->write_dead = true;
        sock_mark_dirty(sock);
    }
}

void sock_push(struct sock *sock)
{
    if (sock->closing || sock->write_dead || sock->writing) {
        return;
    }
    if (sock->tls != NULL) {
        (void)sock_tls_flush(sock);
    }
    if (sock->out.len == 0) {
        return;
    }
    ssize_t n = sock_send(sock, NULL, 0);
    if (n > 0) {
        (void)sock_taken(sock, (size_t)n);
    }
}

void sock_want_drain(struct sock *sock)
{
    sock->want_drain = true;
    sock_mark_dirty(sock);
}

static void on_written(uv_write_t *write, int status);

static void sock_end_wait(struct sock *sock)
{
    pool_put(&sock->worker->wait_pool, sock->wait);
    sock->wait = NULL;
    sock->writing = false;
}

/* Hand the queue to libuv, which waits until the socket has room. */
static __attribute__((noinline)) void sock_wait_writable(struct sock *sock)
{
    if (sock->late) {
        sock_start(sock); /* its place in the list becomes libuv's handle */
    }
    sock_adopt(sock);
    struct sock_wait *wait = pool_take(&sock->worker->wait_pool);
    uv_buf_t bufs[4]; /* libuv allocates for more */
    unsigned count = 0;
    wait->len = 0;
    for (struct chunk *chunk = sock->out.head; chunk != NULL && count < ARRAY_LEN(bufs);
         chunk = chunk->next) {
        unsigned len = chunk->end - chunk->start;
        bufs[count++] = uv_buf_init(chunk->bytes + chunk->start, len);
        wait->len += len;
    }
    sock->wait = wait;
    sock->writing = true;
    wait->write.data = sock;
    int rc = uv_write(&wait->write, (uv_stream_t *)&sock->tcp, bufs, count, on_written);
    if (rc != 0) {
        sock_end_wait(sock);
        sock->failed = -rc;
        sock_mark_dirty(sock);
    }
}

/* Bytes left: tell who waits for that. May end the socket. */
static void sock_after_send(struct sock *sock, size_t n)
{
    if (n != 0 && sock->connecting && sock->tls == NULL) {
        sock->connecting = false;
        if (sock->ops->on_connected != NULL) {
            sock->ops->on_connected(sock);
        }
    }
    if (sock->closing || sock->writing) {
        return;
    }
    if (sock->out.len != 0) {
        sock_wait_writable(sock);
    }
    size_t waiting = sock_waiting(sock);
    if (waiting != 0) {
        if (!sock->full && waiting > SOCK_FULL_BYTES) {
            sock->full = true;
            sock->ops->on_full(sock);
        }
        return;
    }
    if (sock->full || sock->want_drain) {
        sock->full = false;
        sock->want_drain = false;
        sock->ops->on_drain(sock);
    }
}

static void on_written(uv_write_t *write, int status)
{
    struct sock *sock = write->data;
    struct worker *worker = sock->worker;
    size_t n = sock->wait->len;
    sock_end_wait(sock);
    if (sock->closing) {
        return; /* the close callback clears the queue */
    }
    if (status != 0) {
        sock->write_dead = true;
        sock->ops->on_error(sock, -status);
    } else {
        (void)sock_taken(sock, n);
        if (sock->tls != NULL) {
            sock_mark_dirty(sock); /* there is room to encrypt more */
        } else {
            sock_after_send(sock, n);
        }
    }
    worker_settle(worker);
}

void sock_settle(struct sock *sock)
{
    if (sock->closing) {
        return;
    }
    if (sock->failed != 0) {
        int error = sock->failed;
        sock->failed = 0;
        sock->write_dead = true;
        sock->ops->on_error(sock, error);
        return;
    }
    if (sock->writing) {
        if (!sock->full && sock_waiting(sock) > SOCK_FULL_BYTES) {
            sock->full = true;
            sock->ops->on_full(sock);
        }
        return;
    }
    ssize_t n = 0;
    if (UNLIKELY(sock->tls != NULL)) {
        (void)sock_tls_flush(sock); /* with what waits before it */
        if (sock->failed != 0) {
            sock_settle(sock);
            return;
        }
    }
    if (sock->out.len != 0) {
        n = sock_send(sock, NULL, 0);
        if (n < 0 && errno != EAGAIN && errno != EINTR) {
            int error = errno;
            sock->write_dead = true;
            sock->ops->on_error(sock, error);
            return;
        }
        n = MAX(n, 0);
        (void)sock_taken(sock, (size_t)n);
    }
    sock_after_send(sock, (size_t)n);
}

void sock_finish(struct sock *sock)
{
    ASSERT(sock_waiting(sock) == 0);
    if (!sock->finished && !sock->closing) {
        sock->finished = true;
        if (sock->tls != NULL) {
            sock_end(sock);
            (void)sock_tls_flush(sock); /* a few bytes, with nothing before them */
        }
        (void)shutdown(sock->fd, SHUT_WR); /* fails when the peer is gone: reading tells */
    }
}

void sock_end(struct sock *sock)
{
    if (sock->tls != NULL) {
        sock->tls->end = true;
        sock_mark_dirty(sock);
    }
}

bool sock_progressed(struct sock *sock)
{
    uint64_t now = sock->sent;
    if (sock->writing) {
        now += sock->wait->len - uv_stream_get_write_queue_size((uv_stream_t *)&sock->tcp);
    }
    bool moved = (uint32_t)now != sock->stall_mark || sock_waiting(sock) == 0;
    sock->stall_mark = (uint32_t)now;
    return moved;
}

bool sock_is_quiet(const struct sock *sock)
{
    char byte;
    ssize_t n = recv(sock->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n < 0 && errno == EAGAIN;
}

bool sock_has_input(const struct sock *sock)
{
    char byte;
    return recv(sock->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

/* Nothing of libuv's is left: give back the memory that waited and the owner. */
static void sock_gone(struct sock *sock)
{
    chunkq_clear(&sock->worker->chunks, &sock->out);
    if (UNLIKELY(sock->tls != NULL)) {
        sock_tls_free(sock);
    }
    sock->ops->on_closed(sock);
}

static void on_uv_closed(uv_handle_t *handle)
{
    sock_gone(handle->data);
}

static void on_task_closed(struct task *task)
{
    sock_gone(CONTAINER_OF(task, struct sock, gone));
}

void sock_close(struct sock *sock)
{
    if (sock->closing) {
        return;
    }
    sock->closing = true;
    sock_not_late(sock);
    if (sock->adopted) {
        uv_close((uv_handle_t *)&sock->tcp, on_uv_closed);
        return;
    }
    (void)close(sock->fd); /* a socket: nothing to be told about */
    sock->fd = -1;
    worker_defer(sock->worker, &sock->gone, on_task_closed);
}
