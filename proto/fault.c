/*
 * The bounded list of faults and the path that a walk stands at.
 */
#include "proto/fault.h"

#include "node/base/check.h"
#include "node/base/mem.h"
#include "proto/utf8.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void faults_init(struct faults *faults)
{
    memset(faults, 0, sizeof *faults);
}

void faults_deinit(struct faults *faults)
{
    for (size_t i = 0; i < faults->count; i++) {
        MEM_FREE(faults->items[i].path);
        MEM_FREE(faults->items[i].text);
    }
    MEM_FREE(faults->items);
    faults->count = 0;
    faults->total = 0;
    faults->shadow = 0;
}

/* What does not fit is left out; the mark taken before still leads back. */
static size_t path_append(struct faults *faults, const char *text, size_t len)
{
    size_t mark = faults->path_len;
    size_t room = sizeof faults->path - 1 - faults->path_len;
    len = MIN(len, room);
    memcpy(faults->path + faults->path_len, text, len);
    faults->path_len += len;
    faults->path[faults->path_len] = '\0';
    return mark;
}

size_t faults_enter(struct faults *faults, const char *field)
{
    size_t mark = faults->path_len;
    if (mark != 0) {
        (void)path_append(faults, ".", 1);
    }
    (void)path_append(faults, field, strlen(field));
    return mark;
}

size_t faults_enter_idx(struct faults *faults, size_t idx)
{
    char text[32];
    int len = snprintf(text, sizeof text, "[%zu]", idx);
    return path_append(faults, text, (size_t)len);
}

static bool is_plain_key(const char *key)
{
    if (*key == '\0') {
        return false;
    }
    for (; *key != '\0'; key++) {
        if (!isalnum((unsigned char)*key) && *key != '_' && *key != '-') {
            return false;
        }
    }
    return true;
}

size_t faults_enter_key(struct faults *faults, const char *key)
{
    if (is_plain_key(key)) {
        return faults_enter(faults, key);
    }
    /* A key with dots would read as a path of its own: labels["example.com/team"]. */
    char text[128];
    (void)snprintf(text, sizeof text, "[\"%.100s\"]", key); /* cut on purpose */
    return path_append(faults, text, strlen(text));
}

size_t faults_enter_item(struct faults *faults, const char *field, size_t idx)
{
    size_t mark = faults_enter(faults, field);
    (void)faults_enter_idx(faults, idx); /* the first mark leads back from both */
    return mark;
}

void faults_leave(struct faults *faults, size_t mark)
{
    ASSERT(mark <= faults->path_len);
    faults->path_len = mark;
    faults->path[mark] = '\0';
}

void faults_shadow(struct faults *faults)
{
    faults->shadow = faults->count;
}

static bool is_shadowed(const struct faults *faults)
{
    for (size_t i = 0; i < faults->shadow; i++) {
        const char *path = faults->items[i].path;
        size_t len = strlen(path);
        char next = len <= faults->path_len ? faults->path[len] : 'x';
        if (strncmp(faults->path, path, len) == 0 && (next == '\0' || next == '.' || next == '[')) {
            return true;
        }
    }
    return false;
}

static void PRINTF_LIKE(2, 0) add(struct faults *faults, const char *fmt, va_list args)
{
    if (is_shadowed(faults)) {
        return;
    }
    faults->total++;
    if (faults->count == FAULTS_MAX) {
        return;
    }
    char text[FAULT_TEXT_MAX];
    (void)vsnprintf(text, sizeof text, fmt, args); /* cut on purpose, maybe within a character */
    utf8_clean(text);
    faults->items = mem_grow(faults->items, faults->count + 1, sizeof *faults->items);
    faults->items[faults->count].path = mem_strdup(faults->path);
    utf8_clean(faults->items[faults->count].path);
    faults->items[faults->count].text = mem_strdup(text);
    faults->count++;
}

void fault_add(struct faults *faults, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    add(faults, fmt, args);
    va_end(args);
}

void fault_field(struct faults *faults, const char *field, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    size_t mark = field != NULL ? faults_enter(faults, field) : faults->path_len;
    add(faults, fmt, args);
    faults_leave(faults, mark);
    va_end(args);
}

void faults_format(const struct faults *faults, struct buf *out)
{
    for (size_t i = 0; i < faults->count; i++) {
        const struct fault *fault = &faults->items[i];
        (void)buf_printf(out, "%s%s%s\n", fault->path, fault->path[0] != '\0' ? ": " : "",
                         fault->text);
    }
    if (faults->total > faults->count) {
        (void)buf_printf(out, "and %zu more\n", faults->total - faults->count);
    }
}

int faults_err(const struct faults *faults, int rc, struct err_info *err)
{
    ASSERT(faults_any(faults));
    const struct fault *fault = &faults->items[0];
    const char *colon = fault->path[0] != '\0' ? ": " : "";
    if (faults->total > 1) {
        return err_set(err, rc, "%s%s%s (and %zu more)", fault->path, colon, fault->text,
                       faults->total - 1);
    }
    return err_set(err, rc, "%s%s%s", fault->path, colon, fault->text);
}
