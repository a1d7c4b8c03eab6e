/* unit: proto */
/*
 * Packed objects of a peer or a damaged disk: the first byte chooses the kind, the rest is
 * unpacked. What unpacks can be shown, checked, brought to canonical form and packed again.
 */
#include "node/base/check.h"
#include "node/base/mem.h"
#include "proto/fault.h"
#include "proto/json.h"
#include "proto/validate.h"

#include <string.h>

static void check_json(const struct kind *kind, const ProtobufCMessage *message)
{
    struct faults faults;
    faults_init(&faults);
    json_t *value = message_to_json(message);
    char *text = json_text(value, 2);
    mem_free(text);
    ProtobufCMessage *back = message_from_json(kind->descriptor, value, &faults);
    /* Not all of it reads back: a value of an enum may have no name, a string may be unset. */
    if (!faults_any(&faults)) {
        json_t *again = message_to_json(back);
        ASSERT(json_equal(value, again));
        json_decref(again);
    }
    message_keep_unknown(back, message);
    message_free(back);
    json_decref(value);
    faults_deinit(&faults);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    const struct kind *kind = len != 0 ? kind_by_number((uint16_t)(data[0] % 6 + 1)) : NULL;
    struct object_message *object = NULL;
    if (kind == NULL || object_unpack(kind, data + 1, len - 1, &object, NULL) != RC_OK) {
        return 0;
    }
    check_json(kind, &object->base);

    struct faults faults;
    faults_init(&faults);
    object_normalise(kind, &object->base);
    object_validate(kind, &object->base, &faults);
    char id[OBJECT_ID_MAX + 1];
    if (!faults_any(&faults)) {
        ASSERT(object_id(kind, object->metadata, id) == strlen(id));
    }
    faults_deinit(&faults);

    ProtobufCMessage *copy = message_copy(&object->base);
    ASSERT(message_has_unknown(copy) == message_has_unknown(&object->base));
    uint8_t *bytes = NULL;
    size_t packed = 0;
    if (object_pack(kind, copy, &bytes, &packed, NULL) == RC_OK) {
        struct object_message *again = NULL;
        ASSERT(object_unpack(kind, bytes, packed, &again, NULL) == RC_OK);
        message_free(&again->base);
        mem_free(bytes);
    }
    message_free(copy);
    message_free(&object->base);
    return 0;
}
