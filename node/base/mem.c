/*
 * Allocation wrappers over libc.
 */
#include "node/base/mem.h"

#include "node/base/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *try_mem(size_t size)
{
    return calloc(1, size != 0 ? size : 1);
}

void *mem_new(size_t size)
{
    void *ptr = try_mem(size);
    ASSERT(ptr != NULL);
    return ptr;
}

void *mem_array(size_t count, size_t size)
{
    void *ptr = calloc(count != 0 ? count : 1, size != 0 ? size : 1);
    ASSERT(ptr != NULL);
    return ptr;
}

void *mem_grow(void *ptr, size_t count, size_t size)
{
    size_t bytes = 0;
    ASSERT(!__builtin_mul_overflow(count, size, &bytes));
    void *grown = realloc(ptr, bytes != 0 ? bytes : 1);
    ASSERT(grown != NULL);
    return grown;
}

char *mem_strdup(const char *text)
{
    return mem_strndup(text, strlen(text));
}

char *mem_strndup(const char *text, size_t len)
{
    size_t actual = strnlen(text, len);
    char *copy = mem_new(actual + 1);
    memcpy(copy, text, actual);
    return copy;
}

void *mem_dup(const void *bytes, size_t len)
{
    void *copy = mem_new(len);
    if (len != 0) {
        memcpy(copy, bytes, len);
    }
    return copy;
}

char *mem_printf(const char *fmt, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, fmt);
    int len = vasprintf(&text, fmt, args);
    va_end(args);
    ASSERT(len >= 0 && text != NULL);
    return text;
}

void mem_free(void *ptr)
{
    free(ptr);
}
