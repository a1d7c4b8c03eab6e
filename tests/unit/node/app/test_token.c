/*
 * Tokens of endpoints: the same for the same key, different for everything else, and what a change
 * of keys leaves valid.
 */
#include "node/app/token.h"

#include "tests/support/unit.h"

static struct proxy_endpoint made(const struct token_keys *keys, const char *backend,
                                  const char *addr)
{
    struct proxy_endpoint endpoint = {.weight = 1};
    assert_int_equal(addr_parse(addr, &endpoint.addr, NULL), RC_OK);
    token_make(keys, backend, &endpoint);
    return endpoint;
}

static void test_tokens(void **state)
{
    (void)state;
    static const uint8_t none[PROXY_TOKEN_BYTES];
    struct key_ring ring = {.count = 1};
    struct err_info err;
    memset(ring.keys[0], 1, KEY_BYTES);
    memset(ring.keys[1], 2, KEY_BYTES);
    struct token_keys keys, same, changed, none_keys = {0};
    assert_int_equal(token_keys_init(&keys, &ring, &err), RC_OK);
    assert_int_equal(token_keys_init(&same, &ring, &err), RC_OK);
    const struct proxy_endpoint one = made(&keys, "n/b", "10.0.0.1:80");
    assert_memory_equal(one.token, made(&same, "n/b", "10.0.0.1:80").token, sizeof(none));
    assert_memory_not_equal(one.token, made(&keys, "n/b", "10.0.0.1:81").token, sizeof(none));
    assert_memory_not_equal(one.token, made(&keys, "n/c", "10.0.0.1:80").token, sizeof(none));
    assert_memory_not_equal(one.token, none, sizeof(none));
    assert_memory_equal(one.old_token, none, sizeof(none));

    /* A new key in front: its tokens are issued, those of the old one are known. */
    memcpy(ring.keys[1], ring.keys[0], KEY_BYTES);
    memset(ring.keys[0], 2, KEY_BYTES);
    ring.count = 2;
    assert_int_equal(token_keys_init(&changed, &ring, &err), RC_OK);
    const struct proxy_endpoint now = made(&changed, "n/b", "10.0.0.1:80");
    assert_memory_not_equal(now.token, one.token, sizeof(none));
    assert_memory_equal(now.old_token, one.token, sizeof(none));
    assert_memory_equal(made(&none_keys, "n/b", "10.0.0.1:80").token, none, sizeof(none));
    token_keys_deinit(&keys);
    token_keys_deinit(&same);
    token_keys_deinit(&changed);
    token_keys_deinit(&none_keys);
}

static void test_cookie_names(void **state)
{
    (void)state;
    char one[TOKEN_COOKIE_NAME_LEN + 1];
    char two[TOKEN_COOKIE_NAME_LEN + 1];
    token_cookie_name("shop/checkout", one);
    token_cookie_name("shop/checkout2", two);
    assert_int_equal(strspn(one, "0123456789abcdef"), TOKEN_COOKIE_NAME_LEN);
    assert_int_equal(strlen(one), TOKEN_COOKIE_NAME_LEN);
    assert_string_not_equal(one, two);
    token_cookie_name("shop/checkout", two);
    assert_string_equal(one, two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_cookie_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
