/*
 * JSON values as block-style YAML.
 *
 * A string is written plain only where no YAML reader, of version 1.1 or 1.2, takes it for
 * something else; in doubt it is quoted. Text of several lines becomes a literal block, so that
 * certificates and pages stay readable and a diff of two exports is a diff of lines.
 */
#include "proto/manifest.h"

#include "node/base/mem.h"
#include "proto/utf8.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

enum {
    KEY_SHORT_MAX = 128, /* longer keys get the "? key" form; YAML allows 1024 characters */
};

static void emit_value(const json_t *value, unsigned indent, struct buf *out);

static void put_indent(struct buf *out, unsigned indent)
{
    for (unsigned i = 0; i < indent; i++) {
        (void)buf_putc(out, ' '); /* a full buffer stays full; the caller looks */
    }
}

static uint32_t decode_char(const char *text, size_t len)
{
    const unsigned char *b = (const unsigned char *)text;
    if (len == 1) {
        return b[0];
    }
    uint32_t code = b[0] & (0x7fU >> len);
    for (size_t i = 1; i < len; i++) {
        code = code << 6 | (b[i] & 0x3fU);
    }
    return code;
}

/* Characters that may stand in a scalar as they are; line breaks of YAML 1.1 are not among them. */
static bool is_printable(uint32_t code)
{
    if (code < 0xa0) {
        return code >= 0x20 && code < 0x7f;
    }
    return code != 0x2028 && code != 0x2029 && code != 0xfeff && code != 0xfffe && code != 0xffff;
}

static bool all_printable(const char *text, bool lines)
{
    size_t len = strlen(text);
    while (len > 0) {
        size_t step = utf8_char_len(text, len);
        if (step == 0 || (!is_printable(decode_char(text, step)) && !(lines && *text == '\n'))) {
            return false;
        }
        text += step;
        len -= step;
    }
    return true;
}

/* Would some YAML reader see a number, a date, a truth value or nothing in it? */
static bool looks_typed(const char *text)
{
    static const char *const words[] = {"true", "false", "yes", "no",   "on",   "off",  "y",
                                        "n",    "null",  "~",   ".nan", ".inf", "-.inf"};
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (strcasecmp(text, words[i]) == 0) {
            return true;
        }
    }
    bool digit_first = isdigit((unsigned char)text[strspn(text, "+-.")]) != 0;
    const char *dot = strchr(text, '.');
    bool dotted_twice = dot != NULL && strchr(dot + 1, '.') != NULL;
    /* Numbers of any base, with underscores, of base 60; and dates. */
    size_t number_len = strspn(text, "0123456789abcdefABCDEFxXoO+-._:");
    return digit_first && ((text[number_len] == '\0' && !dotted_twice) ||
                           (strspn(text, "0123456789") == 4 && text[4] == '-'));
}

static bool is_plain(const char *text)
{
    static const char first[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/_.";
    static const char rest[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/_.-+=@%$;:() ";
    size_t len = strlen(text);
    if (len == 0 || strchr(first, *text) == NULL || text[strspn(text, rest)] != '\0') {
        return false;
    }
    bool key_like = strstr(text, ": ") != NULL || text[len - 1] == ':' || text[len - 1] == ' ';
    /* Three dots at the start of a line end a document. */
    return !key_like && !looks_typed(text) && strncmp(text, "...", 3) != 0;
}

static void emit_quoted(const char *text, struct buf *out)
{
    size_t len = strlen(text);
    (void)buf_putc(out, '"');
    while (len > 0) {
        size_t step = utf8_char_len(text, len);
        step = step != 0 ? step : 1;
        uint32_t code = decode_char(text, step);
        if (code == '"' || code == '\\') {
            (void)buf_printf(out, "\\%c", (char)code);
        } else if (code == '\n') {
            (void)buf_puts(out, "\\n");
        } else if (code == '\t') {
            (void)buf_puts(out, "\\t");
        } else if (is_printable(code)) {
            (void)buf_put(out, text, step);
        } else {
            (void)buf_printf(out, code > 0xffff ? "\\U%08X" : "\\u%04X", (unsigned)code);
        }
        text += step;
        len -= step;
    }
    (void)buf_putc(out, '"');
}

/* A block's first line sets its indentation, so it must not start with a blank of its own. */
static bool is_block(const char *text)
{
    return strchr(text, '\n') != NULL && strchr(" \n", text[0]) == NULL &&
           all_printable(text, true);
}

/* With the line break at its end. */
static void emit_block(const char *text, unsigned indent, struct buf *out)
{
    size_t len = strlen(text);
    size_t breaks = 0;
    while (breaks < len && text[len - 1 - breaks] == '\n') {
        breaks++;
    }
    (void)buf_puts(out, breaks == 0 ? "|-\n" : breaks == 1 ? "|\n" : "|+\n");
    while (*text != '\0') {
        size_t line_len = strcspn(text, "\n");
        if (line_len != 0) {
            put_indent(out, indent);
            (void)buf_put(out, text, line_len);
        }
        (void)buf_putc(out, '\n');
        text += line_len + (text[line_len] == '\n');
    }
}

static void emit_scalar(const json_t *value, unsigned indent, struct buf *out)
{
    if (!json_is_string(value)) {
        char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
        (void)buf_puts(out, text != NULL ? text : "null");
        mem_free(text);
    } else if (is_plain(json_string_value(value))) {
        (void)buf_puts(out, json_string_value(value));
    } else if (is_block(json_string_value(value))) {
        /* A document that is one block is indented too: "---" may be a line of it. */
        emit_block(json_string_value(value), MAX(indent, 2U), out);
        return;
    } else {
        emit_quoted(json_string_value(value), out);
    }
    (void)buf_putc(out, '\n');
}

static bool is_filled(const json_t *value)
{
    return json_object_size(value) != 0 || json_array_size(value) != 0;
}

/* After "key:" or "? key\n:"; indent is that of the key. */
static void emit_after_key(const json_t *value, unsigned indent, struct buf *out)
{
    if (is_filled(value)) {
        (void)buf_putc(out, '\n');
        put_indent(out, indent + 2);
    } else {
        (void)buf_putc(out, ' ');
    }
    emit_value(value, indent + 2, out);
}

/* The cursor stands at column indent already, and does so for every kind of value. */
static void emit_object(const json_t *object, unsigned indent, struct buf *out)
{
    const char *key = NULL;
    json_t *item = NULL;
    bool first = true;
    json_object_foreach(unconst(object), key, item)
    {
        bool is_long = strlen(key) > KEY_SHORT_MAX;
        if (!first) {
            put_indent(out, indent);
        }
        first = false;
        (void)buf_puts(out, is_long ? "? " : "");
        if (is_plain(key)) {
            (void)buf_puts(out, key);
        } else {
            emit_quoted(key, out);
        }
        if (is_long) {
            (void)buf_putc(out, '\n');
            put_indent(out, indent);
        }
        (void)buf_putc(out, ':');
        emit_after_key(item, indent, out);
    }
}

static void emit_array(const json_t *array, unsigned indent, struct buf *out)
{
    for (size_t i = 0; i < json_array_size(array); i++) {
        if (i != 0) {
            put_indent(out, indent);
        }
        (void)buf_puts(out, "- ");
        emit_value(json_array_get(array, i), indent + 2, out);
    }
}

static void emit_value(const json_t *value, unsigned indent, struct buf *out)
{
    if (json_is_object(value) && is_filled(value)) {
        emit_object(value, indent, out);
    } else if (json_is_array(value) && is_filled(value)) {
        emit_array(value, indent, out);
    } else {
        emit_scalar(value, indent, out);
    }
}

void yaml_emit(const json_t *value, struct buf *out)
{
    emit_value(value, 0, out);
}
