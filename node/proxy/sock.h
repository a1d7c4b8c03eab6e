/*
 * One TCP connection of a worker: staged writes, one send per event, back-pressure by callbacks.
 *
 * Writes never fail and never call back: bytes are staged, and when the event that is being handled
 * is over, worker_settle sends what was staged in one call. Large pieces go straight to the kernel
 * from where they lie. What the kernel does not take waits in chunks, written by libuv when the
 * socket has room; on_full says that much waits, on_drain that nothing does any more.
 * Errors come only through on_error, from the loop or from worker_settle.
 *
 * A socket is adopted by libuv late: an accepted one is first read and answered directly, and
 * watched when it stays. Lifetime: embedded in its owner; sock_close is idempotent, on_closed is
 * the last callback and the memory stays valid until then. Thread: the worker's.
 */
#ifndef SKEIN_NODE_PROXY_SOCK_H
#define SKEIN_NODE_PROXY_SOCK_H

#include "node/base/addr.h"
#include "node/proxy/chunk.h"

#include <uv.h>

struct sock;
struct sock_tls;
struct worker;

/* Something to do when the event that is being handled is over; see worker_defer. */
struct task {
    struct task *next;
    void (*run)(struct task *task);
};

enum {
    SOCK_FULL_BYTES = 16384,  /* more than this waits: on_full */
    SOCK_DIRECT_BYTES = 8192, /* pieces from this size on are not copied first */
};

struct sock_ops {
    void (*on_data)(struct sock *sock, const char *bytes, size_t len); /* borrowed */
    void (*on_eof)(struct sock *sock);
    void (*on_error)(struct sock *sock, int error); /* errno; the connection is of no use */
    void (*on_connected)(struct sock *sock);        /* the first byte was accepted; may be NULL */
    void (*on_full)(struct sock *sock);
    void (*on_drain)(struct sock *sock); /* after on_full, or after sock_want_drain */
    void (*on_closed)(struct sock *sock);
    void (*on_readable)(struct sock *sock); /* instead of all that tells of reading; may be NULL */
};

/* What is only needed while bytes wait for room; pooled. */
struct sock_wait {
    uv_write_t write;
    size_t len; /* of out, in the hands of libuv */
};

/* An idle connection keeps this, so its size counts. */
struct sock {
    union {
        uv_tcp_t tcp;               /* once it is adopted */
        struct {                    /* before */
            struct task gone;       /* for one that libuv never saw */
            struct sock *late_prev; /* utlist: the worker's late or fresh ones */
            struct sock *late_next;
        };
    };
    const struct sock_ops *ops;
    struct worker *worker;
    struct sock_tls *tls; /* NULL: it speaks in clear (sock_tls.h) */
    struct sock *next_dirty;
    struct sock_wait *wait; /* while writing */
    struct chunkq out;      /* staged or waiting; with TLS, of what is encrypted already */
    uint64_t sent;          /* bytes that the kernel took, ever */
    uint32_t stall_mark;    /* see sock_progressed */
    int fd;
    int failed; /* errno of a direct write, told by the next settle */
    bool adopted : 1;
    bool paused : 1;
    bool eof : 1; /* nothing more is read */
    bool dirty : 1;
    bool late : 1;       /* to be started by the next tick */
    bool fresh : 1;      /* and late: to be read before the next poll */
    bool connecting : 1; /* with TLS, until the handshake is done */
    bool writing : 1;
    bool full : 1;
    bool want_drain : 1;
    bool finished : 1; /* the sending direction was shut */
    bool write_dead : 1;
    bool closing : 1;
    bool unread : 1; /* the owner reads by itself: on_readable */
};

/* Take an accepted descriptor (non-blocking). Nothing is read before sock_start. */
void sock_init(struct sock *sock, struct worker *worker, const struct sock_ops *ops, int fd);

/* Begin a connect; bytes may be staged at once. Returns 0, or an errno and nothing is held. */
int sock_connect(struct sock *sock, struct worker *worker, const struct sock_ops *ops,
                 const struct addr *addr);

/* Read what is there now, once, without the loop; on_data may be called. For a fresh socket. */
void sock_read_now(struct sock *sock);

/* Let the loop watch the socket for reading. */
void sock_start(struct sock *sock);

/* The same, but not before the next tick: a connection that is answered and closed by then is never
 * registered at all, which saves it three system calls. sock_start makes it now. */
void sock_start_late(struct sock *sock);
void sock_start_waiting(struct worker *worker);

/* Read it at the end of this turn of the loop, when it is more likely that something is there than
 * right after the accept: until then it counts as late. sock_take_fresh gives them one by one. */
void sock_read_soon(struct sock *sock);
struct sock *sock_take_fresh(struct worker *worker);

/* Leave reading to the owner, who is told by on_readable that there is something. */
static inline void sock_leave_unread(struct sock *sock, bool unread)
{
    sock->unread = unread;
}

/* The owner wrote by itself and failed: as if a write had. */
void sock_fail(struct sock *sock, int error);

/* Stop and go on reading: only for back-pressure, it costs system calls. */
void sock_pause(struct sock *sock);
void sock_resume(struct sock *sock);

/* Stage or send. Dropped without notice when the socket is closing or failed. */
void sock_write(struct sock *sock, const char *bytes, size_t len);

/* Stage a chunk as it is, which is shared then. False: something is staged already; write it. */
bool sock_write_chunk(struct sock *sock, struct chunk *chunk);

/* Room for `len` bytes behind what is staged, in one run, or NULL: write them as usual, then. What
 * was put there is staged by sock_staged in the same event. */
char *sock_room(struct sock *sock, size_t len);
void sock_staged(struct sock *sock, size_t len);

/* Before an abrupt end: send what is staged, as far as the kernel takes it. */
void sock_push(struct sock *sock);

/* on_drain when nothing waits any more, at the earliest in this event's settle. */
void sock_want_drain(struct sock *sock);

/* Send FIN, with TLS close_notify before it; nothing may wait. */
void sock_finish(struct sock *sock);

/* With TLS: nothing is written any more; say so in the record behind what is staged. */
void sock_end(struct sock *sock);

/* Bytes that are staged or wait. */
size_t sock_tls_waiting(const struct sock *sock);
static inline size_t sock_waiting(const struct sock *sock)
{
    return LIKELY(sock->tls == NULL) ? sock->out.len : sock_tls_waiting(sock);
}

/* Bytes of the owner's that left the machine, or may have. */
uint64_t sock_tls_sent(const struct sock *sock);
static inline uint64_t sock_sent(const struct sock *sock)
{
    return LIKELY(sock->tls == NULL) ? sock->sent : sock_tls_sent(sock);
}

/* True when bytes left since the last call of this function, or nothing waits. */
bool sock_progressed(struct sock *sock);

/* True when the peer has neither sent nor closed: an idle connection that can be used. */
bool sock_is_quiet(const struct sock *sock);

/* True when there is something to read: not so at its end, or after an error. */
bool sock_has_input(const struct sock *sock);

void sock_close(struct sock *sock);

/* ---- for sock_tls.c ---- */

void sock_mark_dirty(struct sock *sock);
/* Put bytes as they go over the wire behind what waits; sent with it. */
void sock_stage_wire(struct sock *sock, const char *bytes, size_t len);
/* The same, and sent now as far as the kernel takes it. Returns how many bytes that was, those
 * before them included. */
size_t sock_send_wire(struct sock *sock, const char *bytes, size_t len);

/* Called by worker_settle. */
void sock_settle(struct sock *sock);

#endif
