/*
 * Allocation: fixed-size internal requests abort on failure, anything that a peer or an operator
 * sizes uses try_ with a cap of its own and becomes a refused request. Any thread.
 */
#ifndef SKEIN_NODE_BASE_MEM_H
#define SKEIN_NODE_BASE_MEM_H

#include "node/base/defs.h"

/* Zeroed memory; aborts when there is none. Release with mem_free. */
void *mem_new(size_t size) __attribute__((malloc, returns_nonnull));
void *mem_array(size_t count, size_t size) __attribute__((malloc, returns_nonnull));

/* Like realloc, but aborts when there is none; new bytes are not zeroed. */
void *mem_grow(void *ptr, size_t count, size_t size) __attribute__((returns_nonnull));

/* Zeroed memory or NULL. */
void *try_mem(size_t size) __attribute__((malloc));

/* Copies; abort when there is no memory. mem_strndup copies at most len bytes and adds a NUL. */
char *mem_strdup(const char *text) __attribute__((malloc, returns_nonnull));
char *mem_strndup(const char *text, size_t len) __attribute__((malloc, returns_nonnull));
void *mem_dup(const void *bytes, size_t len) __attribute__((malloc, returns_nonnull));

/* printf into fresh memory; aborts when there is none. */
char *mem_printf(const char *fmt, ...) PRINTF_LIKE(1, 2) __attribute__((malloc, returns_nonnull));

/* NULL is accepted. */
void mem_free(void *ptr);

/* Free and null the owner's pointer on one line. */
#define MEM_FREE(ptr)                                                                              \
    do {                                                                                           \
        mem_free(ptr);                                                                             \
        (ptr) = NULL;                                                                              \
    } while (0)

#endif
