/*
 * Reading the trail: both files from the older on, keeping the last lines that fit.
 *
 * A line that is no JSON object (the rest of one that a loss of power cut) is left out. Called on
 * the audit thread; blocks.
 */
#include "admin/server/audit.h"

#include "node/base/buf.h"
#include "node/base/mem.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct selection {
    const struct audit_query *query;
    char **lines; /* a ring of query->limit */
    size_t first;
    size_t count;
    size_t bytes;
};

static const char *text_of(const json_t *record, const char *name)
{
    const char *text = json_string_value(json_object_get(record, name));
    return text != NULL ? text : "";
}

static bool fits(const struct audit_query *query, const char *line, size_t len)
{
    json_error_t error;
    json_t *record = json_loadb(line, len, 0, &error);
    bool good = json_is_object(record) && strcmp(text_of(record, "time"), query->since) >= 0 &&
                (query->user[0] == '\0' || strcmp(text_of(record, "user"), query->user) == 0);
    json_decref(record);
    return good;
}

static void drop_first(struct selection *selection)
{
    char **line = &selection->lines[selection->first];
    selection->bytes -= strlen(*line);
    MEM_FREE(*line);
    selection->first = (selection->first + 1) % selection->query->limit;
    selection->count--;
}

static void keep(struct selection *selection, const char *line, size_t len)
{
    size_t limit = selection->query->limit;
    if (selection->count == limit) {
        drop_first(selection);
    }
    selection->lines[(selection->first + selection->count) % limit] = mem_strndup(line, len);
    selection->count++;
    selection->bytes += len;
    while (selection->bytes > AUDIT_ANSWER_BYTES_MAX && selection->count > 1) {
        drop_first(selection);
    }
}

static void read_file(struct selection *selection, const char *path)
{
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t size = 0;
    ssize_t len;
    while (file != NULL && (len = getline(&line, &size, file)) > 0) {
        if (line[len - 1] == '\n' && fits(selection->query, line, (size_t)len - 1)) {
            keep(selection, line, (size_t)len - 1);
        }
    }
    free(line);
    if (file != NULL) {
        (void)fclose(file); /* read only: nothing can be lost */
    }
}

char *audit_select(const char *path, const struct audit_query *query)
{
    struct selection selection = {.query = query};
    selection.lines = mem_array(query->limit, sizeof(*selection.lines));
    char *older = mem_printf("%s.1", path);
    read_file(&selection, older);
    read_file(&selection, path);
    mem_free(older);
    struct buf out;
    buf_init(&out, 2 * (size_t)AUDIT_ANSWER_BYTES_MAX);
    (void)buf_putc(&out, '[');
    for (bool first = true; selection.count > 0; first = false) {
        (void)buf_puts(&out, first ? "" : ",");
        (void)buf_puts(&out, selection.lines[selection.first]);
        drop_first(&selection);
    }
    (void)buf_putc(&out, ']');
    mem_free(selection.lines);
    return buf_take(&out, NULL);
}
