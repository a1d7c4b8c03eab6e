/*
 * Fixed columns of lower-case hex; see channel_psk.h.
 */
#include "gossip/net/channel_psk.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void psk_identity_format(const struct psk_identity *identity, char out[PSK_IDENTITY_LEN + 1])
{
    (void)snprintf(out, PSK_IDENTITY_LEN + 1, "skein-1 %08" PRIx32 " %016" PRIx64 " %016" PRIx64,
                   identity->key_id, identity->client, identity->server); /* fits by size */
}

static bool parse_hex(const uint8_t *text, size_t digits, uint64_t *ret)
{
    uint64_t value = 0;
    for (size_t i = 0; i < digits; i++) {
        uint8_t c = text[i];
        if (c >= '0' && c <= '9') {
            value = value << 4 | (uint64_t)(c - '0');
        } else if (c >= 'a' && c <= 'f') {
            value = value << 4 | (uint64_t)(c - 'a' + 10);
        } else {
            return false;
        }
    }
    *ret = value;
    return true;
}

int psk_identity_parse(const uint8_t *text, size_t len, struct psk_identity *ret)
{
    uint64_t key_id = 0;
    struct psk_identity identity = {0};
    if (len != PSK_IDENTITY_LEN || memcmp(text, "skein-1 ", 8) != 0 || text[16] != ' ' ||
        text[33] != ' ' || !parse_hex(text + 8, 8, &key_id) ||
        !parse_hex(text + 17, 16, &identity.client) ||
        !parse_hex(text + 34, 16, &identity.server) || identity.client == 0 ||
        identity.server == 0) {
        return RC_INVALID;
    }
    identity.key_id = (uint32_t)key_id;
    *ret = identity;
    return RC_OK;
}
