/*
 * TLS of a worker's sockets; see sock_tls.h.
 */
#include "node/proxy/sock_tls.h"

#include "node/base/mem.h"
#include "node/proxy/worker.h"

#include <errno.h>

enum { RECORD_BYTES = 16384 };

/* What the engine has put into the worker's cipher buffer goes behind what waits. */
static void stage_cipher(struct sock *sock)
{
    struct buf *cipher = &sock->worker->cipher;
    if (cipher->len != 0) {
        sock_stage_wire(sock, cipher->data, cipher->len);
        buf_reset(cipher);
    }
}

/* The same, sent at once as far as the kernel takes it. Returns what it took. */
static size_t send_cipher(struct sock *sock)
{
    struct buf *cipher = &sock->worker->cipher;
    size_t taken = 0;
    if (cipher->len != 0) {
        taken = sock_send_wire(sock, cipher->data, cipher->len);
        buf_reset(cipher);
    }
    return taken;
}

void sock_start_tls(struct sock *sock, struct tls_engine *engine, enum tls_role role)
{
    ASSERT(sock->tls == NULL);
    sock->tls = mem_new(sizeof(*sock->tls));
    sock->tls->engine = engine;
    if (role == TLS_CLIENT) {
        sock->connecting = true;
        if (tls_engine_start(engine) != RC_OK) {
            sock_fail(sock, EPROTO);
        }
        stage_cipher(sock);
    }
}

void sock_tls_free(struct sock *sock)
{
    if (sock->tls != NULL) {
        chunkq_clear(&sock->worker->chunks, &sock->tls->plain);
        tls_engine_free(sock->tls->engine);
        MEM_FREE(sock->tls);
    }
}

/* ---- in ---- */

static void note_open(struct sock *sock)
{
    struct sock_tls *tls = sock->tls;
    if (tls->opened || tls_engine_state(tls->engine) == TLS_HANDSHAKE ||
        tls_engine_state(tls->engine) == TLS_FAILED) {
        return;
    }
    tls->opened = true;
    sock_mark_dirty(sock); /* what was staged meanwhile can go */
    sock->connecting = false;
    if (sock->ops->on_connected != NULL) {
        sock->ops->on_connected(sock);
    }
}

static void deliver(struct sock *sock, struct buf *plain)
{
    if (plain->len != 0 && !sock->closing) {
        sock->ops->on_data(sock, plain->data, plain->len);
    }
    buf_reset(plain);
}

void sock_tls_input(struct sock *sock, const char *bytes, size_t len)
{
    struct sock_tls *tls = sock->tls;
    struct worker *worker = sock->worker;
    struct buf *plain = &worker->plain;
    int rc = RC_FULL;
    for (size_t off = 0; rc == RC_FULL && !sock->closing;) {
        size_t used = 0;
        rc = tls_engine_feed(tls->engine, (const uint8_t *)bytes + off, len - off, &used, plain);
        off += used;
        stage_cipher(sock);
        note_open(sock);
        deliver(sock, plain);
    }
    if (sock->closing) {
        return;
    }
    if (rc == RC_CLOSED) {
        if (!sock->eof) {
            sock->eof = true;
            sock->ops->on_eof(sock);
        }
    } else if (rc != RC_OK) {
        sock_push(sock); /* the alert */
        sock->write_dead = true;
        sock->ops->on_error(sock, EPROTO);
    }
}

/* ---- out ---- */

/* False: nothing more can be encrypted. */
static bool encrypt(struct sock *sock, const char *bytes, size_t len, size_t *ret_used)
{
    struct sock_tls *tls = sock->tls;
    int rc = tls_engine_write(tls->engine, bytes, len, ret_used);
    tls->sent += *ret_used;
    if (rc != RC_OK && rc != RC_FULL) {
        sock->failed = EPROTO;
    }
    return rc == RC_OK || rc == RC_FULL;
}

static bool may_encrypt(const struct sock *sock)
{
    return sock->tls->opened && !sock->writing && !sock->write_dead && sock->failed == 0;
}

/* close_notify, behind everything that was staged. */
static void say_end(struct sock *sock)
{
    struct sock_tls *tls = sock->tls;
    if (tls->end && !tls->ended && tls->plain.len == 0) {
        tls->ended = true;
        tls_engine_end(tls->engine);
    }
}

size_t sock_tls_flush(struct sock *sock)
{
    struct sock_tls *tls = sock->tls;
    struct worker *worker = sock->worker;
    struct chunkq *plain = &tls->plain;
    size_t taken = 0;
    while (may_encrypt(sock) && plain->len != 0) {
        /* As many whole records as fit into the cipher buffer, then one send. */
        size_t used = 1;
        while (plain->len != 0 && used != 0 &&
               SOCK_TLS_CIPHER_MAX - worker->cipher.len > RECORD_BYTES + 512) {
            size_t len = MIN(plain->len, (size_t)RECORD_BYTES);
            const char *bytes = chunkq_pull(&worker->chunks, plain, len);
            if (!encrypt(sock, bytes, len, &used)) {
                break;
            }
            chunkq_drop(&worker->chunks, plain, used);
        }
        say_end(sock);
        taken += send_cipher(sock);
        if (sock->out.len != 0 || used == 0) {
            break; /* the kernel has enough for now */
        }
    }
    if (may_encrypt(sock)) { /* nothing was staged */
        say_end(sock);
        taken += send_cipher(sock);
    }
    return taken;
}

/* A large piece with nothing before it is encrypted from where it lies. */
void sock_tls_write(struct sock *sock, const char *bytes, size_t len)
{
    struct sock_tls *tls = sock->tls;
    struct worker *worker = sock->worker;
    if (len >= SOCK_DIRECT_BYTES && may_encrypt(sock)) {
        (void)sock_tls_flush(sock);
        while (len != 0 && tls->plain.len == 0 && sock->out.len == 0 && may_encrypt(sock)) {
            size_t used = 0;
            if (!encrypt(sock, bytes, len, &used)) {
                buf_reset(&worker->cipher);
                break;
            }
            (void)send_cipher(sock);
            bytes += used;
            len -= used;
        }
    }
    if (len != 0) {
        chunkq_put(&worker->chunks, &tls->plain, bytes, len);
    }
    sock_mark_dirty(sock);
}
