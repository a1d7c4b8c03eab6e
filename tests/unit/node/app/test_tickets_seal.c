/*
 * tickets_seal: opens under every key of the cluster, for its own row, untouched, and not else.
 */
#include "tests/support/unit.h"

#include "node/app/tickets_seal.h"

static const char id[] = "00112233445566778899aabbccddeeff";

static struct tickets_seal *seal_of(uint8_t first, uint8_t second)
{
    struct key_ring keys = {.count = second != 0 ? 2 : 1};
    struct err_info err = {0};
    struct tickets_seal *seal;
    memset(keys.keys[0], first, KEY_BYTES);
    memset(keys.keys[1], second, KEY_BYTES);
    assert_int_equal(tickets_seal_new(&keys, &seal, &err), RC_OK);
    return seal;
}

static void test_all(void **state)
{
    (void)state;
    struct err_info err = {0};
    uint8_t form[TICKETS_FORM_BYTES], back[TICKETS_FORM_BYTES], sealed[TICKETS_SEALED_BYTES];
    struct tickets_seal *old = seal_of(1, 0);
    struct tickets_seal *both = seal_of(2, 1);
    struct tickets_seal *other = seal_of(3, 0);
    memset(form, 0x5a, sizeof(form));
    tickets_seal_close(old, id, form, sealed);
    assert_int_equal(tickets_seal_open(both, id, sealed, sizeof(sealed), back, &err), RC_OK);
    assert_memory_equal(back, form, sizeof(form));
    assert_int_equal(tickets_seal_open(other, id, sealed, sizeof(sealed), back, &err), RC_AUTH);
    char moved[sizeof(id)];
    memcpy(moved, id, sizeof(id));
    moved[5] = 'f';
    assert_int_equal(tickets_seal_open(old, moved, sealed, sizeof(sealed), back, &err), RC_AUTH);
    for (size_t i = 0; i < sizeof(sealed); i++) {
        sealed[i] ^= 1;
        assert_int_not_equal(tickets_seal_open(old, id, sealed, sizeof(sealed), back, &err), RC_OK);
        sealed[i] ^= 1;
    }
    assert_int_equal(tickets_seal_open(old, id, sealed, 0, back, &err), RC_CORRUPT);
    assert_int_equal(tickets_seal_open(old, id, sealed, sizeof(sealed) - 1, back, &err),
                     RC_CORRUPT);
    tickets_seal_free(old);
    tickets_seal_free(both);
    tickets_seal_free(other);
    tickets_seal_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
