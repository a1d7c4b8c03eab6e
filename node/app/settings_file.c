/*
 * Walks the nodes of a libyaml document. Depth and size are bounded; aliases cannot nest deeper
 * than the depth allows, so they need no rule of their own.
 */
#include "node/app/settings_file.h"

#include "node/app/settings.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

enum { DEPTH_MAX = 4, PATH_MAX_BYTES = 256 };

struct walk {
    yaml_document_t *document;
    const char *file;
    settings_file_visit visit;
    void *arg;
    struct err_info *err;
};

static const char *scalar(const yaml_node_t *node)
{
    return (const char *)node->data.scalar.value;
}

static int walk_node(struct walk *walk, yaml_node_t *node, const char *path, int index, int depth)
{
    size_t line = node->start_mark.line + 1;
    if (depth > DEPTH_MAX) {
        return err_set(walk->err, RC_INVALID, "%s:%zu: %s is nested too deep", walk->file, line,
                       path);
    }
    if (node->type == YAML_SCALAR_NODE) {
        struct settings_file_value value = {path, scalar(node), line, index};
        return walk->visit(walk->arg, &value, walk->err);
    }
    if (node->type == YAML_SEQUENCE_NODE && index < 0) {
        int at = 0;
        if (node->data.sequence.items.start == node->data.sequence.items.top) {
            struct settings_file_value none = {path, "", line, SETTINGS_FILE_EMPTY_LIST};
            return walk->visit(walk->arg, &none, walk->err);
        }
        for (yaml_node_item_t *item = node->data.sequence.items.start;
             item < node->data.sequence.items.top; item++) {
            yaml_node_t *child = yaml_document_get_node(walk->document, *item);
            int rc = walk_node(walk, child, path, at++, depth + 1);
            if (rc != RC_OK) {
                return rc;
            }
        }
        return RC_OK;
    }
    if (node->type != YAML_MAPPING_NODE || index >= 0) {
        return err_set(walk->err, RC_INVALID, "%s:%zu: %s: a list holds plain values only",
                       walk->file, line, path);
    }
    for (yaml_node_pair_t *pair = node->data.mapping.pairs.start;
         pair < node->data.mapping.pairs.top; pair++) {
        yaml_node_t *key = yaml_document_get_node(walk->document, pair->key);
        yaml_node_t *child = yaml_document_get_node(walk->document, pair->value);
        char inner[PATH_MAX_BYTES];
        int len = key->type == YAML_SCALAR_NODE ? snprintf(inner, sizeof(inner), "%s%s%s", path,
                                                           *path != '\0' ? "." : "", scalar(key))
                                                : -1;
        if (len < 0 || (size_t)len >= sizeof(inner)) {
            return err_set(walk->err, RC_INVALID, "%s:%zu: a key must be a short plain word",
                           walk->file, key->start_mark.line + 1);
        }
        int rc = walk_node(walk, child, inner, -1, depth + 1);
        if (rc != RC_OK) {
            return rc;
        }
    }
    return RC_OK;
}

static int read_parsed(struct walk *walk, yaml_parser_t *parser)
{
    yaml_document_t document;
    if (!yaml_parser_load(parser, &document)) {
        return err_set(walk->err, RC_INVALID, "%s:%zu: not YAML: %s", walk->file,
                       parser->problem_mark.line + 1,
                       parser->problem != NULL ? parser->problem : "unknown problem");
    }
    walk->document = &document;
    int rc = RC_OK;
    yaml_node_t *root = yaml_document_get_root_node(&document);
    if (root != NULL && root->type != YAML_MAPPING_NODE) {
        rc = err_set(walk->err, RC_INVALID,
                     "%s:1: a settings file is a mapping (node: ..., listen: "
                     "...)",
                     walk->file);
    } else if (root != NULL) {
        rc = walk_node(walk, root, "", -1, 0);
    }
    walk->document = NULL;
    yaml_document_delete(&document);
    return rc;
}

int settings_file_read(const char *file, settings_file_visit visit, void *arg, struct err_info *err)
{
    FILE *in = fopen(file, "rbe");
    if (in == NULL) {
        return err_set(err, RC_IO, "cannot read the settings file %s: %s", file, strerror(errno));
    }
    int rc = RC_OK;
    yaml_parser_t parser;
    if (fseek(in, 0, SEEK_END) != 0 || ftell(in) > SETTINGS_FILE_MAX ||
        fseek(in, 0, SEEK_SET) != 0) {
        rc =
            err_set(err, RC_INVALID, "%s: not a file of at most %d bytes", file, SETTINGS_FILE_MAX);
    } else if (!yaml_parser_initialize(&parser)) {
        rc = err_set(err, RC_NO_MEMORY, "%s: out of memory", file);
    } else {
        struct walk walk = {.file = file, .visit = visit, .arg = arg, .err = err};
        yaml_parser_set_input_file(&parser, in);
        rc = read_parsed(&walk, &parser);
        yaml_parser_delete(&parser);
    }
    (void)fclose(in); /* opened for reading: nothing to lose */
    return rc;
}
