/*
 * Edits of header fields; see h1_edit.h.
 */
#include "node/http/h1_edit.h"

#include "node/http/h1_int.h"

static const char *const refused_names[] = {
    "connection", "content-length",   "expect", "host",    "http2-settings",    "keep-alive",
    "proxy",      "proxy-connection", "te",     "trailer", "transfer-encoding", "upgrade",
};

static bool same_name(const char *left, const char *right, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (h1_lower(left[i]) != h1_lower(right[i])) {
            return false;
        }
    }
    return true;
}

bool h1_edit_refuses(const char *name, size_t len)
{
    for (size_t i = 0; i < ARRAY_LEN(refused_names); i++) {
        if (strlen(refused_names[i]) == len && same_name(name, refused_names[i], len)) {
            return true;
        }
    }
    return false;
}

void h1_drop_id(struct h1_head *head, enum h1_name id)
{
    if ((head->present & H1_BIT(id)) == 0) {
        return;
    }
    for (uint32_t i = 0; i < head->field_count; i++) {
        if (head->fields[i].id == id) {
            head->fields[i].drop = true;
        }
    }
}

void h1_drop_named(struct h1_head *head, const char *bytes, const char *name, size_t len)
{
    for (uint32_t i = 0; i < head->field_count; i++) {
        struct h1_field *field = &head->fields[i];
        if (field->name.len == len && same_name(bytes + field->name.off, name, len)) {
            field->drop = true;
        }
    }
}

/* Take the lines out whose name begins like this, and goes on only if it is a prefix. */
static void lines_remove(struct buf *lines, const char *name, size_t len, bool prefix)
{
    size_t at = 0;
    while (at < lines->len) {
        char *line = lines->data + at;
        const char *end = memchr(line, '\n', lines->len - at);
        size_t line_len = end != NULL ? (size_t)(end - line) + 1 : lines->len - at;
        if (line_len > len && (prefix || line[len] == ':') && same_name(line, name, len)) {
            memmove(line, line + line_len, lines->len - at - line_len);
            lines->len -= line_len;
            lines->data[lines->len] = '\0';
        } else {
            at += line_len;
        }
    }
}

void h1_drop_prefix(struct h1_head *head, const char *bytes, const char *prefix, size_t len,
                    struct buf *lines)
{
    for (uint32_t i = 0; i < head->field_count; i++) {
        struct h1_field *field = &head->fields[i];
        if (field->name.len >= len && same_name(bytes + field->name.off, prefix, len)) {
            field->drop = true;
        }
    }
    lines_remove(lines, prefix, len, true);
}

void h1_put_line(struct buf *lines, const char *name, size_t name_len, const char *value,
                 size_t value_len)
{
    char *room = buf_reserve(lines, name_len + value_len + 4);
    if (room == NULL) {
        return; /* lines->full tells */
    }
    memcpy(room, name, name_len);
    memcpy(room + name_len, ": ", 2);
    memcpy(room + name_len + 2, value, value_len);
    memcpy(room + name_len + 2 + value_len, "\r\n", 2);
    buf_grow(lines, name_len + value_len + 4);
}

static void put_edit(const struct h1_edit *edit, template_source_fn *source, void *ctx,
                     struct buf *lines)
{
    size_t before = lines->len;
    (void)buf_put(lines, edit->name, edit->name_len);
    (void)buf_put(lines, ": ", 2);
    size_t value = lines->len;
    template_render(edit->value, source, ctx, lines);
    if (lines->len == value && edit->value->has_vars) {
        lines->len = before; /* what it speaks of is not there */
        if (lines->data != NULL) {
            lines->data[before] = '\0';
        }
        return;
    }
    (void)buf_put(lines, "\r\n", 2);
}

void h1_edits_apply(const struct h1_edits *edits, struct h1_head *head, const char *bytes,
                    template_source_fn *source, void *ctx, struct buf *lines)
{
    for (size_t i = 0; i < edits->count && !lines->full; i++) {
        const struct h1_edit *edit = &edits->items[i];
        if (edit->action != H1_EDIT_ADD) {
            lines_remove(lines, edit->name, edit->name_len, false);
            if (edit->id != H1_OTHER) {
                h1_drop_id(head, (enum h1_name)edit->id);
            } else {
                h1_drop_named(head, bytes, edit->name, edit->name_len);
            }
        }
        if (edit->action != H1_EDIT_DELETE) {
            put_edit(edit, source, ctx, lines);
        }
    }
}

struct template_value h1_value_named(const struct h1_head *head, const char *bytes,
                                     const char *name, size_t len, struct buf *scratch)
{
    struct template_value value = {.at = "", .len = 0};
    size_t found = 0;
    for (uint32_t i = 0; i < head->field_count; i++) {
        const struct h1_field *field = &head->fields[i];
        if (field->name.len != len || !same_name(bytes + field->name.off, name, len)) {
            continue;
        }
        const char *part = bytes + field->value.off;
        if (found++ == 0) {
            value = (struct template_value){.at = part, .len = field->value.len};
            continue;
        }
        if (found == 2) {
            buf_reset(scratch);
            (void)buf_put(scratch, value.at, value.len);
        }
        (void)buf_put(scratch, ", ", 2); /* what does not fit is left out whole */
        (void)buf_put(scratch, part, field->value.len);
        value = (struct template_value){.at = scratch->data, .len = scratch->len};
    }
    return value;
}
