/*
 * YAML events to JSON values, one document at a time.
 *
 * libyaml does scanning and parsing; this file decides what is accepted. Nothing that expands is:
 * no alias, anchor, tag or merge key, so the result is never larger than its text allows, and the
 * counts of values and containers are capped as they are read.
 */
#include "proto/yaml_read.h"

#include "node/base/check.h"
#include "node/base/mem.h"
#include "proto/fault.h"
#include "proto/manifest.h"
#include "proto/utf8.h"

#include <string.h>
#include <yaml.h>

struct yaml_reader {
    yaml_parser_t parser;
    json_t *lines;       /* borrowed; NULL: not wanted */
    struct faults where; /* only its path is used */
    size_t values;
    size_t containers;
    struct yaml_document document; /* being read */
};

static int read_node(struct yaml_reader *reader, yaml_event_t *event, unsigned depth,
                     json_t **ret_value, struct err_info *err);

struct yaml_reader *yaml_reader_new(const char *text, size_t len, json_t *lines)
{
    struct yaml_reader *reader = mem_new(sizeof *reader);
    int ok = yaml_parser_initialize(&reader->parser);
    ASSERT(ok == 1); /* fails only without memory */
    yaml_parser_set_encoding(&reader->parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&reader->parser, (const unsigned char *)text, len);
    reader->lines = lines;
    return reader;
}

void yaml_reader_free(struct yaml_reader *reader)
{
    if (reader != NULL) {
        yaml_parser_delete(&reader->parser);
        mem_free(reader->document.item_lines);
        mem_free(reader);
    }
}

/* Lines and columns count from 1. */
static int error_at(int rc, yaml_mark_t mark, struct err_info *err, const char *text)
{
    return err_set(err, rc, "line %zu, column %zu: %s", mark.line + 1, mark.column + 1, text);
}

static int next_event(struct yaml_reader *reader, yaml_event_t *event, struct err_info *err)
{
    if (yaml_parser_parse(&reader->parser, event) == 1) {
        return RC_OK;
    }
    const yaml_parser_t *parser = &reader->parser;
    const char *problem = parser->problem != NULL ? parser->problem : "malformed";
    if (parser->error == YAML_READER_ERROR) {
        return err_set(err, RC_INVALID, "byte %zu: %s", parser->problem_offset, problem);
    }
    if (parser->error == YAML_MEMORY_ERROR) {
        return err_set(err, RC_NO_MEMORY, "no memory for this YAML");
    }
    return error_at(RC_INVALID, parser->problem_mark, err, problem);
}

/* JSON's grammar of numbers, and whether it is a whole one. */
static bool is_number(const char *text, bool *ret_whole)
{
    const char *at = text + (*text == '-');
    size_t digits = strspn(at, "0123456789");
    if (digits == 0 || (digits > 1 && *at == '0')) {
        return false;
    }
    at += digits;
    *ret_whole = *at == '\0';
    if (*at == '.') {
        digits = strspn(at + 1, "0123456789");
        if (digits == 0) {
            return false;
        }
        at += 1 + digits;
    }
    if (*at == 'e' || *at == 'E') {
        at++;
        at += *at == '+' || *at == '-';
        digits = strspn(at, "0123456789");
        if (digits == 0) {
            return false;
        }
        at += digits;
    }
    return *at == '\0';
}

static json_t *plain_to_json(const char *text)
{
    bool whole = false;
    if (*text == '\0' || strcmp(text, "~") == 0 || strcmp(text, "null") == 0) {
        return json_null();
    }
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
        return json_boolean(*text == 't');
    }
    if (is_number(text, &whole)) {
        json_t *number = json_loads(text, JSON_DECODE_ANY, NULL);
        /* What 63 bits do not hold stays text: 64-bit fields read it. */
        return number != NULL ? number : json_string(text);
    }
    return json_string(text);
}

static int check_scalar(const yaml_event_t *event, struct err_info *err)
{
    const char *text = (const char *)event->data.scalar.value;
    if (strlen(text) != event->data.scalar.length) {
        return error_at(RC_INVALID, event->start_mark, err, "a NUL byte is not accepted");
    }
    /* "\xff" escapes give characters, so only broken input could fail here. */
    if (!utf8_is_valid(text, event->data.scalar.length)) {
        return error_at(RC_INVALID, event->start_mark, err, "not UTF-8");
    }
    return RC_OK;
}

static int check_event(struct yaml_reader *reader, const yaml_event_t *event, unsigned depth,
                       struct err_info *err)
{
    const yaml_char_t *anchor = NULL;
    const yaml_char_t *tag = NULL;
    if (event->type == YAML_ALIAS_EVENT) {
        return error_at(RC_INVALID, event->start_mark, err, "aliases are not accepted");
    }
    if (event->type == YAML_SCALAR_EVENT) {
        anchor = event->data.scalar.anchor;
        tag = event->data.scalar.tag;
    } else if (event->type == YAML_SEQUENCE_START_EVENT) {
        anchor = event->data.sequence_start.anchor;
        tag = event->data.sequence_start.tag;
        reader->containers++;
    } else if (event->type == YAML_MAPPING_START_EVENT) {
        anchor = event->data.mapping_start.anchor;
        tag = event->data.mapping_start.tag;
        reader->containers++;
    }
    reader->values++;
    if (anchor != NULL) {
        return error_at(RC_INVALID, event->start_mark, err, "anchors are not accepted");
    }
    if (tag != NULL) {
        return error_at(RC_INVALID, event->start_mark, err, "tags are not accepted");
    }
    if (depth > MANIFEST_DEPTH_MAX && event->type != YAML_SCALAR_EVENT) {
        return error_at(RC_INVALID, event->start_mark, err, "nested too deeply");
    }
    if (reader->values > MANIFEST_VALUES_MAX || reader->containers > MANIFEST_CONTAINERS_MAX) {
        return error_at(RC_TOO_BIG, event->start_mark, err, "too many values");
    }
    return event->type == YAML_SCALAR_EVENT ? check_scalar(event, err) : RC_OK;
}

static void record_item(struct yaml_reader *reader, size_t line)
{
    struct yaml_document *document = &reader->document;
    if ((document->item_count & (document->item_count - 1)) == 0) {
        size_t room = document->item_count != 0 ? 2 * document->item_count : 16;
        document->item_lines = mem_grow(document->item_lines, room, sizeof *document->item_lines);
    }
    document->item_lines[document->item_count++] = line;
}

static int read_sequence(struct yaml_reader *reader, unsigned depth, json_t **ret_value,
                         struct err_info *err)
{
    bool record = depth == 1 || (depth == 2 && strcmp(reader->where.path, "items") == 0);
    json_t *array = json_array();
    for (size_t i = 0;; i++) {
        yaml_event_t event;
        int rc = next_event(reader, &event, err);
        if (rc == RC_OK && event.type == YAML_SEQUENCE_END_EVENT) {
            yaml_event_delete(&event);
            *ret_value = array;
            return RC_OK;
        }
        if (rc == RC_OK && record) {
            record_item(reader, event.start_mark.line + 1);
        }
        size_t mark = faults_enter_idx(&reader->where, i);
        json_t *item = NULL;
        rc = rc == RC_OK ? read_node(reader, &event, depth, &item, err) : rc;
        faults_leave(&reader->where, mark);
        if (rc != RC_OK) {
            json_decref(array);
            return rc;
        }
        (void)json_array_append_new(array, item);
    }
}

/* Takes the key event. ret_key is mem_free. */
static int read_key(struct yaml_reader *reader, yaml_event_t *event, unsigned depth,
                    const json_t *object, char **ret_key, struct err_info *err)
{
    int rc = check_event(reader, event, depth + 1, err);
    if (rc != RC_OK) {
        goto out;
    }
    if (event->type != YAML_SCALAR_EVENT) {
        rc = error_at(RC_INVALID, event->start_mark, err, "a key must be a plain text");
        goto out;
    }
    const char *key = (const char *)event->data.scalar.value;
    if (strcmp(key, "<<") == 0 && event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE) {
        rc = error_at(RC_INVALID, event->start_mark, err, "merge keys are not accepted");
        goto out;
    }
    if (json_object_get(object, key) != NULL) {
        char text[160];
        (void)snprintf(text, sizeof text, "the key \"%.100s\" is there twice", key);
        utf8_clean(text);
        rc = error_at(RC_INVALID, event->start_mark, err, text);
        goto out;
    }
    *ret_key = mem_strdup(key);
out:
    yaml_event_delete(event);
    return rc;
}

static int read_mapping(struct yaml_reader *reader, unsigned depth, json_t **ret_value,
                        struct err_info *err)
{
    json_t *object = json_object();
    for (;;) {
        yaml_event_t event;
        char *key = NULL;
        json_t *value = NULL;
        int rc = next_event(reader, &event, err);
        if (rc == RC_OK && event.type == YAML_MAPPING_END_EVENT) {
            yaml_event_delete(&event);
            *ret_value = object;
            return RC_OK;
        }
        size_t line = rc == RC_OK ? event.start_mark.line + 1 : 0;
        rc = rc == RC_OK ? read_key(reader, &event, depth, object, &key, err) : rc;
        rc = rc == RC_OK ? next_event(reader, &event, err) : rc;
        if (rc == RC_OK) {
            size_t mark = faults_enter_key(&reader->where, key);
            if (reader->lines != NULL) {
                (void)json_object_set_new(reader->lines, reader->where.path,
                                          json_integer((json_int_t)line));
            }
            rc = read_node(reader, &event, depth, &value, err);
            faults_leave(&reader->where, mark);
        }
        if (rc == RC_OK) {
            (void)json_object_set_new(object, key, value);
        }
        mem_free(key);
        if (rc != RC_OK) {
            json_decref(object);
            return rc;
        }
    }
}

/* Takes the event that begins the value. depth counts the containers around it. */
static int read_node(struct yaml_reader *reader, yaml_event_t *event, unsigned depth,
                     json_t **ret_value, struct err_info *err)
{
    int rc = check_event(reader, event, depth + 1, err);
    yaml_event_type_t type = event->type;
    if (rc == RC_OK && type == YAML_SCALAR_EVENT) {
        const char *text = (const char *)event->data.scalar.value;
        bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
        *ret_value = plain ? plain_to_json(text) : json_string(text);
    }
    yaml_event_delete(event);
    if (rc != RC_OK) {
        return rc;
    }
    if (type == YAML_SEQUENCE_START_EVENT) {
        return read_sequence(reader, depth + 1, ret_value, err);
    }
    if (type == YAML_MAPPING_START_EVENT) {
        return read_mapping(reader, depth + 1, ret_value, err);
    }
    ASSERT(type == YAML_SCALAR_EVENT);
    return RC_OK;
}

static int check_document_start(const yaml_event_t *event, struct err_info *err)
{
    const yaml_version_directive_t *version = event->data.document_start.version_directive;
    if (version != NULL && (version->major != 1 || version->minor > 2)) {
        return error_at(RC_INVALID, event->start_mark, err, "YAML 1.1 and 1.2 are accepted");
    }
    if (event->data.document_start.tag_directives.start !=
        event->data.document_start.tag_directives.end) {
        return error_at(RC_INVALID, event->start_mark, err, "%TAG is not accepted");
    }
    return RC_OK;
}

/* The value and the end of the document whose start was read. */
static int read_document(struct yaml_reader *reader, struct err_info *err)
{
    yaml_event_t event;
    int rc = next_event(reader, &event, err);
    if (rc != RC_OK) {
        return rc;
    }
    reader->document.line = event.start_mark.line + 1;
    rc = read_node(reader, &event, 0, &reader->document.value, err);
    if (rc != RC_OK) {
        return rc;
    }
    rc = next_event(reader, &event, err);
    if (rc != RC_OK) {
        json_decref(reader->document.value);
        return rc;
    }
    yaml_event_delete(&event); /* after one value libyaml has nothing but the end */
    return RC_OK;
}

int yaml_reader_next(struct yaml_reader *reader, struct yaml_document *ret_document,
                     struct err_info *err)
{
    for (;;) {
        yaml_event_t event;
        int rc = next_event(reader, &event, err);
        if (rc != RC_OK) {
            return rc;
        }
        yaml_event_type_t type = event.type;
        if (type == YAML_DOCUMENT_START_EVENT) {
            rc = check_document_start(&event, err);
        }
        yaml_event_delete(&event);
        if (type == YAML_STREAM_END_EVENT || type == YAML_NO_EVENT) {
            return RC_NOT_FOUND;
        }
        if (type == YAML_DOCUMENT_START_EVENT) {
            rc = rc == RC_OK ? read_document(reader, err) : rc;
            if (rc == RC_OK) {
                *ret_document = reader->document;
                memset(&reader->document, 0, sizeof reader->document);
            }
            return rc;
        }
    }
}
