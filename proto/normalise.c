/*
 * Stored defaults and canonical forms, and what follows from an Endpoint's name.
 *
 * Normalising twice changes nothing, and what is malformed is left for object_validate to name.
 */
#include "proto/validate.h"

#include "node/base/mem.h"

#include <stdio.h>
#include <string.h>

static void set_text(char **text, const char *value)
{
    if (*text == NULL || strcmp(*text, value) != 0) {
        mem_free(*text);
        *text = mem_strdup(value);
    }
}

static void normalise_address(char **address)
{
    char canonical[ENDPOINT_ADDRESS_MAX];
    if (*address != NULL && endpoint_address_canonical(*address, canonical, NULL) == RC_OK) {
        set_text(address, canonical);
    }
}

static void normalise_route(Skein__RouteSpec *spec)
{
    char host[NAME_LONG_MAX_BYTES + 1];
    if (spec->host != NULL && host_canonical(spec->host, host, NULL) == RC_OK) {
        set_text(&spec->host, host);
    }
    bool exact = spec->path_type == SKEIN__ROUTE_SPEC__PATH_TYPE__Exact;
    char path[PATH_MAX_BYTES + 1];
    if (spec->path != NULL && path_canonical(spec->path, exact, path, NULL) == RC_OK) {
        set_text(&spec->path, path);
    }
}

const char *endpoint_name(const char *backend, const char *address, char out[ENDPOINT_NAME_MAX])
{
    (void)snprintf(out, ENDPOINT_NAME_MAX, "%s/%s", backend, address); /* both are bounded */
    return out;
}

/* The name gives backend and address, or they give the name. Where both are there, validation tells
 * whether they agree. */
static void normalise_endpoint(Skein__Endpoint *endpoint)
{
    const char *slash =
        endpoint->metadata->name != NULL ? strchr(endpoint->metadata->name, '/') : NULL;
    if (slash != NULL) {
        char backend[NAME_LONG_MAX_BYTES + 1];
        size_t len = (size_t)(slash - endpoint->metadata->name);
        if (endpoint->spec->backend == NULL && len < sizeof backend) {
            memcpy(backend, endpoint->metadata->name, len);
            backend[len] = '\0';
            set_text(&endpoint->spec->backend, backend);
        }
        if (endpoint->spec->address == NULL) {
            set_text(&endpoint->spec->address, slash + 1);
        }
    }
    normalise_address(&endpoint->spec->address);
    const char *backend = endpoint->spec->backend;
    const char *address = endpoint->spec->address;
    if (backend == NULL || address == NULL || strlen(backend) > NAME_LONG_MAX_BYTES ||
        strlen(address) >= ENDPOINT_ADDRESS_MAX) {
        return;
    }
    char name[ENDPOINT_NAME_MAX];
    if (slash != NULL) {
        /* Another spelling of the same address is the same name. */
        char *written = mem_strdup(slash + 1);
        normalise_address(&written);
        size_t len = (size_t)(slash - endpoint->metadata->name);
        bool same = strcmp(written, address) == 0 && strlen(backend) == len &&
                    strncmp(backend, endpoint->metadata->name, len) == 0;
        mem_free(written);
        if (!same) {
            return;
        }
    } else if (endpoint->metadata->name != NULL) {
        return;
    }
    set_text(&endpoint->metadata->name, endpoint_name(backend, address, name));
}

void object_normalise(const struct kind *kind, ProtobufCMessage *message)
{
    struct object_message *object = (struct object_message *)(void *)message;
    if (object->metadata == NULL) {
        object->metadata = mem_new(sizeof *object->metadata);
        skein__metadata__init(object->metadata);
    }
    object_ensure_spec(object);
    Skein__Metadata *metadata = object->metadata;
    if (kind->namespaced && (metadata->namespace_ == NULL || metadata->namespace_[0] == '\0')) {
        set_text(&metadata->namespace_, "default");
    }
    if (kind->descriptor == &skein__route__descriptor) {
        normalise_route(((Skein__Route *)(void *)message)->spec);
    } else if (kind->descriptor == &skein__backend__descriptor) {
        Skein__BackendSpec *spec = ((Skein__Backend *)(void *)message)->spec;
        for (size_t i = 0; i < spec->n_endpoints; i++) {
            normalise_address(&spec->endpoints[i]->address);
        }
    } else if (kind->descriptor == &skein__endpoint__descriptor) {
        normalise_endpoint((Skein__Endpoint *)(void *)message);
    } else if (kind->descriptor == &skein__settings__descriptor && metadata->name == NULL) {
        set_text(&metadata->name, "default");
    }
}

Skein__Endpoint *endpoint_from_backend(const Skein__Backend *backend, size_t idx)
{
    const Skein__BackendEndpoint *short_form = backend->spec->endpoints[idx];
    Skein__Endpoint *endpoint = mem_new(sizeof *endpoint);
    skein__endpoint__init(endpoint);
    endpoint->metadata = mem_new(sizeof *endpoint->metadata);
    skein__metadata__init(endpoint->metadata);
    endpoint->spec = mem_new(sizeof *endpoint->spec);
    skein__endpoint_spec__init(endpoint->spec);

    endpoint->metadata->namespace_ = mem_strdup(backend->metadata->namespace_);
    endpoint->spec->backend = mem_strdup(backend->metadata->name);
    endpoint->spec->address = mem_strdup(short_form->address);
    endpoint->spec->has_weight = short_form->has_weight;
    endpoint->spec->weight = short_form->weight;
    endpoint->spec->has_state = short_form->has_state;
    endpoint->spec->state = short_form->state;
    normalise_endpoint(endpoint);
    return endpoint;
}

void backend_show_endpoint(Skein__Backend *backend, const Skein__Endpoint *endpoint)
{
    object_ensure_spec((struct object_message *)(void *)backend);
    Skein__BackendSpec *spec = backend->spec;
    Skein__BackendEndpoint *short_form = mem_new(sizeof *short_form);
    skein__backend_endpoint__init(short_form);
    short_form->address = mem_strdup(endpoint->spec->address);
    short_form->has_weight = endpoint->spec->has_weight;
    short_form->weight = endpoint->spec->weight;
    short_form->has_state = endpoint->spec->has_state;
    short_form->state = endpoint->spec->state;
    spec->endpoints = mem_grow(spec->endpoints, spec->n_endpoints + 1, sizeof(void *));
    spec->endpoints[spec->n_endpoints++] = short_form;
}

void backend_clear_endpoints(Skein__Backend *backend)
{
    if (backend->spec == NULL) {
        return;
    }
    for (size_t i = 0; i < backend->spec->n_endpoints; i++) {
        message_free(&backend->spec->endpoints[i]->base);
    }
    MEM_FREE(backend->spec->endpoints);
    backend->spec->n_endpoints = 0;
}

uint32_t target_weight(const Skein__Target *target)
{
    return target->has_weight ? target->weight : WEIGHT_DEFAULT;
}

uint32_t endpoint_weight(const Skein__EndpointSpec *spec)
{
    return spec->has_weight ? spec->weight : WEIGHT_DEFAULT;
}

uint64_t duration_ms(const Skein__Duration *duration, uint64_t fallback)
{
    return duration != NULL && duration->has_ms ? duration->ms : fallback;
}
