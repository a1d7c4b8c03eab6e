/*
 * The bytes of a connection: as they are, or through TLS.
 *
 * Engines share one output buffer, emptied after every call; an idle connection holds no buffer of
 * ours. A connection that has not shown a credential is kept for a short while only, and the oldest
 * such makes room when there are many: who opens connections and says nothing cannot keep others
 * out.
 */
#include "admin/server/server.h"

#include "node/base/check.h"
#include "node/base/log.h"
#include "node/base/mem.h"
#include "node/tls/tls_lib.h"

#include <string.h>
#include <utlist.h>

enum {
    CIPHER_BYTES_MAX = 256 * 1024,
    PLAIN_BYTES_MAX = 64 * 1024,
    ALERT_LINGER_MS = 1000,
    FRESH_MAX = 64, /* connections without a credential so far */
    ROOM_MIN = 8,   /* places that are kept for who comes next */
};

/* ---- what the server is configured with ---- */

int wire_set_tls(struct admin *admin, const struct admin_tls *tls, struct err_info *err)
{
    if (admin->tls_lib == NULL) {
        struct tls_lib_config config = {.keylog_fd = -1, .certs_max = 4, .contexts_max = 4};
        int rc = tls_lib_new(&config, &admin->tls_lib, err);
        if (rc != RC_OK) {
            admin->tls_lib = NULL;
            return rc;
        }
        buf_init(&admin->cipher, CIPHER_BYTES_MAX);
    }
    tls_cert_ref(tls->cert);
    tls_policy_ref(tls->policy);
    tls_cert_unref(admin->tls.cert);
    tls_policy_unref(admin->tls.policy);
    admin->tls = *tls;
    return RC_OK;
}

void wire_deinit(struct admin *admin)
{
    tls_cert_unref(admin->tls.cert);
    tls_policy_unref(admin->tls.policy);
    tls_lib_free(admin->tls_lib);
    admin->tls_lib = NULL;
    buf_deinit(&admin->cipher);
}

/* ---- room ---- */

static void make_room(struct admin *admin)
{
    size_t fresh = 0, total = 0;
    struct conn *conn, *oldest = NULL;
    DL_FOREACH (admin->conns, conn) {
        if (!conn->tls || !stream_is_open(conn->stream)) {
            continue;
        }
        total++;
        if (!conn->known) {
            oldest = oldest != NULL ? oldest : conn;
            fresh++;
        }
    }
    if (oldest != NULL && (fresh > FRESH_MAX || total + ROOM_MIN > ADMIN_CONNECTIONS_MAX)) {
        admin->count.displaced++;
        stream_close(oldest->stream, STREAM_LOCAL, "made room for another connection");
    }
}

bool wire_open(struct conn *conn)
{
    struct admin *admin = conn->admin;
    if (stream_is_unix(conn->stream) || admin->tls_lib == NULL) {
        return true;
    }
    conn->tls = true;
    struct tls_accept accept = {.policy = admin->tls.policy, .cert = admin->tls.cert};
    struct err_info err = {0};
    if (tls_lib_accept(admin->tls_lib, &accept, &admin->cipher, &conn->engine, &err) != RC_OK) {
        static struct log_limit limit;
        uint32_t suppressed = 0;
        if (log_limit_pass(&limit, 1, &suppressed)) {
            log_error("admin: no TLS for a connection", "reason=\"%s\" left_out=%u", err.text,
                      suppressed);
        }
        conn->engine = NULL;
        return false;
    }
    make_room(admin);
    return true;
}

void wire_close(struct conn *conn)
{
    tls_engine_free(conn->engine);
    conn->engine = NULL;
}

/* ---- out ---- */

static int flush(struct conn *conn)
{
    struct buf *cipher = &conn->admin->cipher;
    int rc = cipher->len > 0 ? stream_write(conn->stream, cipher->data, cipher->len) : RC_OK;
    buf_reset(cipher);
    return rc;
}

int wire_write(struct conn *conn, const void *bytes, size_t len)
{
    if (conn->engine == NULL) {
        return stream_write(conn->stream, bytes, len);
    }
    const uint8_t *at = bytes;
    int rc = RC_FULL;
    while (rc == RC_FULL) {
        size_t used = 0;
        rc = tls_engine_write(conn->engine, at, len, &used);
        at += used;
        len -= used;
        if (rc == RC_PEER || rc == RC_CLOSED) {
            buf_reset(&conn->admin->cipher);
            return RC_CLOSED;
        }
        int sent = flush(conn);
        if (sent != RC_OK) {
            return sent; /* what was encrypted is lost: the caller closes */
        }
    }
    return rc;
}

void wire_finish(struct conn *conn, uint64_t linger_ms)
{
    if (conn->engine != NULL) {
        tls_engine_end(conn->engine);
        (void)flush(conn); /* the last words of a connection that ends either way */
    }
    stream_finish(conn->stream, linger_ms);
}

/* ---- in ---- */

/* Plain HTTP on a port that speaks TLS: said in plain HTTP, as the client would not see else. */
static void refuse_plain(struct conn *conn)
{
    static const char text[] = "HTTP/1.1 400 Bad Request\r\n"
                               "Content-Type: text/plain; charset=utf-8\r\n"
                               "Content-Length: 46\r\nConnection: close\r\n\r\n"
                               "This port speaks TLS: use https:// to reach it";
    conn->state = CONN_CLOSING;
    conn->admin->count.handshakes_failed++;
    if (stream_write(conn->stream, text, sizeof(text) - 1) != RC_OK) {
        stream_close(conn->stream, STREAM_LOCAL, NULL);
        return;
    }
    stream_finish(conn->stream, ALERT_LINGER_MS);
}

/* The handshake or a record failed: an alert may wait in the output. */
static void fail(struct conn *conn)
{
    bool was_open = conn->state != CONN_CLOSING && conn->handshaken;
    log_debug("admin: TLS failed", "reason=\"%s\"", tls_engine_error(conn->engine));
    conn->admin->count.handshakes_failed += !conn->handshaken;
    (void)flush(conn); /* the stream ends either way */
    if (was_open) {
        stream_close(conn->stream, STREAM_RESET, "TLS failed");
        return;
    }
    conn->state = CONN_CLOSING;
    stream_finish(conn->stream, ALERT_LINGER_MS);
}

void wire_data(struct conn *conn, const uint8_t *bytes, size_t len)
{
    if (conn->engine == NULL) {
        conn_data(conn, bytes, len);
        return;
    }
    if (!conn->begun && len > 0) {
        conn->begun = true;
        if (bytes[0] >= 'A' && bytes[0] <= 'Z') {
            refuse_plain(conn);
            return;
        }
    }
    struct buf plain;
    buf_init(&plain, PLAIN_BYTES_MAX);
    int rc = RC_FULL;
    while (rc == RC_FULL && stream_is_open(conn->stream) && conn->state != CONN_CLOSING) {
        size_t used = 0;
        rc = tls_engine_feed(conn->engine, bytes, len, &used, &plain);
        bytes += used;
        len -= used;
        if (rc == RC_PEER) {
            fail(conn);
            break;
        }
        if (flush(conn) != RC_OK) {
            stream_close(conn->stream, STREAM_LOCAL, "takes less than there is to send");
            break;
        }
        conn->handshaken = tls_engine_state(conn->engine) != TLS_HANDSHAKE;
        if (plain.len > 0) {
            conn_data(conn, (const uint8_t *)plain.data, plain.len);
            buf_reset(&plain);
        }
    }
    buf_deinit(&plain);
    if (rc == RC_CLOSED && stream_is_open(conn->stream) && conn->state != CONN_CLOSING) {
        conn_ended(conn);
    }
}
