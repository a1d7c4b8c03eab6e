/*
 * What Certificates, routes and Settings say of TLS, made into the descriptions of node/tls.
 *
 * The same functions judge a document before it is written (check_tls.h) and compile what is
 * stored, so that nothing is accepted that does not work. Pure; all that is made is the caller's to
 * drop. Thread: the control thread's; reading a certificate costs up to a millisecond.
 */
#ifndef SKEIN_NODE_APP_COMPILE_TLS_H
#define SKEIN_NODE_APP_COMPILE_TLS_H

#include "node/app/compile_route.h"
#include "node/proxy/proxy_tls.h"
#include "proto/object.h"

/* RC_INVALID: err says which pair and what is wrong, never a byte of a key. */
MUST_CHECK int compile_certificate(const Skein__CertificateSpec *spec, struct tls_cert **ret_cert,
                                   struct err_info *err);

/* Does the route say anything of versions, suites or client certificates, or does it take what its
 * host has? NULL is accepted. */
bool compile_tls_has_policy(const Skein__RouteTls *tls);

/* Whether clients show certificates: the route's word, else that of Settings. All may be NULL. */
const Skein__ClientAuth *compile_client_auth(const Skein__RouteTls *tls,
                                             const Skein__SettingsTls *settings);

/* What is demanded of clients: the route's words over those of Settings; both may be NULL. */
MUST_CHECK int compile_tls_policy(const Skein__RouteTls *tls, const Skein__SettingsTls *settings,
                                  struct tls_policy **ret_policy, struct err_info *err);

/* No tickets: asked for, or since clients show certificates and nobody asked for tickets. */
bool compile_tickets_off(const Skein__RouteTls *tls, const Skein__SettingsTls *settings);

/* How endpoints of a Reencrypt route are asked. host: canonical, of the route. */
MUST_CHECK int compile_reencrypt(const Skein__RouteTls *tls, const char *host,
                                 struct tls_target **ret_target, struct err_info *err);

/* The rule's part. target: of compile_reencrypt, or NULL; borrowed, as are texts. */
struct proxy_rule_tls compile_rule_tls(const Skein__RouteTls *tls,
                                       const Skein__SettingsTls *settings,
                                       struct tls_target *target, struct compile_store *store);

/* What Settings say of all TLS listeners; spec may be NULL. cert and policy are left NULL. */
struct proxy_tls compile_proxy_tls(const Skein__SettingsSpec *spec);

#endif
