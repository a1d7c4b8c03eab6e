/*
 * From the fields of objects to the plain structures of the data plane. Pure.
 */
#ifndef SKEIN_NODE_APP_COMPILE_H
#define SKEIN_NODE_APP_COMPILE_H

#include "node/health/check_spec.h"
#include "node/proxy/proxy.h"
#include "proto/object.h"

/* The built-in defaults, over which Settings lays its own. */
struct proxy_defaults compile_defaults(const Skein__SettingsSpec *spec);

/* Fields that are unset become 0 ("the default"). timeouts may be NULL. */
struct proxy_timeouts compile_timeouts(const Skein__Timeouts *timeouts);

/* 0..PROXY_WEIGHT_MAX; 100 when unset. */
uint32_t compile_weight(protobuf_c_boolean has_weight, uint32_t weight);

enum forwarded_policy compile_forwarded(Skein__ForwardedPolicy policy);

/* How a backend uses its endpoints; both may be NULL. Borrows texts of spec. compile_backend.c */
struct proxy_backend compile_backend(const Skein__BackendSpec *spec,
                                     const Skein__SettingsSpec *settings);

/* ---- compile_target.c ---- */

/* Is the traffic of a backend with this (NULL: none) encrypted? Else it is there for checks. */
bool compile_target_enabled(const Skein__BackendTls *tls);

/* own: the certificate that is shown to endpoints, or NULL. RC_INVALID: err says what is wrong. */
MUST_CHECK int compile_target(const Skein__BackendTls *tls, struct tls_cert *own,
                              struct tls_target **ret_target, struct err_info *err);

/* ---- compile_check.c ---- */

/* The check of a backend as it is to run, over that of Settings; both may be NULL. False: there is
 * none. ret_check borrows the parts of both. */
bool compile_check_merge(const Skein__HealthCheck *own, const Skein__HealthCheck *defaults,
                         Skein__HealthCheck *ret_check);

/* Does a merged check go by TLS, to a backend whose tls is this (NULL: it has none)? */
bool compile_check_tls(const Skein__HealthCheck *check, const Skein__BackendTls *tls);

/* A merged check for the checker; texts are borrowed. */
void compile_check(const Skein__HealthCheck *check, struct check_config *ret_config);

#endif
