/*
 * HKDF and AES-GCM against published vectors; tampering and in-place use.
 */
#include "node/tls/crypto.h"
#include "tests/support/unit.h"

static struct crypto *crypto;

static int set_up(void **state)
{
    (void)state;
    return crypto_new(&crypto, NULL);
}

static int tear_down(void **state)
{
    (void)state;
    crypto_free(crypto);
    crypto_free(NULL);
    return 0;
}

/* RFC 5869 A.3: no salt, no info. */
static void hkdf_vector(void **state)
{
    (void)state;
    uint8_t key[22];
    memset(key, 0x0b, sizeof(key));
    static const uint8_t expected[42] = {
        0x8d, 0xa4, 0xe7, 0x75, 0xa5, 0x63, 0xc1, 0x8f, 0x71, 0x5f, 0x80, 0x2a, 0x06, 0x3c,
        0x5a, 0x31, 0xb8, 0xa1, 0x1f, 0x5c, 0x5e, 0xe1, 0x87, 0x9e, 0xc3, 0x45, 0x4e, 0x5f,
        0x3c, 0x73, 0x8d, 0x2d, 0x9d, 0x20, 0x13, 0x95, 0xfa, 0xa4, 0xb6, 0x1a, 0x96, 0xc8};
    uint8_t out[42];
    crypto_hkdf(crypto, key, sizeof(key), "", 0, out, sizeof(out));
    assert_memory_equal(out, expected, sizeof(out));
    uint8_t other[42];
    crypto_hkdf(crypto, key, sizeof(key), "x", 1, other, sizeof(other));
    assert_memory_not_equal(out, other, sizeof(out));
}

/* The GCM specification's test case 14: zero key, nonce and block. */
static void gcm_vector(void **state)
{
    (void)state;
    static const uint8_t expected[32] = {0xce, 0xa7, 0x40, 0x3d, 0x4d, 0x60, 0x6b, 0x6e,
                                         0x07, 0x4e, 0xc5, 0xd3, 0xba, 0xf3, 0x9d, 0x18,
                                         0xd0, 0xd1, 0xc8, 0xa7, 0x99, 0x99, 0x6b, 0xf0,
                                         0x26, 0x5b, 0x98, 0xb5, 0xd4, 0x8a, 0xb9, 0x19};
    uint8_t key[AEAD_KEY_BYTES] = {0};
    struct aead *aead = aead_new(crypto, key);
    struct aead_frame frame = {0};
    uint8_t bytes[32] = {0};
    aead_seal(aead, &frame, bytes, 16, bytes); /* in place */
    assert_memory_equal(bytes, expected, sizeof(bytes));
    assert_int_equal(aead_open(aead, &frame, bytes, 32, bytes), RC_OK);
    uint8_t zero[16] = {0};
    assert_memory_equal(bytes, zero, 16);
    aead_free(aead);
    aead_free(NULL);
}

static void both_directions_alternate(void **state)
{
    (void)state;
    uint8_t key[AEAD_KEY_BYTES];
    memset(key, 7, sizeof(key));
    struct aead *a = aead_new(crypto, key);
    struct aead *b = aead_new(crypto, key);
    for (unsigned i = 0; i < 50; i++) {
        struct aead_frame frame = {.aad = "clear", .aad_len = 5};
        frame.nonce[0] = (uint8_t)i;
        uint8_t sealed[64 + AEAD_TAG_BYTES];
        uint8_t plain[64];
        uint8_t out[64];
        memset(plain, (int)i, sizeof(plain));
        aead_seal(i % 2 ? a : b, &frame, plain, i, sealed);
        assert_int_equal(aead_open(i % 3 ? a : b, &frame, sealed, i + AEAD_TAG_BYTES, out), RC_OK);
        assert_memory_equal(out, plain, i);
    }
    aead_free(a);
    aead_free(b);
}

static void tampered(void **state)
{
    (void)state;
    uint8_t key[AEAD_KEY_BYTES] = {1};
    struct aead *aead = aead_new(crypto, key);
    struct aead_frame frame = {.aad = "clear", .aad_len = 5};
    uint8_t sealed[20 + AEAD_TAG_BYTES];
    uint8_t out[20];
    aead_seal(aead, &frame, (const uint8_t *)"twenty bytes of text", 20, sealed);
    for (size_t i = 0; i < sizeof(sealed); i++) {
        sealed[i] ^= 0x40;
        assert_int_equal(aead_open(aead, &frame, sealed, sizeof(sealed), out), RC_AUTH);
        sealed[i] ^= 0x40;
    }
    for (size_t len = 0; len < sizeof(sealed); len++) {
        assert_int_equal(aead_open(aead, &frame, sealed, len, out), RC_AUTH);
    }
    struct aead_frame other = frame;
    other.aad = "Clear";
    assert_int_equal(aead_open(aead, &other, sealed, sizeof(sealed), out), RC_AUTH);
    other = frame;
    other.nonce[11] = 1;
    assert_int_equal(aead_open(aead, &other, sealed, sizeof(sealed), out), RC_AUTH);
    assert_int_equal(aead_open(aead, &frame, sealed, sizeof(sealed), out), RC_OK);
    assert_memory_equal(out, "twenty bytes of text", 20);
    aead_free(aead);
}

/* FIPS 180-2 B.1. */
static void sha256_vector(void **state)
{
    (void)state;
    static const uint8_t expected[SHA256_BYTES] = {0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea,
                                                   0x41, 0x41, 0x40, 0xde, 0x5d, 0xae, 0x22, 0x23,
                                                   0xb0, 0x03, 0x61, 0xa3, 0x96, 0x17, 0x7a, 0x9c,
                                                   0xb4, 0x10, 0xff, 0x61, 0xf2, 0x00, 0x15, 0xad};
    uint8_t out[SHA256_BYTES];
    crypto_sha256("abc", 3, out);
    assert_memory_equal(out, expected, sizeof(out));
    assert_true(crypto_equal(out, expected, sizeof(out)));
    out[31] ^= 1;
    assert_false(crypto_equal(out, expected, sizeof(out)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hkdf_vector),
        cmocka_unit_test(gcm_vector),
        cmocka_unit_test(both_directions_alternate),
        cmocka_unit_test(tampered),
        cmocka_unit_test(sha256_vector),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
