/*
 * The error queue; see tls_err.h.
 */
#include "node/tls/tls_err.h"

#include <openssl/err.h>

void tls_err_clear(void)
{
    if (ERR_peek_error() != 0) { /* to look is cheaper, and there is seldom anything */
        ERR_clear_error();
    }
}

int tls_err_take(struct err_info *err, int rc, const char *what)
{
    unsigned long code = ERR_get_error();
    const char *reason = code != 0 ? ERR_reason_error_string(code) : NULL;
    ERR_clear_error();
    return err_set(err, rc, "%s: %s", what, reason != NULL ? reason : "no reason given");
}
