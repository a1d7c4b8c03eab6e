/*
 * Changes to the header fields of a parsed head: fields that go are marked in the head, fields that
 * come are whole lines for h1_out.extra. The bytes of the head stay as they are.
 *
 * Values are templates. What a template mentions is what came, whatever edits were made before.
 * Fields that frame the message or belong to the connection cannot be edited: h1_edit_refuses is
 * the list.
 * Thread: any; an edit is immutable.
 */
#ifndef SKEIN_NODE_HTTP_H1_EDIT_H
#define SKEIN_NODE_HTTP_H1_EDIT_H

#include "node/base/template.h"
#include "node/http/h1_head.h"

enum h1_edit_action {
    H1_EDIT_SET = 0, /* the one field of this name */
    H1_EDIT_ADD,     /* one more */
    H1_EDIT_DELETE,
};

struct h1_edit {
    enum h1_edit_action action;
    uint8_t id; /* enum h1_name */
    uint16_t name_len;
    char *name;
    struct template *value; /* NULL with DELETE */
};

struct h1_edits {
    struct h1_edit *items;
    size_t count;
    uint64_t names; /* H1_BIT of each known name that is edited */
};

/* The name cannot be edited: it frames, names the host, or belongs to one connection. */
bool h1_edit_refuses(const char *name, size_t len);

/*
 * Make the edits in their order. lines holds whole lines that were added before; SET and DELETE
 * take those of their name out. A value that comes out empty though it has variables is no field.
 * lines->full tells that it did not fit.
 */
void h1_edits_apply(const struct h1_edits *edits, struct h1_head *head, const char *bytes,
                    template_source_fn *source, void *ctx, struct buf *lines);

/* Mark all fields of this name to go. name: any case. */
void h1_drop_named(struct h1_head *head, const char *bytes, const char *name, size_t len);
void h1_drop_id(struct h1_head *head, enum h1_name id);

/* The same for all names that begin so, and for lines that were added before. */
void h1_drop_prefix(struct h1_head *head, const char *bytes, const char *prefix, size_t len,
                    struct buf *lines);

/* Append "name: value\r\n". The caller vouches for both. */
void h1_put_line(struct buf *lines, const char *name, size_t name_len, const char *value,
                 size_t value_len);

/* The value of a field that came, in one piece: the values of several lines are joined by ", ".
 * name is in lower-case. Written to scratch only when there are several. */
struct template_value h1_value_named(const struct h1_head *head, const char *bytes,
                                     const char *name, size_t len, struct buf *scratch);

#endif
