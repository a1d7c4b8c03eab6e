/*
 * A walk over what is set, against one table of paths. A row covers its field and all below it;
 * with a list of enum names only those values of it.
 */
#include "proto/offered.h"

#include "proto/fault.h"
#include "proto/json.h"
#include "proto/validate.h"

#include <stdio.h>
#include <string.h>

enum { PATH_MAX_LEN = 256, DEPTH_MAX = 16 };

static const struct offer {
    const char *kind;
    const char *path;   /* below spec, in JSON names */
    const char *values; /* enum names joined by blanks; NULL: all */
} offers[] = {
    {"Namespace", "description", NULL},

    {"Route", "host", NULL},
    {"Route", "path", NULL},
    {"Route", "pathType", NULL},
    {"Route", "to", NULL},
    {"Route", "tls.termination", NULL},
    {"Route", "tls.certificate", NULL},
    {"Route", "tls.insecure", NULL},
    {"Route", "tls.redirectStatus", NULL},
    {"Route", "tls.destinationCa", NULL},
    {"Route", "tls.serverName", NULL},
    {"Route", "tls.verify", NULL},
    {"Route", "tls.profile", NULL},
    {"Route", "tls.clientAuth", NULL},
    {"Route", "tls.minVersion", NULL},
    {"Route", "tls.ciphers", NULL},
    {"Route", "tls.ciphersuites", NULL},
    {"Route", "tls.groups", NULL},
    {"Route", "tls.tickets", NULL},
    {"Route", "hsts", NULL},
    {"Route", "forwarded", NULL},
    {"Route", "rewrite", NULL},
    {"Route", "redirect", NULL},
    {"Route", "headers", NULL},
    {"Route", "cors", NULL},
    {"Route", "allowFrom", NULL},
    {"Route", "denyFrom", NULL},
    {"Route", "rateLimit.requests", NULL},
    {"Route", "rateLimit.window", NULL},
    {"Route", "rateLimit.burst", NULL},
    {"Route", "rateLimit.key", NULL},
    {"Route", "rateLimit.header", NULL},
    {"Route", "rateLimit.scope", "Node"},
    {"Route", "rateLimit.connections", NULL},
    {"Route", "limits", NULL},
    {"Route", "errorPages", NULL},
    {"Route", "accessLog", NULL},
    {"Route", "captures", NULL},
    {"Route", "timeouts.connect", NULL},
    {"Route", "timeouts.client", NULL},
    {"Route", "timeouts.server", NULL},
    {"Route", "timeouts.tunnel", NULL},
    {"Route", "timeouts.request", NULL},
    {"Route", "timeouts.queue", NULL},
    {"Route", "timeouts.clientFin", NULL},
    {"Route", "timeouts.serverFin", NULL},
    {"Route", "sticky", NULL},
    {"Route", "retries", NULL},

    {"Backend", "balance", NULL},
    {"Backend", "hash", NULL},
    {"Backend", "endpoints", NULL},
    {"Backend", "passiveCheck", NULL},
    {"Backend", "panicPercent", NULL},
    {"Backend", "slowStart", NULL},
    {"Backend", "limits.connectionsPerEndpoint", NULL},
    {"Backend", "limits.queue", NULL},
    {"Backend", "limits.queueTimeout", NULL},
    {"Backend", "pool", NULL},
    {"Backend", "protocol", "Http1 Tcp"},
    {"Backend", "proxyProtocol", NULL},
    {"Backend", "healthCheck.type", "None Tcp Http"},
    {"Backend", "healthCheck.path", NULL},
    {"Backend", "healthCheck.host", NULL},
    {"Backend", "healthCheck.method", NULL},
    {"Backend", "healthCheck.statuses", NULL},
    {"Backend", "healthCheck.headers", NULL},
    {"Backend", "healthCheck.body", NULL},
    {"Backend", "healthCheck.interval", NULL},
    {"Backend", "healthCheck.intervalDown", NULL},
    {"Backend", "healthCheck.timeout", NULL},
    {"Backend", "healthCheck.rise", NULL},
    {"Backend", "healthCheck.fall", NULL},
    {"Backend", "healthCheck.port", NULL},
    {"Backend", "healthCheck.tls", NULL},
    {"Backend", "tls.enabled", NULL},
    {"Backend", "tls.ca", NULL},
    {"Backend", "tls.serverName", NULL},
    {"Backend", "tls.verify", NULL},
    {"Backend", "tls.clientCertificate", NULL},
    {"Backend", "tls.profile", "Intermediate Modern Old"},
    {"Backend", "resolveInterval", NULL},
    {"Backend", "resolveHold", NULL},

    {"TcpRoute", "port", NULL},
    {"TcpRoute", "to", NULL},
    {"TcpRoute", "timeouts", NULL},
    {"TcpRoute", "allowFrom", NULL},
    {"TcpRoute", "denyFrom", NULL},
    {"TcpRoute", "rateLimit.requests", NULL},
    {"TcpRoute", "rateLimit.window", NULL},
    {"TcpRoute", "rateLimit.burst", NULL},
    {"TcpRoute", "rateLimit.key", NULL},
    {"TcpRoute", "rateLimit.scope", "Node"},
    {"TcpRoute", "rateLimit.connections", NULL},
    {"TcpRoute", "limits.connections", NULL},
    {"TcpRoute", "retries.attempts", NULL},
    {"TcpRoute", "retries.on", NULL},
    {"TcpRoute", "accessLog", NULL},

    {"Endpoint", "backend", NULL},
    {"Endpoint", "address", NULL},
    {"Endpoint", "weight", NULL},
    {"Endpoint", "state", NULL},

    {"Settings", "timeouts.connect", NULL},
    {"Settings", "timeouts.client", NULL},
    {"Settings", "timeouts.server", NULL},
    {"Settings", "timeouts.tunnel", NULL},
    {"Settings", "timeouts.request", NULL},
    {"Settings", "timeouts.queue", NULL},
    {"Settings", "timeouts.clientFin", NULL},
    {"Settings", "timeouts.serverFin", NULL},
    {"Settings", "balance", NULL},
    {"Settings", "tls.tickets.enabled", NULL},
    {"Settings", "tls.tickets.rotation", NULL},
    {"Settings", "tls.tickets.life", NULL},
    {"Settings", "closedClient", NULL},
    {"Settings", "timeouts.clientHeader", NULL},
    {"Settings", "timeouts.keepAlive", NULL},
    {"Settings", "forwarded", NULL},
    {"Settings", "trustedProxies", NULL},
    {"Settings", "headers", NULL},
    {"Settings", "hsts", NULL},
    {"Settings", "uniqueId", NULL},
    {"Settings", "errorPages", NULL},
    {"Settings", "emptyRequests", NULL},
    {"Settings", "dotSegments", NULL},
    {"Settings", "limits.headerBytes", NULL},
    {"Settings", "limits.headerCount", NULL},
    {"Settings", "limits.uriBytes", NULL},
    {"Settings", "limits.bodyBytes", NULL},
    {"Settings", "limits.idlePerEndpoint", NULL},
    {"Settings", "limits.connectionsPerClient", NULL},
    {"Settings", "retries", NULL},
    {"Settings", "tls.profile", NULL},
    {"Settings", "tls.minVersion", NULL},
    {"Settings", "tls.ciphers", NULL},
    {"Settings", "tls.ciphersuites", NULL},
    {"Settings", "tls.groups", NULL},
    {"Settings", "tls.defaultCertificate", NULL},
    {"Settings", "tls.strictSni", NULL},
    {"Settings", "tls.clientAuth", NULL},
    {"Settings", "limits.handshakes", NULL},
    {"Settings", "timeouts.tlsInspect", NULL},
    {"Settings", "healthCheck.type", "None Tcp Http"},
    {"Settings", "healthCheck.path", NULL},
    {"Settings", "healthCheck.host", NULL},
    {"Settings", "healthCheck.method", NULL},
    {"Settings", "healthCheck.statuses", NULL},
    {"Settings", "healthCheck.headers", NULL},
    {"Settings", "healthCheck.body", NULL},
    {"Settings", "healthCheck.interval", NULL},
    {"Settings", "healthCheck.intervalDown", NULL},
    {"Settings", "healthCheck.timeout", NULL},
    {"Settings", "healthCheck.rise", NULL},
    {"Settings", "healthCheck.fall", NULL},
    {"Settings", "healthCheck.port", NULL},
    {"Settings", "healthCheck.tls", NULL},
    {"Settings", "accessLog", NULL},
    {"Settings", "captures", NULL},

    {"Node", "labels", NULL},

    {"Certificate", "chain", NULL},
    {"Certificate", "key", NULL},
    {"Certificate", "ocsp", NULL},
    {"Certificate", "also", NULL},

    {"Token", "role", NULL},
    {"Token", "namespace", NULL},
    {"Token", "expires", NULL},
    {"Token", "description", NULL},
};

struct walk {
    const struct kind *kind;
    struct faults *faults;
    char path[PATH_MAX_LEN];
};

enum answer { ANSWER_NO = 0, ANSWER_BELOW, ANSWER_YES };

static enum answer look_up(const struct walk *walk, const char **ret_values)
{
    size_t len = strlen(walk->path);
    enum answer answer = ANSWER_NO;
    for (size_t i = 0; i < ARRAY_LEN(offers); i++) {
        if (strcmp(offers[i].kind, walk->kind->name) != 0 ||
            strncmp(offers[i].path, walk->path, len) != 0) {
            continue;
        }
        if (offers[i].path[len] == '\0') {
            *ret_values = offers[i].values;
            return ANSWER_YES;
        }
        if (offers[i].path[len] == '.') {
            answer = ANSWER_BELOW;
        }
    }
    return answer;
}

static const void *member_at(const ProtobufCMessage *message, unsigned offset)
{
    return (const char *)message + offset;
}

/* Set, as far as presence can be told: proto2 tells it for every field. */
static bool is_set(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    const void *quantifier = member_at(message, field->quantifier_offset);
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        return *(const size_t *)quantifier > 0;
    }
    if (field->type == PROTOBUF_C_TYPE_MESSAGE || field->type == PROTOBUF_C_TYPE_STRING) {
        return *(const void *const *)member_at(message, field->offset) != NULL;
    }
    return *(const protobuf_c_boolean *)quantifier != 0;
}

static bool has_word(const char *words, const char *word)
{
    size_t len = strlen(word);
    for (const char *at = strstr(words, word); at != NULL; at = strstr(at + 1, word)) {
        if ((at == words || at[-1] == ' ') && (at[len] == ' ' || at[len] == '\0')) {
            return true;
        }
    }
    return false;
}

static void check_value(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                        const char *values, struct faults *faults)
{
    if (values == NULL || field->type != PROTOBUF_C_TYPE_ENUM) {
        return;
    }
    int number = *(const int *)member_at(message, field->offset);
    const ProtobufCEnumValue *value =
        protobuf_c_enum_descriptor_get_value(field->descriptor, number);
    if (value == NULL || !has_word(values, value->name)) {
        fault_add(faults, "%s is not available in this version; accepted: %s",
                  value != NULL ? value->name : "this value", values);
    }
}

static void check_message(struct walk *walk, const ProtobufCMessage *message, unsigned depth)
{
    size_t base = strlen(walk->path);
    for (unsigned i = 0; i < message->descriptor->n_fields && depth < DEPTH_MAX; i++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
        if (!is_set(message, field)) {
            continue;
        }
        char name[JSON_NAME_MAX];
        json_field_name(field, name);
        (void)snprintf(walk->path + base, sizeof(walk->path) - base, "%s%s", base > 0 ? "." : "",
                       name);
        size_t mark = faults_enter(walk->faults, name);
        const char *values = NULL;
        enum answer answer = look_up(walk, &values);
        bool can_descend =
            field->type == PROTOBUF_C_TYPE_MESSAGE && field->label != PROTOBUF_C_LABEL_REPEATED;
        if (answer == ANSWER_YES) {
            check_value(message, field, values, walk->faults);
        } else if (answer == ANSWER_BELOW && can_descend) {
            check_message(walk, *(const ProtobufCMessage *const *)member_at(message, field->offset),
                          depth + 1);
        } else {
            fault_add(walk->faults, "is not available in this version; leave it out");
        }
        faults_leave(walk->faults, mark);
        walk->path[base] = '\0';
    }
}

void object_check_offered(const struct kind *kind, const ProtobufCMessage *message,
                          struct faults *faults)
{
    const struct object_message *object = (const struct object_message *)message;
    if (object->spec == NULL) {
        return;
    }
    struct walk walk = {.kind = kind, .faults = faults};
    size_t mark = faults_enter(faults, "spec");
    check_message(&walk, object->spec, 0);
    faults_leave(faults, mark);
}
