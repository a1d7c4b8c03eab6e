/*
 * What makes a TcpRoute acceptable.
 *
 * It shares messages with Route; fields of them that mean nothing where bytes are not looked at are
 * faults rather than ignored.
 */
#include "proto/checks.h"

static void check_tcp_timeouts(struct faults *faults, const Skein__Timeouts *timeouts)
{
    if (timeouts == NULL) {
        return;
    }
    check_timeouts(faults, timeouts, false);
    const char *why = "in a TcpRoute; tunnel limits how long both sides may be silent";
    size_t mark = faults_enter(faults, "timeouts");
    check_absent(faults, "client", timeouts->client != NULL, why);
    check_absent(faults, "server", timeouts->server != NULL, why);
    check_absent(faults, "request", timeouts->request != NULL, why);
    faults_leave(faults, mark);
}

static void check_tcp_rate_limit(struct faults *faults, const Skein__RateLimit *limit)
{
    if (limit == NULL) {
        return;
    }
    check_rate_limit(faults, limit);
    size_t mark = faults_enter(faults, "rateLimit");
    if (limit->has_key && limit->key == SKEIN__RATE_LIMIT__KEY__Header) {
        fault_field(faults, "key", "Header is not one of ClientAddress, Route of a TcpRoute");
    }
    faults_leave(faults, mark);
}

/* Only a connect that failed may be tried elsewhere: what was sent cannot be taken back. */
static void check_tcp_retries(struct faults *faults, const Skein__Retries *retries)
{
    if (retries == NULL) {
        return;
    }
    check_retries(faults, retries);
    const char *why = "in a TcpRoute; it tries again when a connect fails";
    size_t mark = faults_enter(faults, "retries");
    for (size_t i = 0; i < retries->n_on; i++) {
        if (retries->on[i] != SKEIN__RETRIES__ON__ConnectFailure) {
            size_t item = faults_enter_item(faults, "on", i);
            fault_add(faults, "is not ConnectFailure, the only reason of a TcpRoute");
            faults_leave(faults, item);
        }
    }
    check_absent(faults, "statuses", retries->n_statuses != 0, why);
    check_absent(faults, "perTry", retries->per_try != NULL, why);
    faults_leave(faults, mark);
}

void validate_tcp_route(const ProtobufCMessage *message, struct faults *faults)
{
    static const Skein__TcpRouteSpec empty = SKEIN__TCP_ROUTE_SPEC__INIT;
    const Skein__TcpRouteSpec *spec = ((const Skein__TcpRoute *)(const void *)message)->spec;
    if (spec == NULL) {
        spec = &empty;
    }
    size_t mark = faults_enter(faults, "spec");
    if (!spec->has_port) {
        fault_field(faults, "port", "is missing; wants a number from 1 to 65535");
    }
    check_u32(faults, "port", spec->has_port, spec->port, 1, 65535);
    check_targets(faults, spec->to, spec->n_to);
    check_tcp_timeouts(faults, spec->timeouts);
    check_cidrs(faults, "allowFrom", spec->allow_from, spec->n_allow_from);
    check_cidrs(faults, "denyFrom", spec->deny_from, spec->n_deny_from);
    check_tcp_rate_limit(faults, spec->rate_limit);
    if (spec->limits != NULL) {
        check_u32(faults, "limits.connections", spec->limits->has_connections,
                  spec->limits->connections, 1, UINT32_MAX);
    }
    check_tcp_retries(faults, spec->retries);
    faults_leave(faults, mark);
}
