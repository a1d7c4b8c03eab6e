/*
 * TLS for a data-plane thread: OpenSSL's library context of its own (shared ones contend for
 * locks), contexts and parsed certificates that are built at first use and kept within bounds, and
 * connections made of them (tls_engine.h moves their bytes).
 *
 * Thread: a library and its connections belong to one thread; descriptions (policy, target, cert)
 * may be shared. Nothing blocks; building a context or parsing a certificate costs less than a
 * handshake.
 */
#ifndef SKEIN_NODE_TLS_TLS_LIB_H
#define SKEIN_NODE_TLS_TLS_LIB_H

#include "node/base/buf.h"
#include "node/base/errors.h"
#include "node/tls/tls_cert.h"
#include "node/tls/tls_engine.h"
#include "node/tls/tls_policy.h"
#include "node/tls/tls_tickets.h"

struct tls_lib;

struct tls_lib_config {
    /* The ring in force, called by handshakes; borrowed until control returns to the loop. NULL: no
     * tickets. */
    const struct ticket_ring *(*tickets)(void *arg);
    void *arg;
    uint32_t certs_max;    /* parsed certificates kept: 0 means 1024 */
    uint32_t contexts_max; /* of policies and of targets, each: 0 means 256 */
    int keylog_fd;         /* NSS key log lines are appended (one write each); -1: none */
};

/* RC_UNSUPPORTED: OpenSSL refuses. */
MUST_CHECK int tls_lib_new(const struct tls_lib_config *config, struct tls_lib **ret_lib,
                           struct err_info *err);
void tls_lib_free(struct tls_lib *lib); /* after its connections; NULL is accepted */

/* ---- towards clients ---- */

struct tls_accept {
    struct tls_policy *policy;
    struct tls_cert *cert;
    /* TLS_DIGEST_BYTES: whose sessions resume each other (domain, client authentication, policy),
     * and what ticket keys are derived for. NULL: no tickets. */
    const uint8_t *domain;
};

/*
 * A server's connection; the ClientHello is fed as any bytes. One ticket goes out with the first
 * bytes that are written after the handshake, or by tls_engine_ticket. ALPN: http/1.1.
 * cipher as in tls_engine_new. RC_NO_MEMORY; RC_INVALID: the certificate cannot be used here.
 */
MUST_CHECK int tls_lib_accept(struct tls_lib *lib, const struct tls_accept *accept,
                              struct buf *cipher, struct tls_engine **ret_eng,
                              struct err_info *err);

/* ---- towards endpoints ---- */

/* Sessions for the next connections to one place; embedded by the owner, all zero is empty. */
struct tls_resume {
    void *session; /* an SSL_SESSION, the last one given */
};
void tls_resume_clear(struct tls_resume *resume);

/* A client's connection: tls_engine_start begins. resume: NULL, or where the session is taken from
 * and put to; outlives the engine. */
MUST_CHECK int tls_lib_connect(struct tls_lib *lib, struct tls_target *target,
                               struct tls_resume *resume, struct buf *cipher,
                               struct tls_engine **ret_eng, struct err_info *err);

/* ---- what a connection came to, once it is open ---- */

struct tls_facts {
    const char *version; /* "TLSv1.3"; static */
    const char *cipher;  /* "TLS_AES_128_GCM_SHA256"; static */
    bool resumed;
};
void tls_engine_facts(const struct tls_engine *eng, struct tls_facts *ret_facts);

/* The certificate that the other side showed and that verified; false: none. Texts are cut to fit;
 * pem may be NULL. */
struct tls_peer {
    char subject[512]; /* RFC 2253 */
    char common_name[256];
    char issuer[512];
    char serial[64];      /* hex */
    char fingerprint[65]; /* SHA-256, lower-case hex */
    char not_before[24];  /* 2026-01-31T00:00:00Z */
    char not_after[24];
    int64_t not_after_s;
};
bool tls_engine_peer(const struct tls_engine *eng, struct tls_peer *ret_peer);
/* Its DER in base64 without line breaks, appended. */
bool tls_engine_peer_der(const struct tls_engine *eng, struct buf *out);

/* Why the other side's certificate was refused, for logs ("self-signed certificate",
 * "hostname mismatch: expected origin.test"); "": it was not. Valid until the thread's next call.
 */
const char *tls_engine_verify_text(const struct tls_engine *eng);

#endif
