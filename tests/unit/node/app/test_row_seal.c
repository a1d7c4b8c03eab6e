/*
 * Sealed values: opened by every key of the ring, for their own row alone.
 */
#include "node/app/row_seal.h"

#include "tests/support/unit.h"

enum { LEN = 11 };
static const uint8_t plain[LEN] = "top secret";
static const struct seal_row row = {.kind = 8, .id = "shop/web", .id_len = 8};

static struct row_seal *seal_of(uint8_t first, uint8_t second)
{
    struct key_ring ring = {.count = second != 0 ? 2 : 1};
    struct err_info err;
    struct row_seal *seal = NULL;
    memset(ring.keys[0], first, KEY_BYTES);
    memset(ring.keys[1], second, KEY_BYTES);
    assert_int_equal(row_seal_new(&ring, &seal, &err), RC_OK);
    return seal;
}

static int opens(struct row_seal *seal, const struct seal_row *of, const uint8_t *sealed,
                 size_t len)
{
    uint8_t out[256] = {0};
    struct err_info err = {0};
    int rc = row_seal_open(seal, of, sealed, len, out, &err);
    if (rc == RC_OK) {
        assert_memory_equal(out, plain, LEN);
    } else {
        assert_string_not_equal(err.text, "");
    }
    return rc;
}

static void test_rows(void **state)
{
    (void)state;
    uint8_t sealed[LEN + SEAL_OVERHEAD];
    uint8_t again[LEN + SEAL_OVERHEAD];
    struct row_seal *seal = seal_of(1, 0);
    row_seal_close(seal, &row, plain, LEN, sealed);
    row_seal_close(seal, &row, plain, LEN, again);
    assert_memory_not_equal(sealed, again, sizeof(sealed));
    assert_null(memmem(sealed, sizeof(sealed), "secret", 6));
    assert_int_equal(opens(seal, &row, sealed, sizeof(sealed)), RC_OK);
    const struct seal_row other_id = {.kind = 8, .id = "shop/wec", .id_len = 8};
    const struct seal_row other_kind = {.kind = 11, .id = "shop/web", .id_len = 8};
    assert_int_equal(opens(seal, &other_id, sealed, sizeof(sealed)), RC_AUTH);
    assert_int_equal(opens(seal, &other_kind, sealed, sizeof(sealed)), RC_AUTH);
    for (size_t len = 0; len < sizeof(sealed); len++) {
        assert_int_not_equal(opens(seal, &row, sealed, len), RC_OK);
    }
    for (size_t i = 0; i < sizeof(sealed); i++) {
        sealed[i] ^= 0x20;
        assert_int_not_equal(opens(seal, &row, sealed, sizeof(sealed)), RC_OK);
        sealed[i] ^= 0x20;
    }
    row_seal_free(seal);
    row_seal_free(NULL);
}

static void test_rotation(void **state)
{
    (void)state;
    uint8_t sealed[LEN + SEAL_OVERHEAD];
    struct row_seal *before = seal_of(1, 0);
    struct row_seal *during = seal_of(2, 1);
    struct row_seal *after = seal_of(2, 0);
    row_seal_close(before, &row, plain, LEN, sealed);
    assert_int_equal(opens(during, &row, sealed, sizeof(sealed)), RC_OK);
    assert_int_equal(opens(after, &row, sealed, sizeof(sealed)), RC_AUTH);
    row_seal_close(during, &row, plain, LEN, sealed);
    assert_int_equal(opens(after, &row, sealed, sizeof(sealed)), RC_OK);
    assert_int_equal(opens(before, &row, sealed, sizeof(sealed)), RC_AUTH);
    row_seal_free(before);
    row_seal_free(during);
    row_seal_free(after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_rotation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
