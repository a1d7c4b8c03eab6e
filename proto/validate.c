/*
 * Metadata, size, and the small kinds. Routes, backends and Settings have files of their own.
 */
#include "proto/validate.h"

#include "proto/checks.h"
#include "proto/fault.h"

#include <string.h>

/* Bytes that a name of this kind may have: an Endpoint's id holds a backend's name as well. */
static size_t name_max(const struct kind *kind)
{
    bool is_short = kind->descriptor == &skein__backend__descriptor ||
                    kind->descriptor == &skein__node__descriptor ||
                    kind->descriptor == &skein__namespace__descriptor;
    return is_short ? NAME_MAX_BYTES : NAME_LONG_MAX_BYTES;
}

static void check_namespace_name(struct faults *faults, const char *field, const char *text)
{
    if (!name_is_label(text, strlen(text))) {
        fault_field(faults, field,
                    "\"%.80s\" is no namespace: up to %d lower-case letters, digits and '-', "
                    "starting and ending with a letter or digit",
                    text, NAME_MAX_BYTES);
    }
}

static void check_metadata(struct faults *faults, const struct kind *kind,
                           const Skein__Metadata *metadata)
{
    static const Skein__Metadata empty = SKEIN__METADATA__INIT;
    if (metadata == NULL) {
        metadata = &empty;
    }
    size_t mark = faults_enter(faults, "metadata");
    if (metadata->name == NULL || metadata->name[0] == '\0') {
        fault_field(faults, "name", "is missing; wants a name");
    } else if (kind->descriptor == &skein__namespace__descriptor) {
        check_namespace_name(faults, "name", metadata->name);
    } else if (kind->descriptor != &skein__endpoint__descriptor) {
        check_name(faults, "name", metadata->name, name_max(kind));
    }
    if (!kind->namespaced) {
        check_absent(faults, "namespace", metadata->namespace_ != NULL,
                     "in a kind that is for the whole cluster");
    } else if (metadata->namespace_ == NULL) {
        fault_field(faults, "namespace", "is missing; wants a name");
    } else {
        check_namespace_name(faults, "namespace", metadata->namespace_);
    }
    check_labels(faults, "labels", metadata->labels, metadata->n_labels, false);
    check_labels(faults, "annotations", metadata->annotations, metadata->n_annotations, true);
    faults_leave(faults, mark);
}

void object_validate(const struct kind *kind, const ProtobufCMessage *message,
                     struct faults *faults)
{
    const struct object_message *object = (const struct object_message *)(const void *)message;
    check_metadata(faults, kind, object->metadata);
    kind->validate(message, faults);

    size_t packed = protobuf_c_message_get_packed_size(message);
    if (packed > OBJECT_PACKED_MAX) {
        fault_add(faults, "the object is %zu bytes packed; at most %d are accepted", packed,
                  OBJECT_PACKED_MAX);
    }
}

void validate_namespace(const ProtobufCMessage *message, struct faults *faults)
{
    const Skein__NamespaceSpec *spec = ((const Skein__Namespace *)(const void *)message)->spec;
    if (spec == NULL) {
        return;
    }
    size_t mark = faults_enter(faults, "spec");
    check_people_text(faults, "description", spec->description, PEOPLE_TEXT_MAX);
    faults_leave(faults, mark);
}

void validate_node(const ProtobufCMessage *message, struct faults *faults)
{
    const Skein__NodeSpec *spec = ((const Skein__Node *)(const void *)message)->spec;
    if (spec == NULL) {
        return;
    }
    size_t mark = faults_enter(faults, "spec");
    check_labels(faults, "labels", spec->labels, spec->n_labels, false);
    check_duration(faults, "drainTimeout", spec->drain_timeout, 0, TIMEOUT_MS_MAX);
    faults_leave(faults, mark);
}
