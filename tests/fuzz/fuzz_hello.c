/* unit: node_tls */
/*
 * ClientHellos: less of a whole one is never enough and never wrong, what is read lies within what
 * is there, and a name that is taken is a host name.
 */
#include "node/base/check.h"
#include "node/tls/tls_hello.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tls_hello hello, less;
    enum tls_hello_result result = tls_hello_read(data, size, &hello);
    ASSERT(result <= TLS_HELLO_TOO_BIG);
    if (result != TLS_HELLO_OK) {
        return 0;
    }
    ASSERT(hello.wire_len <= size && hello.wire_len > 9);
    ASSERT(strlen(hello.server_name) <= TLS_HELLO_NAME_MAX);
    ASSERT(strspn(hello.server_name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") ==
           strlen(hello.server_name));
    for (size_t i = 0; i < hello.wire_len; i += 1 + hello.wire_len / 64) {
        ASSERT(tls_hello_read(data, i, &less) == TLS_HELLO_MORE);
    }
    return 0;
}
