/*
 * Fills the status of an object as this node sees it, at the moment when somebody looks.
 */
#ifndef SKEIN_NODE_APP_STATUS_H
#define SKEIN_NODE_APP_STATUS_H

#include "gossip/core/gossip.h"
#include "node/app/routing.h"
#include "proto/object.h"

/* Replaces object->message->status. Kinds without a status here get none. core may be NULL: then
 * nodes have none either. */
void status_fill(const struct routing *routing, const struct gossip *core,
                 const struct object *object);

/* "alive", "suspect", "dead", "left". Static storage. */
const char *status_member_state(enum member_state state);

#endif
