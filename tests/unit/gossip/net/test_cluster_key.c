/*
 * Derived keys: equal for equal inputs, different for everything else.
 */
#include "gossip/net/cluster_key.h"
#include "tests/support/unit.h"

static void derivations(void **state)
{
    (void)state;
    struct crypto *crypto = NULL;
    assert_int_equal(crypto_new(&crypto, NULL), RC_OK);
    struct key_ring ring = {.count = 2};
    key_generate(ring.keys[0]);
    key_generate(ring.keys[1]);
    struct cluster_keys keys;
    struct cluster_keys same;
    cluster_keys_init(&keys, crypto, &ring);
    cluster_keys_init(&same, crypto, &ring);
    assert_memory_equal(&keys, &same, sizeof(keys));
    assert_int_not_equal(keys.keys[0].id, keys.keys[1].id);
    assert_true(keys.keys[0].cluster_id != keys.keys[1].cluster_id);
    assert_ptr_equal(cluster_key_find(&keys, keys.keys[1].id), &keys.keys[1]);
    assert_null(cluster_key_find(&keys, keys.keys[0].id ^ keys.keys[1].id));

    uint8_t derived[7][KEY_BYTES];
    cluster_key_packet(&keys.keys[0], crypto, 1, 2, derived[0]);
    cluster_key_packet(&keys.keys[0], crypto, 2, 1, derived[1]);
    cluster_key_packet(&keys.keys[0], crypto, 1, 3, derived[2]);
    cluster_key_packet(&keys.keys[1], crypto, 1, 2, derived[3]);
    cluster_key_pair(&keys.keys[0], crypto, 1, 2, derived[4]);
    cluster_key_pair(&keys.keys[0], crypto, 2, 1, derived[5]); /* roles matter: no reflection */
    cluster_key_pair(&keys.keys[1], crypto, 1, 2, derived[6]);
    for (int i = 0; i < 7; i++) {
        for (int k = 0; k < i; k++) {
            assert_memory_not_equal(derived[i], derived[k], KEY_BYTES);
        }
    }
    cluster_keys_wipe(&keys);
    assert_int_equal(keys.count, 0);
    crypto_free(crypto);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(derivations)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
