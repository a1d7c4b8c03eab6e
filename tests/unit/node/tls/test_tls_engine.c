/*
 * Two engines joined in memory: split at every byte, small buffers, wrong keys, garbage, a server
 * that does not know the key.
 *
 * covers: tls_ctx.c
 */
#include "node/base/mem.h"
#include "node/base/rng.h"
#include "node/tls/tls_engine.h"
#include "tests/support/unit.h"

enum { CIPHER_CAP = 128 * 1024, PLAIN_CAP = 1 << 20 };

struct end {
    struct tls_engine *eng;
    struct buf cipher; /* to the other end */
    struct buf inbox;  /* from the other end, not consumed yet */
    struct buf plain;
    uint8_t key[TLS_PSK_KEY_BYTES];
    bool unknown; /* server: finds no key */
    unsigned asked;
};

static void offer(void *arg, struct tls_psk *psk)
{
    struct end *end = arg;
    end->asked++;
    memcpy(psk->identity, "who we are", 10);
    psk->identity_len = 10;
    memcpy(psk->key, end->key, sizeof(psk->key));
}

static int find(void *arg, const uint8_t *identity, size_t len, struct tls_psk *psk)
{
    struct end *end = arg;
    end->asked++;
    if (end->unknown || len != 10 || memcmp(identity, "who we are", 10) != 0) {
        return TLS_ALERT_ACCESS_DENIED;
    }
    memcpy(psk->key, end->key, sizeof(psk->key));
    return 0;
}

static const struct tls_psk_ops ops = {.offer = offer, .find = find};

struct pair {
    struct tls_ctx *ctx;
    struct end client;
    struct end server;
};

static void pair_open_caps(struct pair *pair, size_t cipher_cap, size_t plain_cap)
{
    *pair = (struct pair){0};
    assert_int_equal(tls_ctx_new_psk(&ops, &pair->ctx, NULL), RC_OK);
    struct end *ends[2] = {&pair->client, &pair->server};
    for (int i = 0; i < 2; i++) {
        buf_init(&ends[i]->cipher, cipher_cap);
        buf_init(&ends[i]->inbox, 16 << 20);
        buf_init(&ends[i]->plain, plain_cap);
        memset(ends[i]->key, 0x5a, sizeof(ends[i]->key));
        assert_int_equal(tls_engine_new(pair->ctx, i == 0 ? TLS_CLIENT : TLS_SERVER,
                                        &ends[i]->cipher, ends[i], &ends[i]->eng),
                         RC_OK);
    }
}

static void pair_open(struct pair *pair)
{
    pair_open_caps(pair, CIPHER_CAP, PLAIN_CAP);
}

static void pair_close(struct pair *pair)
{
    struct end *ends[2] = {&pair->client, &pair->server};
    for (int i = 0; i < 2; i++) {
        tls_engine_free(ends[i]->eng);
        buf_deinit(&ends[i]->cipher);
        buf_deinit(&ends[i]->inbox);
        buf_deinit(&ends[i]->plain);
    }
    tls_ctx_unref(pair->ctx);
    tls_ctx_unref(NULL);
    tls_engine_free(NULL);
}

static void carry(struct end *from, struct end *to)
{
    assert_int_equal(buf_put(&to->inbox, from->cipher.data, from->cipher.len), RC_OK);
    buf_reset(&from->cipher);
}

/* Feed the inbox in steps of at most `step` bytes; stops at anything but 0. */
static int feed(struct end *end, size_t step)
{
    int rc = RC_OK;
    while (rc == RC_OK && end->inbox.len > 0) {
        size_t len = end->inbox.len < step ? end->inbox.len : step;
        size_t used = 0;
        rc = tls_engine_feed(end->eng, (const uint8_t *)end->inbox.data, len, &used, &end->plain);
        assert_true(used <= len);
        if (rc == RC_OK) {
            assert_int_equal(used, len);
        }
        buf_drop(&end->inbox, used);
    }
    return rc;
}

static void shake_hands(struct pair *pair, size_t step)
{
    assert_int_equal(tls_engine_start(pair->client.eng), RC_OK);
    for (int i = 0; i < 4; i++) {
        carry(&pair->client, &pair->server);
        assert_int_equal(feed(&pair->server, step), RC_OK);
        carry(&pair->server, &pair->client);
        assert_int_equal(feed(&pair->client, step), RC_OK);
    }
    assert_int_equal(tls_engine_state(pair->client.eng), TLS_OPEN);
    assert_int_equal(tls_engine_state(pair->server.eng), TLS_OPEN);
}

static void say(struct end *from, struct end *to, const void *bytes, size_t len, size_t step)
{
    size_t used = 0;
    assert_int_equal(tls_engine_write(from->eng, bytes, len, &used), RC_OK);
    assert_int_equal(used, len);
    carry(from, to);
    assert_int_equal(feed(to, step), RC_OK);
    assert_true(to->plain.len >= len);
    assert_memory_equal(to->plain.data + to->plain.len - len, bytes, len);
}

static void whole_and_split(void **state)
{
    (void)state;
    static const size_t steps[] = {1, 2, 5, 7, 100, SIZE_MAX};
    static uint8_t bytes[40000];
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (uint8_t)(i * 31);
    }
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        struct pair pair;
        pair_open(&pair);
        shake_hands(&pair, steps[i]);
        assert_int_equal(pair.client.asked, 1);
        say(&pair.client, &pair.server, "ping", 4, steps[i]);
        say(&pair.server, &pair.client, "pong", 4, steps[i]);
        say(&pair.client, &pair.server, bytes, sizeof(bytes), steps[i]);
        say(&pair.server, &pair.client, bytes, sizeof(bytes), steps[i]);
        pair_close(&pair);
    }
}

static void orderly_end(void **state)
{
    (void)state;
    struct pair pair;
    pair_open(&pair);
    tls_engine_end(pair.client.eng); /* too early: nothing to end */
    assert_int_equal(pair.client.cipher.len, 0);
    shake_hands(&pair, SIZE_MAX);
    say(&pair.client, &pair.server, "last", 4, SIZE_MAX);
    tls_engine_end(pair.client.eng);
    tls_engine_end(pair.client.eng);
    size_t used = 0;
    assert_int_equal(tls_engine_write(pair.client.eng, "x", 1, &used), RC_CLOSED);
    carry(&pair.client, &pair.server);
    assert_int_equal(feed(&pair.server, SIZE_MAX), RC_CLOSED);
    assert_int_equal(tls_engine_state(pair.server.eng), TLS_ENDED);
    assert_int_equal(tls_engine_feed(pair.server.eng, NULL, 0, &used, &pair.server.plain),
                     RC_CLOSED);
    /* The other direction still works. */
    say(&pair.server, &pair.client, "answer", 6, SIZE_MAX);
    tls_engine_end(pair.server.eng);
    pair_close(&pair);
}

/* Plaintext and ciphertext buffers far smaller than what goes through. */
static void full_buffers(void **state)
{
    (void)state;
    struct pair pair;
    pair_open_caps(&pair, 2000, 100);
    shake_hands(&pair, SIZE_MAX);
    uint8_t bytes[20000];
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (uint8_t)(i * 13 + i / 256);
    }
    size_t written = 0;
    size_t read = 0;
    size_t full = 0;
    while (read < sizeof(bytes)) {
        size_t used = 0;
        int rc = tls_engine_write(pair.client.eng, bytes + written, sizeof(bytes) - written, &used);
        assert_true(rc == RC_OK || rc == RC_FULL);
        written += used;
        carry(&pair.client, &pair.server);
        do {
            used = 0;
            rc = tls_engine_feed(pair.server.eng, (const uint8_t *)pair.server.inbox.data,
                                 pair.server.inbox.len, &used, &pair.server.plain);
            assert_true(rc == RC_OK || rc == RC_FULL);
            buf_drop(&pair.server.inbox, used);
            assert_true(pair.server.plain.len <= 100);
            assert_memory_equal(pair.server.plain.data, bytes + read, pair.server.plain.len);
            read += pair.server.plain.len;
            buf_reset(&pair.server.plain);
            full += rc == RC_FULL;
        } while (rc == RC_FULL);
    }
    assert_int_equal(written, sizeof(bytes));
    assert_true(full > 50);
    pair_close(&pair);
}

/* A flight that does not fit is resumed when the output was drained. */
static void full_during_handshake(void **state)
{
    (void)state;
    struct pair pair;
    pair_open_caps(&pair, 64, PLAIN_CAP);
    int rc = tls_engine_start(pair.client.eng);
    size_t used = 0;
    unsigned full = 0;
    for (int i = 0; i < 200 && (tls_engine_state(pair.server.eng) != TLS_OPEN ||
                                tls_engine_state(pair.client.eng) != TLS_OPEN);
         i++) {
        struct end *from = i % 2 ? &pair.server : &pair.client;
        struct end *to = i % 2 ? &pair.client : &pair.server;
        carry(from, to);
        rc = tls_engine_feed(to->eng, (const uint8_t *)to->inbox.data, to->inbox.len, &used,
                             &to->plain);
        assert_true(rc == RC_OK || rc == RC_FULL);
        full += rc == RC_FULL;
        buf_drop(&to->inbox, used);
    }
    assert_true(full > 0);
    assert_int_equal(tls_engine_state(pair.client.eng), TLS_OPEN);
    assert_int_equal(tls_engine_state(pair.server.eng), TLS_OPEN);
    pair_close(&pair);
}

/* Both see a failure, the client learns it by an alert, and nothing is legal after it. */
static void expect_refusal(struct pair *pair)
{
    assert_int_equal(tls_engine_start(pair->client.eng), RC_OK);
    carry(&pair->client, &pair->server);
    assert_int_equal(feed(&pair->server, SIZE_MAX), RC_PEER);
    assert_int_equal(tls_engine_state(pair->server.eng), TLS_FAILED);
    assert_true(strlen(tls_engine_error(pair->server.eng)) > 0);
    assert_int_equal(tls_engine_peer_alert(pair->server.eng), -1);
    carry(&pair->server, &pair->client);
    assert_int_equal(feed(&pair->client, SIZE_MAX), RC_PEER);
    assert_true(tls_engine_peer_alert(pair->client.eng) >= 0);
    assert_non_null(strstr(tls_engine_error(pair->client.eng), "alert"));
    size_t used = 0;
    assert_int_equal(
        tls_engine_feed(pair->client.eng, (const uint8_t *)"x", 1, &used, &pair->client.plain),
        RC_PEER);
    assert_int_equal(tls_engine_write(pair->client.eng, "x", 1, &used), RC_CLOSED);
    assert_int_equal(pair->server.plain.len + pair->client.plain.len, 0);
}

static void wrong_key(void **state)
{
    (void)state;
    struct pair pair;
    pair_open(&pair);
    pair.server.key[31] ^= 1;
    expect_refusal(&pair);
    assert_int_not_equal(tls_engine_peer_alert(pair.client.eng), TLS_ALERT_ACCESS_DENIED);
    pair_close(&pair);
}

static void unknown_identity(void **state)
{
    (void)state;
    struct pair pair;
    pair_open(&pair);
    pair.server.unknown = true;
    expect_refusal(&pair);
    assert_int_equal(tls_engine_peer_alert(pair.client.eng), TLS_ALERT_ACCESS_DENIED);
    assert_true(pair.server.asked > 0);
    pair_close(&pair);
}

/* A server with a certificate and without the key is refused by the client. */
static void certificate_instead_of_key(void **state)
{
    (void)state;
    struct pair pair;
    pair_open(&pair);
    EVP_PKEY *pkey = EVP_EC_gen("P-256");
    X509 *cert = X509_new();
    assert_non_null(pkey);
    X509_gmtime_adj(X509_getm_notBefore(cert), -60);
    X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
    X509_set_pubkey(cert, pkey);
    assert_true(X509_sign(cert, pkey, EVP_sha256()) > 0);
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    assert_int_equal(SSL_CTX_use_certificate(ctx, cert), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey(ctx, pkey), 1);
    SSL *server = SSL_new(ctx);
    BIO *in = BIO_new(BIO_s_mem());
    BIO *out = BIO_new(BIO_s_mem());
    SSL_set_bio(server, in, out);
    SSL_set_accept_state(server);

    assert_int_equal(tls_engine_start(pair.client.eng), RC_OK);
    assert_int_equal(BIO_write(in, pair.client.cipher.data, (int)pair.client.cipher.len),
                     (int)pair.client.cipher.len);
    (void)SSL_do_handshake(server);
    char *flight = NULL;
    long len = BIO_get_mem_data(out, &flight);
    assert_true(len > 0);
    assert_int_equal(buf_put(&pair.client.inbox, flight, (size_t)len), RC_OK);
    assert_int_equal(feed(&pair.client, SIZE_MAX), RC_PEER);
    assert_int_equal(tls_engine_state(pair.client.eng), TLS_FAILED);
    SSL_free(server);
    SSL_CTX_free(ctx);
    X509_free(cert);
    EVP_PKEY_free(pkey);
    pair_close(&pair);
}

static void garbage(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 1);
    for (int round = 0; round < 200; round++) {
        struct pair pair;
        pair_open(&pair);
        uint8_t bytes[600];
        for (size_t i = 0; i < sizeof(bytes); i++) {
            bytes[i] = (uint8_t)rng_next(&rng);
        }
        if (round % 2) { /* a plausible record header first */
            memcpy(bytes, "\x16\x03\x01\x01\x00\x01", 6);
        }
        size_t used = 0;
        struct end *end = round % 3 ? &pair.server : &pair.client;
        assert_int_equal(tls_engine_start(end->eng), RC_OK);
        int rc = tls_engine_feed(end->eng, bytes, sizeof(bytes), &used, &end->plain);
        assert_true(rc == RC_PEER || rc == RC_OK);
        assert_int_not_equal(tls_engine_state(end->eng), TLS_OPEN);
        pair_close(&pair);
    }
}

/* A flipped bit anywhere in the client's data record ends the connection without plaintext. */
static void tampered_record(void **state)
{
    (void)state;
    for (size_t at = 0; at < 5 + 4 + 17; at++) {
        struct pair pair;
        pair_open(&pair);
        shake_hands(&pair, SIZE_MAX);
        size_t used = 0;
        assert_int_equal(tls_engine_write(pair.client.eng, "text", 4, &used), RC_OK);
        assert_int_equal(pair.client.cipher.len, 5 + 4 + 17);
        pair.client.cipher.data[at] ^= 0x01;
        carry(&pair.client, &pair.server);
        int rc = feed(&pair.server, SIZE_MAX);
        /* A longer length waits for more; the legacy version bytes are authenticated too. */
        assert_true(rc == RC_PEER || (rc == RC_OK && (at == 3 || at == 4)));
        assert_int_equal(pair.server.plain.len, 0);
        pair_close(&pair);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_and_split),
        cmocka_unit_test(orderly_end),
        cmocka_unit_test(full_buffers),
        cmocka_unit_test(full_during_handshake),
        cmocka_unit_test(wrong_key),
        cmocka_unit_test(unknown_identity),
        cmocka_unit_test(certificate_instead_of_key),
        cmocka_unit_test(garbage),
        cmocka_unit_test(tampered_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
