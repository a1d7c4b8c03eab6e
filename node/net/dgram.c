/*
 * UDP over uv_udp_t. holds counts the handle and the sends in flight; the memory goes when it is 0.
 */
#include "node/net/dgram.h"

#include "node/base/check.h"
#include "node/base/mem.h"
#include "node/net/loop.h"

#include <string.h>

enum {
    QUEUE_DEFAULT = 256 * 1024,
    UDP_PAYLOAD_MAX = 65507,
};

struct dgram {
    uv_udp_t udp;
    struct dgram_config config;
    struct dgram_counters counters;
    unsigned holds;
    bool closing;
    size_t queued_bytes;
    char *room; /* one datagram and one byte more, to see that one is too long */
    void (*on_closed)(void *owner);
    void *closed_owner;
};

/* A datagram that waits; owned by libuv until on_sent. */
struct queued {
    uv_udp_send_t req;
    struct dgram *dgram;
    size_t len;
    char bytes[];
};

static void dgram_release(struct dgram *dgram)
{
    dgram->holds--;
    if (dgram->holds > 0) {
        return;
    }
    if (dgram->on_closed != NULL) {
        dgram->on_closed(dgram->closed_owner);
    }
    mem_free(dgram->room);
    mem_free(dgram);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    (void)suggested;
    struct dgram *dgram = handle->data;
    *buf = uv_buf_init(dgram->room, (unsigned)dgram->config.bytes_max + 1);
}

static void on_received(uv_udp_t *handle, ssize_t nread, const uv_buf_t *buf,
                        const struct sockaddr *from, unsigned flags)
{
    struct dgram *dgram = handle->data;
    if (dgram->closing || (nread == 0 && from == NULL)) {
        return;
    }
    if (nread < 0) {
        dgram->counters.receive_errors++;
        return;
    }
    struct addr addr;
    addr_from_sockaddr(from, &addr);
    if ((flags & UV_UDP_PARTIAL) != 0 || (size_t)nread > dgram->config.bytes_max ||
        addr.sa.sa_family == AF_UNSPEC) {
        dgram->counters.received_too_big++;
        return;
    }
    dgram->counters.received++;
    dgram->config.on_datagram(dgram->config.owner, &addr, (uint8_t *)buf->base, (size_t)nread);
}

int dgram_open(uv_loop_t *loop, const struct addr *bind, const struct dgram_config *config,
               struct dgram **ret_dgram, struct err_info *err)
{
    ASSERT(config->bytes_max > 0 && config->bytes_max <= UDP_PAYLOAD_MAX);
    struct dgram *dgram = mem_new(sizeof(*dgram));
    dgram->config = *config;
    if (dgram->config.queue_bytes_max == 0) {
        dgram->config.queue_bytes_max = QUEUE_DEFAULT;
    }
    dgram->room = mem_new(config->bytes_max + 1);
    ASSERT(uv_udp_init(loop, &dgram->udp) == 0); /* makes no descriptor yet */
    dgram->udp.data = dgram;
    dgram->holds = 1;
    unsigned flags = bind->sa.sa_family == AF_INET6 ? UV_UDP_IPV6ONLY : 0;
    int code = uv_udp_bind(&dgram->udp, &bind->sa, flags);
    if (code == 0) {
        code = uv_udp_recv_start(&dgram->udp, on_alloc, on_received);
    }
    if (code < 0) {
        char text[ADDR_TEXT_MAX];
        addr_format(bind, text);
        dgram_close(dgram, NULL, NULL);
        if (code == UV_EADDRINUSE) {
            return err_set(err, RC_BUSY, "%s (UDP) is in use by another process", text);
        }
        return err_set(err, RC_IO, "cannot open %s (UDP): %s", text, uv_strerror(code));
    }
    *ret_dgram = dgram;
    return RC_OK;
}

void dgram_addr(const struct dgram *dgram, struct addr *ret_addr)
{
    struct sockaddr_storage name;
    int len = sizeof(name);
    *ret_addr = (struct addr){0};
    if (uv_udp_getsockname(&dgram->udp, (struct sockaddr *)&name, &len) == 0) {
        addr_from_sockaddr((struct sockaddr *)&name, ret_addr);
    }
}

static void on_sent(uv_udp_send_t *req, int status)
{
    struct queued *queued = req->data;
    struct dgram *dgram = queued->dgram;
    dgram->queued_bytes -= queued->len;
    if (status == 0) {
        dgram->counters.sent++;
    } else {
        dgram->counters.send_dropped++;
    }
    mem_free(queued);
    dgram_release(dgram);
}

static int send_queued(struct dgram *dgram, const struct addr *to, const void *bytes, size_t len)
{
    if (len > dgram->config.queue_bytes_max - dgram->queued_bytes) {
        return RC_FULL;
    }
    struct queued *queued = mem_new(sizeof(*queued) + len);
    queued->req.data = queued;
    queued->dgram = dgram;
    queued->len = len;
    memcpy(queued->bytes, bytes, len);
    uv_buf_t chunk = uv_buf_init(queued->bytes, (unsigned)len);
    int code = uv_udp_send(&queued->req, &dgram->udp, &chunk, 1, &to->sa, on_sent);
    if (code < 0) {
        mem_free(queued);
        return rc_from_uv(code);
    }
    dgram->queued_bytes += len;
    dgram->holds++;
    return RC_OK;
}

int dgram_send(struct dgram *dgram, const struct addr *to, const void *bytes, size_t len)
{
    if (dgram->closing) {
        return RC_CLOSED;
    }
    if (len > dgram->config.bytes_max) {
        return RC_TOO_BIG;
    }
    uv_buf_t chunk = uv_buf_init(unconst(bytes), (unsigned)len);
    int code = uv_udp_try_send(&dgram->udp, &chunk, 1, &to->sa);
    if (code >= 0) {
        dgram->counters.sent++;
        return RC_OK;
    }
    int rc = code == UV_EAGAIN ? send_queued(dgram, to, bytes, len) : rc_from_uv(code);
    if (rc != RC_OK) {
        dgram->counters.send_dropped++;
    }
    return rc;
}

const struct dgram_counters *dgram_counters(const struct dgram *dgram)
{
    return &dgram->counters;
}

static void on_handle_closed(uv_handle_t *handle)
{
    dgram_release(handle->data);
}

void dgram_close(struct dgram *dgram, void (*on_closed)(void *owner), void *owner)
{
    if (dgram == NULL) {
        ASSERT(on_closed == NULL);
        return;
    }
    ASSERT(!dgram->closing);
    dgram->closing = true;
    dgram->on_closed = on_closed;
    dgram->closed_owner = owner;
    uv_close((uv_handle_t *)&dgram->udp, on_handle_closed);
}
