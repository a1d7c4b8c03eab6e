/*
 * Manifests: YAML (several documents, lists) or JSON text to objects in JSON form, and back.
 *
 * YAML is read as the JSON subset of YAML 1.2: plain true, false, null, integers and floats are
 * typed, everything else and everything quoted is a string; "yes", "on", "0777" and "1:30" are
 * strings. Anchors, aliases, tags, merge keys and directives other than %YAML are refused, so text
 * cannot expand (YAML bombs). Keys are unique. All sizes are capped before anything is built.
 * Thread: pure.
 */
#ifndef SKEIN_PROTO_MANIFEST_H
#define SKEIN_PROTO_MANIFEST_H

#include "node/base/buf.h"
#include "node/base/defs.h"
#include "node/base/errors.h"

#include <jansson.h>

enum {
    MANIFEST_BYTES_MAX = 32 << 20, /* of text */
    MANIFEST_DEPTH_MAX = 32,
    MANIFEST_OBJECTS_MAX = 20000,
    /* Of all documents together; they bound memory, since "[]" becomes some 100 bytes. */
    MANIFEST_VALUES_MAX = 1500000,
    MANIFEST_CONTAINERS_MAX = 250000, /* objects and lists among them */
};

/*
 * Parse text into a JSON array of documents: top-level lists and {"items": [...]} (the API's list
 * form, with or without kind: List) are flattened, empty documents dropped.
 *
 * ret_lines   for each document the line it starts at (1 for the first); mem_free. 0: not known
 * RC_INVALID  err says what and where ("line 7, column 3: ..."); RC_TOO_BIG above a cap
 *
 * Text whose first byte that is not blank is '{' or '[' is tried as JSON first (one value), then as
 * YAML; where it is neither, the error is that of JSON.
 */
MUST_CHECK int manifest_parse(const char *text, size_t len, json_t **ret_documents,
                              size_t **ret_lines, struct err_info *err);

/* One JSON text, strictly: duplicate keys, trailing bytes and depth above MANIFEST_DEPTH_MAX are
 * refused. RC_INVALID, RC_TOO_BIG. */
MUST_CHECK int json_parse(const char *text, size_t len, json_t **ret_value, struct err_info *err);

/*
 * One YAML document: for settings files and the like. json_null() when it is empty.
 *
 * ret_lines   NULL, or an object that gives the line of every key by its path:
 *             {"node": 1, "node.name": 2, "listen.http[0].port": 7}
 */
MUST_CHECK int yaml_parse_one(const char *text, size_t len, json_t **ret_value, json_t **ret_lines,
                              struct err_info *err);

/* Append value as a block-style YAML document without "---". What it writes, manifest_parse reads
 * back as the same value. */
void yaml_emit(const json_t *value, struct buf *out);

#endif
