/*
 * What makes a Certificate acceptable, as far as texts tell it; what is in the texts is for the TLS
 * library (node/app/check_tls.c).
 *
 * A key may be missing here: it is never shown, so what was shown and comes back has none. The
 * stored one is taken while the chain stays; else that there is none is told where the pair is
 * read.
 */
#include "proto/checks.h"

#include "node/base/mem.h"

#include <string.h>

enum {
    PAIRS_MAX = 2, /* besides the first: one of each kind of key */
    OCSP_MAX = 16384,
};

/* One chain and its key, of spec or of an element of spec.also. */
struct pair {
    const char *chain;
    char **key; /* where it is kept */
};

static void check_key(struct faults *faults, const char *key)
{
    if (key == NULL) {
        return;
    }
    if (strlen(key) > PEM_MAX_BYTES) {
        fault_field(faults, "key", "is %zu bytes long; at most %d are accepted", strlen(key),
                    PEM_MAX_BYTES);
    } else if (strstr(key, "-----BEGIN ") == NULL || strstr(key, "PRIVATE KEY-----") == NULL) {
        /* Not a byte of it: it may be half a key. */
        fault_field(faults, "key", "is no PEM text of a private key");
    } else if (strstr(key, "ENCRYPTED") != NULL) {
        fault_field(faults, "key", "has a passphrase; wants the key without one");
    }
}

static void check_pair(struct faults *faults, const char *chain, const char *key, bool has_ocsp,
                       size_t ocsp_len)
{
    if (chain == NULL) {
        fault_field(faults, "chain", "is missing; wants PEM: the certificate, then those above it");
    }
    check_pem(faults, "chain", chain, "CERTIFICATE");
    check_key(faults, key);
    if (has_ocsp && (ocsp_len == 0 || ocsp_len > OCSP_MAX)) {
        fault_field(faults, "ocsp", "has %zu bytes; wants 1 to %d", ocsp_len, OCSP_MAX);
    }
}

void validate_certificate(const ProtobufCMessage *message, struct faults *faults)
{
    static const Skein__CertificateSpec empty = SKEIN__CERTIFICATE_SPEC__INIT;
    const Skein__CertificateSpec *spec = ((const Skein__Certificate *)(const void *)message)->spec;
    if (spec == NULL) {
        spec = &empty;
    }
    size_t mark = faults_enter(faults, "spec");
    check_pair(faults, spec->chain, spec->key, spec->has_ocsp, spec->ocsp.len);
    check_count(faults, "also", spec->n_also, PAIRS_MAX);
    for (size_t i = 0; i < MIN(spec->n_also, (size_t)PAIRS_MAX); i++) {
        const Skein__CertificatePair *pair = spec->also[i];
        size_t item = faults_enter_item(faults, "also", i);
        check_pair(faults, pair->chain, pair->key, pair->has_ocsp, pair->ocsp.len);
        faults_leave(faults, item);
    }
    faults_leave(faults, mark);
}

static struct pair pair_at(Skein__CertificateSpec *spec, size_t idx)
{
    if (idx == 0) {
        return (struct pair){spec->chain, &spec->key};
    }
    return (struct pair){spec->also[idx - 1]->chain, &spec->also[idx - 1]->key};
}

void certificate_keep_keys(ProtobufCMessage *now, const ProtobufCMessage *before)
{
    Skein__CertificateSpec *to = ((const Skein__Certificate *)(const void *)now)->spec;
    Skein__CertificateSpec *from = ((const Skein__Certificate *)(const void *)before)->spec;
    for (size_t i = 0; to != NULL && from != NULL && i <= to->n_also; i++) {
        struct pair want = pair_at(to, i);
        for (size_t j = 0; *want.key == NULL && j <= from->n_also; j++) {
            struct pair have = pair_at(from, j);
            if (want.chain != NULL && have.chain != NULL && *have.key != NULL &&
                strcmp(want.chain, have.chain) == 0) {
                *want.key = mem_strdup(*have.key);
            }
        }
    }
}
