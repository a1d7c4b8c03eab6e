/*
 * Byte classes, known field names, and lists of tokens.
 */
#include "node/http/h1_int.h"

#include <string.h>

#define T H1_CLASS_TOKEN
#define V H1_CLASS_TARGET
#define D H1_CLASS_DIGIT
#define X H1_CLASS_HEX

const uint8_t h1_class[256] = {
    ['!'] = T | V,
    ['"'] = V,
    ['$'] = T | V,
    ['%'] = T | V,
    ['&'] = T | V,
    ['\''] = T | V,
    ['('] = V,
    [')'] = V,
    ['*'] = T | V,
    ['+'] = T | V,
    [','] = V,
    ['-'] = T | V,
    ['.'] = T | V,
    ['/'] = V,
    ['0'] = T | V | D | X,
    ['1'] = T | V | D | X,
    ['2'] = T | V | D | X,
    ['3'] = T | V | D | X,
    ['4'] = T | V | D | X,
    ['5'] = T | V | D | X,
    ['6'] = T | V | D | X,
    ['7'] = T | V | D | X,
    ['8'] = T | V | D | X,
    ['9'] = T | V | D | X,
    [':'] = V,
    [';'] = V,
    ['<'] = V,
    ['='] = V,
    ['>'] = V,
    ['?'] = V,
    ['@'] = V,
    ['A'] = T | V | X,
    ['B'] = T | V | X,
    ['C'] = T | V | X,
    ['D'] = T | V | X,
    ['E'] = T | V | X,
    ['F'] = T | V | X,
    ['G'] = T | V,
    ['H'] = T | V,
    ['I'] = T | V,
    ['J'] = T | V,
    ['K'] = T | V,
    ['L'] = T | V,
    ['M'] = T | V,
    ['N'] = T | V,
    ['O'] = T | V,
    ['P'] = T | V,
    ['Q'] = T | V,
    ['R'] = T | V,
    ['S'] = T | V,
    ['T'] = T | V,
    ['U'] = T | V,
    ['V'] = T | V,
    ['W'] = T | V,
    ['X'] = T | V,
    ['Y'] = T | V,
    ['Z'] = T | V,
    ['['] = V,
    ['\\'] = V,
    [']'] = V,
    ['^'] = T | V,
    ['_'] = T | V,
    ['`'] = T | V,
    ['a'] = T | V | X,
    ['b'] = T | V | X,
    ['c'] = T | V | X,
    ['d'] = T | V | X,
    ['e'] = T | V | X,
    ['f'] = T | V | X,
    ['g'] = T | V,
    ['h'] = T | V,
    ['i'] = T | V,
    ['j'] = T | V,
    ['k'] = T | V,
    ['l'] = T | V,
    ['m'] = T | V,
    ['n'] = T | V,
    ['o'] = T | V,
    ['p'] = T | V,
    ['q'] = T | V,
    ['r'] = T | V,
    ['s'] = T | V,
    ['t'] = T | V,
    ['u'] = T | V,
    ['v'] = T | V,
    ['w'] = T | V,
    ['x'] = T | V,
    ['y'] = T | V,
    ['z'] = T | V,
    ['{'] = V,
    ['|'] = T | V,
    ['}'] = V,
    ['~'] = T | V,
    ['#'] = T,
};

#undef T
#undef V
#undef D
#undef X

/*
 * Known names by a hash of length, first and last two bytes, found by search so that no two
 * collide; a test looks every name up.
 */
struct known_name {
    const char *text; /* lower-case */
    uint8_t len;
    uint8_t id;
};

static const struct known_name known_names[128] = {
    [0] = {"accept-encoding", 15, H1_ACCEPT_ENCODING},
    [3] = {"content-encoding", 16, H1_CONTENT_ENCODING},
    [8] = {"alt-svc", 7, H1_ALT_SVC},
    [10] = {"date", 4, H1_DATE},
    [18] = {"expect", 6, H1_EXPECT},
    [21] = {"transfer-encoding", 17, H1_TRANSFER_ENCODING},
    [22] = {"origin", 6, H1_ORIGIN},
    [24] = {"te", 2, H1_TE},
    [30] = {"server", 6, H1_SERVER},
    [31] = {"max-forwards", 12, H1_MAX_FORWARDS},
    [32] = {"trailer", 7, H1_TRAILER},
    [33] = {"keep-alive", 10, H1_KEEP_ALIVE},
    [34] = {"retry-after", 11, H1_RETRY_AFTER},
    [35] = {"proxy", 5, H1_PROXY},
    [36] = {"proxy-authenticate", 18, H1_PROXY_AUTHENTICATE},
    [37] = {"content-length", 14, H1_CONTENT_LENGTH},
    [38] = {"strict-transport-security", 25, H1_STRICT_TRANSPORT_SECURITY},
    [43] = {"http2-settings", 14, H1_HTTP2_SETTINGS},
    [44] = {"connection", 10, H1_CONNECTION},
    [45] = {"authorization", 13, H1_AUTHORIZATION},
    [51] = {"location", 8, H1_LOCATION},
    [63] = {"proxy-connection", 16, H1_PROXY_CONNECTION},
    [64] = {"forwarded", 9, H1_FORWARDED},
    [66] = {"proxy-authorization", 19, H1_PROXY_AUTHORIZATION},
    [76] = {"via", 3, H1_VIA},
    [78] = {"upgrade", 7, H1_UPGRADE},
    [79] = {"accept", 6, H1_ACCEPT},
    [80] = {"if-match", 8, H1_IF_MATCH},
    [84] = {"cookie", 6, H1_COOKIE},
    [85] = {"if-none-match", 13, H1_IF_NONE_MATCH},
    [93] = {"user-agent", 10, H1_USER_AGENT},
    [94] = {"x-forwarded-for", 15, H1_X_FORWARDED_FOR},
    [99] = {"host", 4, H1_HOST},
    [103] = {"x-forwarded-proto", 17, H1_X_FORWARDED_PROTO},
    [104] = {"set-cookie", 10, H1_SET_COOKIE},
    [105] = {"x-request-id", 12, H1_X_REQUEST_ID},
    [122] = {"x-forwarded-port", 16, H1_X_FORWARDED_PORT},
    [125] = {"content-type", 12, H1_CONTENT_TYPE},
    [127] = {"x-forwarded-host", 16, H1_X_FORWARDED_HOST},
};

enum { NAME_SHORTEST = 2 };

/* Eight bytes with their upper-case letters made lower-case. */
static inline uint64_t lower8(uint64_t bytes)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), high = ones << 7;
    uint64_t seven = bytes & ~high;
    uint64_t from_a = seven + ones * (0x80 - 'A');
    uint64_t above_z = seven + ones * (0x7f - 'Z');
    return bytes | (((from_a ^ above_z) & ~bytes & high) >> 2);
}

bool h1_same_word(const char *text, const char *word, size_t len)
{
    size_t at = 0;
    for (; len - at >= 8; at += 8) {
        uint64_t a, b;
        memcpy(&a, text + at, 8);
        memcpy(&b, word + at, 8);
        if (lower8(a) != b) {
            return false;
        }
    }
    for (; at < len; at++) {
        if (h1_lower(text[at]) != word[at]) {
            return false;
        }
    }
    return true;
}

enum h1_name h1_name_id(const char *name, size_t len)
{
    if (len < NAME_SHORTEST) {
        return H1_OTHER;
    }
    unsigned first = (unsigned char)name[0] | 0x20u;
    unsigned last = (unsigned char)name[len - 1] | 0x20u;
    unsigned before = (unsigned char)name[len - 2] | 0x20u;
    const struct known_name *known = &known_names[(len + last * 6 + first + before * 5) % 128];
    if (known->len != len || !h1_same_word(name, known->text, len)) {
        return H1_OTHER;
    }
    return (enum h1_name)known->id;
}

bool h1_is_token(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (!h1_is_class(text[i], H1_CLASS_TOKEN)) {
            return false;
        }
    }
    return len > 0;
}

bool h1_is_field_value(const char *text, size_t len)
{
    return h1_next_control(text, 0, len) == len;
}

bool h1_list_next(const char *list, size_t len, size_t *cursor, struct h1_span *ret)
{
    size_t at = *cursor;
    while (at < len && (list[at] == ',' || list[at] == ' ' || list[at] == '\t')) {
        at++;
    }
    if (at == len) {
        *cursor = at;
        return false;
    }
    const char *comma = memchr(list + at, ',', len - at);
    size_t end = comma != NULL ? (size_t)(comma - list) : len;
    *cursor = end;
    while (list[end - 1] == ' ' || list[end - 1] == '\t') {
        end--;
    }
    *ret = (struct h1_span){.off = (uint16_t)at, .len = (uint16_t)(end - at)};
    return true;
}

bool h1_list_has(const char *list, size_t len, const char *token)
{
    size_t cursor = 0, token_len = strlen(token);
    struct h1_span item;
    while (h1_list_next(list, MIN(len, (size_t)H1_HEAD_BYTES_MAX), &cursor, &item)) {
        if (item.len == token_len && h1_same_word(list + item.off, token, token_len)) {
            return true;
        }
    }
    return false;
}

const struct h1_field *h1_find(const struct h1_head *head, enum h1_name id)
{
    if ((head->present & H1_BIT(id)) == 0) {
        return NULL;
    }
    for (uint32_t i = 0; i < head->field_count; i++) {
        if (head->fields[i].id == id) {
            return &head->fields[i];
        }
    }
    return NULL;
}

const struct h1_field *h1_find_next(const struct h1_head *head, const struct h1_field *field)
{
    const struct h1_field *end = head->fields + head->field_count;
    for (const struct h1_field *next = field + 1; next < end; next++) {
        if (next->id == field->id) {
            return next;
        }
    }
    return NULL;
}

const struct h1_field *h1_find_named(const struct h1_head *head, const char *bytes,
                                     const char *name, size_t len)
{
    for (uint32_t i = 0; i < head->field_count; i++) {
        const struct h1_field *field = &head->fields[i];
        if (field->name.len == len && h1_same_word(bytes + field->name.off, name, len)) {
            return field;
        }
    }
    return NULL;
}
