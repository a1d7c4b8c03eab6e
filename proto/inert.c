/*
 * The table of fields without effect, by kind and path. Tested against the descriptors, so a typing
 * mistake cannot hide in it.
 */
#include "proto/inert.h"

#include "proto/json.h"

#include <string.h>

/* Kind, and the JSON path of a field below the object. */
static const struct inert_field {
    const char *kind;
    const char *path;
} inert_fields[] = {
    {"Route", "spec.tls"},
    {"Route", "spec.timeouts.request"},
    {"Route", "spec.timeouts.queue"},
    {"Route", "spec.timeouts.clientFin"},
    {"Route", "spec.timeouts.serverFin"},
    {"Route", "spec.rewrite"},
    {"Route", "spec.redirect"},
    {"Route", "spec.headers"},
    {"Route", "spec.hsts"},
    {"Route", "spec.cors"},
    {"Route", "spec.allowFrom"},
    {"Route", "spec.denyFrom"},
    {"Route", "spec.rateLimit"},
    {"Route", "spec.limits"},
    {"Route", "spec.sticky"},
    {"Route", "spec.retries"},
    {"Route", "spec.accessLog"},
    {"Route", "spec.captures"},
    {"Route", "spec.errorPages"},
    {"Route", "spec.compression"},
    {"Route", "spec.adjustHeaderCase"},
    {"Backend", "spec.hash"},
    {"Backend", "spec.healthCheck"},
    {"Backend", "spec.passiveCheck"},
    {"Backend", "spec.limits"},
    {"Backend", "spec.slowStart"},
    {"Backend", "spec.protocol"},
    {"Backend", "spec.tls"},
    {"Backend", "spec.proxyProtocol"},
    {"Backend", "spec.pool"},
    {"Backend", "spec.panicPercent"},
    {"Backend", "spec.resolveInterval"},
    {"Settings", "spec.timeouts.request"},
    {"Settings", "spec.timeouts.queue"},
    {"Settings", "spec.timeouts.clientFin"},
    {"Settings", "spec.timeouts.serverFin"},
    {"Settings", "spec.timeouts.tlsInspect"},
    {"Settings", "spec.tls"},
    {"Settings", "spec.trustedProxies"},
    {"Settings", "spec.limits.connections"},
    {"Settings", "spec.limits.connectionsPerClient"},
    {"Settings", "spec.errorPages"},
    {"Settings", "spec.headers"},
    {"Settings", "spec.hsts"},
    {"Settings", "spec.requiredHsts"},
    {"Settings", "spec.balance"},
    {"Settings", "spec.healthCheck"},
    {"Settings", "spec.accessLog"},
    {"Settings", "spec.captures"},
    {"Settings", "spec.uniqueId"},
    {"Settings", "spec.headerNameCase"},
    {"Settings", "spec.compression"},
    {"Settings", "spec.emptyRequests"},
    {"Settings", "spec.closedClient"},
    {"Settings", "spec.admission"},
    {"Settings", "spec.drain"},
    {"Node", "spec.labels"},
    {"Node", "spec.drain"},
    {"Node", "spec.drainTimeout"},
};

static bool is_set(const json_t *object, const char *path)
{
    while (object != NULL) {
        char key[JSON_NAME_MAX];
        size_t len = strcspn(path, ".");
        if (len >= sizeof key) {
            return false;
        }
        memcpy(key, path, len);
        key[len] = '\0';
        object = json_object_get(object, key);
        if (path[len] == '\0') {
            return object != NULL;
        }
        path += len + 1;
    }
    return false;
}

void object_warnings(const struct kind *kind, const ProtobufCMessage *message,
                     struct faults *warnings)
{
    json_t *object = object_to_json(kind, message);
    for (size_t i = 0; i < ARRAY_LEN(inert_fields); i++) {
        if (strcmp(inert_fields[i].kind, kind->name) == 0 && is_set(object, inert_fields[i].path)) {
            fault_field(warnings, inert_fields[i].path,
                        "is kept, but has no effect in this version");
        }
    }
    json_decref(object);
}
