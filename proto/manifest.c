/*
 * Manifests: documents of YAML or JSON to one flat list of objects.
 */
#include "proto/manifest.h"

#include "node/base/check.h"
#include "node/base/mem.h"
#include "proto/utf8.h"
#include "proto/yaml_read.h"

#include <string.h>

/* What a JSON text would become, found without building it. Malformed text is the parser's to
 * refuse; here it is only counted. */
static int json_weigh(const char *text, size_t len, struct err_info *err)
{
    size_t values = 1;
    size_t containers = 0;
    size_t depth = 0;
    bool quoted = false;
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (quoted) {
            i += c == '\\';
            quoted = c != '"';
        } else if (c == '"') {
            quoted = true;
        } else if (c == '[' || c == '{') {
            containers++;
            values++;
            depth++;
        } else if (c == ']' || c == '}') {
            depth -= depth != 0;
        } else if (c == ',') {
            values++;
        }
        if (depth > MANIFEST_DEPTH_MAX) {
            return err_set(err, RC_INVALID, "byte %zu: nested too deeply", i);
        }
    }
    if (values > MANIFEST_VALUES_MAX || containers > MANIFEST_CONTAINERS_MAX) {
        return err_set(err, RC_TOO_BIG, "too many values");
    }
    return RC_OK;
}

static int check_size(size_t len, struct err_info *err)
{
    if (len > MANIFEST_BYTES_MAX) {
        return err_set(err, RC_TOO_BIG, "%zu bytes; at most %d are accepted", len,
                       MANIFEST_BYTES_MAX);
    }
    return RC_OK;
}

int json_parse(const char *text, size_t len, json_t **ret_value, struct err_info *err)
{
    int rc = check_size(len, err);
    rc = rc == RC_OK ? json_weigh(text, len, err) : rc;
    if (rc != RC_OK) {
        return rc;
    }
    json_error_t error;
    json_t *value = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    if (value == NULL) {
        utf8_clean(error.text); /* it quotes the input, cut anywhere */
        return err_set(err, RC_INVALID, "line %d, column %d: %s", error.line, error.column,
                       error.text);
    }
    *ret_value = value;
    return RC_OK;
}

int yaml_parse_one(const char *text, size_t len, json_t **ret_value, json_t **ret_lines,
                   struct err_info *err)
{
    int rc = check_size(len, err);
    if (rc != RC_OK) {
        return rc;
    }
    json_t *lines = ret_lines != NULL ? json_object() : NULL;
    struct yaml_document first = {.value = NULL};
    struct yaml_document second = {.value = NULL};
    struct yaml_reader *reader = yaml_reader_new(text, len, lines);
    rc = yaml_reader_next(reader, &first, err);
    if (rc == RC_NOT_FOUND) {
        first.value = json_null();
        rc = RC_OK;
    } else if (rc == RC_OK) {
        rc = yaml_reader_next(reader, &second, err);
        if (rc == RC_OK) {
            rc = err_set(err, RC_INVALID, "line %zu: one document is expected", second.line);
        } else if (rc == RC_NOT_FOUND) {
            rc = RC_OK;
        }
    }
    yaml_reader_free(reader);
    mem_free(first.item_lines);
    mem_free(second.item_lines);
    json_decref(second.value);
    if (rc != RC_OK) {
        json_decref(first.value);
        json_decref(lines);
        return rc;
    }
    *ret_value = first.value;
    if (ret_lines != NULL) {
        *ret_lines = lines;
    }
    return RC_OK;
}

/* The documents found so far. */
struct listing {
    json_t *documents;
    size_t *lines;
    size_t count;
    size_t room;
};

static int listing_add(struct listing *listing, json_t *value, size_t line, struct err_info *err)
{
    if (json_is_null(value)) {
        return RC_OK;
    }
    if (listing->count == MANIFEST_OBJECTS_MAX) {
        return err_set(err, RC_TOO_BIG, "more than %d objects", MANIFEST_OBJECTS_MAX);
    }
    if (listing->count == listing->room) {
        listing->room = listing->room != 0 ? 2 * listing->room : 16;
        listing->lines = mem_grow(listing->lines, listing->room, sizeof *listing->lines);
    }
    listing->lines[listing->count++] = line;
    (void)json_array_append(listing->documents, value);
    return RC_OK;
}

/* The list in a document that is one, or has one in the form of the API; else NULL. */
static json_t *list_of(json_t *document)
{
    if (json_is_array(document)) {
        return document;
    }
    const json_t *kind = json_object_get(document, "kind");
    json_t *items = json_object_get(document, "items");
    bool is_list =
        kind == NULL || (json_is_string(kind) && strcmp(json_string_value(kind), "List") == 0);
    return is_list && json_is_array(items) && json_object_get(document, "spec") == NULL ? items
                                                                                        : NULL;
}

static int listing_add_document(struct listing *listing, const struct yaml_document *document,
                                struct err_info *err)
{
    json_t *list = list_of(document->value);
    if (list == NULL) {
        return listing_add(listing, document->value, document->line, err);
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        size_t line = i < document->item_count ? document->item_lines[i] : 0;
        int rc = listing_add(listing, json_array_get(list, i), line, err);
        if (rc != RC_OK) {
            return rc;
        }
    }
    return RC_OK;
}

static bool looks_like_json(const char *text, size_t len)
{
    while (len > 0 && strchr(" \t\r\n", *text) != NULL && *text != '\0') {
        text++;
        len--;
    }
    return len > 0 && (*text == '{' || *text == '[');
}

static int parse_json(const char *text, size_t len, struct listing *listing, struct err_info *err)
{
    struct yaml_document document = {.value = NULL};
    int rc = json_parse(text, len, &document.value, err);
    rc = rc == RC_OK ? listing_add_document(listing, &document, err) : rc;
    json_decref(document.value);
    return rc;
}

static int parse_yaml(const char *text, size_t len, struct listing *listing, struct err_info *err)
{
    struct yaml_reader *reader = yaml_reader_new(text, len, NULL);
    int rc = RC_OK;
    while (rc == RC_OK) {
        struct yaml_document document = {.value = NULL};
        rc = yaml_reader_next(reader, &document, err);
        rc = rc == RC_OK ? listing_add_document(listing, &document, err) : rc;
        mem_free(document.item_lines);
        json_decref(document.value);
    }
    yaml_reader_free(reader);
    return rc == RC_NOT_FOUND ? RC_OK : rc;
}

int manifest_parse(const char *text, size_t len, json_t **ret_documents, size_t **ret_lines,
                   struct err_info *err)
{
    int rc = check_size(len, err);
    if (rc != RC_OK) {
        return rc;
    }
    struct listing listing = {.documents = json_array()};
    rc = looks_like_json(text, len) ? parse_json(text, len, &listing, err) : RC_INVALID;
    if (rc == RC_INVALID) {
        /* A YAML mapping in braces looks like JSON and is none; so are several documents of JSON.
         * Of text that is neither, what JSON says of it is kept: braces are mostly meant as JSON.
         */
        struct err_info yaml_err = {""};
        rc = parse_yaml(text, len, &listing, looks_like_json(text, len) ? &yaml_err : err);
        if (rc == RC_TOO_BIG && yaml_err.text[0] != '\0') {
            (void)err_set(err, rc, "%s", yaml_err.text); /* returns rc, which is set */
        }
    }
    if (rc != RC_OK) {
        json_decref(listing.documents);
        mem_free(listing.lines);
        return rc;
    }
    *ret_documents = listing.documents;
    if (ret_lines != NULL) {
        *ret_lines = listing.lines;
    } else {
        mem_free(listing.lines);
    }
    return RC_OK;
}
