/*
 * Tokens; see the header.
 */
#include "admin/server/auth.h"

#include "node/base/mem.h"
#include "node/base/rng.h"
#include "node/tls/crypto.h"
#include "proto/scalar.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char prefix[] = "skein_";
static const char *const result_names[AUTH_RESULT_COUNT] = {"ok", "missing", "unknown", "expired"};

_Static_assert((int)SHA256_BYTES == (int)TOKEN_HASH_BYTES, "a Token holds a SHA-256");

const char *auth_result_name(enum auth_result result)
{
    return (size_t)result < AUTH_RESULT_COUNT ? result_names[result] : "?";
}

void auth_secret_new(char out[AUTH_SECRET_LEN + 1], uint8_t ret_hash[TOKEN_HASH_BYTES])
{
    uint8_t bytes[32];
    rng_secret(bytes, sizeof(bytes));
    char *text = base64_encode(bytes, sizeof(bytes)); /* 43 characters and one '=' */
    for (char *at = text; *at != '\0'; at++) {
        *at = *at == '+' ? '-' : *at == '/' ? '_' : *at;
    }
    (void)snprintf(out, AUTH_SECRET_LEN + 1, "%s%.43s", prefix, text); /* fits */
    crypto_sha256(out, AUTH_SECRET_LEN, ret_hash);
    crypto_wipe(text, strlen(text));
    crypto_wipe(bytes, sizeof(bytes));
    mem_free(text);
}

struct search {
    uint8_t hash[TOKEN_HASH_BYTES];
    const struct object *found;
};

static bool visit(void *arg, const struct object *object)
{
    struct search *search = arg;
    const Skein__TokenSpec *spec = ((const Skein__Token *)(const void *)object->message)->spec;
    if (spec != NULL && spec->has_hash && spec->hash.len == TOKEN_HASH_BYTES &&
        crypto_equal(spec->hash.data, search->hash, TOKEN_HASH_BYTES)) {
        search->found = object;
    }
    return true;
}

/* A role that a newer version gave is none here. */
static bool set_role(const Skein__TokenSpec *spec, struct who *who)
{
    if (!spec->has_role) {
        return false;
    }
    switch (spec->role) {
    case SKEIN__TOKEN_SPEC__ROLE__Viewer:
        who->role = ACCESS_VIEWER;
        return true;
    case SKEIN__TOKEN_SPEC__ROLE__Editor:
        who->role = ACCESS_EDITOR;
        return true;
    case SKEIN__TOKEN_SPEC__ROLE__Admin:
        who->role = ACCESS_ADMIN;
        return true;
    case _SKEIN__TOKEN_SPEC__ROLE_IS_INT_SIZE:
        break;
    }
    return false;
}

static enum auth_result take(const struct object *object, uint64_t now_wall_ms, struct who *who)
{
    const Skein__TokenSpec *spec = ((const Skein__Token *)(const void *)object->message)->spec;
    (void)snprintf(who->name, sizeof(who->name), "%s", object->id);
    if (spec->expires != NULL && spec->expires->wall_ms <= now_wall_ms) {
        return AUTH_EXPIRED;
    }
    const char *namespace_ = spec->namespace_ != NULL ? spec->namespace_ : "";
    if (!set_role(spec, who) || strlen(namespace_) >= sizeof(who->namespace_)) {
        return AUTH_UNKNOWN;
    }
    memcpy(who->namespace_, namespace_, strlen(namespace_) + 1);
    who->via = WHO_TOKEN;
    who->created_hlc = object->created_hlc;
    return AUTH_OK;
}

enum auth_result auth_bearer(const struct view *view, const char *value, size_t len,
                             uint64_t now_wall_ms, struct who *who)
{
    static const char scheme[] = "Bearer";
    size_t skip = sizeof(scheme) - 1;
    if (len <= skip || strncasecmp(value, scheme, skip) != 0 || value[skip] != ' ') {
        return AUTH_UNKNOWN;
    }
    while (skip < len && value[skip] == ' ') {
        skip++;
    }
    if (len - skip != AUTH_SECRET_LEN || memcmp(value + skip, prefix, sizeof(prefix) - 1) != 0) {
        return AUTH_UNKNOWN;
    }
    struct search search = {.found = NULL};
    crypto_sha256(value + skip, AUTH_SECRET_LEN, search.hash);
    view_each(view, kind_by_name("Token"), "", visit, &search);
    return search.found != NULL ? take(search.found, now_wall_ms, who) : AUTH_UNKNOWN;
}
