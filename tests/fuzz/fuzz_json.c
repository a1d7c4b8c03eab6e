/* unit: proto */
/*
 * JSON of a user: parsed, read as an object, written again. What was accepted must be a fixed
 * point: the same JSON, the same bytes packed.
 */
#include "node/base/check.h"
#include "node/base/mem.h"
#include "proto/diff.h"
#include "proto/fault.h"
#include "proto/json.h"
#include "proto/manifest.h"
#include "proto/merge.h"
#include "proto/offered.h"
#include "proto/validate.h"

#include <string.h>

static void check_object(const json_t *document)
{
    struct faults faults;
    const struct kind *kind = NULL;
    faults_init(&faults);
    struct object_message *object = object_from_json(document, NULL, &kind, &faults);
    ASSERT((object == NULL) == faults_any(&faults));
    faults_deinit(&faults);
    if (object == NULL) {
        return;
    }
    object_check_offered(kind, &object->base, &faults);
    faults_deinit(&faults);

    char id[OBJECT_ID_MAX + 1];
    ASSERT(object_id(kind, object->metadata, id) == strlen(id));

    faults_init(&faults);
    json_t *value = object_to_json(kind, &object->base);
    struct object_message *again = object_from_json(value, kind, &kind, &faults);
    ASSERT(again != NULL);
    json_t *value_again = object_to_json(kind, &again->base);
    ASSERT(json_equal(value, value_again));
    json_decref(value_again);

    uint8_t *bytes = NULL;
    size_t len = 0;
    ASSERT(object_pack(kind, &object->base, &bytes, &len, NULL) == RC_OK);
    struct object_message *unpacked = NULL;
    ASSERT(object_unpack(kind, bytes, len, &unpacked, NULL) == RC_OK);
    json_t *unpacked_value = object_to_json(kind, &unpacked->base);
    json_t *diff = object_diff(value, unpacked_value);
    ASSERT(json_array_size(diff) == 0);
    json_decref(diff);
    json_decref(unpacked_value);
    json_decref(value);
    mem_free(bytes);
    message_free(&object->base);
    message_free(&again->base);
    message_free(&unpacked->base);
    faults_deinit(&faults);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    json_t *document = NULL;
    struct err_info err;
    if (json_parse((const char *)data, len, &document, &err) != RC_OK) {
        ASSERT(strlen(err.text) < sizeof err.text);
        return 0;
    }
    check_object(document);

    /* A patch that was applied changes nothing when it is applied again. */
    json_t *patched = json_merge_patch(NULL, document);
    json_t *twice = json_merge_patch(patched, document);
    ASSERT(json_equal(patched, twice));
    json_t *diff = object_diff(patched, twice);
    ASSERT(json_array_size(diff) == 0);
    json_decref(diff);
    json_decref(patched);
    json_decref(twice);
    json_decref(document);
    return 0;
}
