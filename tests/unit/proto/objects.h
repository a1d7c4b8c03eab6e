/*
 * Shared by the tests of proto: objects from YAML text, and their faults as text.
 */
#ifndef SKEIN_TESTS_UNIT_PROTO_OBJECTS_H
#define SKEIN_TESTS_UNIT_PROTO_OBJECTS_H

#include "tests/support/unit.h"

#include "node/base/mem.h"
#include "proto/fault.h"
#include "proto/json.h"
#include "proto/manifest.h"
#include "proto/validate.h"

/* The first document of a manifest; a new reference. */
static inline json_t *document_of(const char *text)
{
    json_t *documents = NULL;
    struct err_info err = {""};
    int rc = manifest_parse(text, strlen(text), &documents, NULL, &err);
    assert_string_equal(err.text, "");
    assert_int_equal(rc, RC_OK);
    json_t *first = json_incref(json_array_get(documents, 0));
    assert_non_null(first);
    json_decref(documents);
    return first;
}

/* An object that must be good; message_free. */
static inline struct object_message *object_of(const char *text, const struct kind **ret_kind)
{
    const struct kind *kind = NULL;
    struct faults faults;
    faults_init(&faults);
    json_t *document = document_of(text);
    struct object_message *object = object_from_json(document, NULL, &kind, &faults);
    if (faults.count != 0) {
        print_error("%s: %s\n", faults.items[0].path, faults.items[0].text);
    }
    assert_non_null(object);
    json_decref(document);
    faults_deinit(&faults);
    if (ret_kind != NULL) {
        *ret_kind = kind;
    }
    return object;
}

/* All faults of a document, one line each; mem_free. */
static inline char *faults_of(const char *text)
{
    const struct kind *kind = NULL;
    struct faults faults;
    faults_init(&faults);
    json_t *document = document_of(text);
    struct object_message *object = object_from_json(document, NULL, &kind, &faults);
    assert_true((object == NULL) == faults_any(&faults));
    json_decref(document);
    message_free(object != NULL ? &object->base : NULL);
    struct buf out;
    buf_init(&out, 1 << 20);
    faults_format(&faults, &out);
    faults_deinit(&faults);
    return buf_take(&out, NULL);
}

#define assert_faults(text, expected)                                                              \
    do {                                                                                           \
        char *found_ = faults_of(text);                                                            \
        assert_string_equal(found_, expected);                                                     \
        mem_free(found_);                                                                          \
    } while (0)

#endif
