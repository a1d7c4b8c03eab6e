/*
 * The end of a process whose invariants broke.
 */
#include "node/base/check.h"

#include <stdio.h>
#include <stdlib.h>

void check_failed(const char *what, const char *file, int line)
{
    (void)fprintf(stderr, "skein: invariant broken: %s (%s:%d)\n", what, file, line);
    (void)fflush(stderr);
    abort();
}
