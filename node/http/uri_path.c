/*
 * Paths and queries: canonical form, escapes, parameters.
 */
#include "node/http/uri.h"

#include <string.h>

static int hex_value(char digit)
{
    if (digit >= '0' && digit <= '9') {
        return digit - '0';
    }
    if (digit >= 'a' && digit <= 'f') {
        return digit - 'a' + 10;
    }
    return digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}

/* The byte that "%xy" at text stands for; -1: malformed. */
static int escape_value(const char *text, size_t left)
{
    if (left < 3) {
        return -1;
    }
    int high = hex_value(text[1]), low = hex_value(text[2]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/* RFC 3986 2.3 */
static bool is_unreserved(int byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || byte == '-' || byte == '.' || byte == '_' || byte == '~';
}

/* Copy with escapes made canonical. out has room for len bytes: it never grows. */
static int decode_unreserved(const char *path, size_t len, char *out, size_t *ret_len)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t to = 0;
    for (size_t at = 0; at < len; at++) {
        if (path[at] != '%') {
            out[to++] = path[at];
            continue;
        }
        int byte = escape_value(path + at, len - at);
        if (byte <= 0) {
            return RC_INVALID;
        }
        if (is_unreserved(byte)) {
            out[to++] = (char)byte;
        } else {
            out[to++] = '%';
            out[to++] = digits[byte / 16];
            out[to++] = digits[byte % 16];
        }
        at += 2;
    }
    *ret_len = to;
    return 0;
}

enum segment {
    SEGMENT_PLAIN = 0,
    SEGMENT_DOT,
    SEGMENT_DOT_DOT,
    SEGMENT_DISGUISED, /* dots for servers that split at more than '/' or cut at ';' */
};

/* How many bytes at `at` some server takes for a separator: 0, 1 ('\') or 3 ("%2F", "%5C"). */
static size_t separator_len(const char *segment, size_t at, size_t len)
{
    if (segment[at] == '\\') {
        return 1;
    }
    bool is_escape = segment[at] == '%' && len - at >= 3;
    return is_escape && (memcmp(segment + at, "%2F", 3) == 0 || memcmp(segment + at, "%5C", 3) == 0)
               ? 3
               : 0;
}

/* What a segment (without '/', escapes canonical) is. */
static enum segment judge_segment(const char *segment, size_t len)
{
    if (len == 1 && segment[0] == '.') {
        return SEGMENT_DOT;
    }
    if (len == 2 && segment[0] == '.' && segment[1] == '.') {
        return SEGMENT_DOT_DOT;
    }
    size_t begin = 0; /* of a part between disguised separators */
    for (size_t at = 0; at <= len; at++) {
        size_t skip = at < len ? separator_len(segment, at, len) : 0;
        bool is_end = at == len || skip > 0 || segment[at] == ';';
        if (!is_end) {
            continue;
        }
        size_t part = at - begin;
        bool is_dots = part > 0 && part <= 2 && segment[begin] == '.' && segment[at - 1] == '.';
        if (is_dots) {
            return SEGMENT_DISGUISED;
        }
        if (skip == 0) { /* a parameter goes on to the next separator */
            while (at < len && separator_len(segment, at, len) == 0) {
                at++;
            }
            skip = at < len ? separator_len(segment, at, len) : 0;
        }
        at += skip > 0 ? skip - 1 : 0;
        begin = at + 1;
    }
    return SEGMENT_PLAIN;
}

/* RFC 3986 5.2.4 in place; escapes are canonical. */
static int settle_dots(char *path, size_t len, enum uri_dots dots, struct uri_path *ret)
{
    size_t at = 0, to = 0;
    while (at < len) { /* path[at] is '/' */
        size_t begin = at + 1, end = begin;
        while (end < len && path[end] != '/') {
            end++;
        }
        enum segment kind = judge_segment(path + begin, end - begin);
        if (kind != SEGMENT_PLAIN && (dots == URI_DOTS_REFUSE || kind == SEGMENT_DISGUISED)) {
            return RC_INVALID;
        }
        if (kind == SEGMENT_PLAIN) {
            memmove(path + to, path + at, end - at);
            to += end - at;
        } else {
            while (kind == SEGMENT_DOT_DOT && to > 0 && path[--to] != '/') {
            }
            if (end == len) {
                path[to++] = '/'; /* "/a/.." is "/" and "/a/." is "/a/" */
            }
            ret->had_dots = true;
        }
        at = end;
    }
    ret->at = path;
    ret->len = to;
    return 0;
}

/* True when nothing in the path can need a change or a refusal: no escape, no dot or backslash at
 * the begin of a segment. */
static bool is_plain_slow(const char *path, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        char byte = path[i];
        if (byte == '%' || byte == '\\') {
            return false;
        }
        if (byte == '/' && i + 1 < len && path[i + 1] == '.') {
            return false;
        }
    }
    return true;
}

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
/* Which of eight bytes are this one: the high bits of them, and perhaps of some above a true one.
 */
static inline uint64_t places_of(uint64_t eight, char byte)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), high = ones << 7;
    uint64_t zero = eight ^ (ones * (unsigned char)byte);
    return (zero - ones) & ~zero & high;
}

/* False when one of eight bytes needs a closer look. */
static inline bool is_plain8(const char *path)
{
    uint64_t eight;
    memcpy(&eight, path, 8);
    uint64_t slash_dot = places_of(eight, '/') << 8 & places_of(eight, '.');
    return (places_of(eight, '%') | places_of(eight, '\\') | slash_dot) == 0;
}

/* Eight at a time, each time with the last byte of the eight before. */
static bool is_plain(const char *path, size_t len)
{
    if (len < 8) {
        return is_plain_slow(path, len);
    }
    size_t at = 0;
    while (at + 8 < len && is_plain8(path + at)) {
        at += 7;
    }
    return at + 8 >= len && is_plain8(path + len - 8) ? true : is_plain_slow(path, len);
}
#else
static bool is_plain(const char *path, size_t len)
{
    return is_plain_slow(path, len);
}
#endif

int uri_path_canon(const char *path, size_t len, enum uri_dots dots, char *scratch,
                   size_t scratch_size, struct uri_path *ret_path)
{
    *ret_path = (struct uri_path){.at = path, .len = len};
    if (len == 0) {
        *ret_path = (struct uri_path){.at = "/", .len = 1};
        return 0;
    }
    if (path[0] != '/') {
        return RC_INVALID;
    }
    if (is_plain(path, len)) {
        return 0;
    }
    if (len > scratch_size) {
        return RC_TOO_BIG;
    }
    size_t scratch_len = 0;
    int rc = decode_unreserved(path, len, scratch, &scratch_len);
    if (rc != 0) {
        return rc;
    }
    ret_path->at = scratch;
    ret_path->len = scratch_len;
    return dots == URI_DOTS_KEEP ? 0 : settle_dots(scratch, scratch_len, dots, ret_path);
}

int uri_decode(const char *text, size_t len, bool form, char *out, size_t out_size, size_t *ret_len)
{
    size_t to = 0;
    for (size_t at = 0; at < len; at++) {
        int byte = (unsigned char)text[at];
        if (byte == '%') {
            byte = escape_value(text + at, len - at);
            if (byte <= 0) {
                return RC_INVALID;
            }
            at += 2;
        } else if (byte == '+' && form) {
            byte = ' ';
        }
        if (to == out_size) {
            return RC_TOO_BIG;
        }
        out[to++] = (char)byte;
    }
    *ret_len = to;
    return 0;
}

bool uri_query_next(const char *query, size_t len, size_t *cursor, struct uri_param *ret_param)
{
    size_t at = *cursor;
    while (at < len && query[at] == '&') {
        at++;
    }
    if (at >= len) {
        *cursor = len;
        return false;
    }
    const char *amp = memchr(query + at, '&', len - at);
    size_t end = amp != NULL ? (size_t)(amp - query) : len;
    const char *equals = memchr(query + at, '=', end - at);
    size_t name_end = equals != NULL ? (size_t)(equals - query) : end;
    size_t value = equals != NULL ? name_end + 1 : end;
    *ret_param = (struct uri_param){.name = query + at,
                                    .name_len = name_end - at,
                                    .value = query + value,
                                    .value_len = end - value};
    *cursor = end;
    return true;
}
