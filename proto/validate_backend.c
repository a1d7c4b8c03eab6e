/*
 * What makes a Backend and an Endpoint acceptable.
 *
 * Loopback and link-local addresses are accepted: backends on the machine itself are ordinary.
 */
#include "proto/checks.h"

#include "node/base/mem.h"

#include <stdlib.h>
#include <string.h>

static void check_address(struct faults *faults, const char *address)
{
    char canonical[ENDPOINT_ADDRESS_MAX];
    struct err_info err;
    if (address == NULL || address[0] == '\0') {
        fault_field(faults, "address", "is missing; wants an address such as 10.1.0.4:8080");
    } else if (endpoint_address_canonical(address, canonical, &err) != RC_OK) {
        fault_field(faults, "address", "%s", err.text);
    }
}

/* An address and where it stands, for finding duplicates in n log n. */
struct place {
    const char *address;
    size_t idx;
};

static int compare_places(const void *a, const void *b)
{
    const struct place *left = a;
    const struct place *right = b;
    int order = strcmp(left->address, right->address);
    if (order != 0) {
        return order;
    }
    return left->idx < right->idx ? -1 : left->idx > right->idx;
}

static void check_duplicates(struct faults *faults, Skein__BackendEndpoint *const *endpoints,
                             size_t count)
{
    struct place *places = mem_array(count, sizeof *places);
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        if (endpoints[i]->address != NULL) {
            places[used++] = (struct place){.address = endpoints[i]->address, .idx = i};
        }
    }
    qsort(places, used, sizeof *places, compare_places);
    for (size_t i = 1; i < used; i++) {
        if (strcmp(places[i].address, places[i - 1].address) == 0) {
            size_t mark = faults_enter_item(faults, "endpoints", places[i].idx);
            fault_field(faults, "address", "%.80s is in endpoints[%zu] already", places[i].address,
                        places[i - 1].idx);
            faults_leave(faults, mark);
        }
    }
    mem_free(places);
}

static void check_endpoints(struct faults *faults, const Skein__BackendSpec *spec)
{
    check_count(faults, "endpoints", spec->n_endpoints, ENDPOINTS_MAX);
    size_t count = MIN(spec->n_endpoints, (size_t)ENDPOINTS_MAX);
    for (size_t i = 0; i < count; i++) {
        const Skein__BackendEndpoint *endpoint = spec->endpoints[i];
        size_t mark = faults_enter_item(faults, "endpoints", i);
        check_address(faults, endpoint->address);
        check_u32(faults, "weight", endpoint->has_weight, endpoint->weight, 0, WEIGHT_MAX);
        faults_leave(faults, mark);
    }
    check_duplicates(faults, spec->endpoints, count);
}

static void check_hash(struct faults *faults, const Skein__BackendSpec *spec)
{
    bool by_hash = spec->balance == SKEIN__BACKEND_SPEC__BALANCE__Hash;
    if (spec->hash == NULL) {
        if (by_hash) {
            fault_field(faults, "hash", "is missing; balance is Hash");
        }
        return;
    }
    check_absent(faults, "hash", !by_hash, "unless balance is Hash");
    size_t mark = faults_enter(faults, "hash");
    const Skein__Hash *hash = spec->hash;
    bool named = hash->on == SKEIN__HASH__ON__Header || hash->on == SKEIN__HASH__ON__Cookie ||
                 hash->on == SKEIN__HASH__ON__Query;
    if (!hash->has_on) {
        fault_field(faults, "on",
                    "is missing; wants ClientAddress, Header, Cookie, Query, Path or Host");
    } else if (named && hash->name == NULL) {
        fault_field(faults, "name", "is missing; it names the header, cookie or query parameter");
    }
    check_absent(faults, "name", hash->has_on && !named && hash->name != NULL,
                 "unless \"on\" is Header, Cookie or Query");
    check_token(faults, "name", hash->name, "name of a header, cookie or query parameter");
    faults_leave(faults, mark);
}

static void check_passive(struct faults *faults, const Skein__PassiveCheck *passive)
{
    if (passive == NULL) {
        return;
    }
    size_t mark = faults_enter(faults, "passiveCheck");
    check_u32(faults, "failures", passive->has_failures, passive->failures, 1, 10000);
    check_duration(faults, "window", passive->window, 100, 3600000);
    check_duration(faults, "eject", passive->eject, 100, 86400000);
    check_u32(faults, "maxEjectedPercent", passive->has_max_ejected_percent,
              passive->max_ejected_percent, 0, 100);
    faults_leave(faults, mark);
}

static void check_limits(struct faults *faults, const Skein__BackendLimits *limits)
{
    if (limits == NULL) {
        return;
    }
    size_t mark = faults_enter(faults, "limits");
    check_u32(faults, "connectionsPerEndpoint", limits->has_connections_per_endpoint,
              limits->connections_per_endpoint, 1, 1000000);
    check_u32(faults, "requestsPerEndpoint", limits->has_requests_per_endpoint,
              limits->requests_per_endpoint, 1, 1000000);
    check_u32(faults, "queue", limits->has_queue, limits->queue, 0, 1000000);
    check_duration(faults, "queueTimeout", limits->queue_timeout, 1, TIMEOUT_MS_MAX);
    faults_leave(faults, mark);
}

static void check_tls(struct faults *faults, const Skein__BackendTls *tls)
{
    if (tls == NULL) {
        return;
    }
    size_t mark = faults_enter(faults, "tls");
    check_pem(faults, "ca", tls->ca, "CERTIFICATE");
    check_server_name(faults, "serverName", tls->server_name);
    bool full = !tls->has_verify || tls->verify == SKEIN__ROUTE_TLS__VERIFY__Full;
    if (full && tls->server_name == NULL) {
        fault_field(faults, "serverName",
                    "is missing; endpoints are verified by it, unless verify is CaOnly or Skip");
    }
    check_name(faults, "clientCertificate", tls->client_certificate, NAME_LONG_MAX_BYTES);
    faults_leave(faults, mark);
}

static void check_pool(struct faults *faults, const Skein__BackendPool *pool)
{
    if (pool == NULL) {
        return;
    }
    size_t mark = faults_enter(faults, "pool");
    check_u32(faults, "idlePerEndpoint", pool->has_idle_per_endpoint, pool->idle_per_endpoint, 0,
              65536);
    check_duration(faults, "idleTimeout", pool->idle_timeout, 1, TIMEOUT_MS_MAX);
    check_u32(faults, "requestsPerConnection", pool->has_requests_per_connection,
              pool->requests_per_connection, 1, UINT32_MAX);
    faults_leave(faults, mark);
}

static void check_health_tls(struct faults *faults, const Skein__BackendSpec *spec)
{
    const Skein__HealthCheck *health = spec->health_check;
    if (health != NULL && health->has_tls && health->tls && spec->tls == NULL) {
        size_t mark = faults_enter(faults, "healthCheck");
        fault_field(faults, "tls", "wants spec.tls, which says whom to trust");
        faults_leave(faults, mark);
    }
}

void validate_backend(const ProtobufCMessage *message, struct faults *faults)
{
    const Skein__BackendSpec *spec = ((const Skein__Backend *)(const void *)message)->spec;
    if (spec == NULL) {
        return; /* all defaults; its endpoints are objects of their own */
    }
    size_t mark = faults_enter(faults, "spec");
    check_hash(faults, spec);
    check_health(faults, spec->health_check);
    check_health_tls(faults, spec);
    check_passive(faults, spec->passive_check);
    check_limits(faults, spec->limits);
    check_duration(faults, "slowStart", spec->slow_start, 0, 3600000);
    check_endpoints(faults, spec);
    check_tls(faults, spec->tls);
    check_pool(faults, spec->pool);
    check_u32(faults, "panicPercent", spec->has_panic_percent, spec->panic_percent, 0, 100);
    check_duration(faults, "resolveInterval", spec->resolve_interval, 1000, 86400000);
    check_duration(faults, "resolveHold", spec->resolve_hold, 0, 30ULL * 86400000);
    faults_leave(faults, mark);
}

void validate_endpoint(const ProtobufCMessage *message, struct faults *faults)
{
    static const Skein__EndpointSpec empty = SKEIN__ENDPOINT_SPEC__INIT;
    const Skein__Endpoint *endpoint = (const Skein__Endpoint *)(const void *)message;
    const Skein__EndpointSpec *spec = endpoint->spec != NULL ? endpoint->spec : &empty;
    size_t before = faults->total;
    size_t mark = faults_enter(faults, "spec");
    if (spec->backend == NULL) {
        fault_field(faults, "backend", "is missing; wants the name of a Backend");
    }
    check_name(faults, "backend", spec->backend, NAME_MAX_BYTES);
    check_address(faults, spec->address);
    check_u32(faults, "weight", spec->has_weight, spec->weight, 0, WEIGHT_MAX);
    faults_leave(faults, mark);

    /* The name repeats backend and address; normalising made it so, where it was not contradicted.
     */
    const char *name = endpoint->metadata != NULL ? endpoint->metadata->name : NULL;
    if (faults->total == before && name != NULL) {
        char expected[ENDPOINT_NAME_MAX];
        if (strcmp(name, endpoint_name(spec->backend, spec->address, expected)) != 0) {
            fault_field(faults, "metadata.name", "\"%.80s\" is not \"%.120s\", as spec says", name,
                        expected);
        }
    }
}
