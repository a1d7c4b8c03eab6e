/*
 * What keeps ticket keys secret at rest and on their way: AES-256-GCM under a key that is derived
 * from the cluster's.
 *
 * Sealed: version (1) | nonce (12, random) | ciphertext | tag (16); bound to the row's id. The
 * first of the cluster's keys seals, all of them open, so a change of that key leaves what was
 * sealed before it readable for as long as the old one is listed. Nonces may repeat with a chance
 * of 2^-33 after 2^32 keys made. Thread: one.
 */
#ifndef SKEIN_NODE_APP_TICKETS_SEAL_H
#define SKEIN_NODE_APP_TICKETS_SEAL_H

#include "node/app/tickets_row.h"
#include "node/tls/crypto.h"
#include "node/tls/key_file.h"

enum { TICKETS_SEALED_BYTES = 1 + AEAD_NONCE_BYTES + TICKETS_FORM_BYTES + AEAD_TAG_BYTES };

struct tickets_seal;

/* RC_UNSUPPORTED: the installed OpenSSL lacks an algorithm. */
MUST_CHECK int tickets_seal_new(const struct key_ring *keys, struct tickets_seal **ret_seal,
                                struct err_info *err);
void tickets_seal_free(struct tickets_seal *seal); /* NULL is accepted */

void tickets_seal_close(struct tickets_seal *seal, const char id[TICKETS_ID_LEN],
                        const uint8_t form[TICKETS_FORM_BYTES],
                        uint8_t ret_sealed[TICKETS_SEALED_BYTES]);

/* RC_CORRUPT: not of this form. RC_AUTH: no key of the cluster opens it. */
MUST_CHECK int tickets_seal_open(struct tickets_seal *seal, const char id[TICKETS_ID_LEN],
                                 const uint8_t *sealed, size_t len,
                                 uint8_t ret_form[TICKETS_FORM_BYTES], struct err_info *err);

#endif
