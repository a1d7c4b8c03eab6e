/*
 * Socket to pipe to socket; see splice.h.
 */
#include "node/proxy/splice.h"

#include "node/base/check.h"
#include "node/base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum {
    PIPES_KEPT = 8,      /* idle ones */
    TURN_BYTES = 1 << 20 /* a connection's share of one event */
};

static void pipe_close(struct splice_pipe *pipe)
{
    (void)close(pipe->in); /* a pipe has nothing to tell */
    (void)close(pipe->out);
    mem_free(pipe);
}

void splice_pool_deinit(struct splice_pool *pool)
{
    ASSERT(pool->taken_count == 0);
    while (pool->free != NULL) {
        struct splice_pipe *pipe = pool->free;
        pool->free = pipe->next;
        pipe_close(pipe);
    }
    pool->free_count = 0;
}

struct splice_pipe *splice_pipe_take(struct splice_pool *pool)
{
    struct splice_pipe *pipe = pool->free;
    if (pipe != NULL) {
        pool->free = pipe->next;
        pool->free_count--;
        pool->taken_count++;
        return pipe;
    }
    int fds[2];
    if (pool->taken_count >= SPLICE_PIPES_MAX || pipe2(fds, O_NONBLOCK | O_CLOEXEC) != 0) {
        return NULL;
    }
    (void)fcntl(fds[1], F_SETPIPE_SZ, SPLICE_PIPE_BYTES); /* refused: a smaller one works, too */
    pipe = mem_new(sizeof(*pipe));
    *pipe = (struct splice_pipe){.in = fds[1], .out = fds[0]};
    pool->taken_count++;
    return pipe;
}

void splice_pipe_put(struct splice_pool *pool, struct splice_pipe *pipe)
{
    ASSERT(pool->taken_count != 0);
    pool->taken_count--;
    if (pipe->held != 0 || pool->free_count >= PIPES_KEPT) {
        pipe_close(pipe);
        return;
    }
    pipe->next = pool->free;
    pool->free = pipe;
    pool->free_count++;
}

/* splice(2), once more when a signal came between. */
static ssize_t splice_once(int from, int to, size_t len)
{
    ssize_t n;
    do {
        n = splice(from, NULL, to, NULL, len, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    } while (n < 0 && errno == EINTR);
    return n;
}

enum splice_result splice_move(struct splice_pipe *pipe, int from, int to, uint64_t *left,
                               size_t *ret_moved)
{
    size_t moved = 0;
    enum splice_result result = SPLICE_MOVED;
    /* Never stops for fairness with bytes in the pipe: nobody would tell when they can go on. */
    while (result == SPLICE_MOVED && (moved < TURN_BYTES || pipe->held != 0)) {
        bool is_filled = pipe->held == 0 && *left != 0;
        if (is_filled) {
            size_t want = (size_t)MIN(*left, (uint64_t)SPLICE_PIPE_BYTES);
            ssize_t n = splice_once(from, pipe->in, want);
            if (n <= 0) {
                result = n == 0 ? SPLICE_EOF : errno == EAGAIN ? SPLICE_DRY : SPLICE_IN_ERROR;
                break;
            }
            pipe->held = (size_t)n;
            *left -= *left == UINT64_MAX ? 0 : (uint64_t)n;
        }
        if (pipe->held != 0) {
            ssize_t n = splice_once(pipe->out, to, pipe->held);
            if (n <= 0) {
                result = n < 0 && errno == EAGAIN ? SPLICE_FULL : SPLICE_OUT_ERROR;
                break;
            }
            pipe->held -= (size_t)n;
            moved += (size_t)n;
        }
        if (pipe->held == 0 && *left == 0) {
            result = SPLICE_DONE;
        }
    }
    *ret_moved = moved;
    return result;
}

size_t splice_take_out(struct splice_pipe *pipe, char *bytes, size_t len)
{
    ssize_t n = read(pipe->out, bytes, MIN(len, pipe->held));
    size_t taken = n > 0 ? (size_t)n : 0;
    pipe->held -= taken;
    return taken;
}
