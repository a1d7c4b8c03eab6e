/*
 * The table of kinds. Everything that knows all kinds reads it from here: the API's paths, the
 * CLI's names, the numbers on disk and on the wire.
 *
 * Numbers of kinds to come, so that nobody takes them: 9 Shard, 10 VirtualAddress. 12 to 31 are
 * kept for further kinds; 32 to 255 for replicated rows that are not objects (ticket keys,
 * revocations). A number is never given to another meaning, also when its kind is gone.
 */
#include "proto/checks.h"
#include "proto/object.h"

#include <stddef.h>
#include <strings.h>

/* object.h casts every kind to struct object_message; hold protoc-c to it. */
#define ASSERT_SHAPE(type)                                                                         \
    _Static_assert(offsetof(type, base) == offsetof(struct object_message, base) &&                \
                       offsetof(type, metadata) == offsetof(struct object_message, metadata) &&    \
                       offsetof(type, spec) == offsetof(struct object_message, spec) &&            \
                       offsetof(type, status) == offsetof(struct object_message, status),          \
                   #type " must begin with metadata = 1, spec = 2, status = 3")

ASSERT_SHAPE(Skein__Namespace);
ASSERT_SHAPE(Skein__Route);
ASSERT_SHAPE(Skein__Backend);
ASSERT_SHAPE(Skein__Endpoint);
ASSERT_SHAPE(Skein__Settings);
ASSERT_SHAPE(Skein__Node);
ASSERT_SHAPE(Skein__TcpRoute);
ASSERT_SHAPE(Skein__Token);
ASSERT_SHAPE(Skein__Certificate);

const struct kind kinds[] = {
    {.number = 1,
     .name = "Namespace",
     .plural = "namespaces",
     .alias = "ns",
     .namespaced = false,
     .descriptor = &skein__namespace__descriptor,
     .validate = validate_namespace,
     .columns = "ROUTES=status.routes BACKENDS=status.backends DESCRIPTION=spec.description"},
    {.number = 2,
     .name = "Route",
     .plural = "routes",
     .alias = "rt",
     .namespaced = true,
     .descriptor = &skein__route__descriptor,
     .validate = validate_route,
     .columns = "HOST=spec.host PATH=spec.path TLS=spec.tls.termination BACKENDS=spec.to[].backend "
                "ADMITTED=status.admitted REASON=status.reason"},
    {.number = 3,
     .name = "Backend",
     .plural = "backends",
     .alias = "be",
     .namespaced = true,
     .descriptor = &skein__backend__descriptor,
     .validate = validate_backend,
     .columns = "BALANCE=spec.balance ENDPOINTS=status.endpoints READY=status.ready "
                "ROUTES=status.routes"},
    {.number = 4,
     .name = "Endpoint",
     .plural = "endpoints",
     .alias = "ep",
     .namespaced = true,
     .descriptor = &skein__endpoint__descriptor,
     .validate = validate_endpoint,
     .columns = "BACKEND=spec.backend ADDRESS=spec.address WEIGHT=spec.weight STATE=spec.state "
                "HEALTH=status.health"},
    {.number = 5,
     .name = "Settings",
     .plural = "settings",
     .alias = NULL,
     .namespaced = false,
     .descriptor = &skein__settings__descriptor,
     .validate = validate_settings,
     .columns = "FORWARDED=spec.forwarded PROFILE=spec.tls.profile BALANCE=spec.balance"},
    {.number = 6,
     .name = "Node",
     .plural = "nodes",
     .alias = NULL,
     .namespaced = false,
     .descriptor = &skein__node__descriptor,
     .validate = validate_node,
     .columns = "STATE=status.state READY=status.ready DRAIN=spec.drain ADDRESS=status.address "
                "VERSION=status.version LAG=status.lag"},
    {.number = 7,
     .name = "TcpRoute",
     .plural = "tcproutes",
     .alias = "tr",
     .namespaced = true,
     .descriptor = &skein__tcp_route__descriptor,
     .validate = validate_tcp_route,
     .columns = "PORT=spec.port BACKENDS=spec.to[].backend ADMITTED=status.admitted "
                "REASON=status.reason"},
    {.number = 8,
     .name = "Certificate",
     .plural = "certificates",
     .alias = "cert",
     .namespaced = true,
     .descriptor = &skein__certificate__descriptor,
     .validate = validate_certificate,
     .secrets = "spec.key spec.also[].key",
     .keep_secrets = certificate_keep_keys,
     .columns = "NAMES=status.names KEY=status.keyType EXPIRES=status.notAfter "
                "EXPIRED=status.expired ROUTES=status.routes"},
    {.number = 11,
     .name = "Token",
     .plural = "tokens",
     .alias = NULL,
     .namespaced = false,
     .descriptor = &skein__token__descriptor,
     .validate = validate_token,
     .secrets = "spec.hash",
     .columns = "ROLE=spec.role NAMESPACE=spec.namespace EXPIRES=spec.expires "
                "EXPIRED=status.expired DESCRIPTION=spec.description"},
    {.name = NULL},
};

const struct kind *kind_by_number(uint16_t number)
{
    for (const struct kind *kind = kinds; kind->name != NULL; kind++) {
        if (kind->number == number) {
            return kind;
        }
    }
    return NULL;
}

const struct kind *kind_by_name(const char *name)
{
    for (const struct kind *kind = kinds; kind->name != NULL; kind++) {
        if (strcasecmp(name, kind->name) == 0 || strcasecmp(name, kind->plural) == 0 ||
            (kind->alias != NULL && strcasecmp(name, kind->alias) == 0)) {
            return kind;
        }
    }
    return NULL;
}
