/*
 * Shared by json.c and json_read.c only.
 */
#ifndef SKEIN_PROTO_JSON_READ_H
#define SKEIN_PROTO_JSON_READ_H

#include "node/base/defs.h"

#include <jansson.h>
#include <protobuf-c/protobuf-c.h>

/* Bytes of one element of a repeated field. */
size_t json_item_size(ProtobufCType type);

/* "a string", "a number", ... for texts of faults. */
const char *json_type_name(const json_t *value);

#endif
