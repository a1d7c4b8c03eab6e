/*
 * Moving bytes from one socket to another inside the kernel, through a pipe (splice(2)).
 *
 * Pays off for bulk: nothing is copied to this process and back. Pipes are pooled per worker, made
 * on demand, bounded, and given back as soon as they are empty, so that the few that exist serve
 * whoever moves much at the moment.
 *
 * With libuv: let the alloc callback offer no buffer, and the read callback is told UV_ENOBUFS
 * instead of bytes, which means "readable": call splice_move then. When the sink is full, take a
 * little out of the pipe (splice_take_out) and have it written the ordinary way; when that is
 * through, the sink has room again.
 * Thread: the owner's. Blocks: never.
 */
#ifndef SKEIN_NODE_PROXY_SPLICE_H
#define SKEIN_NODE_PROXY_SPLICE_H

#include "node/base/defs.h"
#include "node/base/errors.h"

enum {
    SPLICE_PIPES_MAX = 64,           /* of one worker; two descriptors each */
    SPLICE_PIPE_BYTES = 1 << 19,     /* asked for; the system may give less */
    SPLICE_WORTH_BYTES = 128 * 1024, /* with less to go than this, copying is as good */
};

struct splice_pipe {
    struct splice_pipe *next;
    int in;
    int out;
    size_t held; /* bytes that are in it */
};

struct splice_pool {
    struct splice_pipe *free;
    uint32_t free_count;
    uint32_t taken_count;
};

void splice_pool_deinit(struct splice_pool *pool);

/* An empty pipe; NULL when there are too many or the system gives none: copy, then. */
struct splice_pipe *splice_pipe_take(struct splice_pool *pool);
/* Of any content: one that is not empty is closed. */
void splice_pipe_put(struct splice_pool *pool, struct splice_pipe *pipe);

enum splice_result {
    SPLICE_MOVED = 0, /* a fair share was moved, and there may be more: come back next turn */
    SPLICE_DRY,       /* the source has nothing now; the pipe is empty */
    SPLICE_FULL,      /* the sink takes nothing now; the pipe is not empty */
    SPLICE_DONE,      /* all that was asked for is in the sink */
    SPLICE_EOF,       /* the source ended before that; the pipe is empty */
    SPLICE_IN_ERROR,  /* errno is set; nothing more comes from the source */
    SPLICE_OUT_ERROR, /* errno is set; the sink is of no use any more */
};

/*
 * Move bytes from the socket `from` through the pipe to the socket `to`, both non-blocking.
 * left  in: how many may be taken from the source; out: less those that were (UINT64_MAX: no end)
 * ret_moved: how many the sink took.
 */
enum splice_result splice_move(struct splice_pipe *pipe, int from, int to, uint64_t *left,
                               size_t *ret_moved);

/* Read up to len bytes out of the pipe; returns how many. */
size_t splice_take_out(struct splice_pipe *pipe, char *bytes, size_t len);

#endif
