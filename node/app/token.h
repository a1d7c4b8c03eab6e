/*
 * What stands for endpoints in sticky cookies.
 *
 * A token is HMAC-SHA256 (as HKDF uses it) over the backend's id and the endpoint's address, under
 * a key derived from the cluster's, cut to 12 bytes: the same on every node, it tells nothing of
 * the address, and nobody without the key can make one. While the cluster's key is being changed,
 * tokens of the key before are known too. Thread: the control thread's.
 */
#ifndef SKEIN_NODE_APP_TOKEN_H
#define SKEIN_NODE_APP_TOKEN_H

#include "node/proxy/proxy.h"
#include "node/tls/crypto.h"
#include "node/tls/key_file.h"

/* All zero makes no tokens. Secret: end it with token_keys_deinit. */
struct token_keys {
    struct crypto *crypto;
    size_t count; /* of keys: the one in use, and the one before if there is any */
    uint8_t keys[2][KEY_BYTES];
};

/* RC_UNSUPPORTED: nothing is held. */
MUST_CHECK int token_keys_init(struct token_keys *keys, const struct key_ring *ring,
                               struct err_info *err);
void token_keys_deinit(struct token_keys *keys);

/* endpoint->token and old_token; backend is "namespace/name". */
void token_make(const struct token_keys *keys, const char *backend,
                struct proxy_endpoint *endpoint);

/* The name of a route's cookie when none is given: 32 hex digits, so that two routes of a host do
 * not write over each other's. route is "namespace/name". */
enum { TOKEN_COOKIE_NAME_LEN = 32 };
void token_cookie_name(const char *route, char ret_name[TOKEN_COOKIE_NAME_LEN + 1]);

#endif
