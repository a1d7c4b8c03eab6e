/* unit: proto */
/*
 * Manifests: any bytes are refused or become documents; what became a document is written as YAML
 * that reads back as the same value. The bytes serve as a label selector, too.
 */
#include "node/base/check.h"
#include "node/base/mem.h"
#include "proto/fault.h"
#include "proto/json.h"
#include "proto/manifest.h"
#include "proto/selector.h"

#include <string.h>

static void check_document(const json_t *document)
{
    struct buf text;
    struct err_info err;
    json_t *back = NULL;
    buf_init(&text, 16 << 20);
    yaml_emit(document, &text);
    ASSERT(!text.full);
    ASSERT(yaml_parse_one(text.data, text.len, &back, NULL, &err) == RC_OK);
    ASSERT(json_equal(document, back));
    json_decref(back);
    buf_deinit(&text);

    struct faults faults;
    const struct kind *kind = NULL;
    faults_init(&faults);
    struct object_message *object = object_from_json(document, NULL, &kind, &faults);
    message_free(object != NULL ? &object->base : NULL);
    faults_deinit(&faults);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct err_info err;
    json_t *documents = NULL;
    size_t *lines = NULL;
    if (manifest_parse((const char *)data, len, &documents, &lines, &err) == RC_OK) {
        for (size_t i = 0; i < json_array_size(documents); i++) {
            ASSERT(lines[i] <= len + 1);
            check_document(json_array_get(documents, i));
        }
        json_decref(documents);
        mem_free(lines);
    }
    char *text = mem_strndup((const char *)data, len);
    struct selector *selector = NULL;
    if (selector_parse(text, &selector, &err) == RC_OK) {
        (void)selector_matches(selector, NULL, 0);
        selector_free(selector);
    }
    mem_free(text);
    return 0;
}
