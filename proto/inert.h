/*
 * Fields that are accepted, kept and replicated, but that this version does not act on.
 *
 * The schema is ahead of the behaviour. So that nobody believes in an access list that is not
 * enforced, every answer to a write carries these as warnings. A field leaves the table in inert.c
 * with the change that gives it effect.
 */
#ifndef SKEIN_PROTO_INERT_H
#define SKEIN_PROTO_INERT_H

#include "proto/fault.h"
#include "proto/object.h"

/* Add one entry per such field that is set, path and text, to warnings (an initialised list of
 * faults). */
void object_warnings(const struct kind *kind, const ProtobufCMessage *message,
                     struct faults *warnings);

#endif
