/*
 * Streams over uv_tcp_t and uv_pipe_t.
 *
 * holds counts what can still call back: open handles and requests in flight; the memory goes in
 * stream_release alone, when the stream is closing and holds is 0. At most one uv_write is in
 * flight; what is written meanwhile collects in `pending` and leaves with the next one.
 *
 *   state      | reading          | pending, sending | ops
 *   CONNECTING | no               | may fill         | set
 *   IDLE       | no               | empty            | NULL: accepted, not started
 *   OPEN       | unless paused    | may fill         | set
 *   FINISHING  | yes, discarded   | only drain       | set, on_closed only
 *   CLOSING    | no               | dropped          | on_closed only; NULL when abandoned
 */
#include "node/net/stream.h"

#include "node/base/buf.h"
#include "node/base/check.h"
#include "node/base/mem.h"
#include "node/net/stream_accept.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum {
    SCRATCH_BYTES = 64 * 1024,
    TEXT_MAX = 192,
};

enum state {
    STATE_CONNECTING = 0,
    STATE_IDLE,
    STATE_OPEN,
    STATE_FINISHING,
    STATE_CLOSING,
};

struct stream {
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } io;
    uv_timer_t timer;
    uv_connect_t connect;
    uv_write_t write;
    uv_shutdown_t shutdown;

    unsigned holds;
    enum state state;
    bool is_unix;
    bool has_timer;
    bool paused;
    bool writing;       /* `sending` belongs to libuv */
    bool shut;          /* our side has ended, or failed to */
    bool shutting;      /* uv_shutdown was called */
    bool eof;           /* the other side has ended */
    bool was_congested; /* on_drained is owed */

    struct buf sending;
    struct buf pending;
    const struct stream_ops *ops;
    void *owner;
    struct addr to; /* whom stream_connect called */
    void (*on_gone)(void *arg);
    void *gone_arg;

    enum stream_reason reason;
    char text[TEXT_MAX];
};

/*
 * Where received bytes stand during on_data. A loop reads for one stream at a time, so one buffer a
 * thread is enough and idle streams hold none.
 */
static _Thread_local char scratch[SCRATCH_BYTES];

static const char *const reason_texts[STREAM_REASON_COUNT] = {
    [STREAM_REASON_UNSET] = "open",        [STREAM_LOCAL] = "closed by this node",
    [STREAM_FINISHED] = "finished",        [STREAM_EOF] = "ended by the other side",
    [STREAM_RESET] = "connection lost",    [STREAM_CONNECT] = "cannot connect",
    [STREAM_DEADLINE] = "deadline passed", [STREAM_SHUTDOWN] = "this node is stopping",
};

const char *stream_reason_text(enum stream_reason reason)
{
    return (unsigned)reason < STREAM_REASON_COUNT ? reason_texts[reason] : "?";
}

/* One thing less that can call back. The stream may be gone after it: last statement of callers. */
static void stream_release(struct stream *stream)
{
    ASSERT(stream->holds > 0);
    stream->holds--;
    if (stream->holds > 0) {
        return;
    }
    ASSERT(stream->state == STATE_CLOSING);
    if (stream->ops != NULL) {
        stream->ops->on_closed(stream->owner, stream->reason, stream->text);
    }
    if (stream->on_gone != NULL) {
        stream->on_gone(stream->gone_arg);
    }
    buf_deinit(&stream->sending);
    buf_deinit(&stream->pending);
    mem_free(stream);
}

static void on_handle_closed(uv_handle_t *handle)
{
    stream_release(handle->data);
}

void stream_close(struct stream *stream, enum stream_reason reason, const char *text)
{
    if (stream->state == STATE_CLOSING) {
        return;
    }
    stream->state = STATE_CLOSING;
    stream->reason = reason;
    (void)snprintf(stream->text, sizeof(stream->text), "%s",
                   text != NULL ? text : stream_reason_text(reason)); /* cut text is still text */
    uv_close(&stream->io.handle, on_handle_closed);
    if (stream->has_timer) {
        uv_close((uv_handle_t *)&stream->timer, on_handle_closed);
    }
}

void stream_abandon(struct stream *stream)
{
    if (stream == NULL) {
        return;
    }
    stream->ops = NULL;
    stream->owner = NULL;
    stream_close(stream, STREAM_LOCAL, NULL);
}

static void close_for(struct stream *stream, enum stream_reason reason, int uv_code)
{
    stream_close(stream, reason, uv_strerror(uv_code));
}

static struct stream *stream_new(uv_loop_t *loop, bool is_unix, enum state state)
{
    struct stream *stream = mem_new(sizeof(*stream));
    stream->is_unix = is_unix;
    stream->state = state;
    /* Neither makes a descriptor yet, so neither can fail. */
    if (is_unix) {
        ASSERT(uv_pipe_init(loop, &stream->io.pipe, 0) == 0);
    } else {
        ASSERT(uv_tcp_init(loop, &stream->io.tcp) == 0);
    }
    stream->io.handle.data = stream;
    stream->holds = 1;
    return stream;
}

static void set_ops(struct stream *stream, const struct stream_ops *ops, void *owner)
{
    ASSERT(ops->write_cap_bytes > 0);
    stream->ops = ops;
    stream->owner = owner;
    buf_init(&stream->sending, ops->write_cap_bytes);
    buf_init(&stream->pending, ops->write_cap_bytes);
}

/* ---- writing ---- */

static size_t high_mark(const struct stream *stream)
{
    const struct stream_ops *ops = stream->ops;
    return ops->write_high_bytes != 0 ? ops->write_high_bytes : ops->write_cap_bytes / 2;
}

static size_t low_mark(const struct stream *stream)
{
    size_t low = stream->ops->write_low_bytes;
    return low != 0 ? low : high_mark(stream) / 4;
}

size_t stream_queued(const struct stream *stream)
{
    size_t flight = stream->writing ? uv_stream_get_write_queue_size(&stream->io.stream) : 0;
    return stream->pending.len + flight;
}

bool stream_is_congested(const struct stream *stream)
{
    return stream->ops != NULL && stream_queued(stream) >= high_mark(stream);
}

static void on_shut(uv_shutdown_t *req, int status)
{
    (void)status; /* a failure means that the other side is gone: there is nothing to wait for */
    struct stream *stream = req->data;
    stream->shut = true;
    if (stream->state == STATE_FINISHING && (stream->eof || status != 0)) {
        stream_close(stream, STREAM_FINISHED, NULL);
    }
    stream_release(stream);
}

/* FINISHING: end our side once everything has been sent. */
static void shut_when_flushed(struct stream *stream)
{
    if (stream->writing || stream->pending.len > 0 || stream->shutting) {
        return;
    }
    stream->shutting = true;
    stream->shutdown.data = stream;
    if (uv_shutdown(&stream->shutdown, &stream->io.stream, on_shut) != 0) {
        stream_close(stream, STREAM_FINISHED, NULL);
        return;
    }
    stream->holds++;
}

static void send_pending(struct stream *stream);

static void on_written(uv_write_t *req, int status)
{
    struct stream *stream = req->data;
    stream->writing = false;
    buf_deinit(&stream->sending);
    if (stream->state == STATE_CLOSING) {
        stream_release(stream);
        return;
    }
    if (status < 0) {
        close_for(stream, STREAM_RESET, status);
        stream_release(stream);
        return;
    }
    send_pending(stream);
    if (stream->state == STATE_FINISHING) {
        shut_when_flushed(stream);
    } else if (stream->state == STATE_OPEN && stream->was_congested &&
               stream_queued(stream) <= low_mark(stream)) {
        stream->was_congested = false;
        if (stream->ops->on_drained != NULL) {
            stream->ops->on_drained(stream->owner);
        }
    }
    stream_release(stream);
}

/* Start the next write if none is in flight. */
static void send_pending(struct stream *stream)
{
    if (stream->writing || stream->pending.len == 0) {
        return;
    }
    struct buf swap = stream->sending;
    stream->sending = stream->pending;
    stream->pending = swap;
    uv_buf_t chunk = uv_buf_init(stream->sending.data, (unsigned)stream->sending.len);
    stream->write.data = stream;
    int code = uv_write(&stream->write, &stream->io.stream, &chunk, 1, on_written);
    if (code < 0) {
        close_for(stream, STREAM_RESET, code);
        return;
    }
    stream->writing = true;
    stream->holds++;
}

int stream_write(struct stream *stream, const void *bytes, size_t len)
{
    if (stream->state != STATE_OPEN && stream->state != STATE_CONNECTING) {
        return RC_CLOSED;
    }
    size_t queued = stream_queued(stream);
    if (len > stream->ops->write_cap_bytes - MIN(queued, stream->ops->write_cap_bytes)) {
        return RC_FULL;
    }
    size_t sent = 0;
    if (stream->state == STATE_OPEN && queued == 0 && !stream->writing && len > 0) {
        uv_buf_t chunk = uv_buf_init(unconst(bytes), (unsigned)MIN(len, (size_t)INT32_MAX));
        int code = uv_try_write(&stream->io.stream, &chunk, 1);
        if (code < 0 && code != UV_EAGAIN) {
            close_for(stream, STREAM_RESET, code);
            return RC_CLOSED;
        }
        sent = code > 0 ? (size_t)code : 0;
    }
    if (sent < len) {
        /* Fits: the cap was tested above and pending never holds more than what is queued. */
        ASSERT(buf_put(&stream->pending, (const char *)bytes + sent, len - sent) == RC_OK);
        if (stream->state == STATE_OPEN) {
            send_pending(stream);
        }
        stream->was_congested = stream->was_congested || stream_is_congested(stream);
    }
    return stream->state == STATE_CLOSING ? RC_CLOSED : RC_OK;
}

/* ---- reading ---- */

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    (void)handle;
    (void)suggested;
    *buf = uv_buf_init(scratch, sizeof(scratch));
}

static void on_end_of_input(struct stream *stream)
{
    stream->eof = true;
    (void)uv_read_stop(&stream->io.stream); /* always 0 */
    if (stream->state == STATE_FINISHING) {
        if (stream->shut) {
            stream_close(stream, STREAM_FINISHED, NULL);
        }
    } else if (stream->ops->on_eof != NULL) {
        stream->ops->on_eof(stream->owner);
    } else {
        stream_close(stream, STREAM_EOF, NULL);
    }
}

static void on_read(uv_stream_t *handle, ssize_t nread, const uv_buf_t *buf)
{
    struct stream *stream = handle->data;
    if (stream->state == STATE_CLOSING || nread == 0) {
        return;
    }
    if (nread == UV_EOF) {
        on_end_of_input(stream);
    } else if (nread < 0) {
        close_for(stream, STREAM_RESET, (int)nread);
    } else if (stream->state == STATE_OPEN) {
        stream->ops->on_data(stream->owner, (const uint8_t *)buf->base, (size_t)nread);
    }
}

static void read_on(struct stream *stream)
{
    if (stream->eof) {
        return;
    }
    int code = uv_read_start(&stream->io.stream, on_alloc, on_read);
    if (code < 0 && code != UV_EALREADY) {
        close_for(stream, STREAM_RESET, code);
    }
}

void stream_pause(struct stream *stream)
{
    stream->paused = true;
    if (stream->state == STATE_OPEN) {
        (void)uv_read_stop(&stream->io.stream); /* always 0 */
    }
}

void stream_resume(struct stream *stream)
{
    stream->paused = false;
    if (stream->state == STATE_OPEN) {
        read_on(stream);
    }
}

/* ---- begin ---- */

static void tune(struct stream *stream)
{
    if (!stream->is_unix) {
        (void)uv_tcp_nodelay(&stream->io.tcp, 1); /* a slower stream is still a stream */
    }
}

static void close_unconnected(struct stream *stream, int code)
{
    char where[ADDR_TEXT_MAX];
    char text[TEXT_MAX];
    (void)snprintf(text, sizeof(text), "%s: %s", addr_format(&stream->to, where),
                   uv_strerror(code)); /* fits */
    stream_close(stream, STREAM_CONNECT, text);
}

static void on_connected(uv_connect_t *req, int status)
{
    struct stream *stream = req->data;
    if (stream->state == STATE_CLOSING) {
        stream_release(stream);
        return;
    }
    if (status < 0) {
        close_unconnected(stream, status);
        stream_release(stream);
        return;
    }
    tune(stream);
    stream->state = STATE_OPEN;
    if (!stream->paused) {
        read_on(stream);
    }
    if (stream->state == STATE_OPEN) {
        send_pending(stream);
    }
    if (stream->state == STATE_OPEN && stream->ops->on_open != NULL) {
        stream->ops->on_open(stream->owner);
    }
    stream_release(stream);
}

struct stream *stream_connect(uv_loop_t *loop, const struct addr *to, const struct stream_ops *ops,
                              void *owner)
{
    struct stream *stream = stream_new(loop, false, STATE_CONNECTING);
    set_ops(stream, ops, owner);
    stream->to = *to;
    stream->connect.data = stream;
    int code = uv_tcp_connect(&stream->connect, &stream->io.tcp, &to->sa, on_connected);
    if (code < 0) {
        close_unconnected(stream, code);
        return stream;
    }
    stream->holds++;
    return stream;
}

struct stream *stream_new_accept(uv_loop_t *loop, bool is_unix, void (*on_gone)(void *arg),
                                 void *arg)
{
    struct stream *stream = stream_new(loop, is_unix, STATE_IDLE);
    stream->on_gone = on_gone;
    stream->gone_arg = arg;
    return stream;
}

uv_stream_t *stream_handle(struct stream *stream)
{
    return &stream->io.stream;
}

void stream_accepted(struct stream *stream)
{
    tune(stream);
}

bool stream_is_taken(const struct stream *stream)
{
    return stream->state != STATE_IDLE;
}

void stream_adopt(struct stream *stream, const struct stream_ops *ops, void *owner)
{
    ASSERT(stream->state == STATE_IDLE);
    set_ops(stream, ops, owner);
    stream->state = STATE_OPEN;
    read_on(stream);
}

/* ---- end ---- */

static void on_deadline(uv_timer_t *timer)
{
    struct stream *stream = timer->data;
    if (stream->state == STATE_FINISHING) {
        stream_close(stream, STREAM_FINISHED, NULL);
    } else {
        stream_close(stream, STREAM_DEADLINE, NULL);
    }
}

void stream_deadline(struct stream *stream, uint64_t ms)
{
    if (stream->state == STATE_CLOSING || (ms == 0 && !stream->has_timer)) {
        return;
    }
    if (!stream->has_timer) {
        ASSERT(uv_timer_init(stream->io.handle.loop, &stream->timer) == 0);
        stream->timer.data = stream;
        stream->has_timer = true;
        stream->holds++;
    }
    if (ms == 0) {
        (void)uv_timer_stop(&stream->timer); /* always 0 */
    } else {
        uv_update_time(stream->io.handle.loop); /* a long callback must not shorten the wait */
        ASSERT(uv_timer_start(&stream->timer, on_deadline, ms, 0) == 0);
    }
}

void stream_finish(struct stream *stream, uint64_t linger_ms)
{
    if (stream->state == STATE_CONNECTING || stream->state == STATE_IDLE) {
        stream_close(stream, STREAM_LOCAL, NULL);
        return;
    }
    if (stream->state != STATE_OPEN) {
        return;
    }
    stream->state = STATE_FINISHING;
    stream_deadline(stream, MAX(linger_ms, (uint64_t)1));
    read_on(stream);
    if (stream->state == STATE_FINISHING) {
        shut_when_flushed(stream);
    }
}

bool stream_is_open(const struct stream *stream)
{
    return stream->state != STATE_CLOSING;
}

/* ---- names ---- */

static void get_addr(const struct stream *stream, bool peer, struct addr *ret_addr)
{
    struct sockaddr_storage name;
    int len = sizeof(name);
    *ret_addr = (struct addr){0};
    if (stream->is_unix) {
        return;
    }
    int code = peer ? uv_tcp_getpeername(&stream->io.tcp, (struct sockaddr *)&name, &len)
                    : uv_tcp_getsockname(&stream->io.tcp, (struct sockaddr *)&name, &len);
    if (code == 0) {
        addr_from_sockaddr((struct sockaddr *)&name, ret_addr);
    }
}

void stream_peer_addr(const struct stream *stream, struct addr *ret_addr)
{
    get_addr(stream, true, ret_addr);
}

void stream_local_addr(const struct stream *stream, struct addr *ret_addr)
{
    get_addr(stream, false, ret_addr);
}

bool stream_is_unix(const struct stream *stream)
{
    return stream->is_unix;
}

bool stream_peer_uid(const struct stream *stream, uint32_t *ret_uid)
{
    uv_os_fd_t fd;
    struct ucred peer;
    socklen_t len = sizeof(peer);
    if (!stream->is_unix || uv_fileno(&stream->io.handle, &fd) != 0 ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0) {
        return false;
    }
    *ret_uid = peer.uid;
    return true;
}
