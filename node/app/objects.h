/*
 * The table of objects: every live row of the cluster, unpacked.
 *
 * The gossip core owns the rows and is the truth; this table follows its `applied` calls. A row
 * that an older or newer node wrote and that does not unpack here is kept out of the table (and out
 * of traffic), counted, and told once. Thread: the control thread.
 */
#ifndef SKEIN_NODE_APP_OBJECTS_H
#define SKEIN_NODE_APP_OBJECTS_H

#include "gossip/core/row.h"
#include "proto/object.h"

struct objects;

struct row_seal;

struct objects *objects_new(void);
void objects_free(struct objects *objects);

/* Open the values of secret kinds with this from now on; borrowed. Without this call they are taken
 * as they are. */
void objects_use_seal(struct objects *objects, struct row_seal *seal);

/* What one row changed. Either may be NULL. */
struct objects_change {
    const struct object *now;
    struct object *before; /* to be freed with objects_change_done */
};

/* Take over a row (also a tombstone). */
void objects_apply(struct objects *objects, const struct row *row,
                   struct objects_change *ret_change);
void objects_change_done(struct objects_change *change);

const struct object *objects_find(const struct objects *objects, const struct kind *kind,
                                  const char *id);

/* In ascending byte order of id from the first id >= from on (NULL: from the start). */
void objects_each(struct objects *objects, const struct kind *kind, const char *from,
                  bool (*visit)(void *arg, const struct object *object), void *arg);

size_t objects_count(const struct objects *objects, const struct kind *kind);

/* Rows that could not be unpacked since the start. */
uint64_t objects_damaged(const struct objects *objects);

/* Text that changes with every write of a key and is the same on every node. */
void objects_etag(const struct row *row, char ret_etag[40]);

#endif
