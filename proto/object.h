/*
 * The object model: which kinds exist, and what can be done with any object without knowing its
 * kind.
 *
 * Every kind is one protobuf message with the fields metadata = 1, spec = 2 and status = 3 in this
 * order (proto/objects.proto). Everything else - JSON, YAML, columns, validation by path - derives
 * from the descriptors and from one row per kind in the table of kinds. Thread: pure; an object
 * belongs to the thread that made it.
 */
#ifndef SKEIN_PROTO_OBJECT_H
#define SKEIN_PROTO_OBJECT_H

#include "node/base/defs.h"
#include "node/base/errors.h"
#include "proto/objects.pb-c.h"

struct faults; /* proto/fault.h */

enum {
    OBJECT_ID_MAX = 420,           /* bytes of an id */
    OBJECT_PACKED_MAX = 256 * 1024 /* bytes of a packed object */
};

/* The first members of every generated object message, by construction of objects.proto. */
struct object_message {
    ProtobufCMessage base;
    Skein__Metadata *metadata;
    ProtobufCMessage *spec;
    ProtobufCMessage *status;
};

/* One row per kind. The number is stored and sent: never reuse one. */
struct kind {
    uint16_t number;
    const char *name;   /* "Route" */
    const char *plural; /* "routes": the path segment of the API */
    const char *alias;  /* short name in the CLI, or NULL */
    bool namespaced;
    const ProtobufCMessageDescriptor *descriptor;
    /* Kind-specific checks of a complete message; adds to faults. */
    void (*validate)(const ProtobufCMessage *message, struct faults *faults);
    /* Fields that go in and never come out, "spec.key spec.also[].key"; NULL: none. A kind that has
     * some is sealed at rest and on its way. */
    const char *secrets;
    /* Take secrets that a document leaves out from what is stored, where they still fit; NULL: the
     * kind has none to keep. */
    void (*keep_secrets)(ProtobufCMessage *now, const ProtobufCMessage *before);
    /* Columns of `skeinctl get`: "HOST=spec.host PATH=spec.path ...". */
    const char *columns;
};

/* An object as a node holds it. */
struct object {
    const struct kind *kind;
    struct object_message *message; /* status is filled by the node, never stored */
    const char *id;                 /* "name" or "namespace/name" */
    char etag[40]; /* changes with every write of this object, the same on every node */
    uint64_t created_hlc;
    uint64_t modified_hlc;
};

extern const struct kind kinds[]; /* ends with a row whose name is NULL */

/* By number; by "Route", "routes", "route" or alias, ignoring case. NULL: no such kind. */
const struct kind *kind_by_number(uint16_t number);
const struct kind *kind_by_name(const char *name);

/* "namespace/name" or "name" from metadata that has passed validation, or came out of object_unpack
 * under an id that was sent with it. Returns the length. */
size_t object_id(const struct kind *kind, const Skein__Metadata *metadata,
                 char out[OBJECT_ID_MAX + 1]);

/* Packed form without status and server-set metadata (resourceVersion, created, modified). The
 * memory is the caller's (mem_free). RC_TOO_BIG above OBJECT_PACKED_MAX. */
MUST_CHECK int object_pack(const struct kind *kind, const ProtobufCMessage *message,
                           uint8_t **ret_bytes, size_t *ret_len, struct err_info *err);

/*
 * Bytes from disk or a peer: size-checked, never trusted. RC_CORRUPT. Free with message_free.
 *
 * What comes out has metadata with a name (and a namespace, where the kind has one) and a spec,
 * maybe empty. It is not validated: a peer of another version may have other rules (object_validate
 * tells).
 */
MUST_CHECK int object_unpack(const struct kind *kind, const uint8_t *bytes, size_t len,
                             struct object_message **ret_message, struct err_info *err);

/* Give it a spec, empty, when it has none. */
void object_ensure_spec(struct object_message *object);

/* Free any message of this unit; NULL is accepted. */
void message_free(ProtobufCMessage *message);

/* A deep copy, unknown fields included. */
ProtobufCMessage *message_copy(const ProtobufCMessage *message);

/* Does it, or a message inside it, have fields of a newer version? They are kept when it is packed
 * again, but JSON cannot show them. */
bool message_has_unknown(const ProtobufCMessage *message);

/*
 * Take over the unknown fields of `from` into `to` (the same type), so that a change made through
 * JSON on an older node does not drop what a newer one wrote. Follows messages that are there once
 * on both sides; elements of lists have no identity to follow.
 */
void message_keep_unknown(ProtobufCMessage *to, const ProtobufCMessage *from);

#endif
