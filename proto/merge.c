/*
 * JSON merge patch. Pure.
 */
#include "proto/merge.h"

#include "node/base/defs.h"

json_t *json_merge_patch(const json_t *target, const json_t *patch)
{
    if (!json_is_object(patch)) {
        return json_deep_copy(patch);
    }
    json_t *result = json_is_object(target) ? json_deep_copy(target) : json_object();
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach(unconst(patch), key, value)
    {
        if (json_is_null(value)) {
            (void)json_object_del(result, key); /* deleting what is not there is no error */
        } else {
            json_t *merged = json_merge_patch(json_object_get(result, key), value);
            (void)json_object_set_new(result, key, merged);
        }
    }
    return result;
}
