/*
 * Field by field, as in compile.c; see compile_tls.h.
 */
#include "node/app/compile_tls.h"

#include "proto/validate.h"

enum {
    INSPECT_MS = 5000,
    HANDSHAKES_MAX = 4096,
    REDIRECT_STATUS = 308,
};

/* ---- certificates ---- */

int compile_certificate(const Skein__CertificateSpec *spec, struct tls_cert **ret_cert,
                        struct err_info *err)
{
    struct tls_cert_source pairs[TLS_CERT_PAIRS_MAX] = {{.chain = spec->chain, .key = spec->key}};
    size_t count = 1;
    if (spec->has_ocsp) {
        pairs[0].ocsp = spec->ocsp.data;
        pairs[0].ocsp_len = spec->ocsp.len;
    }
    if (spec->n_also >= TLS_CERT_PAIRS_MAX) {
        return err_set(err, RC_INVALID, "%zu pairs beside the first; at most %d are accepted",
                       spec->n_also, TLS_CERT_PAIRS_MAX - 1);
    }
    for (size_t i = 0; i < spec->n_also; i++) {
        const Skein__CertificatePair *also = spec->also[i];
        pairs[count++] = (struct tls_cert_source){
            .chain = also->chain,
            .key = also->key,
            .ocsp = also->has_ocsp ? also->ocsp.data : NULL,
            .ocsp_len = also->has_ocsp ? also->ocsp.len : 0,
        };
    }
    for (size_t i = 0; i < count; i++) {
        if (pairs[i].chain == NULL || pairs[i].key == NULL) {
            return err_set(err, RC_INVALID, "a %s is missing",
                           pairs[i].chain == NULL ? "chain" : "key");
        }
    }
    return tls_cert_read(pairs, count, ret_cert, err);
}

/* ---- policies ---- */

bool compile_tls_has_policy(const Skein__RouteTls *tls)
{
    return tls != NULL && (tls->has_profile || tls->client_auth != NULL);
}

const Skein__ClientAuth *compile_client_auth(const Skein__RouteTls *tls,
                                             const Skein__SettingsTls *settings)
{
    if (tls != NULL && tls->client_auth != NULL) {
        return tls->client_auth;
    }
    return settings != NULL ? settings->client_auth : NULL;
}

static bool asks_clients(const Skein__ClientAuth *auth)
{
    return auth != NULL && auth->has_policy && auth->policy != SKEIN__CLIENT_AUTH__POLICY__Off;
}

static enum tls_profile profile_of(Skein__TlsProfile profile)
{
    static const enum tls_profile map[] = {
        [SKEIN__TLS_PROFILE__Intermediate] = TLS_PROFILE_INTERMEDIATE,
        [SKEIN__TLS_PROFILE__Modern] = TLS_PROFILE_MODERN,
        [SKEIN__TLS_PROFILE__Old] = TLS_PROFILE_OLD,
        [SKEIN__TLS_PROFILE__Custom] = TLS_PROFILE_CUSTOM,
    };
    return (size_t)profile < ARRAY_LEN(map) ? map[profile] : TLS_PROFILE_INTERMEDIATE;
}

/* The profile and its words come from one place: the route when it names one. */
static enum tls_profile take_profile(const Skein__RouteTls *tls, const Skein__SettingsTls *settings,
                                     struct tls_custom *ret_custom)
{
    *ret_custom = (struct tls_custom){0};
    if (tls != NULL && tls->has_profile) {
        *ret_custom = (struct tls_custom){
            .min_version = tls->min_version,
            .ciphers = (const char *const *)tls->ciphers,
            .cipher_count = tls->n_ciphers,
            .ciphersuites = (const char *const *)tls->ciphersuites,
            .ciphersuite_count = tls->n_ciphersuites,
            .groups = (const char *const *)tls->groups,
            .group_count = tls->n_groups,
        };
        return profile_of(tls->profile);
    }
    if (settings != NULL && settings->has_profile) {
        *ret_custom = (struct tls_custom){
            .min_version = settings->min_version,
            .ciphers = (const char *const *)settings->ciphers,
            .cipher_count = settings->n_ciphers,
            .ciphersuites = (const char *const *)settings->ciphersuites,
            .ciphersuite_count = settings->n_ciphersuites,
            .groups = (const char *const *)settings->groups,
            .group_count = settings->n_groups,
        };
        return profile_of(settings->profile);
    }
    return TLS_PROFILE_INTERMEDIATE;
}

int compile_tls_policy(const Skein__RouteTls *tls, const Skein__SettingsTls *settings,
                       struct tls_policy **ret_policy, struct err_info *err)
{
    const Skein__ClientAuth *auth = compile_client_auth(tls, settings);
    struct tls_custom custom;
    struct tls_policy_spec spec = {.profile = take_profile(tls, settings, &custom)};
    spec.custom = spec.profile == TLS_PROFILE_CUSTOM ? &custom : NULL;
    if (asks_clients(auth)) {
        spec.client_auth = auth->policy == SKEIN__CLIENT_AUTH__POLICY__Optional
                               ? TLS_CLIENT_AUTH_OPTIONAL
                               : TLS_CLIENT_AUTH_REQUIRED;
        spec.client_ca = auth->ca;
        spec.client_crl = auth->crl;
    }
    return tls_policy_new(&spec, ret_policy, err);
}

bool compile_tickets_off(const Skein__RouteTls *tls, const Skein__SettingsTls *settings)
{
    const Skein__SettingsTickets *tickets = settings != NULL ? settings->tickets : NULL;
    if (tickets != NULL && tickets->has_enabled && !tickets->enabled) {
        return true;
    }
    if (tls != NULL && tls->has_tickets) {
        return !tls->tickets;
    }
    return asks_clients(compile_client_auth(tls, settings));
}

/* ---- rules ---- */

int compile_reencrypt(const Skein__RouteTls *tls, const char *host, struct tls_target **ret_target,
                      struct err_info *err)
{
    static const enum tls_verify map[] = {
        [SKEIN__ROUTE_TLS__VERIFY__Full] = TLS_VERIFY_FULL,
        [SKEIN__ROUTE_TLS__VERIFY__CaOnly] = TLS_VERIFY_CA_ONLY,
        [SKEIN__ROUTE_TLS__VERIFY__Skip] = TLS_VERIFY_NONE,
    };
    const char *name = tls->server_name;
    if (name == NULL && host[0] != '*') {
        name = host;
    }
    const struct tls_target_spec spec = {
        .verify = tls->has_verify && (size_t)tls->verify < ARRAY_LEN(map) ? map[tls->verify]
                                                                          : TLS_VERIFY_FULL,
        .ca = tls->destination_ca,
        .server_name = name,
    };
    return tls_target_new(&spec, ret_target, err);
}

static const struct proxy_client_cert *compile_client_cert(const Skein__ClientAuth *auth,
                                                           struct compile_store *store)
{
    if (!asks_clients(auth)) {
        return NULL;
    }
    struct proxy_client_cert *cert = compile_make(store, 1, sizeof(*cert));
    *cert = (struct proxy_client_cert){
        .required = auth->policy != SKEIN__CLIENT_AUTH__POLICY__Optional,
        .tell = true,
        .subjects = (const char *const *)auth->subjects,
        .subject_count = auth->n_subjects,
    };
    return cert;
}

struct proxy_rule_tls compile_rule_tls(const Skein__RouteTls *tls,
                                       const Skein__SettingsTls *settings,
                                       struct tls_target *target, struct compile_store *store)
{
    static const enum proxy_termination terminations[] = {
        [SKEIN__ROUTE_TLS__TERMINATION__None] = PROXY_PLAIN,
        [SKEIN__ROUTE_TLS__TERMINATION__Edge] = PROXY_EDGE,
        [SKEIN__ROUTE_TLS__TERMINATION__Passthrough] = PROXY_PASSTHROUGH,
        [SKEIN__ROUTE_TLS__TERMINATION__Reencrypt] = PROXY_REENCRYPT,
    };
    static const enum proxy_insecure insecures[] = {
        [SKEIN__ROUTE_TLS__INSECURE__Deny] = PROXY_INSECURE_DENY,
        [SKEIN__ROUTE_TLS__INSECURE__Allow] = PROXY_INSECURE_ALLOW,
        [SKEIN__ROUTE_TLS__INSECURE__Redirect] = PROXY_INSECURE_REDIRECT,
    };
    if (tls == NULL || !tls->has_termination ||
        (size_t)tls->termination >= ARRAY_LEN(terminations)) {
        return (struct proxy_rule_tls){0};
    }
    struct proxy_rule_tls rule = {
        .termination = terminations[tls->termination],
        .insecure = tls->has_insecure && (size_t)tls->insecure < ARRAY_LEN(insecures)
                        ? insecures[tls->insecure]
                        : PROXY_INSECURE_DENY,
        .redirect_status =
            (uint16_t)(tls->has_redirect_status ? tls->redirect_status : (uint32_t)REDIRECT_STATUS),
        .target = target,
    };
    if (rule.termination == PROXY_EDGE || rule.termination == PROXY_REENCRYPT) {
        rule.client_cert = compile_client_cert(compile_client_auth(tls, settings), store);
    }
    return rule;
}

/* ---- Settings ---- */

struct proxy_tls compile_proxy_tls(const Skein__SettingsSpec *spec)
{
    struct proxy_tls tls = {.inspect_ms = INSPECT_MS, .handshakes_max = HANDSHAKES_MAX};
    if (spec == NULL) {
        return tls;
    }
    if (spec->timeouts != NULL) {
        tls.inspect_ms = (uint32_t)MIN(duration_ms(spec->timeouts->tls_inspect, INSPECT_MS),
                                       (uint64_t)UINT32_MAX);
    }
    if (spec->limits != NULL && spec->limits->has_handshakes) {
        tls.handshakes_max = MAX(spec->limits->handshakes, (uint32_t)1);
    }
    tls.strict_sni = spec->tls != NULL && spec->tls->has_strict_sni && spec->tls->strict_sni;
    tls.tickets_off = compile_tickets_off(NULL, spec->tls);
    return tls;
}
