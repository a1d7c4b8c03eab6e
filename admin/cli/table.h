/*
 * Text tables: rows of cells, printed with aligned columns; and cells read from objects by path.
 *
 * Pure. Thread: any.
 */
#ifndef SKEIN_ADMIN_CLI_TABLE_H
#define SKEIN_ADMIN_CLI_TABLE_H

#include "node/base/buf.h"

#include <jansson.h>

enum { TABLE_COLUMNS_MAX = 24 };

struct table {
    size_t columns;
    char **cells; /* owned; row after row, the titles first */
    size_t cell_count;
};

void table_init(struct table *table, size_t columns);
void table_deinit(struct table *table);

/* The next cell of the current row; text is copied. Control characters are shown as '?', so that an
 * object cannot steer the terminal. NULL or "" is shown as "-". */
void table_add(struct table *table, const char *text);

/* Two spaces between columns, no trailing space. */
void table_print(const struct table *table, struct buf *out);

/*
 * The value at a dotted path ("spec.host"), as a cell. Inside a list the path goes on in each
 * element ("spec.to.backend"), and the values are joined with commas. Nothing there gives "".
 */
void cell_from_path(const json_t *object, const char *path, struct buf *out);

/* "12s", "5m", "3h", "2d" since an RFC 3339 time; "" when it is none. */
void cell_age(const char *time, uint64_t now_wall_ms, struct buf *out);

#endif
