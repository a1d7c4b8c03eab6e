/*
 * Growable bytes with a cap; see buf.h for the invariants.
 */
#include "node/base/buf.h"

#include "node/base/errors.h"
#include "node/base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { BUF_SIZE_MIN = 64 };

void buf_init(struct buf *buf, size_t cap_bytes)
{
    *buf = (struct buf){.cap_bytes = cap_bytes};
}

void buf_deinit(struct buf *buf)
{
    if (buf->data != NULL) {
        MEM_FREE(buf->data);
    }
    buf->len = 0;
    buf->size = 0;
}

void buf_reset(struct buf *buf)
{
    buf->len = 0;
    buf->full = false;
    if (buf->data != NULL) {
        buf->data[0] = '\0';
    }
}

char *buf_enlarge(struct buf *buf, size_t len)
{
    if (buf->full || len > buf->cap_bytes - buf->len) {
        buf->full = true;
        return NULL;
    }
    size_t need = buf->len + len + 1;
    if (need > buf->size) {
        size_t size = MAX(buf->size * 2, (size_t)BUF_SIZE_MIN);
        size = MIN(MAX(size, need), buf->cap_bytes + 1);
        buf->data = mem_grow(buf->data, size, 1);
        buf->size = size;
    }
    return buf->data + buf->len;
}

int buf_put(struct buf *buf, const void *bytes, size_t len)
{
    char *room = buf_reserve(buf, len);
    if (room == NULL) {
        return RC_FULL;
    }
    if (len != 0) {
        memcpy(room, bytes, len);
    }
    buf_grow(buf, len);
    return RC_OK;
}

int buf_puts(struct buf *buf, const char *text)
{
    return buf_put(buf, text, strlen(text));
}

int buf_putc(struct buf *buf, char byte)
{
    return buf_put(buf, &byte, 1);
}

int buf_printf(struct buf *buf, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    ASSERT(len >= 0);
    char *room = buf_reserve(buf, (size_t)len);
    if (room == NULL) {
        return RC_FULL;
    }
    va_start(args, fmt);
    (void)vsnprintf(room, (size_t)len + 1, fmt, args); /* measured above */
    va_end(args);
    buf_grow(buf, (size_t)len);
    return RC_OK;
}

void buf_drop(struct buf *buf, size_t len)
{
    ASSERT(len <= buf->len);
    if (len == 0) {
        return;
    }
    memmove(buf->data, buf->data + len, buf->len - len);
    buf->len -= len;
    buf->data[buf->len] = '\0';
}

char *buf_take(struct buf *buf, size_t *ret_len)
{
    if (buf->data == NULL) {
        buf->data = mem_new(1);
    }
    char *data = buf->data;
    if (ret_len != NULL) {
        *ret_len = buf->len;
    }
    buf_init(buf, buf->cap_bytes);
    return data;
}
