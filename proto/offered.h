/*
 * What of the schema this version carries out.
 *
 * The schema is complete from the start, so that stored objects and older nodes know every field;
 * what a version does not do yet is refused where objects are written rather than accepted without
 * effect: an allow list that nobody enforces is worse than none. A field is refused until it has a
 * row here. Objects that arrive from peers are not held to it. Thread: pure.
 */
#ifndef SKEIN_PROTO_OFFERED_H
#define SKEIN_PROTO_OFFERED_H

#include "proto/object.h"

struct faults;

/* Add a fault for every field of spec that is set and has no effect in this version. */
void object_check_offered(const struct kind *kind, const ProtobufCMessage *message,
                          struct faults *faults);

#endif
