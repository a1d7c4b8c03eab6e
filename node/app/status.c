/*
 * One function per kind, from the views of the routing index.
 */
#include "node/app/status.h"

#include "node/base/mem.h"
#include "node/base/timesrc.h"

#include <stdio.h>
#include <string.h>

static char **warning(const char *text, size_t *ret_count)
{
    char **list = mem_array(1, sizeof(char *));
    list[0] = mem_strdup(text);
    *ret_count = 1;
    return list;
}

static char **missing_backends(const bool *missing, Skein__Target *const *targets, size_t count,
                               size_t *ret_count)
{
    char **list = mem_array(count, sizeof(char *));
    for (size_t i = 0; i < count; i++) {
        if (missing[i]) {
            list[(*ret_count)++] =
                mem_strdup(targets[i]->backend != NULL ? targets[i]->backend : "");
        }
    }
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
    status->missing_backends =
        missing_backends(view.missing, spec->to, view.target_count, &status->n_missing_backends);
    if (view.refusal != NULL) {
        status->warnings = warning(view.refusal, &status->n_warnings);
    } else if (view.warning != NULL) {
        status->warnings = warning(view.warning, &status->n_warnings);
    }
    return status;
}

static void add_warning(Skein__BackendStatus *status, char *text)
{
    status->warnings =
        mem_grow(status->warnings, status->n_warnings + 1, sizeof(*status->warnings));
    status->warnings[status->n_warnings++] = text;
}

static Skein__TcpRouteStatus *tcp_route_status(const struct routing *routing,
                                               const struct object *object)
{
    Skein__TcpRouteStatus *status = mem_new(sizeof(*status));
    skein__tcp_route_status__init(status);
    status->has_admitted = true;
    status->has_reason = true;
    struct routing_tcp_view view;
    if (!routing_tcp_view(routing, object->id, &view)) {
        status->reason = SKEIN__TCP_ROUTE_STATUS__REASON__Invalid;
        status->message = mem_strdup("spec.port is not valid on this node's version");
        return status;
    }
    status->admitted = view.admitted && view.open && view.refusal == NULL && view.trouble == NULL;
    if (!view.admitted) {
        status->reason = SKEIN__TCP_ROUTE_STATUS__REASON__PortAlreadyClaimed;
        status->claimed_by = mem_strdup(view.claimed_by);
        status->message = mem_printf("the older route %s has this port; this one serves when that "
                                     "one goes",
                                     view.claimed_by);
    } else if (view.refusal != NULL) {
        status->reason = SKEIN__TCP_ROUTE_STATUS__REASON__Invalid;
        status->message = mem_strdup(view.refusal);
    } else if (!status->admitted) {
        status->reason = SKEIN__TCP_ROUTE_STATUS__REASON__PortNotAvailable;
        status->message =
            mem_strdup(view.trouble != NULL ? view.trouble : "this node does not serve yet");
    }
    const Skein__TcpRouteSpec *spec = (const Skein__TcpRouteSpec *)object->message->spec;
    status->missing_backends =
        missing_backends(view.missing, spec->to, view.target_count, &status->n_missing_backends);
    return status;
}

static Skein__BackendStatus *backend_status(const struct routing *routing,
                                            const struct object *object)
{
    Skein__BackendStatus *status = mem_new(sizeof(*status));
    skein__backend_status__init(status);
    struct routing_pool_view view;
    if (!routing_pool_view(routing, object->id, &view)) {
        return status;
    }
    status->has_endpoints = status->has_ready = true;
    status->has_draining = status->has_routes = status->has_down = true;
    status->endpoints = (uint32_t)view.endpoints;
    status->ready = (uint32_t)view.ready;
    status->draining = (uint32_t)view.draining;
    status->down = (uint32_t)view.down;
    status->routes = (uint32_t)view.routes;
    if (view.refusal != NULL) {
        add_warning(status, mem_strdup(view.refusal));
    }
    if (view.offering > 0 && view.down == view.offering) {
        add_warning(status,
                    mem_printf("all endpoints are down (%zu of %zu)", view.down, view.offering));
    }
    if (view.unresolved > 0) {
        add_warning(status, mem_printf("names that do not resolve: %zu", view.unresolved));
    }
    return status;
}

/* ---- endpoints ---- */

/* What a status says of health: the three fields that an endpoint and an address share. */
struct health_fields {
    protobuf_c_boolean *has_health;
    Skein__EndpointStatus__Health *health;
    char **message;
    Skein__Time **since;
};

static void fill_health(const struct routing_health *health, const struct health_fields *to)
{
    static const Skein__EndpointStatus__Health map[] = {
        [PROXY_HEALTH_UNKNOWN] = SKEIN__ENDPOINT_STATUS__HEALTH__Unknown,
        [PROXY_HEALTH_UP] = SKEIN__ENDPOINT_STATUS__HEALTH__Up,
        [PROXY_HEALTH_DOWN] = SKEIN__ENDPOINT_STATUS__HEALTH__Down,
    };
    *to->has_health = true;
    *to->health = map[health->health];
    if (health->message[0] != '\0') {
        *to->message = mem_strdup(health->message);
    }
    if (health->since_wall_ms != 0) {
        *to->since = mem_new(sizeof(**to->since));
        skein__time__init(*to->since);
        (*to->since)->has_wall_ms = true;
        (*to->since)->wall_ms = health->since_wall_ms;
    }
}

static Skein__EndpointAddress *endpoint_address(const struct routing *routing, const char *id,
                                                size_t idx)
{
    Skein__EndpointAddress *address = mem_new(sizeof(*address));
    skein__endpoint_address__init(address);
    struct addr addr;
    struct routing_health health;
    char text[ADDR_TEXT_MAX];
    routing_endpoint_address(routing, id, idx, &addr, &health);
    address->address = mem_strdup(addr_format(&addr, text));
    const struct health_fields to = {&address->has_health, &address->health, &address->message,
                                     &address->since};
    fill_health(&health, &to);
    return address;
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
    status->has_backend_missing = true;
    status->backend_missing = !routing_has_backend(routing, id);
    struct routing_endpoint_view view;
    if (!routing_endpoint_view(routing, object->id, &view)) {
        return status;
    }
    const struct health_fields to = {&status->has_health, &status->health, &status->message,
                                     &status->since};
    fill_health(&view.health, &to);
    status->addresses = mem_array(view.address_count, sizeof(*status->addresses));
    for (size_t i = 0; i < view.address_count; i++) {
        status->addresses[status->n_addresses++] = endpoint_address(routing, object->id, i);
    }
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

static Skein__TokenStatus *token_status(const struct object *object)
{
    const Skein__TokenSpec *spec = ((const Skein__Token *)(const void *)object->message)->spec;
    Skein__TokenStatus *status = mem_new(sizeof(*status));
    skein__token_status__init(status);
    status->has_expired = true;
    status->expired =
        spec != NULL && spec->expires != NULL && spec->expires->wall_ms <= time_wall_ms();
    return status;
}

static Skein__Time *time_of(int64_t seconds)
{
    Skein__Time *time = mem_new(sizeof(*time));
    skein__time__init(time);
    time->has_wall_ms = true;
    time->wall_ms = seconds > 0 ? (uint64_t)seconds * 1000 : 0;
    return time;
}

static void describe_certificate(const struct tls_cert_info *info, Skein__CertificateStatus *status)
{
    int64_t now = (int64_t)(time_wall_ms() / 1000);
    status->names = mem_array(MAX(info->name_count, (size_t)1), sizeof(char *));
    for (size_t i = 0; i < info->name_count; i++) {
        status->names[status->n_names++] = mem_strdup(info->names[i]);
    }
    status->not_before = time_of(info->not_before);
    status->not_after = time_of(info->not_after);
    status->key_type = mem_strdup(info->key_types);
    status->issuer = mem_strdup(info->issuer);
    status->fingerprint = mem_strdup(info->fingerprint);
    status->has_expired = true;
    status->expired = info->not_after <= now;
    status->warnings = mem_array(info->warning_count + 1, sizeof(char *));
    for (size_t i = 0; i < info->warning_count; i++) {
        status->warnings[status->n_warnings++] = mem_strdup(info->warnings[i]);
    }
    if (status->expired) {
        status->warnings[status->n_warnings++] = mem_strdup("has expired");
    } else if (info->not_before > now) {
        status->warnings[status->n_warnings++] = mem_strdup("is not valid yet");
    }
}

static Skein__CertificateStatus *certificate_status(const struct routing *routing,
                                                    const struct object *object)
{
    Skein__CertificateStatus *status = mem_new(sizeof(*status));
    skein__certificate_status__init(status);
    struct routing_cert_view view;
    if (!routing_cert_view(routing, object->id, &view)) {
        return status;
    }
    status->has_routes = true;
    status->routes = (uint32_t)view.routes;
    if (view.info != NULL) {
        describe_certificate(view.info, status);
    } else if (view.fault != NULL) {
        status->warnings = warning(view.fault, &status->n_warnings);
    }
    return status;
}

static Skein__SettingsStatus *settings_status(const struct routing *routing)
{
    Skein__SettingsStatus *status = mem_new(sizeof(*status));
    skein__settings_status__init(status);
    const char *missing = routing_missing_standard(routing);
    if (missing != NULL) {
        status->warnings = mem_array(1, sizeof(char *));
        status->warnings[status->n_warnings++] =
            mem_printf("Certificate %s, the default one, does not exist or cannot be used: clients "
                       "without a known server name are refused",
                       missing);
    }
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
    } else if (descriptor == &skein__tcp_route__descriptor) {
        message->status = (ProtobufCMessage *)tcp_route_status(routing, object);
    } else if (descriptor == &skein__backend__descriptor) {
        message->status = (ProtobufCMessage *)backend_status(routing, object);
    } else if (descriptor == &skein__endpoint__descriptor) {
        message->status = (ProtobufCMessage *)endpoint_status(routing, object);
    } else if (descriptor == &skein__node__descriptor) {
        message->status = (ProtobufCMessage *)node_status(core, object);
    } else if (descriptor == &skein__certificate__descriptor) {
        message->status = (ProtobufCMessage *)certificate_status(routing, object);
    } else if (descriptor == &skein__settings__descriptor) {
        message->status = (ProtobufCMessage *)settings_status(routing);
    } else if (descriptor == &skein__token__descriptor) {
        message->status = (ProtobufCMessage *)token_status(object);
    }
}
