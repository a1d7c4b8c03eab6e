/*
 * connect -> (TCP: good) -> write the request -> read and judge -> close.
 *
 * holds counts what can still call back: the handle, the connect and the write. Memory goes in
 * probe_release alone. What is read stands in a scratch buffer of the thread; the judge keeps what
 * it needs.
 */
#include "node/health/probe.h"

#include "node/base/check.h"
#include "node/base/mem.h"

#include <stdio.h>
#include <string.h>

struct probe {
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
    probe_done_fn done; /* NULL once cancelled or called */
    void *arg;
};

/* A loop reads for one handle at a time. */
static _Thread_local char scratch[PROBE_READ_BYTES];

static void probe_release(struct probe *probe)
{
    ASSERT(probe->holds > 0);
    if (--probe->holds > 0) {
        return;
    }
    ASSERT(probe->closing);
    if (probe->spec->type == CHECK_HTTP) {
        judge_deinit(&probe->judge);
    }
    buf_deinit(&probe->request);
    check_spec_unref(probe->spec);
    mem_free(probe);
}

static void on_closed(uv_handle_t *handle)
{
    probe_release(handle->data);
}

static void probe_close(struct probe *probe)
{
    if (!probe->closing) {
        probe->closing = true;
        probe->done = NULL;
        uv_close((uv_handle_t *)&probe->tcp, on_closed);
    }
}

/* Closed first, so that the owner may do as it likes. */
static void probe_finish(struct probe *probe, enum probe_result result, const char *why)
{
    probe_done_fn done = probe->done;
    void *arg = probe->arg;
    probe_close(probe);
    if (done != NULL) {
        done(arg, result, why);
    }
}

/* Descriptors, ports and memory are this node's; everything else may well be the endpoint's. */
static enum probe_result result_of(int uv_code)
{
    return uv_code == UV_EMFILE || uv_code == UV_ENFILE || uv_code == UV_ENOBUFS ||
                   uv_code == UV_ENOMEM || uv_code == UV_EADDRNOTAVAIL || uv_code == UV_EADDRINUSE
               ? PROBE_LOCAL
               : PROBE_CONNECT;
}

static enum probe_result connect_failed(const struct addr *addr, int uv_code,
                                        char why[PROBE_TEXT_MAX])
{
    char where[ADDR_TEXT_MAX];
    (void)snprintf(why, PROBE_TEXT_MAX, "connect to %s: %s", addr_format(addr, where),
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
    struct probe *probe = stream->data;
    if (probe->closing || nread == 0) {
        return;
    }
    char why[PROBE_TEXT_MAX] = "";
    enum probe_result result;
    if (nread > 0) {
        result = judge_feed(&probe->judge, buf->base, (size_t)nread, why);
    } else if (nread == UV_EOF) {
        result = judge_end(&probe->judge, why);
    } else {
        (void)snprintf(why, sizeof(why), "connection lost: %s", uv_strerror((int)nread));
        result = PROBE_CLOSED;
    }
    if (result != PROBE_PENDING) {
        probe_finish(probe, result, why);
    }
}

/* ---- asking ---- */

/* A failed write shows in the read as well, which may hold a response all the same. */
static void on_written(uv_write_t *req, int status)
{
    (void)status;
    probe_release(req->data);
}

/* The negative code of libuv, or 0. */
static int ask(struct probe *probe)
{
    int code = uv_read_start((uv_stream_t *)&probe->tcp, on_alloc, on_read);
    if (code < 0) {
        return code;
    }
    uv_buf_t chunk = uv_buf_init(probe->request.data, (unsigned)probe->request.len);
    code = uv_write(&probe->write, (uv_stream_t *)&probe->tcp, &chunk, 1, on_written);
    if (code == 0) {
        probe->holds++;
    }
    return code;
}

static void connected(struct probe *probe)
{
    probe->connected = true;
    if (probe->spec->type == CHECK_TCP) {
        probe_finish(probe, PROBE_GOOD, "");
        return;
    }
    int code = ask(probe);
    if (code < 0) {
        char why[PROBE_TEXT_MAX];
        (void)snprintf(why, sizeof(why), "connection lost: %s", uv_strerror(code));
        probe_finish(probe, PROBE_CLOSED, why);
    }
}

static void on_connected(uv_connect_t *req, int status)
{
    struct probe *probe = req->data;
    if (!probe->closing) {
        if (status < 0) {
            char why[PROBE_TEXT_MAX];
            enum probe_result result = connect_failed(&probe->addr, status, why);
            probe_finish(probe, result, why);
        } else {
            connected(probe);
        }
    }
    probe_release(probe);
}

/* ---- begin and end ---- */

static struct probe *probe_new(uv_loop_t *loop, const struct check_spec *spec,
                               const struct addr *addr)
{
    struct probe *probe = mem_new(sizeof(*probe));
    probe->spec = check_spec_ref(unconst(spec));
    probe->addr = *addr;
    if (spec->port != 0) {
        addr_set_port(&probe->addr, spec->port);
    }
    ASSERT(uv_tcp_init(loop, &probe->tcp) == 0); /* makes no descriptor yet */
    probe->tcp.data = probe->connect.data = probe->write.data = probe;
    probe->holds = 1;
    buf_init(&probe->request, CHECK_REQUEST_BYTES_MAX * 2);
    if (spec->type == CHECK_HTTP) {
        judge_init(&probe->judge, spec);
    }
    return probe;
}

enum probe_result probe_start(uv_loop_t *loop, const struct check_spec *spec,
                              const struct addr *addr, const char *host, probe_done_fn done,
                              void *arg, struct probe **ret_probe, char why[PROBE_TEXT_MAX])
{
    *ret_probe = NULL;
    struct probe *probe = probe_new(loop, spec, addr);
    if (spec->type == CHECK_HTTP && check_spec_request(spec, host, &probe->request) != RC_OK) {
        (void)snprintf(why, PROBE_TEXT_MAX, "the request of the check is too long");
        probe_close(probe);
        return PROBE_LOCAL;
    }
    int code = uv_tcp_connect(&probe->connect, &probe->tcp, &probe->addr.sa, on_connected);
    if (code < 0) {
        enum probe_result result = connect_failed(&probe->addr, code, why);
        probe_close(probe);
        return result;
    }
    probe->holds++;
    probe->done = done;
    probe->arg = arg;
    *ret_probe = probe;
    return PROBE_PENDING;
}

bool probe_is_connected(const struct probe *probe)
{
    return probe->connected;
}

void probe_cancel(struct probe *probe)
{
    probe_close(probe);
}
