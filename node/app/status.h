/*
 * Fills the status of an object as this node sees it, at the moment when somebody looks.
 */
#ifndef SKEIN_NODE_APP_STATUS_H
#define SKEIN_NODE_APP_STATUS_H

#include "node/app/routing.h"
#include "proto/object.h"

/* Replaces object->message->status. Kinds without a status here get none. */
void status_fill(const struct routing *routing, const struct object *object);

#endif
