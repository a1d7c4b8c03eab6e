/*
 * What a side of TLS demands: versions, suites, groups, and whom it trusts. Described by plain
 * texts, checked when made, immutable and counted from then on; workers build OpenSSL contexts of
 * it at first use (tls_lib.h).
 *
 * Thread: the count of references is atomic. Source: Mozilla's server side TLS guidelines 5.7 for
 * the profiles.
 */
#ifndef SKEIN_NODE_TLS_TLS_POLICY_H
#define SKEIN_NODE_TLS_TLS_POLICY_H

#include "node/base/defs.h"
#include "node/base/errors.h"
#include "node/tls/tls_cert.h"

enum tls_profile {
    TLS_PROFILE_INTERMEDIATE = 0,
    TLS_PROFILE_MODERN,
    TLS_PROFILE_OLD,
    TLS_PROFILE_CUSTOM,
};

/* Lists are borrowed for the call. Only read with TLS_PROFILE_CUSTOM. */
struct tls_custom {
    const char *min_version;    /* "1.0" .. "1.3"; NULL: "1.2" */
    const char *const *ciphers; /* OpenSSL's names for TLS 1.2 and below; none: Intermediate's */
    size_t cipher_count;
    const char *const *ciphersuites; /* of TLS 1.3; none: all three */
    size_t ciphersuite_count;
    const char *const *groups; /* none: X25519, P-256, P-384, P-521 */
    size_t group_count;
};

enum tls_client_auth {
    TLS_CLIENT_AUTH_OFF = 0,
    TLS_CLIENT_AUTH_OPTIONAL, /* asked for; a certificate that does not verify fails the handshake
                               */
    TLS_CLIENT_AUTH_REQUIRED, /* as OPTIONAL, and none fails the handshake */
};

/* Of a server. */
struct tls_policy_spec {
    enum tls_profile profile;
    const struct tls_custom *custom; /* with CUSTOM */
    enum tls_client_auth client_auth;
    const char *client_ca;  /* PEM; unless OFF */
    const char *client_crl; /* PEM; NULL: none */
};

struct tls_policy;

/* RC_INVALID: err names the word that is not known and says what is. Unknown groups of newer
 * OpenSSL (X25519MLKEM768) in built-in profiles are left out silently. */
MUST_CHECK int tls_policy_new(const struct tls_policy_spec *spec, struct tls_policy **ret_policy,
                              struct err_info *err);
void tls_policy_ref(struct tls_policy *policy);
void tls_policy_unref(struct tls_policy *policy); /* NULL is accepted */

/* Equal for equal policies, on every node: SHA-256 over all that spec says. */
enum { TLS_DIGEST_BYTES = 32 };
const uint8_t *tls_policy_digest(const struct tls_policy *policy);
enum tls_client_auth tls_policy_client_auth(const struct tls_policy *policy);

/* ---- towards endpoints ---- */

enum tls_verify {
    TLS_VERIFY_FULL = 0, /* chain and name */
    TLS_VERIFY_CA_ONLY,  /* chain, any name */
    TLS_VERIFY_NONE,     /* asked for by name: nothing is checked */
};

struct tls_target_spec {
    enum tls_profile profile; /* not CUSTOM */
    enum tls_verify verify;
    const char *ca;          /* PEM; NULL: the system's authorities */
    const char *server_name; /* SNI and expected name: a host name or an IP address; NULL: none is
                                sent, legal only without TLS_VERIFY_FULL */
    struct tls_cert *client_cert; /* shown when asked for; a reference is taken; NULL: none */
};

struct tls_target;

MUST_CHECK int tls_target_new(const struct tls_target_spec *spec, struct tls_target **ret_target,
                              struct err_info *err);
void tls_target_ref(struct tls_target *target);
void tls_target_unref(struct tls_target *target); /* NULL is accepted */
const uint8_t *tls_target_digest(const struct tls_target *target);

#endif
