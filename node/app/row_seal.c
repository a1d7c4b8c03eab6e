/*
 * Sealed values of rows; see the header.
 */
#include "node/app/row_seal.h"

#include "node/base/check.h"
#include "node/base/mem.h"
#include "node/base/rng.h"

#include <string.h>

enum {
    SEAL_VERSION = 1,
    AAD_MAX = 2 + SEAL_ROW_ID_MAX,
};

struct row_seal {
    struct crypto *crypto;
    size_t count;
    struct seal_key {
        uint8_t id[SEAL_ID_BYTES];
        struct aead *aead;
    } keys[KEY_FILE_KEYS_MAX];
};

int row_seal_new(const struct key_ring *keys, struct row_seal **ret_seal, struct err_info *err)
{
    static const char label[] = "skein secret rows";
    struct crypto *crypto;
    int rc = crypto_new(&crypto, err);
    if (rc != RC_OK) {
        return rc;
    }
    struct row_seal *seal = mem_new(sizeof(*seal));
    seal->crypto = crypto;
    seal->count = keys->count;
    for (size_t i = 0; i < keys->count; i++) {
        uint8_t key[AEAD_KEY_BYTES];
        uint8_t digest[SHA256_BYTES];
        crypto_hkdf(crypto, keys->keys[i], KEY_BYTES, label, sizeof(label) - 1, key, sizeof(key));
        crypto_sha256(key, sizeof(key), digest);
        memcpy(seal->keys[i].id, digest, SEAL_ID_BYTES);
        seal->keys[i].aead = aead_new(crypto, key);
        crypto_wipe(key, sizeof(key));
    }
    *ret_seal = seal;
    return RC_OK;
}

void row_seal_free(struct row_seal *seal)
{
    if (seal == NULL) {
        return;
    }
    for (size_t i = 0; i < seal->count; i++) {
        aead_free(seal->keys[i].aead);
    }
    crypto_free(seal->crypto);
    mem_free(seal);
}

/* aad: kind in network byte order, then the id. */
static void frame_of(const struct seal_row *row, const uint8_t *nonce, uint8_t aad[AAD_MAX],
                     struct aead_frame *ret_frame)
{
    ASSERT(row->id_len <= SEAL_ROW_ID_MAX);
    aad[0] = (uint8_t)(row->kind >> 8);
    aad[1] = (uint8_t)row->kind;
    memcpy(aad + 2, row->id, row->id_len);
    *ret_frame = (struct aead_frame){.aad = aad, .aad_len = 2 + row->id_len};
    memcpy(ret_frame->nonce, nonce, AEAD_NONCE_BYTES);
}

void row_seal_close(struct row_seal *seal, const struct seal_row *row, const uint8_t *plain,
                    size_t len, uint8_t *out)
{
    struct aead_frame frame;
    uint8_t aad[AAD_MAX];
    uint8_t *nonce = out + 1 + SEAL_ID_BYTES;
    out[0] = SEAL_VERSION;
    memcpy(out + 1, seal->keys[0].id, SEAL_ID_BYTES);
    rng_secret(nonce, AEAD_NONCE_BYTES);
    frame_of(row, nonce, aad, &frame);
    aead_seal(seal->keys[0].aead, &frame, plain, len, nonce + AEAD_NONCE_BYTES);
}

int row_seal_open(struct row_seal *seal, const struct seal_row *row, const uint8_t *sealed,
                  size_t len, uint8_t *out, struct err_info *err)
{
    if (len < SEAL_OVERHEAD || sealed[0] != SEAL_VERSION || row->id_len > SEAL_ROW_ID_MAX) {
        return err_set(err, RC_CORRUPT, "it is not sealed in a form that is known here");
    }
    struct aead_frame frame;
    uint8_t aad[AAD_MAX];
    const uint8_t *nonce = sealed + 1 + SEAL_ID_BYTES;
    frame_of(row, nonce, aad, &frame);
    for (size_t i = 0; i < seal->count; i++) {
        if (memcmp(seal->keys[i].id, sealed + 1, SEAL_ID_BYTES) == 0 &&
            aead_open(seal->keys[i].aead, &frame, nonce + AEAD_NONCE_BYTES,
                      len - (1 + SEAL_ID_BYTES + AEAD_NONCE_BYTES), out) == RC_OK) {
            return RC_OK;
        }
    }
    return err_set(err, RC_AUTH, "no key of cluster.keyFile opens it");
}
