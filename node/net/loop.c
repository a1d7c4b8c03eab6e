/*
 * Loop life cycle; see loop.h.
 */
#include "node/net/loop.h"

#include "node/base/check.h"

#include <stdio.h>

void loop_init(uv_loop_t *loop)
{
    ASSERT(uv_loop_init(loop) == 0);
}

void loop_run(uv_loop_t *loop)
{
    (void)uv_run(loop, UV_RUN_DEFAULT); /* says whether handles are left; the caller's to know */
}

struct run_limit {
    uv_timer_t timer;
    bool expired;
    bool closed;
};

static void on_limit(uv_timer_t *timer)
{
    struct run_limit *limit = timer->data;
    limit->expired = true;
}

static void on_limit_closed(uv_handle_t *handle)
{
    struct run_limit *limit = handle->data;
    limit->closed = true;
}

bool loop_run_until(uv_loop_t *loop, bool (*done)(void *arg), void *arg, uint64_t timeout_ms)
{
    struct run_limit limit = {.timer.data = &limit};
    ASSERT(uv_timer_init(loop, &limit.timer) == 0);
    limit.timer.data = &limit;
    uv_update_time(loop);
    ASSERT(uv_timer_start(&limit.timer, on_limit, timeout_ms, 0) == 0);
    uv_unref((uv_handle_t *)&limit.timer); /* an empty loop ends the wait at once */

    bool reached = done(arg);
    while (!reached && !limit.expired) {
        int active = uv_run(loop, UV_RUN_ONCE);
        reached = done(arg);
        if (active == 0) {
            break;
        }
    }

    uv_close((uv_handle_t *)&limit.timer, on_limit_closed);
    while (!limit.closed) {
        (void)uv_run(loop, UV_RUN_NOWAIT); /* a closing handle needs one turn */
    }
    return reached;
}

static void name_open(uv_handle_t *handle, void *arg)
{
    size_t *count = arg;
    if (!uv_is_closing(handle)) {
        (*count)++;
        (void)fprintf(stderr, "skein: handle left on the loop: %s, %s\n",
                      uv_handle_type_name(handle->type),
                      uv_is_active(handle) ? "active" : "inactive");
    }
}

void loop_close_clean(uv_loop_t *loop)
{
    size_t open = 0;
    uv_walk(loop, name_open, &open);
    if (open == 0) {
        (void)uv_run(loop, UV_RUN_DEFAULT); /* only closing handles and their requests are left */
        uv_walk(loop, name_open, &open);
    }
    if (open != 0 || uv_loop_close(loop) != 0) {
        UNREACHABLE("the loop is not empty at its end");
    }
}

int rc_from_uv(int uv_code)
{
    if (uv_code >= 0) {
        return RC_OK;
    }
    static const struct {
        int uv;
        int rc;
    } table[] = {
        {UV_EADDRINUSE, RC_BUSY},   {UV_EAGAIN, RC_AGAIN},    {UV_ECANCELED, RC_CLOSED},
        {UV_ECONNRESET, RC_CLOSED}, {UV_EEXIST, RC_EXISTS},   {UV_EINVAL, RC_INVALID},
        {UV_EMSGSIZE, RC_TOO_BIG},  {UV_ENOBUFS, RC_FULL},    {UV_ENOENT, RC_NOT_FOUND},
        {UV_ENOMEM, RC_NO_MEMORY},  {UV_ENOSPC, RC_NO_SPACE}, {UV_ENOTSUP, RC_UNSUPPORTED},
        {UV_EOF, RC_CLOSED},        {UV_EPIPE, RC_CLOSED},    {UV_ETIMEDOUT, RC_TIMEOUT},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        if (table[i].uv == uv_code) {
            return table[i].rc;
        }
    }
    return RC_IO;
}
