/*
 * Tokens of endpoints; see token.h.
 */
#include "node/app/token.h"

#include "node/base/hash.h"

#include <stdio.h>
#include <string.h>

enum { INPUT_MAX = 1024 };

int token_keys_init(struct token_keys *keys, const struct key_ring *ring, struct err_info *err)
{
    static const char label[] = "skein sticky cookie";
    *keys = (struct token_keys){0};
    int rc = crypto_new(&keys->crypto, err);
    if (rc != RC_OK) {
        keys->crypto = NULL;
        return rc;
    }
    keys->count = MIN(ring->count, ARRAY_LEN(keys->keys));
    for (size_t i = 0; i < keys->count; i++) {
        crypto_hkdf(keys->crypto, ring->keys[i], KEY_BYTES, label, sizeof(label) - 1, keys->keys[i],
                    KEY_BYTES);
    }
    return RC_OK;
}

void token_keys_deinit(struct token_keys *keys)
{
    crypto_wipe(keys->keys, sizeof(keys->keys));
    crypto_free(keys->crypto);
    *keys = (struct token_keys){0};
}

/* The id cannot hold a NUL, so no two pairs have the same input. */
void token_make(const struct token_keys *keys, const char *backend, struct proxy_endpoint *endpoint)
{
    if (keys->count == 0) {
        return;
    }
    char input[INPUT_MAX];
    char addr[ADDR_TEXT_MAX];
    int len =
        snprintf(input, sizeof(input), "%s%c%s", backend, '\0', addr_format(&endpoint->addr, addr));
    size_t used = MIN((size_t)len, sizeof(input) - 1);
    uint8_t *const tokens[] = {endpoint->token, endpoint->old_token};
    for (size_t i = 0; i < keys->count; i++) {
        crypto_hkdf(keys->crypto, keys->keys[i], KEY_BYTES, input, used, tokens[i],
                    PROXY_TOKEN_BYTES);
    }
}

void token_cookie_name(const char *route, char ret_name[TOKEN_COOKIE_NAME_LEN + 1])
{
    uint64_t hash[2];
    hash_sip128(UINT64_C(0x736b65696e), UINT64_C(0x636f6f6b6965), route, strlen(route), hash);
    (void)snprintf(ret_name, TOKEN_COOKIE_NAME_LEN + 1, "%016llx%016llx",
                   (unsigned long long)hash[0], (unsigned long long)hash[1]);
}
