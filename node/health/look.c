/*
 * connect -> (TCP: good) -> write the request -> read and judge -> close.
 *
 * holds counts what can still call back: the handle, the connect and the write. Memory goes in
 * look_release alone. What is read stands in a scratch buffer of the thread; the judge keeps what
 * it needs.
 */
#include "node/health/look.h"

#include "node/base/check.h"
#include "node/base/mem.h"

#include <stdio.h>
#include <string.h>

struct look {
    uv_tcp_t tcp;
    uv_connect_t connect;
    uv_write_t write;
    unsigned holds;
    bool closing;
    bool connected;
    struct check_spec *spec; /* one reference */
    struct judge judge;      /* CHECK_HTTP */
    struct buf request;
    struct addr addr;
    look_done_fn done; /* NULL once cancelled or called */
    void *arg;
};

/* A loop reads for one handle at a time. */
static _Thread_local char scratch[LOOK_READ_BYTES];

static void look_release(struct look *look)
{
    ASSERT(look->holds > 0);
    if (--look->holds > 0) {
        return;
    }
    ASSERT(look->closing);
    if (look->spec->type == CHECK_HTTP) {
        judge_deinit(&look->judge);
    }
    buf_deinit(&look->request);
    check_spec_unref(look->spec);
    mem_free(look);
}

static void on_closed(uv_handle_t *handle)
{
    look_release(handle->data);
}

static void look_close(struct look *look)
{
    if (!look->closing) {
        look->closing = true;
        look->done = NULL;
        uv_close((uv_handle_t *)&look->tcp, on_closed);
    }
}

/* Closed first, so that the owner may do as it likes. */
static void look_finish(struct look *look, enum look_result result, const char *why)
{
    look_done_fn done = look->done;
    void *arg = look->arg;
    look_close(look);
    if (done != NULL) {
        done(arg, result, why);
    }
}

/* Descriptors, ports and memory are this node's; everything else may well be the endpoint's. */
static enum look_result result_of(int uv_code)
{
    return uv_code == UV_EMFILE || uv_code == UV_ENFILE || uv_code == UV_ENOBUFS ||
                   uv_code == UV_ENOMEM || uv_code == UV_EADDRNOTAVAIL || uv_code == UV_EADDRINUSE
               ? LOOK_LOCAL
               : LOOK_CONNECT;
}

static enum look_result connect_failed(const struct addr *addr, int uv_code,
                                       char why[LOOK_TEXT_MAX])
{
    char where[ADDR_TEXT_MAX];
    (void)snprintf(why, LOOK_TEXT_MAX, "connect to %s: %s", addr_format(addr, where),
                   uv_strerror(uv_code));
    return result_of(uv_code);
}

/* ---- reading ---- */

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    (void)handle;
    (void)suggested;
    *buf = uv_buf_init(scratch, sizeof(scratch));
}

static void on_read(uv_stream_t *stream, ssize_t nread, const uv_buf_t *buf)
{
    struct look *look = stream->data;
    if (look->closing || nread == 0) {
        return;
    }
    char why[LOOK_TEXT_MAX] = "";
    enum look_result result;
    if (nread > 0) {
        result = judge_feed(&look->judge, buf->base, (size_t)nread, why);
    } else if (nread == UV_EOF) {
        result = judge_end(&look->judge, why);
    } else {
        (void)snprintf(why, sizeof(why), "connection lost: %s", uv_strerror((int)nread));
        result = LOOK_CLOSED;
    }
    if (result != LOOK_PENDING) {
        look_finish(look, result, why);
    }
}

/* ---- asking ---- */

/* A failed write shows in the read as well, which may hold a response all the same. */
static void on_written(uv_write_t *req, int status)
{
    (void)status;
    look_release(req->data);
}

/* The negative code of libuv, or 0. */
static int ask(struct look *look)
{
    int code = uv_read_start((uv_stream_t *)&look->tcp, on_alloc, on_read);
    if (code < 0) {
        return code;
    }
    uv_buf_t chunk = uv_buf_init(look->request.data, (unsigned)look->request.len);
    code = uv_write(&look->write, (uv_stream_t *)&look->tcp, &chunk, 1, on_written);
    if (code == 0) {
        look->holds++;
    }
    return code;
}

static void connected(struct look *look)
{
    look->connected = true;
    if (look->spec->type == CHECK_TCP) {
        look_finish(look, LOOK_GOOD, "");
        return;
    }
    int code = ask(look);
    if (code < 0) {
        char why[LOOK_TEXT_MAX];
        (void)snprintf(why, sizeof(why), "connection lost: %s", uv_strerror(code));
        look_finish(look, LOOK_CLOSED, why);
    }
}

static void on_connected(uv_connect_t *req, int status)
{
    struct look *look = req->data;
    if (!look->closing) {
        if (status < 0) {
            char why[LOOK_TEXT_MAX];
            enum look_result result = connect_failed(&look->addr, status, why);
            look_finish(look, result, why);
        } else {
            connected(look);
        }
    }
    look_release(look);
}

/* ---- begin and end ---- */

static struct look *look_new(uv_loop_t *loop, const struct check_spec *spec,
                             const struct addr *addr)
{
    struct look *look = mem_new(sizeof(*look));
    look->spec = check_spec_ref(unconst(spec));
    look->addr = *addr;
    if (spec->port != 0) {
        addr_set_port(&look->addr, spec->port);
    }
    ASSERT(uv_tcp_init(loop, &look->tcp) == 0); /* makes no descriptor yet */
    look->tcp.data = look->connect.data = look->write.data = look;
    look->holds = 1;
    buf_init(&look->request, CHECK_REQUEST_BYTES_MAX * 2);
    if (spec->type == CHECK_HTTP) {
        judge_init(&look->judge, spec);
    }
    return look;
}

enum look_result look_start(uv_loop_t *loop, const struct check_spec *spec, const struct addr *addr,
                            const char *host, look_done_fn done, void *arg, struct look **ret_look,
                            char why[LOOK_TEXT_MAX])
{
    *ret_look = NULL;
    struct look *look = look_new(loop, spec, addr);
    if (spec->type == CHECK_HTTP && check_spec_request(spec, host, &look->request) != RC_OK) {
        (void)snprintf(why, LOOK_TEXT_MAX, "the request of the check is too long");
        look_close(look);
        return LOOK_LOCAL;
    }
    int code = uv_tcp_connect(&look->connect, &look->tcp, &look->addr.sa, on_connected);
    if (code < 0) {
        enum look_result result = connect_failed(&look->addr, code, why);
        look_close(look);
        return result;
    }
    look->holds++;
    look->done = done;
    look->arg = arg;
    *ret_look = look;
    return LOOK_PENDING;
}

bool look_is_connected(const struct look *look)
{
    return look->connected;
}

void look_cancel(struct look *look)
{
    look_close(look);
}
