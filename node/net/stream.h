/*
 * One TCP or unix-socket connection with bounded writes, one deadline and one way to end.
 *
 * A stream is heap-allocated and owns itself: it lives until on_closed was called, which happens
 * exactly once, always from the loop and never from within a function below. Who receives a stream
 * (from stream_connect or a listener's on_accept) is its owner.
 *
 *   CONNECTING --connected--> OPEN --stream_finish--> FINISHING --flushed, peer's end--> CLOSING
 *   any state  --stream_close, error, end of input, deadline--> CLOSING --handles closed--> freed
 *
 * In CLOSING no callback but on_closed is made and writes answer RC_CLOSED.
 * Received bytes stand in a scratch buffer of the thread: an idle stream holds no buffer.
 * Thread: the loop's. Nothing blocks.
 */
#ifndef SKEIN_NODE_NET_STREAM_H
#define SKEIN_NODE_NET_STREAM_H

#include "node/base/addr.h"
#include "node/base/defs.h"
#include "node/base/errors.h"

#include <uv.h>

struct stream;

enum stream_reason {
    STREAM_REASON_UNSET = 0,
    STREAM_LOCAL,    /* stream_close by the owner */
    STREAM_FINISHED, /* stream_finish ran to its end */
    STREAM_EOF,      /* the other side ended it */
    STREAM_RESET,    /* read or write failed */
    STREAM_CONNECT,  /* never connected */
    STREAM_DEADLINE, /* stream_deadline passed */
    STREAM_SHUTDOWN, /* the process ends */
    STREAM_REASON_COUNT
};

/* What the owner is told, and how much may wait to be written. One static table per kind of owner.
 */
struct stream_ops {
    /* stream_connect succeeded; reading has begun. May be NULL for accepted streams. */
    void (*on_open)(void *owner);

    /* len > 0 bytes, borrowed for this call. Pausing within it takes effect before the next one. */
    void (*on_data)(void *owner, const uint8_t *bytes, size_t len);

    /* End of input. NULL: the stream closes with STREAM_EOF. Else the owner decides (it may still
     * write, then stream_finish or stream_close); reading has stopped. */
    void (*on_eof)(void *owner);

    /* The write queue was above write_high_bytes and fell to write_low_bytes or less. May be NULL.
     */
    void (*on_drained)(void *owner);

    /* The last call; the stream pointer is dead after it. text: one line for people. */
    void (*on_closed)(void *owner, enum stream_reason reason, const char *text);

    size_t write_cap_bytes;  /* a write that would exceed this is refused; > 0 */
    size_t write_high_bytes; /* stream_is_congested from here on; 0: half the cap */
    size_t write_low_bytes;  /* on_drained at or below this; 0: a quarter of the high mark */
};

/*
 * Connect to a TCP address. Never fails at once: trouble arrives as on_closed(STREAM_CONNECT) with
 * text such as "10.0.0.2:7946: connection refused". Bound the wait with stream_deadline.
 * ops is borrowed for ever (static).
 */
struct stream *stream_connect(uv_loop_t *loop, const struct addr *to, const struct stream_ops *ops,
                              void *owner);

/* Take over a stream that a listener handed out, and begin to read. Call it from on_accept. */
void stream_adopt(struct stream *stream, const struct stream_ops *ops, void *owner);

/*
 * Write all of it or nothing: what the kernel does not take at once is copied.
 *
 * 0          sent or queued
 * RC_FULL    the queue would exceed write_cap_bytes; nothing was taken
 * RC_CLOSED  closing or finishing; nothing was taken
 */
MUST_CHECK int stream_write(struct stream *stream, const void *bytes, size_t len);

size_t stream_queued(const struct stream *stream);     /* bytes not yet taken by the kernel */
bool stream_is_congested(const struct stream *stream); /* at or above the high mark */

/* Stop and resume reading; both idempotent. At most one read that is under way still arrives. */
void stream_pause(struct stream *stream);
void stream_resume(struct stream *stream);

/*
 * Close the stream with STREAM_DEADLINE after `ms` from now; replaces the earlier deadline, 0 takes
 * it away. One timer per stream, made at first use.
 */
void stream_deadline(struct stream *stream, uint64_t ms);

/*
 * Send what is queued, end our side, discard what still comes until the other side ends too (so
 * that an answer is not lost to a reset), at most for linger_ms, then close with STREAM_FINISHED.
 * No on_data, on_eof or on_drained any more.
 */
void stream_finish(struct stream *stream, uint64_t linger_ms);

/* End now; queued bytes are dropped. Idempotent; the first reason stays. text NULL: the reason's.
 */
void stream_close(struct stream *stream, enum stream_reason reason, const char *text);

/* End now and forget the owner: no callback at all follows, and the pointer is dead at once. For
 * owners that go away. NULL is accepted. */
void stream_abandon(struct stream *stream);

/* False from the moment that closing began. */
bool stream_is_open(const struct stream *stream);

/* Unset for unix sockets, and before a connect has succeeded (local). */
void stream_peer_addr(const struct stream *stream, struct addr *ret_addr);
void stream_local_addr(const struct stream *stream, struct addr *ret_addr);
bool stream_is_unix(const struct stream *stream);

/* Who is at the other end of a unix socket: the user id of the process that connected. False: not a
 * unix socket, or the kernel does not say. */
bool stream_peer_uid(const struct stream *stream, uint32_t *ret_uid);

/* "end of input", "deadline passed" ... Static. */
const char *stream_reason_text(enum stream_reason reason);

#endif
