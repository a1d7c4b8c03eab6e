/*
 * JSON merge patch (RFC 7396). Pure.
 */
#ifndef SKEIN_PROTO_MERGE_H
#define SKEIN_PROTO_MERGE_H

#include <jansson.h>

/* What target becomes under patch; both are borrowed and unchanged. target NULL: nothing there yet.
 * A new reference that shares no container with either. Depth is that of the arguments (bounded by
 * json_parse). */
json_t *json_merge_patch(const json_t *target, const json_t *patch);

#endif
