/*
 * tls_hello: real hellos of OpenSSL in whole, in records of any size and cut anywhere, and what is
 * none. covers: tls_hello.c
 */
#include "tests/support/unit.h"

#include "node/base/mem.h"
#include "node/tls/tls_hello.h"

#include <openssl/ssl.h>

/* As a client would begin; *ret_len bytes in one record. To be freed with mem_free. */
static uint8_t *make_hello(const char *name, const char *alpn, size_t padding, size_t *ret_len)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    SSL *ssl = SSL_new(ctx);
    BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
    SSL_set_bio(ssl, in, out);
    SSL_set_connect_state(ssl);
    if (name != NULL) {
        assert_int_equal(SSL_set_tlsext_host_name(ssl, name), 1);
    }
    if (alpn != NULL) {
        assert_int_equal(SSL_set_alpn_protos(ssl, (const uint8_t *)alpn, (unsigned)strlen(alpn)),
                         0);
    }
    (void)SSL_do_handshake(ssl); /* wants to read */
    char *bytes = NULL;
    size_t len = (size_t)BIO_get_mem_data(out, &bytes);
    /* What post-quantum key shares are: one more extension, of any size. */
    uint8_t *hello = mem_new(len + padding + 4);
    memcpy(hello, bytes, len);
    if (padding != 0) {
        size_t at = 5 + 4 + 2 + 32;
        at += 1u + hello[at];
        at += 2u + ((size_t)hello[at] << 8 | hello[at + 1]);
        at += 1u + hello[at];
        size_t all = ((size_t)hello[at] << 8 | hello[at + 1]) + padding + 4;
        hello[at] = (uint8_t)(all >> 8);
        hello[at + 1] = (uint8_t)all;
        const uint8_t head[] = {0xfa, 0xfa, (uint8_t)(padding >> 8), (uint8_t)padding};
        memcpy(hello + len, head, sizeof(head));
        len += padding + 4;
        size_t record = len - 5, message = len - 9;
        hello[3] = (uint8_t)(record >> 8);
        hello[4] = (uint8_t)record;
        hello[6] = (uint8_t)(message >> 16);
        hello[7] = (uint8_t)(message >> 8);
        hello[8] = (uint8_t)message;
    }
    SSL_free(ssl);
    SSL_CTX_free(ctx);
    *ret_len = len;
    return hello;
}

/* The same message in records of `size` bytes. */
static uint8_t *in_records(const uint8_t *hello, size_t len, size_t size, size_t *ret_len)
{
    uint8_t *out = mem_new(len + (len / size + 1) * 5);
    size_t at = 0;
    for (size_t off = 5; off < len; off += size) {
        size_t part = MIN(size, len - off);
        const uint8_t head[] = {22, 3, 1, (uint8_t)(part >> 8), (uint8_t)part};
        memcpy(out + at, head, sizeof(head));
        memcpy(out + at + 5, hello + off, part);
        at += 5 + part;
    }
    *ret_len = at;
    return out;
}

static void test_whole(void **state)
{
    (void)state;
    size_t len;
    struct tls_hello seen;
    uint8_t *hello = make_hello("Shop.Example.COM.", "\x02h2\x08http/1.1", 0, &len);
    assert_int_equal(tls_hello_read(hello, len, &seen), TLS_HELLO_OK);
    assert_string_equal(seen.server_name, "shop.example.com");
    assert_int_equal(seen.wire_len, len);
    assert_int_equal(seen.max_version, 0x0304);
    assert_true(seen.has_alpn && seen.offers_h2 && seen.offers_http11 && !seen.bad_name);
    mem_free(hello);

    hello = make_hello(NULL, NULL, 0, &len);
    assert_int_equal(tls_hello_read(hello, len, &seen), TLS_HELLO_OK);
    assert_string_equal(seen.server_name, "");
    assert_true(!seen.has_alpn && seen.offers_http11 && !seen.offers_h2);
    mem_free(hello);

    /* Of a client that knows TLS 1.1 at most. */
    static const uint8_t old[] = {22, 3,  1,  0,  45, 1,  0,  0,  41, 3,  2,  1,  2,
                                  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                  16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28,
                                  29, 30, 31, 32, 0,  0,  2,  0,  47, 1,  0};
    assert_int_equal(tls_hello_read(old, sizeof(old), &seen), TLS_HELLO_OK);
    assert_int_equal(seen.max_version, 0x0302);

    static const char *const bad[] = {"127.0.0.1", "a..b", ".a", "a b", "a/b", "\xc3\xa4.test"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        hello = make_hello(bad[i], NULL, 0, &len);
        assert_int_equal(tls_hello_read(hello, len, &seen), TLS_HELLO_OK);
        assert_true(seen.bad_name);
        assert_string_equal(seen.server_name, "");
        mem_free(hello);
    }
}

static void test_cut_anywhere(void **state)
{
    (void)state;
    static const size_t paddings[] = {0, 1800, 9000};
    static const size_t sizes[] = {1, 2, 3, 5, 100, 1000, 16384};
    for (size_t i = 0; i < ARRAY_LEN(paddings); i++) {
        size_t len;
        uint8_t *hello = make_hello("a.test", NULL, paddings[i], &len);
        for (size_t j = 0; j < ARRAY_LEN(sizes); j++) {
            size_t wire;
            uint8_t *bytes = in_records(hello, len, sizes[j], &wire);
            struct tls_hello seen;
            size_t step = paddings[i] == 0 || sizes[j] > 3 ? 1 : 97;
            if (wire <= TLS_HELLO_WIRE_MAX) {
                for (size_t at = 0; at < wire; at += step) {
                    assert_int_equal(tls_hello_read(bytes, at, &seen), TLS_HELLO_MORE);
                }
                assert_int_equal(tls_hello_read(bytes, wire, &seen), TLS_HELLO_OK);
                assert_string_equal(seen.server_name, "a.test");
                assert_int_equal(seen.wire_len, wire);
            } else {
                assert_int_equal(tls_hello_read(bytes, wire, &seen), TLS_HELLO_TOO_BIG);
            }
            mem_free(bytes);
        }
        mem_free(hello);
    }
}

static void test_what_is_none(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t len;
        enum tls_hello_result result;
    } rows[] = {
        {"", 0, TLS_HELLO_MORE},
        {"GET / HTTP/1.1\r\n", 16, TLS_HELLO_HTTP},
        {"PRI * HTTP/2.0\r\n", 16, TLS_HELLO_HTTP},
        {"PROPFIN", 7, TLS_HELLO_MORE},
        {"ABCDEFGHIJKLMNOPQRST ", 21, TLS_HELLO_FOREIGN},
        {"get / HTTP/1.1", 14, TLS_HELLO_FOREIGN},
        {"SSH-2.0-x", 9, TLS_HELLO_FOREIGN},
        {"\x80\x2e\x01\x03\x01", 5, TLS_HELLO_FOREIGN}, /* SSLv2 */
        {"\x16\x02\x00", 3, TLS_HELLO_FOREIGN},
        {"\x16\x03\x01\x00\x00", 5, TLS_HELLO_BROKEN},
        {"\x16\x03\x01\x40\x01", 5, TLS_HELLO_TOO_BIG},
        {"\x16\x03\x01\x00\x04\x02\x00\x00\x00", 9, TLS_HELLO_FOREIGN}, /* a ServerHello */
        {"\x16\x03\x01\x00\x04\x01\x00\x00\x00", 9, TLS_HELLO_BROKEN},  /* empty */
        {"\x16\x03\x01\x00\x04\x01\x00\x40\x01", 9, TLS_HELLO_TOO_BIG},
        {"\x16\x03\x01\x00\x01\x01\x15\x03\x01", 9, TLS_HELLO_BROKEN}, /* another type */
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct tls_hello seen;
        assert_int_equal(tls_hello_read((const uint8_t *)rows[i].bytes, rows[i].len, &seen),
                         rows[i].result);
    }
}

/* Every byte that is changed, and every length that lies, is no crash and no read past the end
 * (the memory is exactly as long as the hello). */
static void test_damage(void **state)
{
    (void)state;
    size_t len;
    uint8_t *hello = make_hello("a.test", "\x08http/1.1", 0, &len);
    for (size_t i = 0; i < len; i++) {
        static const uint8_t values[] = {0x00, 0x01, 0x7f, 0xff};
        for (size_t j = 0; j < ARRAY_LEN(values); j++) {
            uint8_t *copy = mem_dup(hello, len);
            struct tls_hello seen;
            copy[i] = values[j];
            enum tls_hello_result result = tls_hello_read(copy, len, &seen);
            assert_true(result <= TLS_HELLO_TOO_BIG);
            mem_free(copy);
        }
    }
    mem_free(hello);
}

static void test_alerts(void **state)
{
    (void)state;
    uint8_t record[TLS_ALERT_RECORD_LEN];
    tls_alert_record(112, record);
    assert_memory_equal(record, "\x15\x03\x03\x00\x02\x02\x70", sizeof(record));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),        cmocka_unit_test(test_cut_anywhere),
        cmocka_unit_test(test_what_is_none), cmocka_unit_test(test_damage),
        cmocka_unit_test(test_alerts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
