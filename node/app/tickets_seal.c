/*
 * Sealed ticket keys; see the header.
 */
#include "node/app/tickets_seal.h"

#include "node/base/mem.h"
#include "node/base/rng.h"

#include <string.h>

enum { SEAL_VERSION = 1 };

struct tickets_seal {
    struct crypto *crypto;
    size_t count;
    struct aead *aeads[KEY_FILE_KEYS_MAX];
};

int tickets_seal_new(const struct key_ring *keys, struct tickets_seal **ret_seal,
                     struct err_info *err)
{
    static const char label[] = "skein session ticket keys";
    struct crypto *crypto;
    int rc = crypto_new(&crypto, err);
    if (rc != RC_OK) {
        return rc;
    }
    struct tickets_seal *seal = mem_new(sizeof(*seal));
    seal->crypto = crypto;
    seal->count = keys->count;
    for (size_t i = 0; i < keys->count; i++) {
        uint8_t key[AEAD_KEY_BYTES];
        crypto_hkdf(crypto, keys->keys[i], KEY_BYTES, label, sizeof(label) - 1, key, sizeof(key));
        seal->aeads[i] = aead_new(crypto, key);
        crypto_wipe(key, sizeof(key));
    }
    *ret_seal = seal;
    return RC_OK;
}

void tickets_seal_free(struct tickets_seal *seal)
{
    if (seal == NULL) {
        return;
    }
    for (size_t i = 0; i < seal->count; i++) {
        aead_free(seal->aeads[i]);
    }
    crypto_free(seal->crypto);
    mem_free(seal);
}

static void frame_of(const uint8_t *nonce, const char *id, struct aead_frame *ret_frame)
{
    *ret_frame = (struct aead_frame){.aad = id, .aad_len = TICKETS_ID_LEN};
    memcpy(ret_frame->nonce, nonce, AEAD_NONCE_BYTES);
}

void tickets_seal_close(struct tickets_seal *seal, const char id[TICKETS_ID_LEN],
                        const uint8_t form[TICKETS_FORM_BYTES],
                        uint8_t ret_sealed[TICKETS_SEALED_BYTES])
{
    struct aead_frame frame;
    uint8_t *nonce = ret_sealed + 1;
    ret_sealed[0] = SEAL_VERSION;
    rng_secret(nonce, AEAD_NONCE_BYTES);
    frame_of(nonce, id, &frame);
    aead_seal(seal->aeads[0], &frame, form, TICKETS_FORM_BYTES, nonce + AEAD_NONCE_BYTES);
}

int tickets_seal_open(struct tickets_seal *seal, const char id[TICKETS_ID_LEN],
                      const uint8_t *sealed, size_t len, uint8_t ret_form[TICKETS_FORM_BYTES],
                      struct err_info *err)
{
    if (len != TICKETS_SEALED_BYTES || sealed[0] != SEAL_VERSION) {
        return err_set(err, RC_CORRUPT, "a sealed ticket key of a form that is not known");
    }
    struct aead_frame frame;
    const uint8_t *nonce = sealed + 1;
    frame_of(nonce, id, &frame);
    for (size_t i = 0; i < seal->count; i++) {
        if (aead_open(seal->aeads[i], &frame, nonce + AEAD_NONCE_BYTES,
                      TICKETS_FORM_BYTES + AEAD_TAG_BYTES, ret_form) == RC_OK) {
            return RC_OK;
        }
    }
    return err_set(err, RC_AUTH, "no key of cluster.keyFile opens it");
}
