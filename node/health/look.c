/*
 * connect -> (TLS: handshake) -> (TCP: good) -> write the request -> read and judge -> close.
 *
 * holds counts what can still call back: the handle, the connect and the writes. Memory goes in
 * look_release alone. What is read stands in a scratch buffer of the thread; the judge keeps what
 * it needs. The engine goes when the look is closed.
 */
#include "node/health/look.h"

#include "node/base/check.h"
#include "node/base/mem.h"

#include <stdio.h>
#include <string.h>

struct look {
    uv_tcp_t tcp;
    uv_connect_t connect;
    unsigned holds;
    bool closing;
    bool connected;
    bool asked;              /* the request was written */
    struct tls_engine *eng;  /* NULL: in clear */
    struct buf cipher;       /* that the engine wants to send */
    struct buf plain;        /* that it has decrypted */
    size_t request_used;     /* of the request, encrypted so far */
    struct check_spec *spec; /* one reference */
    struct judge judge;      /* CHECK_HTTP */
    struct buf request;
    struct addr addr;
    look_done_fn done; /* NULL once cancelled or called */
    void *arg;
};

/* Bytes that the kernel did not take at once. */
struct look_write {
    uv_write_t req;
    struct look *look;
    char bytes[];
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
    buf_deinit(&look->cipher);
    buf_deinit(&look->plain);
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
        tls_engine_free(look->eng);
        look->eng = NULL;
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

/* ---- sending ---- */

/* A failed write shows in the read as well, which may hold a response all the same. */
static void on_written(uv_write_t *req, int status)
{
    struct look_write *write = CONTAINER_OF(req, struct look_write, req);
    struct look *look = write->look;
    (void)status;
    mem_free(write);
    look_release(look);
}

/* What the kernel does not take now is copied. The negative code of libuv, or 0. */
static int send_bytes(struct look *look, const char *bytes, size_t len)
{
    uv_stream_t *stream = (uv_stream_t *)&look->tcp;
    uv_buf_t chunk = uv_buf_init(unconst(bytes), (unsigned)len);
    int done = len == 0 ? 0 : uv_try_write(stream, &chunk, 1);
    done = done == UV_EAGAIN ? 0 : done;
    if (done < 0 || (size_t)done == len) {
        return MIN(done, 0);
    }
    struct look_write *write = mem_new(sizeof(*write) + len);
    write->look = look;
    memcpy(write->bytes, bytes + done, len - (size_t)done);
    chunk = uv_buf_init(write->bytes, (unsigned)(len - (size_t)done));
    int code = uv_write(&write->req, stream, &chunk, 1, on_written);
    if (code != 0) {
        mem_free(write);
        return code;
    }
    look->holds++;
    return 0;
}

static int send_cipher(struct look *look)
{
    int code = send_bytes(look, look->cipher.data, look->cipher.len);
    buf_reset(&look->cipher);
    return code;
}

static void lost(struct look *look, int uv_code)
{
    char why[LOOK_TEXT_MAX];
    (void)snprintf(why, sizeof(why), "connection lost: %s", uv_strerror(uv_code));
    look_finish(look, LOOK_CLOSED, why);
}

/* ---- TLS ---- */

static void tls_failed(struct look *look)
{
    char why[LOOK_TEXT_MAX];
    const char *verify = tls_engine_verify_text(look->eng);
    if (verify[0] != '\0') {
        (void)snprintf(why, sizeof(why), "certificate: %s", verify);
    } else {
        (void)snprintf(why, sizeof(why), "TLS: %s", tls_engine_error(look->eng));
    }
    (void)send_cipher(look); /* an alert, for the endpoint's log */
    look_finish(look, LOOK_TLS, why);
}

/* Encrypt and send the request. May finish the look. */
static void ask_by_tls(struct look *look)
{
    look->asked = true;
    int rc = RC_FULL;
    for (size_t used = 0; rc == RC_FULL; used = 0) {
        rc = tls_engine_write(look->eng, look->request.data + look->request_used,
                              look->request.len - look->request_used, &used);
        look->request_used += used;
        int code = send_cipher(look);
        if (code < 0) {
            lost(look, code);
            return;
        }
    }
    if (rc != RC_OK) {
        tls_failed(look);
    }
}

/* The handshake is done. May finish the look. */
static void secured(struct look *look)
{
    if (look->spec->type == CHECK_TCP) {
        tls_engine_end(look->eng);
        (void)send_cipher(look); /* nothing is waited for */
        look_finish(look, LOOK_GOOD, "");
        return;
    }
    ask_by_tls(look);
}

static enum look_result judge_plain(struct look *look, char why[LOOK_TEXT_MAX])
{
    if (look->plain.len == 0 || !look->asked) {
        buf_reset(&look->plain); /* what comes before a request is no response */
        return LOOK_PENDING;
    }
    enum look_result result = judge_feed(&look->judge, look->plain.data, look->plain.len, why);
    buf_reset(&look->plain);
    return result;
}

/* The end came without close_notify: what is not certain by now may have been cut short. */
static void end_tls(struct look *look)
{
    if (!look->asked) {
        look_finish(look, LOOK_TLS, "TLS: closed in the middle of the handshake");
    } else {
        look_finish(look, LOOK_CLOSED, "closed before the response was complete");
    }
}

/* Bytes from the endpoint, as long as the look goes on. */
static void feed_tls(struct look *look, const char *bytes, size_t len)
{
    char why[LOOK_TEXT_MAX] = "";
    int rc = RC_FULL;
    for (size_t used = 0; rc == RC_FULL; bytes += used, len -= used) {
        rc = tls_engine_feed(look->eng, (const uint8_t *)bytes, len, &used, &look->plain);
        if (rc == RC_PEER) {
            tls_failed(look);
            return;
        }
        int code = send_cipher(look);
        if (code < 0) {
            lost(look, code);
            return;
        }
        if (tls_engine_state(look->eng) == TLS_OPEN && !look->asked) {
            secured(look);
        }
        if (look->closing) {
            return;
        }
        if (rc == RC_CLOSED && !look->asked) {
            end_tls(look);
            return;
        }
        enum look_result result = judge_plain(look, why);
        if (result == LOOK_PENDING && rc == RC_CLOSED) {
            result = judge_end(&look->judge, why);
        }
        if (result != LOOK_PENDING) {
            look_finish(look, result, why);
            return;
        }
    }
}

static int begin_tls(struct look *look, struct tls_lib *lib)
{
    struct err_info err = {0};
    /* Two records and a flight of handshake messages; more is sent in pieces. */
    buf_init(&look->cipher, (size_t)64 * 1024);
    buf_init(&look->plain, LOOK_READ_BYTES);
    return tls_lib_connect(lib, look->spec->tls, NULL, &look->cipher, &look->eng, &err);
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
    enum look_result result = LOOK_PENDING;
    if (nread < 0 && nread != UV_EOF) {
        lost(look, (int)nread);
    } else if (look->eng != NULL) {
        if (nread > 0) {
            feed_tls(look, buf->base, (size_t)nread);
        } else {
            end_tls(look);
        }
    } else {
        result = nread > 0 ? judge_feed(&look->judge, buf->base, (size_t)nread, why)
                           : judge_end(&look->judge, why);
    }
    if (result != LOOK_PENDING) {
        look_finish(look, result, why);
    }
}

/* ---- asking ---- */

static void connected(struct look *look)
{
    look->connected = true;
    if (look->spec->type == CHECK_TCP && look->eng == NULL) {
        look_finish(look, LOOK_GOOD, "");
        return;
    }
    int code = uv_read_start((uv_stream_t *)&look->tcp, on_alloc, on_read);
    if (code == 0 && look->eng == NULL) {
        code = send_bytes(look, look->request.data, look->request.len);
    } else if (code == 0) {
        if (tls_engine_start(look->eng) != RC_OK) {
            tls_failed(look);
            return;
        }
        code = send_cipher(look);
    }
    if (code < 0) {
        lost(look, code);
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
    look->tcp.data = look->connect.data = look;
    look->holds = 1;
    buf_init(&look->request, CHECK_REQUEST_BYTES_MAX * 2);
    if (spec->type == CHECK_HTTP) {
        judge_init(&look->judge, spec);
    }
    return look;
}

/* What was made of the check before anything is sent; LOOK_PENDING: go on. */
static enum look_result prepare(struct look *look, const struct look_ask *ask,
                                char why[LOOK_TEXT_MAX])
{
    const struct check_spec *spec = look->spec;
    if (spec->type == CHECK_HTTP && check_spec_request(spec, ask->host, &look->request) != RC_OK) {
        (void)snprintf(why, LOOK_TEXT_MAX, "the request of the check is too long");
        return LOOK_LOCAL;
    }
    if (spec->tls != NULL && begin_tls(look, ask->tls) != RC_OK) {
        (void)snprintf(why, LOOK_TEXT_MAX, "no TLS connection can be made here");
        return LOOK_LOCAL;
    }
    return LOOK_PENDING;
}

enum look_result look_start(const struct look_ask *ask, struct look **ret_look,
                            char why[LOOK_TEXT_MAX])
{
    *ret_look = NULL;
    struct look *look = look_new(ask->loop, ask->spec, ask->addr);
    enum look_result result = prepare(look, ask, why);
    if (result != LOOK_PENDING) {
        look_close(look);
        return result;
    }
    int code = uv_tcp_connect(&look->connect, &look->tcp, &look->addr.sa, on_connected);
    if (code < 0) {
        result = connect_failed(&look->addr, code, why);
        look_close(look);
        return result;
    }
    look->holds++;
    look->done = ask->done;
    look->arg = ask->arg;
    *ret_look = look;
    return LOOK_PENDING;
}

const char *look_waits_for(const struct look *look)
{
    if (!look->connected) {
        return "connect";
    }
    return look->eng != NULL && tls_engine_state(look->eng) == TLS_HANDSHAKE ? "TLS handshake"
                                                                             : "response";
}

void look_cancel(struct look *look)
{
    look_close(look);
}
