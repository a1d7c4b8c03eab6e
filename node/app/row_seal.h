/*
 * What keeps the values of secret rows secret at rest and on their way: AES-256-GCM under a key
 * that is derived from the cluster's.
 *
 * Sealed: version (1) | key id (4) | nonce (12, random) | ciphertext | tag (16), bound to kind and
 * id of the row. The first of the cluster's keys seals, all of them open, so that a change of the
 * key leaves what was sealed before readable for as long as the old one is listed. The key id is a
 * prefix of a digest of the derived key: it says which one to try. Random nonces bear 2^32 writes
 * under one key (NIST SP 800-38D 8.3). Thread: one.
 */
#ifndef SKEIN_NODE_APP_ROW_SEAL_H
#define SKEIN_NODE_APP_ROW_SEAL_H

#include "node/tls/crypto.h"
#include "node/tls/key_file.h"

enum {
    SEAL_ID_BYTES = 4,
    SEAL_OVERHEAD = 1 + SEAL_ID_BYTES + AEAD_NONCE_BYTES + AEAD_TAG_BYTES,
    SEAL_ROW_ID_MAX = 1024, /* bytes of a row's id */
};

struct row_seal;

/* Whose value it is. */
struct seal_row {
    uint16_t kind;
    const char *id; /* borrowed for the call; not NUL-terminated */
    size_t id_len;  /* at most SEAL_ROW_ID_MAX */
};

/* RC_UNSUPPORTED: the installed OpenSSL lacks an algorithm. */
MUST_CHECK int row_seal_new(const struct key_ring *keys, struct row_seal **ret_seal,
                            struct err_info *err);
void row_seal_free(struct row_seal *seal); /* NULL is accepted */

/* out: len + SEAL_OVERHEAD bytes, apart from plain. */
void row_seal_close(struct row_seal *seal, const struct seal_row *row, const uint8_t *plain,
                    size_t len, uint8_t *out);

/* out: len - SEAL_OVERHEAD bytes, at least 1, apart from sealed. RC_CORRUPT: not of this form.
 * RC_AUTH: no key of the cluster opens it, or it is of another row. */
MUST_CHECK int row_seal_open(struct row_seal *seal, const struct seal_row *row,
                             const uint8_t *sealed, size_t len, uint8_t *out, struct err_info *err);

#endif
