/*
 * One function per kind, from the views of the routing index.
 */
#include "node/app/status.h"

#include "node/base/mem.h"

#include <stdio.h>
#include <string.h>

static const char *no_tls_warning =
    "plain HTTP only: this route asks for TLS, which this version does not terminate, and does not "
    "set tls.insecure to Allow, so requests for it are answered 503";

static char **warning(const char *text, size_t *ret_count)
{
    char **list = mem_array(1, sizeof(char *));
    list[0] = mem_strdup(text);
    *ret_count = 1;
    return list;
}

static Skein__RouteStatus *route_status(const struct routing *routing, const struct object *object)
{
    Skein__RouteStatus *status = mem_new(sizeof(*status));
    skein__route_status__init(status);
    status->has_admitted = true;
    status->has_reason = true;
    struct routing_route_view view;
    if (!routing_route_view(routing, object->id, &view)) {
        status->reason = SKEIN__ROUTE_STATUS__REASON__Invalid;
        status->message = mem_strdup("spec.host is not valid on this node's version");
        return status;
    }
    status->admitted = view.admitted;
    status->reason = SKEIN__ROUTE_STATUS__REASON__Admitted;
    if (!view.admitted) {
        status->reason = SKEIN__ROUTE_STATUS__REASON__HostAlreadyClaimed;
        status->claimed_by = mem_strdup(view.claimed_by);
        status->message =
            mem_printf("the older route %s has this host and path; this one serves when "
                       "that one goes",
                       view.claimed_by);
    }
    const Skein__RouteSpec *spec = (const Skein__RouteSpec *)object->message->spec;
    status->missing_backends = mem_array(view.target_count, sizeof(char *));
    for (size_t i = 0; i < view.target_count; i++) {
        if (view.missing[i]) {
            status->missing_backends[status->n_missing_backends++] =
                mem_strdup(spec->to[i]->backend != NULL ? spec->to[i]->backend : "");
        }
    }
    if (view.refusal != NULL) {
        status->warnings = warning(view.refusal, &status->n_warnings);
    } else if (!view.plain) {
        status->warnings = warning(no_tls_warning, &status->n_warnings);
    }
    return status;
}

static Skein__BackendStatus *backend_status(const struct routing *routing,
                                            const struct object *object)
{
    Skein__BackendStatus *status = mem_new(sizeof(*status));
    skein__backend_status__init(status);
    struct routing_pool_view view;
    if (routing_pool_view(routing, object->id, &view)) {
        status->has_endpoints = status->has_ready = true;
        status->has_draining = status->has_routes = true;
        status->endpoints = (uint32_t)view.endpoints;
        status->ready = (uint32_t)view.ready;
        status->draining = (uint32_t)view.draining;
        status->routes = (uint32_t)view.routes;
        if (view.refusal != NULL) {
            status->warnings = warning(view.refusal, &status->n_warnings);
        }
    }
    return status;
}

static Skein__EndpointStatus *endpoint_status(const struct routing *routing,
                                              const struct object *object)
{
    const Skein__EndpointSpec *spec = (const Skein__EndpointSpec *)object->message->spec;
    Skein__EndpointStatus *status = mem_new(sizeof(*status));
    skein__endpoint_status__init(status);
    char id[OBJECT_ID_MAX + 1];
    (void)snprintf(id, sizeof(id), "%s/%s", object->message->metadata->namespace_,
                   spec != NULL && spec->backend != NULL ? spec->backend : "");
    struct routing_pool_view view;
    status->has_backend_missing = true;
    status->backend_missing = !routing_pool_view(routing, id, &view) || !view.exists;
    return status;
}

const char *status_member_state(enum member_state state)
{
    static const char *const names[] = {"alive", "suspect", "dead", "left"};
    return (size_t)state < ARRAY_LEN(names) ? names[state] : "unknown";
}

/* Of several members with one name the one that is most alive: a node may have come back without
 * its disk. */
static const struct gossip_member *member_named(const struct gossip *core, const char *name)
{
    const struct gossip_member *best = NULL;
    for (size_t i = 0; core != NULL && i < gossip_member_count(core); i++) {
        const struct gossip_member *member = gossip_member_at(core, i);
        if (strcmp(member->name, name) == 0 && (best == NULL || member->state < best->state)) {
            best = member;
        }
    }
    return best;
}

/* NULL: no member has this name. */
static Skein__NodeStatus *node_status(const struct gossip *core, const struct object *object)
{
    const struct gossip_member *member = member_named(core, object->id);
    if (member == NULL) {
        return NULL;
    }
    Skein__NodeStatus *status = mem_new(sizeof(*status));
    skein__node_status__init(status);
    char address[ADDR_TEXT_MAX];
    status->id = mem_printf("%016llx", (unsigned long long)member->id);
    status->address = mem_strdup(addr_format(&member->addr, address));
    status->version = mem_strdup(member->version);
    status->state = mem_strdup(status_member_state(member->state));
    status->has_ready = status->has_revision = true;
    status->ready = member->ready;
    status->revision = member->is_self ? gossip_revision(core) : member->revision;
    return status;
}

void status_fill(const struct routing *routing, const struct gossip *core,
                 const struct object *object)
{
    struct object_message *message = object->message;
    message_free(message->status);
    message->status = NULL;
    const ProtobufCMessageDescriptor *descriptor = object->kind->descriptor;
    if (descriptor == &skein__route__descriptor) {
        message->status = (ProtobufCMessage *)route_status(routing, object);
    } else if (descriptor == &skein__backend__descriptor) {
        message->status = (ProtobufCMessage *)backend_status(routing, object);
    } else if (descriptor == &skein__endpoint__descriptor) {
        message->status = (ProtobufCMessage *)endpoint_status(routing, object);
    } else if (descriptor == &skein__node__descriptor) {
        message->status = (ProtobufCMessage *)node_status(core, object);
    }
}
