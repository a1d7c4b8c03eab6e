/*
 * The difference of two objects, field by field: for dry runs, `skeinctl diff` and the audit trail.
 *
 * Lists are compared by position, except lists of objects that carry a name of their own
 * ("backend", "address", "name"): there an insertion is one difference, not all that follow, and a
 * mere change of order is one difference of the list. Nothing is found exactly when the objects are
 * equal, order of fields aside. Thread: pure.
 */
#ifndef SKEIN_PROTO_DIFF_H
#define SKEIN_PROTO_DIFF_H

#include "node/base/defs.h"

#include <jansson.h>

/*
 * [{"path": "spec.to[1].weight", "old": 90, "new": 10}, ...] in the order of the fields; "old" is
 * missing for what was added, "new" for what was removed. old or new NULL: the object as a whole
 * is new or goes (one entry with path ""). status and the server-set fields of metadata are left
 * out. A new reference.
 */
json_t *object_diff(const json_t *old_object, const json_t *new_object);

#endif
