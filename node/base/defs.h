/*
 * Attributes and tiny helpers that every unit uses. Level 0: libc only.
 */
#ifndef SKEIN_NODE_BASE_DEFS_H
#define SKEIN_NODE_BASE_DEFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MUST_CHECK          __attribute__((warn_unused_result))
#define PRINTF_LIKE(fmt, n) __attribute__((format(printf, fmt, n)))
#define NORETURN            __attribute__((noreturn))
#define UNUSED              __attribute__((unused))
#define LIKELY(x)           __builtin_expect(!!(x), 1)
#define UNLIKELY(x)         __builtin_expect(!!(x), 0)

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* The object that holds member `member` of type `type` at address `ptr`. */
#define CONTAINER_OF(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/*
 * Drop const for the few library structs that lack it (uv_buf_t, protobuf-c). The callee must not
 * write through the result.
 */
static inline void *unconst(const void *ptr)
{
    union {
        const void *in;
        void *out;
    } u = {.in = ptr};
    return u.out;
}

#endif
