/*
 * What makes an object acceptable, and the canonical forms that everybody compares.
 *
 * Order for an object from outside: message_from_json, object_normalise, object_validate. Policies
 * fail closed: an object with one bad CIDR is refused as a whole. Thread: pure.
 */
#ifndef SKEIN_PROTO_VALIDATE_H
#define SKEIN_PROTO_VALIDATE_H

#include "node/base/cidr.h"
#include "node/base/defs.h"
#include "node/base/errors.h"
#include "proto/object.h"

struct faults;

enum {
    NAME_MAX_BYTES = 63,       /* namespaces; one label of a name */
    NAME_LONG_MAX_BYTES = 253, /* names of other objects; host names */
    LABEL_COUNT_MAX = 64,      /* labels, and annotations, of one object */
    WEIGHT_MAX = 256,
    WEIGHT_DEFAULT = 100,
    TARGETS_MAX = 32,      /* backends of one route */
    ENDPOINTS_MAX = 4096,  /* of one backend */
    PATH_MAX_BYTES = 1024, /* of a route */
    CIDRS_MAX = 4096,      /* of one list */
    PEM_MAX_BYTES = 64 * 1024,
    TOKEN_HASH_BYTES = 32, /* SHA-256 */
};

/*
 * Fill what has a stored default and bring names to their canonical form: metadata and spec are
 * there; metadata.namespace is "default" when unset; hosts are lower-case without a trailing dot;
 * paths have unreserved escapes decoded; addresses are written in one way; an Endpoint's name and
 * its spec.backend and spec.address complete each other. What is malformed stays as it is, for
 * object_validate to name.
 */
void object_normalise(const struct kind *kind, ProtobufCMessage *message);

/* Every fault of metadata and spec. status is not looked at. */
void object_validate(const struct kind *kind, const ProtobufCMessage *message,
                     struct faults *faults);

/* ---- names ---- */

/* Lower-case letters, digits and '-', not at an end; at most 63 bytes. */
bool name_is_label(const char *text, size_t len);

/* Labels joined by dots; at most 253 bytes. */
bool name_is_dns(const char *text, size_t len);

/* ---- canonical forms; RC_INVALID with a text that names the trouble ---- */

/* "Shop.Example.com." -> "shop.example.com"; "*.example.com" is one label and any suffix. No port,
 * no IP literal in brackets. out is NAME_LONG_MAX_BYTES + 1 bytes. */
MUST_CHECK int host_canonical(const char *text, char *out, struct err_info *err);

/*
 * Unreserved escapes decoded, other escapes in upper-case hex, the trailing slashes of a prefix
 * dropped ("/a/" as a Prefix is "/a"; "" is "/"). Refused: no leading slash, dot segments, a bad
 * escape, NUL, bytes that must be escaped, '?' and '#'. out is PATH_MAX_BYTES + 1 bytes.
 */
MUST_CHECK int path_canonical(const char *text, bool exact, char *out, struct err_info *err);

enum { ENDPOINT_ADDRESS_MAX = 262 }; /* name:port, NUL included */

/* "10.1.0.4:8080", "[2001:db8::1]:8080" (RFC 5952), "name.example:8080". Port 1 to 65535. */
MUST_CHECK int endpoint_address_canonical(const char *text, char out[ENDPOINT_ADDRESS_MAX],
                                          struct err_info *err);

/* Is a canonical address an IP address, as opposed to a DNS name? */
bool endpoint_address_is_ip(const char *address);

/* ---- Endpoint objects ----
 *
 * An Endpoint's metadata.name is "backend/address:port", so its id, namespace/backend/address:port,
 * follows the rule of all kinds, and in API paths the name is the rest of the path:
 * /v1/namespaces/shop/endpoints/checkout-v1/10.1.0.4:8080.
 */

enum { ENDPOINT_NAME_MAX = NAME_LONG_MAX_BYTES + 1 + ENDPOINT_ADDRESS_MAX };

/* "backend/address:port". Returns out. */
const char *endpoint_name(const char *backend, const char *address, char out[ENDPOINT_NAME_MAX]);

/* The Endpoint object that spec.endpoints[idx] stands for; message_free. */
Skein__Endpoint *endpoint_from_backend(const Skein__Backend *backend, size_t idx);

/* Append an Endpoint to spec.endpoints, for showing a Backend as its user wrote it. */
void backend_show_endpoint(Skein__Backend *backend, const Skein__Endpoint *endpoint);

/* Drop spec.endpoints: what is left is what is stored. */
void backend_clear_endpoints(Skein__Backend *backend);

/* ---- effective values ---- */

/* 0..WEIGHT_MAX; WEIGHT_DEFAULT when unset. */
uint32_t target_weight(const Skein__Target *target);
uint32_t endpoint_weight(const Skein__EndpointSpec *spec);

/* Milliseconds, or fallback when unset. */
uint64_t duration_ms(const Skein__Duration *duration, uint64_t fallback);

#endif
