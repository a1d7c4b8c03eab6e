/*
 * Bearer tokens: making a secret, and finding whose it is.
 *
 * A secret is "skein_" and 43 characters (base64url of 32 random bytes). What is stored is its
 * SHA-256: of 256 random bits a plain hash gives nothing back, and nobody can try them all, so what
 * salts and slow hashes do for passwords is not needed. Every Token is compared, each in constant
 * time, so the time says neither whether nor where one matched.
 * Thread: the control thread.
 */
#ifndef SKEIN_ADMIN_SERVER_AUTH_H
#define SKEIN_ADMIN_SERVER_AUTH_H

#include "admin/server/access.h"
#include "admin/server/show.h"
#include "proto/validate.h"

enum { AUTH_SECRET_LEN = 6 + 43 };

enum auth_result {
    AUTH_OK = 0,
    AUTH_MISSING, /* no credential was shown */
    AUTH_UNKNOWN, /* none that is known: a revoked one, or no token at all */
    AUTH_EXPIRED,
    AUTH_RESULT_COUNT
};

const char *auth_result_name(enum auth_result result); /* "expired" */

/* A fresh secret and its hash. Wipe the secret after use. */
void auth_secret_new(char out[AUTH_SECRET_LEN + 1], uint8_t ret_hash[TOKEN_HASH_BYTES]);

/*
 * The value of an Authorization field ("Bearer skein_..."), not terminated. who gets via, role,
 * namespace and name when AUTH_OK (with AUTH_EXPIRED the name alone).
 */
enum auth_result auth_bearer(const struct view *view, const char *value, size_t len,
                             uint64_t now_wall_ms, struct who *who);

#endif
