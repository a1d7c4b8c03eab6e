/*
 * A certificate as a server or client shows it: one to three pairs of chain and key (RSA, ECDSA and
 * EdDSA side by side), kept as DER, parsed where it is used.
 *
 * Reading checks everything that can be checked before traffic meets it: PEM form, the key fits the
 * leaf, every chain link is signed by the next, key sizes and curves are supported. What only
 * deserves a warning (expired, not yet valid, no names, order of the chain mended, SHA-1) is a
 * warning.
 * Thread: immutable after it was made; the count of references is atomic. Reading is slow (a
 * millisecond) and for the control thread.
 */
#ifndef SKEIN_NODE_TLS_TLS_CERT_H
#define SKEIN_NODE_TLS_TLS_CERT_H

#include "node/base/defs.h"
#include "node/base/errors.h"

enum {
    TLS_CERT_PAIRS_MAX = 3,   /* one of each kind of key */
    TLS_CERT_CHAIN_MAX = 10,  /* certificates of a chain, leaf included */
    TLS_CERT_PEM_MAX = 65536, /* bytes of a chain, or of a key */
    TLS_CERT_NAMES_MAX = 256,
    TLS_CERT_WARNINGS_MAX = 8,
    TLS_CERT_OCSP_MAX = 16384,
};

struct tls_cert;

enum tls_key_type {
    TLS_KEY_RSA = 0,
    TLS_KEY_ECDSA,
    TLS_KEY_EDDSA,
};

/* Texts of one pair; NULL ocsp: none. Borrowed for the call. */
struct tls_cert_source {
    const char *chain;   /* PEM: leaf first; what follows may stand in any order and is put right */
    const char *key;     /* PEM: PKCS#8, PKCS#1 or SEC1, without a passphrase */
    const uint8_t *ocsp; /* DER of an OCSPResponse for the leaf, to be stapled; checked to fit */
    size_t ocsp_len;
};

/* For people and for the choice by name; of all pairs together. */
struct tls_cert_info {
    size_t name_count;
    const char *const *names; /* canonical DNS names of the SANs (CN when there is none), sorted */
    int64_t not_before;       /* unix seconds: the latest of the pairs */
    int64_t not_after;        /* the earliest of the pairs */
    const char *subject;      /* of the first pair's leaf, RFC 2253 */
    const char *issuer;
    const char *serial;      /* hex */
    const char *fingerprint; /* SHA-256 of the first leaf, lower-case hex without colons */
    const char *key_types;   /* "RSA 2048", "ECDSA P-256, RSA 2048" */
    bool self_signed;
    size_t warning_count;
    const char *const *warnings; /* that do not depend on the present time */
};

/* RC_INVALID: err says which pair, what is wrong and what would be accepted. The key's text never
 * stands in err. */
MUST_CHECK int tls_cert_read(const struct tls_cert_source *pairs, size_t count,
                             struct tls_cert **ret_cert, struct err_info *err);

/* A self-signed one (ECDSA P-256, ten years) for a node without any: as PEM texts, to be freed with
 * mem_free. names: SANs. RC_UNSUPPORTED. */
MUST_CHECK int tls_cert_generate(const char *const *names, size_t count, char **ret_chain,
                                 char **ret_key, struct err_info *err);

void tls_cert_ref(struct tls_cert *cert);
void tls_cert_unref(struct tls_cert *cert); /* NULL is accepted */

/* Borrowed from cert. */
const struct tls_cert_info *tls_cert_info(const struct tls_cert *cert);
/* Unique in this process, never 0: the key of caches. */
uint64_t tls_cert_id(const struct tls_cert *cert);

/* Does it cover the canonical host? A host "*.a.b" is covered by the same name only; "x.a.b" by
 * itself or "*.a.b". */
bool tls_cert_covers(const struct tls_cert *cert, const char *host);

/* ---- certificates of authorities ---- */

/* PEM bundle of 1..TLS_CA_MAX certificates: to be trusted. err says what is wrong. */
enum { TLS_CA_MAX = 64 };
MUST_CHECK int tls_ca_check(const char *pem, struct err_info *err);
/* PEM of one or more CRLs. */
MUST_CHECK int tls_crl_check(const char *pem, struct err_info *err);

#endif
