/*
 * Assertions. ASSERT stays on in release builds: a broken invariant ends the process, precisely.
 */
#ifndef SKEIN_NODE_BASE_CHECK_H
#define SKEIN_NODE_BASE_CHECK_H

#include "node/base/defs.h"

/* Print what failed and where to stderr, then abort. Never returns. Any thread. */
NORETURN void check_failed(const char *what, const char *file, int line);

#define ASSERT(cond)                                                                               \
    do {                                                                                           \
        if (UNLIKELY(!(cond))) {                                                                   \
            check_failed(#cond, __FILE__, __LINE__);                                               \
        }                                                                                          \
    } while (0)

#define UNREACHABLE(what) check_failed(what, __FILE__, __LINE__)

#endif
