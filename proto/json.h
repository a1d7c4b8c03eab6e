/*
 * Messages as JSON and back: one walk over descriptors, for every kind and every field.
 *
 * The rules of proto3 JSON: lowerCamelCase names, enums as names, bytes as base64, 64-bit integers
 * as strings (either form is read), null means unset, unset fields are not written. Stricter than
 * those rules when reading: an unknown field, a wrong type and an unknown enum name are faults with
 * their path, and field names have one spelling. Beyond them: skein.Duration is "1h30m", skein.Time
 * is RFC 3339, a repeated skein.Pair is an object of strings. Scalars are not converted: where a
 * string is wanted, a number is a fault that says to quote it.
 * Thread: pure.
 */
#ifndef SKEIN_PROTO_JSON_H
#define SKEIN_PROTO_JSON_H

#include "node/base/defs.h"
#include "node/base/errors.h"
#include "proto/object.h"

#include <jansson.h>

struct faults;

enum { JSON_NAME_MAX = 64 }; /* bytes of a field's JSON name, NUL included */

/* A new reference; never NULL. */
json_t *message_to_json(const ProtobufCMessage *message);

/*
 * Read every field of value (borrowed); all faults are added, with paths below the place where
 * faults stands. The result (never NULL, message_free) holds what could be read; do not use it when
 * there were faults.
 */
ProtobufCMessage *message_from_json(const ProtobufCMessageDescriptor *descriptor,
                                    const json_t *value, struct faults *faults);

/* {"kind": ..., "metadata": ..., "spec": ..., "status": ...}; a new reference. */
json_t *object_to_json(const struct kind *kind, const ProtobufCMessage *message);

/*
 * A whole document as a user wrote it: kind looked up, fields read, defaults filled, everything
 * checked (object_normalise, object_validate). expected: the kind that it must be, or NULL for any;
 * then "kind" must be there. status and server-set metadata are read and may be ignored by the
 * caller. NULL when there were faults; else free with message_free.
 */
struct object_message *object_from_json(const json_t *document, const struct kind *expected,
                                        const struct kind **ret_kind, struct faults *faults);

/* The JSON name of a field ("path_type" is "pathType"). Returns out. */
const char *json_field_name(const ProtobufCFieldDescriptor *field, char out[JSON_NAME_MAX]);

/* The JSON text, members in their order. indent 0: one line. mem_free. */
char *json_text(const json_t *value, size_t indent);

#endif
