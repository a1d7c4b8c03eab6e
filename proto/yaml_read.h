/*
 * YAML events to JSON values. Internal to this unit: manifest.h is the interface.
 */
#ifndef SKEIN_PROTO_YAML_READ_H
#define SKEIN_PROTO_YAML_READ_H

#include "node/base/defs.h"
#include "node/base/errors.h"

#include <jansson.h>

/* The line that each document starts at. */
struct yaml_document {
    json_t *value; /* a reference; json_null() when the document is empty */
    size_t line;
    /* Where the document is a list, or has one under "items": the line of each element. */
    size_t *item_lines; /* mem_free */
    size_t item_count;
};

struct yaml_reader;

/* text is borrowed until yaml_reader_free. lines: NULL, or an object to fill with key lines. */
struct yaml_reader *yaml_reader_new(const char *text, size_t len, json_t *lines);
void yaml_reader_free(struct yaml_reader *reader);

/* RC_NOT_FOUND: no more documents. RC_INVALID, RC_TOO_BIG: err says where; stop then. */
MUST_CHECK int yaml_reader_next(struct yaml_reader *reader, struct yaml_document *ret_document,
                                struct err_info *err);

#endif
