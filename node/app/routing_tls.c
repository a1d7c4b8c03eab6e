/*
 * TLS of hosts; see the header.
 */
#include "node/app/routing_tls.h"

#include "node/app/compile.h"
#include "node/app/compile_tls.h"
#include "node/base/mem.h"
#include "node/base/timesrc.h"

#include <stdio.h>
#include <string.h>

static const Skein__SettingsTls *settings_tls(const struct routing *routing)
{
    const Skein__SettingsSpec *spec =
        routing->settings != NULL ? (const Skein__SettingsSpec *)routing->settings->message->spec
                                  : NULL;
    return spec != NULL ? spec->tls : NULL;
}

static Skein__RouteTls__Termination termination_of(const struct route *route)
{
    const Skein__RouteTls *tls = route_spec(route->object)->tls;
    return tls != NULL && tls->has_termination ? tls->termination
                                               : SKEIN__ROUTE_TLS__TERMINATION__None;
}

static bool is_terminated(const struct route *route)
{
    return termination_of(route) == SKEIN__ROUTE_TLS__TERMINATION__Edge ||
           termination_of(route) == SKEIN__ROUTE_TLS__TERMINATION__Reencrypt;
}

static bool is_passed(const struct route *route)
{
    return termination_of(route) == SKEIN__ROUTE_TLS__TERMINATION__Passthrough;
}

/* ---- routes ---- */

void route_tls_add(struct routing *routing, struct route *route)
{
    const Skein__RouteTls *tls = route_spec(route->object)->tls;
    struct err_info err = {0};
    if (tls == NULL) {
        return;
    }
    if (tls->certificate != NULL) {
        char id[OBJECT_ID_MAX + 1];
        (void)snprintf(id, sizeof(id), "%s/%s", route->object->message->metadata->namespace_,
                       tls->certificate);
        route->cert = certs_use(routing, id);
        DL_APPEND2(route->cert->routes, route, cert_prev, cert_next);
    }
    if (termination_of(route) == SKEIN__ROUTE_TLS__TERMINATION__Reencrypt &&
        route->refusal == NULL &&
        compile_reencrypt(tls, route->host->name, &route->target, &err) != RC_OK) {
        route->target = NULL;
        route->refusal = mem_printf("spec.tls: %s", err.text);
    }
}

void route_tls_remove(struct routing *routing, struct route *route)
{
    if (route->cert != NULL) {
        DL_DELETE2(route->cert->routes, route, cert_prev, cert_next);
        certs_release(routing, route->cert);
        route->cert = NULL;
    }
    tls_target_unref(route->target);
    route->target = NULL;
    MEM_FREE(route->tls_warning);
}

static void warn(struct route *route, char *text)
{
    if (route->tls_warning == NULL) {
        route->tls_warning = text;
    } else {
        mem_free(text); /* the first is the one to mend */
    }
}

/* ---- hosts ---- */

static bool is_older(const struct route *left, const struct route *right)
{
    const struct object *a = left->object;
    const struct object *b = right->object;
    return a->created_hlc != b->created_hlc ? a->created_hlc < b->created_hlc
                                            : strcmp(a->id, b->id) < 0;
}

/* The oldest admitted and sound route that `is` holds for. */
static struct route *oldest(const struct host *host, bool (*is)(const struct route *route))
{
    struct route *found = NULL;
    struct route *route;
    for (route = host->routes; route != NULL; route = route->next) {
        if (route->admitted && route->refusal == NULL && is(route) &&
            (found == NULL || is_older(route, found))) {
            found = route;
        }
    }
    return found;
}

static bool names_certificate(const struct route *route)
{
    return is_terminated(route) && route->cert != NULL;
}

/* Passthrough and termination do not go together: the younger kind is left out. */
static struct route *settle_kinds(struct host *host)
{
    struct route *ended = oldest(host, is_terminated);
    struct route *passed = oldest(host, is_passed);
    if (ended == NULL || passed == NULL) {
        return ended;
    }
    bool passed_wins = is_older(passed, ended);
    struct route *route;
    for (route = host->routes; route != NULL; route = route->next) {
        if (passed_wins ? is_terminated(route) : is_passed(route)) {
            route->tls_left_out = true;
            warn(route, passed_wins
                            ? mem_printf("the older route %s passes TLS of this host through: "
                                         "clients that speak TLS do not reach this one",
                                         passed->object->id)
                            : mem_printf("the older route %s terminates TLS of this host, so that "
                                         "nothing is passed through",
                                         ended->object->id));
        }
    }
    return passed_wins ? NULL : ended;
}

static void settle_certificate(struct routing *routing, struct host *host,
                               const struct route *decider, struct proxy_host_tls *tls)
{
    struct route *naming = oldest(host, names_certificate);
    struct cert *cert =
        naming != NULL
            ? naming->cert
            : certs_choose(routing, decider->object->message->metadata->namespace_, host->name);
    certs_show(host, cert);
    tls->cert = cert != NULL ? cert->tls : NULL;
    if (tls->cert != NULL) {
        tls_cert_ref(tls->cert);
    }
    struct route *route;
    for (route = host->routes; route != NULL; route = route->next) {
        if (!is_terminated(route)) {
            continue;
        }
        if (cert == NULL) {
            warn(route, mem_printf("no Certificate of this namespace covers %s: the default one is "
                                   "shown",
                                   host->name));
        } else if (cert->tls == NULL) {
            warn(route, mem_printf("Certificate %s %s%s: the default one is shown", cert->id,
                                   cert->fault != NULL ? "cannot be used: " : "does not exist",
                                   cert->fault != NULL ? cert->fault : ""));
        } else if (route->cert != NULL && route->cert != cert) {
            warn(route, mem_printf("the older route %s decides the certificate of this host: %s is "
                                   "shown",
                                   naming != NULL ? naming->object->id : "", cert->id));
        } else if (!tls_cert_covers(cert->tls, host->name)) {
            warn(route, mem_printf("Certificate %s does not cover %s: clients will refuse it",
                                   cert->id, host->name));
        } else if (!cert_is_valid(cert, (int64_t)(time_wall_ms() / 1000))) {
            warn(route, mem_printf("Certificate %s has expired or is not valid yet: clients will "
                                   "refuse it",
                                   cert->id));
        }
    }
}

static const uint8_t *policy_digest(const struct tls_policy *policy)
{
    return policy != NULL ? tls_policy_digest(policy) : NULL;
}

/* Settings demand certificates of clients, and the host's policy asks for other ones instead. */
static bool inherits_demand(const struct routing *routing, const struct route *decider)
{
    const Skein__SettingsTls *settings = settings_tls(routing);
    const Skein__ClientAuth *auth = settings != NULL ? settings->client_auth : NULL;
    return route_spec(decider->object)->tls->client_auth != NULL && auth != NULL &&
           auth->has_policy && auth->policy != SKEIN__CLIENT_AUTH__POLICY__Off;
}

/* Routes that want another policy than the host has are never served over TLS. */
static void settle_losers(struct routing *routing, struct host *host, const struct route *decider,
                          const struct tls_policy *policy)
{
    struct route *route;
    for (route = host->routes; route != NULL; route = route->next) {
        const Skein__RouteTls *tls = route_spec(route->object)->tls;
        struct tls_policy *own = NULL;
        struct err_info err = {0};
        bool wishes = compile_tls_has_policy(tls) || inherits_demand(routing, decider);
        if (route == decider || !is_terminated(route) || !wishes) {
            continue;
        }
        const uint8_t *digest =
            policy != NULL ? policy_digest(policy) : policy_digest(routing->tls_policy);
        if (compile_tls_policy(tls, settings_tls(routing), &own, &err) != RC_OK) {
            own = NULL;
        }
        if (own == NULL || digest == NULL ||
            memcmp(tls_policy_digest(own), digest, TLS_DIGEST_BYTES) != 0) {
            route->tls_lost = true;
            warn(route, mem_printf("the older route %s decides profile and client certificates of "
                                   "this host; this one wants others and is answered 421 over TLS",
                                   decider->object->id));
        }
        tls_policy_unref(own);
    }
}

void host_tls_plan(struct routing *routing, struct host *host, struct host_tls_plan *ret_plan)
{
    *ret_plan = (struct host_tls_plan){0};
    struct route *route;
    for (route = host->routes; route != NULL; route = route->next) {
        route->tls_lost = route->tls_left_out = false;
        MEM_FREE(route->tls_warning);
    }
    host->has_policy = false;
    struct route *decider = settle_kinds(host);
    if (decider == NULL) {
        certs_show(host, NULL);
        return;
    }
    const Skein__RouteTls *tls = route_spec(decider->object)->tls;
    struct err_info err = {0};
    ret_plan->is_set = true;
    ret_plan->tls.tickets_off = compile_tickets_off(tls, settings_tls(routing));
    host->has_policy = true;
    if (compile_tls_has_policy(tls) &&
        compile_tls_policy(tls, settings_tls(routing), &ret_plan->tls.policy, &err) != RC_OK) {
        /* Without its policy it must not be served: all that reaches it is misdirected. */
        ret_plan->tls.policy = NULL;
        decider->tls_lost = true;
        warn(decider, mem_printf("spec.tls: %s", err.text));
    }
    settle_losers(routing, host, decider, ret_plan->tls.policy);
    settle_certificate(routing, host, decider, &ret_plan->tls);
}

void host_tls_deinit(struct host_tls_plan *plan)
{
    tls_cert_unref(plan->tls.cert);
    tls_policy_unref(plan->tls.policy);
    *plan = (struct host_tls_plan){0};
}

/* ---- Settings ---- */

static void set_policy(struct routing *routing, const Skein__SettingsTls *tls)
{
    struct tls_policy *policy = NULL;
    struct err_info err = {0};
    if (compile_tls_policy(NULL, tls, &policy, &err) != RC_OK) {
        log_error("Settings: the TLS policy before stays in force", "reason=\"%s\"", err.text);
        return; /* with none before, TLS clients are refused: a weaker one would let them in */
    }
    bool same = routing->tls_policy != NULL &&
                memcmp(tls_policy_digest(policy), tls_policy_digest(routing->tls_policy),
                       TLS_DIGEST_BYTES) == 0;
    tls_policy_unref(routing->tls_policy);
    routing->tls_policy = policy;
    struct host *host, *next;
    HASH_ITER (hh, routing->hosts, host, next) {
        /* Subjects are no part of the digest: rules that inherit them are made again. */
        if ((!same || (tls != NULL && tls->client_auth != NULL)) && host->has_policy) {
            mark_host(routing, host);
        }
    }
}

void routing_tls_flush(struct routing *routing)
{
    const Skein__SettingsSpec *spec =
        routing->settings != NULL ? (const Skein__SettingsSpec *)routing->settings->message->spec
                                  : NULL;
    const Skein__SettingsTls *tls = spec != NULL ? spec->tls : NULL;
    routing->tls_marked = false;
    certs_set_standard(routing, tls != NULL ? tls->default_certificate : NULL);
    set_policy(routing, tls);
    struct proxy_tls to = compile_proxy_tls(spec);
    if (to.tickets_off != routing->tickets_off) {
        routing->tickets_off = to.tickets_off;
        struct host *host, *next;
        HASH_ITER (hh, routing->hosts, host, next) {
            if (host->has_policy) {
                mark_host(routing, host);
            }
        }
    }
    to.cert = routing->certs.standard->tls;
    to.policy = routing->tls_policy;
    if (to.policy != NULL) {
        proxy_set_tls(routing->proxy, &to);
    }
}
