/*
 * Reads a YAML settings file as a flat list of scalars with their dotted path and line.
 */
#ifndef SKEIN_NODE_APP_SETTINGS_FILE_H
#define SKEIN_NODE_APP_SETTINGS_FILE_H

#include "node/base/errors.h"

struct settings_file_value {
    const char *path; /* "node.name" */
    const char *text;
    size_t line; /* from 1 */
    int index;   /* position in a sequence, or one of the values below */
};

enum {
    SETTINGS_FILE_PLAIN = -1,      /* not in a sequence */
    SETTINGS_FILE_EMPTY_LIST = -2, /* stands for a sequence without elements; text is "" */
};

/* Called per scalar, and for an empty sequence; what it returns other than 0 ends the reading with
 * that. */
typedef int (*settings_file_visit)(void *arg, const struct settings_file_value *value,
                                   struct err_info *err);

/* RC_IO: cannot be read; RC_INVALID: not YAML, or not mappings of scalars and lists of scalars. The
 * text names the file and the line. */
MUST_CHECK int settings_file_read(const char *file, settings_file_visit visit, void *arg,
                                  struct err_info *err);

#endif
