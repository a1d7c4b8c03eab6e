/*
 * How endpoints are asked by TLS: from a BackendTls to the description that the data plane and the
 * checker take.
 */
#include "node/app/compile.h"

static enum tls_profile profile_of(const Skein__BackendTls *tls)
{
    static const enum tls_profile map[] = {
        [SKEIN__TLS_PROFILE__Intermediate] = TLS_PROFILE_INTERMEDIATE,
        [SKEIN__TLS_PROFILE__Modern] = TLS_PROFILE_MODERN,
        [SKEIN__TLS_PROFILE__Old] = TLS_PROFILE_OLD,
    };
    return tls->has_profile && (size_t)tls->profile < ARRAY_LEN(map) ? map[tls->profile]
                                                                     : TLS_PROFILE_INTERMEDIATE;
}

static enum tls_verify verify_of(const Skein__BackendTls *tls)
{
    static const enum tls_verify map[] = {
        [SKEIN__ROUTE_TLS__VERIFY__Full] = TLS_VERIFY_FULL,
        [SKEIN__ROUTE_TLS__VERIFY__CaOnly] = TLS_VERIFY_CA_ONLY,
        [SKEIN__ROUTE_TLS__VERIFY__Skip] = TLS_VERIFY_NONE,
    };
    return tls->has_verify && (size_t)tls->verify < ARRAY_LEN(map) ? map[tls->verify]
                                                                   : TLS_VERIFY_FULL;
}

bool compile_target_enabled(const Skein__BackendTls *tls)
{
    return tls != NULL && (!tls->has_enabled || tls->enabled);
}

int compile_target(const Skein__BackendTls *tls, struct tls_cert *own,
                   struct tls_target **ret_target, struct err_info *err)
{
    const struct tls_target_spec spec = {
        .profile = profile_of(tls),
        .verify = verify_of(tls),
        .ca = tls->ca,
        .server_name = tls->server_name,
        .client_cert = own,
    };
    return tls_target_new(&spec, ret_target, err);
}
