/*
 * Identity texts: one form, nothing else.
 */
#include "gossip/net/channel_psk.h"
#include "tests/support/unit.h"

static void round_trip(void **state)
{
    (void)state;
    struct psk_identity in = {0x0a1b2c3d, 1, UINT64_MAX};
    char text[PSK_IDENTITY_LEN + 1];
    psk_identity_format(&in, text);
    assert_string_equal(text, "skein-1 0a1b2c3d 0000000000000001 ffffffffffffffff");
    struct psk_identity out = {0};
    assert_int_equal(psk_identity_parse((uint8_t *)text, PSK_IDENTITY_LEN, &out), RC_OK);
    assert_int_equal(out.key_id, in.key_id);
    assert_true(out.client == in.client && out.server == in.server);
}

static void other_forms(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "skein-1 0a1b2c3d 0000000000000001 fffffffffffffff",
        "skein-1 0a1b2c3d 0000000000000001 fffffffffffffffff",
        "skein-2 0a1b2c3d 0000000000000001 ffffffffffffffff",
        "skein-1 0A1b2c3d 0000000000000001 ffffffffffffffff",
        "skein-1 0a1b2c3d-0000000000000001 ffffffffffffffff",
        "skein-1 0a1b2c3d 0000000000000001-ffffffffffffffff",
        "skein-1 0a1b2c3d 0000000000000000 ffffffffffffffff",
        "skein-1 0a1b2c3d 0000000000000001 0000000000000000",
        "skein-1 0a1b2c3d 000000000000000g ffffffffffffffff",
    };
    struct psk_identity out;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(psk_identity_parse((const uint8_t *)bad[i], strlen(bad[i]), &out),
                         RC_INVALID);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),
        cmocka_unit_test(other_forms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
