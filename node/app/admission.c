/*
 * Claims sorted by path, then by age: the first of each group has it.
 */
#include "node/app/admission.h"

#include <stdlib.h>
#include <string.h>

static bool same_place(const struct claim *a, const struct claim *b)
{
    return a->path_type == b->path_type && strcmp(a->path, b->path) == 0;
}

static int compare_claims(const void *left, const void *right)
{
    const struct claim *a = left;
    const struct claim *b = right;
    int order = strcmp(a->path, b->path);
    if (order != 0) {
        return order;
    }
    if (a->path_type != b->path_type) {
        return a->path_type < b->path_type ? -1 : 1;
    }
    if (a->created_hlc != b->created_hlc) {
        return a->created_hlc < b->created_hlc ? -1 : 1;
    }
    return strcmp(a->id, b->id);
}

void admission_decide(struct claim *claims, size_t count)
{
    if (count == 0) {
        return;
    }
    qsort(claims, count, sizeof(*claims), compare_claims);
    const struct claim *holder = NULL;
    for (size_t i = 0; i < count; i++) {
        if (holder != NULL && same_place(holder, &claims[i])) {
            claims[i].loses_to = holder;
        } else {
            claims[i].loses_to = NULL;
            holder = &claims[i];
        }
    }
}
