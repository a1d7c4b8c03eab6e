/*
 * The error queue: the oldest reason, in words, and an empty queue after it.
 */
#include "node/tls/tls_err.h"
#include "tests/support/unit.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

static void oldest_reason(void **state)
{
    (void)state;
    struct err_info err = {{0}};
    assert_int_equal(OPENSSL_init_ssl(OPENSSL_INIT_LOAD_SSL_STRINGS, NULL), 1);
    tls_err_clear();
    ERR_raise(ERR_LIB_SSL, SSL_R_NO_CIPHER_MATCH);
    ERR_raise(ERR_LIB_SSL, SSL_R_BAD_LENGTH);
    assert_int_equal(tls_err_take(&err, RC_PEER, "handshake"), RC_PEER);
    assert_string_equal(err.text, "handshake: no cipher match");
    assert_int_equal(ERR_peek_error(), 0);
    assert_int_equal(tls_err_take(&err, RC_IO, "handshake"), RC_IO);
    assert_string_equal(err.text, "handshake: no reason given");
    ERR_raise(ERR_LIB_SSL, SSL_R_BAD_LENGTH);
    tls_err_clear();
    assert_int_equal(ERR_peek_error(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(oldest_reason)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
