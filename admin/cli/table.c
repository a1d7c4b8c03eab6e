/*
 * Aligned columns and cells by path; see the header.
 */
#include "admin/cli/table.h"

#include "node/base/check.h"
#include "node/base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

void table_init(struct table *table, size_t columns)
{
    ASSERT(columns > 0 && columns <= TABLE_COLUMNS_MAX);
    *table = (struct table){.columns = columns};
}

void table_deinit(struct table *table)
{
    for (size_t i = 0; i < table->cell_count; i++) {
        MEM_FREE(table->cells[i]);
    }
    MEM_FREE(table->cells);
    table->cell_count = 0;
}

void table_add(struct table *table, const char *text)
{
    if (table->cell_count % 64 == 0) {
        table->cells = mem_grow(table->cells, table->cell_count + 64, sizeof(*table->cells));
    }
    char *cell = mem_strdup(text == NULL || text[0] == '\0' ? "-" : text);
    for (char *at = cell; *at != '\0'; at++) {
        if ((unsigned char)*at < 0x20 || *at == 0x7f) {
            *at = '?';
        }
    }
    table->cells[table->cell_count++] = cell;
}

/* Code points: good enough for names, which are ASCII, and for the labels that are not. */
static size_t text_width(const char *text)
{
    size_t width = 0;
    for (; *text != '\0'; text++) {
        width += ((unsigned char)*text & 0xc0) != 0x80;
    }
    return width;
}

void table_print(const struct table *table, struct buf *out)
{
    size_t widths[TABLE_COLUMNS_MAX] = {0};
    for (size_t i = 0; i < table->cell_count; i++) {
        size_t width = text_width(table->cells[i]);
        widths[i % table->columns] = MAX(widths[i % table->columns], width);
    }
    for (size_t i = 0; i < table->cell_count; i++) {
        size_t column = i % table->columns;
        bool last = column + 1 == table->columns;
        (void)buf_puts(out, table->cells[i]);
        size_t gap = last ? 0 : widths[column] - text_width(table->cells[i]) + 2;
        (void)buf_printf(out, "%*s%s", (int)gap, "", last ? "\n" : "");
    }
}

static void put_value(const json_t *value, struct buf *out)
{
    switch (json_typeof(value)) {
    case JSON_STRING:
        (void)buf_puts(out, json_string_value(value));
        break;
    case JSON_INTEGER:
        (void)buf_printf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        break;
    case JSON_REAL:
        (void)buf_printf(out, "%g", json_real_value(value));
        break;
    case JSON_TRUE:
        (void)buf_puts(out, "true");
        break;
    case JSON_FALSE:
        (void)buf_puts(out, "false");
        break;
    case JSON_OBJECT: { /* a map of strings: labels */
        const char *key;
        json_t *member;
        bool first = true;
        json_object_foreach(unconst(value), key, member)
        {
            (void)buf_printf(out, "%s%s=", first ? "" : ",", key);
            put_value(member, out);
            first = false;
        }
        break;
    }
    case JSON_ARRAY:
    case JSON_NULL:
        break;
    }
}

void cell_from_path(const json_t *object, const char *path, struct buf *out)
{
    if (object == NULL) {
        return;
    }
    if (json_is_array(object)) {
        size_t idx;
        json_t *element;
        json_array_foreach(object, idx, element)
        {
            if (idx > 0) {
                (void)buf_putc(out, ',');
            }
            cell_from_path(element, path, out);
        }
        return;
    }
    if (path[0] == '\0') {
        put_value(object, out);
        return;
    }
    size_t len = strcspn(path, ".");
    char name[128];
    if (len >= sizeof(name)) {
        return;
    }
    memcpy(name, path, len);
    name[len] = '\0';
    if (len >= 2 && strcmp(name + len - 2, "[]") == 0) {
        name[len - 2] = '\0'; /* "to[].backend": lists are walked anyway */
    }
    const char *rest = path[len] == '.' ? path + len + 1 : path + len;
    cell_from_path(json_object_get(object, name), rest, out);
}

void cell_age(const char *time, uint64_t now_wall_ms, struct buf *out)
{
    struct tm tm = {0};
    const char *rest = time != NULL ? strptime(time, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
    if (rest == NULL) {
        return;
    }
    int64_t then_s = (int64_t)timegm(&tm);
    int64_t now_s = (int64_t)(now_wall_ms / 1000);
    int64_t age = now_s > then_s ? now_s - then_s : 0;
    static const struct {
        int64_t seconds;
        char unit;
    } units[] = {{86400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}};
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        if (age >= 2 * units[i].seconds || units[i].seconds == 1) {
            (void)buf_printf(out, "%" PRId64 "%c", age / units[i].seconds, units[i].unit);
            return;
        }
    }
}
