/*
 * Everything is made once and dropped: what can be made here can be made on every node.
 */
#include "node/app/check_tls.h"

#include "node/app/compile.h"
#include "node/app/compile_tls.h"
#include "proto/fault.h"
#include "proto/validate.h"

#include <string.h>

static const char missing_key[] =
    "is missing; wants the PEM text of the chain's private key (it is never shown; a document may "
    "leave it out while the chain stays the stored one)";

static void check_keys(const Skein__CertificateSpec *spec, struct faults *faults)
{
    if (spec->key == NULL) {
        fault_field(faults, "key", "%s", missing_key);
    }
    for (size_t i = 0; i < spec->n_also; i++) {
        if (spec->also[i]->key == NULL) {
            size_t item = faults_enter_item(faults, "also", i);
            fault_field(faults, "key", "%s", missing_key);
            faults_leave(faults, item);
        }
    }
}

static void check_certificate(const Skein__CertificateSpec *spec, struct faults *faults)
{
    struct tls_cert *cert = NULL;
    struct err_info err = {0};
    check_keys(spec, faults);
    if (faults_any(faults)) {
        return;
    }
    if (compile_certificate(spec, &cert, &err) != RC_OK) {
        fault_add(faults, "%s", err.text);
        return;
    }
    tls_cert_unref(cert);
}

/* ca and crl by themselves, so that a fault names its field. */
static void check_client_auth(const Skein__ClientAuth *auth, struct faults *faults)
{
    struct err_info err = {0};
    size_t mark = faults_enter(faults, "clientAuth");
    if (auth != NULL && auth->ca != NULL && tls_ca_check(auth->ca, &err) != RC_OK) {
        fault_field(faults, "ca", "%s", err.text);
    }
    if (auth != NULL && auth->crl != NULL && tls_crl_check(auth->crl, &err) != RC_OK) {
        fault_field(faults, "crl", "%s", err.text);
    }
    faults_leave(faults, mark);
}

static void check_ca(const char *field, const char *pem, struct faults *faults)
{
    struct err_info err = {0};
    if (pem != NULL && tls_ca_check(pem, &err) != RC_OK) {
        fault_field(faults, field, "%s", err.text);
    }
}

/* Words of a Custom profile, once the bundles are sound. */
static void check_policy(const Skein__RouteTls *tls, const Skein__SettingsTls *settings,
                         struct faults *faults)
{
    struct tls_policy *policy = NULL;
    struct err_info err = {0};
    if (faults_any(faults)) {
        return;
    }
    if (compile_tls_policy(tls, settings, &policy, &err) != RC_OK) {
        fault_add(faults, "%s", err.text);
        return;
    }
    tls_policy_unref(policy);
}

static void check_route(const Skein__RouteSpec *spec, struct faults *faults)
{
    char host[NAME_LONG_MAX_BYTES + 1];
    const Skein__RouteTls *tls = spec->tls;
    struct tls_target *target = NULL;
    struct err_info err = {0};
    if (tls == NULL) {
        return;
    }
    size_t mark = faults_enter(faults, "tls");
    check_ca("destinationCa", tls->destination_ca, faults);
    check_client_auth(tls->client_auth, faults);
    check_policy(tls, NULL, faults);
    if (!faults_any(faults) && tls->termination == SKEIN__ROUTE_TLS__TERMINATION__Reencrypt &&
        host_canonical(spec->host, host, NULL) == RC_OK) {
        if (compile_reencrypt(tls, host, &target, &err) != RC_OK) {
            fault_add(faults, "%s", err.text);
            target = NULL;
        }
        tls_target_unref(target);
    }
    faults_leave(faults, mark);
}

static void check_backend(const Skein__BackendSpec *spec, struct faults *faults)
{
    struct tls_target *target = NULL;
    struct err_info err = {0};
    if (spec->tls == NULL) {
        return;
    }
    size_t mark = faults_enter(faults, "tls");
    check_ca("ca", spec->tls->ca, faults);
    if (!faults_any(faults)) {
        if (compile_target(spec->tls, NULL, &target, &err) != RC_OK) {
            fault_add(faults, "%s", err.text);
            target = NULL;
        }
        tls_target_unref(target);
    }
    faults_leave(faults, mark);
}

static void check_settings(const Skein__SettingsSpec *spec, struct faults *faults)
{
    if (spec->tls == NULL) {
        return;
    }
    size_t mark = faults_enter(faults, "tls");
    check_client_auth(spec->tls->client_auth, faults);
    check_policy(NULL, spec->tls, faults);
    faults_leave(faults, mark);
}

void check_tls(const struct kind *kind, const ProtobufCMessage *message, struct faults *faults)
{
    const struct object_message *object = (const struct object_message *)(const void *)message;
    const void *spec = object->spec;
    if (spec == NULL) {
        return;
    }
    size_t mark = faults_enter(faults, "spec");
    if (kind->descriptor == &skein__certificate__descriptor) {
        check_certificate(spec, faults);
    } else if (kind->descriptor == &skein__route__descriptor) {
        check_route(spec, faults);
    } else if (kind->descriptor == &skein__backend__descriptor) {
        check_backend(spec, faults);
    } else if (kind->descriptor == &skein__settings__descriptor) {
        check_settings(spec, faults);
    }
    faults_leave(faults, mark);
}
