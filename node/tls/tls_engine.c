/*
 * The engine over a BIO of our own.
 *
 * The BIO reads from eng->in, which is set only while tls_engine_feed runs, and appends to
 * eng->cipher. It never blocks: an empty input and a full output are "retry". The invariant that
 * makes feed simple: OpenSSL takes whatever the BIO offers, keeps a partial record by itself, and
 * stops only when it wants more input, has plaintext for which there is no room, or cannot write.
 */
#include "node/tls/tls_engine.h"

#include "node/base/check.h"
#include "node/base/mem.h"
#include "node/tls/tls_err.h"
#include "node/tls/tls_impl.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <string.h>

enum {
    RECORD_PLAIN_MAX = 16384, /* RFC 8446 5.1 */
    RECORD_OVERHEAD = 256,    /* RFC 8446 5.2: header and expansion */
    ALERT_REASON_BASE = 1000, /* SSL_AD_REASON_OFFSET: reasons that are the peer's alerts */
};

struct tls_engine {
    struct tls_session session; /* what SSL_get_app_data gives to the context's callbacks */
    struct tls_ctx *ctx;        /* one reference; NULL: it is of a tls_lib */
    SSL *ssl;
    struct buf *cipher; /* borrowed */
    const uint8_t *in;  /* rest of the present call's input */
    size_t in_len;
    size_t cipher_mark;     /* what cipher held before the present call */
    struct err_info *error; /* NULL: none */
    enum tls_role role;
    enum tls_state state;
    int peer_alert;
    bool end_sent;
    bool ticket_due; /* server: goes out with the first data */
    bool tidy_due;   /* a ticket went out: see tidy */
};

/* ---- the BIO ---- */

static int bio_read(BIO *bio, char *out, size_t size, size_t *ret_len)
{
    struct tls_engine *eng = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (eng->in_len == 0) {
        BIO_set_retry_read(bio);
        return 0;
    }
    size_t len = MIN(size, eng->in_len);
    memcpy(out, eng->in, len);
    eng->in += len;
    eng->in_len -= len;
    *ret_len = len;
    return 1;
}

static size_t room_in(const struct buf *buf)
{
    return buf->cap_bytes - buf->len;
}

static int bio_write(BIO *bio, const char *bytes, size_t size, size_t *ret_len)
{
    struct tls_engine *eng = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    size_t len = MIN(size, room_in(eng->cipher));
    if (len == 0 || buf_put(eng->cipher, bytes, len) != RC_OK) {
        BIO_set_retry_write(bio);
        return 0;
    }
    *ret_len = len;
    return 1;
}

static long bio_ctrl(BIO *bio, int cmd, long num, void *ptr)
{
    (void)bio;
    (void)num;
    (void)ptr;
    return cmd == BIO_CTRL_FLUSH ? 1 : 0;
}

/* Made once per process (BIO types are a scarce number space) and immutable from then on. */
static BIO_METHOD *bio_method;
static pthread_once_t bio_method_once = PTHREAD_ONCE_INIT;

static void make_bio_method(void)
{
    bio_method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "skein buffers");
    ASSERT(bio_method != NULL);
    ASSERT(BIO_meth_set_read_ex(bio_method, bio_read) == 1);
    ASSERT(BIO_meth_set_write_ex(bio_method, bio_write) == 1);
    ASSERT(BIO_meth_set_ctrl(bio_method, bio_ctrl) == 1);
}

/* ---- life ---- */

/* Between the connection and the caller's buffers. */
static bool attach_bio(struct tls_engine *eng)
{
    (void)pthread_once(&bio_method_once, make_bio_method); /* fails only for misuse */
    BIO *bio = BIO_new(bio_method);
    if (bio == NULL || SSL_set_app_data(eng->ssl, &eng->session) != 1) {
        BIO_free(bio);
        return false;
    }
    BIO_set_data(bio, eng);
    BIO_set_init(bio, 1);
    SSL_set_bio(eng->ssl, bio, bio); /* takes both references, which are one */
    return true;
}

static struct tls_engine *make(SSL *ssl, enum tls_role role, struct buf *cipher)
{
    struct tls_engine *eng = ssl != NULL ? try_mem(sizeof(*eng)) : NULL;
    if (eng == NULL) {
        SSL_free(ssl);
        return NULL;
    }
    eng->ssl = ssl;
    eng->role = role;
    eng->cipher = cipher;
    eng->peer_alert = -1;
    if (!attach_bio(eng)) {
        tls_engine_free(eng);
        return NULL;
    }
    if (role == TLS_CLIENT) {
        SSL_set_connect_state(ssl);
    } else {
        SSL_set_accept_state(ssl);
    }
    return eng;
}

int tls_engine_new(struct tls_ctx *ctx, enum tls_role role, struct buf *cipher, void *arg,
                   struct tls_engine **ret_eng)
{
    struct tls_engine *eng = make(SSL_new(tls_ctx_ssl(ctx)), role, cipher);
    tls_err_clear();
    if (eng == NULL) {
        return RC_NO_MEMORY;
    }
    eng->session.arg = arg;
    eng->ctx = ctx;
    tls_ctx_ref(ctx);
    if (role == TLS_CLIENT) {
        /* A server that answers with a certificate instead of the key finds no trust here. */
        SSL_set_verify(eng->ssl, SSL_VERIFY_PEER, NULL);
        eng->session.psk = mem_new(sizeof(*eng->session.psk));
    }
    *ret_eng = eng;
    return RC_OK;
}

int tls_engine_wrap(SSL *ssl, enum tls_role role, struct buf *cipher, struct tls_engine **ret_eng)
{
    *ret_eng = make(ssl, role, cipher);
    return *ret_eng != NULL ? RC_OK : RC_NO_MEMORY;
}

struct tls_session *tls_engine_session(struct tls_engine *eng)
{
    return &eng->session;
}

SSL *tls_engine_ssl(const struct tls_engine *eng)
{
    return eng->ssl;
}

void tls_engine_free(struct tls_engine *eng)
{
    if (eng == NULL) {
        return;
    }
    if (eng->role == TLS_CLIENT && eng->state != TLS_FAILED) {
        /* Else a session whose connection was not closed in full is not resumed; that rule is of
         * the time when truncation could not be told (RFC 5246 7.2.1). */
        SSL_set_shutdown(eng->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    }
    SSL_free(eng->ssl); /* and the BIO */
    tls_ctx_unref(eng->ctx);
    tls_cert_unref(eng->session.cert);
    tls_target_unref(eng->session.target);
    mem_free(eng->session.psk);
    mem_free(eng->error);
    mem_free(eng);
}

/* ---- failures ---- */

/* OpenSSL has one alert for every server that finds no key; ours says which reason it was. */
static void replace_alert(struct tls_engine *eng)
{
    const uint8_t record[] = {21, 3, 3, 0, 2, 2, (uint8_t)eng->session.refusal};
    eng->cipher->len = eng->cipher_mark;
    if (room_in(eng->cipher) >= sizeof(record)) {
        (void)buf_put(eng->cipher, record, sizeof(record)); /* fits */
    }
}

/* Where its text goes. */
static struct err_info *failed(struct tls_engine *eng)
{
    eng->state = TLS_FAILED;
    if (eng->error == NULL) {
        eng->error = mem_new(sizeof(*eng->error));
    }
    return eng->error;
}

static int fail(struct tls_engine *eng)
{
    if (eng->state == TLS_HANDSHAKE && eng->session.refusal != 0) {
        replace_alert(eng);
    }
    struct err_info *err = failed(eng);
    unsigned long code = ERR_peek_error();
    int reason = ERR_GET_REASON(code);
    if (ERR_GET_LIB(code) == ERR_LIB_SSL && reason >= ALERT_REASON_BASE &&
        reason < ALERT_REASON_BASE + 256) {
        eng->peer_alert = reason - ALERT_REASON_BASE;
        tls_err_clear();
        return err_set(err, RC_PEER, "the other side refused: alert %d, %s", eng->peer_alert,
                       SSL_alert_desc_string_long(eng->peer_alert));
    }
    return tls_err_take(err, RC_PEER, "TLS failed");
}

/* What a failed OpenSSL call means: RC_AGAIN wants input, RC_FULL wants room in cipher. */
static int outcome(struct tls_engine *eng, int result)
{
    switch (SSL_get_error(eng->ssl, result)) {
    case SSL_ERROR_WANT_READ:
        return RC_AGAIN;
    case SSL_ERROR_WANT_WRITE:
        return RC_FULL;
    case SSL_ERROR_ZERO_RETURN:
        eng->state = TLS_ENDED;
        return RC_CLOSED;
    default:
        return fail(eng);
    }
}

/* ---- work ---- */

static int handshake(struct tls_engine *eng)
{
    int result = SSL_do_handshake(eng->ssl);
    if (result != 1) {
        return outcome(eng, result);
    }
    /* "Reused" is how OpenSSL says that a key of the callbacks was agreed on. */
    if (eng->ctx != NULL && tls_ctx_is_psk(eng->ctx) && SSL_session_reused(eng->ssl) != 1) {
        return err_set(failed(eng), RC_PEER, "the other side did not prove the shared key");
    }
    if (eng->role == TLS_SERVER && eng->session.lib != NULL) {
        if (!tls_lib_admits(eng->ssl)) {
            return err_set(failed(eng), RC_PEER, "the client's certificate has expired since");
        }
        tls_cert_unref(eng->session.cert);
        eng->session.cert = NULL;
        eng->ticket_due = eng->session.tickets && SSL_version(eng->ssl) == TLS1_3_VERSION;
    }
    if (eng->role == TLS_CLIENT && eng->session.lib != NULL) {
        tls_lib_connected(eng->ssl);
    }
    eng->state = TLS_OPEN;
    return RC_OK;
}

int tls_engine_start(struct tls_engine *eng)
{
    if (eng->role == TLS_SERVER || eng->state != TLS_HANDSHAKE) {
        return RC_OK;
    }
    tls_err_clear();
    int rc = handshake(eng);
    return rc == RC_AGAIN ? RC_OK : rc;
}

/* Decrypt until input or room ends. */
static int read_plain(struct tls_engine *eng, struct buf *plain)
{
    for (;;) {
        size_t room = MIN(room_in(plain), (size_t)RECORD_PLAIN_MAX);
        if (room == 0) {
            return eng->in_len == 0 && SSL_has_pending(eng->ssl) == 0 ? RC_OK : RC_FULL;
        }
        char *to = buf_reserve(plain, room);
        ASSERT(to != NULL);
        size_t got = 0;
        int result = SSL_read_ex(eng->ssl, to, room, &got);
        if (result != 1) {
            return outcome(eng, result);
        }
        buf_grow(plain, got);
        if (eng->in_len == 0 && SSL_has_pending(eng->ssl) == 0) {
            return RC_OK; /* saves a call that would find nothing */
        }
    }
}

/* The next write carries it in front. TLS 1.2 has sent its own in the handshake. */
static void begin_ticket(struct tls_engine *eng)
{
    eng->ticket_due = false;
    eng->tidy_due = true;
    (void)SSL_new_session_ticket(eng->ssl); /* fails when none can be sent now */
}

/* Making a ticket takes a read buffer of 16 kB, which an idle connection would keep: a read that
 * finds nothing gives it back. SSL_free_buffers would, too, but not mind a record that has come in
 * part (CVE-2024-4741). */
static void tidy(struct tls_engine *eng)
{
    char none;
    size_t got = 0;
    eng->tidy_due = false;
    if (SSL_has_pending(eng->ssl) == 0) {
        (void)SSL_peek_ex(eng->ssl, &none, sizeof(none), &got); /* there is no input */
    }
}

int tls_engine_feed(struct tls_engine *eng, const uint8_t *in, size_t len, size_t *ret_used,
                    struct buf *plain)
{
    *ret_used = 0;
    if (eng->state == TLS_FAILED) {
        return RC_PEER;
    }
    if (eng->state == TLS_ENDED) {
        return RC_CLOSED;
    }
    tls_err_clear();
    eng->cipher_mark = eng->cipher->len;
    eng->in = in;
    eng->in_len = len;
    int rc = eng->state == TLS_HANDSHAKE ? handshake(eng) : RC_OK;
    if (rc == RC_OK) {
        rc = read_plain(eng, plain);
    }
    *ret_used = len - eng->in_len;
    eng->in = NULL;
    eng->in_len = 0;
    return rc == RC_AGAIN ? RC_OK : rc;
}

int tls_engine_write(struct tls_engine *eng, const void *plain, size_t len, size_t *ret_used)
{
    const uint8_t *bytes = plain;
    *ret_used = 0;
    if ((eng->state != TLS_OPEN && eng->state != TLS_ENDED) || eng->end_sent) {
        return RC_CLOSED;
    }
    tls_err_clear();
    if (UNLIKELY(eng->ticket_due) && len != 0) {
        begin_ticket(eng);
    }
    while (*ret_used < len) {
        /* A record that fits whole never has to be resumed. */
        size_t room = room_in(eng->cipher);
        if (room <= RECORD_OVERHEAD) {
            return RC_FULL;
        }
        size_t chunk = MIN(len - *ret_used, room - RECORD_OVERHEAD);
        size_t done = 0;
        int result =
            SSL_write_ex(eng->ssl, bytes + *ret_used, MIN(chunk, (size_t)RECORD_PLAIN_MAX), &done);
        if (result != 1) {
            int rc = outcome(eng, result);
            return rc == RC_AGAIN ? RC_FULL : rc;
        }
        *ret_used += done;
    }
    if (UNLIKELY(eng->tidy_due)) {
        tidy(eng);
    }
    return RC_OK;
}

void tls_engine_ticket(struct tls_engine *eng)
{
    if (!eng->ticket_due || eng->state != TLS_OPEN || eng->end_sent) {
        return;
    }
    tls_err_clear();
    begin_ticket(eng);
    if (SSL_do_handshake(eng->ssl) == 1) { /* else a full cipher keeps it for the next write */
        tidy(eng);
    }
    tls_err_clear();
}

void tls_engine_end(struct tls_engine *eng)
{
    if ((eng->state != TLS_OPEN && eng->state != TLS_ENDED) || eng->end_sent) {
        return;
    }
    eng->end_sent = true;
    tls_err_clear();
    (void)SSL_shutdown(eng->ssl); /* one alert; lost when cipher is full, as on a cut connection */
    tls_err_clear();
}

enum tls_state tls_engine_state(const struct tls_engine *eng)
{
    return eng->state;
}

const char *tls_engine_error(const struct tls_engine *eng)
{
    return eng->error != NULL ? eng->error->text : "";
}

int tls_engine_peer_alert(const struct tls_engine *eng)
{
    return eng->peer_alert;
}
