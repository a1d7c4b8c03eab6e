/*
 * A growable run of bytes that cannot be made without a cap.
 *
 * Invariants: len <= cap_bytes; data[len] is NUL whenever data is not NULL, so text can be printed;
 * a failed append leaves the content as it was and sets `full`, which stays until buf_reset, so a
 * sequence of appends needs one check at its end.
 * Thread: the owner's. Low-level: no upward dependencies.
 */
#ifndef SKEIN_NODE_BASE_BUF_H
#define SKEIN_NODE_BASE_BUF_H

#include "node/base/check.h"

struct buf {
    char *data;       /* owned; NULL while nothing was ever appended */
    size_t len;       /* bytes in use */
    size_t size;      /* bytes allocated, NUL included */
    size_t cap_bytes; /* len never exceeds this */
    bool full;        /* an append was refused */
};

void buf_init(struct buf *buf, size_t cap_bytes);
void buf_deinit(struct buf *buf);

/* Empty it; memory stays for reuse. */
void buf_reset(struct buf *buf);

/* Append; RC_FULL when it would exceed the cap. The results may be ignored if `full` is tested. */
int buf_put(struct buf *buf, const void *bytes, size_t len);
int buf_puts(struct buf *buf, const char *text);
int buf_putc(struct buf *buf, char byte);
int buf_printf(struct buf *buf, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* For buf_reserve: more memory, or not. */
char *buf_enlarge(struct buf *buf, size_t len);

/* Room for `len` more bytes at the end, or NULL above the cap; follow with buf_grow(len written).
 */
static inline char *buf_reserve(struct buf *buf, size_t len)
{
    /* The cap may have been lowered below the size. */
    bool fits = !buf->full && len < buf->size - buf->len && len <= buf->cap_bytes - buf->len;
    return LIKELY(fits) ? buf->data + buf->len : buf_enlarge(buf, len);
}

static inline void buf_grow(struct buf *buf, size_t len)
{
    ASSERT(buf->data != NULL && buf->len + len < buf->size);
    buf->len += len;
    buf->data[buf->len] = '\0';
}

/* Drop the first len bytes (moves the rest). */
void buf_drop(struct buf *buf, size_t len);

/* Hand the memory to the caller (mem_free) and become empty. Never NULL. */
char *buf_take(struct buf *buf, size_t *ret_len);

#endif
