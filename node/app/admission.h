/*
 * Who owns a path of a host. A pure function of the set of claims, so that every node decides alike
 * whatever the order in which it heard of them.
 *
 * Of two routes with one host, path and path type the older one serves; equal age is settled by id.
 */
#ifndef SKEIN_NODE_APP_ADMISSION_H
#define SKEIN_NODE_APP_ADMISSION_H

#include "node/base/defs.h"

struct claim {
    const char *path; /* canonical */
    int path_type;
    uint64_t created_hlc;
    const char *id;
    void *owner;                  /* for the caller */
    const struct claim *loses_to; /* set by admission_decide; NULL: admitted */
};

/* Sorts the claims of one host and settles each. loses_to points into the array. */
void admission_decide(struct claim *claims, size_t count);

#endif
